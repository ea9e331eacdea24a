// The loads and stores of a kernel that is being lowered: its parameters, what it reads, and which
// reads are of the very element that is stored.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "ir/uop.h"
#include "rules/symbolic.h"
#include "schedule/decide.h"
#include "schedule/schedule.h"
#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

class Accesses {
 public:
  // All must outlive it; `kernel` gets parameters, reads, stores and their roots.
  Accesses(const Decision& decision, ScheduledKernel& kernel, IndexSimplifier& simplify)
      : decision_(decision), out_(kernel), simplify_(simplify) {}

  // An element of a stored value, for the value `reader`, which may have a copy of a part of it.
  UOp load(const StoredView& stored, const std::vector<UOp>& index, DType dtype, const UOp& reader);

  // What the kernel does not read, but waits for.
  void wait_for(std::span<const UOp> values);

  void store(const ScheduledStore& store, const UOp& value, const std::vector<UOp>& index);

  // The same into places that data gives: what is there already, the elements of `before`, stays,
  // and is folded with the value (Op::Assign: replaced).
  void update(const ScheduledStore& store, const UOp& before, Op fold, const UOp& value,
              const std::vector<UOp>& index);

  // Finds the reads of the memory that is written which have the store's own address.  Of several
  // stores, all values are made before the first is stored if `no_loops` are in between.
  void compare_addresses(bool no_loops);

 private:
  UOp param(const UOp& base, DType dtype, bool written);
  UOp address(const UOp& access, size_t first);

  const Decision& decision_;
  ScheduledKernel& out_;
  IndexSimplifier& simplify_;
};

// Whether 0 <= index < size is known.
bool is_in_range(const UOp& index, const Dim& size);

}  // namespace tiny
