// Views by their strides: exactly those that were asked for, of the memory that is there.
#include "tensor/strides.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Floats;

class TensorStrides : public ::testing::TestWithParam<std::string> {
 protected:
  Tensor counting(int64_t count) {
    Floats values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), 0.0F);
    return testing::floats(context_, values);
  }
  Tensor scalar(double value) { return Tensor::weak_float(context_, value); }
  static Floats get(const Tensor& t) { return testing::floats_of(t); }
  static void compute(Tensor& t) {
    Tensor* one[] = {&t};
    realize(one);
  }
  static void expect_view(const Tensor& t, const View& view) {
    EXPECT_EQ(t.view(), view) << to_string(t.view().shape) << to_string(t.view().strides)
                              << to_string(t.view().offset);
  }
  // The elements of the memory that the tensor is a view of.
  static Floats memory_of(const Tensor& t) {
    const int64_t count = product(shape_of(t.cell()->node())).value();
    return get(as_strided(t, {count}, {1}, Dim(0) - t.view().offset));
  }
  int64_t launches() { return context_->counters().launches; }
  int64_t copies() { return context_->counters().copies; }

  Ref<Context> context_ = testing::new_context(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices, TensorStrides, ::testing::ValuesIn(testing::computing_devices()),
                         [](const auto& info) { return info.param; });

// The goldens are PyTorch's (torch 2.13.0+cpu).
TEST_P(TensorStrides, test_as_strided_basic) {
  Tensor base = counting(12);
  const Tensor view = as_strided(base, {2, 3}, {1, 4}, 1);
  EXPECT_EQ(get(view), (Floats{1, 5, 9, 2, 6, 10}));
  expect_view(view, {{2, 3}, {1, 4}, 1});
  EXPECT_EQ(get(as_strided(base, {4}, {3}, 0)), (Floats{0, 3, 6, 9}));
  EXPECT_EQ(get(as_strided(base, {3, 4}, {2, 1}, 0)), (Floats{0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7}));
  EXPECT_EQ(get(as_strided(base, {2, 3}, {0, 1}, 4)), (Floats{4, 5, 6, 4, 5, 6}));
  // Of a view, the memory's elements.
  const Tensor turned = permute(reshape(base, {3, 4}), {1, 0});
  EXPECT_EQ(get(as_strided(turned, {4}, {3}, 0)), (Floats{0, 3, 6, 9}));
  const Tensor behind = slice(base, {3}, {kSliceEnd});
  EXPECT_EQ(get(as_strided(behind, {2}, {1}, 0)), (Floats{3, 4}));
  EXPECT_EQ(get(as_strided(behind, {2}, {1}, -3)), (Floats{0, 1}));
  EXPECT_EQ(get(as_strided(view, {2}, {2}, 3)), (Floats{4, 6}));
  // What has no element may be anywhere, and axes of one element have any stride.
  expect_view(as_strided(base, {2, 0}, {5, 3}, 40), {{2, 0}, {5, 3}, 40});
  expect_view(as_strided(base, {1, 5}, {100, 2}, 0), {{1, 5}, {100, 2}, 0});
  EXPECT_THROW(as_strided(base, {4, 4}, {4, 1}, 0), Error);
  EXPECT_THROW(as_strided(base, {4}, {-1}, 2), Error);
  // tinygrad's case.
  const Tensor rows = as_strided(counting(70), {5, 5}, {7, 1}, 21);
  EXPECT_EQ(get(sum(rows, {1})), (Floats{115, 150, 185, 220, 255}));
}

TEST_P(TensorStrides, AViewAndItsBaseHaveTheSameElements) {
  Tensor base = counting(12);
  Tensor view = as_strided(base, {2, 3}, {1, 4}, 1);
  const Tensor sibling = as_strided(base, {3}, {4}, 1);
  assign(view, mul(view, scalar(10)));
  EXPECT_EQ(get(base), (Floats{0, 10, 20, 3, 4, 50, 60, 7, 8, 90, 100, 11}));
  EXPECT_EQ(get(sibling), (Floats{10, 50, 90}));
  assign(base, scalar(1));
  EXPECT_EQ(get(view), Floats(6, 1));
  EXPECT_EQ(copies(), 0);
}

TEST_P(TensorStrides, test_empty_strided_alloc) {
  struct Golden {
    Ints shape, strides;
    int64_t elements;
  };
  const Golden goldens[] = {{{2, 3}, {3, 1}, 6}, {{2, 3}, {1, 2}, 6},  {{2, 3}, {10, 2}, 15},
                            {{2, 3}, {0, 1}, 3}, {{0, 3}, {3, 1}, 0},  {{}, {}, 1},
                            {{4, 4}, {1, 1}, 7}, {{1, 5}, {100, 2}, 9}};
  for (const auto& [shape, strides, elements] : goldens) {
    const Tensor made = empty_strided(context_, kFloat32, shape, strides);
    expect_view(made, {to_shape(shape), to_shape(strides), 0});
    EXPECT_EQ(product(shape_of(made.cell()->node())).value(), elements);
  }
  Tensor columns = empty_strided(context_, kFloat32, {4, 6}, {1, 4});
  assign(columns, reshape(counting(24), {4, 6}));
  const Floats laid_out = get(as_strided(columns, {24}, {1}, 0));
  EXPECT_EQ(Floats(laid_out.begin(), laid_out.begin() + 8), (Floats{0, 6, 12, 18, 1, 7, 13, 19}));
  // What is between the elements stays as it was.
  Tensor gaps = empty_strided(context_, kFloat32, {2, 3}, {10, 2});
  Tensor all = as_strided(gaps, {15}, {1}, 0);
  assign(all, scalar(-7));
  assign(gaps, reshape(counting(6), {2, 3}));
  EXPECT_EQ(memory_of(gaps), (Floats{0, -7, 1, -7, 2, -7, -7, -7, -7, -7, 3, -7, 4, -7, 5}));
  // A negative stride begins at the memory's end.
  Tensor backwards = empty_strided(context_, kFloat32, {3}, {-2});
  expect_view(backwards, {{3}, {-2}, 4});
  EXPECT_THROW(empty_strided(context_, kFloat32, {int64_t{1} << 40, 2}, {int64_t{1} << 40, 1}),
               Error);
}

TEST_P(TensorStrides, test_copy_between_strides) {
  // Views of [4, 6]: whole, turned, stepped over, with gaps, backwards, in the middle.
  const auto views = [&](const Tensor& memory) {
    return std::vector<Tensor>{
        as_strided(memory, {4, 6}, {6, 1}, 0),    as_strided(memory, {4, 6}, {1, 4}, 0),
        as_strided(memory, {4, 6}, {12, 2}, 0),   as_strided(memory, {4, 6}, {16, 2}, 1),
        as_strided(memory, {4, 6}, {-6, -1}, 40), as_strided(memory, {4, 6}, {7, 1}, 9)};
  };
  std::vector<Tensor> sources = views(counting(80));
  sources.push_back(as_strided(counting(9), {4, 6}, {0, 1}, 2));  // expanded
  sources.push_back(as_strided(counting(9), {4, 6}, {1, 1}, 0));  // windows
  for (size_t n = 0; n < sources.size(); ++n)
    for (size_t k = 0; k < 6; ++k) {
      // A compiler takes a good part of a second for each kernel.
      if (GetParam() == "c" && (n + k) % 6 != 1) continue;
      const Tensor& source = sources[n];
      Tensor memory = testing::floats(context_, Floats(80, -1));
      Tensor target = views(memory)[k];
      const View before = target.view();
      const Floats values = get(source);
      const int64_t launched = launches();
      assign(target, source);
      compute(memory);
      EXPECT_EQ(launches() - launched, 1);
      expect_view(target, before);
      Floats want(80, -1);
      for (size_t i = 0; i < values.size(); ++i)
        want[static_cast<size_t>(
            before.offset.value() + static_cast<int64_t>(i / 6) * before.strides[0].value() +
            static_cast<int64_t>(i % 6) * before.strides[1].value())] = values[i];
      EXPECT_EQ(get(memory), want);
    }
  EXPECT_EQ(copies(), 0);
}

TEST_P(TensorStrides, CopiesWithinAMemoryNeedNoOtherWhereNoElementIsBoth) {
  Tensor row = counting(12);
  Tensor even = slice(row, {0}, {kSliceEnd}, {2});
  assign(even, slice(row, {1}, {kSliceEnd}, {2}));
  EXPECT_EQ(get(row), (Floats{1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11}));
  Tensor cube = reshape(counting(24), {2, 3, 4});
  Tensor left = slice(cube, {0, 0, 0}, {2, 3, 2});
  assign(left, flip(slice(cube, {0, 0, 2}, {2, 3, 4}), {0, 1, 2}));
  EXPECT_EQ(get(left), (Floats{23, 22, 19, 18, 15, 14, 11, 10, 7, 6, 3, 2}));
  Tensor upper = slice(cube, {0, 0, 0}, {1, 3, 4});
  assign(upper, add(upper, slice(cube, {1, 0, 0}, {2, 3, 4})));
  compute(cube);
  EXPECT_EQ(copies(), 0);
  // What is read is written, elsewhere than it is read: then it is copied before.
  Tensor tail = slice(row, {1}, {12});
  assign(tail, slice(row, {0}, {11}));
  EXPECT_EQ(get(row), (Floats{1, 1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11}));
  EXPECT_EQ(copies(), 1);
}

TEST_P(TensorStrides, CopiesConvertInTheSameKernel) {
  const Tensor source = permute(reshape(counting(6), {3, 2}), {1, 0});
  for (const DType dtype : {kFloat16, kInt64, kInt8, kFloat64}) {
    Tensor target = empty_strided(context_, dtype, {2, 3}, {-1, 3});
    const int64_t launched = launches();
    assign(target, cast(source, dtype));
    compute(target);
    EXPECT_EQ(launches() - launched, 1);
    EXPECT_EQ(get(cast(target, kFloat32)), (Floats{0, 2, 4, 1, 3, 5}));
  }
  EXPECT_EQ(copies(), 0);
}

TEST_P(TensorStrides, test_negative_stride) {
  Tensor base = counting(24);
  const Tensor cube = reshape(base, {2, 3, 4});
  for (int64_t subset = 0; subset < 8; ++subset) {
    Ints axes;
    for (int64_t axis = 0; axis < 3; ++axis)
      if (subset >> axis & 1) axes.push_back(axis);
    const Tensor flipped = flip(cube, axes);
    int64_t offset = 0;
    Shape strides{12, 4, 1};
    for (const int64_t axis : axes) {
      const auto i = static_cast<size_t>(axis);
      offset += (cube.shape()[i].value() - 1) * strides[i].value();
      strides[i] = strides[i] * -1;
    }
    expect_view(flipped, {{2, 3, 4}, strides, offset});
    EXPECT_EQ(get(flipped), get(as_strided(base, {2, 3, 4}, strides, offset)));
  }
  EXPECT_EQ(get(as_strided(base, {3}, {-2}, 5)), (Floats{5, 3, 1}));
  Tensor target = slice(base, {20}, {2}, {-6});
  assign(target, testing::floats(context_, {-1, -2, -3}));
  EXPECT_EQ(get(as_strided(base, {4}, {6}, 2)), (Floats{2, -3, -2, -1}));
}

TEST_P(TensorStrides, AViewThatOverlapsItselfRefusesWritesInPyTorchsWords) {
  Tensor base = counting(8);
  for (Tensor view : {as_strided(base, {3, 3}, {1, 1}, 0), expand(reshape(base, {1, 8}), {2, 8})}) {
    try {
      assign(view, scalar(1));
      FAIL() << "it was written";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::InvalidArgument);
      EXPECT_NE(std::string(error.what())
                    .find("unsupported operation: more than one element of the written-to tensor "
                          "refers to a single memory location. Please clone() the tensor before "
                          "performing the operation."),
                std::string::npos)
          << error.what();
    }
  }
  EXPECT_EQ(get(base), get(counting(8)));
}

TEST_P(TensorStrides, ViewsOfAComputedTensorShareItsMemory) {
  Tensor a = add(counting(12), scalar(1));
  Tensor view = as_strided(a, {3, 2}, {4, 2}, 1);
  Tensor turned = permute(reshape(a, {3, 4}), {1, 0});
  const Tensor read_later = mul(view, scalar(2));
  Tensor* all[] = {&view, &a, &turned};
  realize(all);
  EXPECT_EQ(launches(), 1);
  if (context_->device().sees_host()) {
    const std::byte* memory = elements_of(a).data;
    EXPECT_EQ(elements_of(view).data, memory + 4);
    EXPECT_EQ(elements_of(turned).data, memory);
  }
  EXPECT_EQ(launches(), 1);
  EXPECT_EQ(get(read_later), (Floats{4, 8, 12, 16, 20, 24}));
  EXPECT_EQ(launches(), 2);
  assign(view, scalar(0));
  EXPECT_EQ(get(a), (Floats{1, 0, 3, 0, 5, 0, 7, 0, 9, 0, 11, 0}));
  EXPECT_EQ(copies(), 0);
}

TEST_P(TensorStrides, AValueIsComputedOnceForItselfAndForWhatReadsItStrided) {
  Tensor a = add(counting(12), scalar(1));
  Tensor windows = sum(as_strided(a, {9, 4}, {1, 1}, 0), {1});
  Tensor* both[] = {&a, &windows};
  realize(both);
  EXPECT_EQ(launches(), 2);
  EXPECT_EQ(get(windows), (Floats{10, 14, 18, 22, 26, 30, 34, 38, 42}));
}

// Numbers from low to high.
class Random {
 public:
  explicit Random(uint32_t seed) : random_(seed) {}
  int64_t operator()(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }

 private:
  std::mt19937 random_;
};

struct Drawn {
  View view;
  Mask mask;
};

Drawn draw(Random& random) {
  Drawn drawn;
  const int64_t rank = random(0, 4);
  int64_t lowest = 0;
  const bool is_masked = random(0, 2) == 0;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t size = random(0, 9) == 0 ? 0 : random(1, 5);
    const int64_t stride = random(-6, 6);
    const int64_t begin = is_masked ? random(0, size) : 0;
    const int64_t end = is_masked ? random(begin, size) : size;
    drawn.view.shape.emplace_back(size);
    drawn.view.strides.emplace_back(stride);
    if (is_masked) drawn.mask.begin.emplace_back(begin);
    if (is_masked) drawn.mask.end.emplace_back(end);
    if (end > begin) lowest += std::min(begin * stride, (end - 1) * stride);
  }
  drawn.view.offset = random(0, 3) - lowest;
  return drawn;
}

// The element of memory at each place, -1 where it is masked.
Ints places(const Drawn& drawn) {
  const Ints shape = const_dims(drawn.view.shape);
  Ints out(static_cast<size_t>(product(drawn.view.shape).value()));
  for (size_t flat = 0; flat < out.size(); ++flat) {
    int64_t at = drawn.view.offset.value();
    bool inside = true;
    auto rest = static_cast<int64_t>(flat);
    for (size_t i = shape.size(); i-- > 0; rest /= shape[i]) {
      const int64_t index = rest % shape[i];
      at += index * drawn.view.strides[i].value();
      if (!drawn.mask.begin.empty())
        inside =
            inside && index >= drawn.mask.begin[i].value() && index < drawn.mask.end[i].value();
    }
    out[flat] = inside ? at : -1;
  }
  return out;
}

TEST(Rebuild, MovementMakesEveryViewAgain) {
  constexpr int kViews = 10000;
  const Ref<Context> context = testing::new_context("interp");
  Random random(1);
  for (int n = 0; n < kViews && !::testing::Test::HasFailure(); ++n) {
    const Drawn drawn = draw(random);
    const Ints want = places(drawn);
    const int64_t size = buffer_size(inside_mask(drawn.view, drawn.mask)).value();
    EXPECT_EQ(size, want.empty() ? 0 : *std::ranges::max_element(want) + 1);
    Ints numbers(static_cast<size_t>(size + random(0, 2)));
    std::iota(numbers.begin(), numbers.end(), int64_t{1});
    const Tensor row =
        from_data(context, kInt64, {std::ssize(numbers)}, numbers.data(), std::ssize(numbers) * 8);
    Tensor made = row;
    bool is_padded = false;
    for (const MovementStep& step : to_movement_steps(drawn.view, drawn.mask)) {
      made = apply_movement_op(made, step);
      is_padded = is_padded || step.movement == Movement::Pad;
    }
    EXPECT_EQ(made.shape(), drawn.view.shape);
    EXPECT_NE(made.cell() == row.cell(), is_padded);
    Ints got = testing::ints_of(made);
    for (int64_t& value : got) --value;
    EXPECT_EQ(got, want) << to_string(drawn.view.shape) << " " << to_string(drawn.view.strides)
                         << " " << to_string(drawn.view.offset);
  }
}

}  // namespace
}  // namespace tiny
