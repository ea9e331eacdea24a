// What nodes of the tensor graph are made of.
#pragma once

#include <utility>
#include <vector>

#include "ir/node_map.h"
#include "shape/shape.h"

namespace tiny {

// What a value is made of, shapes included.
struct Dependence {
  bool on_input = false;  // of a program
  bool on_variable = false;
  std::vector<const ScanLoop*> on_steps;  // of loops that are open: whose steps are being made
  bool on_elements = false;  // that these steps have, not on their induction variables alone

  bool on_data() const { return on_input || on_elements; }
};

// Of the nodes that were asked for and all below them, each looked at once.
class Dependences {
 public:
  const Dependence& of(const UOp& root);
  // Before anything is asked that is made of the loop's induction variable.
  void open(const ScanLoop& loop) { opened_.emplace_back(loop.induction_variable, &loop); }

 private:
  Dependence made_of(const UOp& node) const;

  NodeMap<Dependence> known_;
  std::vector<std::pair<UOp, const ScanLoop*>> opened_;  // loops by their induction variables
};

}  // namespace tiny
