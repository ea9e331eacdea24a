// N-grams counted in rows, held against a count by hand.
#include "tensor/ngrams.h"

#include <gtest/gtest.h>

#include "tensor/create.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;
using testing::Floats;
using testing::floats_of;

class Ngrams : public ::testing::Test {
 protected:
  Tensor rows(const Ints& values, int64_t count) const {
    return from_data(context_, kInt64, {count, std::ssize(values) / count}, values.data(),
                     std::ssize(values) * 8);
  }
  Ref<Context> context_ = testing::new_context("interp");
};

TEST_F(Ngrams, AreCountedInTheirColumns) {
  const Tensor x = rows({1, 2, 1, 2, 3, 2, 2, 2, 2, 1}, 2);
  const std::vector<Ngram> ngrams{{{2}, 0, 1}, {{1, 2}, 2, 1}, {{2, 2, 2}, 3, 1}};
  EXPECT_EQ(floats_of(count_ngrams(x, ngrams, {.columns = 5})),
            (Floats{2, 0, 2, 0, 0, 4, 0, 0, 2, 0}));
}

TEST_F(Ngrams, HaveGapsOfOneLengthBetweenTheirMembers) {
  const Tensor x = rows({1, 5, 2, 1, 2, 6, 3, 7, 2}, 1);
  const std::vector<Ngram> ngrams{{{1, 2}, 0, 1}, {{1, 2, 3}, 1, 1}};
  EXPECT_EQ(floats_of(count_ngrams(x, ngrams, {.columns = 2})), (Floats{1, 0}));
  EXPECT_EQ(floats_of(count_ngrams(x, ngrams, {.columns = 2, .most_skipped = 1})), (Floats{2, 0}));
  // 1 . 2 . 3 does not stand there: its gaps are of two lengths.
  EXPECT_EQ(floats_of(count_ngrams(x, ngrams, {.columns = 2, .most_skipped = 4})), (Floats{4, 0}));
}

TEST_F(Ngrams, HaveWeightsAndMayCountOnce) {
  const Tensor x = rows({1, 1, 2, 1}, 1);
  const std::vector<Ngram> ngrams{{{1}, 0, 0.5}, {{3}, 1, 2}};
  EXPECT_EQ(floats_of(count_ngrams(x, ngrams, {.columns = 2})), (Floats{1.5, 0}));
  EXPECT_EQ(floats_of(count_ngrams(x, ngrams, {.columns = 2, .once = true})), (Floats{0.5, 0}));
}

TEST_F(Ngrams, LongerThanARowAreNotThere) {
  const std::vector<Ngram> ngrams{{{1, 2, 3}, 0, 1}};
  EXPECT_EQ(floats_of(count_ngrams(rows({1, 2}, 1), ngrams, {.columns = 1})), (Floats{0}));
}

TEST_F(Ngrams, WhatCannotBeIsRefused) {
  const Tensor x = rows({1, 2}, 1);
  const std::vector<Ngram> beyond{{{1}, 4, 1}}, empty{{{}, 0, 1}};
  expect_failure(failure_of([&] { count_ngrams(x, beyond, {.columns = 4}); }),
                 Status::InvalidArgument, {"column 4 of 4"});
  expect_failure(failure_of([&] { count_ngrams(x, empty, {.columns = 1}); }),
                 Status::InvalidArgument, {"an n-gram of 0"});
  expect_failure(failure_of([&] { count_ngrams(x, {}, {.columns = 0}); }), Status::Shape,
                 {"0 columns"});
}

}  // namespace
}  // namespace tiny
