// The laws of the operator tables, and the host's arithmetic against the engine's.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "engine/compile.h"
#include "onnx/import/host_value.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/strides.h"
#include "tests/onnx/running.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"

namespace tiny::onnx {
namespace {

using tiny::testing::expect_failure;
using tiny::testing::failure_of;
using tiny::testing::new_context;

TEST(Table, NoVersionOfAnOperatorHasTwoRows) {
  std::map<std::pair<std::string, std::string>, std::set<int64_t>> versions;
  for (std::span<const Row> table : tables())
    for (const Row& row : table) {
      EXPECT_LE(row.first, row.last) << row.op_type;
      EXPECT_LE(row.last, kNewestOpset) << row.op_type;
      EXPECT_TRUE((row.import == nullptr) != (row.unary == nullptr)) << row.op_type;
      for (int64_t v = row.first; v <= row.last; ++v)
        EXPECT_TRUE(versions[std::make_pair(row.domain, row.op_type)].insert(v).second)
            << row.op_type << " version " << v;
    }
}

TEST(Table, FindsTheRowOfAVersion) {
  const Row* old = find_row("", "Softmax", 12);
  const Row* recent = find_row("", "Softmax", 13);
  ASSERT_TRUE(old && recent);
  EXPECT_NE(old, recent);
  EXPECT_EQ(find_row("", "Softmax", kNewestOpset + 1), nullptr);
  EXPECT_EQ(find_row("com.example", "Softmax", 13), nullptr);
  EXPECT_EQ(find_row("", "NoSuchOp", 13), nullptr);
  EXPECT_EQ(supported_versions("", "Softmax"), cat("1-", kNewestOpset));
  EXPECT_EQ(supported_versions("", "Upsample"), "1-9");
  EXPECT_EQ(supported_versions("", "NoSuchOp"), "");
}

// What the engine says of a small tensor must be what the host computes.
void expect_same(const Tensor& t) {
  const auto host = host_value(t.node(), 4096);
  ASSERT_TRUE(host.has_value());
  const HostTensor engine = testing::host_tensor(t);
  EXPECT_EQ(host->dtype, engine.dtype);
  EXPECT_EQ(host->shape, engine.shape);
  EXPECT_EQ(host->bytes.text(), engine.bytes.text());
}

TEST(HostValue, AgreesWithTheEngine) {
  const Ref<Context> context = new_context("interp");
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::vector<int64_t> values(24);
    for (int64_t& v : values) v = static_cast<int64_t>(random() % 100) - 50;
    const Tensor x = from_data(context, kInt64, {2, 3, 4}, values.data(), 24 * 8);
    const Tensor f = cast(x, kFloat32);
    expect_same(x);
    expect_same(permute(x, {2, 0, 1}));
    expect_same(flip(x, {0, 2}));
    expect_same(slice(x, {0, 2, 3}, {2, 0, kSliceEnd}, {1, -1, 1}));
    expect_same(slice(x, {0, 0, 0}, {2, 3, 4}, {1, 2, 3}));
    expect_same(pad(x, to_shape({1, 0, 2}), to_shape({0, 2, 1})));
    expect_same(pad(x, to_shape({0, -1, 0}), to_shape({0, 0, -2}), 7));
    expect_same(expand(reshape(x, to_shape({2, 3, 1, 4})), to_shape({2, 3, 5, 4})));
    expect_same(sum(x, {1}, true));
    expect_same(max(f, {0, 2}, false));
    expect_same(prod(x, {2}, false));
    expect_same(gather(x, arange(context, kInt64, 2), 1));
    expect_same(concat(std::vector<Tensor>{x, neg(x)}, 1));
    expect_same(where(less(x, number_int(x, 0)), floor_mod(x, number_int(x, 7)), x * x));
    expect_same(trunc_div(x, number_int(x, 3)) - floor_div(x, number_int(x, 3)));
    expect_same(as_strided(x, {3, 2}, {4, 12}, 1));
    expect_same(cast(f / number(f, 3), kInt8));
  }
}

TEST(HostValue, StopsAtInputsAndAtLargeValues) {
  const Ref<Context> context = new_context("interp");
  const UOp input = make_input(*context, kInt64, 3);
  const Tensor x(context, input);
  Dependences dependences;
  EXPECT_TRUE(dependences.of((x + x).node()).on_input);
  EXPECT_FALSE(host_value((x + x).node(), 100).has_value());
  const Tensor big = arange(context, kInt64, 1000);
  EXPECT_FALSE(dependences.of(big.node()).on_input);
  EXPECT_FALSE(host_value(sum(big, {0}).node(), 100).has_value());
  EXPECT_TRUE(host_value(sum(big, {0}).node(), 1000).has_value());
}

TEST(HostValue, AnIndexOutOfRangeIsAnError) {
  const Ref<Context> context = new_context("interp");
  const Tensor data = arange(context, kInt64, 3);
  const int64_t index = 5;
  const Tensor at = from_data(context, kInt64, {1}, &index, 8);
  expect_failure(failure_of([&] { host_value(gather(data, at, 0).node(), 100); }), Status::Index);
}

}  // namespace
}  // namespace tiny::onnx
