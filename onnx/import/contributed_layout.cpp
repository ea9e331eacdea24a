// Pictures with the channels last, regions, spectra and matrices: what is left of onnxruntime's own
// operators (com.microsoft).
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/linalg.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/reduce.h"
#include "tensor/regions.h"
#include "tensor/scatter.h"
#include "tensor/signal.h"

namespace tiny::onnx {

namespace {

Tensor channels_first(const Tensor& x) {
  return move_axis(x, x.rank() - 1, 1);
}
Tensor channels_last(const Tensor& x) {
  return move_axis(x, 1, x.rank() - 1);
}

// ---- Convolutions, pools and normalizations with the channels last.

Tensors import_nhwc_conv(Call& c) {
  const Tensor x = channels_first(c.in(0));
  return {channels_last(conv(x, c.in(1), c.in_or(2, Tensor()), convolution_window(c, x, c.in(1))))};
}

Tensors import_nhwc_max_pool(Call& c) {
  const Tensor x = channels_first(c.in(0));
  return {channels_last(max_pool(x, pool_window(c, x)))};
}

Tensor normalized_groups(const Call& c, const Tensor& x) {
  const bool is_last = c.flag("channels_last", true);
  const int64_t activation = c.attr("activation");
  c.check(activation == 0 || activation == 1, "the attribute activation is ", activation,
          "; wanted 0 or 1");
  const Tensor y = group_norm(is_last ? channels_first(x) : x, c.attr("groups"), c.in(1), c.in(2),
                              static_cast<double>(c.real_attr("epsilon", 1e-5f)));
  const Tensor active = activation == 1 ? silu(y) : y;
  return is_last ? channels_last(active) : active;
}

Tensors import_group_norm(Call& c) {
  return {normalized_groups(c, c.in(0))};
}

// Inputs: x, the scale, the bias, what is added to x, a number for each channel that is.
Tensors import_skip_group_norm(Call& c) {
  const Tensor& x = c.in(0);
  const bool is_last = c.flag("channels_last", true);
  const auto spread = [&](const Tensor& t) {
    if (t.rank() == x.rank()) return t;
    Ints axes;
    for (int64_t i = 0; i < x.rank() - 2; ++i) axes.push_back(is_last ? i + 1 : i + 2);
    return unsqueeze(t.rank() == 1 ? unsqueeze(t, {0}) : t, axes);
  };
  Tensor sum = x + spread(c.in(3));
  if (c.has(4)) sum = sum + spread(c.in(4));
  return {normalized_groups(c, sum), sum};
}

// ---- Sums with a bias, and what follows.

Tensors import_bias_add(Call& c) {
  return {c.in(0) + c.in(1) + c.in(2)};
}

Tensors import_bias_split_gelu(Call& c) {
  const Tensor sum = c.in(0) + c.in(1);
  const int64_t size = dim_of(sum, -1), last = sum.rank() - 1;
  c.check(size % 2 == 0, size, " elements in two halves");
  return {slice_axis(sum, last, 0, size / 2) * gelu(slice_axis(sum, last, size / 2, size))};
}

// The axes from `axis` on are one.
Tensors import_bias_softmax(Call& c) {
  c.pass_over({"is_inner_broadcast"});
  const Tensor sum = c.in(0) + c.in(1);
  const int64_t axis = axis_of(c.attr("axis", 1), sum.rank());
  return {reshape(softmax(flatten(sum, axis), axis), sum.shape())};
}

Tensors import_is_all_finite(Call& c) {
  const bool infinities = !c.flag("isnan_only", false), nans = !c.flag("isinf_only", false);
  c.check(infinities || nans, "isinf_only and isnan_only are both set");
  Tensor bad;
  for (const Tensor& x : c.all()) {
    Tensor one = infinities ? is_inf(x) : is_nan(x);
    if (infinities && nans) one = bit_or(one, is_nan(x));
    one = any(one, every_axis(x.rank()));
    bad = bad ? bit_or(bad, one) : one;
  }
  return {invert(bad)};
}

// ---- Regions of pictures.

constexpr Named<bool> kIsNearest[] = {{"bilinear", false}, {"nearest", true}};

Tensors import_crop_and_resize(Call& c) {
  return {crop_and_resize(c.in(0), c.in(1), c.in(2), c.ints(3),
                          named_attr<bool>(c, "mode", "bilinear", kIsNearest),
                          static_cast<double>(c.real_attr("extrapolation_value", 0)))};
}

// ---- Spectra, of the last axes.

int64_t signal_axes(const Call& c, int64_t most) {
  if (c.flag("normalized", false)) c.unsupported("the attribute normalized");
  if (!c.flag("onesided", true)) c.unsupported("spectra of two sides");
  const int64_t axes = c.attr("signal_ndim", 1);
  c.check(axes >= 1 && axes <= most, "the attribute signal_ndim is ", axes, " for ", most, " axes");
  return axes;
}

Tensors import_rfft(Call& c) {
  const Tensor& x = c.in(0);
  const int64_t axes = signal_axes(c, x.rank());
  Complex out = dft({x, Tensor()}, x.rank() - 1, {.inverse = false, .onesided = true});
  for (int64_t i = 1; i < axes; ++i) out = dft(out, x.rank() - 1 - i);
  return {view_as_real(out)};
}

Tensors import_irfft(Call& c) {
  Complex x = view_as_complex(c.in(0));
  const int64_t rank = c.in(0).rank() - 1, axes = signal_axes(c, rank);
  for (int64_t i = axes; i-- > 1;) x = dft(x, rank - 1 - i, {.inverse = true});
  return {dft(x, rank - 1, {.inverse = true, .onesided = true}).real};
}

// (a + bi) (c + di), or with the conjugate of the second.
template <bool kConjugate>
Tensors import_complex_mul(Call& c) {
  const Complex a = view_as_complex(c.in(0)), b = view_as_complex(c.in(1));
  c.check(a.imaginary && b.imaginary, "the last axis has the real and the imaginary parts");
  const Tensor sign = number(c, kConjugate ? -1 : 1);
  const Tensor imaginary = b.imaginary * sign;
  return {view_as_real(
      {a.real * b.real - a.imaginary * imaginary, a.real * imaginary + a.imaginary * b.real})};
}

// ---- Matrices and lists.

Tensors import_inverse(Call& c) {
  return {inverse(c.in(0))};
}

constexpr Named<bool> kIsSquared[] = {{"euclidean", false}, {"sqeuclidean", true}};

Tensors import_distances(Call& c) {
  const Tensor &a = c.in(0), &b = c.in(1);
  c.check(a.rank() == 2 && b.rank() == 2, "it takes two matrices; got shapes ", a.shape(), " and ",
          b.shape());
  const Tensor squares = sum_in_dtype(square(unsqueeze(a, {1}) - unsqueeze(b, {0})), {2});
  return {named_attr<bool>(c, "metric", "sqeuclidean", kIsSquared) ? squares : sqrt(squares)};
}

// Windows of `size` elements, `step` apart, along an axis: in its place their number, their
// elements last.
Tensors import_unfold(Call& c) {
  const Tensor& x = c.in(0);
  const int64_t axis = axis_of(c.attr("dim", -1), x.rank()), last = x.rank() - 1;
  const int64_t size = c.attr("size"), step = c.attr("step", 1);
  const int64_t n = dim_of(x, axis);
  c.check(size > 0 && step > 0 && size <= n, "windows of ", size, " elements of ", n, ", ", step,
          " apart");
  const Tensor seen =
      windows(move_axis(x, axis, last), {size}, {step}, {1}, {(n - size) / step + 1});
  return {move_axis(seen, last, axis)};
}

Tensors import_expand_dims(Call& c) {
  const int64_t rank = c.in(0).rank() + 1;
  return {unsqueeze(c.in(0), {axis_of(c.integer(1), rank)})};
}

// Words that would end a sequence of `ngram_size` that was there before score minus infinity.
Tensors import_ngram_repeat_block(Call& c) {
  const Tensor &ids = c.in(0), &scores = c.in(1);
  const int64_t size = c.attr("ngram_size");
  c.check(ids.rank() == 2 && scores.rank() == 2, "it takes ids and scores of two axes");
  c.check(size > 0, "the attribute ngram_size is ", size);
  const int64_t length = dim_of(ids, 1);
  if (length < size) return {scores};
  const Tensor seen = windows(ids, {size}, {1}, {1}, {length - size + 1});
  const auto low = number(scores, -std::numeric_limits<double>::infinity());
  const auto high = number(scores, std::numeric_limits<double>::infinity());
  Tensor is_again = full(c.context(), kBool, seen.shape().part(0, 2), 1);
  if (size > 1)
    is_again = all(equal(slice_axis(seen, 2, 0, size - 1),
                         unsqueeze(slice_axis(ids, 1, length - size + 1, length), {1})),
                   {2});
  const Tensor place = squeeze(slice_axis(seen, 2, size - 1, size), {2});
  return {scatter_elements(scores, place, where(is_again, low, high), 1, Fold::Min)};
}

// Which row of the table a distance from the query to the key looks up: exact ones, then by their
// logarithm (Raffel et al. 2020, T5).
int64_t distance_bucket(int64_t distance, int64_t buckets, int64_t most, bool both_sides) {
  int64_t first = 0;
  if (both_sides) {
    buckets /= 2;
    if (distance > 0) first = buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(-distance, 0);
  }
  const int64_t exact = buckets / 2;
  if (distance < exact) return first + distance;
  const float share = std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
                      std::log(static_cast<float>(most) / static_cast<float>(exact));
  const auto more = static_cast<int64_t>(share * static_cast<float>(buckets - exact));
  return first + std::min(exact + more, buckets - 1);
}

// Inputs: a table [buckets, heads], the numbers of queries and of keys.
Tensors import_relative_position_bias(Call& c) {
  const int64_t queries = c.integer(1), keys = c.integer(2), most = c.attr("max_distance");
  const int64_t buckets = dim_of(c.in(0), 0);
  const bool both_sides = c.flag("is_bidirectional", false);
  constexpr int64_t kMost = 1 << 20;
  c.check(queries > 0 && keys > 0 && queries <= kMost && keys <= kMost, queries, " queries and ",
          keys, " keys");
  c.check(buckets >= (both_sides ? 4 : 2) && most > buckets / (both_sides ? 4 : 2),
          "max_distance = ", most, " for ", buckets, " buckets");
  Ints rows;
  for (int64_t d = 1 - queries; d < keys; ++d)
    rows.push_back(distance_bucket(d, buckets, most, both_sides));
  // Element (q, k) is that of the distance k - q.
  const Tensor place = positions(c.context(), kInt64, keys, 1, 2) -
                       positions(c.context(), kInt64, queries, 0, 2) + number_int(c, queries - 1);
  const Tensor y = gather(c.in(0), gather(c.constant(rows), place, 0), 0);
  return {unsqueeze(permute(y, {2, 0, 1}), {0})};
}

// clang-format off
constexpr Row kRows[] = {
    {"NhwcConv",             1, 1, import_nhwc_conv, 0, nullptr, kContributed},
    {"NhwcMaxPool",          1, 1, import_nhwc_max_pool, 0, nullptr, kContributed},
    {"GroupNorm",            1, 1, import_group_norm, 0, nullptr, kContributed},
    {"SkipGroupNorm",        1, 1, import_skip_group_norm, 0, nullptr, kContributed},
    {"BiasAdd",              1, 1, import_bias_add, 0, nullptr, kContributed},
    {"BiasSplitGelu",        1, 1, import_bias_split_gelu, 0, nullptr, kContributed},
    {"BiasSoftmax",          1, 1, import_bias_softmax, 0, nullptr, kContributed},
    {"IsAllFinite",          1, 1, import_is_all_finite, 0, nullptr, kContributed},
    {"CropAndResize",        1, 1, import_crop_and_resize, operand(3), nullptr, kContributed},
    {"Rfft",                 1, 1, import_rfft, 0, nullptr, kContributed},
    {"Irfft",                1, 1, import_irfft, 0, nullptr, kContributed},
    {"ComplexMul",           1, 1, import_complex_mul<false>, 0, nullptr, kContributed},
    {"ComplexMulConj",       1, 1, import_complex_mul<true>, 0, nullptr, kContributed},
    {"Inverse",              1, 1, import_inverse, 0, nullptr, kContributed},
    {"CDist",                1, 1, import_distances, 0, nullptr, kContributed},
    {"UnfoldTensor",         1, 1, import_unfold, 0, nullptr, kContributed},
    {"ExpandDims",           1, 1, import_expand_dims, operand(1), nullptr, kContributed},
    {"NGramRepeatBlock",     1, 1, import_ngram_repeat_block, 0, nullptr, kContributed},
    {"RelativePositionBias", 1, 1, import_relative_position_bias, operand(1) | operand(2), nullptr, kContributed},
};
// clang-format on

}  // namespace

std::span<const Row> contributed_layout_rows() {
  return kRows;
}

}  // namespace tiny::onnx
