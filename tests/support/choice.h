// Which loops are chosen for what a tensor is computed by, 16 lanes and 32 registers, with constant
// operands where a test says so: kernels are named after their loops.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "codegen/choose/choose.h"
#include "codegen/pipeline.h"
#include "engine/backend.h"
#include "engine/compile.h"
#include "schedule/schedule.h"
#include "shape/shape.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tensor/window.h"
#include "tests/support/constants.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {

// Whether a list has all of these options, in any order and among others.
inline bool has_options(const std::string& list, std::initializer_list<const char*> wanted) {
  const std::string all = "; " + list + ";";
  return std::ranges::all_of(wanted, [&](const char* option) {
    return all.find(std::string("; ") + option + ";") != std::string::npos;
  });
}

class ChoiceTest : public ::testing::Test {
 protected:
  void SetUp() override { use("auto"); }
  // A context with this setting of convolutions in tiles.
  void use(const char* wino) { set_up("", wino); }
  void compile_for_avx2() { set_up("avx2", "auto"); }
  void set_up(const char* isa, const char* wino) {
    Flags flags = testing::flags_for("null", isa);
    flags.cache = 0;
    flags.threads = 1;
    flags.wino = wino;
    context_ = make_ref<Context>(flags);
  }
  Tensor constant(const Ints& shape) {
    return testing::floats(
        context_, testing::Floats(static_cast<size_t>(product(to_shape(shape)).value()), 0.5F),
        shape);
  }
  Tensor pointwise(const Tensor& x, int64_t channels, int64_t stride = 1) {
    Window options;
    options.strides = {stride, stride};
    return relu(conv(x, constant({channels, x.shape()[1].value(), 1, 1}), Tensor(), options));
  }
  Tensor depthwise(const Tensor& x, int64_t stride = 1) {
    const int64_t channels = x.shape()[1].value();
    const Window options{{stride, stride}, {}, {1, 1}, {1, 1}};
    return conv(x, constant({channels, 1, 3, 3}), Tensor(), options.with_groups(channels));
  }
  static Tensor stored(const Tensor& t) { return permute(t, {0, 2, 3, 1}); }
  // Kernel `number` of the program that makes `output` of `input`.
  KernelInfo kernel(const Tensor& input, const Tensor& output, size_t number) {
    const Ref<const TensorProgram> program =
        testing::compile_with_constants(context_, input, output);
    return program->compiled.program->tape.at(number).info;
  }
  std::string loops(const Tensor& input, const Tensor& output, size_t number) {
    return kernel(input, output, number).name;
  }
  std::string options(const Tensor& input, const Tensor& output, size_t number) {
    return kernel(input, output, number).options;
  }
  // The list of the first kernel that makes a value of inputs alone.
  std::string list_of_inputs(const Tensor& value) {
    const UOp stored = context_->graph().make(Op::Contiguous, {value.node()});
    const Schedule schedule = make_schedule({&stored, 1}, avx512_machine());
    const Kernel kernel = prepare_kernel(schedule.kernels.front().kernel, avx512_machine());
    return to_text(choose_options(kernel, avx512_machine()));
  }

  Ref<Context> context_;
};

}  // namespace tiny
