// A test of graphs: tensors of data on a device that any machine has.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny::testing {

class GraphTest : public ::testing::Test {
 protected:
  // Floats in memory, different ones at each call.
  Tensor given(const Ints& shape) {
    Floats values;
    for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i)
      values.push_back(static_cast<float>((i * 7 + std::ssize(held_)) % 23 - 11) / 4);
    held_.push_back(floats(context_, values, shape));
    return held_.back();
  }

  Ref<Context> context_ = new_context("interp");
  std::vector<Tensor> held_;
};

}  // namespace tiny::testing
