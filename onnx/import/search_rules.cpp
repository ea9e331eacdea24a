#include "onnx/import/search_rules.h"

#include <array>
#include <limits>

#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/scan.h"
#include "tensor/scatter.h"
#include "tensor/top_k.h"

namespace tiny::onnx {

namespace {

Tensor lowest(const Call& c) {
  return full(c.context(), kFloat32, {}, std::numeric_limits<float>::lowest());
}

// 0, 1, .. along the rows of sequences, int64 [1, room].
Tensor places_of(const Call& c, const Tensor& sequences) {
  return positions(c.context(), kInt64, sequences.shape()[1], 1, 2);
}

// Which tokens are named by `tokens` [rows, n] where `counts` (bool) says so: bool [rows, size].
Tensor named(const Call& c, const Tensor& tokens, const Tensor& counts, const tiny::Dim& size) {
  const Tensor none = full(c.context(), kUInt8, {tokens.shape()[0], size}, 0);
  const Tensor at = where(counts, cast(tokens, kInt64), number_int(c, 0));
  const Tensor is = cast(expand(counts, tokens.shape()), kUInt8);
  return cast(scatter_elements(none, at, is, 1, Fold::Max), kBool);
}

// The tokens that would end what came before in the same way.
Tensor repeating(const Call& c, const Tensor& sequences, const Tensor& length, int64_t ngram,
                 const tiny::Dim& vocabulary) {
  const Tensor places = places_of(c, sequences);
  const tiny::Dim starts = sequences.shape()[1] - (ngram - 1);
  Tensor is =
      less_equal(positions(c.context(), kInt64, starts, 1, 2), length - number_int(c, ngram));
  for (int64_t k = 0; k + 1 < ngram; ++k) {
    const Tensor at = equal(places, length + number_int(c, k + 1 - ngram));
    const Tensor last = sum_in_dtype(where(at, sequences, number_int(c, 0)), {1}, true);
    is = bit_and(is, equal(slice_axis(sequences, 1, k, starts + k), last));
  }
  return named(c, slice_axis(sequences, 1, ngram - 1, sequences.shape()[1]), is, vocabulary);
}

// x[b, index[b, i], ..].
Tensor chosen_parts(const Tensor& x, const Tensor& index) {
  if (x.rank() == 2) return take_along_axis(x, index, 1);
  return gather_nd(x, unsqueeze(index, {2}), 1);
}

// Adds those sequences that `is` says to those that have ended and leaves the best, of equals the
// first.
void add_ended(const Call& c, Beams& beams, const Tensor& sequences, const Tensor& scores,
               const Tensor& is) {
  const tiny::Dim all = beams.ended.shape()[1];
  const Tensor has = less(positions(c.context(), kInt32, all, 1, 2), unsqueeze(beams.count, {1}));
  const std::array both{beams.ended_scores, scores}, of{beams.ended, sequences}, are{has, is};
  // What is there comes before what is not, even if no token could follow it.
  const Tensor joined = concat(both, 1);
  const Tensor none = full(c.context(), kFloat32, {}, -std::numeric_limits<double>::infinity());
  const TopK best = top_k(where(concat(are, 1), maximum(joined, lowest(c)), none), all, 1, true);
  beams.ended_scores = chosen_parts(joined, best.indices);
  beams.ended = chosen_parts(concat(of, 1), best.indices);
  const Tensor added = sum_in_dtype(cast(is, kInt32), {1});
  beams.count = minimum(beams.count + added, cast(size_tensor(c.context(), all), kInt32));
}

// Scores by length^penalty, of a length of one element.
Tensor by_length(const BeamSearch& search, const Tensor& scores, const Tensor& length) {
  const Tensor size = cast(length, kFloat32);
  if (!search.length_penalty) return scores / size;
  return scores / pow(size, cast(reshape(search.length_penalty, Shape()), kFloat32));
}

}  // namespace

Tensor ruled_scores(const Call& c, const SearchRules& rules, Tensor scores, const Tensor& sequences,
                    const tiny::Dim& length, bool is_first) {
  const tiny::Dim vocabulary = scores.shape()[1];
  const Tensor size = size_tensor(c.context(), length);
  const auto forbid = [&](const Tensor& which) { scores = where(which, lowest(c), scores); };
  if (rules.repetition) {
    const Tensor penalty = cast(reshape(rules.repetition, Shape()), kFloat32);
    const Tensor is_made = less(places_of(c, sequences), size);
    const Tensor seen = named(c, sequences, is_made, vocabulary);
    const Tensor is_negative = less(scores, number(c, 0));
    scores = where(seen, where(is_negative, scores * penalty, scores / penalty), scores);
  }
  if (rules.ngram > 0 && upper_bound(sequences.shape()[1]) >= rules.ngram)
    forbid(repeating(c, sequences, size, rules.ngram, vocabulary));
  if (rules.vocab_mask) forbid(equal(rules.vocab_mask, number_int(c, 0)));
  if (rules.prefix_mask && is_first) forbid(equal(rules.prefix_mask, number_int(c, 0)));
  if (rules.min_length) {
    const Tensor is_end =
        equal(positions(c.context(), kInt64, vocabulary, 1, 2), number_int(c, rules.eos));
    const Tensor least = cast(reshape(rules.min_length, Shape()), kInt64);
    forbid(bit_and(is_end, less(size, least)));
  }
  return scores;
}

Tensor with_tokens(const Tensor& sequences, const Tensor& tokens, const tiny::Dim& length) {
  const Ref<Context>& context = sequences.context_ref();
  const Tensor at =
      equal(positions(context, kInt64, sequences.shape()[1], 1, 2), size_tensor(context, length));
  return where(at, cast(unsqueeze(tokens, {1}), sequences.dtype()), sequences);
}

Beams first_beams(const Call& c, const BeamSearch& search, const Tensor& prompt, int64_t room) {
  const tiny::Dim batch = prompt.shape()[0];
  const auto all = [&](DType dtype, Shape shape, double value) {
    return full(c.context(), dtype, shape, value);
  };
  const Shape by_beam{batch, search.beams};
  const Tensor rows = pad(cast(prompt, kInt32), {0, 0}, {0, tiny::Dim(room) - prompt.shape()[1]},
                          static_cast<double>(search.rules.pad));
  Beams out;
  out.sequences = reshape(expand(unsqueeze(rows, {1}), {batch, search.beams, room}),
                          {batch * tiny::Dim(search.beams), room});
  // The beams of a batch begin alike: the first alone counts.
  const Tensor is_first =
      equal(positions(c.context(), kInt64, search.beams, 1, 2), number_int(c, 0));
  out.scores = where(is_first, all(kFloat32, by_beam, 0), all(kFloat32, by_beam, -1e9));
  out.ended = all(kInt32, {batch, search.beams, room}, static_cast<double>(search.rules.pad));
  out.ended_scores = all(kFloat32, by_beam, 0);
  out.count = all(kInt32, {batch}, 0);
  out.done = all(kBool, {batch}, 0);
  return out;
}

BeamStep next_beams(const Call& c, const BeamSearch& search, const Beams& now, const Tensor& logits,
                    const tiny::Dim& length, bool is_first) {
  const int64_t beams = search.beams;
  const tiny::Dim batch = now.scores.shape()[0], vocabulary = logits.shape()[1];
  const tiny::Dim room = now.sequences.shape()[1];
  const Tensor size = size_tensor(c.context(), length);
  BeamStep out;
  const Tensor ruled =
      ruled_scores(c, search.rules, log_softmax(logits, 1), now.sequences, length, is_first);
  out.candidates = reshape(ruled, {batch, beams, vocabulary}) + unsqueeze(now.scores, {2});
  // Of each beam one token ends it: of twice as many as there are beams enough go on.
  const TopK top = top_k(reshape(out.candidates, {batch, tiny::Dim(beams) * vocabulary}),
                         tiny::Dim(2 * beams), 1, true);
  const Tensor classes = size_tensor(c.context(), vocabulary);
  const Tensor tokens = floor_mod(top.indices, classes);
  const Tensor from = floor_div(top.indices, classes);  // the beam of its batch
  const Tensor is_end = equal(tokens, number_int(c, search.rules.eos));
  const Tensor is_done = unsqueeze(now.done, {1});

  out.beams = now;
  const auto firsts = [&](const Tensor& x) { return slice_axis(x, 1, 0, beams); };
  const Tensor ends = bit_and(firsts(is_end), invert(is_done));
  add_ended(c, out.beams, chosen_parts(reshape(now.sequences, {batch, beams, room}), firsts(from)),
            by_length(search, firsts(top.values), size), ends);

  // Those that go on, in their order: [batch, beams, candidates].
  const Tensor goes_on = invert(is_end);
  const Tensor rank = cumsum(cast(goes_on, kInt32), 1) - number_int(c, 1);
  const Tensor wanted = positions(c.context(), kInt32, beams, 1, 3);
  const Tensor is_taken = bit_and(unsqueeze(goes_on, {1}), equal(unsqueeze(rank, {1}), wanted));
  const auto taken = [&](const Tensor& x) {
    return sum_in_dtype(where(is_taken, unsqueeze(x, {1}), tiny::number(x, 0)), {2});
  };
  const auto unless_done = [&](const Tensor& x, int64_t other) {
    return where(is_done, tiny::number_int(x, other), x);
  };
  const Tensor first_row = positions(c.context(), kInt64, batch, 0, 2) * number_int(c, beams);
  out.rows = flatten(unless_done(taken(from) + first_row, 0));
  out.beams.scores = unless_done(taken(top.values), 0);
  const Tensor next = flatten(unless_done(taken(tokens), search.rules.pad));
  out.beams.sequences = with_tokens(gather(now.sequences, out.rows, 0), next, length);

  // Of what comes before it the end looks at the second half of the batch before and the first of
  // its own, as onnxruntime's does.
  const Tensor halves = max(reshape(top.values, {batch * tiny::Dim(2), tiny::Dim(beams)}), {1});
  const Tensor best = by_length(
      search, maximum(slice_axis(halves, 0, 0, batch), slice_axis(halves, 0, 1, batch + 1)), size);
  Tensor is_over = greater_equal(out.beams.count, number_int(c, beams));
  if (!search.early_stopping)
    is_over = bit_and(is_over, greater_equal(min(out.beams.ended_scores, {1}), best));
  out.beams.done = bit_or(now.done, is_over);
  return out;
}

FoundSequences found_sequences(const Call& c, const BeamSearch& search, const Beams& last,
                               const Tensor& length, int64_t returned) {
  Beams all = last;
  const Shape shape = last.scores.shape();
  add_ended(c, all, reshape(last.sequences, last.ended.shape()),
            by_length(search, last.scores, length),
            expand(unsqueeze(invert(last.done), {1}), shape));
  return {slice_axis(all.ended, 1, 0, returned), slice_axis(all.ended_scores, 1, 0, returned)};
}

}  // namespace tiny::onnx
