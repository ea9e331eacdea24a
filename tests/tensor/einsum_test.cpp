// Sums over named axes, and scaled products of matrices, against loops over plain numbers.
#include "tensor/einsum.h"

#include <gtest/gtest.h>

#include "shape/shape.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"
#include "tests/tensor/arrays.h"

namespace tiny {
namespace {

using testing::Array;
using testing::expect_failure;
using testing::failure_of;
using testing::Floats;
using testing::floats;
using testing::floats_of;
using testing::generate;

// Whole numbers, whose sums are exact in every order.
Array numbers(const Ints& shape, int64_t seed) {
  int64_t i = 0;
  return generate(shape,
                  [&](const Ints&) { return static_cast<double>((++i * 7 + seed * 5) % 11 - 5); });
}

void expect_equal(const Tensor& got, const Array& want) {
  EXPECT_EQ(got.shape(), to_shape(want.shape));
  EXPECT_EQ(floats_of(cast(got, kFloat32)), Floats(want.values.begin(), want.values.end()));
}

class Einsum : public ::testing::TestWithParam<std::string> {
 protected:
  Tensor of(const Array& a) const { return testing::tensor_of(context_, a); }
  Tensor summed(const char* equation, const std::vector<Array>& arrays) const {
    std::vector<Tensor> operands;
    for (const Array& a : arrays) operands.push_back(of(a));
    return einsum(equation, operands);
  }
  Ref<Context> context_ = testing::new_context(GetParam());
  const Array a_ = numbers({2, 3}, 1), b_ = numbers({3, 4}, 2);
};

INSTANTIATE_TEST_SUITE_P(Devices, Einsum, ::testing::Values("cpu", "interp"));

TEST_P(Einsum, SumsWhatTheResultLacks) {
  const Array product = generate({4, 2}, [&](const Ints& at) {
    double sum = 0;
    for (int64_t j = 0; j < 3; ++j) sum += a_.at({at[1], j}) * b_.at({j, at[0]});
    return sum;
  });
  expect_equal(summed("ij, jk -> ki", {a_, b_}), product);
  const Array turned = generate({2, 4}, [&](const Ints& at) { return product.at({at[1], at[0]}); });
  expect_equal(summed("ij,jk", {a_, b_}), turned);
  double total = 0;
  for (double v : product.values) total += v;
  expect_equal(summed("ij,jk->", {a_, b_}), Array{{}, {total}});
  expect_equal(summed("ba", {a_}),
               generate({3, 2}, [&](const Ints& at) { return a_.at({at[1], at[0]}); }));
}

TEST_P(Einsum, AChainIsOneProductAfterTheOther) {
  const Array c = numbers({4, 5}, 3);
  const Array product = generate({2, 5}, [&](const Ints& at) {
    double sum = 0;
    for (int64_t j = 0; j < 3; ++j)
      for (int64_t k = 0; k < 4; ++k) sum += a_.at({at[0], j}) * b_.at({j, k}) * c.at({k, at[1]});
    return sum;
  });
  const Tensor made = summed("ij,jk,kl->il", {a_, b_, c});
  // The larger of both products, not that of all axes.
  for (const UOp& node : topological({&made.node(), 1}))
    EXPECT_LE(elements_at_most(node), 2 * 4 * 5);
  expect_equal(made, product);
}

TEST_P(Einsum, RepeatedLettersAreDiagonals) {
  const Array square = numbers({2, 3, 3}, 3);
  expect_equal(summed("bii->bi", {square}),
               generate({2, 3}, [&](const Ints& at) { return square.at({at[0], at[1], at[1]}); }));
  const Array trace = generate({2}, [&](const Ints& at) {
    return square.at({at[0], 0, 0}) + square.at({at[0], 1, 1}) + square.at({at[0], 2, 2});
  });
  expect_equal(summed("...ii", {square}), trace);
}

TEST_P(Einsum, EllipsesBroadcast) {
  const Array x = numbers({5, 2, 3}, 4), y = numbers({5, 1, 3, 4}, 5);
  const Array want = generate({5, 5, 2, 4}, [&](const Ints& at) {
    double sum = 0;
    for (int64_t j = 0; j < 3; ++j) sum += x.at({at[1], at[2], j}) * y.at({at[0], 0, j, at[3]});
    return sum;
  });
  expect_equal(summed("...ij,...jk->...ik", {x, y}), want);
}

TEST_P(Einsum, MistakesAreNamed) {
  const auto failure = [&](const char* equation, const std::vector<Array>& arrays) {
    return failure_of([&] { summed(equation, arrays); });
  };
  expect_failure(failure("ij", {a_, b_}), Status::InvalidArgument, {"1 terms for 2 operands"});
  expect_failure(failure("ijk", {a_}), Status::Shape, {"\"ijk\"", "2 axes"});
  expect_failure(failure("i1", {a_}), Status::InvalidArgument, {"\"i1\""});
  expect_failure(failure("...i...,j->", {a_, b_}), Status::InvalidArgument, {"\"...i...\""});
  expect_failure(failure("ij->k", {a_}), Status::InvalidArgument, {"ij->k"});
  expect_failure(failure("ii", {a_}), Status::Shape, {"2 and 3", "[2, 3]"});
  expect_failure(failure("", {}), Status::InvalidArgument, {"no tensors"});
}

TEST_P(Einsum, ProductsAreScaledAndAdded) {
  const Array c = numbers({4}, 6);
  const Array want = generate({2, 4}, [&](const Ints& at) {
    double sum = 0;
    for (int64_t j = 0; j < 3; ++j) sum += a_.at({at[0], j}) * b_.at({j, at[1]});
    return 0.5 * sum + 2 * c.at({at[1]});
  });
  expect_equal(gemm(of(a_), of(b_), of(c), 0.5, 2), want);
  expect_equal(gemm(of(a_), of(b_)), generate({2, 4}, [&](const Ints& at) {
                 return (want.at(at) - 2 * c.at({at[1]})) * 2;
               }));
  const Tensor whole = gemm(cast(of(a_), kInt32), cast(of(b_), kInt32), Tensor(), 3);
  EXPECT_EQ(whole.dtype(), kInt32);
  expect_equal(whole, generate({2, 4}, [&](const Ints& at) {
                 return (want.at(at) - 2 * c.at({at[1]})) * 6;
               }));
  expect_failure(failure_of([&] { gemm(of(a_), of(b_), of(numbers({3, 2, 4}, 1))); }),
                 Status::Shape, {"[3, 2, 4]", "[2, 4]"});
}

}  // namespace
}  // namespace tiny
