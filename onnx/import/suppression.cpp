// Boxes that overlap a better one too much, left out.
#include "tensor/suppression.h"

#include <limits>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/selection.h"
#include "onnx/import/table.h"
#include "tensor/control.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/scan.h"
#include "tensor/top_k.h"

namespace tiny::onnx {

namespace {

// What the operator is asked: boxes [batch, n, 4], scores and `wanted` (bool) [batch, classes, n].
struct Question {
  Tensor boxes, scores, wanted;
  Tensor most, overlap;
  SuppressionOptions options;
};

// More elements behind those of an axis: zeros.
Tensor longer(const Tensor& x, int64_t axis, const tiny::Dim& more) {
  const Shape none(x.shape().size(), tiny::Dim(0));
  Shape after = none;
  after[static_cast<size_t>(axis)] = more;
  return pad(x, none, after);
}

// Positions [rows, rounds] of the boxes that are taken, -1 where there are none.
Tensor taken_by(Call& c, const Question& q) {
  const Tensor taken = suppress_overlaps(q.boxes, q.scores, q.most, q.overlap, q.wanted, q.options,
                                         c.importer().dependences());
  return transpose(flatten(taken, 1), 0, 1);
}

// Rows of picture, class and box, of what is taken.
Tensor listed(Call& c, const Tensor& taken, const Tensor& classes) {
  const Tensor all = flatten(taken);
  const Tensor places = counted_places(c, less_equal(number_int(c, 0), all));
  const Tensor row = floor_div(places, size_tensor(c.context(), taken.shape()[1]));
  return stack(Tensors{floor_div(row, classes), floor_mod(row, classes), gather(all, places)}, 1);
}

// A size that the run computes, or 1.
tiny::Dim at_least_one(Call& c, const Tensor& size, int64_t most) {
  const Tensor more = maximum(size - number_int(c, 1), number_int(c, 0));
  return c.importer().computed_size(more, most - 1, c.node()) + tiny::Dim(1);
}

// Scores are looked at in groups: of those without a candidate nothing else is asked.
constexpr int64_t kGroup = 64;
// Fewer scores than these are all looked at in each round: it takes less than the launches that
// list candidates.
constexpr int64_t kListedMin = 4096;
// Where one score in so many is a candidate lists are longer to make than rounds over all take.
constexpr int64_t kSparse = 16;
// Of many candidates rounds look at the best first: so many for each that may be taken, if that are
// few of all.
constexpr int64_t kWindow = 2;
constexpr int64_t kWindowShare = 4;

// The places of what is true in groups [groups, kGroup], of which `has_any` tells some.
Tensor places_of_few(Call& c, const Tensor& groups, const Tensor& has_any) {
  const Tensor some = counted_places(c, has_any);
  const Tensor found = counted_places(c, flatten(gather(groups, some)));
  const Tensor size = number_int(c, kGroup);
  return gather(some, floor_div(found, size)) * size + floor_mod(found, size);
}

// Rounds look at few boxes of each row (a picture's class): at the candidates, where these are few,
// or at the best; and at all if these did not do.
Tensor taken_of_few(Call& c, Question q) {
  const tiny::Dim rows = q.scores.shape()[0] * q.scores.shape()[1];
  const int64_t n = q.scores.shape()[2].value(), groups = ceil_div(n, kGroup);
  const tiny::Dim& rounds = q.options.rounds;
  const bool has_window = rounds.is_const() && rounds.value() * kWindow * kWindowShare <= n;
  const int64_t most_looked_at = has_window ? rounds.value() * kWindow : 0;
  const Tensor zero = number_int(c, 0), window = number_int(c, most_looked_at);
  const Tensor length_of_row = number_int(c, n), padded_row = number_int(c, groups * kGroup);
  const Tensor classes = size_tensor(c.context(), q.scores.shape()[1]);
  const Tensor scores = reshape(q.scores, {rows, n}), wanted = reshape(q.wanted, {rows, n});
  const Tensor grouped =
      reshape(longer(wanted, 1, groups * kGroup - n), {rows * tiny::Dim(groups), kGroup});
  const Tensor of_groups = sum(cast(grouped, kInt32), {1});
  const Tensor counts = cast(sum(reshape(of_groups, {rows, groups}), {1}), kInt64);
  const Tensor few = less(sum(counts, {0}) * number_int(c, kSparse),
                          size_tensor(c.context(), rows * tiny::Dim(n)));
  const Tensor places =
      places_of_few(c, grouped, bit_and(few, less(number_int(of_groups, 0), of_groups)));
  const tiny::Dim length = at_least_one(c, where(few, max(counts, {0}), window), groups * kGroup);
  // Those of a row follow each other; there is one place to read where there are none.
  const Tensor number = positions(c.context(), kInt64, length, 1, 2);
  const Tensor begin = unsqueeze(cumsum(counts, 0, true), {1});
  Tensor are_there = bit_and(few, less(number, unsqueeze(counts, {1})));
  Tensor looked_at =
      floor_mod(gather(longer(places, 0, 1), where(are_there, begin + number, zero)), padded_row);
  if (has_window) {
    const Tensor lowest = tiny::number(scores, -std::numeric_limits<double>::infinity());
    const Tensor best = top_k(where(wanted, scores, lowest), most_looked_at, 1, true).indices;
    const Tensor none = full(c.context(), kInt64, best.shape(), 0);
    const Tensor chosen =
        choose(few, {none}, {best}, c.importer().dependences(), c.importer().guard())[0];
    const Tensor first = longer(chosen, 1, groups * kGroup - most_looked_at);
    looked_at = where(few, looked_at, slice_axis(first, 1, 0, length));
    are_there = where(few, are_there, take_along_axis(wanted, looked_at, 1));
  }
  const Tensor picture = floor_div(positions(c.context(), kInt64, rows, 0, 2), classes);
  Question first = q;
  first.boxes = gather(flatten(q.boxes, 0, 2), picture * length_of_row + looked_at);
  first.scores = unsqueeze(take_along_axis(scores, looked_at, 1), {1});
  first.wanted = unsqueeze(are_there, {1});
  first.options.rounds = minimum(rounds, length);
  const Tensor taken = taken_by(c, first);
  Tensor is_taken = less_equal(zero, taken);
  Tensor did = few;
  if (has_window) {
    const Tensor is_all =
        bit_or(equal(sum(cast(is_taken, kInt64), {1}), q.most), less_equal(counts, window));
    did = bit_or(few, all(is_all, {0}));
    is_taken = bit_and(is_taken, did);
  }
  const Tensor box = take_along_axis(looked_at, where(is_taken, taken, zero), 1);
  const Tensor by_few = listed(c, where(is_taken, box, number_int(c, -1)), classes);
  // One box that nobody wants where no more rounds are to be made.
  const tiny::Dim rest = at_least_one(c, where(did, zero, length_of_row), n);
  q.boxes = slice_axis(q.boxes, 1, 0, rest);
  q.scores = slice_axis(q.scores, 2, 0, rest);
  q.wanted = bit_and(slice_axis(q.wanted, 2, 0, rest), invert(did));
  q.most = where(did, zero, q.most);
  q.options.rounds = minimum(rounds, rest);
  return concat(Tensors{by_few, listed(c, taken_by(c, q), classes)}, 0);
}

Tensors import_non_max_suppression(Call& c) {
  Question q;
  q.boxes = c.in(0);
  q.scores = c.in(1);
  tiny::Dim n = size_of(q.scores, 2);
  q.options.is_centre = c.attr("center_point_box", 0) != 0;
  q.overlap = c.has(3) ? c.in(3) : number(c, 0);
  if (c.has(4)) q.wanted = less(reshape(c.in(4), {}), q.scores);
  // How many boxes there are the run may have to find: then there are as many as there can be, if
  // something bounds them.
  if (c.importer().is_computed(n) && !c.importer().is_open(n)) {
    const tiny::Dim present = n, boxes = size_of(q.boxes, 1);
    n = std::max<int64_t>({upper_bound(present), upper_bound(boxes), 1});
    q.boxes = contiguous(longer(q.boxes, 1, n - boxes));
    q.scores = contiguous(longer(q.scores, 2, n - present));
    const Tensor are_there =
        less(positions(c.context(), kInt64, n, 2, 3), size_tensor(c.context(), present));
    q.wanted = q.wanted ? bit_and(longer(q.wanted, 2, n - present), are_there)
                        : expand(are_there, q.scores.shape());
  }
  q.options.rounds = n;
  if (c.has(2) && c.known(2)) {
    const int64_t given = std::max<int64_t>(c.integer(2), 0);
    if (!n.is_const() || given < n.value()) q.options.rounds = given;
    q.most = c.constant(Ints{given});
  } else if (c.has(2)) {
    q.most = reshape(cast(c.in(2), kInt64), {});
  } else {
    q.options.rounds = 0;
  }
  if (q.options.rounds.is(0)) return {full(c.context(), kInt64, {0, 3}, 0)};
  q.most = reshape(minimum(q.most, size_tensor(c.context(), q.options.rounds)), {});
  c.check(decide_equal(size_of(q.boxes, 1), n), size_of(q.boxes, 1), " boxes have ", n, " scores");
  if (q.wanted && n.is_const() && upper_bound(product(q.scores.shape())) >= kListedMin)
    return {taken_of_few(c, std::move(q))};
  return {listed(c, taken_by(c, q), size_tensor(c.context(), size_of(q.scores, 1)))};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"NonMaxSuppression", 10, kNow, import_non_max_suppression},
};
// clang-format on

}  // namespace

std::span<const Row> suppression_rows() {
  return kRows;
}

}  // namespace tiny::onnx
