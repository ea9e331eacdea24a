// Elements written to named places: which writer stays, what is folded, what is out of range.
#include "tensor/scatter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "schedule/schedule.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tensor/reduce.h"
#include "tensor/run.h"
#include "tensor/value.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;
using testing::Floats;
using testing::floats;
using testing::floats_of;

class Scatter : public ::testing::TestWithParam<std::string> {
 protected:
  Tensor ints(const Ints& values, const Ints& shape) const {
    return from_data(context_, kInt64, shape, values.data(), std::ssize(values) * 8);
  }
  Ref<Context> context_ = testing::new_context(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices, Scatter, ::testing::Values("cpu", "interp"));

TEST_P(Scatter, TheLastWriterStays) {
  const Tensor data = floats(context_, {1, 2, 3, 4});
  const Tensor updates = floats(context_, {10, 20, 30});
  const Tensor places = ints({1, -1, 1}, {3});
  EXPECT_EQ(floats_of(scatter_elements(data, places, updates, 0)), (Floats{1, 30, 3, 20}));
  EXPECT_EQ(floats_of(scatter_elements(data, places, updates, 0, Fold::Add)),
            (Floats{1, 42, 3, 24}));
  EXPECT_EQ(floats_of(scatter_elements(data, places, updates, 0, Fold::Mul)),
            (Floats{1, 600, 3, 80}));
  EXPECT_EQ(floats_of(scatter_elements(data, places, updates, 0, Fold::Min)), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(floats_of(scatter_elements(data, places, updates, 0, Fold::Max)),
            (Floats{1, 30, 3, 20}));
}

TEST_P(Scatter, UpdatesMayBeShorterThanTheData) {
  const Tensor data = floats(context_, {1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor out = scatter_elements(data, ints({2}, {1, 1}), floats(context_, {9}, {1, 1}), -1);
  EXPECT_EQ(floats_of(out), (Floats{1, 2, 9, 4, 5, 6}));
  expect_failure(failure_of([&] {
                   scatter_elements(data, ints({0}, {1, 1}), floats(context_, {9, 9}, {1, 2}), 1);
                 }),
                 Status::Shape, {"[1, 1]", "[1, 2]"});
  expect_failure(failure_of([&] {
                   scatter_elements(data, ints({0, 0, 0}, {3, 1}),
                                    floats(context_, {9, 9, 9}, {3, 1}), 1);
                 }),
                 Status::Shape, {"[3, 1]", "[2, 3]"});
}

TEST_P(Scatter, RowsByCoordinates) {
  const Tensor data = floats(context_, Floats(8, 0), {2, 2, 2});
  const Tensor out =
      scatter_nd(data, ints({1, 0, 0, -1}, {2, 2}), floats(context_, {1, 2, 3, 4}, {2, 2}));
  EXPECT_EQ(floats_of(out), (Floats{0, 0, 3, 4, 1, 2, 0, 0}));
  Tensor wrong = scatter_nd(data, ints({2}, {1, 1}), floats(context_, Floats(4, 1), {1, 2, 2}));
  expect_failure(failure_of([&] { floats_of(wrong); }), Status::Index);
}

TEST_P(Scatter, FlatPlacesAndSlices) {
  EXPECT_EQ(floats_of(scatter_flat(floats(context_, {7, 8}), ints({3, 0}, {2}), {2, 2})),
            (Floats{8, 0, 0, 7}));
  const Tensor data = floats(context_, Floats(8, 0), {2, 4});
  const Tensor update = floats(context_, {1, 2, 3, 4}, {2, 2});
  const Tensor start = ints({3, 1}, {2});
  EXPECT_EQ(floats_of(scatter_slices(data, update, start, 1, true)),
            (Floats{2, 0, 0, 1, 0, 3, 4, 0}));
  EXPECT_EQ(floats_of(scatter_slices(data, update, start, 1, false)),
            (Floats{0, 0, 0, 1, 0, 3, 4, 0}));
  for (const Ints& wrong : {Ints{4}, Ints{1, 2}, Ints{2, 5}})
    expect_failure(failure_of([&] {
                     scatter_slices(data, full(context_, kFloat32, to_shape(wrong), 1), start, 1,
                                    false);
                   }),
                   Status::Shape, {"an update of"});
}

// A random scatter of small whole numbers, whose sums and products no dtype rounds: what a loop
// over the updates makes of the data.
struct RandomCase {
  Ints shape, given, places;
  int64_t axis = 0;
  bool repeats = false;  // the places, along all other axes
  std::vector<double> data, updates, want;
};

int64_t count_of(const Ints& shape) {
  return product(to_shape(shape)).value();
}

double folded(Fold fold, double a, double b, bool is_bool) {
  switch (fold) {
    case Fold::Add:
      return is_bool ? std::max(a, b) : a + b;
    case Fold::Mul:
      return a * b;
    case Fold::Max:
      return std::max(a, b);
    case Fold::Min:
      return std::min(a, b);
    case Fold::None:
      break;
  }
  return b;
}

RandomCase random_case(uint64_t seed, Fold fold, DType dtype, bool is_large) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  RandomCase c;
  const int64_t rank = 1 + below(3);
  c.axis = below(rank);
  for (int64_t i = 0; i < rank; ++i) c.shape.push_back(1 + below(is_large ? 70 : 7));
  c.given = c.shape;
  if (below(2))
    for (int64_t& d : c.given) d = 1 + below(d);
  c.given[static_cast<size_t>(c.axis)] = 1 + below(is_large ? 90 : 9);
  c.repeats = below(2) != 0;
  const auto element = [&] {
    if (dtype.is_bool()) return static_cast<double>(below(2));
    if (fold == Fold::Mul) return dtype.is_unsigned() ? 1.0 : static_cast<double>(2 * below(2) - 1);
    return static_cast<double>(below(dtype.is_unsigned() ? 2 : 3) - (dtype.is_unsigned() ? 0 : 1));
  };
  for (int64_t i = 0; i < count_of(c.shape); ++i) c.data.push_back(element());
  for (int64_t i = 0; i < count_of(c.given); ++i) c.updates.push_back(element());
  const int64_t n = c.shape[static_cast<size_t>(c.axis)];
  Ints steps(c.given.size(), 1);  // of places
  if (c.repeats) steps[static_cast<size_t>(c.axis)] = c.given[static_cast<size_t>(c.axis)];
  const Ints& made = c.repeats ? steps : c.given;
  for (int64_t i = 0; i < count_of(made); ++i) c.places.push_back(below(2 * n) - n);
  c.want = c.data;
  const auto axis = static_cast<size_t>(c.axis);
  for (int64_t i = 0; i < count_of(c.given); ++i) {
    Ints index(c.given.size());
    int64_t rest = i;
    for (size_t k = index.size(); k-- > 0; rest /= c.given[k]) index[k] = rest % c.given[k];
    const int64_t place = c.places[static_cast<size_t>(c.repeats ? index[axis] : i)];
    index[axis] = place < 0 ? place + n : place;
    int64_t to = 0;
    for (size_t k = 0; k < index.size(); ++k) to = to * c.shape[k] + index[k];
    double& element = c.want[static_cast<size_t>(to)];
    element = folded(fold, element, c.updates[static_cast<size_t>(i)], dtype.is_bool());
  }
  return c;
}

Tensor numbers(const Ref<Context>& context, DType dtype, const std::vector<double>& values,
               const Ints& shape) {
  return cast(from_data(context, kFloat64, shape, values.data(), std::ssize(values) * 8), dtype);
}

constexpr Fold kFolds[] = {Fold::None, Fold::Add, Fold::Mul, Fold::Max, Fold::Min};

void expect_loops_result(const Ref<Context>& context, uint64_t seed, DType dtype, bool is_large) {
  const Fold fold = kFolds[seed % 5];
  const RandomCase c = random_case(seed, fold, dtype, is_large);
  Ints made(c.given.size(), 1);
  made[static_cast<size_t>(c.axis)] = c.given[static_cast<size_t>(c.axis)];
  const Tensor index = from_data(context, kInt64, c.repeats ? made : c.given, c.places.data(),
                                 std::ssize(c.places) * 8);
  const Tensor out =
      scatter_elements(numbers(context, dtype, c.data, c.shape), expand(index, to_shape(c.given)),
                       numbers(context, dtype, c.updates, c.given), c.axis, fold);
  Tensor whole = cast(out, kFloat64);
  std::vector<double> got(c.want.size());
  read(whole, got.data(), std::ssize(got) * 8);
  EXPECT_EQ(got, c.want) << "seed " << seed << " " << to_string(dtype) << " of "
                         << to_string(to_shape(c.shape)) << " axis " << c.axis;
}

TEST(RandomScatters, AreWhatALoopMakes) {
  constexpr DType kTypes[] = {kFloat32, kFloat16, kBFloat16, kFloat64, kBool,
                              kInt8,    kUInt8,   kInt32,    kInt64,   kUInt16};
  for (const std::string& device : testing::computing_devices()) {
    const bool compiles = device == "c";  // which takes long
    for (const int64_t threads : {1, 2}) {
      Flags flags = testing::flags_for(device);
      flags.threads = threads;
      const Ref<Context> context = make_ref<Context>(flags);
      for (uint64_t seed = 0; seed < (compiles ? 4 : 100); ++seed)
        expect_loops_result(context, seed, kTypes[seed / 5 % std::size(kTypes)], seed % 4 == 3);
    }
  }
}

// Loops that cores share: each row is added to by all, in the order of the updates.
TEST_P(Scatter, ManyRowsAreAddedInTheirOrder) {
  constexpr int64_t kRows = 40, kUpdates = 2000, kWidth = 100;
  std::mt19937 random(1);
  Ints places;
  Floats updates;
  for (int64_t i = 0; i < kUpdates; ++i) places.push_back(static_cast<int64_t>(random() % kRows));
  for (int64_t i = 0; i < kUpdates * kWidth; ++i)
    updates.push_back(static_cast<float>(random() % 1000) / 999);
  Floats want(kRows * kWidth, 1), last(kRows * kWidth, 1);
  for (int64_t i = 0; i < kUpdates; ++i)
    for (int64_t k = 0; k < kWidth; ++k) {
      const auto at = static_cast<size_t>(places[static_cast<size_t>(i)] * kWidth + k);
      want[at] += updates[static_cast<size_t>(i * kWidth + k)];
      last[at] = updates[static_cast<size_t>(i * kWidth + k)];
    }
  const Tensor ones = full(context_, kFloat32, {kRows, kWidth}, 1);
  const Tensor at = ints(places, {kUpdates, 1});
  const Tensor given = floats(context_, updates, {kUpdates, kWidth});
  EXPECT_EQ(floats_of(scatter_nd(ones, at, given, Fold::Add)), want);
  EXPECT_EQ(floats_of(scatter_nd(ones, at, given)), last);
  const Tensor wide = expand(at, {kUpdates, kWidth});
  EXPECT_EQ(floats_of(scatter_elements(ones, wide, given, 0, Fold::Add)), want);
}

// A place that is the same in each step is loaded anew in each.
TEST_P(Scatter, AllUpdatesMayBeOfOnePlace) {
  const Tensor x = floats(context_, {1, 1}), updates = floats(context_, {1, 2, 3, 4});
  const Tensor first = full(context_, kInt64, {4}, 0);
  EXPECT_EQ(floats_of(scatter_elements(x, first, updates, 0, Fold::Add)), (Floats{11, 1}));
  EXPECT_EQ(floats_of(scatter_elements(x, first, updates, 0)), (Floats{4, 1}));
  const Tensor whole = floats(context_, {1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor none = full(context_, kInt64, {3, 0}, 0);
  EXPECT_EQ(floats_of(scatter_nd(x, none, whole, Fold::Mul)), (Floats{15, 48}));
}

// What the data was stays as it was for others, and chains of scatters see each other.
TEST_P(Scatter, OthersReadTheDataAsItWas) {
  const Tensor x = floats(context_, {1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor data = x + x;
  const Tensor out = scatter_nd(data, ints({0}, {1, 1}), floats(context_, {9, 9}, {1, 2}));
  const Tensor both = add(data, out);
  EXPECT_EQ(floats_of(both), (Floats{11, 13, 12, 16, 20, 24}));
  EXPECT_EQ(floats_of(data), (Floats{2, 4, 6, 8, 10, 12}));
  const Tensor twice = scatter_nd(
      out, ints({2, 0}, {2, 1}),
      reshape(sum(data, {0}), {1, 2}) + floats(context_, {0, 0, 1, 1}, {2, 2}), Fold::Add);
  EXPECT_EQ(floats_of(twice), (Floats{28, 34, 6, 8, 28, 36}));
}

TEST_P(Scatter, ItsResultIsAPartOfAConcatenation) {
  const Tensor x = floats(context_, {1, 2, 3});
  const Tensor parts[] = {scatter_elements(x, ints({1}, {1}), floats(context_, {9}), 0), neg(x)};
  EXPECT_EQ(floats_of(concat(parts, 0)), (Floats{1, 9, 3, -1, -2, -3}));
}

TEST_P(Scatter, AnIndexOutOfRangeEndsTheRun) {
  const Tensor data = floats(context_, Floats(6, 0), {3, 2});
  for (const int64_t wrong : {int64_t{3}, int64_t{-4}, INT64_MAX, INT64_MIN}) {
    const Tensor at = expand(ints({0, wrong}, {2, 1}), {2, 2});
    const Tensor out = scatter_elements(data, at, floats(context_, Floats(4, 1), {2, 2}), 0);
    expect_failure(failure_of([&] { floats_of(out); }), Status::Index);
  }
}

// One program for all sizes: of rows, of their updates, and of what is in a row.
TEST_P(Scatter, SizesMayBeVariables) {
  const auto variable = [&](const char* name) {
    return Dim(context_->graph().variable(name, 2, 4096));
  };
  const Dim n = variable("n"), m = variable("m"), k = variable("k");
  const Tensor data = make_placeholder(context_, kFloat32, {n, k});
  const Tensor places = make_placeholder(context_, kInt64, {m, 1});
  const Tensor updates = make_placeholder(context_, kFloat32, {m, k});
  const auto result = [](const Tensor& a, const Tensor& at, const Tensor& b) {
    return scatter_nd(a + a, at, relu(b), Fold::Add);
  };
  const Ref<TensorRun> run = make_ref<TensorRun>(
      context_,
      compile_tensors(context_, {{data, places, updates}}, {{result(data, places, updates)}}));
  for (const auto& [rows, writes, width] :
       {std::array<int64_t, 3>{3, 2, 2}, {50, 700, 130}, {1000, 100, 17}, {2, 4096, 33}}) {
    Ints at;
    for (int64_t i = 0; i < writes; ++i) at.push_back(i * i % (2 * rows) - rows);
    Floats values;
    for (int64_t i = 0; i < writes * width; ++i) values.push_back(static_cast<float>(i % 11 - 5));
    const Tensor a = full(context_, kFloat32, {rows, width}, 1);
    const Tensor index = ints(at, {writes, 1});
    const Tensor b = floats(context_, values, {writes, width});
    const Tensor inputs[] = {a, index, b};
    for (size_t i = 0; i < 3; ++i) run->set_input(i, inputs[i]);
    run->execute();
    Floats got(static_cast<size_t>(rows * width));
    run->read_output(0, got.data());
    EXPECT_EQ(got, floats_of(result(a, index, b))) << rows << " " << writes << " " << width;
  }
  // An index beyond this run's rows, not beyond those that others have.
  run->set_input(0, full(context_, kFloat32, {4, 2}, 1));
  run->set_input(1, ints({1, 4}, {2, 1}));
  run->set_input(2, full(context_, kFloat32, {2, 2}, 1));
  expect_failure(failure_of([&] { run->execute(); }), Status::Index);
}

// The values that the data is computed from are stored where they are updated: no copy.
TEST(ScatterKernels, FreshDataIsUpdatedInPlace) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor x = floats(context, Floats(64, 1), {8, 8});
  const Tensor places = from_data(context, kInt64, {2, 2}, Ints{1, 2, 3, 4}.data(), 32);
  const Tensor out = scatter_nd(x + x, places, floats(context, {1, 2}), Fold::Add);
  const UOp root = out.graph().make(Op::Contiguous, {out.node()});
  const Schedule schedule = make_schedule({&root, 1}, avx2_machine());
  EXPECT_EQ(schedule.kernels.size(), 3U);  // x + x, its updates, and the copy that was asked for
  EXPECT_EQ(schedule.stored.size(), 2U);
}

// Rows that choose between a number and the steps' are unrolled; the steps have no lanes.
TEST_P(Scatter, RowsMayChooseWhatTheirStepsAdd) {
  const Tensor data = full(context_, kFloat32, to_shape({2, 9}), 1);
  const Tensor is_first = less(ints({0, 1}, {2, 1}), ints({1}, {1, 1}));
  const Tensor updates = where(is_first, full(context_, kFloat32, {}, 5), floats(context_, {2, 4}));
  const Tensor places = ints({8, 0, 3, 3}, {2, 2});
  EXPECT_EQ(floats_of(scatter_elements(data, places, updates, 1, Fold::Add)),
            (Floats{6, 1, 1, 1, 1, 1, 1, 1, 6, 1, 1, 1, 7, 1, 1, 1, 1, 1}));
}

// Scatters one after the other write into one buffer, unless something reads it in between.
TEST(ScatterKernels, ChainsAreUpdatesOfOneBuffer) {
  const Ref<Context> context = testing::new_context("interp");
  Tensor x = floats(context, Floats(64, 1), {8, 8});
  const Tensor first = x;
  for (int64_t i = 0; i < 3; ++i) {
    const Ints place{i, i + 1};
    x = scatter_nd(reshape(x, {4, 16}), from_data(context, kInt64, {1, 2}, place.data(), 16),
                   floats(context, {static_cast<float>(i)}));
  }
  const auto kernels = [](const Tensor& out) {
    const UOp root = out.graph().make(Op::Contiguous, {out.node()});
    return make_schedule({&root, 1}, avx2_machine()).kernels.size();
  };
  EXPECT_EQ(kernels(x), 5U);
  const Tensor between = scatter_nd(first, from_data(context, kInt64, {1, 1}, Ints{2}.data(), 8),
                                    floats(context, Floats(8, 3), {1, 8}));
  const Tensor after = scatter_nd(between, from_data(context, kInt64, {1, 1}, Ints{5}.data(), 8),
                                  floats(context, Floats(8, 4), {1, 8}));
  EXPECT_EQ(kernels(add(after, between)), 5U);  // two copies, two updates, the sum
  Floats want(64, 1);
  want[1] = 0, want[18] = 1, want[35] = 2;
  EXPECT_EQ(floats_of(x), want);
}

// Writes order kernels anew: those of one buffer stay one after the other.
TEST_P(Scatter, ChainsAndWritesOfMemoryAreOrdered) {
  Tensor x = floats(context_, {1, 2, 3, 4});
  const Tensor one = scatter_elements(x, ints({0, 1}, {2}), floats(context_, {5, 5}), 0, Fold::Add);
  const Tensor two = scatter_elements(one, ints({1, 2}, {2}), floats(context_, {7, 7}), 0);
  assign(x, mul(two, x));
  EXPECT_EQ(floats_of(x), (Floats{6, 14, 21, 16}));
  EXPECT_EQ(floats_of(two), (Floats{6, 7, 7, 4}));
}

// A write of what it overwrites, with updates, stores the updates alone.
TEST(ScatterKernels, WritesStoreTheirUpdatesAlone) {
  const Ref<Context> context = testing::new_context("interp");
  Tensor cache = floats(context, Floats(64, 1), {8, 8});
  const auto kernels = [](const Tensor& t) {
    const UOp root = t.node();
    return make_schedule({&root, 1}, avx2_machine()).kernels.size();
  };
  const auto row = [&](int64_t place) { return from_data(context, kInt64, {1, 1}, &place, 8); };
  assign(cache, scatter_nd(cache, row(2), floats(context, Floats(8, 3), {1, 8})));
  EXPECT_EQ(kernels(cache), 1U);
  assign(cache, scatter_nd(cache, row(2), relu(floats(context, Floats(8, 4), {1, 8})), Fold::Add));
  EXPECT_EQ(kernels(cache), 2U);
  Floats want(64, 1);
  std::fill_n(want.begin() + 16, 8, 7.0F);
  EXPECT_EQ(floats_of(cache), want);
}

// Memory that is written again and again by scatters, of what it holds among others, and what was
// built on it in between.
TEST_P(Scatter, WritesOfMemoryAreThoseOfALoop) {
  constexpr int64_t kRows = 5, kWidth = 3;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](int64_t n) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
    };
    Floats held(kRows * kWidth);
    for (float& f : held) f = static_cast<float>(below(7) - 3);
    Tensor t = floats(context_, held, {kRows, kWidth});
    std::vector<std::pair<Tensor, Floats>> built;
    for (int64_t step = 0; step < 8; ++step) {
      const int64_t count = 1 + below(6);
      const Fold fold = below(2) ? Fold::Add : Fold::None;
      const bool of_itself = below(3) == 0;
      Ints places, rows;
      Floats values;
      for (int64_t i = 0; i < count; ++i) {
        places.push_back(below(kRows)), rows.push_back(below(kRows));
        for (int64_t k = 0; k < kWidth; ++k) values.push_back(static_cast<float>(below(5)));
      }
      const Floats before = held;
      for (int64_t i = 0; i < count * kWidth; ++i) {
        const auto n = static_cast<size_t>(i / kWidth);
        const int64_t k = i % kWidth;
        float value = values[static_cast<size_t>(i)];
        if (of_itself) value += before[static_cast<size_t>(rows[n] * kWidth + k)];
        float& to = held[static_cast<size_t>(places[n] * kWidth + k)];
        to = fold == Fold::Add ? to + value : value;
      }
      Tensor updates = floats(context_, values, {count, kWidth});
      if (of_itself) updates = updates + gather(t, ints(rows, {count}), 0);
      if (below(3) == 0) {
        Floats twice = before;
        for (float& f : twice) f += f;
        built.emplace_back(t + t, twice);
      }
      const bool is_flat = below(3) == 0;
      const Tensor data = is_flat ? reshape(t, {kRows, 1, kWidth}) : t;
      Tensor at = ints(places, {count, 1});
      if (is_flat) at = concat(std::array{at, full(context_, kInt64, {count, 1}, 0)}, 1);
      assign(t, reshape(scatter_nd(data, at, updates, fold), {kRows, kWidth}));
      if (below(4) == 0) {
        EXPECT_EQ(floats_of(t), held) << "seed " << seed;
      }
    }
    EXPECT_EQ(floats_of(t), held) << "seed " << seed;
    for (const auto& [tensor, want] : built) EXPECT_EQ(floats_of(tensor), want) << "seed " << seed;
  }
}

// Each run of a program stores a row in memory that it goes on with.
TEST_P(Scatter, ProgramsStoreRowsInTheirCache) {
  Tensor cache = floats(context_, Floats(8, 0), {4, 2});
  const Tensor at = make_placeholder(context_, kInt64, {1, 1});
  const Tensor row = make_placeholder(context_, kFloat32, {1, 2});
  assign(cache, scatter_nd(cache, at, row));
  const Ref<const TensorProgram> program =
      compile_tensors(context_, {{at, row}}, {{sum(cache, {0})}});
  EXPECT_EQ(program->compiled.program->tape.size(), 2U);
  const Ref<TensorRun> run = make_ref<TensorRun>(context_, program);
  Floats sums{0, 0};
  for (const int64_t place : {2, 0, 3}) {
    const float value = static_cast<float>(place + 1);
    run->set_input(0, ints({place}, {1, 1}));
    run->set_input(1, floats(context_, {value, -value}, {1, 2}));
    run->execute();
    Floats got(2);
    run->read_output(0, got.data());
    sums[0] += value, sums[1] -= value;
    EXPECT_EQ(got, sums);
  }
  EXPECT_EQ(floats_of(cache), (Floats{1, -1, 0, 0, 3, -3, 4, -4}));
  EXPECT_EQ(context_->counters().copies, 0);
}

}  // namespace
}  // namespace tiny
