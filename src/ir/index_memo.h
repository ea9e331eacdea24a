// What was found of index expressions, while many forms of one kernel are looked at: most of what
// a form reads is where the form before read it.
#pragma once

#include "ir/bounds.h"
#include "ir/node_map.h"
#include "ir/uop.h"

namespace tiny {

struct IndexMemo {
  BoundsCache bounds;
  NodeMap<UOp> simplified;  // without facts
};

// While it lives, the graph has one, unless it has one already: bounds() and simplify_index() ask
// it and fill it.
class IndexMemoScope {
 public:
  explicit IndexMemoScope(Graph& graph) : graph_(graph), outer_(graph.index_memo()) {
    if (!outer_) graph.set_index_memo(&memo_);
  }
  ~IndexMemoScope() { graph_.set_index_memo(outer_); }
  IndexMemoScope(const IndexMemoScope&) = delete;
  IndexMemoScope& operator=(const IndexMemoScope&) = delete;

 private:
  Graph& graph_;
  IndexMemo* outer_;
  IndexMemo memo_;
};

}  // namespace tiny
