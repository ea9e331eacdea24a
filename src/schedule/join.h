// Joins of kernels: values that need no buffer between a kernel and its only reader.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/stop.h"
#include "cost/machine.h"
#include "ir/uop.h"
#include "schedule/computed_variable.h"
#include "schedule/join_cost.h"

namespace tiny {

struct Decision;
class LowerOnce;

// Ranges of a kernel that is made of several, at most.
inline constexpr size_t kJoinedRangesMax = 24;

// A join that was looked at.
struct JoinTrial {
  int64_t number = 0;  // of the stored value, the largest first; then joins side by side
  UOp value;
  JoinCost cost;
  bool joined = false;
};

struct JoinSettings {
  std::vector<int64_t> flipped;              // numbers of joins that are decided against their cost
  std::vector<JoinTrial>* trials = nullptr;  // gets the legal ones, as they were decided last
  const StopSignal* stop = nullptr;          // null: never
  std::span<const ComputedVariable> computed = {};
};

struct Joins {
  int64_t count = 0;           // numbers that joins have
  std::vector<uint8_t> inner;  // by node id: a value that need not be stored if nobody reads it
  std::vector<uint8_t> apart;  // of those, stored though only one kernel reads it
};

// "3,17" as numbers; Error{InvalidArgument} for anything else.
std::vector<int64_t> parse_joins(std::string_view text);

// Takes the buffer away from every stored value whose only reader can compute it in its own loops:
// largest first, until nothing changes.  Kernels are tried through `lowered`.  A joined kernel has
// its reductions in its outer loops, keeps enough of their iterations, evaluates no contraction
// beside another reduction, and stays within the machine's bounds.
Joins join_kernels(Decision& decision, LowerOnce& lowered, std::span<const UOp> outputs,
                   const Machine& machine, const JoinSettings& settings);

// Tells of a legal join, and whether it is made.
bool decide_join(JoinTrial trial, const JoinSettings& settings);

}  // namespace tiny
