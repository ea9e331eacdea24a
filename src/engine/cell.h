// What a tensor and its views share: the newest version of a value.
//
// A cell that owns its memory has a flat node: a Buffer, or a version of one; writes go there.  Any
// other cell has the value as it was made, and gets memory of its own at the first write.  The
// context knows its cells: they are what is alive of its graph.
#pragma once

#include "base/ref.h"
#include "ir/uop.h"

namespace tiny {

class Context;

class Cell : public RefCounted {
 public:
  Cell(Ref<Context> context, UOp node, bool owns_memory = false);

  const UOp& node() const { return node_; }
  bool owns_memory() const { return owns_memory_; }
  // A later version, or the same value in memory.
  void set(UOp node) { node_ = std::move(node); }
  void set_memory(UOp flat) {
    node_ = std::move(flat);
    owns_memory_ = true;
  }
  Cell* next() const { return next_; }

 private:
  ~Cell() override;
  friend class Context;

  Ref<Context> context_;  // declared first: the node dies before its graph
  UOp node_;
  bool owns_memory_ = false;
  Cell* previous_ = nullptr;
  Cell* next_ = nullptr;
};

}  // namespace tiny
