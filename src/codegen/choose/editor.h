// A list of options as a strategy makes it.
//
// Options are applied as they are chosen, so that later ones can name the ranges that earlier ones
// made.  Positions are of the kernel as it came; numbers name ranges for good.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "codegen/choose/choose.h"
#include "codegen/options/options.h"
#include "cost/access_table.h"
#include "cost/machine.h"

namespace tiny {

class Editor {
 public:
  // `table`: the kernel's.  The machine must outlive it.
  Editor(const Kernel& kernel, const Machine& machine, AccessTable table);

  // The kernel as it came, and how it walks memory.
  const Kernel& kernel() const { return kernel_; }
  const AccessTable& table() const { return table_; }
  // The kernel with what was chosen.
  const Kernel& now() const { return now_; }
  const Machine& machine() const { return machine_; }
  // Of a full vector of the kernel's widest elements; 1 where it has to be scalar.
  int64_t lanes() const { return lanes_; }

  // Of ranges of the kernel as it came.
  double extent(size_t range) const { return table_.extents[range]; }
  int64_t const_extent(size_t range) const;  // 0: symbolic
  // The size, a symbolic one at its greatest.
  int64_t most(size_t range) const { return static_cast<int64_t>(extent(range)); }
  int64_t number(size_t range) const { return kernel_.ranges[range].range.int_arg(); }

  // Of ranges as they are now, by number.
  bool has_range(int64_t number) const;
  bool is_loop(int64_t number) const;
  const KernelRange& range_now(int64_t number) const {
    return now_.ranges[now_.find_range(number)];
  }
  int64_t most_of(int64_t range) const;

  void apply(Option option);
  // The stage that the option makes; others that hold it are made anew too.
  UOp new_stage(Option option);
  // The same; null where the value had one already, over other ranges, that is read here now too.
  UOp find_new_stage(Option option);
  int64_t tile(int64_t range, int64_t size);  // the number of the inner range
  void kind(OptionKind what, int64_t range) { apply({what, range, 0, {}, 0, false}); }
  void vector_tile(size_t range, int64_t vectors, int64_t most = INT64_MAX);  // lanes
  void put_inside(int64_t range, int64_t loop);
  void put_first(int64_t range);

  // What was chosen so far makes the kernel that is looked at from here on: positions are of it.
  void restart();
  // From here on an access has these strides; `range` is no loop of its own and closes nothing.
  void forget_range(size_t range);
  void set_strides(size_t access, std::vector<int64_t> strides) {
    table_.accesses[access].strides = std::move(strides);
  }

  OptimisedKernel chosen() const { return {options_, now_, {}}; }
  OptimisedKernel take() { return {std::move(options_), std::move(now_), {}}; }

 private:
  Kernel kernel_;
  const Machine& machine_;
  AccessTable table_;
  Kernel now_;
  std::vector<Option> options_;
  int64_t lanes_ = 1;
};

}  // namespace tiny
