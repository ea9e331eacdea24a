#include "autograd/gradient.h"

#include "autograd/rules.h"
#include "base/error.h"
#include "ir/build.h"
#include "shape/movement_axis.h"
#include "tensor/create.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"

namespace tiny {

namespace {

class Backward {
 public:
  Backward(std::vector<UOp> losses, std::vector<UOp> targets)
      : order_(topological(losses)), depends_(id_limit()), reached_(id_limit()) {
    for (const UOp& t : targets)
      if (t.id() < depends_.size()) depends_[t.id()] = true;
    for (const UOp& u : order_) {
      if (depends_[u.id()] || !gradient_rule(u.op()).apply) continue;
      for (const UOp& s : u.src()) depends_[u.id()] = depends_[u.id()] || changes(s);
    }
  }

  bool depends(const UOp& node) const { return depends_[node.id()]; }

  void reach(const UOp& node, Adjoint adjoint) {
    Adjoint& here = reached_[node.id()];
    here = here ? Adjoint(add(here.total(), adjoint.total())) : std::move(adjoint);
  }

  // Every user of a node comes before it: what reaches it is complete.
  void run() {
    for (size_t i = order_.size(); i-- > 0;) {
      const UOp& node = order_[i];
      if (!depends(node) || !reached_[node.id()]) continue;
      const GradientRule& rule = gradient_rule(node.op());
      if (!rule.apply) continue;
      std::vector<bool> wanted;
      bool any = false;
      for (const UOp& s : node.src()) {
        wanted.push_back(changes(s));
        any |= wanted.back();
      }
      if (!any) continue;
      const OriginScope origin(node);
      Step step(node, reached_[node.id()], wanted);
      rule.apply(step);
      for (size_t s = 0; s < wanted.size(); ++s)
        if (wanted[s] && step.given(s)) reach(node.src(s), step.given(s));
    }
  }

  UOp of(const UOp& target) const { return reached_[target.id()].total(); }
  bool reached(const UOp& target) const {
    return target.id() < reached_.size() && static_cast<bool>(reached_[target.id()]);
  }

 private:
  size_t id_limit() const { return order_.front().graph().id_limit(); }
  // Floats that depend on a target.
  bool changes(const UOp& u) const { return u.dtype().is_float() && depends_[u.id()]; }

  std::vector<UOp> order_;
  std::vector<bool> depends_;
  std::vector<Adjoint> reached_;
};

// A target without what only orders its elements: movement of movement is made as one, past it.
struct Target {
  UOp base;
  std::vector<UOp> moves;  // outermost first
};
Target target_of(const Tensor& tensor) {
  Target target{tensor.node(), {}};
  UOp& base = target.base;
  for (; base.op() == Op::Reshape || base.op() == Op::Permute; base = UOp(base.src(0)))
    target.moves.push_back(base);
  return target;
}

UOp upstream_of(const Tensor& loss, const Tensor& upstream) {
  if (!upstream) {
    require(product(loss.shape()).is(1), Status::Shape, "a gradient of a loss of shape ",
            loss.shape(), " without an upstream; wanted a loss of one element");
    return broadcast_to(loss.graph().constant(loss.dtype(), 1), loss.shape());
  }
  require(upstream.shape() == Shape(loss.shape()), Status::Shape, "an upstream of shape ",
          upstream.shape(), " for a loss of shape ", loss.shape());
  return as_dtype(upstream, loss.dtype());
}

}  // namespace

std::vector<Tensor> gradients(std::span<const Tensor> losses, std::span<const Tensor> upstreams,
                              std::span<const Tensor> targets, bool unused_are_zero) {
  std::vector<Tensor> all(losses.begin(), losses.end());
  all.insert(all.end(), targets.begin(), targets.end());
  require_one_context(all);
  std::vector<UOp> from, to;
  std::vector<Target> found;
  for (const Tensor& loss : losses) {
    require(loss.dtype().is_float(), Status::DType, "a gradient of a loss of ", loss.dtype(),
            "; wanted floats");
    from.push_back(loss.node());
  }
  for (const Tensor& target : targets) {
    require(target.dtype().is_float(), Status::DType, "a gradient by a tensor of ", target.dtype(),
            "; wanted floats");
    found.push_back(target_of(target));
    to.push_back(found.back().base);
  }
  Backward backward(from, to);
  for (size_t i = 0; i < losses.size(); ++i)
    backward.reach(from[i],
                   Adjoint(upstream_of(losses[i], i < upstreams.size() ? upstreams[i] : Tensor())));
  backward.run();
  std::vector<Tensor> out;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (backward.reached(to[i])) {
      out.push_back(targets[i].with(moved(found[i].moves, backward.of(to[i]))));
      continue;
    }
    require(unused_are_zero, Status::InvalidArgument, "target ", i, " of shape ",
            targets[i].shape(), " has no part in the losses");
    out.push_back(full(targets[i].context_ref(), targets[i].dtype(), targets[i].shape(), 0));
  }
  return out;
}

}  // namespace tiny
