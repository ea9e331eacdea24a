// Tails and padding: the few iterations of a loop in which a condition that involves unrolled
// ranges or lanes does not hold for all of them.
//
// reads: the conditions of tasks, and what of them is proven; emits nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/linearize/conditions.h"
#include "codegen/linearize/task.h"

namespace tiny {

// Iterations [first, last) of a range of known size need no check of unrolled ranges or lanes.
struct Peel {
  int64_t first = 0;
  int64_t last = 0;
  std::vector<UOp> facts;
};

// The same of a range of run-time size: [0, last).
struct Split {
  UOp last;
  std::vector<UOp> facts;
};

class Peeling {
 public:
  Peeling(LoopNest& nest, IndexForms& forms, Prover& prover, Conditions& conditions)
      : nest_(nest), forms_(forms), prover_(prover), conditions_(conditions) {}

  // Of a loop that ends at `end`.
  std::optional<Peel> find_peel(Tasks tasks, size_t position, int64_t end);
  std::optional<Split> find_split(Tasks tasks, size_t position);

 private:
  bool shares_values(Tasks tasks);
  // A condition c * r + rest >= 0, where rest is at least `worst` for all that is unrolled.
  struct Bound {
    int64_t c = 0;
    int64_t worst = 0;
  };
  std::optional<Bound> bound_of(const UOp& condition, size_t position);

  LoopNest& nest_;
  IndexForms& forms_;
  Prover& prover_;
  Conditions& conditions_;
};

}  // namespace tiny
