#include "aot/memory.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "base/sort.h"
#include "engine/plan.h"

namespace tiny::aot {
namespace {

int64_t rounded(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

const std::byte* address_of(const Storage& storage) {
  const std::byte* host = storage.memory().host();
  require(host != nullptr, Status::Unsupported,
          "the program's weights are in memory that the host does not see");
  return host + storage.byte_offset();
}

}  // namespace

CapturedMemory::Place CapturedMemory::find(const Storage& storage) const {
  const std::byte* address = address_of(storage);
  for (const Region& region : regions_)
    if (!std::less<>()(address, region.begin) && std::less<>()(address, region.end))
      return {region.place.is_state, region.place.offset + (address - region.begin)};
  throw_error(Status::Internal, "an output that a program writes is memory of the program");
}

CapturedMemory capture_memory(const Plan& plan) {
  CapturedMemory out;
  std::vector<CapturedMemory::Region> found;
  for (const Slot& slot : plan.slots) {
    if (slot.kind != SlotKind::Captured) continue;
    const std::byte* begin = address_of(*slot.storage);
    found.push_back({begin, begin + slot.bytes, {slot.is_written, 0}});
  }
  sort_stable(found, std::less<>(), &CapturedMemory::Region::begin);
  for (const CapturedMemory::Region& region : found) {
    const bool meets =
        !out.regions_.empty() && std::less<>()(region.begin, out.regions_.back().end);
    if (!meets) {
      out.regions_.push_back(region);
      continue;
    }
    CapturedMemory::Region& last = out.regions_.back();
    last.end = std::max(last.end, region.end, std::less<>());
    last.place.is_state |= region.place.is_state;
  }
  for (CapturedMemory::Region& region : out.regions_) {
    int64_t& bytes = region.place.is_state ? out.state_bytes : out.weight_bytes;
    region.place.offset = bytes;
    bytes = rounded(bytes + (region.end - region.begin));
  }
  out.content.resize(static_cast<size_t>(out.weight_bytes + out.state_bytes));
  for (const CapturedMemory::Region& region : out.regions_)
    std::memcpy(
        out.content.data() + region.place.offset + (region.place.is_state ? out.weight_bytes : 0),
        region.begin, static_cast<size_t>(region.end - region.begin));
  out.places.resize(plan.slots.size());
  for (size_t i = 0; i < plan.slots.size(); ++i)
    if (plan.slots[i].kind == SlotKind::Captured && plan.slots[i].bytes > 0)
      out.places[i] = out.find(*plan.slots[i].storage);
  return out;
}

std::vector<ArenaSlot> order_arena(const Plan& plan) {
  std::vector<uint32_t> slots;
  for (uint32_t i = 0; i < plan.slots.size(); ++i)
    if (plan.slots[i].kind == SlotKind::Arena) slots.push_back(i);
  sort_stable(slots, {}, [&](uint32_t slot) { return plan.slots[slot].arena_offset; });
  const auto together = [&](uint32_t a, uint32_t b) {
    return plan.slots[a].first <= plan.slots[b].last && plan.slots[b].first <= plan.slots[a].last;
  };
  std::vector<ArenaSlot> out;
  std::vector<size_t> place(plan.slots.size());  // by slot: in `out`
  for (size_t i = 0; i < slots.size(); ++i) {
    place[slots[i]] = i;
    ArenaSlot at{slots[i], {}};
    // The nearest first: what lies below one of them at the same time is below this one by it.
    for (size_t k = i; k-- > 0;) {
      if (!together(slots[k], at.slot)) continue;
      const bool is_implied = std::ranges::any_of(at.below, [&](uint32_t nearer) {
        return std::ranges::count(out[place[nearer]].below, slots[k]) > 0;
      });
      if (!is_implied) at.below.push_back(slots[k]);
    }
    out.push_back(std::move(at));
  }
  return out;
}

}  // namespace tiny::aot
