#include "schedule/form_fma.h"

#include <algorithm>
#include <unordered_set>
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
  explicit FmaFormer(std::span<const UOp> roots) : roots_(roots) {
    for (UOp node : roots)
      for (; wanted_.insert(node.node()).second && has(node.op(), kMovement);)
        node = UOp(node.src(0));
  }

  ChangedGraph run() {
    ChangedGraph out;
    out.roots = rebuild(roots_, has_memory, [&](const UOp& node, const UOp& now) {
      const UOp fused = has_memory(node) ? UOp() : fused_sum(node, now);
      const UOp& made = fused ? fused : now;
      return made == node ? made : noted(out, node, made);
    });
    return out;
  }

 private:
  // x * y + z and z + x * y become one node, which is the origin of one of them: of that which gets
  // memory, and where both do, the second is stored apart.
  UOp noted(ChangedGraph& out, const UOp& node, const UOp& made) const {
    const auto [at, is_new] = out.origins.try_emplace(made.node(), node);
    if (is_new || at->second == node || !wanted_.contains(node.node())) return made;
    if (!wanted_.contains(at->second.node())) {
      at->second = node;
      return made;
    }
    const UOp apart = made.graph().make(Op::Contiguous, {made});
    out.origins.emplace(apart.node(), node);
    return apart;
  }

  // `now` is `node` over changed sources.
  UOp fused_sum(const UOp& node, const UOp& now) const {
    if (node.op() != Op::Add || !is_wide_float(node.dtype())) return {};
    for (const size_t side : {size_t{1}, size_t{0}}) {
      const UOp& product = node.src(side);
      if (product.op() != Op::Mul || has_memory(product) || wanted_.contains(product.node()))
        continue;
      if (node.src(1 - side).op() == Op::Neg) continue;
      if (is_heavy(product.src(0)) && is_heavy(product.src(1))) continue;
      const UOp& factors = now.src(side);
      return fma(factors.src(0), factors.src(1), now.src(1 - side));
    }
    return {};
  }

  std::span<const UOp> roots_;
  std::unordered_set<const Node*> wanted_;  // has memory afterwards
};

}  // namespace

ChangedGraph form_fma(std::span<const UOp> roots) {
  return FmaFormer(roots).run();
}

}  // namespace tiny
