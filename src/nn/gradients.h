// What is done with gradients before a step, by PyTorch's definitions (torch.nn.utils, torch.amp).
#pragma once

#include <span>
#include <vector>

#include "base/ref.h"
#include "tensor/tensor.h"

namespace tiny {

// The root of the sum of all squares, a float32 scalar.  A gradient may be no tensor.
Tensor gradient_norm(std::span<const Tensor> gradients);
// Scaled together so that their norm is at most `most`: what has a smaller one stays.
std::vector<Tensor> clip_by_norm(std::span<const Tensor> gradients, const Tensor& norm,
                                 double most);
// Each element within -most and most.
std::vector<Tensor> clip_by_value(std::span<const Tensor> gradients, double most);

// A factor for losses whose gradients would be too small for 16-bit floats.  It is halved when
// gradients are not finite, whose step is to be left out, and doubled after `interval` that were.
class LossScaler : public RefCounted {
 public:
  LossScaler(const Ref<Context>& context, double factor, int64_t interval);

  Tensor scaled(const Tensor& loss) const;  // of at least 32 bits
  struct Unscaled {
    std::vector<Tensor> gradients;
    Tensor skip;  // bool: some element is not finite
  };
  // Gradients of a scaled loss as those of the loss, of at least 32 bits.  The factor of the next
  // step is a pending write.
  Unscaled unscale(std::span<const Tensor> gradients);
  const Tensor& skip() const { return skip_; }              // of the last
  const Tensor& factor() const { return factor_; }          // float32
  const Tensor& good_steps() const { return good_steps_; }  // since it was changed, int64

 private:
  Tensor factor_;
  Tensor good_steps_;
  Tensor skip_;
  int64_t interval_;
};

}  // namespace tiny
