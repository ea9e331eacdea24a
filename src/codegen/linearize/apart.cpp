// Lanes that lie apart by a size of the run, such as the channels of an output whose length is
// free: no instruction has a stride of that kind, and an index for each lane is wider than a
// register.  They go one by one between memory and scratch, where they lie side by side.
#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "codegen/linearize/lineariser.h"
#include "ir/build.h"
#include "rules/symbolic.h"

namespace tiny {

// The index of each lane; none if the lanes have a stride, or an index that is read from memory.
std::span<const UOp> Lineariser::places_apart(const UOp& flat) {
  const auto found = apart_.find(flat.node());
  if (found != apart_.end()) return found->second;
  std::vector<UOp>& places = apart_[flat.node()];
  kept_.push_back(flat);
  const RangeSet lanes = free_of(flat) & vec_;
  if (std::popcount(lanes) != 1 || !form_of(flat).vector_atom) return places;
  const auto is_read = [](const UOp& u) { return u.op() == Op::Load || u.op() == Op::Index; };
  if (std::ranges::any_of(topological({&flat, 1}), is_read)) return places;
  const UOp& range = kernel_.ranges[static_cast<size_t>(std::countr_zero(lanes))].range;
  for (int64_t l = 0; l < range.src(0).const_int(); ++l)
    places.push_back(simplify_index(substitute(flat, {{range, flat.graph().integer(l)}})));
  return places;
}

// The same where an index for each lane does not fit a register.
std::span<const UOp> Lineariser::places_of_wide(const UOp& flat, int64_t lanes) {
  if (lanes * kInt64.bytes() <= target_.vector_bytes) return {};
  return places_apart(flat);
}

// Scratch for as long as it takes to move a vector: nothing that lives there now is below the end.
LinearId Lineariser::passing_scratch(int64_t bytes, int64_t after) {
  const int64_t offset = program_.scratch_bytes + after;
  passing_end_ = std::max(passing_end_, offset + round_up(bytes, 64));
  return tree_.add(0, Op::Scratch, kAddress, {}, offset);
}

// Bools in scratch, one for each lane.
LinearId Lineariser::spread_mask(LinearId mask, int64_t lanes, int64_t after) {
  const LinearId zero = index_constant(0);
  const LinearId all = passing_scratch(lanes, after);
  tree_.add(tree_.depth(), Op::Store, kVoid, {all, zero, mask}, 0, 1);
  return all;
}

// Calls body(lane) for the lanes of a mask, if there is one.
void Lineariser::for_each_lane(const LinearId* mask, int64_t lanes,
                               const std::function<void(int64_t)>& body) {
  const LinearId zero = index_constant(0);
  for (int64_t l = 0; l < lanes; ++l) {
    if (mask)
      tree_.open(Op::If, kVoid, {tree_.add(tree_.depth(), Op::Load, kBool, {*mask, zero}, l)});
    body(l);
    if (mask) tree_.close();
  }
}

void Lineariser::store_apart(LinearId base, std::span<const UOp> places, LinearId value,
                             std::optional<LinearId> mask) {
  const DType element = tree_.op(value).dtype.element();
  const auto lanes = std::ssize(places);
  const int64_t bytes = element.bytes();
  const LinearId zero = index_constant(0);
  const LinearId all = passing_scratch(lanes * bytes, 0);
  tree_.add(tree_.depth(), Op::Store, kVoid, {all, zero, value}, 0, 1);
  if (mask) mask = spread_mask(*mask, lanes, round_up(lanes * bytes, 64));
  for_each_lane(mask ? &*mask : nullptr, lanes, [&](int64_t l) {
    const LinearId one = tree_.add(tree_.depth(), Op::Load, element, {all, zero}, l * bytes);
    const Place p = place(base, places[static_cast<size_t>(l)], bytes);
    tree_.add(tree_.depth(), Op::Store, kVoid, {p.address, p.index, one}, p.displacement);
  });
}

// Zero in lanes that are masked.
LinearId Lineariser::load_apart(LinearId base, std::span<const UOp> places, DType element,
                                std::optional<LinearId> mask) {
  const auto lanes = std::ssize(places);
  const int64_t bytes = element.bytes();
  const LinearId zero = index_constant(0);
  const LinearId all = passing_scratch(lanes * bytes, 0);
  if (mask) {
    const LinearId nothing = constant(element.with_lanes(lanes), 0);
    tree_.add(tree_.depth(), Op::Store, kVoid, {all, zero, nothing}, 0, 1);
    mask = spread_mask(*mask, lanes, round_up(lanes * bytes, 64));
  }
  for_each_lane(mask ? &*mask : nullptr, lanes, [&](int64_t l) {
    const Place p = place(base, places[static_cast<size_t>(l)], bytes);
    const LinearId one =
        tree_.add(tree_.depth(), Op::Load, element, {p.address, p.index}, p.displacement);
    tree_.add(tree_.depth(), Op::Store, kVoid, {all, zero, one}, l * bytes);
  });
  return tree_.add(tree_.depth(), Op::Load, element.with_lanes(lanes), {all, zero}, 0, 1);
}

}  // namespace tiny
