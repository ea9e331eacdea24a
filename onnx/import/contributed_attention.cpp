// Attention, embeddings and position embeddings as onnxruntime's transformer optimiser writes them
// (com.microsoft).
#include "tensor/attention.h"

#include <limits>

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/quantization.h"
#include "tensor/reduce.h"
#include "tensor/scatter.h"

namespace tiny::onnx {

namespace {

// Queries, keys and values, [batch, heads, sequence, size] each.
struct Heads {
  Tensor q, k, v;
};

Tensor heads_first(const Tensor& x, int64_t heads) {
  return permute(split_heads(x, heads), {0, 2, 1, 3});
}

int64_t heads_of(const Call& c, const char* name = "num_heads") {
  const int64_t heads = c.attr(name);
  c.check(heads > 0, "the attribute ", name, " is ", heads, "; wanted 1 or more");
  return heads;
}

// Part `first` to `last` of the last axis.
Tensor columns(const Tensor& x, int64_t first, int64_t last) {
  return slice_axis(x, x.rank() - 1, first, last);
}

// The sum of those that are there.
Tensor sum_of(const Tensor& a, const Tensor& b) {
  if (!a || !b) return a ? a : b;
  return a + b;
}

// ---- Masks.

// What is added to the scores: 0 where `may` holds, elsewhere the attribute mask_filter_value.
Tensor filtered(const Call& c, const Tensor& may) {
  const auto low = static_cast<double>(c.real_attr("mask_filter_value", -10000.0f));
  return where(may, number(c, 0), number(c, low));
}

// What input `i` says of the keys, as something to add to scores [batch, heads, queries, keys]:
// the keys' number, or it and their first one; what keys and (three axes) queries may; or, of all
// positions (four axes), what stands before `queries` more.
Tensor key_mask(const Call& c, size_t i, const Heads& heads) {
  if (!c.has(i)) return {};
  const Tensor& given = c.in(i);
  const tiny::Dim batch = heads.q.shape()[0], queries = heads.q.shape()[2],
                  keys = heads.k.shape()[2];
  if (given.rank() == 1) {
    const Tensor key = positions(c.context(), kInt64, keys, 3, 4);
    const auto bound = [&](const tiny::Dim& first) {
      return reshape(cast(slice_axis(given, 0, first, first + batch), kInt64), {batch, 1, 1, 1});
    };
    const tiny::Dim count = given.shape()[0];
    if (decide_equal(count, batch)) return filtered(c, less(key, bound(0)));
    c.check(decide_equal(count, batch * tiny::Dim(2)), "a mask of ", count,
            " elements for a batch of ", batch, "; wanted as many, or twice as many");
    return filtered(c, bit_and(less(key, bound(0)), greater_equal(key, bound(batch))));
  }
  const Tensor may = greater(given, number_int(c, 0));
  if (given.rank() == 2) return filtered(c, unsqueeze(may, {1, 2}));
  if (given.rank() == 3) return filtered(c, unsqueeze(may, {1}));
  c.check(given.rank() == 4, "a mask with ", given.rank(), " axes; wanted 1 to 4");
  const Tensor rows = slice_axis(may, 2, keys - queries, keys);
  return filtered(c, slice_axis(rows, 3, 0, keys));
}

// ---- Keys and values that are kept between runs.

// New keys or values behind those of input `past`; or, where input `length` says how many of those
// are there, in the places after them.
Tensor joined(const Call& c, size_t past, size_t length, const Tensor& more) {
  if (!c.has(past)) return more;
  if (!c.has(length)) return concat(Tensors{c.in(past), more}, 2);
  const Tensor start = expand(reshape(c.in(length), {1}), {more.shape()[0]});
  return scatter_slices(c.in(past), more, start, 2, false);
}

// Outputs: what is looked up, [batch, sequence, heads * size].
Tensor attended(const Call& c, const Heads& heads, AttentionOptions options) {
  if (const float scale = c.real_attr("scale", 0); scale != 0)
    options.scale = static_cast<double>(scale);
  return join_heads(scaled_dot_product_attention(heads.q, heads.k, heads.v, options).y);
}

// ---- Attention over a product with the weights of queries, keys and values together.

struct Attended {
  Tensor y;
  Tensor present;  // keys and values, along a new first axis
};

// `projected` is [batch, sequence, sizes of all three]; the numbers are those of inputs.
Attended self_attention(const Call& c, const Tensor& projected, const Ints& sizes, size_t mask,
                        size_t past, size_t bias) {
  const int64_t count = heads_of(c);
  if (c.flag("do_rotary", false)) c.unsupported("the attribute do_rotary");
  if (c.flag("past_present_share_buffer", false))
    c.unsupported("the attribute past_present_share_buffer");
  c.pass_over({"rotary_embedding_dim"});
  c.check(dim_of(projected, 2) == sizes[0] + sizes[1] + sizes[2], "weights for ",
          dim_of(projected, 2), " results; wanted ", list_text(sizes));
  const Tensors parts = split(projected, sizes, 2);
  Heads heads{heads_first(parts[0], count), heads_first(parts[1], count),
              heads_first(parts[2], count)};
  Tensor present;
  AttentionOptions options;
  if (c.has(past)) {
    const Tensor& kept = c.in(past);
    c.check(kept.rank() == 5, "past has ", kept.rank(), " axes and must have 5");
    options.first_query = size_of(kept, 3);
    const auto with = [&](int64_t which, const Tensor& more) {
      return concat(Tensors{squeeze(slice_axis(kept, 0, which, which + 1), {0}), more}, 2);
    };
    heads.k = with(0, heads.k);
    heads.v = with(1, heads.v);
  }
  if (c.wants(1)) present = stack(Tensors{heads.k, heads.v}, 0);
  options.is_causal = c.flag("unidirectional", false);
  options.mask = sum_of(key_mask(c, mask, heads), bias > 0 ? c.in_or(bias, Tensor()) : Tensor());
  return {attended(c, heads, options), present};
}

// The sizes of queries, keys and values among so many results.
Ints sizes_of(const Call& c, int64_t all) {
  const Ints sizes = c.ints_attr("qkv_hidden_sizes", Ints(3, all / 3));
  c.check(sizes.size() == 3, "the attribute qkv_hidden_sizes has ", sizes.size(),
          " values and needs 3");
  for (int64_t size : sizes)
    c.check(size > 0 && size <= all, "the attribute qkv_hidden_sizes is ", list_text(sizes));
  return sizes;
}

// Inputs: x, the weights, a bias, a mask, past, what is added to the scores, the past's length.
Tensors import_attention(Call& c) {
  const Tensor product = matmul(c.in(0), c.in(1));
  c.check(product.rank() == 3, "it takes [batch, sequence, size]; got shape ", c.in(0).shape());
  const Attended made = self_attention(c, c.has(2) ? product + c.in(2) : product,
                                       sizes_of(c, dim_of(c.in(1), 1)), 3, 4, 5);
  return {made.y, made.present};
}

// Inputs: x, the weights, a bias; the scales of x and the weights; a mask; their zero points; past.
Tensors import_quantized_attention(Call& c) {
  const Tensor total = matmul_integer(c.in(0), c.in_or(6, Tensor()), c.in(1), c.in_or(7, Tensor()));
  c.check(total.rank() == 3, "it takes [batch, sequence, size]; got shape ", c.in(0).shape());
  const Tensor product = cast(total, c.in(2).dtype()) * (c.in(3) * c.in(4)) + c.in(2);
  const Attended made = self_attention(c, product, Ints(3, dim_of(c.in(1), 1) / 3), 5, 8, 0);
  return {made.y, made.present};
}

// ---- Attention of queries, keys and values that come apart, or two or three of them together.

// Inputs 0 to 2, and a bias of all three.
Heads given_heads(const Call& c, size_t bias) {
  const int64_t count = heads_of(c);
  const Tensor& q = c.in(0);
  const auto one = [](const Tensor& packed, int64_t which) {
    return permute(squeeze(slice_axis(packed, 3, which, which + 1), {3}), {0, 2, 1, 3});
  };
  Heads heads;
  if (q.rank() == 5) {
    c.check(dim_of(q, 3) == 3 && !c.has(1) && !c.has(2) && !c.has(bias), "queries of shape ",
            q.shape(), "; wanted [batch, sequence, heads, 3, size], and no keys, values or bias");
    return {one(q, 0), one(q, 1), one(q, 2)};
  }
  c.check(q.rank() == 3, "queries with ", q.rank(), " axes; wanted 3 or 5");
  if (!c.has(1)) {
    const int64_t size = dim_of(q, 2) / 3;
    Tensor all = c.has(bias) ? q + c.in(bias) : q;
    c.check(dim_of(q, 2) == 3 * size, "queries, keys and values of ", dim_of(q, 2), " elements");
    return {heads_first(columns(all, 0, size), count),
            heads_first(columns(all, size, 2 * size), count),
            heads_first(columns(all, 2 * size, 3 * size), count)};
  }
  const Tensor& k = c.in(1);
  const int64_t size = dim_of(q, 2);
  const auto biased = [&](const Tensor& x, int64_t first) {
    if (!c.has(bias)) return x;
    return x + columns(c.in(bias), first, first + dim_of(x, 2));
  };
  heads.q = heads_first(biased(q, 0), count);
  if (k.rank() == 5) {
    c.check(dim_of(k, 3) == 2 && !c.has(2) && !c.has(bias), "keys of shape ", k.shape(),
            "; wanted [batch, sequence, heads, 2, size], and no values or bias");
    return {heads.q, one(k, 0), one(k, 1)};
  }
  if (k.rank() == 4) return {heads.q, k, c.in(2)};
  heads.k = heads_first(biased(k, size), count);
  heads.v = heads_first(biased(c.in(2), size + dim_of(k, 2)), count);
  return heads;
}

struct MultiHeadInputs {
  size_t bias, mask, added, past_key, past_value, past_length, cache_indirection;
};

// Outputs: the result, the keys and the values.
Tensors multi_head_attention(Call& c, const MultiHeadInputs& at) {
  Heads heads = given_heads(c, at.bias);
  if (c.has(at.cache_indirection)) c.unsupported("the input cache_indirection");
  c.pass_over({"past_present_share_buffer", "output_qk"});
  AttentionOptions options;
  options.is_causal = c.flag("unidirectional", false);
  const bool has_past = c.has(at.past_key);
  c.check(has_past == c.has(at.past_value), "it needs past keys and past values, or neither");
  const tiny::Dim queries = heads.q.shape()[2];
  if (has_past && c.has(at.past_length)) {
    if (options.is_causal && !queries.is(1))
      c.unsupported("several causal queries behind a past whose length is data");
    options.is_causal = false;
    const Tensor length = reshape(cast(c.in(at.past_length), kInt64), {1});
    options.key_lengths = expand(length + size_tensor(c.context(), queries), {heads.q.shape()[0]});
  } else if (has_past) {
    options.first_query = size_of(c.in(at.past_key), 2);
  }
  heads.k = joined(c, at.past_key, at.past_length, heads.k);
  heads.v = joined(c, at.past_value, at.past_length, heads.v);
  options.mask = sum_of(key_mask(c, at.mask, heads), c.in_or(at.added, Tensor()));
  return {attended(c, heads, options), heads.k, heads.v};
}

Tensors import_multi_head_attention(Call& c) {
  return multi_head_attention(c, {3, 4, 5, 6, 7, 8, 9});
}

// One query at a time; the beam's width (input 8) matters to the cache of beams alone.
Tensors import_decoder_attention(Call& c) {
  return multi_head_attention(c, {10, 3, 4, 5, 6, 7, 9});
}

// ---- Attention of groups of heads that share their keys and values.

// Rotated in place by inputs 7 and 8, whose rows `place` [batch, sequence] names.
Tensor rotated(const Call& c, const Tensor& x, const Tensor& place) {
  return rotary_embedding(x, gather(c.in(7), place, 0), gather(c.in(8), place, 0),
                          c.flag("rotary_interleaved", false));
}

void refuse_cache_forms(const Call& c) {
  for (const char* name : {"k_quant_type", "v_quant_type"})
    if (c.text_attr(name, "NONE") != "NONE") c.unsupported("a quantised cache (", name, ")");
  c.pass_over({"kv_cache_bit_width"});
  for (size_t i : {size_t{12}, size_t{13}})
    if (c.has(i)) c.unsupported("the scale of a quantised cache");
  if (c.flag("sliding_window_cache", false)) c.unsupported("the attribute sliding_window_cache");
  if (c.attr("qk_output", 0) != 0) c.unsupported("the attribute qk_output");
}

// [batch, sequence, heads, size] of inputs 0 to 2, or of input 0 alone, normalized by head.
Heads grouped_heads(const Call& c, int64_t heads, int64_t groups) {
  Tensor q = c.in(0), k, v;
  if (c.has(1)) {
    k = c.in(1);
    v = c.in(2);
  } else {
    const int64_t size = dim_of(q, 2) / (heads + 2 * groups);
    c.check(size * (heads + 2 * groups) == dim_of(q, 2), "queries, keys and values of ",
            dim_of(q, 2), " elements for ", heads, " and twice ", groups, " heads");
    const Tensors parts = split(q, {heads * size, groups * size, groups * size}, 2);
    q = parts[0];
    k = parts[1];
    v = parts[2];
  }
  Heads out{split_heads(q, heads), split_heads(k, groups), split_heads(v, groups)};
  if (c.has(14) != c.has(15)) c.check(false, "it needs both of the norms' weights, or neither");
  const auto epsilon = static_cast<double>(c.real_attr("qk_norm_epsilon", 1e-6f));
  if (c.has(14)) {
    out.q = rms_norm(out.q, c.in(14), -1, epsilon);
    out.k = rms_norm(out.k, c.in(15), -1, epsilon);
  }
  return out;
}

// Which keys a query may look at: none after its own position, or behind the sequence's end, or
// before the window.  Positions are counted from `start` [batch].
Tensor allowed_keys(const Call& c, const Tensor& start, const Tensor& total,
                    const tiny::Dim& queries, const tiny::Dim& keys) {
  const tiny::Dim batch = start.shape()[0];
  const Tensor key = positions(c.context(), kInt64, keys, 3, 4);
  const Tensor query =
      reshape(start, {batch, 1, 1, 1}) + positions(c.context(), kInt64, queries, 2, 4);
  Tensor may = less(key, reshape(total, {batch, 1, 1, 1}));
  const int64_t window = c.attr("local_window_size", -1);
  const bool is_causal = c.flag("causal", true);
  c.check(window == -1 || (window > 0 && is_causal), "local_window_size = ", window);
  if (is_causal) may = bit_and(may, less_equal(key, query));
  if (window > 0) may = bit_and(may, greater(key, query - number_int(c, window)));
  return may;
}

// Inputs: queries, keys and values; past keys and values; the last position of each sequence; the
// greatest number of positions; cosines and sines; positions; what is added to the scores; sinks.
Tensors import_group_query_attention(Call& c) {
  refuse_cache_forms(c);
  const int64_t count = heads_of(c), groups = heads_of(c, "kv_num_heads");
  Heads heads = grouped_heads(c, count, groups);
  const tiny::Dim batch = heads.q.shape()[0], queries = heads.q.shape()[1];
  const tiny::Dim kept = c.has(3) ? size_of(c.in(3), 2) : tiny::Dim(0);
  const Shape total_sizes = c.sizes(6, [&](size_t, const Tensor& count) {
    return c.importer().computed_size(count, kept + queries, c.node());
  });
  c.check(total_sizes.size() == 1, "input 6 has ", total_sizes.size(), " elements");
  const tiny::Dim& total_max = total_sizes.front();
  const Tensor total = reshape(cast(c.in(5), kInt64), {batch}) + number_int(c, 1);
  // All of the sequence is here; sequences that are shorter are filled up behind.
  const bool is_first = !c.importer().is_computed(total_max) && decide_equal(queries, total_max);
  const Tensor zero = full(c.context(), kInt64, {batch}, 0);
  const Tensor start = is_first ? zero : maximum(total - size_tensor(c.context(), queries), zero);
  if (c.flag("do_rotary", false)) {
    Tensor place = unsqueeze(start, {1}) + positions(c.context(), kInt64, queries, 1, 2);
    if (c.has(9)) place = c.in(9);
    heads.q = rotated(c, heads.q, place);
    heads.k = rotated(c, heads.k, place);
  }
  const auto present = [&](size_t past, const Tensor& made) {
    const Tensor more = permute(made, {0, 2, 1, 3});
    if (!c.has(past) || kept.is(0)) return more;
    const tiny::Dim missing = maximum(kept, total_max) - kept;
    // What stands behind the new ones belongs to nobody, and is 0.
    const Tensor all = pad(c.in(past), {0, 0, 0, 0}, {0, 0, missing, 0});
    const Tensor place = positions(c.context(), kInt64, all.shape()[2], 2, 4);
    const Tensor is_past = less(place, reshape(start, {batch, 1, 1, 1}));
    const Tensor room = where(is_past, all, number(all, 0));
    return scatter_slices(room, more, start, 2, false);
  };
  heads = {permute(heads.q, {0, 2, 1, 3}), present(3, heads.k), present(4, heads.v)};
  AttentionOptions options;
  options.softcap = static_cast<double>(c.real_attr("softcap", 0));
  if (c.has(11))
    options.sink = c.in(11);
  else if (c.flag("smooth_softmax", false))
    options.sink = full(c.context(), kFloat32, {count}, 0);
  options.mask = allowed_keys(c, start, total, queries, heads.k.shape()[2]);
  if (c.has(10)) {
    const Tensor low = number(c.in(10), -std::numeric_limits<double>::infinity());
    // What is added may name fewer keys than there is room for; the others are not looked at.
    const Tensor may = slice_axis(options.mask, 3, 0, size_of(c.in(10), 3));
    options.mask = where(may, c.in(10), low);
  }
  return {attended(c, heads, options), heads.k, heads.v};
}

// ---- Sequences of several lengths, one after the other without gaps.

// Attention of `parts` [tokens, heads * size] each, where input `offsets` [batch, sequence] names
// the place of each token among the filled up sequences, and the next one where they begin.
Tensors packed_attention(const Call& c, const Tensors& parts, size_t offsets, size_t added) {
  const int64_t count = heads_of(c);
  const Tensor& places = c.in(offsets);
  c.check(places.rank() == 2, "token_offset has ", places.rank(), " axes and must have 2");
  const tiny::Dim batch = places.shape()[0], sequence = places.shape()[1];
  const tiny::Dim tokens = parts[0].shape()[0];
  const Tensor bounds = cast(c.in(offsets + 1), kInt64);
  const Tensor begin = reshape(slice_axis(bounds, 0, 0, batch), {batch, 1});
  const Tensor length = reshape(slice_axis(bounds, 0, 1, batch + tiny::Dim(1)), {batch, 1}) - begin;
  const Tensor step = positions(c.context(), kInt64, sequence, 1, 2);
  const Tensor row = minimum(begin + step, size_tensor(c.context(), tokens - tiny::Dim(1)));
  const auto filled = [&](const Tensor& x) { return heads_first(gather(x, row, 0), count); };
  const Heads heads{filled(parts[0]), filled(parts[1]), filled(parts[2])};
  AttentionOptions options;
  c.pass_over({"mask_filter_value"});
  options.key_lengths = reshape(length, {batch});
  options.mask = c.in_or(added, Tensor());
  const Tensor y = flatten(attended(c, heads, options), 0, 2);
  return {gather(y, slice_axis(flatten(places), 0, 0, tokens), 0)};
}

// Inputs: x [tokens, size], the weights, a bias, offsets, bounds, what is added to the scores.
Tensors import_packed_attention(Call& c) {
  const Tensor product = matmul(c.in(0), c.in(1));
  c.check(product.rank() == 2, "it takes [tokens, size]; got shape ", c.in(0).shape());
  const Tensor projected = c.has(2) ? product + c.in(2) : product;
  return packed_attention(c, split(projected, sizes_of(c, dim_of(c.in(1), 1)), 1), 3, 5);
}

// Inputs: queries, keys and values [tokens, size], or all of them [tokens, heads, 3, size]; a bias,
// offsets, bounds, what is added to the scores.
Tensors import_packed_multi_head_attention(Call& c) {
  const Tensor& q = c.in(0);
  Tensors parts;
  if (q.rank() == 4) {
    for (int64_t i = 0; i < 3; ++i)
      parts.push_back(flatten(squeeze(slice_axis(q, 2, i, i + 1), {2}), 1));
  } else {
    parts = {q, c.in(1), c.in(2)};
  }
  int64_t first = 0;
  for (Tensor& part : parts) {
    const int64_t size = dim_of(part, 1);
    if (c.has(3)) part = part + columns(c.in(3), first, first + size);
    first += size;
  }
  return packed_attention(c, parts, 4, 6);
}

// ---- Embeddings.

// Inputs: x, positions or the first one, cosines, sines.
Tensors import_rotary_embedding(Call& c) {
  const Tensor& given = c.in(0);
  const bool is_flat = given.rank() == 3;
  c.check(is_flat || given.rank() == 4, "it takes 3 or 4 axes; got ", given.rank());
  c.pass_over({"is_packed_batching"});
  if (c.real_attr("scale", 1) != 1) c.unsupported("the attribute scale");
  const int64_t pairs = dim_of(c.in(2), 1);
  const int64_t said = c.attr("num_heads", 0);
  c.check(said >= 0 && (said > 0 || c.attr("rotary_embedding_dim", 0) == 0), "num_heads = ", said,
          "; with rotary_embedding_dim it must be 1 or more");
  const int64_t heads = is_flat && said == 0 ? dim_of(given, 2) / (2 * pairs) : said;
  const Tensor x = is_flat ? split_heads(given, heads) : permute(given, {0, 2, 1, 3});
  const int64_t turned = c.attr("rotary_embedding_dim", 0);
  c.check(turned == 0 || turned == 2 * pairs, "rotary_embedding_dim = ", turned, " for ", pairs,
          " cosines");
  Tensor place = c.in(1);
  if (place.rank() == 1)
    place =
        reshape(cast(place, kInt64), {1, 1}) + positions(c.context(), kInt64, x.shape()[1], 1, 2);
  const Tensor out = rotary_embedding(x, gather(c.in(2), place, 0), gather(c.in(3), place, 0),
                                      c.flag("interleaved", false));
  return {is_flat ? reshape(out, given.shape()) : permute(out, {0, 2, 1, 3})};
}

// The number of elements of a mask that are 1, for each of a batch; without a mask 0.
Tensor mask_index(const Call& c, size_t mask) {
  if (!c.has(mask)) return full(c.context(), kInt32, {size_of(c.in(0), 0)}, 0);
  return cast(sum(cast(equal(c.in(mask), number_int(c, 1)), kInt32), {1}), kInt32);
}

// `table(i)` looks up rows of the embedding of input i; `gamma` and `beta` scale the result.
template <class Table>
Tensors embedded(Call& c, const Table& table, const Tensor& gamma, const Tensor& beta,
                 const Tensor& index, const Tensor& place) {
  c.pass_over({"mask_index_type"});
  Tensor sum = table(2, c.in(0)) + table(3, place);
  if (c.has(1)) sum = sum + table(4, c.in(1));
  const StagedLayerNorm made =
      layer_norm_staged(sum, gamma, beta, -1, static_cast<double>(c.real_attr("epsilon", 1e-12f)));
  return {made.y, index, sum};
}

Tensor every_position(const Call& c) {
  c.check(c.in(0).rank() == 2, "it takes ids of [batch, sequence]; got shape ", c.in(0).shape());
  return positions(c.context(), kInt64, c.in(0).shape()[1], 1, 2);
}

// Inputs: words, segments; the tables of words, positions and segments; the scale and the bias of
// the normalization; a mask; positions.
Tensors import_embed_layer_normalization(Call& c) {
  const auto table = [&](size_t i, const Tensor& rows) { return gather(c.in(i), rows, 0); };
  return embedded(c, table, c.in(5), c.in(6), mask_index(c, 7),
                  c.has(8) ? c.in(8) : every_position(c));
}

// The same of integers; scales and zero points of inputs 2 to 6 follow the mask.
Tensors import_quantized_embed_layer_normalization(Call& c) {
  const auto real = [&](size_t i, const Tensor& x) {
    const QuantizationParameters p{c.in(i + 6), c.in(i + 11)};
    return dequantize(x, p, c.in(i + 6).dtype());
  };
  const auto table = [&](size_t i, const Tensor& rows) {
    return real(i, gather(c.in(i), rows, 0));
  };
  Tensors all =
      embedded(c, table, real(5, c.in(5)), real(6, c.in(6)), mask_index(c, 7), every_position(c));
  all.pop_back();
  return all;
}

// clang-format off
constexpr Row kRows[] = {
    {"Attention",                  1, 1, import_attention, 0, nullptr, kContributed},
    {"QAttention",                 1, 1, import_quantized_attention, 0, nullptr, kContributed},
    {"MultiHeadAttention",         1, 1, import_multi_head_attention, 0, nullptr, kContributed},
    {"DecoderMaskedMultiHeadAttention", 1, 1, import_decoder_attention, 0, nullptr, kContributed},
    {"GroupQueryAttention",        1, 1, import_group_query_attention, operand(6), nullptr, kContributed},
    {"PackedAttention",            1, 1, import_packed_attention, 0, nullptr, kContributed},
    {"PackedMultiHeadAttention",   1, 1, import_packed_multi_head_attention, 0, nullptr, kContributed},
    {"RotaryEmbedding",            1, 1, import_rotary_embedding, 0, nullptr, kContributed},
    {"EmbedLayerNormalization",    1, 1, import_embed_layer_normalization, 0, nullptr, kContributed},
    {"QEmbedLayerNormalization",   1, 1, import_quantized_embed_layer_normalization, 0, nullptr, kContributed},
};
// clang-format on

}  // namespace

std::span<const Row> contributed_attention_rows() {
  return kRows;
}

}  // namespace tiny::onnx
