#include "ir/source_places.h"

namespace tiny {

SourcePlaces::SourcePlaces(std::span<const UOp> order, bool (*stop)(const UOp&)) {
  if (order.empty()) return;
  const auto sources_of = [&](const UOp& u) {
    return stop && stop(u) ? std::span<const UOp>() : u.src();
  };
  // Each node is marked by a walk of its own, whose number tells its place.
  size_t count = 0;
  for (const UOp& u : order) {
    u.node()->visit = u.graph().next_visit();
    count += sources_of(u).size();
  }
  first_ = order.front().node()->visit;
  all_.resize(count);
  auto next = all_.begin();
  for (const UOp& u : order)
    for (const UOp& s : sources_of(u)) *next++ = place(s);
}

}  // namespace tiny
