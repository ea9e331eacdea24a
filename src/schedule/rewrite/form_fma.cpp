#include "schedule/rewrite/form_fma.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/build.h"
#include "schedule/schedule.h"
#include "shape/movement_axis.h"

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
    if (repeats_elements(node)) continue;  // computed once for all that it is repeated for
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
    if (std::ranges::none_of(topological(roots_, has_memory),
                             [&](const UOp& u) { return product_side(u).has_value(); }))
      return unchanged(roots_);
    return rebuild_with_origins(roots_, has_memory, [&](const UOp& node, const UOp& now) {
      const UOp fused = fused_sum(node, now);
      return fused ? fused : now;
    });
  }

 private:
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
