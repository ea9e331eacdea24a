#include "render/index_width.h"

#include <algorithm>
#include <array>

#include "ir/dtype.h"

namespace tiny {

namespace {

constexpr Interval kWord{INT32_MIN, INT32_MAX};

// Of int64 arithmetic an end that is out of reach may have wrapped to anything.
Interval without_wraps(const Interval& exact) {
  return exact.lo == INT64_MIN || exact.hi == INT64_MAX ? Interval{} : exact;
}

bool may_wrap(Op op) {
  return op == Op::Add || op == Op::Sub || op == Op::Mul || op == Op::Neg || op == Op::Abs ||
         op == Op::Shl || op == Op::TruncDiv || op == Op::FloorDiv;
}

// What lies on the way from one multiple of `step` to another: 0 and (lanes - 1) * step.
Interval lanes_apart(int64_t lanes, int64_t step) {
  const Interval last = bounds_of_result(
      Op::Mul, kInt64, kInt64, std::array<Interval, 2>{{{lanes - 1, lanes - 1}, {step, step}}});
  return {std::min<int64_t>(last.lo, 0), std::max<int64_t>(last.hi, 0)};
}

class Analysis {
 public:
  Analysis(const LinearProgram& program, std::vector<Interval>& known)
      : program_(program), known_(known) {}

  Interval of(const LinearOp& op) const {
    switch (op.op) {
      case Op::Const:
        return constant(op);
      case Op::Variable: {
        const LinearVariable& v = program_.variables[static_cast<size_t>(op.imm)];
        return {v.min, v.max};
      }
      case Op::LaunchArg:
        return launched(op.imm);
      case Op::Loop:
        // Where it is never entered, nobody sees it.
        return {at(op, 0).lo, std::max(at(op, 0).lo, below(at(op, 1).hi))};
      case Op::Broadcast:
        return at(op, 0);
      case Op::Ramp:
        return sum(op.dtype, at(op, 0), lanes_apart(op.dtype.lanes, op.imm));
      case Op::Fold:
      case Op::GroupFold: {
        const Op how = static_cast<Op>(op.aux);
        return how == Op::Max || how == Op::Min ? at(op, 0) : whole(op.dtype);
      }
      default:
        return has(op.op, kElementwise) ? elementwise(op) : whole(op.dtype);
    }
  }

  // From the address of a Load, Store or Prefetch, to the last byte.
  Interval offset(const LinearOp& op) const {
    const bool prefetches = op.op == Op::Prefetch;
    const DType element = op.op == Op::Store ? program_.ops[op.src[2]].dtype
                          : prefetches       ? kInt8
                                             : op.dtype;
    const int64_t unit = prefetches ? op.aux : element.element().bytes();
    const bool is_run = !prefetches && program_.ops[op.src[1]].dtype.lanes == 1;
    const Interval apart = is_run ? lanes_apart(element.lanes, op.aux) : Interval{0, 0};
    const Interval index = sum(kInt64, at(op, 1), apart);
    const Interval bytes = bounds_of_result(Op::Mul, kInt64, kInt64,
                                            std::array<Interval, 2>{index, Interval{unit, unit}});
    return sum(kInt64, without_wraps(bytes), {op.imm, op.imm});
  }

 private:
  const Interval& at(const LinearOp& op, size_t i) const { return known_[op.src[i]]; }
  static int64_t below(int64_t end) { return end == INT64_MAX || end == INT64_MIN ? end : end - 1; }

  // All that the dtype holds.
  static Interval whole(DType dtype) { return bounds_of_result(Op::Load, dtype, dtype, {}); }
  static Interval sum(DType dtype, const Interval& a, const Interval& b) {
    const Interval exact = bounds_of_result(Op::Add, dtype, dtype, std::array<Interval, 2>{a, b});
    return dtype.scalar == ScalarType::Int64 ? without_wraps(exact) : exact;
  }

  static Interval constant(const LinearOp& op) {
    const DType element = op.dtype.element();
    if (!element.is_int() && !element.is_bool()) return {};
    const int64_t v = int_of(element, static_cast<uint64_t>(op.imm));
    if (element.scalar == ScalarType::UInt64 && v < 0) return {INT64_MAX, INT64_MAX};
    return {v, v};
  }

  Interval launched(int64_t argument) const {
    if (argument == 0) return {0, std::max<int64_t>(below(program_.launch_max), 0)};
    if (argument == 1) return {0, program_.launch_max};
    if (argument == 2) return {0, INT32_MAX};  // a worker's number is an int
    return {0, program_.group[static_cast<size_t>(argument - 3)] - 1};
  }

  Interval elementwise(const LinearOp& op) const {
    std::array<Interval, 3> operands;
    for (size_t i = 0; i < std::min<size_t>(op.count, operands.size()); ++i)
      operands[i] = at(op, i);
    const Interval exact = bounds_of_result(op.op, op.dtype.element(),
                                            program_.ops[op.src[0]].dtype.element(), operands);
    return op.dtype.scalar == ScalarType::Int64 && may_wrap(op.op) ? without_wraps(exact) : exact;
  }

  const LinearProgram& program_;
  const std::vector<Interval>& known_;
};

}  // namespace

IndexWidth::IndexWidth(const LinearProgram& program) {
  std::vector<Interval> known;
  known.reserve(program.ops.size());
  values_.resize(program.ops.size());
  const Analysis analysis(program, known);
  for (size_t id = 0; id < program.ops.size(); ++id) {
    const LinearOp& op = program.ops[id];
    Value& value = values_[id];
    value.interval = analysis.of(op);
    known.push_back(value.interval);
    if (op.op == Op::Load || op.op == Op::Store || op.op == Op::Prefetch)
      value.offset_fits = kWord.contains(analysis.offset(op));
    value.fits = op.dtype.scalar == ScalarType::Int64 && kWord.contains(value.interval);
    value.computed = value.fits;
    for (size_t i = 0; i < op.count; ++i)
      if (program.ops[op.src[i]].dtype.scalar == ScalarType::Int64)
        value.computed = value.computed && values_[op.src[i]].fits;
  }
}

}  // namespace tiny
