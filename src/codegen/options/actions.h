// What a search may try on a kernel: steps from its present state, and lists that differ in one
// place from one that is known.
//
// Both are made from strides and extents alone; no operator is named.  A step is one option, or the
// few that mean something only together (a tile and the kind of its inner range).  apply_option
// does what a step asks or refuses it with InvalidArgument; what it leaves may still be more than a
// target should be asked for: that is what fits_target is for.
#pragma once

#include <span>
#include <vector>

#include "codegen/options/options.h"
#include "cost/machine.h"
#include "ir/kernel.h"

namespace tiny {

// Options that are applied together.
using Action = std::vector<Option>;

// Tiles with lanes, registers, repeated steps or words, blocks that move outermost, orders, stages
// of what is read again, reductions along blocks, fetches ahead, stores past the caches, threads:
// every kind that the cost model has.
std::vector<Action> possible_actions(const Kernel& kernel, const Machine& target);

// `list`, which fits the kernel, with one change each: another tile size, two ranges of an order
// swapped, a stage or a fetch moved by a loop, a stage padded, one left out, a kind left out.
std::vector<std::vector<Option>> changed_lists(const Kernel& kernel, std::span<const Option> list);

// Whether linearising the kernel is worth a try: its lanes are those of the target and of one range
// a value, its repeated code is short, and what it stages fits the second-level cache.
bool fits_target(const Kernel& kernel, const Target& target);

}  // namespace tiny
