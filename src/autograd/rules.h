// How an operation of the tensor graph gives what reaches it on to what it is made of.
//
// One table, a row for every op that a tensor graph may hold: a rule, or why none is needed.
#pragma once

#include <vector>

#include "autograd/adjoint.h"
#include "ir/op.h"
#include "ir/uop.h"

namespace tiny {

// One node on the way down: its adjoint, and what its sources get.
class Step {
 public:
  Step(UOp node, Adjoint reached, const std::vector<bool>& wanted)
      : node_(std::move(node)),
        reached_(std::move(reached)),
        wanted_(wanted),
        given_(wanted.size()) {}

  const UOp& node() const { return node_; }
  const UOp& source(size_t i) const { return node_.src(i); }
  const Adjoint& reached() const { return reached_; }
  UOp total() const { return reached_.total(); }
  // Whether anything that is asked for is below a source.
  bool wants(size_t source) const { return wanted_[source]; }
  void give(size_t source, Adjoint adjoint) { given_[source] = std::move(adjoint); }
  void give(size_t source, UOp adjoint) { give(source, Adjoint(std::move(adjoint))); }
  // Of a source along which the node has this slope, element by element.
  void scale(size_t source, const UOp& slope) {
    if (wants(source)) give(source, reached_.times(slope));
  }
  const Adjoint& given(size_t source) const { return given_[source]; }

 private:
  UOp node_;
  Adjoint reached_;
  const std::vector<bool>& wanted_;
  std::vector<Adjoint> given_;  // nothing where a source gets none
};

// A rule gives to the sources that want it.  Its results are made of nodes that have rules, so that
// they can be differentiated again.
struct GradientRule {
  Op op;
  void (*apply)(Step&) = nullptr;
  const char* none = nullptr;  // why there is no rule
};
// Of an op of the tensor stage; Error{Internal} for another.
const GradientRule& gradient_rule(Op op);

}  // namespace tiny
