// What the operators of ai.onnx.ml share: attributes that may be tensors, scores and their labels.
#pragma once

#include <vector>

#include "onnx/import/call.h"

namespace tiny::onnx {

inline constexpr const char* kMl = "ai.onnx.ml";
inline constexpr int64_t kNewestMl = 5;

// The numbers of a list attribute, or of the tensor in the attribute `name`_as_tensor.
std::vector<double> reals_attr(const Call& call, const char* name);
// The same as a constant of `dtype`, in the context of `like`.
Tensor real_constant(const Tensor& like, DType dtype, const Ints& shape,
                     const std::vector<double>& values);

enum class PostTransform : uint8_t { None, Softmax, Logistic, SoftmaxZero, Probit };
Tensor post_transformed(const Tensor& scores, PostTransform transform);
// By the attribute post_transform, of scores [rows, classes].
Tensor post_transformed(const Call& call, const Tensor& scores);
// Two columns of the score of the second of two classes: with that of the first, which is 1 less it
// (`is_share`) or its negative; of both the logistic function where the attribute says so.
Tensor both_scores(const Call& call, const Tensor& score, bool is_share);

// The labels of classes, which are integers, or texts: output 0 of the call.
class ClassLabels {
 public:
  ClassLabels(Call& call, const char* integers, const char* texts);
  int64_t count() const;
  // The label of the greatest of scores [rows, classes], and `shown`.
  Tensors of(const Tensor& scores, const Tensor& shown) const;
  // The second label where a score [rows, 1] is above the bound, else the first; and `shown`.
  Tensors of_two(const Tensor& score, double bound, const Tensor& shown) const;

 private:
  const Call& call_;
  Tensor labels_;
};

}  // namespace tiny::onnx
