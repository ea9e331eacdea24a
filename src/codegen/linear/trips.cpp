#include "codegen/linear/trips.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tiny {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr int kDepthMost = 12;  // of an expression that is looked into

}  // namespace

TripBounds::Interval TripBounds::interval(LinearId id, int depth) const {
  constexpr Interval kAny{-kInfinite, kInfinite};
  const LinearOp& op = program_.ops[id];
  if (op.op == Op::Const) return {static_cast<double>(op.imm), static_cast<double>(op.imm)};
  if (op.op == Op::Variable) {
    const LinearVariable& v = program_.variables[static_cast<size_t>(op.imm)];
    return {static_cast<double>(v.min), static_cast<double>(v.max)};
  }
  if (op.op == Op::LaunchArg && op.imm < 2)
    return {0, threads_extent_ > 0 ? static_cast<double>(threads_extent_) : kInfinite};
  if (op.count != 2 || depth == kDepthMost) return kAny;
  const Interval a = interval(op.src[0], depth + 1), b = interval(op.src[1], depth + 1);
  switch (op.op) {
    case Op::Loop:
      return {a.low, b.high};
    case Op::Add:
      return {a.low + b.low, a.high + b.high};
    case Op::Sub:
      return {a.low - b.high, a.high - b.low};
    case Op::Min:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case Op::Max:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case Op::Mul:
      return a.low >= 0 && b.low >= 0 && std::isfinite(a.high) && std::isfinite(b.high)
                 ? Interval{a.low * b.low, a.high * b.high}
                 : kAny;
    case Op::FloorDiv:
      return a.low >= 0 && b.low >= 1 ? Interval{0, a.high / b.low} : kAny;
    default:
      return kAny;
  }
}

// end - begin at the most.
double TripBounds::distance(LinearId end, LinearId begin, int depth) const {
  if (end == begin) return 0;
  const Interval e = interval(end, 0), b = interval(begin, 0);
  double least = e.high - b.low;
  if (std::isnan(least)) least = kInfinite;
  if (depth == kDepthMost) return least;
  const LinearOp& to = program_.ops[end];
  const LinearOp& from = program_.ops[begin];
  const auto both = [&](const LinearOp& op, bool is_end) {
    const double x =
        is_end ? distance(op.src[0], begin, depth + 1) : distance(end, op.src[0], depth + 1);
    const double y =
        is_end ? distance(op.src[1], begin, depth + 1) : distance(end, op.src[1], depth + 1);
    const bool is_least = is_end == (op.op == Op::Min);
    least = std::min(least, is_least ? std::min(x, y) : std::max(x, y));
  };
  if (to.op == Op::Min || to.op == Op::Max) both(to, true);
  if (from.op == Op::Min || from.op == Op::Max) both(from, false);
  for (size_t i = 0; i < 2; ++i) {
    const auto constant = [&](const LinearOp& op) { return program_.ops[op.src[1 - i]].imm; };
    const auto is_sum = [&](const LinearOp& op) {
      return op.op == Op::Add && program_.ops[op.src[1 - i]].op == Op::Const;
    };
    if (is_sum(to))
      least = std::min(least,
                       distance(to.src[i], begin, depth + 1) + static_cast<double>(constant(to)));
    if (is_sum(from))
      least = std::min(least,
                       distance(end, from.src[i], depth + 1) - static_cast<double>(constant(from)));
  }
  return least;
}

double TripBounds::most(LinearId loop) const {
  const LinearOp& op = program_.ops[loop];
  const double length = distance(op.src[1], op.src[0], 0);
  return std::max(0.0, std::ceil(length / static_cast<double>(op.imm)));
}

bool TripBounds::is_exact(LinearId loop) const {
  const LinearOp& op = program_.ops[loop];
  return program_.ops[op.src[0]].op == Op::Const && program_.ops[op.src[1]].op == Op::Const;
}

}  // namespace tiny
