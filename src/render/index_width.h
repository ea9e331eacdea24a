// How wide the integers of a linear program must be computed.
//
// The IR's indices are int64.  Registers and integer units of GPUs are 32 bits wide, so that a
// renderer for one wants to know which values fit these: what is known of constants, variables,
// loops, group sizes and launches bounds nearly all of them.  What is loaded, and what a sum may
// become, is not known.  Arithmetic on int64 wraps: what might is not bounded.
//
//   const IndexWidth width(program);
//   if (width.is_computed_in_32(id)) ..  the 32-bit instruction, on 32-bit operands
#pragma once

#include <cstdint>
#include <vector>

#include "ir/bounds.h"
#include "ir/linear.h"

namespace tiny {

class IndexWidth {
 public:
  // The program is one that verify() accepts; it is not kept.
  explicit IndexWidth(const LinearProgram& program);

  // What each lane of an integer or bool value can be; unbounded of others.
  const Interval& interval(LinearId value) const { return values_[value].interval; }
  // Whether each lane of an int64 value is one of int32: the low word is the value.
  bool fits_32(LinearId value) const { return values_[value].fits; }
  // Whether the operands do too, so that the op on 32-bit words gives the value without a wrap.
  bool is_computed_in_32(LinearId value) const { return values_[value].computed; }
  // Whether so is the byte offset of every lane of a Load, Store or Prefetch from its address.
  bool offset_fits_32(LinearId access) const { return values_[access].offset_fits; }

 private:
  struct Value {
    Interval interval;
    bool fits = false;
    bool computed = false;
    bool offset_fits = false;
  };
  std::vector<Value> values_;
};

}  // namespace tiny
