// One context on several devices: what is made, computed and trained on each, copies between them,
// and what is said of calls over two.  Of CUDA's devices there are two of the emulated driver.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/api_values.h"
#include "tests/support/environment.h"
#include "tests/support/fake_cuda.h"
#include "tiny.h"

namespace {

using tiny::testing::Dims;
using tiny::testing::error_has;
using Floats = std::vector<float>;

class Devices : protected tiny::testing::ApiValues {
 protected:
  void close_all() {
    close();
    for (tiny_context* one : others_) tiny_context_release(one);
  }
  // Released at the end.
  tiny_context* on(const char* device, tiny_context* of = nullptr) {
    tiny_context* context = nullptr;
    EXPECT_EQ(tiny_context_on_device(of ? of : context_, device, &context), TINY_OK)
        << tiny_last_error();
    others_.push_back(context);
    return context;
  }
  tiny_tensor* made_in(tiny_context* context, const Dims& dims, const Floats& values) {
    tiny_tensor* t = nullptr;
    const tiny_status status =
        tiny_tensor_from_data(context, TINY_FLOAT32, dims.data(), dims.size(), values.data(),
                              values.size() * sizeof(float), &t);
    return keep(status, t);
  }
  tiny_tensor* to(const tiny_tensor* tensor, tiny_context* context) {
    tiny_tensor* t = nullptr;
    const tiny_status status = tiny_tensor_to(tensor, context, &t);
    return keep(status, t);
  }
  tiny_tensor* binary(tiny_binary_op op, const tiny_tensor* a, const tiny_tensor* b) {
    tiny_tensor* t = nullptr;
    const tiny_status status = tiny_binary(op, a, b, &t);
    return keep(status, t);
  }
  static std::string device_of(const tiny_tensor* tensor) {
    const char* name = nullptr;
    EXPECT_EQ(tiny_tensor_device(tensor, &name), TINY_OK);
    return name;
  }

  std::vector<tiny_context*> others_;
};

struct Pair {
  const char* here;
  const char* there;
};

class TwoDevices : public ::testing::TestWithParam<Pair>, protected Devices {
 protected:
  void SetUp() override {
    const auto [here, there] = GetParam();
    if (std::string(here) == "cuda") {
      if (!fake_.is_there()) GTEST_SKIP() << tiny::testing::kNoFakeCuda;
      fake_.reset();
      setenv("FAKE_CUDA_DEVICES", "2", 1);
    }
    open(here);
    tiny_context* context = nullptr;
    if (tiny_context_on_device(context_, there, &context) == TINY_ERROR_DEVICE)
      GTEST_SKIP() << tiny_last_error();
    ASSERT_NE(context, nullptr) << tiny_last_error();
    others_.push_back(context);
    there_ = context;
  }
  void TearDown() override {
    close_all();
    if (!fake_.is_there()) return;
    EXPECT_EQ(fake_.left(), "");
    fake_.reset();
    unsetenv("FAKE_CUDA_DEVICES");
  }

  tiny_context* there_ = nullptr;

 private:
  const tiny::testing::FakeCuda fake_;
};

TEST_P(TwoDevices, ADeviceHasOneContextForAllWhoAsk) {
  const auto [here, there] = GetParam();
  EXPECT_NE(there_, context_);
  EXPECT_EQ(on(there), there_);
  EXPECT_EQ(on(here), context_);
  EXPECT_EQ(on(here, there_), context_);
  EXPECT_EQ(on(there, there_), there_);
}

TEST_P(TwoDevices, TensorsKnowWhereTheyAre) {
  tiny_tensor* x = floats({2}, {1, 2});
  tiny_tensor* y = made_in(there_, {2}, {3, 4});
  EXPECT_EQ(device_of(x).find(GetParam().here), 0u) << device_of(x);
  EXPECT_EQ(device_of(y).find(GetParam().there), 0u) << device_of(y);
  EXPECT_EQ(device_of(binary(TINY_ADD, y, y)), device_of(y));
  EXPECT_EQ(read(binary(TINY_MUL, y, y)), (Floats{9, 16}));
  EXPECT_EQ(read(binary(TINY_MUL, x, x)), (Floats{1, 4}));
}

TEST_P(TwoDevices, ACopyHasTheElementsAndSharesNothing) {
  tiny_tensor* x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  tiny_tensor* twice = binary(TINY_ADD, x, x);  // not computed yet
  tiny_tensor* moved = to(twice, there_);
  EXPECT_EQ(device_of(moved).find(GetParam().there), 0u);
  EXPECT_EQ(shape(moved), (Dims{2, 3}));
  EXPECT_EQ(read(moved), (Floats{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(read(to(binary(TINY_MUL, moved, moved), context_)), (Floats{4, 16, 36, 64, 100, 144}));
  // In its own context it is the tensor itself, for writes too.
  tiny_tensor* same = to(x, context_);
  ASSERT_EQ(tiny_assign(same, floats({2, 3}, {0, 0, 0, 0, 0, 7})), TINY_OK) << tiny_last_error();
  EXPECT_EQ(read(x)[5], 7);
  ASSERT_EQ(tiny_assign(moved, made_in(there_, {2, 3}, Floats(6, -1))), TINY_OK);
  EXPECT_EQ(read(moved), Floats(6, -1));
  EXPECT_EQ(read(twice), (Floats{2, 4, 6, 8, 10, 12}));
}

TEST_P(TwoDevices, ViewsBecomeRowMajor) {
  tiny_tensor *x = floats({2, 3}, {1, 2, 3, 4, 5, 6}), *turned = nullptr, *part = nullptr;
  const int64_t axes[] = {1, 0}, begin[] = {1, 1}, end[] = {3, 2}, steps[] = {1, 1};
  ASSERT_EQ(tiny_permute(x, axes, 2, &turned), TINY_OK);
  keep(turned);
  tiny_tensor* moved = to(turned, there_);
  EXPECT_EQ(read(moved), (Floats{1, 4, 2, 5, 3, 6}));
  int64_t strides[2] = {};
  size_t rank = 0;
  ASSERT_EQ(tiny_tensor_strides(moved, strides, 2, &rank), TINY_OK);
  EXPECT_EQ(strides[0], 2);
  EXPECT_EQ(strides[1], 1);
  ASSERT_EQ(tiny_slice(moved, begin, end, steps, 2, &part), TINY_OK) << tiny_last_error();
  EXPECT_EQ(read(to(keep(part), context_)), (Floats{5, 6}));
}

TEST_P(TwoDevices, LargeTensorsGoPieceByPiece) {
  constexpr int64_t kCount = (5 << 20) / 4 + 3;  // more than a piece
  Floats values(kCount);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000);
  tiny_tensor* moved = to(floats({kCount}, values), there_);
  EXPECT_EQ(read(moved), values);
  EXPECT_EQ(read(to(moved, context_)), values);
}

TEST_P(TwoDevices, ScalarsConstantsAndNothing) {
  tiny_tensor *two = nullptr, *half = nullptr, *full = nullptr, *none = nullptr;
  ASSERT_EQ(tiny_scalar_int(context_, 2, &two), TINY_OK);
  ASSERT_EQ(tiny_scalar_float(context_, 0.5, &half), TINY_OK);
  const int64_t dims[] = {2, 2}, zero = 0;
  ASSERT_EQ(tiny_full(context_, TINY_INT16, dims, 2, 7, &full), TINY_OK);
  ASSERT_EQ(tiny_full(context_, TINY_FLOAT32, &zero, 1, 7, &none), TINY_OK);
  for (tiny_tensor* t : {two, half, full, none}) keep(t);
  tiny_tensor* x = made_in(there_, {2}, {3, 4});
  // They stay weak.
  tiny_tensor* y = binary(TINY_MUL, binary(TINY_ADD, x, to(two, there_)), to(half, there_));
  tiny_dtype dtype = 0;
  ASSERT_EQ(tiny_tensor_dtype(y, &dtype), TINY_OK);
  EXPECT_EQ(dtype, TINY_FLOAT32);
  EXPECT_EQ(read(y), (Floats{2.5, 3}));
  EXPECT_EQ(read<int16_t>(to(full, there_)), (std::vector<int16_t>(4, 7)));
  EXPECT_EQ(shape(to(none, there_)), (Dims{0}));
}

TEST_P(TwoDevices, OperationsOverTwoNameBoth) {
  tiny_tensor* x = floats({2}, {1, 2});
  tiny_tensor* y = made_in(there_, {2}, {3, 4});
  const auto expect_both = [&](tiny_status status, const char* call) {
    EXPECT_EQ(status, TINY_ERROR_INVALID_ARGUMENT);
    for (const std::string& part :
         {std::string(call), device_of(x), device_of(y), std::string("tiny_tensor_to copies")})
      EXPECT_TRUE(error_has(part.c_str())) << tiny_last_error() << " has no " << part;
  };
  tiny_tensor* out = nullptr;
  expect_both(tiny_binary(TINY_ADD, x, y, &out), "tiny_binary");
  expect_both(tiny_matmul(x, y, &out), "tiny_matmul");
  expect_both(tiny_assign(x, y), "tiny_assign");
  tiny_tensor* both[] = {x, y};
  expect_both(tiny_concat(both, 2, 0, &out), "tiny_concat");
  expect_both(tiny_realize(both, 2), "tiny_realize");
  tiny_tensor* gradient = nullptr;
  expect_both(tiny_gradient(&x, 1, &y, 1, nullptr, 0, 0, &gradient, 1), "tiny_gradient");
  // A program is one device's.
  tiny_tensor* in = input({2});
  tiny_tensor* sum = binary(TINY_ADD, in, x);
  tiny_program* program = nullptr;
  tiny_run* run = nullptr;
  ASSERT_EQ(tiny_program_compile(&in, 1, &sum, 1, &program), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_run_create(program, &run), TINY_OK);
  expect_both(tiny_run_set_input(run, 0, y), "tiny_run_set_input");
  tiny_run_release(run);
  tiny_program_release(program);
  // The copy of what depends on a program's input has elements in the program's runs alone.
  ASSERT_EQ(tiny_tensor_to(sum, there_, &out), TINY_OK) << tiny_last_error();
  tiny_tensor* copy = keep(out);
  EXPECT_EQ(device_of(copy), device_of(y));
  EXPECT_EQ(tiny_realize(&copy, 1), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("tiny_realize: ")) << tiny_last_error();
}

TEST_P(TwoDevices, ProgramsRunWhereTheyWereMade) {
  tiny_tensor *in = nullptr, *out = nullptr, *result = nullptr;
  const int64_t two = 2;
  ASSERT_EQ(tiny_input(there_, TINY_FLOAT32, &two, 1, &in), TINY_OK);
  tiny_tensor* weight = to(floats({2}, {10, 20}), there_);
  out = binary(TINY_MUL, keep(in), weight);
  tiny_program* program = nullptr;
  tiny_run* run = nullptr;
  ASSERT_EQ(tiny_program_compile(&in, 1, &out, 1, &program), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_run_create(program, &run), TINY_OK);
  for (const float x : {1.f, 2.f}) {
    ASSERT_EQ(tiny_run_set_input(run, 0, made_in(there_, {2}, {x, x})), TINY_OK);
    ASSERT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_output_tensor(run, 0, &result), TINY_OK);
    EXPECT_EQ(device_of(keep(result)), device_of(in));
    EXPECT_EQ(read(to(result, context_)), (Floats{10 * x, 20 * x}));
  }
  tiny_run_release(run);
  tiny_program_release(program);
}

// Four steps of SGD on a small regression; the parameters of both devices afterwards.
TEST_P(TwoDevices, TrainingIsTheSameOnBoth) {
  std::vector<Floats> trained;
  for (tiny_context* context : {context_, there_}) {
    tiny_tensor* x = made_in(context, {4, 2}, {1, 0, 0, 1, 1, 1, 2, 1});
    tiny_tensor* y = made_in(context, {4, 1}, {1, 2, 3, 4});
    tiny_tensor* w = made_in(context, {2, 1}, {0.25, -0.5});
    tiny_optimizer* optimizer = nullptr;
    int64_t group = 0;
    ASSERT_EQ(tiny_optimizer_create(context, TINY_OPTIMIZER_KIND_SGD, &optimizer), TINY_OK);
    ASSERT_EQ(tiny_optimizer_add(optimizer, &w, 1, &group), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_optimizer_set(optimizer, group, "lr", 0.0625), TINY_OK);
    for (int step = 0; step < 4; ++step) {
      tiny_tensor *product = nullptr, *loss = nullptr, *gradient = nullptr;
      ASSERT_EQ(tiny_matmul(x, w, &product), TINY_OK);
      tiny_tensor* error = binary(TINY_SUB, keep(product), y);
      ASSERT_EQ(tiny_reduce(TINY_SUM, binary(TINY_MUL, error, error), nullptr, 0, 0, &loss),
                TINY_OK);
      ASSERT_EQ(tiny_gradient(&loss, 1, &w, 1, nullptr, 0, 0, &gradient, 1), TINY_OK)
          << tiny_last_error();
      keep(loss);
      keep(gradient);
      ASSERT_EQ(tiny_optimizer_step(optimizer, &gradient, 1, nullptr), TINY_OK);
      ASSERT_EQ(tiny_realize(&w, 1), TINY_OK) << tiny_last_error();
    }
    tiny_optimizer_release(optimizer);
    trained.push_back(read(w));
  }
  ASSERT_EQ(trained[0].size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(trained[0][i], trained[1][i], 1e-6);
  EXPECT_GT(trained[0][0], 0.3);
}

TEST_P(TwoDevices, ModelsAreLoadedThere) {
  const auto package = tiny::testing::onnx_package();
  if (package.empty()) GTEST_SKIP() << tiny::testing::kNoOnnxPackage;
  const std::string path = package / "backend/test/data/node/test_add/model.onnx";
  tiny_model* model = nullptr;
  ASSERT_EQ(tiny_model_load(there_, path.c_str(), &model), TINY_OK) << tiny_last_error();
  tiny_tensor* inputs[] = {made_in(there_, {3, 4, 5}, Floats(60, 1)),
                           made_in(there_, {3, 4, 5}, Floats(60, 2))};
  tiny_tensor* out = nullptr;
  ASSERT_EQ(tiny_model_run(model, inputs, 2, &out, 1), TINY_OK) << tiny_last_error();
  EXPECT_EQ(device_of(keep(out)), device_of(inputs[0]));
  EXPECT_EQ(read(out), Floats(60, 3));
  tiny_model_release(model);
}

TEST_P(TwoDevices, HandlesMayBeReleasedInAnyOrder) {
  tiny_tensor* y = made_in(there_, {2}, {5, 6});
  tiny_context_release(std::exchange(context_, nullptr));
  EXPECT_EQ(read(binary(TINY_ADD, y, y)), (Floats{10, 12}));
  // The context that was first is gone: another takes its place.
  tiny_context* back = on(GetParam().here, there_);
  EXPECT_EQ(read(to(y, back)), (Floats{5, 6}));
}

TEST_P(TwoDevices, ThreadsCopyBothWaysAtOnce) {
  tiny_tensor* a = floats({256}, Floats(256, 1));
  tiny_tensor* b = made_in(there_, {256}, Floats(256, 2));
  const auto copy = [&](const tiny_tensor* from, tiny_context* target, float value) {
    for (int i = 0; i < 20; ++i) {
      tiny_tensor *t = nullptr, *sum = nullptr;
      ASSERT_EQ(tiny_tensor_to(from, target, &t), TINY_OK) << tiny_last_error();
      ASSERT_EQ(tiny_binary(TINY_ADD, t, t, &sum), TINY_OK);
      Floats got(256);
      ASSERT_EQ(tiny_tensor_read(sum, got.data(), got.size() * sizeof(float)), TINY_OK);
      EXPECT_EQ(got, Floats(256, 2 * value));
      tiny_tensor_release(t);
      tiny_tensor_release(sum);
    }
  };
  std::thread forth([&] { copy(a, there_, 1); }), back([&] { copy(b, context_, 2); });
  forth.join();
  back.join();
}

INSTANTIATE_TEST_SUITE_P(Kinds, TwoDevices,
                         ::testing::Values(Pair{"cpu", "far"}, Pair{"far", "interp"},
                                           Pair{"cpu", "opencl"}, Pair{"cuda", "cuda:1"}),
                         [](const auto& info) {
                           return std::string(info.param.here) + "_and_" +
                                  std::string(info.param.there).substr(0, 4);
                         });

class OneContext : public ::testing::Test, protected Devices {
 protected:
  void SetUp() override { open("cpu"); }
  void TearDown() override { close_all(); }
};

TEST_F(OneContext, WhatIsNoDeviceIsTold) {
  tiny_context* out = nullptr;
  EXPECT_EQ(tiny_context_on_device(context_, "gpu", &out), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("unknown device \"gpu\"; known: cpu, interp")) << tiny_last_error();
  for (const char* name : {"", "cpu:", "cpu:x", "cpu:0x", "cpu:0.0/2", "cuda:0.0/2", "opencl:.0/2",
                           "opencl:0.0", "opencl:0.0/", "opencl:0./2", "opencl:0.0/2/2"}) {
    EXPECT_EQ(tiny_context_on_device(context_, name, &out), TINY_ERROR_INVALID_ARGUMENT) << name;
    EXPECT_TRUE(error_has("unknown device")) << tiny_last_error();
  }
  for (const char* name : {"opencl:0.2/2", "opencl:0.0/0", "opencl:0.99999999999999999999/2"}) {
    EXPECT_EQ(tiny_context_on_device(context_, name, &out), TINY_ERROR_INVALID_ARGUMENT) << name;
    EXPECT_TRUE(error_has("parts are numbered from 0")) << tiny_last_error();
  }
  EXPECT_EQ(tiny_context_on_device(context_, "cpu:1", &out), TINY_ERROR_DEVICE);
  EXPECT_EQ(tiny_context_on_device(context_, "cuda:77", &out), TINY_ERROR_DEVICE);
  EXPECT_EQ(tiny_context_on_device(context_, nullptr, &out), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_context_on_device(nullptr, "cpu", &out), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(out, nullptr);
  EXPECT_EQ(on("cpu:0"), context_);
}

TEST_F(OneContext, AnotherDeviceHasTheOptions) {
  ASSERT_EQ(tiny_context_set_int(context_, "default_int", TINY_INT32), TINY_OK);
  tiny_tensor *number = nullptr, *sum = nullptr;
  ASSERT_EQ(tiny_scalar_int(on("far"), 1, &number), TINY_OK);
  ASSERT_EQ(tiny_binary(TINY_ADD, keep(number), number, &sum), TINY_OK);
  tiny_dtype dtype = 0;
  ASSERT_EQ(tiny_tensor_dtype(keep(sum), &dtype), TINY_OK);
  EXPECT_EQ(dtype, TINY_INT32);
  // What ends work in the one ends it in the other.
  tiny_cancel* cancel = nullptr;
  ASSERT_EQ(tiny_cancel_create(&cancel), TINY_OK);
  ASSERT_EQ(tiny_context_set_cancel(context_, cancel), TINY_OK);
  tiny_context* later = on("interp");
  ASSERT_EQ(tiny_cancel_set(cancel), TINY_OK);
  tiny_tensor* x = nullptr;
  const int64_t dims[] = {2};
  const float data[] = {1, 2};
  EXPECT_EQ(tiny_tensor_from_data(later, TINY_FLOAT32, dims, 1, data, sizeof data, &x),
            TINY_ERROR_CANCELLED);
  tiny_cancel_release(cancel);
}

TEST_F(OneContext, ThreadsThatAskForADeviceGetOne) {
  std::vector<tiny_context*> found(4);
  std::vector<std::thread> threads;
  for (tiny_context*& one : found)
    threads.emplace_back([&] { tiny_context_on_device(context_, "far", &one); });
  for (std::thread& thread : threads) thread.join();
  for (tiny_context* one : found) {
    EXPECT_EQ(one, found[0]);
    others_.push_back(one);
  }
}

}  // namespace
