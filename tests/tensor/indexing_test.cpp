// Elements, positions and reversed sequences along an axis; reductions in the
// dtype of their operand.
#include "tensor/indexing.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tensor/reduce.h"
#include "tensor/run.h"
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

// Single elements are read and checked many at once; of one that is out of range the position is
// told.
class ManyElements : public ::testing::TestWithParam<std::pair<std::string, std::string>> {
 protected:
  static constexpr int64_t kRows = 30, kColumns = 701, kOf = 211;

  Ref<TensorRun> run_of(const Tensor& a, const Tensor& index, const Tensor& result) {
    const Ref<const TensorProgram> program = compile_tensors(context_, {{a, index}}, {{result}});
    EXPECT_EQ(program->outputs.size(), 1u);
    Ref<TensorRun> run = make_ref<TensorRun>(context_, program);
    values_.resize(kRows * kOf);
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<float>(i * 7 % 1009);
    indices_.resize(kRows * kColumns);
    for (size_t i = 0; i < indices_.size(); ++i)
      indices_[i] = static_cast<int64_t>(i * i % (2 * kOf)) - kOf;
    run->bind_input(0, values_.data(), std::ssize(values_) * 4);
    run->bind_input(1, indices_.data(), std::ssize(indices_) * 8);
    return run;
  }

  Ref<Context> context_ = testing::new_context(GetParam().first, GetParam().second);
  Floats values_;
  Ints indices_;
};

std::vector<std::pair<std::string, std::string>> devices_and_isas() {
  std::vector<std::pair<std::string, std::string>> all{{"cpu", "avx2"}};
  for (const std::string& device : testing::computing_devices()) all.emplace_back(device, "");
  return all;
}

INSTANTIATE_TEST_SUITE_P(Devices, ManyElements, ::testing::ValuesIn(devices_and_isas()),
                         [](const auto& info) { return info.param.first + info.param.second; });

TEST_P(ManyElements, AreTakenAlongAnAxis) {
  const Tensor a = make_placeholder(context_, kFloat32, {kRows, kOf});
  const Tensor index = make_placeholder(context_, kInt64, {kRows, kColumns});
  const Ref<TensorRun> run = run_of(a, index, take_along_axis(a, index, 1));
  run->execute();
  Floats got(indices_.size());
  run->read_output(0, got.data());
  for (size_t i = 0; i < got.size(); ++i) {
    const int64_t at = (indices_[i] + kOf) % kOf;
    const size_t row = i / kColumns;
    ASSERT_EQ(got[i], values_[row * kOf + static_cast<size_t>(at)]) << i;
  }
}

TEST_P(ManyElements, AreCheckedEach) {
  const Tensor a = make_placeholder(context_, kFloat32, {kRows, kOf});
  const Tensor index = make_placeholder(context_, kInt64, {kRows, kColumns});
  const Ref<TensorRun> run = run_of(a, index, take_along_axis(a, index, 1));
  for (const size_t bad : {size_t{0}, size_t{5}, size_t{kColumns - 1}, size_t{kColumns},
                           size_t{7 * kColumns + 333}, size_t{kRows * kColumns - 1}})
    for (const int64_t beyond : {kOf, -kOf - 1, INT64_MAX, INT64_MIN}) {
      const int64_t good = std::exchange(indices_[bad], beyond);
      expect_failure(failure_of([&] { run->execute(); }), Status::Index,
                     {"at position " + std::to_string(bad) + " of the index tensor"});
      indices_[bad] = good;
    }
  run->execute();
}

TEST(IndexSelect, TakesElementsInTheirOrder) {
  for (const char* device : {"cpu", "interp"}) {
    const Ref<Context> context = testing::new_context(device);
    const Tensor a = floats(context, {1, 2, 3, 4, 5, 6}, {2, 3});
    EXPECT_EQ(floats_of(index_select(a, {2, 0, 2, 2}, -1)), (Floats{3, 1, 3, 3, 6, 4, 6, 6}));
    EXPECT_EQ(floats_of(index_select(a, {1}, 0)), (Floats{4, 5, 6}));
    EXPECT_EQ(const_dims(index_select(a, {}, 1).shape()), (Ints{2, 0}));
  }
}

// Lists of a few lines (runs, turned runs, repeated elements) and lists of none give what they
// name.
TEST(IndexSelect, LinesAndOtherListsAreTheSame) {
  const Ref<Context> context = testing::new_context("cpu");
  constexpr int64_t kColumns = 9;
  Floats values(4 * kColumns);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Tensor a = floats(context, values, {4, kColumns});
  const std::vector<Ints> lists{{0, 1, 2, 3, 4, 5, 6, 7, 8},
                                {3, 2, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 7, 6},
                                {0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8},
                                {6, 7, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1},
                                {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5},
                                {0, 0, 0, 1, 1, 2, 2, 3, 3, 3, 3},
                                {8, 8, 6, 6, 4, 4, 2, 2},
                                {1, 4, 7},
                                {8, 5, 2},
                                {5},
                                {5, 5, 5},
                                {2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5, 0, 4, 5, 2, 3, 5, 3, 6}};
  for (const Ints& list : lists) {
    Floats rows, columns;
    for (int64_t r = 0; r < 4; ++r)
      for (int64_t i : list) columns.push_back(static_cast<float>(r * kColumns + i));
    const Tensor turned = permute(a, {1, 0});
    for (int64_t i : list)
      for (int64_t r = 0; r < 4; ++r) rows.push_back(static_cast<float>(r * kColumns + i));
    EXPECT_EQ(floats_of(index_select(a, list, 1)), columns) << list.size();
    EXPECT_EQ(floats_of(index_select(turned, list, 0)), rows) << list.size();
    EXPECT_EQ(floats_of(neg(index_select(neg(a), list, 1))), columns) << list.size();
  }
}

TEST(IndexSelect, MistakesAreNamed) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor a = floats(context, {1, 2, 3, 4, 5, 6}, {2, 3});
  for (int64_t wrong : {-1, 3})
    expect_failure(failure_of([&] { index_select(a, {0, wrong}, 1); }), Status::InvalidArgument,
                   {"axis 1, which has 3"});
  expect_failure(failure_of([&] { index_select(a, {0}, 2); }), Status::Shape, {"axis 2"});
}

class Indexing : public ::testing::TestWithParam<std::string> {
 protected:
  Tensor ints(const Ints& values) const {
    return from_data(context_, kInt64, {std::ssize(values)}, values.data(), std::ssize(values) * 8);
  }
  Ref<Context> context_ = testing::new_context(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices, Indexing, ::testing::Values("cpu", "interp"));

TEST_P(Indexing, TheFirstGreatestIsOne) {
  const Tensor a = floats(context_, {1, 3, 3, 2, 0, 1}, {2, 3});
  EXPECT_EQ(floats_of(hardmax(a)), (Floats{0, 1, 0, 1, 0, 0}));
  EXPECT_EQ(floats_of(hardmax(a, 0)), (Floats{0, 1, 1, 1, 0, 0}));
}

TEST_P(Indexing, SequencesAreReversedUpToTheirLengths) {
  const Tensor a = floats(context_, {0, 1, 2, 3, 4, 5, 6, 7}, {2, 4});
  EXPECT_EQ(floats_of(reverse_sequence(a, ints({3, 1}), 0, 1)), (Floats{2, 1, 0, 3, 4, 5, 6, 7}));
  EXPECT_EQ(floats_of(reverse_sequence(a, ints({2, 0, 1, 2}), -1, 0)),
            (Floats{4, 1, 2, 7, 0, 5, 6, 3}));
  const Tensor beyond = reverse_sequence(a, ints({5, 1}), 0, 1);
  expect_failure(failure_of([&] { floats_of(beyond); }), Status::Index);
  expect_failure(failure_of([&] { reverse_sequence(a, ints({1}), 0, 1); }), Status::Shape,
                 {"[1]", "[2, 4]"});
  expect_failure(failure_of([&] { reverse_sequence(a, ints({1, 1}), 0, -2); }), Status::Shape);
}

TEST_P(Indexing, ReductionsKeepTheDtypeOfIntegers) {
  const Tensor a = cast(floats(context_, {-7, 2, 100, 120, 3, 4}, {3, 2}), kInt8);
  const auto of = [&](Tensor (*function)(const Tensor&, const Ints&, bool)) {
    const Tensor out = function(a, {1}, false);
    EXPECT_EQ(out.dtype(), kInt8);
    return floats_of(cast(out, kFloat32));
  };
  EXPECT_EQ(of(sum_in_dtype), (Floats{-5, 220 - 256, 7}));
  EXPECT_EQ(of(mean_in_dtype), (Floats{-2, 110, 3}));
  EXPECT_EQ(of(prod_in_dtype), (Floats{-14, 12000 - 47 * 256, 12}));
  EXPECT_EQ(of(l1_norm_in_dtype), (Floats{9, 220 - 256, 7}));
  EXPECT_EQ(of(sum_square_in_dtype), (Floats{53, 24400 - 95 * 256, 25}));
  EXPECT_EQ(of(l2_norm_in_dtype)[0], 7);
  EXPECT_EQ(of(l2_norm_in_dtype)[2], 5);
  EXPECT_EQ(of(log_sum_in_dtype)[1], 5);
  EXPECT_EQ(of(logsumexp_in_dtype), (Floats{2, 120, 4}));
  const Tensor x = floats(context_, {3, 4});
  EXPECT_EQ(floats_of(l2_norm_in_dtype(x, {0})), (Floats{5}));
  EXPECT_NEAR(floats_of(log_sum_in_dtype(x, {0}))[0], std::log(7.0), 1e-6);
}

// An index that the kernel computes is good where there are elements: around them it is not asked.
TEST_P(Indexing, APaddingHasNoIndices) {
  const Tensor a = floats(context_, {1, 2, 3, 4});
  const Tensor half =
      mul(cast(arange(context_, kInt64, 8), kFloat32), full(context_, kFloat32, {}, 0.5));
  const Tensor doubled = gather(a, cast(floor(half), kInt64));
  EXPECT_EQ(floats_of(pad(doubled, {1}, {2})), (Floats{0, 1, 1, 2, 2, 3, 3, 4, 4, 0, 0}));
}

TEST_P(Indexing, InfinitiesOfEachSign) {
  const Tensor a = floats(context_, {INFINITY, -INFINITY, NAN, 1e38f});
  const auto found = [&](bool positive, bool negative) {
    return floats_of(cast(is_inf(a, positive, negative), kFloat32));
  };
  EXPECT_EQ(found(true, true), (Floats{1, 1, 0, 0}));
  EXPECT_EQ(found(true, false), (Floats{1, 0, 0, 0}));
  EXPECT_EQ(found(false, true), (Floats{0, 1, 0, 0}));
  EXPECT_EQ(found(false, false), (Floats{0, 0, 0, 0}));
  EXPECT_EQ(floats_of(cast(is_inf(cast(floats(context_, {1, 2}), kInt32)), kFloat32)),
            (Floats{0, 0}));
}

}  // namespace
}  // namespace tiny
