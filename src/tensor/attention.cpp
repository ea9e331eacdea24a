#include "tensor/attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny {

namespace {

// Every head `times` times, one after the other.
Tensor repeat_heads(const Tensor& x, int64_t times) {
  if (times == 1) return x;
  const TensorShape d = x.shape();
  const Tensor wide = expand(unsqueeze(x, {2}), {d[0], d[1], times, d[2], d[3]});
  return reshape(wide, {d[0], d[1] * Dim(times), d[2], d[3]});
}

Tensor minus_infinity(const Tensor& like) {
  return number(like, -std::numeric_limits<double>::infinity());
}

// What is added to the scores: 0 where a query may look, -inf where not.
Tensor allowed(const Tensor& scores, const Tensor& may) {
  return where(may, number(scores, 0.0), minus_infinity(scores));
}

Tensor with_mask(const Tensor& scores, const Tensor& mask) {
  require(mask.rank() >= 1, Status::Shape,
          "attention: a mask without axes; wanted at least one, of keys");
  const Dim keys = scores.shape()[3];
  const Dim missing = keys - mask.shape().back();
  require(decide_less_equal(0, missing), Status::Shape, "attention: a mask of shape ", mask.shape(),
          " for ", keys, " keys; its last axis has at most as many");
  if (missing.is(0) && !mask.dtype().is_bool()) return scores + cast(mask, scores.dtype());
  const Shape none(mask.shape().size(), Dim(0));
  Shape more = none;
  more.back() = missing;
  const Tensor wide = pad(mask, none, more);
  if (mask.dtype().is_bool()) return scores + allowed(scores, wide);
  const Tensor inside = pad(full(mask.context_ref(), kBool, mask.shape(), 1), none, more);
  return scores + where(inside, cast(wide, scores.dtype()), minus_infinity(scores));
}

Tensor masked(Tensor scores, const AttentionOptions& options) {
  const Ref<Context>& context = scores.context_ref();
  const Dim queries = scores.shape()[2];
  if (options.mask) scores = with_mask(scores, options.mask);
  const Tensor key = positions(context, kInt64, scores.shape()[3], 3, 4);
  if (options.is_causal) {
    const Tensor query = positions(context, kInt64, queries, 2, 4);
    const Tensor last = query + size_tensor(context, options.first_query);
    scores = scores + allowed(scores, less_equal(key, last));
  }
  if (options.key_lengths) {
    const Tensor& lengths = options.key_lengths;
    require(lengths.rank() == 1, Status::Shape, "attention: key_lengths of shape ", lengths.shape(),
            "; it takes [batch]");
    const Tensor end = reshape(cast(lengths, kInt64), {lengths.shape()[0], 1, 1, 1});
    scores = scores + allowed(scores, less(key, end));
  }
  return scores;
}

// Query heads for each head of keys and values.
int64_t repeats_of(const Tensor& q, const Tensor& k, const Tensor& v) {
  require(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, Status::Shape, "attention of shapes ",
          q.shape(), ", ", k.shape(), " and ", v.shape(),
          "; it takes [batch, heads, sequence, size]");
  const int64_t heads = q.shape()[1].value();
  const int64_t groups = k.shape()[1].value();
  require(groups > 0 && heads % groups == 0 && groups == v.shape()[1].value(), Status::Shape,
          "attention with ", heads, " query heads for ", groups, " and ", v.shape()[1],
          " key and value heads; wanted as many of both, and a multiple of them for queries");
  return heads / groups;
}

// The softmax of a head's scores and of its sink, without the share of the sink.
Tensor softmax_beside(const Tensor& scores, const Tensor& sink) {
  require(sink.rank() == 1 && decide_equal(sink.shape()[0], scores.shape()[1]), Status::Shape,
          "attention: a sink of shape ", sink.shape(), "; wanted a number for each of ",
          scores.shape()[1], " heads");
  const Tensor wide = scores.dtype().bytes() < 4 ? cast(scores, kFloat32) : scores;
  const Tensor beside = reshape(cast(sink, wide.dtype()), {1, sink.shape()[0], 1, 1});
  const Tensor top = maximum(max(wide, {3}, true), beside);
  const Tensor shares = exp(wide - top);
  return cast(shares / (sum(shares, {3}, true) + exp(beside - top)), scores.dtype());
}

}  // namespace

Attention scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                       const AttentionOptions& options) {
  const int64_t repeats = repeats_of(query, key, value);
  const double scale =
      options.scale.value_or(1 / std::sqrt(static_cast<double>(query.shape()[3].value())));
  const Tensor keys = transpose(repeat_heads(key, repeats), 2, 3);
  // Factors of 16 bits are scaled, so that their products do not overflow.
  const Tensor root = number(query, std::sqrt(scale));
  Tensor scores = query.dtype().bytes() < 4 ? matmul(query * root, keys * root)
                                            : matmul(query, keys) * number(query, scale);
  Tensor shown = scores;
  const auto show = [&](AttentionStage stage, const Tensor& now) {
    if (options.shown == stage) shown = now;
  };
  if (options.softcap > 0) {
    const Tensor cap = number(scores, options.softcap);
    scores = tanh(scores / cap) * cap;
  }
  show(AttentionStage::Capped, scores);
  scores = masked(scores, options);
  show(AttentionStage::Masked, scores);
  scores = cast(scores, options.softmax_dtype.value_or(scores.dtype()));
  const Tensor weights = options.sink ? softmax_beside(scores, options.sink) : softmax(scores);
  show(AttentionStage::Weights, weights);
  const Tensor y = matmul(weights, cast(repeat_heads(value, repeats), weights.dtype()));
  return {cast(y, query.dtype()), cast(shown, query.dtype())};
}

Tensor split_heads(const Tensor& x, int64_t heads) {
  require(x.rank() == 3 && heads > 0 && x.shape()[2].value() % heads == 0, Status::Shape,
          "split_heads: shape ", x.shape(), " with ", heads,
          " heads; it takes [batch, sequence, heads * size]");
  return reshape(x, {x.shape()[0], x.shape()[1], heads, x.shape()[2].value() / heads});
}

Tensor join_heads(const Tensor& x) {
  require(x.rank() == 4, Status::Shape, "join_heads: shape ", x.shape(),
          "; it takes [batch, heads, sequence, size]");
  return reshape(permute(x, {0, 2, 1, 3}), {x.shape()[0], x.shape()[2], -1});
}

Tensor rotary_embedding(const Tensor& x, const Tensor& cosine, const Tensor& sine,
                        bool interleaved) {
  require(x.rank() == 4 && cosine.rank() == 3 && sine.rank() == 3, Status::Shape,
          "rotary_embedding of shapes ", x.shape(), ", ", cosine.shape(), " and ", sine.shape(),
          "; it takes [batch, sequence, heads, size] and twice [batch, sequence, pairs]");
  const int64_t size = x.shape()[3].value();
  const int64_t pairs = cosine.shape()[2].value();
  require(pairs > 0 && 2 * pairs <= size && decide_equal(sine.shape()[2], pairs), Status::Shape,
          "rotary_embedding: cosines of shape ", cosine.shape(), " and sines of shape ",
          sine.shape(), " for ", size,
          " elements; wanted the same shape, whose last axis has at most half as many");
  const Tensor part = slice_axis(x, 3, 0, 2 * pairs);
  const TensorShape d = part.shape();
  const Shape split =
      interleaved ? Shape{d[0], d[1], d[2], pairs, 2} : Shape{d[0], d[1], d[2], 2, pairs};
  const int64_t along = interleaved ? 4 : 3;
  const Tensor parts = part.with(make_reshape(part.node(), split));
  const Tensor first = squeeze(slice_axis(parts, along, 0, 1), {along});
  const Tensor second = squeeze(slice_axis(parts, along, 1, 2), {along});
  const Tensor c = unsqueeze(cosine, {2});
  const Tensor s = unsqueeze(sine, {2});
  const Tensor turned[] = {c * first - s * second, s * first + c * second};
  const Tensor out = reshape(stack(turned, along), d);
  if (2 * pairs == size) return out;
  const Tensor whole[] = {out, slice_axis(x, 3, 2 * pairs, size)};
  return concat(whole, 3);
}

}  // namespace tiny
