// Rules of functions of one element, and of places.
#include <algorithm>
#include <string>

#include "onnx/export/guess.h"

namespace tiny::onnx {

namespace {

bool same_kind(const UOp& a, const UOp& b) {
  return a.dtype() == b.dtype() && shape_of(a) == shape_of(b);
}

// What the function that ends in `node` may be of.
std::vector<UOp> arguments_of(const UOp& node) {
  std::vector<UOp> found;
  for (const UOp& x : below(node))
    if (!(x == node) && same_kind(x, node) && !unspread(x).is_const()) found.push_back(x);
  return found;
}

// Functions without attributes, by the op that they end in.
struct NamedFunction {
  Op last;
  const char* op_type;
};
constexpr NamedFunction kFunctions[] = {
    {Op::Max, "Relu"},     {Op::Div, "Sigmoid"}, {Op::Mul, "Gelu"},     {Op::Mul, "HardSwish"},
    {Op::Add, "Softplus"}, {Op::Mul, "Mish"},    {Op::Div, "Softsign"},
};

}  // namespace

void guess_function(const UOp& node, Guesses& out) {
  const Op last = through(node, {Op::Cast}).op();
  for (const NamedFunction& function : kFunctions)
    if (function.last == last)
      for (const UOp& x : arguments_of(node)) out.push_back({function.op_type, {x}, {}, {}});
}

// x, and below 0 another slope: one number, or one for each of an axis.
void guess_slope(const UOp& node, Guesses& out) {
  if (through(node, {Op::Cast}).op() != Op::Where) return;
  const auto product = find_below(node, Op::Mul);
  if (!product) return;
  for (const UOp& x : arguments_of(node))
    for (const UOp& factor : product->src()) {
      if (const auto slope = real_constant(factor))
        out.push_back({"LeakyRelu", {x}, {real_attribute("alpha", *slope)}, {}});
      for (const UOp& slopes : chain(factor)) out.push_back({"PRelu", {x, slopes}, {}, {}});
    }
}

// alpha * x + beta between 0 and 1.
void guess_hard_sigmoid(const UOp& node, Guesses& out) {
  if (through(node, {Op::Cast}).op() != Op::Min) return;
  const auto product = find_below(node, Op::Mul), sum = find_below(node, Op::Add);
  if (!product || !sum) return;
  for (const UOp& x : arguments_of(node))
    for (const UOp& factor : product->src())
      for (const UOp& term : sum->src()) {
        const auto alpha = real_constant(factor), beta = real_constant(term);
        if (alpha && beta)
          out.push_back({"HardSigmoid",
                         {x},
                         {real_attribute("alpha", *alpha), real_attribute("beta", *beta)},
                         {}});
      }
}

void guess_gather(const UOp& node, Guesses& out) {
  if (node.op() != Op::Gather) return;
  for (const UOp& index : below(node.src(1)))
    if ((index.dtype() == kInt64 || index.dtype() == kInt32) &&
        shape_of(index) == shape_of(node.src(1)))
      out.push_back({"Gather", {node.src(0), index}, {int_attribute("axis", node.int_arg())}, {}});
}

// The places that a sort of floats by their bits ends in (src/tensor/top_k.cpp).
void guess_top_k(const UOp& node, Guesses& out) {
  constexpr size_t kSearchedMax = 1 << 13;  // a network of many steps
  if (node.dtype() != kInt64 || through(node, {Op::Permute}).op() != Op::Contiguous) return;
  for (const UOp& u : below(node, kSearchedMax)) {
    if (u.op() != Op::Bitcast || !u.src(0).dtype().is_float()) continue;
    for (const UOp& x : chain(u.src(0))) {
      const Shape &from = shape_of(x), &to = shape_of(node);
      if (from.size() != to.size() || !all_const(to)) continue;
      for (size_t axis = 0; axis < to.size(); ++axis)
        for (const int64_t largest : {1, 0}) {
          Shape same = from;
          same[axis] = to[axis];
          if (!(same == to)) continue;
          out.push_back({"TopK",
                         {x},
                         {int_attribute("axis", static_cast<int64_t>(axis)),
                          int_attribute("largest", largest)},
                         {to[axis].value()},
                         1});
        }
    }
    return;
  }
}

}  // namespace tiny::onnx
