#include "autograd/gradient.h"

#include <unordered_map>
#include <utility>

#include "autograd/backward.h"
#include "base/error.h"
#include "engine/realize.h"
#include "ir/build.h"
#include "ir/node_map.h"
#include "shape/movement_axis.h"
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
Moved moved_of(const Tensor& tensor) {
  Moved target{tensor.node(), {}};
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

  // The node that has the elements of `base`, in whatever shape; no node if the losses have none.
  UOp find(const UOp& base) const {
    if (nodes_.contains(base.node())) return base;
    if (base.op() != Op::Buffer) return UOp();
    const auto found = stored_.find(storage_of(base).get());
    return found == stored_.end() ? UOp() : found->second;
  }

 private:
  std::vector<UOp> order_;
  NodeSet nodes_;
  std::unordered_map<const Storage*, UOp> stored_;
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
  std::vector<Tensor> all(losses.begin(), losses.end());
  all.insert(all.end(), targets.begin(), targets.end());
  require_one_context(all);
  std::vector<UOp> from, to;
  std::vector<Moved> found;
  for (const Tensor& loss : losses) {
    require(loss.dtype().is_float(), Status::DType, "a gradient of a loss of ", loss.dtype(),
            "; wanted floats");
    from.push_back(loss.node());
  }
  const Parts parts(from);
  for (const Tensor& target : targets) {
    require(target.dtype().is_float(), Status::DType, "a gradient by a tensor of ", target.dtype(),
            "; wanted floats");
    found.push_back(moved_of(target));
    const UOp node = parts.find(found.back().base);
    to.push_back(node ? node : found.back().base);
  }
  Backward backward(all.front().context_ref(), from, to);
  for (size_t i = 0; i < losses.size(); ++i)
    backward.reach(from[i],
                   Adjoint(upstream_of(losses[i], i < upstreams.size() ? upstreams[i] : Tensor())));
  backward.run();
  std::vector<Tensor> out;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (const UOp slope = backward.of(to[i])) {
      const UOp there = make_reshape(slope, shape_of(found[i].base));
      out.push_back(targets[i].with(moved(found[i].moves, there)));
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
  const Parts parts({&root, 1});
  std::vector<int64_t> found;
  for (size_t i = 0; i < others.size(); ++i)
    if (parts.find(moved_of(others[i]).base)) found.push_back(static_cast<int64_t>(i));
  return found;
}

}  // namespace tiny
