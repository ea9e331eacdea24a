// Values: every node once for each coordinate of the unrolled ranges that it depends on, in the
// block of its deepest loop.
//
// reads: the nest of loops, forms of index expressions, and leaves from whoever makes them.
#pragma once

#include <span>

#include "codegen/linearize/emitter.h"
#include "codegen/linearize/index_forms.h"
#include "codegen/linearize/loop_nest.h"

namespace tiny {

// Nodes whose value is not made from the values of all their sources: loads, reads of stages and
// running values, and what is known of indices.
class Leaves {
 public:
  // Whether the node is one; its value, if so.
  virtual bool leaf(const UOp& node, LinearId* out) = 0;

 protected:
  ~Leaves() = default;
};

class Values {
 public:
  Values(Emitter& emit, LoopNest& nest, IndexForms& forms, Leaves& leaves)
      : emit_(emit), nest_(nest), forms_(forms), leaves_(leaves) {}

  LinearId value_of(const UOp& node);
  // The same of an index expression, which has one lane here.
  LinearId scalar_index(const UOp& expression);
  // An index without its lanes.
  LinearId scalar_of(const IndexForm& form);

 private:
  struct Frame;
  bool enter(const UOp& node, LinearId* out);
  bool leaf(const UOp& node, LinearId* out);
  LinearId range_value(const UOp& range);
  bool is_decided(const UOp& node, std::span<const LinearId> src) const;

  Emitter& emit_;
  LoopNest& nest_;
  IndexForms& forms_;
  Leaves& leaves_;
};

}  // namespace tiny
