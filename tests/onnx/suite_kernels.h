// The kernels of onnx's node suite, made as for a GPU with groups of threads
// (ptx_kernels_test.cpp).
#pragma once

#include <vector>

#include "ir/linear.h"

namespace tiny::testing {

// Equal but for their names, once; none where there is no package onnx.
const std::vector<LinearProgram>& kernels_of_suite();

}  // namespace tiny::testing
