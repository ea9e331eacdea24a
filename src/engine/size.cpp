#include "engine/size.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "ir/fold.h"

namespace tiny {

namespace {

constexpr size_t kStepsMax = 1024;
constexpr size_t kDepthMax = 64;

}  // namespace

SizeExpression::SizeExpression(const Dim& dim, std::span<const UOp> variables) {
  if (dim.is_const()) {
    value_ = dim.value();
    return;
  }
  struct Visit {
    UOp node;
    bool expanded;
  };
  std::vector<Visit> stack{{dim.expression(), false}};
  size_t depth = 0;
  while (!stack.empty()) {
    const Visit top = stack.back();
    stack.pop_back();
    const Op op = top.node.op();
    const size_t operands = top.node.src().size();
    if (!top.expanded && operands > 0) {
      stack.push_back({top.node, true});
      for (size_t i = operands; i-- > 0;) stack.push_back({UOp(top.node.src(i)), false});
      continue;
    }
    int64_t number = 0;
    if (op == Op::Const) {
      number = top.node.const_int();
    } else if (op == Op::Variable) {
      number = std::find(variables.begin(), variables.end(), top.node) - variables.begin();
      invariant(number < std::ssize(variables), "a program knows the variables of its sizes");
    }
    depth += 1 - operands;
    if (top.node.dtype() != kInt64 || depth > kDepthMax || steps_.size() >= kStepsMax)
      throw_free({&dim.expression(), 1}, cat("the size ", to_string(dim)));
    steps_.push_back({op, number});
  }
}

std::optional<SizeExpression::Multiple> SizeExpression::multiple() const {
  const bool is_product = steps_.size() == 3 && steps_.back().op == Op::Mul;
  if (steps_.size() != 1 && !is_product) return std::nullopt;
  Multiple out{0, 1};
  int variables = 0;
  for (const Step& step : steps_) {
    if (step.op == Op::Const) out.factor = step.number;
    if (step.op != Op::Variable) continue;
    out.variable = static_cast<size_t>(step.number);
    ++variables;
  }
  return variables == 1 && out.factor > 0 ? std::optional(out) : std::nullopt;
}

void SizeExpression::write(ByteWriter& out) const {
  out.number(value_).number(static_cast<uint32_t>(steps_.size()));
  for (const Step& step : steps_) out.number(step.op).number(step.number);
}

SizeExpression SizeExpression::read(ByteReader& in) {
  SizeExpression out(in.number<int64_t>());
  size_t depth = 0;
  for (auto n = in.number<uint32_t>(); n > 0 && in.good(); --n) {
    const Op op = in.number<Op>();
    const auto number = in.number<int64_t>();
    const bool is_known = static_cast<size_t>(op) < kOpCount &&
                          (op == Op::Const || op == Op::Variable || info(op).arity > 0);
    const size_t operands = is_known ? static_cast<size_t>(info(op).arity) : depth + 1;
    if (operands > depth || out.steps_.size() >= kStepsMax) return 0;
    depth += 1 - operands;
    if (depth > kDepthMax) return 0;
    out.steps_.push_back({op, number});
  }
  if (!out.steps_.empty() && depth != 1) return 0;
  return out;
}

size_t SizeExpression::variables_used() const {
  int64_t used = 0;
  for (const Step& step : steps_)
    if (step.op == Op::Variable)
      used = std::max(used, step.number < 0 ? INT64_MAX : step.number + 1);
  return static_cast<size_t>(used);
}

int64_t SizeExpression::value(std::span<const int64_t> variables) const {
  if (is_const()) return value_;
  std::array<uint64_t, kDepthMax> stack;
  size_t top = 0;
  for (const Step& step : steps_) {
    if (step.op == Op::Const) {
      stack[top++] = static_cast<uint64_t>(step.number);
    } else if (step.op == Op::Variable) {
      stack[top++] = static_cast<uint64_t>(variables[static_cast<size_t>(step.number)]);
    } else {
      top -= static_cast<size_t>(info(step.op).arity);
      stack[top] = fold_bits(step.op, kInt64, kInt64, &stack[top]);
      ++top;
    }
  }
  return static_cast<int64_t>(stack[0]);
}

}  // namespace tiny
