#include "onnx/export/guess.h"

#include <algorithm>
#include <unordered_set>

namespace tiny::onnx {

namespace {

// How far below a node its operands may be.
constexpr size_t kChainMax = 8;

bool is_passed(Op op) {
  return op == Op::Cast || op == Op::Contiguous || has(op, kMovement);
}

}  // namespace

std::vector<UOp> chain(UOp node) {
  std::vector<UOp> nodes{node};
  for (size_t steps = 0; steps < kChainMax && is_passed(node.op()); ++steps) {
    if (node.op() == Op::AsStrided) break;
    if (node.op() == Op::Reshape) {
      const Shape shape = shape_of(node);
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (!shape[axis].is(1)) continue;
        Shape without = shape;
        without.erase(without.begin() + static_cast<ptrdiff_t>(axis));
        nodes.push_back(make_reshape(node, without));
      }
    }
    node = node.src(0);
    nodes.push_back(node);
  }
  return nodes;
}

UOp through(UOp node, std::initializer_list<Op> ops) {
  while (std::find(ops.begin(), ops.end(), node.op()) != ops.end()) node = node.src(0);
  return node;
}

UOp unspread(const UOp& node) {
  return through(node, {Op::Expand, Op::Reshape});
}

std::vector<UOp> below(const UOp& node, size_t most) {
  std::vector<UOp> found{node};
  std::unordered_set<const tiny::Node*> seen{node.node()};
  for (size_t i = 0; i < found.size() && found.size() < most; ++i) {
    const UOp above = found[i];
    for (const UOp& s : above.src())
      if (seen.insert(s.node()).second) found.push_back(s);
  }
  return found;
}

std::optional<UOp> find_below(const UOp& node, Op op, std::optional<Op> fold) {
  for (const UOp& u : below(node))
    if (u.op() == op && (!fold || u.reduce_arg().op == *fold)) return u;
  return std::nullopt;
}

std::optional<float> real_constant(const UOp& node) {
  const UOp base = unspread(node);
  if (!base.is_const() || !base.dtype().is_float()) return std::nullopt;
  return static_cast<float>(double_of(base.dtype(), base.const_bits()));
}

std::optional<UOp> reduction(const UOp& node, Op fold) {
  const UOp base = through(node, {Op::Cast, Op::Reshape, Op::Permute});
  if (base.op() != Op::ReduceAxis || base.reduce_arg().op != fold) return std::nullopt;
  return base;
}

}  // namespace tiny::onnx
