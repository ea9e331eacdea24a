// A walk from losses down to what they are built of.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "autograd/adjoint.h"
#include "engine/context.h"
#include "ir/node_map.h"
#include "ir/uop.h"
#include "shape/shape.h"

namespace tiny {

class Backward {
 public:
  // `reach`: what a target gets by another one that is made of it, or nothing of that.
  enum class Reach : uint8_t { Through, ToTargets };
  Backward(const Ref<Context>& context, std::span<const UOp> losses, std::span<const UOp> targets,
           Reach reach = Reach::Through);

  // Of a loss, before the walk.
  void reach(const UOp& node, Adjoint adjoint);
  void run();
  const Ref<Context>& context() const { return context_; }
  // What reached a target; no node if nothing did.
  UOp of(const UOp& target) const;
  Adjoint adjoint_of(const UOp& target) const;

 private:
  // What reached the results of one loop: by output, and by state.
  struct Loop {
    UOp scan;  // one of its results
    std::vector<UOp> outputs;
    std::vector<UOp> states;
  };
  // Floats that depend on a target.
  bool changes(const UOp& node) const {
    return node.dtype().is_float() && node.id() < depends_.size() && depends_[node.id()];
  }
  void go_down(const UOp& node);
  bool leave_skew(const UOp& shrink);
  bool keep_slice(const UOp& shrink);
  void join_slices(const UOp& node);
  void leave_segment(const UOp& alias);
  void leave_call(const UOp& result);
  void note_scan(const UOp& scan);
  void leave_loop(const UOp& store);

  Ref<Context> context_;
  Reach reach_;
  std::vector<UOp> order_;
  std::vector<bool> depends_;
  NodeSet targets_;
  std::vector<Adjoint> reached_;
  // What reached slices of a value along one axis, until all that read it were seen.
  struct Slice {
    size_t axis = 0;
    int64_t begin = 0;
    int64_t end = 0;
    UOp shrink;
  };
  std::unordered_map<const Node*, std::vector<Slice>> slices_;
  std::unordered_map<const RefCounted*, Loop> loops_;
  // Of each call of the host: its first result in the order, and what reached its outputs.
  struct Call {
    const Node* first = nullptr;
    std::vector<UOp> outputs;
  };
  std::unordered_map<const HostCall*, Call> calls_;
};

}  // namespace tiny
