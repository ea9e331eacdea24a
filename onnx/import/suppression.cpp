// Boxes that overlap a better one too much, left out.
#include "tensor/suppression.h"

#include <limits>

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

  tiny::Dim classes() const { return scores.shape()[1]; }
  tiny::Dim rows() const { return scores.shape()[0] * classes(); }  // pairs of picture and class
  int64_t n() const { return scores.shape()[2].value(); }
};

// Rows of picture, class and box, of what was taken of each row [rounds, rows].
Tensor listed(Call& c, const Tensor& taken, const tiny::Dim& classes) {
  const Tensor by_row = flatten(permute(taken, {1, 0}));
  const Tensor places = counted_places(c, less_equal(number_int(c, 0), by_row));
  const Tensor row = floor_div(places, size_tensor(c.context(), taken.shape()[0]));
  const Tensor of = size_tensor(c.context(), classes);
  return stack(Tensors{floor_div(row, of), floor_mod(row, of), gather(by_row, places)}, 1);
}

Tensor taken_of_all(const Question& q) {
  return flatten(suppress_overlaps(q.boxes, q.scores, q.most, q.overlap, q.wanted, q.options), 1);
}

// Boxes of each row, the positions [rows, length] that are looked at: which of them are there.
struct Candidates {
  Tensor positions;
  Tensor are_there;
};

// A size that the run computes, or 1.
tiny::Dim at_least_one(Call& c, const Tensor& size, int64_t most) {
  const Tensor more = maximum(size - number_int(c, 1), number_int(c, 0));
  return c.importer().computed_size(more, most - 1, c.node()) + tiny::Dim(1);
}

// Of each row those that `places` tell, among rows of `per_row`; of as many as `counts` says.
Candidates lists_of_rows(Call& c, const Tensor& places, const Tensor& counts,
                         const tiny::Dim& length, int64_t per_row) {
  const Tensor number = positions(c.context(), kInt64, length, 1, 2);
  const Tensor are_there = less(number, unsqueeze(counts, {1}));
  const Tensor begin = unsqueeze(cumsum(counts, 0, true), {1});
  // There is one place to read where there are none.
  const Tensor place =
      gather(pad(places, {0}, {1}), where(are_there, begin + number, number_int(c, 0)));
  return {floor_mod(place, number_int(place, per_row)), are_there};
}

// Scores are looked at in groups: of those without a candidate nothing else is asked.
constexpr int64_t kGroup = 64;
// Fewer scores than these are all looked at in each round: it takes less than the launches that
// list candidates.
constexpr int64_t kListedMin = 4096;
// Where one score in so many is a candidate lists are longer to make than rounds over all take.
constexpr int64_t kSparse = 16;

// The places of what is wanted among rows of `per_row`, a multiple of the group's.
Tensor places_of_few(Call& c, const Tensor& wanted, const Tensor& has_any) {
  const Tensor groups = counted_places(c, flatten(has_any));
  const Tensor found = counted_places(
      c, flatten(gather(reshape(wanted, {wanted.shape()[0] * wanted.shape()[1], kGroup}), groups)));
  const Tensor size = number_int(found, kGroup);
  return gather(groups, floor_div(found, size)) * size + floor_mod(found, size);
}

// Of many candidates rounds look at the best first: so many for each that may be taken, if that are
// few of all.
constexpr int64_t kWindow = 2;
constexpr int64_t kWindowShare = 4;

int64_t window_of(const Question& q) {
  const tiny::Dim& rounds = q.options.rounds;
  const bool is_few = rounds.is_const() && rounds.value() * kWindow * kWindowShare <= q.n();
  return is_few ? rounds.value() * kWindow : 0;
}

// Rounds look at few boxes of each row: at the candidates, where these are few, or at the best; and
// at all if these did not do.
Tensor taken_of_few(Call& c, const Question& q) {
  const int64_t n = q.n(), groups = ceil_div(n, kGroup), per_row = groups * kGroup;
  const int64_t window = window_of(q);
  const tiny::Dim rows = q.rows();
  const Tensor zero = number_int(c, 0);
  const Tensor scores = reshape(q.scores, {rows, n}), are_wanted = reshape(q.wanted, {rows, n});
  const Tensor wanted = reshape(pad(are_wanted, {0, 0}, {0, per_row - n}), {rows, groups, kGroup});
  const Tensor of_groups = contiguous(sum(cast(wanted, kInt32), {2}));
  const Tensor counts = cast(sum(of_groups, {1}), kInt64);
  const Tensor few = contiguous(less(sum(counts, {0}) * number_int(c, kSparse),
                                     size_tensor(c.context(), rows * tiny::Dim(n))));
  const Tensor places =
      places_of_few(c, wanted, bit_and(few, greater(of_groups, number_int(of_groups, 0))));
  const tiny::Dim length =
      at_least_one(c, where(few, max(counts, {0}), number_int(c, window)), per_row);
  Candidates looked_at = lists_of_rows(c, places, where(few, counts, zero), length, per_row);
  if (window > 0) {
    const Tensor lowest = number(scores, -std::numeric_limits<double>::infinity());
    const Tensor best = top_k(where(are_wanted, scores, lowest), window, 1, true).indices;
    const Tensor none = full(c.context(), kInt64, best.shape(), 0);
    const Tensor chosen =
        pad(choose(few, {none}, {best}, c.importer().guard())[0], {0, 0}, {0, per_row - window});
    const Tensor box = where(few, looked_at.positions, shrink(chosen, {0, 0}, {rows, length}));
    looked_at = {box, where(few, looked_at.are_there, take_along_axis(are_wanted, box, 1))};
  }
  const Tensor picture =
      floor_div(positions(c.context(), kInt64, rows, 0, 2), size_tensor(c.context(), q.classes()));
  Question first = q;
  first.boxes = gather(reshape(q.boxes, {q.boxes.shape()[0] * tiny::Dim(n), 4}),
                       picture * number_int(c, n) + looked_at.positions);
  first.scores = unsqueeze(take_along_axis(scores, looked_at.positions, 1), {1});
  first.wanted = unsqueeze(looked_at.are_there, {1});
  first.options.rounds = minimum(q.options.rounds, length);
  const Tensor number = permute(taken_of_all(first), {1, 0});
  Tensor is_there = less_equal(zero, number);
  Tensor did = few;
  if (window > 0) {
    const Tensor taken = sum(cast(is_there, kInt64), {1});
    const Tensor is_all = bit_or(equal(taken, q.most), less_equal(counts, number_int(c, window)));
    did = contiguous(bit_or(few, all(is_all, {0})));
    is_there = bit_and(is_there, did);
  }
  const Tensor box = take_along_axis(looked_at.positions, where(is_there, number, zero), 1);
  const Tensor taken = where(is_there, box, number_int(c, -1));
  // One box that nobody wants where no more rounds are to be made.
  const tiny::Dim rest_n = at_least_one(c, where(did, zero, number_int(c, n)), n);
  Question rest = q;
  rest.boxes = slice_axis(q.boxes, 1, 0, rest_n);
  rest.scores = slice_axis(q.scores, 2, 0, rest_n);
  rest.wanted = bit_and(slice_axis(q.wanted, 2, 0, rest_n), invert(did));
  rest.most = where(did, zero, q.most);
  rest.options.rounds = minimum(q.options.rounds, rest_n);
  const Tensors both{listed(c, permute(taken, {1, 0}), q.classes()),
                     listed(c, taken_of_all(rest), q.classes())};
  return concat(both, 0);
}

Tensors import_non_max_suppression(Call& c) {
  Question q;
  q.boxes = c.in(0);
  q.scores = c.in(1);
  tiny::Dim n = size_of(q.scores, 2);
  q.options.is_centre = c.attr("center_point_box", 0) != 0;
  q.overlap = c.has(3) ? c.in(3) : number(c, 0);
  if (c.has(4)) q.wanted = less(reshape(c.in(4), {}), q.scores);
  // How many boxes there are the run may have to find: then there are as many as there can be.
  if (c.importer().is_computed(n)) {
    const tiny::Dim present = n, boxes = size_of(q.boxes, 1);
    n = std::max<int64_t>({upper_bound(present), upper_bound(boxes), 1});
    q.boxes = contiguous(pad(q.boxes, {0, 0, 0}, {0, n - boxes, 0}));
    q.scores = contiguous(pad(q.scores, {0, 0, 0}, {0, 0, n - present}));
    const Tensor are_there =
        less(positions(c.context(), kInt64, n, 2, 3), size_tensor(c.context(), present));
    q.wanted = q.wanted ? bit_and(pad(q.wanted, {0, 0, 0}, {0, 0, n - present}), are_there)
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
  const tiny::Dim all = q.rows() * n;
  if (q.wanted && n.is_const() && upper_bound(all) >= kListedMin) return {taken_of_few(c, q)};
  return {listed(c, taken_of_all(q), q.classes())};
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
