// Where the values of a program lie in the memory that a caller of its C gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/program.h"

namespace tiny::aot {

// Of every value, in bytes.
inline constexpr int64_t kAlignment = ArenaLayout().alignment;

// Captured memory: constants in the weights, what the program writes in the state.  Slots that
// share memory share it here too.
struct CapturedMemory {
  struct Place {
    bool is_state = false;
    int64_t offset = 0;
  };
  std::vector<Place> places;  // by slot; of captured ones
  int64_t weight_bytes = 0;
  int64_t state_bytes = 0;
  std::vector<std::byte> content;  // of the weights, then of the state

  // Where memory of the program lies; it must be part of a slot's.
  Place find(const Storage& storage) const;

 private:
  friend CapturedMemory capture_memory(const Plan& plan);
  struct Region {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    Place place;
  };
  std::vector<Region> regions_;  // by address
};
CapturedMemory capture_memory(const Plan& plan);

// Values between kernels.  `offset` is what has to come before: of a slot the end of each of
// `below`, rounded up.
struct ArenaSlot {
  uint32_t slot = 0;
  std::vector<uint32_t> below;  // slots; empty: it lies where the arena begins
};
// In an order in which those below come first.
std::vector<ArenaSlot> order_arena(const Plan& plan);

}  // namespace tiny::aot
