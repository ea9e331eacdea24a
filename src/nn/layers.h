// Layers: functions with parameters, which a module holds under the layer's name.  Names, shapes
// and first values are those of PyTorch's layers (torch.nn), whose state dictionaries fit.
#pragma once

#include <string_view>

#include "nn/module.h"
#include "tensor/window.h"

namespace tiny {

// x [.., inputs] times weight [features, inputs] transposed, plus bias [features].
Tensor linear(Module& module, std::string_view name, const Tensor& x, int64_t features,
              bool has_bias = true);
// The window says the kernel's sizes, as many as x has spatial axes.
Tensor conv(Module& module, std::string_view name, const Tensor& x, int64_t channels,
            const Window& window, bool has_bias = true);
Tensor conv_transpose(Module& module, std::string_view name, const Tensor& x, int64_t channels,
                      const Window& window, bool has_bias = true);
// A row of weight [count, size] for each index.
Tensor embedding(Module& module, std::string_view name, const Tensor& index, int64_t count,
                 int64_t size);

struct NormOptions {
  double epsilon = 1e-5;
  bool is_affine = true;  // it has a weight, and a bias where there is one
};
// In training by the statistics of x, towards which the running ones go by `momentum`; else by
// those.
Tensor batch_norm(Module& module, std::string_view name, const Tensor& x,
                  const NormOptions& options = {}, double momentum = 0.1);
// Over the axes from `axis` on.
Tensor layer_norm(Module& module, std::string_view name, const Tensor& x, int64_t axis = -1,
                  const NormOptions& options = {});
Tensor rms_norm(Module& module, std::string_view name, const Tensor& x, int64_t axis = -1,
                const NormOptions& options = {});
Tensor group_norm(Module& module, std::string_view name, const Tensor& x, int64_t groups,
                  const NormOptions& options = {});
Tensor instance_norm(Module& module, std::string_view name, const Tensor& x,
                     const NormOptions& options = {});

// In training each element is 0 with the probability p, the others are divided by 1 - p.
Tensor dropout(const Module& module, const Tensor& x, double p);

}  // namespace tiny
