// What a node of tiny.h is: a counted reference to one of the context's graph.
#pragma once

#include <utility>

#include "api/handle.h"
#include "ir/uop.h"

struct tiny_node final : tiny::CountedAs<tiny::HandleKind::Node>, tiny::HoldsNodes {
  tiny_node(tiny_context& c, tiny::UOp node)
      : HoldsNodes(c, tiny::end_handle<tiny_node>), value(std::move(node)) {}

  const tiny::UOp value;  // its fields any thread may look at, its sources only who builds
};
