// The loops around what is being written: which ranges are open, which have a coordinate, and the
// key by which an instance of a node is known there.
//
// reads: the kernel's ranges, and which of them each node depends on.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "codegen/linearize/instance_table.h"
#include "ir/kernel.h"
#include "ir/linear.h"

namespace tiny {

// Where a range stands at the moment.
struct RangeState {
  enum Kind : uint8_t { Closed, Open, Fixed, Lane } kind = Closed;
  LinearId loop = 0;   // Open: the loop's variable
  size_t depth = 0;    // Open: of the block that the variable belongs to
  LinearId end = 0;    // Open, Fixed: where the loop ends
  int64_t value = 0;   // Fixed: its coordinate
  uint64_t digit = 0;  // Fixed: the same in an instance's coordinates
  int64_t limit = 0;   // how many of its steps the present tile has; 0: all
};

class LoopNest {
 public:
  explicit LoopNest(const Kernel& kernel);

  const Kernel& kernel() const { return kernel_; }
  size_t size() const { return states_.size(); }
  const KernelRange& at(size_t position) const { return kernel_.ranges[position]; }
  const UOp& range(size_t position) const { return kernel_.ranges[position].range; }
  int64_t extent(size_t position) const { return range(position).src(0).const_int(); }
  const RangeState& state(size_t position) const { return states_[position]; }

  // Positions by kind.
  RangeSet loops() const { return kinds_.loops; }
  RangeSet unrolled() const { return kinds_.unrolled; }  // Upcast and Unroll
  RangeSet upcast() const { return kinds_.upcast; }
  RangeSet lanes() const { return kinds_.lanes; }
  RangeSet words() const { return kinds_.words; }      // the steps of words
  RangeSet filling() const { return kinds_.filling; }  // loops that fill a stage
  RangeSet local() const { return kinds_.local; }      // threads of a group: among loops()
  bool is_grouped() const { return is_grouped_; }
  // Positions by state.
  RangeSet open() const { return open_; }    // loops that are open, or fixed by peeling
  RangeSet fixed() const { return fixed_; }  // what has a coordinate
  // The unrolled ranges, lanes and steps among `free` that have no coordinate yet.
  RangeSet pending_in(RangeSet free) const {
    return free & (kinds_.unrolled | kinds_.lanes | kinds_.words) & ~fixed_;
  }
  // Another number for every other nest of loops.
  uint64_t version() const { return version_; }

  // A loop begins whose variable, a value of the block at `depth`, is the range.
  void open_loop(size_t position, LinearId variable, size_t depth);
  // One iteration of it with this coordinate.
  void open_iteration(size_t position, int64_t value);
  // The loop, or the iteration, ends.
  void close(size_t position);
  void set_end(size_t position, LinearId end) { states_[position].end = end; }
  void set_limit(RangeSet positions, int64_t steps);

  // Gives a range a coordinate, and takes it back.
  void fix(size_t position, int64_t value);
  void release(size_t position);

  RangeSet free_of(const UOp& node);
  int64_t lanes_in(RangeSet set) const;
  int64_t lanes_of(const UOp& node) { return lanes_in(free_of(node)); }
  InstanceKey key_of(const UOp& node);
  // The same by these coordinates alone.
  InstanceKey key_at(const Node* node, RangeSet coordinates, uint64_t use) const;

  // The unrolled ranges without coordinates that a node closing `own` has instances for.
  RangeSet instances_of(const UOp& node, RangeSet own);
  // Calls body(instance) for every coordinate of the ranges, the last of them fastest; those beyond
  // a tile's last step are left out.
  void for_each_instance(RangeSet ranges, const std::function<void(size_t)>& body);

 private:
  uint64_t digit_of(size_t position, int64_t value) const;

  struct Digit {
    size_t word = 0;
    uint64_t radix = 1;
  };
  const Kernel& kernel_;
  std::vector<Digit> digits_;  // of an instance's coordinates, by position
  std::vector<RangeState> states_;
  FreeRanges free_;
  std::vector<UOp> kept_;  // what `free_` points to stays alive
  // Positions by what becomes of them.
  struct {
    RangeSet loops = 0, unrolled = 0, upcast = 0, lanes = 0, words = 0, filling = 0, local = 0;
  } kinds_;
  bool is_grouped_ = false;
  RangeSet open_ = 0;
  RangeSet fixed_ = 0;
  uint64_t version_ = 1;
};

}  // namespace tiny
