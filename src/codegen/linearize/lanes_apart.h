// Lanes that lie apart by a size of the run, such as the channels of an output whose length is
// free: no instruction has a stride of that kind, and an index for each lane is wider than a
// register.  They go one by one between memory and scratch, where they lie side by side.
//
// reads: forms of index expressions, and how wide the target's vectors are.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "codegen/linearize/addresses.h"
#include "ir/target.h"

namespace tiny {

class LanesApart {
 public:
  LanesApart(Emitter& emit, LoopNest& nest, IndexForms& forms, Addresses& addresses,
             const LinearProgram& program, const Target& target)
      : emit_(emit),
        nest_(nest),
        forms_(forms),
        addresses_(addresses),
        program_(program),
        target_(target) {}

  // The index of each lane; none if the lanes have a stride, or an index that is read from memory.
  std::span<const UOp> places_of(const UOp& flat);
  // The same where an index for each lane does not fit a register.
  std::span<const UOp> places_of_wide(const UOp& flat, int64_t lanes);

  void store(LinearId base, std::span<const UOp> places, LinearId value,
             std::optional<LinearId> mask);
  // Zero in lanes that are masked.
  LinearId load(LinearId base, std::span<const UOp> places, DType element,
                std::optional<LinearId> mask);

  int64_t scratch_end() const { return scratch_end_; }  // of what vectors pass through

 private:
  LinearId passing_scratch(int64_t bytes, int64_t after);
  LinearId spread_mask(LinearId mask, int64_t lanes, int64_t after);
  void for_each_lane(const LinearId* mask, int64_t lanes, const std::function<void(int64_t)>& body);

  Emitter& emit_;
  LoopNest& nest_;
  IndexForms& forms_;
  Addresses& addresses_;
  const LinearProgram& program_;
  const Target& target_;
  std::unordered_map<const Node*, std::vector<UOp>> places_;  // by flat index: of each lane
  int64_t scratch_end_ = 0;
};

}  // namespace tiny
