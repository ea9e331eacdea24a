#include "codegen/linearize/lanes_apart.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "ir/build.h"
#include "rules/symbolic.h"

namespace tiny {

std::span<const UOp> LanesApart::places_of(const UOp& flat) {
  const RangeSet lanes = nest_.free_of(flat) & nest_.lanes();  // which keeps the node
  const auto [found, is_new] = places_.try_emplace(flat.node());
  std::vector<UOp>& places = found->second;
  if (!is_new) return places;
  if (std::popcount(lanes) != 1 || !forms_.form_of(flat).vector_atom) return places;
  const auto is_read = [](const UOp& u) { return u.op() == Op::Load || u.op() == Op::Index; };
  if (std::ranges::any_of(topological({&flat, 1}), is_read)) return places;
  const auto position = static_cast<size_t>(std::countr_zero(lanes));
  const UOp& range = nest_.range(position);
  for (int64_t l = 0; l < nest_.extent(position); ++l)
    places.push_back(simplify_index(substitute(flat, {{range, flat.graph().integer(l)}})));
  return places;
}

std::span<const UOp> LanesApart::places_of_wide(const UOp& flat, int64_t lanes) {
  if (lanes * kInt64.bytes() <= target_.vector_bytes) return {};
  return places_of(flat);
}

// Scratch for as long as it takes to move a vector: nothing that lives there now is below the end.
LinearId LanesApart::passing_scratch(int64_t bytes, int64_t after) {
  const int64_t offset = program_.scratch_bytes + after;
  scratch_end_ = std::max(scratch_end_, offset + round_up(bytes, 64));
  return emit_.add(0, Op::Scratch, kAddress, {}, offset);
}

// Bools in scratch, one for each lane.
LinearId LanesApart::spread_mask(LinearId mask, int64_t lanes, int64_t after) {
  const LinearId zero = emit_.index_constant(0);
  const LinearId all = passing_scratch(lanes, after);
  emit_.add(emit_.depth(), Op::Store, kVoid, {all, zero, mask}, 0, 1);
  return all;
}

// Calls body(lane) for the lanes of a mask, if there is one.
void LanesApart::for_each_lane(const LinearId* mask, int64_t lanes,
                               const std::function<void(int64_t)>& body) {
  const LinearId zero = emit_.index_constant(0);
  for (int64_t l = 0; l < lanes; ++l) {
    if (mask)
      emit_.open(Op::If, kVoid, {emit_.add(emit_.depth(), Op::Load, kBool, {*mask, zero}, l)});
    body(l);
    if (mask) emit_.close();
  }
}

void LanesApart::store(LinearId base, std::span<const UOp> places, LinearId value,
                       std::optional<LinearId> mask) {
  const DType element = emit_.op(value).dtype.element();
  const auto lanes = std::ssize(places);
  const int64_t bytes = element.bytes();
  const LinearId zero = emit_.index_constant(0);
  const LinearId all = passing_scratch(lanes * bytes, 0);
  emit_.add(emit_.depth(), Op::Store, kVoid, {all, zero, value}, 0, 1);
  if (mask) mask = spread_mask(*mask, lanes, round_up(lanes * bytes, 64));
  for_each_lane(mask ? &*mask : nullptr, lanes, [&](int64_t l) {
    const LinearId one = emit_.add(emit_.depth(), Op::Load, element, {all, zero}, l * bytes);
    const Place p = addresses_.place(base, places[static_cast<size_t>(l)], bytes);
    emit_.add(emit_.depth(), Op::Store, kVoid, {p.address, p.index, one}, p.displacement);
  });
}

LinearId LanesApart::load(LinearId base, std::span<const UOp> places, DType element,
                          std::optional<LinearId> mask) {
  const auto lanes = std::ssize(places);
  const int64_t bytes = element.bytes();
  const LinearId zero = emit_.index_constant(0);
  const LinearId all = passing_scratch(lanes * bytes, 0);
  if (mask) {
    const LinearId nothing = emit_.constant(element.with_lanes(lanes), 0);
    emit_.add(emit_.depth(), Op::Store, kVoid, {all, zero, nothing}, 0, 1);
    mask = spread_mask(*mask, lanes, round_up(lanes * bytes, 64));
  }
  for_each_lane(mask ? &*mask : nullptr, lanes, [&](int64_t l) {
    const Place p = addresses_.place(base, places[static_cast<size_t>(l)], bytes);
    const LinearId one =
        emit_.add(emit_.depth(), Op::Load, element, {p.address, p.index}, p.displacement);
    emit_.add(emit_.depth(), Op::Store, kVoid, {all, zero, one}, l * bytes);
  });
  return emit_.add(emit_.depth(), Op::Load, element.with_lanes(lanes), {all, zero}, 0, 1);
}

}  // namespace tiny
