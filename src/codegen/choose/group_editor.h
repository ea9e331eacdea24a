// A list of options for groups of threads as a strategy makes it, and what strategies ask of a
// kernel's accesses.
//
// What does not fit the kernel is not added: strategies try, so that they suit any kernel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codegen/choose/choose.h"
#include "codegen/options/options.h"
#include "cost/access_table.h"
#include "cost/machine.h"

namespace tiny {

class GroupEditor {
 public:
  // The machine must outlive it.
  GroupEditor(const Kernel& kernel, const Machine& machine)
      : made_{{}, kernel, {}}, machine_(machine) {}

  const Kernel& now() const { return made_.kernel; }
  // All of these options, or none where one of them does not fit: whether they do.
  bool add(std::span<const Option> options);
  bool add(Option option) { return add({&option, 1}); }

  // The size of a range, 0 where the run decides it, or where it has become another.
  int64_t size(int64_t range) const;
  bool is_loop(int64_t range) const;

  // Of a loop, so many threads along an axis that have `lanes` each side by side; what is left of
  // it stays a loop.  Whether that fits.
  bool deal(int64_t range, uint8_t axis, int64_t threads, int64_t lanes);
  // The loops of `ranges` that all stores have become the launch, outermost.
  void launch(std::span<const int64_t> ranges);
  // The number of the innermost launched range, where stages of a group stand; -1: none.
  int64_t place() const;
  // A parameter's loads memoised in memory that the group shares, for a step of the range `place`,
  // the ranges in `layout` last and rows `padding` elements apart: the numbers of the ranges that
  // it is filled over; none where that does not fit.
  std::vector<int64_t> share(int64_t param, int64_t place, std::vector<int64_t> layout,
                             int64_t padding);

  OptimisedKernel take() { return std::move(made_); }

 private:
  OptimisedKernel made_;
  const Machine& machine_;
};

// The options' short forms.
Option tile_option(int64_t range, int64_t size);
Option kind_option(OptionKind what, int64_t range);
Option local_option(int64_t range, uint8_t axis);

// How many bytes lie side by side along each range, in all accesses: by position.
std::vector<double> bytes_beside(const AccessTable& table);
// As many lanes along a range as make the widest access of a thread, each at a multiple of its
// size; 1 where lanes would lie apart or be computed one by one.
int64_t lanes_beside(const Kernel& kernel, const AccessTable& table, size_t range,
                     const Machine& machine);
// The ranges that all stores have.
RangeSet stored_ranges(const AccessTable& table);
// Whether a group of the machine can run it, and a thread have what it keeps.
bool fits_group(const Kernel& kernel, const Target& target);

}  // namespace tiny
