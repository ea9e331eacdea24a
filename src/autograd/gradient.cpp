#include "autograd/gradient.h"

#include <optional>
#include <unordered_map>
#include <utility>

#include "autograd/backward.h"
#include "base/error.h"
#include "engine/realize.h"
#include "ir/build.h"
#include "ir/node_map.h"
#include "shape/movement_axis.h"
#include "shape/view.h"
#include "tensor/create.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"

namespace tiny {

namespace {

// A target without what only orders its elements: movement of movement is made as one, past it.
struct Moved {
  UOp base;
  std::vector<UOp> moves;  // outermost first
};
Moved moved_of(const UOp& node) {
  Moved target{node, {}};
  UOp& base = target.base;
  for (; base.op() == Op::Reshape || base.op() == Op::Permute; base = UOp(base.src(0)))
    target.moves.push_back(base);
  return target;
}

// What losses are made of, by nodes, and by the memory that some have meanwhile: a tensor that is
// computed names that from then on, and not the node.
class Parts {
 public:
  explicit Parts(std::span<const UOp> losses) : order_(topological(losses)) {
    for (const UOp& u : order_) {
      nodes_.insert(u.node());
      if (u.op() == Op::Buffer) continue;
      if (const Ref<Storage> storage = storage_of(u)) stored_.try_emplace(storage.get(), u);
    }
  }

  // The node that has the elements of `target`, in whatever shape; no node if the losses have none.
  UOp find(const Moved& target) {
    if (nodes_.contains(target.base.node())) return target.base;
    if (target.base.op() == Op::Buffer) {
      const auto found = stored_.find(storage_of(target.base).get());
      return found == stored_.end() ? UOp() : found->second;
    }
    return seen_as(target.base);
  }

 private:
  // The movement of computed elements that sees them as `view` does.
  UOp seen_as(const UOp& view) {
    const std::optional<StoredView> wanted = as_view(view);
    const Ref<Storage> storage = wanted ? storage_of(wanted->base) : nullptr;
    if (!storage || !stored_.contains(storage.get())) return UOp();
    if (!std::exchange(views_noted_, true)) note_views();
    for (const auto& [known, node] : views_[storage.get()])
      if (known == wanted->view) return node;
    return UOp();
  }

  void note_views() {
    std::vector<uint8_t> stored(order_.back().graph().id_limit());
    for (const auto& [storage, node] : stored_) stored[node.id()] = 1;
    for (const UOp& u : order_)
      if (has(u.op(), kMovement))
        if (std::optional<StoredView> seen = as_view(u, stored))
          views_[storage_of(seen->base).get()].emplace_back(std::move(seen->view), u);
  }

  std::vector<UOp> order_;
  NodeSet nodes_;
  std::unordered_map<const Storage*, UOp> stored_;
  std::unordered_map<const Storage*, std::vector<std::pair<View, UOp>>> views_;
  bool views_noted_ = false;  // few targets are views of what was computed
};

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
  std::vector<const Tensor*> all = refs_to(losses);
  for (const Tensor& target : targets) all.push_back(&target);
  require_one_context(all);
  std::vector<UOp> from, to;
  std::vector<Moved> wanted, found;  // as the targets are now, and in the losses
  for (const Tensor& loss : losses) {
    require(loss.dtype().is_float(), Status::DType, "a gradient of a loss of ", loss.dtype(),
            "; wanted floats");
    from.push_back(loss.node());
  }
  Parts parts(from);
  for (const Tensor& target : targets) {
    require(target.dtype().is_float(), Status::DType, "a gradient by a tensor of ", target.dtype(),
            "; wanted floats");
    wanted.push_back(moved_of(target.node()));
    const UOp node = parts.find(wanted.back());
    found.push_back(moved_of(node ? node : wanted.back().base));
    to.push_back(found.back().base);
  }
  Backward backward(all.front()->context_ref(), from, to);
  for (size_t i = 0; i < losses.size(); ++i)
    backward.reach(from[i],
                   Adjoint(upstream_of(losses[i], i < upstreams.size() ? upstreams[i] : Tensor())));
  backward.run();
  std::vector<Tensor> out;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (const UOp slope = backward.of(to[i])) {
      const UOp there = make_reshape(moved(found[i].moves, slope), shape_of(wanted[i].base));
      out.push_back(targets[i].with(moved(wanted[i].moves, there)));
      continue;
    }
    require(unused_are_zero, Status::InvalidArgument, "target ", i, " of shape ",
            targets[i].shape(), " has no part in the losses");
    out.push_back(full(targets[i].context_ref(), targets[i].dtype(), targets[i].shape(), 0));
  }
  return out;
}

std::vector<int64_t> made_of(const Tensor& tensor, std::span<const Tensor> others) {
  const UOp root = tensor.node();
  Parts parts({&root, 1});
  std::vector<int64_t> found;
  for (size_t i = 0; i < others.size(); ++i)
    if (parts.find(moved_of(others[i].node()))) found.push_back(static_cast<int64_t>(i));
  return found;
}

}  // namespace tiny
