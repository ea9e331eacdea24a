// Constant folding: what every elementwise op computes, bit by bit, as docs/semantics.md says.
//
//   Integers wrap.  x // 0, x % 0 and their truncating forms are 0; lowest / -1 wraps.
//   A shift by a negative amount or by the width or more gives 0 (signed Shr: the sign everywhere).
//   Max(a, b) = (b > a or isnan(b)) ? b : a, and Min mirrored: a NaN of either side wins.
//   float16 and bfloat16 are computed in float32 and rounded after each op.  Transcendentals of
//   float32 are computed in double, then rounded.
//   Cast: float to int truncates, saturates, NaN gives 0; int or float64 to a 16-bit float rounds
//   to float32 first; anything to bool is x != 0.
//   Arithmetic on bool is that of the integers 0 and 1 with any other result than 0 read as 1.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/uop.h"

namespace tiny {

// One lane of `op`, elementwise, given its operands' bits.  `operand` is the dtype of the last
// operand (for all ops but Where the dtype of each), `result` the dtype of the value.
uint64_t fold_bits(Op op, DType result, DType operand, const uint64_t* src);

// The constant that `op` on `src` is; none unless the op is elementwise and every source a Const.
// `declared` is the dtype of a Cast or Bitcast.
std::optional<UOp> fold(Op op, std::span<const UOp> src, DType declared = kVoid);

// What a reduction over nothing gives: the bits of a value that changes nothing when it is folded
// in.
uint64_t identity_bits(Op op, DType dtype);

// An expression of elementwise ops, compiled once, evaluated many times on bits.
class Evaluator {
 public:
  // `inputs` are nodes that get their value from the caller; every other leaf is a Const.
  // Error{Internal} for any other op.
  Evaluator(const UOp& root, std::span<const UOp> inputs);

  // The bits of the root, given the bits of each input.
  uint64_t operator()(std::span<const uint64_t> inputs);
  size_t size() const { return steps_.size(); }  // ops evaluated a call

 private:
  struct Step {
    Op op;
    DType result;
    DType operand;
    uint32_t src[3];
    uint32_t to;
  };
  std::vector<Step> steps_;
  std::vector<uint64_t> values_;
  std::vector<uint32_t> input_slots_;
  uint32_t root_slot_ = 0;
};

}  // namespace tiny
