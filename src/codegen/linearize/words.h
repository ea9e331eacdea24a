// Words: the steps of a sum that one instruction multiplies and adds.  A word is loaded at once
// where its steps lie side by side and all are there, else joined from its steps.
//
// reads: values, accesses, and the conditions of the steps.
#pragma once

#include <optional>
#include <span>

#include "codegen/linearize/accesses.h"
#include "codegen/linearize/task.h"
#include "ir/dot.h"

namespace tiny {

class Words {
 public:
  Words(Emitter& emit, LoopNest& nest, IndexForms& forms, Prover& prover, Conditions& conditions,
        Values& values, Predicates& predicates, Addresses& addresses, Accesses& accesses)
      : emit_(emit),
        nest_(nest),
        forms_(forms),
        prover_(prover),
        conditions_(conditions),
        values_(values),
        predicates_(predicates),
        addresses_(addresses),
        accesses_(accesses) {}

  // Adds the products of a sum's steps.
  void accumulate(const Task& task, LinearId accumulator, const Guards& guards);
  // Fills a stage whose innermost dimension is a word.
  void fill(const Task& task, const Guards& guards, int64_t lanes);
  // The word of a value's steps; a step for which a fact does not hold is zero.
  LinearId word_of(const UOp& value, std::span<const UOp> facts);

 private:
  std::optional<size_t> range_of(const UOp& value);
  std::optional<LinearId> load(const UOp& value, std::span<const UOp> facts);
  LinearId bits_of(const ByteBits& bits, std::span<const UOp> facts);
  LinearId join(const UOp& value, size_t position, std::span<const UOp> facts);

  Emitter& emit_;
  LoopNest& nest_;
  IndexForms& forms_;
  Prover& prover_;
  Conditions& conditions_;
  Values& values_;
  Predicates& predicates_;
  Addresses& addresses_;
  Accesses& accesses_;
};

}  // namespace tiny
