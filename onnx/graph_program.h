// Programs from graphs of tensors, built by hand.
#pragma once

#include <span>

#include "onnx/session.h"

namespace tiny::onnx {

// A stand-in for a tensor that is given to every run; it has no value of its own.
Tensor make_placeholder(const Ref<Context>& context, DType dtype, const Ints& shape);

// Compiles what `outputs` need, for runs that set `inputs` (placeholders); computes nothing.
// Pending writes that an output depends on are done by every run, in place: an output that is a
// tensor with such writes is that tensor's memory.  The tensors themselves have what their memory
// holds from then on.  Other tensors are read as they are when a run executes.
Ref<const ModelProgram> compile_tensors(const Ref<Context>& context, std::span<const Tensor> inputs,
                                        std::span<const Tensor> outputs);

}  // namespace tiny::onnx
