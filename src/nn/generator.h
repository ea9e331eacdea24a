// A source of keys for random numbers that moves on with every run.
#pragma once

#include "base/ref.h"
#include "tensor/tensor.h"

namespace tiny {

// Keys are threefry2x32 of the seed at (step, number of the key within the step).  A step ends when
// something that was made of its keys is computed, so that a program that is run again has other
// numbers in each run, and those of the same steps without a program.  The first key of step n is
// that of tinygrad's Tensor.rand after n words (docs/semantics.md).
class Generator : public RefCounted {
 public:
  Generator(const Ref<Context>& context, uint64_t seed);

  // A key (random.h) that no other call gave.
  Tensor next();
  // uint32 [3]: the seed's words and the step, to be saved and put back.
  const Tensor& state() const { return state_; }

 private:
  Tensor state_;
  int64_t keys_ = 0;  // of this step
};

}  // namespace tiny
