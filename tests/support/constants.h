// Programs whose captured tensors are constants, as the weights of a model are.
#pragma once

#include "engine/compile.h"
#include "tensor/program.h"

namespace tiny::testing {

// `output` of one placeholder; what else it is made of never changes.
inline Ref<const TensorProgram> compile_with_constants(const Ref<Context>& context,
                                                       const Tensor& input, const Tensor& output) {
  const Ref<TensorProgram> program = make_ref<TensorProgram>();
  program->inputs.push_back(make_port("input", input.dtype(), input.shape(), {}));
  program->outputs.push_back(make_port("output", output.dtype(), output.shape(), {}));
  program->inputs.front().number = program->outputs.front().number = 0;
  UOp placeholder = input.node();
  while (has(placeholder.op(), kMovement)) placeholder = UOp(placeholder.src(0));
  program->compiled = compile_program(*context, {&output.node(), 1}, {&placeholder, 1});
  return program;
}

}  // namespace tiny::testing
