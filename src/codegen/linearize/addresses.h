// Index expressions as operands of loads and stores: an address, an index and a displacement; or,
// where an index is a value of its own, the lanes of it.
//
// reads: forms of index expressions and their values.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "codegen/linearize/prover.h"
#include "codegen/linearize/values.h"

namespace tiny {

// The operands of a load or store.
struct Place {
  LinearId address = 0;
  LinearId index = 0;
  int64_t displacement = 0;  // bytes
  int32_t lane_stride = 0;   // elements; 0: the index has lanes
};

class Addresses {
 public:
  Addresses(Emitter& emit, LoopNest& nest, IndexForms& forms, Prover& prover, Values& values)
      : emit_(emit), nest_(nest), forms_(forms), prover_(prover), values_(values) {}

  // base + flat elements.
  Place place(LinearId base, const UOp& flat, int64_t element_bytes);
  // The same, or near the base where `holds` (a bool of one lane) is not so.
  Place place_where(LinearId holds, LinearId base, const UOp& flat, int64_t element_bytes);
  // Whether a Load asks for much that lies before or behind all that it may read.
  bool is_far_outside(const UOp& load);
  // place() of the word whose steps the range at `position` counts; none if they do not lie side
  // by side, or lanes are no whole words apart.
  std::optional<Place> word_place(LinearId base, const UOp& flat, size_t position, int64_t bytes);
  // The outermost block in which all of a place is visible.
  size_t depth_of(const Place& p) const;

  // An index of all lanes, as a vector.
  LinearId lanes_of_index(const UOp& expression, int64_t lanes);
  // A number made from an index: lanes become a ramp, of 32 bits where the values fit.
  LinearId cast_index(const UOp& cast);

 private:
  Emitter& emit_;
  LoopNest& nest_;
  IndexForms& forms_;
  Prover& prover_;
  Values& values_;
  std::unordered_map<const Node*, bool> are_far_outside_;
};

}  // namespace tiny
