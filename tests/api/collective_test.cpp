// Tensors of several devices combined and gathered: the same bits on each, whatever devices they
// are.  Of CUDA's devices there are three of the emulated driver, of OpenCL's PoCL's twice, and two
// parts of one.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/api_values.h"
#include "tests/support/fake_cuda.h"
#include "tiny.h"

namespace {

using tiny::testing::Dims;
using tiny::testing::error_has;
using Floats = std::vector<float>;
using Tensors = std::vector<tiny_tensor*>;

// Contexts of several devices; of one that is there once, contexts of their own.
class Members : protected tiny::testing::ApiValues {
 protected:
  void open_all(const std::vector<std::string>& devices) {
    open(devices[0].c_str());
    contexts_.push_back(context_);
    for (size_t i = 1; i < devices.size(); ++i) {
      tiny_context* context = nullptr;
      if (devices[i] == devices[0])
        context = make_context(devices[i].c_str());
      else if (tiny_context_on_device(context_, devices[i].c_str(), &context) != TINY_OK)
        missing_ = tiny_last_error();
      contexts_.push_back(context);
    }
  }
  void close_all() {
    for (size_t i = 1; i < contexts_.size(); ++i) tiny_context_release(contexts_[i]);
    close();
  }
  template <class T>
  tiny_tensor* made(size_t member, tiny_dtype dtype, const Dims& dims,
                    const std::vector<T>& values) {
    tiny_tensor* t = nullptr;
    const tiny_status status =
        tiny_tensor_from_data(contexts_[member], dtype, dims.data(), dims.size(), values.data(),
                              values.size() * sizeof(T), &t);
    return keep(status, t);
  }
  // Element i of member m is value(m, i), a float32.
  template <class Value>
  Tensors floats_of(const Dims& dims, int64_t count, Value value) {
    Tensors all;
    for (size_t m = 0; m < contexts_.size(); ++m) {
      Floats values;
      for (int64_t i = 0; i < count; ++i) values.push_back(value(m, i));
      all.push_back(made(m, TINY_FLOAT32, dims, values));
    }
    return all;
  }
  Tensors reduced(tiny_reduce_op op, const Tensors& tensors) {
    Tensors outs(tensors.size());
    EXPECT_EQ(tiny_allreduce(tensors.data(), tensors.size(), op, nullptr, outs.data(), outs.size()),
              TINY_OK)
        << tiny_last_error();
    for (tiny_tensor* one : outs) keep(one);
    return outs;
  }
  Tensors gathered(const Tensors& tensors, int64_t axis) {
    Tensors outs(tensors.size());
    EXPECT_EQ(
        tiny_allgather(tensors.data(), tensors.size(), axis, nullptr, outs.data(), outs.size()),
        TINY_OK)
        << tiny_last_error();
    for (tiny_tensor* one : outs) keep(one);
    return outs;
  }
  static std::string device_of(const tiny_tensor* tensor) {
    const char* name = nullptr;
    EXPECT_EQ(tiny_tensor_device(tensor, &name), TINY_OK);
    return name;
  }

  std::vector<tiny_context*> contexts_;
  std::string missing_;
};

struct Ring {
  const char* name;
  std::vector<std::string> devices;
};

class Collective : public ::testing::TestWithParam<Ring>, protected Members {
 protected:
  void SetUp() override {
    const std::string kind = GetParam().devices[0];
    if (kind == "cuda" && !fake_.is_there()) GTEST_SKIP() << tiny::testing::kNoFakeCuda;
    if (kind == "cuda") fake_.reset();
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    // Each is a device of PoCL's; drivers read it when they are opened.
    setenv("POCL_DEVICES", "pthread pthread", 1);
    open_all(GetParam().devices);
    if (!missing_.empty()) GTEST_SKIP() << missing_;
  }
  void TearDown() override {
    close_all();
    unsetenv("FAKE_CUDA_DEVICES");
    if (!fake_.is_there()) return;
    EXPECT_EQ(fake_.left(), "");
    fake_.reset();
  }
  size_t members() const { return contexts_.size(); }

 private:
  const tiny::testing::FakeCuda fake_;
};

TEST_P(Collective, SumsOfAnySizeAreOnEachDevice) {
  for (const int64_t count : {0, 1, 63, 64, 65, 257, 1000}) {
    const auto value = [](size_t m, int64_t i) {
      return static_cast<float>(i % 50 + 1000 * static_cast<int64_t>(m));
    };
    const Tensors all = floats_of({count}, count, value);
    const Tensors sums = reduced(TINY_SUM, all);
    Floats want;
    for (int64_t i = 0; i < count; ++i) {
      want.push_back(0);
      for (size_t m = 0; m < members(); ++m) want.back() += value(m, i);
    }
    for (size_t m = 0; m < members(); ++m) {
      EXPECT_EQ(device_of(sums[m]), device_of(all[m]));
      EXPECT_EQ(shape(sums[m]), Dims{count});
      EXPECT_EQ(read(sums[m]), want) << "member " << m << " of " << count << " elements";
    }
    // What was given is as it was.
    EXPECT_EQ(read(all[0]).size(), want.size());
    if (count > 1) {
      EXPECT_EQ(read(all[0])[1], value(0, 1));
    }
  }
}

// y = 2 x on each device, s = all y added up, g = all s + x gathered, on each device; t = the first
// device's g on the last one: one program, whose inputs are x.
TEST_P(Collective, IsPartOfAProgram) {
  constexpr int64_t kCount = 70;
  Tensors inputs, doubled, mixed, outputs;
  const auto add = [&](tiny_tensor* a, tiny_tensor* b) {
    tiny_tensor* out = nullptr;
    EXPECT_EQ(tiny_binary(TINY_ADD, a, b, &out), TINY_OK) << tiny_last_error();
    return keep(out);
  };
  const Dims dims{kCount};
  for (tiny_context* context : contexts_) {
    tiny_tensor* x = nullptr;
    ASSERT_EQ(tiny_input(context, TINY_FLOAT32, dims.data(), 1, &x), TINY_OK);
    inputs.push_back(keep(x));
    doubled.push_back(add(x, x));
  }
  const Tensors sums = reduced(TINY_SUM, doubled);
  for (size_t m = 0; m < members(); ++m) mixed.push_back(add(sums[m], inputs[m]));
  for (tiny_tensor* one : gathered(mixed, 0)) outputs.push_back(add(one, one));
  EXPECT_EQ(shape(outputs[0]), Dims{kCount * static_cast<int64_t>(members())});
  tiny_tensor* there = nullptr;
  ASSERT_EQ(tiny_tensor_to(outputs[0], contexts_.back(), &there), TINY_OK) << tiny_last_error();
  outputs.push_back(keep(there));
  outputs.push_back(doubled[0]);
  tiny_program* program = nullptr;
  ASSERT_EQ(
      tiny_program_compile(inputs.data(), inputs.size(), outputs.data(), outputs.size(), &program),
      TINY_OK)
      << tiny_last_error();
  size_t kernels = 0;
  EXPECT_EQ(tiny_program_kernel_count(program, &kernels), TINY_OK);
  EXPECT_GE(kernels, members());
  tiny_report* report = nullptr;
  ASSERT_EQ(tiny_program_kernels(program, &report), TINY_OK) << tiny_last_error();
  const std::string listed = tiny_report_text(report);
  tiny_report_release(report);
  size_t named = 0;
  for (size_t at = 0; (at = listed.find("\"operations\"", at)) != std::string::npos; ++at) ++named;
  EXPECT_EQ(named, kernels) << listed;
  ASSERT_EQ(tiny_program_kernel_source(program, kernels - 1, "uops", &report), TINY_OK)
      << tiny_last_error();
  tiny_report_release(report);
  tiny_run* run = nullptr;
  ASSERT_EQ(tiny_run_create(program, &run), TINY_OK) << tiny_last_error();
  EXPECT_EQ(tiny_run_execute(run), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("inputs that were not set: \"inputs[0]\"")) << tiny_last_error();
  for (int round = 0; round < 3; ++round) {
    const auto x = [&](size_t m, int64_t i) {
      return static_cast<float>(i + 100 * static_cast<int64_t>(m) + 7 * round);
    };
    const Tensors given = floats_of(dims, kCount, x);
    for (size_t m = 0; m < members(); ++m)
      ASSERT_EQ(tiny_run_set_input(run, m, given[m]), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error();
    Floats all;
    for (size_t m = 0; m < members(); ++m)
      for (int64_t i = 0; i < kCount; ++i) {
        float sum = x(m, i);
        for (size_t k = 0; k < members(); ++k) sum += 2 * x(k, i);
        all.push_back(2 * sum);
      }
    for (size_t o = 0; o + 1 < outputs.size(); ++o) {
      tiny_tensor* out = nullptr;
      ASSERT_EQ(tiny_run_output_tensor(run, o, &out), TINY_OK) << tiny_last_error();
      EXPECT_EQ(read(keep(out)), all) << "output " << o << " in round " << round;
      EXPECT_EQ(device_of(out), device_of(outputs[o]));
    }
    Floats first(kCount);
    ASSERT_EQ(tiny_run_read_output(run, outputs.size() - 1, first.data(), kCount * sizeof(float)),
              TINY_OK)
        << tiny_last_error();
    EXPECT_EQ(first[3], 2 * x(0, 3));
  }
  tiny_run_release(run);
  tiny_program_release(program);
}

// A step of training as one program: each device has a part of the batch, gradients are averaged,
// and the parameters of all devices stay the same bits, near those of steps that were built anew.
TEST_P(Collective, TrainsInAProgram) {
  constexpr int64_t kRows = 8, kFeatures = 5;
  constexpr int kSteps = 4;
  const auto x = [](size_t m, int64_t i) {
    return static_cast<float>((i * 37 + static_cast<int64_t>(m) * 11) % 23) / 23 - 0.5F;
  };
  const auto y = [](size_t m, int64_t i) {
    return static_cast<float>((i * 13 + static_cast<int64_t>(m) * 5) % 7) / 7;
  };
  std::vector<Floats> results;
  for (const bool is_program : {false, true}) {
    const Tensors weights = floats_of({kFeatures, 1}, kFeatures,
                                      [](size_t, int64_t i) { return static_cast<float>(i) / 8; });
    const Tensors rows = floats_of({kRows, kFeatures}, kRows * kFeatures, x);
    const Tensors targets = floats_of({kRows, 1}, kRows, y);
    std::vector<tiny_optimizer*> optimizers;
    for (size_t m = 0; m < members(); ++m) {
      int64_t group = 0;
      optimizers.emplace_back();
      ASSERT_EQ(tiny_optimizer_create(contexts_[m], TINY_OPTIMIZER_KIND_ADAMW, &optimizers[m]),
                TINY_OK);
      ASSERT_EQ(tiny_optimizer_add(optimizers[m], &weights[m], 1, &group), TINY_OK);
      ASSERT_EQ(tiny_optimizer_set(optimizers[m], group, "lr", 0.05), TINY_OK);
    }
    // The losses; the step is built, and not computed.
    const auto step = [&](const Tensors& given, const Tensors& wanted) {
      Tensors losses, gradients;
      for (size_t m = 0; m < members(); ++m) {
        tiny_tensor *product = nullptr, *loss = nullptr, *gradient = nullptr;
        EXPECT_EQ(tiny_matmul(given[m], weights[m], &product), TINY_OK);
        EXPECT_EQ(tiny_mse_loss(keep(product), wanted[m], TINY_REDUCTION_MEAN, &loss), TINY_OK);
        EXPECT_EQ(tiny_gradient(&loss, 1, &weights[m], 1, nullptr, 0, 0, &gradient, 1), TINY_OK);
        losses.push_back(keep(loss));
        gradients.push_back(keep(gradient));
      }
      const Tensors means = reduced(TINY_MEAN, gradients);
      for (size_t m = 0; m < members(); ++m)
        EXPECT_EQ(tiny_optimizer_step(optimizers[m], &means[m], 1, nullptr), TINY_OK)
            << tiny_last_error();
      return losses;
    };
    Floats losses;
    if (!is_program) {
      for (int i = 0; i < kSteps; ++i) {
        losses.push_back(read(step(rows, targets)[0])[0]);
        for (tiny_tensor* one : weights) ASSERT_EQ(tiny_realize(&one, 1), TINY_OK);
      }
    } else {
      Tensors inputs, given, wanted;
      for (tiny_context* context : contexts_) {
        for (const Dims& dims : {Dims{kRows, kFeatures}, Dims{kRows, 1}}) {
          tiny_tensor* one = nullptr;
          ASSERT_EQ(tiny_input(context, TINY_FLOAT32, dims.data(), 2, &one), TINY_OK);
          (dims[1] == 1 ? wanted : given).push_back(one);
          inputs.push_back(keep(one));
        }
      }
      Tensors outputs{step(given, wanted)[0]};
      outputs.insert(outputs.end(), weights.begin(), weights.end());
      tiny_program* program = nullptr;
      ASSERT_EQ(tiny_program_compile(inputs.data(), inputs.size(), outputs.data(), outputs.size(),
                                     &program),
                TINY_OK)
          << tiny_last_error();
      tiny_run* run = nullptr;
      ASSERT_EQ(tiny_run_create(program, &run), TINY_OK);
      for (size_t m = 0; m < members(); ++m) {
        ASSERT_EQ(tiny_run_set_input(run, 2 * m, rows[m]), TINY_OK) << tiny_last_error();
        ASSERT_EQ(tiny_run_set_input(run, 2 * m + 1, targets[m]), TINY_OK) << tiny_last_error();
      }
      for (int i = 0; i < kSteps; ++i) {
        ASSERT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error();
        losses.emplace_back();
        ASSERT_EQ(tiny_run_read_output(run, 0, &losses.back(), sizeof(float)), TINY_OK);
      }
      tiny_run_release(run);
      tiny_program_release(program);
    }
    for (size_t m = 1; m < members(); ++m)
      if (device_of(weights[m]).substr(0, 3) == device_of(weights[0]).substr(0, 3)) {
        EXPECT_EQ(read(weights[m]), read(weights[0])) << "member " << m;
      }
    EXPECT_NE(losses.back(), losses[0]) << "the program reads the parameters that it writes";
    results.push_back(read(weights.back()));
    results.push_back(losses);
    for (tiny_optimizer* one : optimizers) tiny_optimizer_release(one);
  }
  for (size_t k : {0U, 1U})
    for (size_t i = 0; i < results[k].size(); ++i)
      EXPECT_NEAR(results[k][i], results[k + 2][i], 1e-5) << k << " " << i;
}

TEST_P(Collective, EachDeviceHasTheSameBitsInEveryRun) {
  const auto value = [](size_t m, int64_t i) {
    return std::ldexp(static_cast<float>((i * 7919 + static_cast<int64_t>(m) * 104729) % 65537),
                      static_cast<int>(i % 30)) *
           (i % 3 == 0 ? -1.f : 1.f) / 3;
  };
  const Tensors all = floats_of({20, 50}, 1000, value);
  const Floats first = read(reduced(TINY_SUM, all)[0]);
  for (int run = 0; run < 2; ++run)
    for (const tiny_tensor* one : reduced(TINY_SUM, all)) {
      const Floats got = read(one);
      EXPECT_EQ(std::memcmp(got.data(), first.data(), first.size() * sizeof(float)), 0);
    }
  // Part k is combined from device k on.
  const int64_t n = static_cast<int64_t>(members());
  const int64_t part = ((1000 + n - 1) / n + 63) / 64 * 64;
  for (int64_t i = 0; i < 1000; ++i) {
    float sum = value(static_cast<size_t>(i / part), i);
    for (int64_t step = 1; step < n; ++step)
      sum += value(static_cast<size_t>((i / part + step) % n), i);
    EXPECT_EQ(first[static_cast<size_t>(i)], sum) << i;
  }
}

TEST_P(Collective, OtherWaysToCombine) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensors all = floats_of({4}, 4, [&](size_t m, int64_t i) {
    if (i == 3 && m == 1) return nan;
    return static_cast<float>(i == 2 ? static_cast<int64_t>(m) : i) - 1;
  });
  const auto last = static_cast<float>(members());
  for (const tiny_tensor* one : reduced(TINY_REDUCE_MAX, all)) {
    const Floats got = read(one);
    EXPECT_EQ((Floats{got.begin(), got.begin() + 3}), (Floats{-1, 0, last - 2}));
    EXPECT_TRUE(std::isnan(got[3]));
  }
  EXPECT_EQ(read(reduced(TINY_REDUCE_MIN, all)[1])[2], -1);
  EXPECT_EQ(read(reduced(TINY_PROD, all)[0])[0], members() % 2 == 0 ? 1 : -1);
  EXPECT_EQ(read(reduced(TINY_MEAN, all)[1])[2], (last - 1) / 2 - 1);
}

// 1 and 2^-11 from each other device: added to 1 as float16, whose step there is 2^-10, none of
// them would change it.
TEST_P(Collective, NarrowFloatsAreSummedInFloat32) {
  constexpr uint16_t kOne = 0x3c00, kSmall = 0x1000;  // 1, 2^-11
  Tensors all;
  for (size_t m = 0; m < members(); ++m)
    all.push_back(
        made<uint16_t>(m, TINY_FLOAT16, {100}, std::vector<uint16_t>(100, m ? kSmall : kOne)));
  // 1 + (n - 1) 2^-11 rounded once, halves to even.
  const auto want = static_cast<uint16_t>(kOne + std::array{0, 1, 2}[members() - 2]);
  for (const tiny_tensor* one : reduced(TINY_SUM, all))
    EXPECT_EQ(read<uint16_t>(one), std::vector<uint16_t>(100, want));
}

TEST_P(Collective, IntegersAreExactAndKeepTheirDtype) {
  Tensors all;
  for (size_t m = 0; m < members(); ++m)
    all.push_back(made<int8_t>(m, TINY_INT8, {70}, std::vector<int8_t>(70, 100)));
  const auto want = static_cast<int8_t>(100 * members());
  for (const tiny_tensor* one : reduced(TINY_SUM, all))
    EXPECT_EQ(read<int8_t>(one), std::vector<int8_t>(70, want));
  Tensors outs(members());
  EXPECT_EQ(tiny_allreduce(all.data(), all.size(), TINY_MEAN, nullptr, outs.data(), outs.size()),
            TINY_ERROR_DTYPE);
  EXPECT_TRUE(error_has("a mean of int8: floats are wanted")) << tiny_last_error();
}

// Not computed yet, and in another order of elements; a constant.
TEST_P(Collective, ValuesAreComputedFirst) {
  Tensors all, parts;
  for (tiny_tensor* one : floats_of({2, 3}, 6, [](size_t m, int64_t i) {
         return static_cast<float>(i + 10 * static_cast<int64_t>(m));
       })) {
    tiny_tensor *twice = nullptr, *turned = nullptr, *full = nullptr;
    tiny_context* context = nullptr;
    const int64_t axes[] = {1, 0}, dims[] = {5};
    ASSERT_EQ(tiny_binary(TINY_ADD, one, one, &twice), TINY_OK);
    ASSERT_EQ(tiny_permute(keep(twice), axes, 2, &turned), TINY_OK);
    all.push_back(keep(turned));
    ASSERT_EQ(tiny_tensor_context(one, &context), TINY_OK);
    ASSERT_EQ(tiny_full(context, TINY_FLOAT32, dims, 1, 0.5, &full), TINY_OK);
    tiny_context_release(context);
    parts.push_back(keep(full));
  }
  Floats want;
  const auto n = static_cast<float>(members());
  for (const float i : {0.f, 3.f, 1.f, 4.f, 2.f, 5.f}) want.push_back(2 * n * i + 10 * n * (n - 1));
  for (const tiny_tensor* one : reduced(TINY_SUM, all)) {
    EXPECT_EQ(shape(one), (Dims{3, 2}));
    EXPECT_EQ(read(one), want);
  }
  EXPECT_EQ(read(reduced(TINY_SUM, parts)[1]), Floats(5, n / 2));
}

TEST_P(Collective, ResultsShareNothing) {
  const Tensors all = floats_of({2}, 2, [](size_t, int64_t i) { return static_cast<float>(i); });
  const Tensors sums = reduced(TINY_SUM, all);
  tiny_tensor* other = made<float>(0, TINY_FLOAT32, {2}, {7, 8});
  ASSERT_EQ(tiny_assign(sums[0], other), TINY_OK) << tiny_last_error();
  EXPECT_EQ(read(sums[0]), (Floats{7, 8}));
  EXPECT_EQ(read(sums[1]), (Floats{0, static_cast<float>(members())}));
  EXPECT_EQ(read(all[0]), (Floats{0, 1}));
}

TEST_P(Collective, PartsAreGatheredAlongAnAxis) {
  const auto value = [](size_t m, int64_t i) {
    return static_cast<float>(m * 100) + static_cast<float>(i);
  };
  const Tensors all = floats_of({2, 3}, 6, value);
  const auto n = static_cast<int64_t>(members());
  for (const int64_t axis : {0, 1, -1}) {
    Floats want;
    for (int64_t row = 0; row < (axis == 0 ? 2 * n : 2); ++row)
      for (int64_t column = 0; column < (axis == 0 ? 3 : 3 * n); ++column) {
        const int64_t m = axis == 0 ? row / 2 : column / 3;
        want.push_back(value(static_cast<size_t>(m), row % 2 * 3 + column % 3));
      }
    const Tensors outs = gathered(all, axis);
    for (size_t m = 0; m < members(); ++m) {
      EXPECT_EQ(device_of(outs[m]), device_of(all[m]));
      EXPECT_EQ(shape(outs[m]), axis == 0 ? (Dims{2 * n, 3}) : (Dims{2, 3 * n}));
      EXPECT_EQ(read(outs[m]), want) << "axis " << axis << ", member " << m;
    }
  }
}

TEST_P(Collective, LargeOnesGoPieceByPiece) {
  constexpr int64_t kCount = (3 << 19) + 5;
  const auto value = [](size_t m, int64_t i) {
    return static_cast<float>((i + static_cast<int64_t>(m)) % 1000);
  };
  const Tensors sums = reduced(TINY_SUM, floats_of({kCount}, kCount, value));
  const Floats got = read(sums.back());
  for (int64_t i = 0; i < kCount; i += 997) {
    float want = 0;
    for (size_t m = 0; m < members(); ++m) want += value(m, i);
    ASSERT_EQ(got[static_cast<size_t>(i)], want) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Rings, Collective,
                         ::testing::Values(Ring{"Cpu", {"cpu", "cpu", "cpu", "cpu"}},
                                           Ring{"Mixed", {"cpu", "far", "interp"}},
                                           Ring{"OpenCL", {"opencl", "opencl:1"}},
                                           Ring{"Parts", {"opencl:0.0/2", "opencl:0.1/2"}},
                                           Ring{"Cuda", {"cuda", "cuda:1", "cuda:2"}}),
                         [](const auto& info) { return std::string(info.param.name); });

// NCCL in the place of the ring: tests/emulation/fake_nccl.cpp, where LD_LIBRARY_PATH names it.
class CollectiveNccl : public ::testing::Test, protected Members {
 protected:
  CollectiveNccl() : library_(dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL)) {}
  void SetUp() override {
    if (!fake_.is_there()) GTEST_SKIP() << tiny::testing::kNoFakeCuda;
    if (!library_ || !dlsym(library_, "fake_nccl_count"))
      GTEST_SKIP() << "libnccl.so.2 is not the emulated one: set LD_LIBRARY_PATH";
    fake_.reset();
    open_all({"cuda", "cuda:1", "cuda:2"});
    ASSERT_EQ(missing_, "");
    all_ = floats_of({100}, 100, [](size_t m, int64_t i) {
      return static_cast<float>(i + 100 * static_cast<int64_t>(m));
    });
    for (int64_t i = 0; i < 100; ++i) sum_.push_back(static_cast<float>(3 * i + 300));
  }
  void TearDown() override {
    close_all();
    if (!library_ || !fake_.is_there() || all_.empty()) return;
    EXPECT_EQ(count("communicators"), 0);
    EXPECT_EQ(fake_.left(), "");
    fake_.reset();
  }
  int64_t count(const char* what) const {
    return reinterpret_cast<int64_t (*)(const char*)>(dlsym(library_, "fake_nccl_count"))(what);
  }
  // How often NCCL is asked for sums while `work` is done.
  template <class Work>
  int64_t sums_in(const Work& work) const {
    const int64_t before = count("ncclAllReduce");
    work();
    return count("ncclAllReduce") - before;
  }

  const tiny::testing::Setting devices_{"FAKE_CUDA_DEVICES", "3"};
  const tiny::testing::FakeCuda fake_;
  void* library_;
  Tensors all_;
  Floats sum_;
};

TEST_F(CollectiveNccl, SumsAndProductsAreItsOwn) {
  EXPECT_EQ(sums_in([&] {
              for (const tiny_tensor* one : reduced(TINY_SUM, all_)) EXPECT_EQ(read(one), sum_);
            }),
            3);
  EXPECT_EQ(sums_in([&] { EXPECT_EQ(read(reduced(TINY_MEAN, all_)[2])[1], 101); }), 3);
  EXPECT_EQ(sums_in([&] { EXPECT_EQ(read(reduced(TINY_PROD, all_)[1])[1], 1 * 101 * 201); }), 3);
  EXPECT_EQ(count("communicators"), 3) << "one is made for all calls over the same devices";
  EXPECT_EQ(read(gathered(all_, 0)[1])[250], 250);
  EXPECT_EQ(count("ncclAllGather"), 3);
}

// What NCCL leaves open, does not know or would do in its own order.
TEST_F(CollectiveNccl, TheRestIsTheRing) {
  EXPECT_EQ(sums_in([&] { EXPECT_EQ(read(reduced(TINY_REDUCE_MAX, all_)[0])[0], 200); }), 0);
  Tensors shorts;
  for (size_t m = 0; m < 3; ++m) shorts.push_back(made<int16_t>(m, TINY_INT16, {2}, {1, 2}));
  EXPECT_EQ(sums_in([&] {
              EXPECT_EQ(read<int16_t>(reduced(TINY_SUM, shorts)[1]), (std::vector<int16_t>{3, 6}));
            }),
            0);
  EXPECT_EQ(sums_in([&] {
              const Tensors twice = {all_[0], all_[0], all_[1]};
              EXPECT_EQ(read(reduced(TINY_SUM, twice)[2])[1], 1 + 1 + 101);
            }),
            0);
}

TEST_F(CollectiveNccl, WhereResultsAreToBeTheSameBitsTheRingSums) {
  tiny_options* options = nullptr;
  ASSERT_EQ(tiny_options_create(&options), TINY_OK);
  ASSERT_EQ(tiny_options_set_string(options, "device", "cuda"), TINY_OK);
  ASSERT_EQ(tiny_options_set_int(options, "deterministic", 1), TINY_OK);
  tiny_context *first = nullptr, *second = nullptr;
  ASSERT_EQ(tiny_context_create(options, &first), TINY_OK) << tiny_last_error();
  tiny_options_release(options);
  ASSERT_EQ(tiny_context_on_device(first, "cuda:1", &second), TINY_OK) << tiny_last_error();
  const float values[] = {1, 2};
  const int64_t dims[] = {2};
  Tensors both(2);
  ASSERT_EQ(tiny_tensor_from_data(first, TINY_FLOAT32, dims, 1, values, sizeof values, &both[0]),
            TINY_OK);
  ASSERT_EQ(tiny_tensor_from_data(second, TINY_FLOAT32, dims, 1, values, sizeof values, &both[1]),
            TINY_OK);
  for (tiny_tensor* one : both) keep(one);
  EXPECT_EQ(sums_in([&] { EXPECT_EQ(read(reduced(TINY_SUM, both)[1]), (Floats{2, 4})); }), 0);
  tiny_context_release(second);
  tiny_context_release(first);
}

// Each call in its turn: the error has NCCL's words, and the next sum has a new communicator.
TEST_F(CollectiveNccl, ItsErrorsAreTold) {
  for (const char* call : {"ncclCommInitAll", "ncclGroupStart", "ncclAllReduce", "ncclGroupEnd",
                           "ncclCommGetAsyncError", "late"}) {
    {
      const tiny::testing::Setting fails("FAKE_NCCL_FAIL", call);
      Tensors outs(3);
      EXPECT_EQ(tiny_allreduce(all_.data(), 3, TINY_SUM, nullptr, outs.data(), 3),
                TINY_ERROR_DEVICE)
          << call;
      const std::string name = std::string(call) == "late" ? "ncclAllReduce" : call;
      EXPECT_TRUE(error_has(("NCCL: " + name + ": unhandled cuda error (planted)").c_str()))
          << tiny_last_error();
      EXPECT_EQ(outs[0], nullptr);
    }
    EXPECT_EQ(read(reduced(TINY_SUM, all_)[2]), sum_) << call;
    EXPECT_EQ(count("communicators"), 3) << call;
  }
}

class CollectiveMistakes : public ::testing::Test, protected Members {
 protected:
  void SetUp() override { open_all({"cpu", "far"}); }
  void TearDown() override { close_all(); }
};

TEST_F(CollectiveMistakes, AreNamed) {
  tiny_tensor* a = made<float>(0, TINY_FLOAT32, {2}, {1, 2});
  tiny_tensor* b = made<float>(1, TINY_FLOAT32, {1, 2}, {1, 2});
  tiny_tensor* c = made<int32_t>(1, TINY_INT32, {2}, {1, 2});
  tiny_tensor *outs[2] = {a, a}, *both[] = {a, b};
  EXPECT_EQ(tiny_allreduce(both, 2, TINY_SUM, nullptr, outs, 2), TINY_ERROR_SHAPE);
  EXPECT_TRUE(error_has("tensors of shapes [2] and [1, 2]")) << tiny_last_error();
  EXPECT_EQ(outs[0], nullptr);
  both[1] = c;
  EXPECT_EQ(tiny_allgather(both, 2, 0, nullptr, outs, 2), TINY_ERROR_DTYPE);
  EXPECT_TRUE(error_has("tensors of float32 and int32")) << tiny_last_error();
  both[1] = a;
  EXPECT_EQ(tiny_allgather(both, 2, 1, nullptr, outs, 2), TINY_ERROR_SHAPE);
  EXPECT_TRUE(error_has("axis 1 of shape [2]")) << tiny_last_error();
  EXPECT_EQ(tiny_allreduce(both, 2, TINY_ANY, nullptr, outs, 2), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("unknown op 5; known: TINY_SUM (0)")) << tiny_last_error();
  EXPECT_EQ(tiny_allreduce(both, 2, TINY_SUM, nullptr, outs, 1), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("room for 1 results of 2 tensors")) << tiny_last_error();
  EXPECT_EQ(tiny_allreduce(both, 0, TINY_SUM, nullptr, outs, 0), TINY_ERROR_INVALID_ARGUMENT);
  both[1] = nullptr;
  EXPECT_EQ(tiny_allreduce(both, 2, TINY_SUM, nullptr, outs, 2), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("tensors[1] is NULL")) << tiny_last_error();
}

// What has its value in runs of a program alone, when that is not to be.
TEST_F(CollectiveMistakes, ValuesOfProgramsAreToldApart) {
  tiny_tensor* both[] = {input({2}), made<float>(1, TINY_FLOAT32, {2}, {1, 2})};
  const Tensors sums = reduced(TINY_SUM, {both, both + 2});
  float elements[2];
  EXPECT_EQ(tiny_tensor_read(sums[1], elements, sizeof elements), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("the value depends on an input")) << tiny_last_error();
  // An input that is not listed, whichever device's output is asked for.
  tiny_program* program = nullptr;
  EXPECT_EQ(tiny_program_compile(nullptr, 0, &sums[1], 1, &program), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("depends on an input")) << tiny_last_error();
  EXPECT_EQ(program, nullptr);
  // Of a size that is a variable's.
  tiny_variable* size = nullptr;
  ASSERT_EQ(tiny_variable_create(contexts_[0], "n", 2, 4, &size), TINY_OK);
  int64_t mark = 0;
  ASSERT_EQ(tiny_variable_dim(size, &mark), TINY_OK);
  tiny_tensor* open = input({mark});
  tiny_tensor* outs[2] = {};
  tiny_tensor* opens[] = {open, open};
  EXPECT_EQ(tiny_allreduce(opens, 2, TINY_SUM, nullptr, outs, 2), TINY_ERROR_UNSUPPORTED);
  EXPECT_TRUE(error_has("a tensor whose size is a variable's")) << tiny_last_error();
  tiny_variable_release(size);
  // The result of an exchange may be the input of a program of one device.
  tiny_tensor* twice = nullptr;
  ASSERT_EQ(tiny_binary(TINY_ADD, sums[1], sums[1], &twice), TINY_OK);
  keep(twice);
  ASSERT_EQ(tiny_program_compile(&sums[1], 1, &twice, 1, &program), TINY_OK) << tiny_last_error();
  tiny_run* run = nullptr;
  ASSERT_EQ(tiny_run_create(program, &run), TINY_OK);
  ASSERT_EQ(tiny_run_set_input(run, 0, both[1]), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_run_read_output(run, 0, elements, sizeof elements), TINY_OK);
  EXPECT_EQ((Floats{elements[0], elements[1]}), (Floats{2, 4}));
  tiny_run_release(run);
  tiny_program_release(program);
}

TEST_F(CollectiveMistakes, ATransportThatIsNotThereIsTold) {
  tiny_processes* processes = nullptr;
  EXPECT_EQ(tiny_processes_open("libno_such_transport.so", &processes), TINY_ERROR_UNSUPPORTED);
  EXPECT_EQ(processes, nullptr);
  EXPECT_TRUE(error_has("no transport between processes: libno_such_transport.so"))
      << tiny_last_error();
  EXPECT_EQ(tiny_processes_open("libm.so.6", &processes), TINY_ERROR_UNSUPPORTED);
  EXPECT_TRUE(error_has("libm.so.6 is no transport")) << tiny_last_error();
  tiny_processes_release(nullptr);
  int64_t rank = 1;
  EXPECT_EQ(tiny_processes_rank(nullptr, &rank), TINY_ERROR_INVALID_ARGUMENT);
}

// One context may have several of the tensors.
TEST_F(CollectiveMistakes, ADeviceMayTakePartTwice) {
  tiny_tensor* all[] = {made<float>(0, TINY_FLOAT32, {2}, {1, 2}),
                        made<float>(0, TINY_FLOAT32, {2}, {3, 4}),
                        made<float>(1, TINY_FLOAT32, {2}, {5, 6})};
  const Tensors sums = reduced(TINY_SUM, {all, all + 3});
  for (const tiny_tensor* one : sums) EXPECT_EQ(read(one), (Floats{9, 12}));
  EXPECT_EQ(read(reduced(TINY_SUM, {all, all + 1})[0]), (Floats{1, 2}));
}

// Asked for by a function that one of the contexts calls; the other is left as it was entered.
TEST_F(CollectiveMistakes, AContextThatIsAtWorkIsNotWaitedFor) {
  struct Call {
    tiny_tensor* tensors[2] = {};
    std::vector<tiny_status> told;
  };
  static Call call;  // the log is told until the contexts end, after the test
  std::vector<tiny_context*> logging(2);
  for (tiny_context*& one : logging) {
    tiny_options* options = nullptr;
    ASSERT_EQ(tiny_options_create(&options), TINY_OK);
    ASSERT_EQ(tiny_options_set_int(options, "debug", 2), TINY_OK);
    const auto log = [](void* user, const char*) {
      auto& c = *static_cast<Call*>(user);
      tiny_tensor* outs[2] = {};
      if (c.tensors[1]) c.told.push_back(tiny_allreduce(c.tensors, 2, TINY_SUM, nullptr, outs, 2));
    };
    ASSERT_EQ(tiny_options_set_log(options, log, &call), TINY_OK);
    ASSERT_EQ(tiny_context_create(options, &one), TINY_OK);
    tiny_options_release(options);
  }
  for (size_t i = 0; i < 2; ++i) {
    const float values[] = {1, 2};
    const int64_t dims[] = {2};
    ASSERT_EQ(tiny_tensor_from_data(logging[i], TINY_FLOAT32, dims, 1, values, sizeof values,
                                    &call.tensors[i]),
              TINY_OK);
  }
  for (const tiny_tensor* one : {call.tensors[0], call.tensors[1]}) {
    tiny_tensor* sum = nullptr;
    ASSERT_EQ(tiny_binary(TINY_ADD, one, one, &sum), TINY_OK);
    EXPECT_EQ(read(keep(sum)), (Floats{2, 4}));
  }
  EXPECT_FALSE(call.told.empty());
  for (const tiny_status one : call.told) EXPECT_EQ(one, TINY_ERROR_BUSY);
  Tensors all{call.tensors, call.tensors + 2};
  call.tensors[1] = nullptr;
  EXPECT_EQ(read(reduced(TINY_SUM, all)[1]), (Floats{2, 4}));
  for (tiny_tensor* one : all) keep(one);
  for (tiny_context* one : logging) tiny_context_release(one);
}

// In either order of the devices, from two threads.
TEST_F(CollectiveMistakes, ThreadsDoNotWaitForEachOther) {
  tiny_tensor* here = made<float>(0, TINY_FLOAT32, {300}, Floats(300, 1));
  tiny_tensor* there = made<float>(1, TINY_FLOAT32, {300}, Floats(300, 2));
  const auto sum = [](Tensors all) {
    for (int i = 0; i < 20; ++i) {
      tiny_tensor* outs[2] = {};
      ASSERT_EQ(tiny_allreduce(all.data(), 2, TINY_SUM, nullptr, outs, 2), TINY_OK)
          << tiny_last_error();
      Floats got(300);
      ASSERT_EQ(tiny_tensor_read(outs[1], got.data(), got.size() * sizeof(float)), TINY_OK);
      EXPECT_EQ(got, Floats(300, 3));
      for (tiny_tensor* one : outs) tiny_tensor_release(one);
    }
  };
  std::thread forth([&] { sum({here, there}); }), back([&] { sum({there, here}); });
  forth.join();
  back.join();
}

}  // namespace
