// Products of matrices that the threads of a warp form together (base/matrix.h): a sum has one
// accumulator for all elements that a thread has of a product, and each operand one value of the
// words that it has there.
//
// reads: values, words and places.
#pragma once

#include <optional>

#include "codegen/linearize/task.h"
#include "codegen/linearize/words.h"

namespace tiny {

class Matrices {
 public:
  Matrices(Emitter& emit, LoopNest& nest, Values& values, Addresses& addresses, Accesses& accesses,
           Words& words)
      : emit_(emit),
        nest_(nest),
        values_(values),
        addresses_(addresses),
        accesses_(accesses),
        words_(words) {}

  // The unrolled ranges whose coordinates are elements of one product; none of another sum.
  RangeSet elements_of(const UOp& node) const;
  // Of its accumulator.
  static DType dtype_of(const UOp& sum);
  // Adds a product.
  void accumulate(const Task& task, LinearId accumulator);
  // What a thread has of the sum becomes the values of its rows.
  void remember_rows(const UOp& sum, LinearId value);

 private:
  // The ranges that an operand is spread over; none where it has no such range.
  struct Spread {
    UOp thread, group;  // along axes 0 and 1
    UOp rows, steps;    // halves
    UOp step;           // of a word
    UOp columns, warp;  // blocks, of what the group shares; along axis 2
  };
  LinearId operand(const UOp& value, const Spread& spread);
  LinearId joined(const UOp& value, const Spread& spread);
  std::optional<LinearId> load(const UOp& value, const Spread& spread);
  std::optional<bool> is_turned(const UOp& value, const Spread& spread);
  Spread spread_of(const UOp& value, const UOp& term, bool has_rows);
  LinearId rounded(LinearId words);
  void accumulate_shared(const UOp& term, LinearId accumulator);
  struct InLines {
    LinearId begin;
    bool is_turned;
  };
  InLines in_lines(const UOp& value, const UOp& term, bool has_rows);

  Emitter& emit_;
  LoopNest& nest_;
  Values& values_;
  Addresses& addresses_;
  Accesses& accesses_;
  Words& words_;
};

}  // namespace tiny
