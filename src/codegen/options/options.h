// Optimisations as data: each edits ranges, their order and kinds, or places a Stage; none names an
// operator, and none can make a kernel wrong, only slow.
//
//   TILE r T     r := r*T + n: r becomes the outer range, n is a new range of size T after it;
//                what T does not divide is a fact of the kernel (the last tile is cut short)
//   VEC r        lanes; r has a constant size that is a power of two: the kernel's lane count
//   UPCAST r     registers: repeated, one accumulator each
//   UNROLL r     repeated, the same accumulator
//   THREAD r     workers, or groups of threads; r is the outermost loop, or follows others that are
//                THREAD, and belongs to every store
//   LOCAL r A    the threads of a group along its axis A, 0 to 2; ranges of one axis have one
//                constant size, and no value depends on two of them.  Of a range that is reduced:
//                each thread has a part of the sum, and the group folds these
//   ORDER r..    these ranges, outer to inner, in the places that they have now
//   STAGE p r [a..] [pad N] [shared] [swizzle B]
//                the load of parameter p, or the value v by its number, is memoised in scratch over
//                the ranges inside r (all: over all), laid out in the order a..; N more elements a
//                row.  Swizzle: pieces of 16 bytes change places (rules/symbolic.h), by B bits of
//                the number of their line of 128 bytes.  Shared: by a group, also over its threads,
//                wherever LOCAL ranges stand; the ranges that it is filled over are new and may be
//                LOCAL again
//   DOT r        a word: the steps of r, as many as one holds, are multiplied and added by one
//                instruction; r is closed by sums of products of narrow values alone (ir/dot.h)
//   PREFETCH p r while the loop r runs, what it reads of parameter p after this block, or stores in
//                this step, is fetched, a few lines in each step of the loops inside; where each
//                step of r reads another block, that of the next step
//   OVERLAP r    the loops that a step of r walks one after the other run as one, each for another
//                step, where no value depends on that (codegen/linear/overlap.h)
//   STREAM r T   the reduction over r and those like it that depend on each other run along one
//                loop over blocks of T, with corrections (codegen/options/stream.h); before other
//                options of their ranges.  The loop has the first new number, the parts in blocks
//                the next
//   TC r r r ROW a row of the matrix table (base/matrix.h): rows, columns and steps, ranges of its
//                sizes, become the product of matrices that a warp's threads form together
//                (codegen/options/group_matrix.h); the first new range is the columns of the second
//                factor, then threads of rows, lanes of columns, threads and words of steps
//   PIPELINE r N what a group shares for each step of the loop r has N rooms, and is copied N - 1
//                steps ahead (codegen/linear/group_pipeline.h)
//   BYPASS p     what is stored to parameter p, which the kernel does not read, may pass the caches
//
// A list is text too: "TILE r0 14; VEC r3".  New ranges are numbered from the kernel's highest, in
// the order in which the options make them, so that text replays exactly.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel.h"

namespace tiny {

enum class OptionKind : uint8_t {
  Tile,
  Vec,
  Upcast,
  Unroll,
  Thread,
  Order,
  Stage,
  Prefetch,
  Bypass,
  Dot,
  Overlap,
  Stream,
  Local,
  Matrix,
  Pipeline
};

struct Option {
  OptionKind kind = OptionKind::Tile;
  int64_t range = -1;  // its number; STAGE: -1 is "over all"
  // TILE, STREAM: T; LOCAL: A; PIPELINE: N; STAGE, PREFETCH, BYPASS: the parameter or value's
  // number; TC: the row's.
  int64_t amount = 0;
  std::vector<int64_t> list;  // ORDER, TC: ranges; STAGE: the layout, outermost first
  int64_t padding = 0;     // STAGE: elements added to the stride of the outermost dimension but one
  bool by_number = false;  // STAGE: `amount` counts the kernel's nodes, sources first
  bool is_shared = false;  // STAGE
  int64_t swizzle = 0;     // STAGE: bits of a piece's number that change by its line's
  bool operator==(const Option&) const = default;
};

std::string to_text(std::span<const Option> options);
// Error{InvalidArgument} that names the option and what was expected.
std::vector<Option> parse_options(std::string_view text);

// The kernel after one option, or after all; Error{InvalidArgument} if an option does not fit it.
Kernel apply_option(const Kernel& kernel, const Option& option);
Kernel apply_options(const Kernel& kernel, std::span<const Option> options);

}  // namespace tiny
