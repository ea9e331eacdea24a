// Models whose programs serve many sizes, beside programs for each.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tensor/create.h"
#include "tests/onnx/running.h"
#include "tests/support/context.h"

namespace tiny::onnx::testing {

inline Message weight(const std::string& name, const Ints& dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  std::mt19937 random(static_cast<uint32_t>(count));
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(std::normal_distribution<float>(0, 0.3f)(random));
  return float_tensor(name, dims, values);
}

inline Tensor random_tensor(const Ref<Context>& context, const Ints& shape) {
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  std::mt19937 random(static_cast<uint32_t>(count));
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(std::normal_distribution<float>()(random));
  return from_data(context, kFloat32, shape, values.data(), count * 4);
}

// Runs the model for every list of shapes, once shared and once with a program of its own, on two
// devices, and says how many programs the shared runs made.
inline void expect_same(const Message& graph, const std::vector<std::vector<Ints>>& cases,
                        size_t programs, const Tolerance& tolerance = {1e-4, 1e-5}) {
  for (const char* device : {"cpu", "interp"}) {
    SCOPED_TRACE(device);
    const Ref<Context> context = tiny::testing::new_context(device);
    const Ref<LoadedModel> shared = load(context, graph);
    const Ref<LoadedModel> apart = load(context, graph);
    for (const std::vector<Ints>& shapes : cases) {
      SCOPED_TRACE(std::string(list_text(shapes[0])));
      std::vector<Tensor> inputs;
      for (const Ints& shape : shapes) inputs.push_back(random_tensor(context, shape));
      const std::vector<Tensor> got = shared->run(inputs);
      const std::vector<HostTensor> want = run_once(context, apart->compile(shapes), inputs);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_EQ(difference(host_tensor(got[i]), want[i], tolerance), "");
    }
    EXPECT_EQ(shared->programs().size(), programs);
    EXPECT_TRUE(std::ranges::any_of(shared->programs(), [](const Ref<const TensorProgram>& p) {
      return !p->variables.empty();
    }));
  }
}

}  // namespace tiny::onnx::testing
