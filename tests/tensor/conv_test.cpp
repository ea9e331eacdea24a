// Transposed convolutions are what their definition says, for random windows.
#include <gtest/gtest.h>

#include "base/error.h"
#include "codegen/figures.h"
#include "cost/machine.h"
#include "schedule/schedule.h"
#include "tensor/program.h"
#include "tensor/window.h"
#include "tests/support/context.h"
#include "tests/support/environment.h"
#include "tests/support/failure.h"
#include "tests/support/random_kernels.h"
#include "tests/support/tensors.h"
#include "tests/tensor/arrays.h"

namespace tiny {
namespace {

using testing::Array;
using testing::Floats;

// A transposed convolution of small integers.
struct Sample : testing::Choices {
  explicit Sample(uint64_t seed) : Choices(seed) {
    const int64_t spatial = 1 + below(2);
    groups = 1 + below(2);
    x.shape = {1 + below(2), groups * (1 + below(5))};
    weight.shape = {x.shape[1], 1 + below(4)};
    for (int64_t i = 0; i < spatial; ++i) {
      const int64_t kernel = 1 + below(4), size = 1 + below(7);
      const int64_t stride = 1 + below(4), dilation = chance(30) ? 2 : 1;
      const int64_t reach = dilation * (kernel - 1) + 1;
      const int64_t all = (size - 1) * stride + reach;
      const int64_t before = std::min(below(reach + 1), all - 1) - (chance(10) ? 2 : 0);
      const int64_t after = std::min(below(reach + 1), all - 1 - std::max<int64_t>(before, 0));
      x.shape.push_back(size);
      weight.shape.push_back(kernel);
      options.strides.push_back(stride);
      options.dilations.push_back(dilation);
      options.before.push_back(before);
      options.after.push_back(after);
      more.push_back(below(std::max(stride, dilation)));
      sizes.push_back(all - before - after + more.back());
    }
    for (Array* a : {&x, &weight})
      *a = testing::generate(a->shape, [&](const Ints&) { return below(9) - 4; });
    if (chance(50))
      bias = testing::generate({groups * weight.shape[1]}, [&](const Ints&) { return below(9); });
  }

  // Every input adds its multiple of the kernel to where that lies.
  Array want() const {
    Ints shape{x.shape[0], groups * weight.shape[1]};
    shape.insert(shape.end(), sizes.begin(), sizes.end());
    Array out = testing::generate(
        shape, [&](const Ints& i) { return bias.values.empty() ? 0 : bias.at({i[1]}); });
    const int64_t in = x.shape[1] / groups, made = weight.shape[1];
    testing::for_each_index(x.shape, [&](const Ints& i) {
      Ints taps(weight.shape.begin() + 1, weight.shape.end());
      testing::for_each_index(taps, [&](const Ints& k) {
        int64_t flat = i[0] * shape[1] + i[1] / in * made + k[0];
        for (size_t a = 0; a < sizes.size(); ++a) {
          const int64_t to =
              i[2 + a] * options.strides[a] + k[1 + a] * options.dilations[a] - options.before[a];
          if (to < 0 || to >= sizes[a]) return;
          flat = flat * sizes[a] + to;
        }
        Ints tap{i[1]};
        tap.insert(tap.end(), k.begin(), k.end());
        out.values[static_cast<size_t>(flat)] += x.at(i) * weight.at(tap);
      });
    });
    return out;
  }

  Window window() const {
    Window out = options;
    out.output_padding = more;
    out.groups = groups;
    return out;
  }

  int64_t groups = 1;
  Array x, weight, bias;
  Window options;
  Ints more, sizes;
};

TEST(ConvTranspose, IsItsDefinition) {
  const uint64_t first = testing::number_from("SEED", 1);
  const uint64_t count = testing::number_from("SEEDS", 150);
  const Ref<Context> context = testing::new_context("cpu");
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Sample sample(seed);
    const Array want = sample.want();
    const Tensor got = conv_transpose(
        tensor_of(context, sample.x), tensor_of(context, sample.weight),
        sample.bias.values.empty() ? Tensor() : tensor_of(context, sample.bias), sample.window());
    ASSERT_EQ(const_dims(got.shape()), want.shape) << "SEED=" << seed;
    ASSERT_EQ(testing::floats_of(got), Floats(want.values.begin(), want.values.end()))
        << "SEED=" << seed;
  }
}

// So much work that phases of fewer taps have a convolution of their own.
struct LargeSample : Sample {
  LargeSample(const Ints& kernel, const Ints& strides, const Ints& dilations, int64_t count,
              int64_t channels = 16)
      : Sample(1) {
    groups = count;
    x.shape = {1, 24, 27, 26};
    weight.shape = {24, channels, kernel[0], kernel[1]};
    bias = {};
    options = {strides, dilations, {1, 0}, {0, 1}};
    more = {1, 0};
    sizes = {};
    for (size_t i = 0; i < 2; ++i)
      sizes.push_back((x.shape[2 + i] - 1) * strides[i] + dilations[i] * (kernel[i] - 1) + more[i]);
    for (Array* a : {&x, &weight})
      *a = testing::generate(a->shape, [&](const Ints&) { return below(9) - 4; });
  }
};

TEST(ConvTranspose, PhasesOfFewerTapsAreItsDefinition) {
  const Ref<Context> context = testing::new_context("cpu");
  for (const LargeSample& sample :
       {LargeSample({3, 3}, {2, 2}, {1, 1}, 2), LargeSample({5, 2}, {3, 2}, {1, 2}, 1),
        LargeSample({7, 1}, {2, 1}, {1, 1}, 1, 8)}) {
    const Tensor got = conv_transpose(tensor_of(context, sample.x),
                                      tensor_of(context, sample.weight), Tensor(), sample.window());
    const Array want = sample.want();
    ASSERT_EQ(const_dims(got.shape()), want.shape);
    EXPECT_EQ(testing::floats_of(got), Floats(want.values.begin(), want.values.end()));
  }
}

// Of a kernel of 3 by 3 with a stride of 2 there are four phases of 4, 2, 2 and 1 taps.  Few
// channels fill vectors together with those of other phases.
TEST(ConvTranspose, PhasesAreNotFilledUp) {
  struct Case {
    int64_t channels, kernel, stride;
    double most;  // taps of an element of x and one of its channels
  };
  for (const Case& c :
       {Case{32, 3, 2, 9.5}, Case{8, 3, 2, 12.5}, Case{8, 4, 3, 16.8}, Case{32, 7, 2, 50}}) {
    const Ref<Context> context = testing::planning_context();
    const Tensor x = make_placeholder(context, kFloat32, {1, 64, 64, 64});
    const Tensor w = make_placeholder(context, kFloat32, {64, c.channels, c.kernel, c.kernel});
    const Tensor y = conv_transpose(x, w, Tensor(), {.strides = {c.stride, c.stride}});
    const UOp stored = context->graph().make(Op::Contiguous, {y.node()});
    double operations = 0;
    for (const ScheduledKernel& k : make_schedule({&stored, 1}, avx512_machine()).kernels)
      operations += count_operations(k.kernel);
    const double taps = operations / (2.0 * 64 * static_cast<double>(c.channels) * 64 * 64);
    EXPECT_LT(taps, c.most * 68 * 68 / (64 * 64)) << c.channels << ", " << c.kernel;
  }
}

// A stride far longer than the kernel makes no filters for what lies between.
TEST(ConvTranspose, LongStridesCostNothing) {
  const Ref<Context> context = testing::new_context("cpu");
  const int64_t stride = int64_t{1} << 40;
  const Tensor x = testing::floats(context, {2}, {1, 1, 1});
  const Tensor w = testing::floats(context, {1, 3, 5}, {1, 1, 3});
  Window window;
  window.strides = {stride};
  window.output_padding = {2};
  const Tensor y = conv_transpose(x, w, Tensor(), window);
  EXPECT_EQ(testing::floats_of(y), Floats({2, 6, 10, 0, 0}));
}

TEST(ConvTranspose, ErrorsNameTheCall) {
  const Ref<Context> context = testing::new_context("cpu");
  const Tensor x = testing::floats(context, Floats(4, 1), {1, 1, 4});
  const Tensor w = testing::floats(context, Floats(6, 1), {1, 2, 3});
  testing::expect_failure(testing::failure_of([&] { conv_transpose(x, w, x, {}); }), Status::Shape,
                          {"conv_transpose: bias [1, 1, 4] for 2 channels"});
  const Window all{{}, {}, {3}, {3}};
  testing::expect_failure(testing::failure_of([&] { conv_transpose(x, w, Tensor(), all); }),
                          Status::Shape,
                          {"conv_transpose: nothing is left of [1, 1, 4] with kernel [3]"});
}

}  // namespace
}  // namespace tiny
