// Attention and the position embeddings that go with it.
#include <cmath>

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

// [batch, sequence, heads * size] as [batch, heads, sequence, size].
Tensor split_heads(const Call& c, const Tensor& x, const char* attribute) {
  if (x.rank() == 4) return x;
  const int64_t heads = c.attr(attribute);
  c.check(x.rank() == 3 && heads > 0 && dim_of(x, 2) % heads == 0, "shape ", x.shape(), " with ",
          heads, " heads");
  return permute(reshape(x, {size_of(x, 0), size_of(x, 1), heads, -1}), {0, 2, 1, 3});
}

Tensor join_heads(const Tensor& x) {
  return reshape(permute(x, {0, 2, 1, 3}), {size_of(x, 0), size_of(x, 2), -1});
}

// Every head `times` times, one after the other.
Tensor repeat_heads(const Tensor& x, int64_t times) {
  if (times == 1) return x;
  const TensorShape d = x.shape();
  const Tensor wide = expand(unsqueeze(x, {2}), {d[0], d[1], times, d[2], d[3]});
  return reshape(wide, {d[0], d[1] * tiny::Dim(times), d[2], d[3]});
}

Tensor minus_infinity(const Tensor& like) {
  return number(like, -__builtin_inf());
}

// What is added to the scores: 0 where a query may look, -inf where not.
Tensor allowed(const Tensor& scores, const Tensor& may) {
  return where(may, number(scores, 0.0), minus_infinity(scores));
}

Tensor masked(const Call& c, Tensor scores, const tiny::Dim& past) {
  const tiny::Dim queries = size_of(scores, 2);
  const tiny::Dim keys = size_of(scores, 3);
  if (c.has(3)) {
    Tensor mask = c.in(3);
    const tiny::Dim missing = keys - size_of(mask, -1);
    c.check(decide_less_equal(0, missing), "attn_mask has the shape ", mask.shape(), " for ",
            tiny::to_string(keys), " keys");
    if (!mask.dtype().is_bool() && missing.is(0)) {
      scores = scores + cast(mask, scores.dtype());
    } else {
      const Shape none(mask.shape().size(), tiny::Dim(0));
      Shape more = none;
      more.back() = missing;
      const Tensor inside = pad(full(c.context(), kBool, mask.shape(), 1), none, more);
      mask = pad(mask, none, more);
      if (mask.dtype().is_bool())
        scores = scores + allowed(scores, mask);
      else
        scores = scores + where(inside, cast(mask, scores.dtype()), minus_infinity(scores));
    }
  }
  const Tensor key = positions(c.context(), kInt64, keys, 3, 4);
  if (c.flag("is_causal", false)) {
    const Tensor query = positions(c.context(), kInt64, queries, 2, 4);
    scores = scores + allowed(scores, less_equal(key, query + size_tensor(c.context(), past)));
  }
  if (c.has(6)) {
    const Tensor length = reshape(cast(c.in(6), kInt64), {size_of(c.in(6), 0), 1, 1, 1});
    scores = scores + allowed(scores, less(key, length));
  }
  return scores;
}

Tensors import_attention(Call& c) {
  const bool is_flat = c.in(0).rank() == 3;
  const Tensor q = split_heads(c, c.in(0), "q_num_heads");
  Tensor k = split_heads(c, c.in(1), "kv_num_heads");
  Tensor v = split_heads(c, c.in(2), "kv_num_heads");
  const tiny::Dim past = c.has(4) ? size_of(c.in(4), 2) : tiny::Dim(0);
  if (c.has(4)) k = concat(std::vector<Tensor>{c.in(4), k}, 2);
  if (c.has(5)) v = concat(std::vector<Tensor>{c.in(5), v}, 2);
  const int64_t heads = dim_of(q, 1);
  c.check(q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && dim_of(k, 1) > 0 &&
              heads % dim_of(k, 1) == 0 && dim_of(k, 1) == dim_of(v, 1),
          heads, " query heads for ", dim_of(k, 1), " and ", dim_of(v, 1), " key and value heads");
  const int64_t repeats = heads / dim_of(k, 1);
  const double scale = c.has_attribute("scale") ? c.real_attr("scale", 0)
                                                : 1 / std::sqrt(static_cast<double>(dim_of(q, 3)));
  const Tensor keys = transpose(repeat_heads(k, repeats), 2, 3);
  // Factors of 16 bits are scaled, so that their products do not overflow.
  const Tensor root = number(q, std::sqrt(scale));
  Tensor scores =
      q.dtype().bytes() < 4 ? matmul(q * root, keys * root) : matmul(q, keys) * number(q, scale);
  const int64_t shown = c.attr("qk_matmul_output_mode", 0);
  const float cap = c.real_attr("softcap", 0);
  Tensor seen = scores;
  if (cap > 0) scores = tanh(scores / number(scores, cap)) * number(scores, cap);
  if (shown == 1) seen = scores;
  scores = masked(c, scores, past);
  if (shown == 2) seen = scores;
  const Tensor weights = softmax(cast(scores, c.dtype_attr("softmax_precision", scores.dtype())));
  if (shown == 3) seen = weights;
  const Tensor y =
      cast(matmul(weights, cast(repeat_heads(v, repeats), weights.dtype())), q.dtype());
  return {is_flat ? join_heads(y) : y, k, v, cast(seen, q.dtype())};
}

// ---- Rotary embeddings.

Tensors import_rotary_embedding(Call& c) {
  const Tensor& given = c.in(0);
  const bool is_flat = given.rank() == 3;
  // [batch, sequence, heads, size]
  Tensor x;
  if (is_flat) {
    const int64_t heads = c.attr("num_heads", 0);
    c.check(heads > 0 && dim_of(given, 2) % heads == 0, "num_heads = ", heads, " for shape ",
            given.shape());
    x = reshape(given, {size_of(given, 0), size_of(given, 1), heads, -1});
  } else {
    c.check(given.rank() == 4, "it takes 3 or 4 axes; got ", given.rank());
    x = permute(given, {0, 2, 1, 3});
  }
  const int64_t size = dim_of(x, 3);
  const int64_t chosen = c.attr("rotary_embedding_dim", 0);
  const int64_t turned = chosen == 0 ? size : chosen;
  c.check(turned > 0 && turned % 2 == 0 && turned <= size, "rotary_embedding_dim = ", turned,
          " of ", size);
  const auto cache = [&](size_t i) {
    const Tensor table = c.has(3) ? gather(c.in(i), c.in(3), 0) : c.in(i);
    c.check(table.rank() == 3 && dim_of(table, 2) == turned / 2, "a cache of shape ", table.shape(),
            " for ", turned, " rotated elements");
    return unsqueeze(table, {2});
  };
  const Tensor cosine = cache(1);
  const Tensor sine = cache(2);
  const Tensor part = slice_axis(x, 3, 0, turned);
  const bool interleaved = c.flag("interleaved", false);
  const TensorShape d = part.shape();
  const Shape pairs =
      interleaved ? Shape{d[0], d[1], d[2], turned / 2, 2} : Shape{d[0], d[1], d[2], 2, turned / 2};
  const int64_t along = interleaved ? 4 : 3;
  const Tensor split = part.with(make_reshape(part.node(), pairs));
  const Tensor first = squeeze(slice_axis(split, along, 0, 1), {along});
  const Tensor second = squeeze(slice_axis(split, along, 1, 2), {along});
  const Tensor real = cosine * first - sine * second;
  const Tensor imaginary = sine * first + cosine * second;
  Tensor out = reshape(stack(std::vector<Tensor>{real, imaginary}, along), part.shape());
  if (turned < size) out = concat(std::vector<Tensor>{out, slice_axis(x, 3, turned, size)}, 3);
  return {is_flat ? reshape(out, given.shape()) : permute(out, {0, 2, 1, 3})};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"Attention",       23, kNow, import_attention},
    {"RotaryEmbedding", 23, kNow, import_rotary_embedding},
};
// clang-format on

}  // namespace

std::span<const Row> attention_rows() {
  return kRows;
}

}  // namespace tiny::onnx
