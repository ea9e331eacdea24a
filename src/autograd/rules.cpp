#include "autograd/rules.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "autograd/rule_functions.h"
#include "base/error.h"

namespace tiny {

namespace {

constexpr char kLeaf[] = "it is made of nothing";
constexpr char kSteps[] = "its values are whole numbers or truths, which do not change by a little";
constexpr char kBits[] = "bits are no number that changes by a little";
constexpr char kLater[] = "schedules are made of it, when gradients have been taken";
constexpr char kCall[] = "functions of the host have a rule of their own: call_rule.h";
constexpr char kLoop[] = "loops have a rule of their own: loop_rule.h";

constexpr GradientRule kRules[] = {
    {Op::Const, nullptr, kLeaf},
    {Op::Variable, nullptr, kLeaf},
    {Op::Buffer, nullptr, kLeaf},
    {Op::Iota, nullptr, kLeaf},

    {Op::Neg, of_neg},
    {Op::Abs, of_abs},
    {Op::Not, nullptr, kSteps},
    {Op::Sqrt, of_sqrt},
    {Op::Floor, nullptr, kSteps},
    {Op::Ceil, nullptr, kSteps},
    {Op::Trunc, nullptr, kSteps},
    {Op::Round, nullptr, kSteps},
    {Op::Exp, of_exp},
    {Op::Log, of_log},
    {Op::Sin, of_sin},
    {Op::Cos, of_cos},
    {Op::Tanh, of_tanh},
    {Op::Erf, of_erf},
    {Op::Cast, of_cast},
    {Op::Bitcast, nullptr, kBits},

    {Op::Add, of_add},
    {Op::Mul, of_mul},
    {Op::Div, of_div},
    {Op::FloorDiv, nullptr, kSteps},
    {Op::FloorMod, nullptr, kSteps},
    {Op::TruncDiv, nullptr, kSteps},
    {Op::TruncMod, nullptr, kSteps},
    {Op::Pow, of_pow},
    {Op::Max, of_extremum},
    {Op::Min, of_extremum},
    {Op::And, nullptr, kSteps},
    {Op::Or, nullptr, kSteps},
    {Op::Xor, nullptr, kSteps},
    {Op::Shl, nullptr, kSteps},
    {Op::Shr, nullptr, kSteps},
    {Op::Less, nullptr, kSteps},
    {Op::LessEqual, nullptr, kSteps},
    {Op::Equal, nullptr, kSteps},
    {Op::NotEqual, nullptr, kSteps},

    {Op::Where, of_where},
    {Op::Fma, of_fma},

    {Op::Reshape, of_reshape},
    {Op::Permute, of_permute},
    {Op::Expand, of_expand},
    {Op::Pad, of_pad},
    {Op::Shrink, of_shrink},
    {Op::Flip, of_flip},
    {Op::Unfold, of_unfold},
    {Op::AsStrided, of_as_strided},
    {Op::Alias, of_alias},

    {Op::ReduceAxis, of_reduce},
    {Op::Winograd, nullptr, kLater},
    {Op::Gather, of_gather},
    {Op::Scatter, of_scatter},
    {Op::Concat, of_concat},
    {Op::Contiguous, of_same},
    {Op::After, of_after},
    {Op::Assign, of_assign},
    {Op::Copy, of_same},
    {Op::Call, nullptr, kCall},
    {Op::ScanStep, nullptr, kLoop},
    {Op::ScanStore, nullptr, kLoop},
    {Op::Scan, nullptr, kLoop},
};

}  // namespace

const GradientRule& gradient_rule(Op op) {
  const auto* row = std::ranges::find(kRules, op, &GradientRule::op);
  if (row == std::end(kRules))
    throw_error(Status::Internal, "no gradient is known of the op ", info(op).name);
  return *row;
}

}  // namespace tiny
