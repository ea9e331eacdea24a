// What the CPU computes in place of this device, counted (fallback.cpp).
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstddef>

namespace tiny_torch {

void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Whether complex numbers are among the last `count` of a stack: the engine has none, so that rows
// leave what meets them to the CPU.
bool meets_complex(const torch::jit::Stack& stack, size_t count);

}  // namespace tiny_torch
