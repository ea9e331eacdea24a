// The leaves of a kernel's values: what memory, running values and the proofs of index comparisons
// give.
//
// reads: accesses, running values, predicates, addresses.
#pragma once

#include "codegen/linearize/accesses.h"
#include "codegen/linearize/running.h"

namespace tiny {

class KernelLeaves final : public Leaves {
 public:
  KernelLeaves(Emitter& emit, LoopNest& nest, IndexForms& forms, Prover& prover,
               Conditions& conditions, Predicates& predicates, Addresses& addresses,
               Accesses& accesses, RunningValues& running)
      : emit_(emit),
        nest_(nest),
        forms_(forms),
        prover_(prover),
        conditions_(conditions),
        predicates_(predicates),
        addresses_(addresses),
        accesses_(accesses),
        running_(running) {}

  bool leaf(const UOp& node, LinearId* out) override;

 private:
  bool index_cast(const UOp& node, LinearId* out);
  bool index_comparison(const UOp& node, LinearId* out);

  Emitter& emit_;
  LoopNest& nest_;
  IndexForms& forms_;
  Prover& prover_;
  Conditions& conditions_;
  Predicates& predicates_;
  Addresses& addresses_;
  Accesses& accesses_;
  RunningValues& running_;
};

}  // namespace tiny
