#include "schedule/rewrite/form_fma.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/build.h"
#include "ir/rebuild.h"
#include "schedule/schedule.h"

namespace tiny {

namespace {

// Operations that are repeated rather than stored.
constexpr size_t kLightOps = 16;

bool is_wide_float(DType dtype) {
  return dtype == kFloat32 || dtype == kFloat64;
}

// Whether a value is more, at its own index, than a few light operations on what is read.  What has
// been computed meanwhile counts as it was made, so that the answer stays.
bool is_heavy(const UOp& value) {
  std::vector<UOp> stack{value};
  for (size_t ops = 0; !stack.empty();) {
    const UOp node = std::move(stack.back());
    stack.pop_back();
    if (node.op() == Op::ReduceAxis) return true;
    if (node.op() == Op::Expand) continue;  // computed once for all that it is repeated for
    if (!has(node.op(), kElementwise) && !has(node.op(), kMovement)) continue;
    if (has(node.op(), kElementwise) && (op_weight(node.op()) > 1 || ++ops > kLightOps))
      return true;
    stack.insert(stack.end(), node.src().begin(), node.src().end());
  }
  return false;
}

class FmaFormer {
 public:
  explicit FmaFormer(std::span<const UOp> roots) : roots_(roots), wanted_(views_below(roots)) {}

  ChangedGraph run() {
    ChangedGraph out;
    out.roots.assign(roots_.begin(), roots_.end());
    if (std::ranges::none_of(topological(roots_, has_memory),
                             [&](const UOp& u) { return product_side(u).has_value(); }))
      return out;
    out.roots = rebuild(roots_, has_memory, [&](const UOp& node, const UOp& now) {
      const UOp fused = fused_sum(node, now);
      const UOp& made = fused ? fused : now;
      return made == node || !wanted_.contains(node.node()) ? made : noted(out, node, made);
    });
    return out;
  }

 private:
  // What is made of `node`, which gets memory.  x * y + z and z + x * y become one node; where both
  // get memory, the second is stored apart.
  static UOp noted(ChangedGraph& out, const UOp& node, const UOp& made) {
    const auto [at, is_new] = out.origins.try_emplace(made.node(), node);
    if (is_new || at->second == node) return made;
    const UOp apart = made.graph().make(Op::Contiguous, {made});
    out.origins.emplace(apart.node(), node);
    return apart;
  }

  // Which source of a sum is a product that the sum takes in; none if none is.
  std::optional<size_t> product_side(const UOp& node) const {
    if (node.op() != Op::Add || !is_wide_float(node.dtype()) || has_memory(node))
      return std::nullopt;
    for (const size_t side : {size_t{1}, size_t{0}}) {
      const UOp& product = node.src(side);
      if (product.op() != Op::Mul || has_memory(product) || wanted_.contains(product.node()))
        continue;
      if (node.src(1 - side).op() == Op::Neg) continue;
      if (is_heavy(product.src(0)) && is_heavy(product.src(1))) continue;
      return side;
    }
    return std::nullopt;
  }

  // `now` is `node` over changed sources.
  UOp fused_sum(const UOp& node, const UOp& now) const {
    const std::optional<size_t> side = product_side(node);
    if (!side) return {};
    const UOp& factors = now.src(*side);
    return fma(factors.src(0), factors.src(1), now.src(1 - *side));
  }

  std::span<const UOp> roots_;
  const NodeSet wanted_;  // has memory afterwards
};

}  // namespace

ChangedGraph form_fma(std::span<const UOp> roots) {
  return FmaFormer(roots).run();
}

}  // namespace tiny
