// The instances of a window in sets that the same edges leave out: each set is jumped over by one
// branch.
//
// reads: what of the window's conditions is proven for the coordinates of each instance.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "codegen/linearize/index_forms.h"
#include "codegen/linearize/prover.h"

namespace tiny {

// A condition that is open, with its coordinates put in.
struct Edge {
  UOp condition;
  int64_t constant = 0;
  bool operator==(const Edge&) const = default;
};

// Instances that stand together.
struct WindowSide {
  std::vector<Edge> edges;
  size_t count = 0;  // of instances
};

struct WindowSides {
  std::vector<WindowSide> sides;   // the first is inside of all edges
  std::vector<size_t> side_of;     // of each instance, in the order in which they come
  std::vector<size_t> stand_with;  // of each side: the one whose branch it shares
};

// Calls a body for every instance of a task.
using EachInstance = std::function<void(const std::function<void(size_t)>& body)>;

WindowSides sides_of_window(const std::vector<UOp>& conditions, const EachInstance& each,
                            IndexForms& forms, Prover& prover);

}  // namespace tiny
