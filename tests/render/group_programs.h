// Programs of groups that every renderer for groups is tried with.
#pragma once

#include <cstdint>
#include <vector>

#include "base/text.h"
#include "ir/linear.h"

namespace tiny::testing {

inline constexpr int64_t kReversalThreads = 64;

// The threads of a group hand each other their values, through what the group shares: those of each
// 64 turned round.  Without the barrier none waits.
inline LinearProgram reversal(bool has_barrier = true) {
  LinearProgram p;
  p.name = "reversal";
  p.params = {{kInt32, true, false}, {kInt32, false, true}};
  p.threaded = p.grouped = true;
  p.group = {kReversalThreads, 1, 1};
  p.shared_bytes = kReversalThreads * kInt32.bytes();
  const LinearId in = p.add(Op::Param, kAddress, {}, 0), out = p.add(Op::Param, kAddress, {}, 1);
  const LinearId shared = p.add(Op::Shared, kAddress, {}, 0);
  const LinearId group = p.add(Op::LaunchArg, kInt64, {}, 0);
  const LinearId thread = p.add(Op::LaunchArg, kInt64, {}, 3);
  const LinearId size = p.add(Op::Const, kInt64, {}, kReversalThreads);
  const LinearId first = p.add(Op::Mul, kInt64, {group, size});
  const LinearId at = p.add(Op::Add, kInt64, {first, thread});
  p.add(Op::Store, kVoid, {shared, thread, p.add(Op::Load, kInt32, {in, at})});
  if (has_barrier) p.add(Op::Barrier, kVoid);
  const LinearId last = p.add(Op::Const, kInt64, {}, kReversalThreads - 1);
  const LinearId other = p.add(Op::Sub, kInt64, {last, thread});
  p.add(Op::Store, kVoid, {out, at, p.add(Op::Load, kInt32, {shared, other})});
  verify(p);
  return p;
}
inline bool is_reversed(const std::vector<int32_t>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    constexpr size_t kThreads = kReversalThreads;
    if (values[i] != static_cast<int32_t>(i / kThreads * kThreads + kThreads - 1 - i % kThreads))
      return false;
  }
  return true;
}

// Values whose sums depend on the order, one for each of the fold's threads.
inline std::vector<float> fold_values() {
  std::vector<float> values(64);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 1.0F / static_cast<float>(i * i % 37 + 1) * (i % 3 == 0 ? -1e3F : 1);
  return values;
}
// Their sums over some axes (a bit each) of a group of 4 x 2 x 8.
inline LinearProgram fold(int64_t axes) {
  LinearProgram p;
  p.name = cat("fold", axes);
  p.params = {{kFloat32, true, false}, {kFloat32, false, true}};
  p.threaded = p.grouped = true;
  p.group = {4, 2, 8};
  const LinearId in = p.add(Op::Param, kAddress, {}, 0), out = p.add(Op::Param, kAddress, {}, 1);
  LinearId at = p.add(Op::LaunchArg, kInt64, {}, 5);
  for (const int64_t axis : {1, 0}) {
    const LinearId size = p.add(Op::Const, kInt64, {}, p.group[static_cast<size_t>(axis)]);
    at = p.add(Op::Add, kInt64,
               {p.add(Op::Mul, kInt64, {at, size}), p.add(Op::LaunchArg, kInt64, {}, 3 + axis)});
  }
  const LinearId x = p.add(Op::Load, kFloat32, {in, at});
  const LinearId sum = p.add(Op::GroupFold, kFloat32, {x}, axes, static_cast<int32_t>(Op::Add));
  p.add(Op::Store, kVoid, {out, at, sum});
  verify(p);
  return p;
}

}  // namespace tiny::testing
