// Conditions `e >= 0` decided: known to hold or not, or made as a bool of one lane or of all.
//
// reads: what is proven, index expressions and their values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "codegen/linearize/prover.h"
#include "codegen/linearize/values.h"

namespace tiny {

// A condition `e >= 0`, as far as it could be decided.
struct Condition {
  enum Kind : uint8_t { True, False, Scalar, Lanes } kind = True;
  LinearId scalar = 0;  // Scalar: a bool
  LinearId mask = 0;    // Lanes: a bool with lanes
  size_t depth = 0;     // True by a known fact: nothing that relies on it may leave this block
};

// Several conditions, as one.
struct Guards {
  bool never = false;
  size_t depth = 0;
  std::optional<LinearId> scalar;
  std::optional<LinearId> mask;
};

class Predicates {
 public:
  Predicates(Emitter& emit, LoopNest& nest, IndexForms& forms, Prover& prover, Values& values)
      : emit_(emit), nest_(nest), forms_(forms), prover_(prover), values_(values) {}

  Condition condition(const UOp& nonnegative, int64_t lanes);
  // The condition as a bool, of one lane or of all.
  LinearId bool_of(const Condition& c, int64_t lanes);
  Guards all_of(std::span<const Condition> conditions, int64_t lanes);

 private:
  LinearId holds_of(const UOp& nonnegative, const IndexForm& form, int64_t lanes);

  Emitter& emit_;
  LoopNest& nest_;
  IndexForms& forms_;
  Prover& prover_;
  Values& values_;
};

}  // namespace tiny
