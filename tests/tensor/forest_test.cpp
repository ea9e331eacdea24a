// Trees walked by rows, held against a walk by hand.
#include "tensor/forest.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;
using testing::floats;
using testing::ints_of;

// A chain of `levels` nodes that ask whether feature 0 is at most 0, 1, ..: the first that holds
// leads to a leaf.
Forest chain(int levels) {
  Forest f;
  int32_t at = f.add();
  f.roots = {at};
  for (int i = 0; i < levels; ++i) {
    const auto node = static_cast<size_t>(at);
    f.number[node] = i;
    f.holds[node] = f.add();
    at = f.add();
    f.fails[node] = at;
  }
  return f;
}

class Trees : public ::testing::Test {
 protected:
  Ref<Context> context_ = testing::new_context("interp");
};

TEST_F(Trees, LeadRowsToTheirLeaves) {
  for (const int levels : {3, 12}) {
    const Tensor x = floats(context_, {-1, 1.5, 0, 100}, {4, 1});
    EXPECT_EQ(ints_of(forest_leaves(x, chain(levels))), (Ints{1, 5, 1, 2 * levels}));
  }
}

TEST_F(Trees, OfALeafAloneAreThatLeaf) {
  Forest f;
  f.add();
  f.roots = {f.add(), 0};
  EXPECT_EQ(ints_of(forest_leaves(floats(context_, {1, 2}, {2, 1}), f)), (Ints{1, 0, 1, 0}));
}

TEST_F(Trees, CompareInEveryWay) {
  const Tensor x = floats(context_, {1, 2, 3, std::nanf("")}, {4, 1});
  const std::pair<Split, Ints> wanted[] = {
      {Split::LessEqual, {1, 1, 2, 2}},    {Split::Less, {1, 2, 2, 2}},
      {Split::GreaterEqual, {2, 1, 1, 2}}, {Split::Greater, {2, 2, 1, 2}},
      {Split::Equal, {2, 1, 2, 2}},        {Split::NotEqual, {1, 2, 1, 1}}};
  for (const auto& [split, leaves] : wanted) {
    Forest f = chain(1);
    f.number[0] = 2;
    f.split[0] = split;
    EXPECT_EQ(ints_of(forest_leaves(x, f)), leaves);
    f.nan_holds[0] = 1;
    EXPECT_EQ(ints_of(forest_leaves(x, f)).back(), 1);
  }
}

TEST_F(Trees, ThatAreNoneAreRefused) {
  const Tensor x = floats(context_, {1, 2}, {2, 1});
  Forest round = chain(1);
  round.holds[0] = 0;
  expect_failure(failure_of([&] { forest_leaves(x, round); }), Status::InvalidArgument,
                 {"leads back to itself"});
  Forest beyond = chain(1);
  beyond.fails[0] = 3;
  expect_failure(failure_of([&] { forest_leaves(x, beyond); }), Status::InvalidArgument,
                 {"leads to 1 and 3", "3 nodes"});
  Forest blind = chain(1);
  blind.feature[0] = 1;
  expect_failure(failure_of([&] { forest_leaves(x, blind); }), Status::InvalidArgument,
                 {"feature 1 of 1"});
}

}  // namespace
}  // namespace tiny
