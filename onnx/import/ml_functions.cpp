#include <cmath>
#include <numbers>

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/host_value.h"
#include "onnx/import/ml.h"
#include "onnx/import/text_function.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

std::vector<double> reals_attr(const Call& call, const char* name) {
  const std::string as_tensor = cat(name, "_as_tensor");
  if (call.has_attribute(as_tensor.c_str()))
    return reals_of(to_host_tensor(call.tensor_attr(as_tensor.c_str())));
  const std::vector<float> values = call.floats_attr(name);
  return {values.begin(), values.end()};
}

Tensor real_constant(const Tensor& like, DType dtype, const Ints& shape,
                     const std::vector<double>& values) {
  const auto made = [&](DType type, const auto& numbers) {
    return from_data(like.context_ref(), type, shape, numbers.data(),
                     static_cast<int64_t>(numbers.size() * sizeof numbers[0]));
  };
  if (dtype == kFloat64) return made(kFloat64, values);
  return cast(made(kFloat32, std::vector<float>(values.begin(), values.end())), dtype);
}

namespace {

// The inverse of the error function (Winitzki's approximation, as onnxruntime has it).
Tensor erf_inverse(const Tensor& x) {
  const auto n = [&](double v) { return number(x, v); };
  const Tensor log_of = log((n(1) - x) * (n(1) + x));
  const Tensor v = n(2 / (std::numbers::pi * 0.147)) + n(0.5) * log_of;
  const Tensor v2 = n(1 / 0.147) * log_of;
  return sign(x) * sqrt(sqrt(v * v - v2) - v);
}

constexpr Named<PostTransform> kTransforms[] = {{"NONE", PostTransform::None},
                                                {"SOFTMAX", PostTransform::Softmax},
                                                {"LOGISTIC", PostTransform::Logistic},
                                                {"SOFTMAX_ZERO", PostTransform::SoftmaxZero},
                                                {"PROBIT", PostTransform::Probit}};

PostTransform transform_of(const Call& call) {
  return named_attr<PostTransform>(call, "post_transform", "NONE", kTransforms);
}

}  // namespace

Tensor post_transformed(const Tensor& scores, PostTransform transform) {
  // One score alone stays what it is, in onnxruntime and thus in what exporters tried.
  if (scores.shape().back().is(1) && transform != PostTransform::Probit) return scores;
  switch (transform) {
    case PostTransform::None:
      break;
    case PostTransform::Softmax:
      return softmax(scores, -1);
    case PostTransform::Logistic:
      return sigmoid(scores);
    case PostTransform::SoftmaxZero: {
      // Scores of 0 stay, and count for nothing.
      const Tensor zero = number(scores, 0);
      const Tensor is_zero = equal(scores, zero);
      const Tensor shares = exp(scores - max(scores, {-1}, true));
      const Tensor counted = where(is_zero, zero, shares);
      const Tensor total = sum_in_dtype(counted, {-1}, true);
      return counted / where(equal(total, zero), number(scores, 1), total);
    }
    case PostTransform::Probit:
      return number(scores, std::numbers::sqrt2) *
             erf_inverse(number(scores, 2) * scores - number(scores, 1));
  }
  return scores;
}

Tensor post_transformed(const Call& call, const Tensor& scores) {
  return post_transformed(scores, transform_of(call));
}

Tensor both_scores(const Call& call, const Tensor& score, bool is_share) {
  const PostTransform transform = transform_of(call);
  // The first class has it, and the second none.
  if (transform == PostTransform::Probit)
    return concat(Tensors{post_transformed(score, transform),
                          full(score.context_ref(), score.dtype(), score.shape(), 0)},
                  1);
  const bool is_logistic = transform == PostTransform::Logistic;
  if (is_share && !is_logistic) return concat(Tensors{number(score, 1) - score, score}, 1);
  const Tensor both = concat(Tensors{neg(score), score}, 1);
  return is_logistic ? sigmoid(both) : both;
}

ClassLabels::ClassLabels(Call& call, const char* integers, const char* texts) : call_(call) {
  const auto said = call.strings_attr(texts);
  if (said && !said->empty()) {
    labels_ = text_constant(call, *said);
    call.set_carried(0, kTextType);
    return;
  }
  labels_ = call.constant(call.ints_attr(integers, {}));
  call.check(count() > 0, "it needs the attribute ", integers, " or ", texts);
}

int64_t ClassLabels::count() const {
  return labels_.shape()[0].value();
}

Tensors ClassLabels::of(const Tensor& scores, const Tensor& shown) const {
  call_.check(decide_equal(scores.shape().back(), count()), "scores of ", scores.shape().back(),
              " classes for ", count(), " labels");
  return {gather(labels_, argmax(scores, -1)), shown};
}

Tensors ClassLabels::of_two(const Tensor& score, double bound, const Tensor& shown) const {
  call_.check(count() == 2, count(), " labels of two classes");
  const Tensor is_second = greater(squeeze(score, {1}), number(score, bound));
  return {gather(labels_, cast(is_second, kInt64)), shown};
}

}  // namespace tiny::onnx
