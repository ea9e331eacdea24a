// The option "deterministic": the same bits with any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "autograd/gradient.h"
#include "base/error.h"
#include "tensor/activation.h"
#include "tensor/attention.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tensor/window.h"
#include "tests/support/context.h"
#include "tests/support/environment.h"
#include "tests/support/failure.h"
#include "tests/support/random_kernels.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Floats;
using Make = std::function<std::vector<Tensor>(const Ref<Context>&)>;

constexpr int64_t kThreads[] = {2, 3, 8};

// Without the disk cache: each context makes its own kernels.
Ref<Context> with_threads(int64_t threads, bool deterministic) {
  Flags flags = testing::flags_for("cpu");
  flags.cache = 0;
  flags.threads = threads;
  flags.deterministic = deterministic ? 1 : 0;
  return make_ref<Context>(flags);
}

std::string bytes_of(std::vector<Tensor> made) {
  std::vector<Tensor*> together;
  for (Tensor& t : made) together.push_back(&t);
  realize(together);
  std::string all;
  for (Tensor& t : made) {
    std::string bytes(static_cast<size_t>(element_count(t) * t.dtype().bytes()), '\0');
    read(t, bytes.data(), std::ssize(bytes));
    all += bytes;
  }
  return all;
}

void expect_the_same_bits(const Make& make) {
  const std::string one = bytes_of(make(with_threads(1, true)));
  for (const int64_t threads : kThreads)
    EXPECT_TRUE(bytes_of(make(with_threads(threads, true))) == one) << threads << " threads";
}

Tensor data(const Ref<Context>& context, const Ints& shape, int64_t seed = 13) {
  Floats values;
  for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i)
    values.push_back(static_cast<float>((i * 7919 + seed) % 1009 - 504) / 731);
  return testing::floats(context, values, shape);
}

std::vector<Tensor> long_sums(const Ref<Context>& context) {
  const Tensor x = data(context, {300, 7001}), y = data(context, {7001, 3}, 5);
  return {sum(x, {0, 1}), sum(x, {0}), sum(x, {1}), matmul(x, y), softmax(x, 1), softmax(x, 0)};
}

TEST(Deterministic, LongSums) {
  expect_the_same_bits(long_sums);
}

// Or the tests here would show nothing.
TEST(Deterministic, WithoutItThreadsDecideHowSumsAreCut) {
  EXPECT_FALSE(bytes_of(long_sums(with_threads(1, false))) ==
               bytes_of(long_sums(with_threads(3, false))));
}

TEST(Deterministic, Products) {
  for (const Ints& s : {Ints{1, 900, 2000}, Ints{37, 400, 3000}, Ints{256, 256, 256}})
    expect_the_same_bits([&](const Ref<Context>& context) {
      return std::vector{matmul(data(context, {s[0], s[2]}), data(context, {s[2], s[1]}, 3))};
    });
}

TEST(Deterministic, Attention) {
  expect_the_same_bits([](const Ref<Context>& context) {
    const Ints shape{1, 4, 200, 32};
    return std::vector{scaled_dot_product_attention(data(context, shape), data(context, shape, 3),
                                                    data(context, shape, 7), {})
                           .y};
  });
}

// A convolution, a norm over the batch and a layer of all, forwards and backwards: sums of weights'
// slopes are the long ones of few elements.
TEST(Deterministic, StepsOfTraining) {
  expect_the_same_bits([](const Ref<Context>& context) {
    const Tensor x = data(context, {16, 3, 28, 28}), w = data(context, {24, 3, 3, 3}, 3);
    const Tensor v = data(context, {32, 24, 3, 3}, 5), last = data(context, {32 * 28 * 28, 10}, 7);
    Window window;
    window.before = window.after = {1, 1};
    Tensor y = relu(conv(x, w, Tensor(), window));
    y = y - mean(y, {0, 2, 3}, true);
    y = relu(conv(y, v, Tensor(), window));
    y = log_softmax(matmul(reshape(y, {16, 32 * 28 * 28}), last), 1);
    const Tensor losses[] = {mean(y * y, {0, 1})}, by[] = {w, v, last, x};
    return gradients(losses, {}, by);
  });
}

// Graphs by seed, of sizes at which kernels are shared and sums cut, and their slopes.
class RandomGraph : public testing::Choices {
 public:
  RandomGraph(const Ref<Context>& context, uint64_t seed) : Choices(seed), context_(context) {}

  std::vector<Tensor> make() {
    std::vector<Tensor> by;
    const Tensor y = network(by);
    const Tensor losses[] = {mean(y * y, axes_of(y))};
    std::vector<Tensor> made = gradients(losses, {}, by);
    made.push_back(y);
    return made;
  }

 private:
  // As often in each doubling.
  int64_t size_between(int64_t least, int64_t doublings) {
    const int64_t size = least << below(doublings);
    return size + below(size);
  }
  static Ints axes_of(const Tensor& t) {
    Ints axes;
    for (int64_t i = 0; i < std::ssize(t.shape()); ++i) axes.push_back(i);
    return axes;
  }
  Tensor given(const Ints& shape) { return data(context_, shape, below(1000)); }
  Tensor given(const Ints& shape, std::vector<Tensor>& by) {
    by.push_back(given(shape));
    return by.back();
  }

  Tensor network(std::vector<Tensor>& by) {
    switch (below(4)) {
      case 0: {
        const int64_t channels = size_between(1, 6), side = size_between(7, 3);
        const int64_t kernel = 1 + 2 * below(3);
        const Ints filters{size_between(1, 6), channels, kernel, kernel};
        Window window;
        window.before = window.after = {kernel / 2, kernel / 2};
        window.strides = Ints(2, 1 + below(2));
        const Tensor x = given({1 + below(8), channels, side, side}, by);
        const Tensor y = conv(x, given(filters, by), given({filters[0]}, by), window);
        return below(2) ? relu(y) : y - mean(y, {0, 2, 3}, true);
      }
      case 1: {
        const int64_t steps = size_between(8, 12);
        const int64_t rows = fitting(size_between(1, 8), steps);
        const int64_t columns = fitting(size_between(1, 8), steps);
        const Tensor x = given({rows, steps}, by);
        return softmax(matmul(x, given({steps, columns}, by)), below(2));
      }
      case 2: {
        const int64_t width = size_between(1, 10), rows = fitting(size_between(16, 10), width);
        const Tensor x = given({rows, width}, by);
        return layer_norm(x, given({width}, by), given({width}, by));
      }
      default: {
        const int64_t columns = size_between(1, 10), rows = size_between(1, 10);
        const Tensor x = given({fitting(size_between(1, 8), rows * columns), rows, columns}, by);
        return sum(exp(x), {below(3)}) * mean(x, {0, 1, 2});
      }
    }
  }
  // At most `rows`, of so many elements each, that tests have the time for.
  static int64_t fitting(int64_t rows, int64_t elements) {
    return std::clamp<int64_t>((int64_t{1} << 20) / elements, 1, rows);
  }

  Ref<Context> context_;
};

// GRAPHS and GRAPH_SEED look further or at one.
TEST(Deterministic, RandomGraphs) {
  const uint64_t first = testing::number_from("GRAPH_SEED", 1);
  const uint64_t end = first + testing::number_from("GRAPHS", 40);
  for (uint64_t seed = first; seed < end && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    expect_the_same_bits(
        [&](const Ref<Context>& context) { return RandomGraph(context, seed).make(); });
  }
}

TEST(Deterministic, NothingIsChosenByTime) {
  Flags searching = testing::flags_for("cpu");
  searching.deterministic = 1;
  Flags measuring = searching;
  searching.beam = 2;
  measuring.processor = "measure";
  testing::expect_failure(testing::failure_of([&] { make_ref<Context>(searching); }),
                          Status::InvalidArgument, {"deterministic", "beam=2"});
  testing::expect_failure(testing::failure_of([&] { make_ref<Context>(measuring); }),
                          Status::InvalidArgument, {"deterministic", "processor=measure"});
}

}  // namespace
}  // namespace tiny
