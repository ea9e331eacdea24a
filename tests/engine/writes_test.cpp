// Writes in place: every reader sees the version it was built on, on every device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/strides.h"
#include "tensor/value.h"
#include "tests/reference/reference.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Floats;

Floats counting(int64_t count, float first = 0) {
  Floats out;
  for (int64_t i = 0; i < count; ++i) out.push_back(first + static_cast<float>(i));
  return out;
}

class Writes : public ::testing::TestWithParam<std::string> {
 protected:
  Tensor make(const Floats& values, const Ints& shape = {}) {
    return testing::floats(context_, values, shape);
  }
  Tensor scalar(double value) { return Tensor::weak_float(context_, value); }
  static Floats get(const Tensor& t) { return testing::floats_of(t); }
  // The same by the oracle, which has to be asked before anything is computed.
  static Floats expected(const Tensor& t) {
    const reference::Values values = reference::evaluate(t.node());
    return {values.real.begin(), values.real.end()};
  }
  static void realize_all(std::vector<Tensor*> tensors) { realize(tensors); }
  int64_t launches() { return context_->counters().launches; }
  int64_t copies() { return context_->counters().copies; }

  Ref<Context> context_ = testing::new_context(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices, Writes, ::testing::ValuesIn(testing::computing_devices()),
                         [](const auto& info) { return info.param; });

TEST_P(Writes, ManyReadersOfOldAndNewVersionsShareCopies) {
  constexpr size_t kCount = 6;
  std::vector<Tensor> tensors, values;
  for (size_t i = 0; i < kCount; ++i) {
    Tensor t = make(counting(8, static_cast<float>(i)));
    const Tensor before = mul(t, t);
    assign(t, add(t, scalar(10)));
    values.push_back(add(before, t));
    values.push_back(sum(sub(t, before), {0}));
    tensors.push_back(std::move(t));
  }
  std::vector<Tensor*> all;
  for (Tensor& value : values) all.push_back(&value);
  const int64_t copied = copies();
  realize_all(std::move(all));
  EXPECT_EQ(copies() - copied, static_cast<int64_t>(kCount));
  for (size_t i = 0; i < kCount; ++i) {
    const Floats added = get(values[2 * i]);
    float total = 0;
    for (size_t k = 0; k < 8; ++k) {
      const auto old = static_cast<float>(i + k);
      EXPECT_EQ(added[k], old * old + old + 10);
      total += old + 10 - old * old;
    }
    EXPECT_EQ(get(values[2 * i + 1]), Floats{total});
    EXPECT_EQ(get(tensors[i]), counting(8, static_cast<float>(i) + 10));
  }
}

TEST_P(Writes, ATensorAndItsViewsSeeTheNewestVersion) {
  Tensor a = make(counting(6), {2, 3});
  const Tensor row = slice(a, {1, 0}, {2, 3});
  const Tensor turned = permute(a, {1, 0});
  assign(a, add(a, scalar(10)));
  EXPECT_EQ(get(row), (Floats{13, 14, 15}));
  EXPECT_EQ(get(turned), (Floats{10, 13, 11, 14, 12, 15}));
  EXPECT_EQ(get(a), counting(6, 10));
  EXPECT_EQ(copies(), 0);
}

TEST_P(Writes, AReaderBuiltBeforeAViewAssignmentSeesTheOldElements) {
  Tensor a = make(counting(6));
  const Tensor before = mul(a, scalar(2));
  Tensor part = slice(a, {1}, {3});
  assign(part, scalar(50));
  const Tensor after = mul(a, scalar(2));
  EXPECT_EQ(expected(after), (Floats{0, 100, 100, 6, 8, 10}));
  EXPECT_EQ(get(after), (Floats{0, 100, 100, 6, 8, 10}));
  EXPECT_EQ(get(before), (Floats{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(get(a), (Floats{0, 50, 50, 3, 4, 5}));
}

TEST_P(Writes, ReadersOfOneScheduleComeBeforeTheWrite) {
  Tensor a = make(counting(4));
  Tensor before = mul(a, scalar(2));
  assign(a, scalar(7));
  Tensor after = add(a, scalar(1));
  realize_all({&after, &a, &before});
  EXPECT_EQ(get(before), (Floats{0, 2, 4, 6}));
  EXPECT_EQ(get(after), (Floats{8, 8, 8, 8}));
  EXPECT_EQ(get(a), (Floats{7, 7, 7, 7}));
  EXPECT_EQ(copies(), 0);
}

TEST_P(Writes, TwoTensorsThatTakeEachOthersValues) {
  Tensor a = make(counting(4));
  Tensor b = make(counting(4, 100));
  const Tensor c = add(a, scalar(1));
  assign(a, add(b, scalar(1)));
  assign(b, c);
  const Floats want_b = expected(b);
  realize_all({&a, &b});
  EXPECT_EQ(get(a), (Floats{101, 102, 103, 104}));
  EXPECT_EQ(get(b), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(get(b), want_b);
  EXPECT_EQ(get(c), (Floats{1, 2, 3, 4}));
}

TEST_P(Writes, SlicesAreSwapped) {
  Tensor a = make(counting(6));
  Tensor left = slice(a, {0}, {3});
  Tensor right = slice(a, {3}, {6});
  const Tensor kept = add(left, scalar(0.5));
  assign(left, right);
  assign(right, sub(kept, scalar(0.5)));
  EXPECT_EQ(get(a), (Floats{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(get(kept), (Floats{0.5, 1.5, 2.5}));
}

TEST_P(Writes, AShiftOntoItselfMovesTheOldElements) {
  Tensor a = make(counting(40));
  Tensor tail = slice(a, {1}, {40});
  assign(tail, slice(a, {0}, {39}));
  Floats want = counting(39);
  want.insert(want.begin(), 0);
  EXPECT_EQ(get(a), want);
  EXPECT_EQ(copies(), 1);
  EXPECT_EQ(context_->counters().copied_bytes, 39 * 4);
}

TEST_P(Writes, ElementwiseUpdatesNeedNoCopy) {
  Tensor a = make(counting(1000));
  assign(a, add(mul(a, scalar(2)), scalar(1)));
  const Floats got = get(a);
  EXPECT_EQ(got[999], 1999);
  EXPECT_EQ(copies(), 0);
  EXPECT_EQ(launches(), 1);
}

TEST_P(Writes, AFlipOrAProductOntoItselfIsComputedFromTheOldElements) {
  Tensor a = make(counting(9), {3, 3});
  assign(a, flip(a, {0, 1}));
  EXPECT_EQ(get(a), (Floats{8, 7, 6, 5, 4, 3, 2, 1, 0}));
  Tensor b = make(counting(4), {2, 2});
  assign(b, matmul(b, b));
  EXPECT_EQ(get(b), (Floats{2, 3, 6, 11}));
  Tensor c = make(counting(4), {2, 2});
  assign(c, transpose(c, 0, 1));
  EXPECT_EQ(get(c), (Floats{0, 2, 1, 3}));
  Tensor d = make(counting(3));
  assign(d, sum(d, {0}, true));
  EXPECT_EQ(get(d), (Floats{3, 3, 3}));
}

TEST_P(Writes, ViewsOfEveryKindAreWrittenThrough) {
  Tensor a = make(Floats(12), {3, 4});
  Tensor column = slice(a, {0, 1}, {3, 2});
  assign(column, make({1, 2, 3}, {3, 1}));
  Tensor backwards = flip(slice(a, {2, 0}, {3, 4}), {1});
  assign(backwards, make({10, 20, 30, 40}, {1, 4}));
  Tensor every_other = slice(a, {0, 0}, {1, 4}, {1, 2});
  assign(every_other, scalar(5));
  Tensor turned = permute(a, {1, 0});
  Tensor corner = slice(turned, {3, 0}, {4, 2});
  assign(corner, make({6, 7}, {1, 2}));
  Tensor flat = reshape(a, {12});
  Tensor strided = as_strided(flat, {2}, {4}, 6);
  assign(strided, make({8, 9}));
  EXPECT_EQ(get(a), (Floats{5, 1, 5, 6, 0, 2, 8, 7, 40, 30, 9, 10}));
}

TEST_P(Writes, WhatReadsNoElementHasNoWriteDoneAgain) {
  Tensor a = make(counting(4));
  assign(a, make(counting(4, 100)));
  const Tensor nothing = sum(slice(a, {4}, {4}), {0}, true);
  assign(a, scalar(7));
  EXPECT_EQ(get(a), Floats(4, 7));
  EXPECT_EQ(get(nothing), Floats{0});
  EXPECT_EQ(get(a), Floats(4, 7));
  EXPECT_EQ(copies(), 0);
  assign(a, add(a, scalar(1)));
  EXPECT_EQ(get(add(nothing, slice(a, {0}, {1}))), Floats{8});
}

// Each part is copied from where the value is stored once: no copy waits for the other.
TEST_P(Writes, AValueThatIsConcatenatedWithItselfIsAssignedTo) {
  const Tensor total = reshape(sum(make(counting(3)), {0}), {1});
  const Tensor once = cast(cast(total, kBool), kFloat32);
  const Tensor parts[] = {once, once};
  Tensor twice = concat(parts, 0);
  assign(twice, add(twice, scalar(1)));
  EXPECT_EQ(get(twice), (Floats{2, 2}));
  EXPECT_EQ(copies(), 0);
}

TEST_P(Writes, AViewThatOverlapsItselfIsRefused) {
  Tensor a = make(counting(4));
  Tensor repeated = expand(reshape(a, {1, 4}), {3, 4});
  EXPECT_THROW(assign(repeated, scalar(1)), Error);
  Tensor windows = as_strided(a, {3, 2}, {1, 1}, 0);
  EXPECT_THROW(assign(windows, scalar(1)), Error);
  // Steps of 2 and 3 that never meet.
  Tensor apart = as_strided(a, {2, 1}, {3, 2}, 0);
  assign(apart, scalar(9));
  EXPECT_EQ(get(a), (Floats{9, 1, 2, 9}));
}

TEST_P(Writes, WhatDoesNotFitIsRefused) {
  Tensor a = from_data(context_, kInt32, {2}, counting(2).data(), 8);
  EXPECT_THROW(assign(a, make({1, 2})), Error);  // a float into integers
  EXPECT_THROW(assign(a, scalar(1.5)), Error);
  Tensor b = make({1, 2});
  EXPECT_THROW(assign(b, make({1, 2, 3})), Error);
  EXPECT_THROW(assign(b, make({1, 2, 3, 4}, {2, 2})), Error);  // the target would grow
  assign(b, from_data(context_, kInt32, {1}, std::vector<int32_t>{4}.data(), 4));
  EXPECT_EQ(get(b), (Floats{4, 4}));
}

TEST_P(Writes, AWriteSurvivesTheReleaseOfItsBaseOrOfItsView) {
  Tensor view;
  {
    Tensor base = make(counting(4));
    view = slice(base, {1}, {3});
    assign(view, scalar(9));
  }
  EXPECT_EQ(get(view), (Floats{9, 9}));
  Tensor base = make(counting(4));
  {
    Tensor part = slice(base, {1}, {3});
    assign(part, scalar(9));
  }
  EXPECT_EQ(get(base), (Floats{0, 9, 9, 3}));
}

TEST_P(Writes, ValuesThatWereComputedAreWrittenToo) {
  const Tensor a = make(counting(4));
  Tensor c = add(a, scalar(1));
  const Tensor same = add(a, scalar(1));  // the same node, another tensor
  Tensor view = slice(c, {0}, {2});
  assign(view, scalar(0));
  EXPECT_EQ(get(c), (Floats{0, 0, 3, 4}));
  EXPECT_EQ(get(same), (Floats{1, 2, 3, 4}));
  // Written after it was computed, while a graph still reads it.
  Tensor d = mul(a, scalar(3));
  realize_all({&d});
  const Tensor twin = mul(a, scalar(3));
  const Tensor reader = add(d, scalar(1));
  assign(d, scalar(-1));
  EXPECT_EQ(get(d), (Floats{-1, -1, -1, -1}));
  EXPECT_EQ(get(twin), (Floats{0, 3, 6, 9}));
  EXPECT_EQ(get(reader), (Floats{1, 4, 7, 10}));
  EXPECT_EQ(get(mul(a, scalar(3))), (Floats{0, 3, 6, 9}));
}

TEST_P(Writes, ACopyKeepsItsValueWhenTheOriginalIsWritten) {
  Tensor a = make(counting(3));
  Tensor same = add(a, Tensor::weak_int(context_, 0));
  Tensor copy = contiguous(a);
  assign(a, scalar(8));
  EXPECT_EQ(get(a), (Floats{8, 8, 8}));
  EXPECT_EQ(get(same), counting(3));
  EXPECT_EQ(get(copy), counting(3));
  assign(same, scalar(5));
  EXPECT_EQ(get(same), (Floats{5, 5, 5}));
  EXPECT_EQ(get(a), (Floats{8, 8, 8}));
}

TEST_P(Writes, AnOldVersionThatSomethingStillReadsIsCopiedInItsNeededPart) {
  Tensor a = make(counting(1000));
  const Tensor reader = add(slice(a, {10}, {20}), scalar(1));
  assign(a, scalar(0));
  EXPECT_EQ(get(a)[15], 0);
  EXPECT_EQ(copies(), 1);
  EXPECT_EQ(context_->counters().copied_bytes, 10 * 4);
  EXPECT_EQ(get(reader), counting(10, 11));
  EXPECT_EQ(copies(), 1);
}

TEST_P(Writes, AnOldVersionBetweenTwoWritesIsKept) {
  Tensor a = make(counting(4));
  assign(a, add(a, scalar(1)));
  const Tensor between = mul(a, scalar(10));
  assign(a, add(a, scalar(1)));
  EXPECT_EQ(get(a), (Floats{2, 3, 4, 5}));
  EXPECT_EQ(get(between), (Floats{10, 20, 30, 40}));
  EXPECT_EQ(copies(), 1);
}

TEST_P(Writes, OnlyWhatIsNeededIsWritten) {
  Tensor a = make(counting(4));
  assign(a, add(a, scalar(1)));
  const Tensor first = mul(a, scalar(10));
  assign(a, add(a, scalar(100)));
  assign(a, add(a, scalar(1000)));
  EXPECT_EQ(get(first), (Floats{10, 20, 30, 40}));
  EXPECT_EQ(launches(), 1);  // the first write and its reader
  EXPECT_EQ(get(a), (Floats{1101, 1102, 1103, 1104}));
  EXPECT_EQ(launches(), 3);
  EXPECT_EQ(get(first), (Floats{10, 20, 30, 40}));
}

TEST_P(Writes, WrappedMemoryIsWrittenWhenWorkRuns) {
  if (!context_->device().sees_host()) GTEST_SKIP() << "it cannot be: tests/tensor/far_test.cpp";
  Floats memory = counting(6);
  int released = 0;
  {
    // Every second element, backwards.
    Tensor a = wrap(
        context_, kFloat32, {3}, {-2}, memory.data() + 4, [](void* n) { ++*static_cast<int*>(n); },
        &released);
    EXPECT_EQ(get(a), (Floats{4, 2, 0}));
    Tensor old = add(a, scalar(0.5));
    assign(a, make({10, 20, 30}));
    EXPECT_EQ(memory, counting(6));
    realize_all({&a});
    EXPECT_EQ(memory, (Floats{30, 1, 20, 3, 10, 5}));
    EXPECT_EQ(get(old), (Floats{4.5, 2.5, 0.5}));
    for (int i = 0; i < 5; ++i) {
      assign(a, add(a, scalar(1)));
      realize_all({&a});
    }
    EXPECT_EQ(memory, (Floats{35, 1, 25, 3, 15, 5}));
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST_P(Writes, AFailedValueIsWrittenOnceOnly) {
  Tensor a = make(counting(4));
  assign(a, add(a, scalar(1)));
  const int64_t bad = 7;
  Tensor index = from_data(context_, kInt64, {1}, &bad, 8);
  Tensor picked = gather(a, index, 0);
  Floats one(1);
  EXPECT_THROW(read(picked, one.data(), 4), Error);
  EXPECT_EQ(get(a), (Floats{1, 2, 3, 4}));
}

// Equal expressions are one node, which may not stand for memory that was written.
TEST_P(Writes, WhatEqualsAnOldValueIsNotWhatWasWritten) {
  const Tensor source = make({0, 0, 0});
  const auto ones = [&] { return full(context_, kFloat32, {3}, 1); };
  for (const bool is_number : {true, false}) {
    const auto build = [&] { return is_number ? ones() : add(mul(source, source), ones()); };
    Tensor t = build();
    realize_all({&t});
    assign(t, make({7, 8, 9}));
    realize_all({&t});
    EXPECT_EQ(get(t), (Floats{7, 8, 9}));
    EXPECT_EQ(get(build()), (Floats{1, 1, 1}));
  }
}

TEST_P(Writes, ATensorFilledWithOneNumberGetsMemoryOfItsOwn) {
  Tensor zeros = full(context_, kFloat32, {4}, 0);
  const Tensor others = full(context_, kFloat32, {4}, 0);
  Tensor part = slice(zeros, {1}, {3});
  assign(part, scalar(2));
  EXPECT_EQ(get(zeros), (Floats{0, 2, 2, 0}));
  EXPECT_EQ(get(others), Floats(4));
}

// NumPy in small: arrays that share memory, every statement done at once.
struct Eager {
  std::shared_ptr<Floats> memory;
  Ints shape;
  Ints strides;
  int64_t offset = 0;

  std::vector<size_t> places() const {
    std::vector<size_t> out;
    int64_t count = 1;
    for (int64_t n : shape) count *= n;
    for (int64_t flat = 0; flat < count; ++flat) {
      int64_t at = offset;
      int64_t rest = flat;
      for (size_t i = shape.size(); i-- > 0; rest /= shape[i]) at += rest % shape[i] * strides[i];
      out.push_back(static_cast<size_t>(at));
    }
    return out;
  }
  Floats values() const {
    Floats out;
    for (size_t at : places()) out.push_back((*memory)[at]);
    return out;
  }
};

class Sequence {
 public:
  Sequence(Ref<Context> context, uint64_t seed) : context_(std::move(context)), random_(seed) {}

  // "" if every value is what it should be at every moment.
  std::string run(int64_t steps) {
    for (int i = 0; i < 3; ++i) fresh();
    for (int64_t i = 0; i < steps; ++i) step();
    while (!pool_.empty()) check(below(std::ssize(pool_))), drop(below(std::ssize(pool_)));
    return error_;
  }

 private:
  struct Pair {
    Tensor tensor;
    Eager eager;
  };

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  Pair& pick() { return pool_[static_cast<size_t>(below(std::ssize(pool_)))]; }

  void keep(Tensor tensor, const Floats& values) {
    pool_.push_back({std::move(tensor), {std::make_shared<Floats>(values), {8}, {1}, 0}});
  }
  void fresh() {
    Floats values;
    for (int i = 0; i < 8; ++i) values.push_back(static_cast<float>(below(50)));
    keep(from_data(context_, kFloat32, {8}, values.data(), 32), values);
  }
  // A view of whatever shape: 8 elements at most.
  void view() {
    Pair made = pick();
    const int64_t n = made.eager.shape[0];
    const int64_t begin = below(n);
    const int64_t end = begin + 1 + below(n - begin);
    const int64_t step = 1 + below(2);
    made.tensor = slice(made.tensor, {begin}, {end}, {step});
    made.eager.offset += begin * made.eager.strides[0];
    made.eager.strides[0] *= step;
    made.eager.shape[0] = (end - begin + step - 1) / step;
    if (below(3) == 0) {
      made.tensor = flip(made.tensor, {0});
      made.eager.offset += (made.eager.shape[0] - 1) * made.eager.strides[0];
      made.eager.strides[0] *= -1;
    }
    pool_.push_back(made);
  }
  // A value of `count` elements from two others.
  std::pair<Tensor, Floats> value(int64_t count) {
    Tensor sum;
    Floats values(static_cast<size_t>(count));
    for (int operand = 0; operand < 2; ++operand) {
      const Pair p = pick();
      const Floats from = p.eager.values();
      const int64_t n = p.eager.shape[0];
      Tensor t;
      if (n >= count) {
        const int64_t at = below(n - count + 1);
        t = slice(p.tensor, {at}, {at + count});
        for (int64_t i = 0; i < count; ++i)
          values[static_cast<size_t>(i)] += from[static_cast<size_t>(at + i)];
      } else {
        t = tiny::sum(p.tensor, {0}, true);
        float total = 0;
        for (float f : from) total += f;
        for (float& v : values) v += total;
      }
      sum = sum ? add(sum, t) : t;
    }
    // Keeps the numbers small: every value is exact.
    for (float& v : values) v = v - 64 * std::floor(v / 64);
    return {floor_mod(sum, Tensor::weak_float(context_, 64)), values};
  }
  void write() {
    Pair& to = pick();
    const int64_t count = to.eager.shape[0];
    const auto [tensor, values] = value(count);
    assign(to.tensor, tensor);
    size_t i = 0;
    for (size_t at : to.eager.places()) (*to.eager.memory)[at] = values[i++];
    if (tensor.shape() == Shape{8} && below(2) == 0) keep(tensor, values);
  }
  void compute() {
    auto [tensor, values] = value(8);
    if (tensor.shape() == Shape{8}) keep(tensor, values);
  }
  void check(int64_t index) {
    Pair& p = pool_[static_cast<size_t>(index)];
    Floats got(p.eager.values().size());
    read(p.tensor, got.data(), std::ssize(got) * 4);
    if (got != p.eager.values() && error_.empty())
      error_ = cat("tensor ", index, ": got ", ::testing::PrintToString(got), ", want ",
                   ::testing::PrintToString(p.eager.values()));
  }
  void drop(int64_t index) { pool_.erase(pool_.begin() + index); }
  void step() {
    switch (below(8)) {
      case 0:
        return view();
      case 1:
      case 2:
        return compute();
      case 3:
      case 4:
      case 5:
        return write();
      case 6:
        if (pool_.size() > 4) drop(below(std::ssize(pool_)));
        return pool_.size() < 3 ? fresh() : void();
      default:
        return check(below(std::ssize(pool_)));
    }
  }

  Ref<Context> context_;
  std::mt19937_64 random_;
  std::vector<Pair> pool_;
  std::string error_;
};

TEST_P(Writes, RandomSequencesHaveTheValuesOfAnEagerModel) {
  const bool compiles = GetParam() == "c";
  const uint64_t seeds = compiles ? 1 : GetParam() == "interp" ? 150 : 50;
  for (uint64_t seed = 1; seed <= seeds; ++seed)
    ASSERT_EQ(Sequence(context_, seed).run(compiles ? 10 : 40), "") << "seed " << seed;
  if (!compiles) {
    EXPECT_GT(copies(), 30);
  }
}

// A concatenation of a value that is stored itself only copies it: its parts wait for no part.
TEST_P(Writes, AStoredValueStandsTwiceInAConcatenation) {
  Tensor other = make({1, 2, 3});
  Tensor value = add(make({1, 2}), scalar(1));
  const Tensor parts[] = {value, value};
  Tensor both = concat(parts, 0);
  assign(other, add(other, scalar(1)));
  realize_all({&value, &both, &other});
  EXPECT_EQ(get(value), (Floats{2, 3}));
  EXPECT_EQ(get(both), (Floats{2, 3, 2, 3}));
  EXPECT_EQ(get(other), (Floats{2, 3, 4}));
}

// All constants of a value are one node: the memory of one of them is not that of others.
TEST_P(Writes, AConstantStaysWhatItIs) {
  for (const Shape& shape : {Shape{1}, Shape{2}}) {
    Tensor zeros = full(context_, kFloat32, shape, 0);
    Tensor* one[] = {&zeros};
    realize(one);
    assign(zeros, scalar(5));
    realize(one);
    EXPECT_EQ(get(add(make({1, 2}), full(context_, kFloat32, shape, 0))), (Floats{1, 2}));
    EXPECT_EQ(get(full(context_, kFloat32, {1}, 0)), (Floats{0}));
  }
}

}  // namespace
}  // namespace tiny
