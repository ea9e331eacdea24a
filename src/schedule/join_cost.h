// What joining two kernels saves and costs: seconds at the target's speeds, by what they are spent
// on, and the weights that were fitted to joins that ran both ways.
//
// The weights are of two cores: a value that is stored is written by one and read by another, and
// windows are shared by them.  A graph has the same kernels on one, but for operands.
// `bench/run joins --fit` measures joins of real models, fits the weights anew and prints them
// beside these; docs/benchmarks/notes.md has the measurements.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tiny {

enum class JoinPart : uint8_t {
  Launch,      // saved: of a kernel
  Traffic,     // saved: storing and reading the value, where the joined kernel has no product
  Hidden,      // saved: the same beside a product, whose arithmetic takes longer than reading
  Recomputed,  // paid: arithmetic that the kernels apart do not have
  Kept,        // saved: arithmetic on rows that are wanted again and stay in scratch
  Operand,     // paid: an operand that each worker computes for itself
  Convolved,   // paid: windows that are filtered into scratch, for a tile of rows at a time
  Pooled,      // paid: the same of windows without a filter
  Panels,      // paid: a matrix that is read again for each tile of rows
};
inline constexpr size_t kJoinParts = 9;

struct JoinCost {
  std::array<double, kJoinParts> seconds{};
  bool makes_operand = false;  // the joined kernel, for itself
  bool in_tiles = false;       // of rows that a cache holds: the joined kernel's loops
  // The estimates of whole kernels decide, not parts: of what groups of threads compute.
  bool is_as_chosen = false;

  double& operator[](JoinPart part) { return seconds[static_cast<size_t>(part)]; }
  double operator[](JoinPart part) const { return seconds[static_cast<size_t>(part)]; }
  // Weighed.
  double saved() const;
  double paid() const;
};

std::string_view name_of(JoinPart part);

}  // namespace tiny
