// The walk over a linear program: one op after the other becomes machine instructions.
//
// What it is made of, each of which reads those above it and none below:
//
//   Emitter            instructions, registers, constants
//   integers, floats, vector_integers, resize_ints, masks, comparisons, conversions, lanes, loads,
//   stores, transpose  instructions for values in registers
//   LinearView, facts  the linear program, and what is known of its ops
//   Squares            stores whose elements are turned first
//   Values             where values live
//   Addresses          addresses that several ops use
//   Blocks             loops and ifs
//   Tiles              products by the matrix unit
//   Entry              what a kernel is called with
//   ops                all other ops
#pragma once

#include "render/x86/select/addresses.h"
#include "render/x86/select/blocks.h"
#include "render/x86/select/emitter.h"
#include "render/x86/select/entry.h"
#include "render/x86/select/squares.h"
#include "render/x86/select/tiles.h"
#include "render/x86/select/values.h"

namespace tiny::x86 {

class Selector {
 public:
  Selector(const LinearProgram& program, bool avx512, DotSet tiles);
  MachineProgram run();

 private:
  void select_op(LinearId id);
  void select_elementwise(LinearId id);

  const LinearProgram& program_;
  Emitter emitter_;
  Values values_;
  Squares squares_;
  Entry entry_;
  Addresses addresses_;
  Blocks blocks_;
  Tiles tiles_;
};

}  // namespace tiny::x86
