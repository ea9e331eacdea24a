// Products of bytes by a matrix unit: which are chosen for one, and that they have the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "codegen/choose/choose.h"
#include "codegen/pipeline.h"
#include "engine/backend.h"
#include "ir/tile_products.h"
#include "schedule/schedule.h"
#include "shape/shape.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/value.h"
#include "tensor/window.h"
#include "tests/support/environment.h"
#include "tests/support/machines.h"

namespace tiny {
namespace {

using testing::Machine;

Ref<Context> context_for(const Machine& machine, bool optimise = true) {
  Flags flags = testing::flags_on(machine);
  flags.noopt = optimise ? 0 : 1;
  return make_ref<Context>(flags);
}

Tensor bytes_of(const Ref<Context>& context, DType dtype, const Ints& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(product(to_shape(shape)).value()));
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  return from_data(context, dtype, shape, bytes.data(), std::ssize(bytes));
}

Tensor product_of(const Ref<Context>& context, int64_t rows, int64_t steps, int64_t columns,
                  DType a = kUInt8, DType b = kInt8) {
  return matmul(cast(bytes_of(context, a, {rows, steps}, 1), kInt32),
                cast(bytes_of(context, b, {steps, columns}, 2), kInt32));
}

// What the first kernel's program multiplies by tiles, on a processor that has a matrix unit.
std::vector<TileProduct> tiles_of_product(const Tensor& value) {
  const UOp node = value.node();
  tiny::Machine target = avx512_machine();
  target.dots = dot_bit(DotKind::U8S8);
  target.tiles = target.dots;
  const Schedule schedule = make_schedule({&node, 1}, target);
  const CodegenResult made = generate(schedule.kernels.back().kernel, target, {});
  return find_tile_products(made.program, target.tiles);
}

TEST(MatrixTiles, HaveTheRowsAndColumnsOfAProduct) {
  const Ref<Context> context = context_for({"interp", ""});
  const std::vector<TileProduct> products = tiles_of_product(product_of(context, 128, 256, 64));
  ASSERT_EQ(products.size(), 1U);
  EXPECT_EQ(products[0].rows, 32);
  EXPECT_EQ(products[0].vectors, 2);
  EXPECT_EQ(products[0].steps, 16);
  EXPECT_FALSE(products[0].has_signed_rows);
  EXPECT_TRUE(products[0].has_signed_vectors);
}

// The rows that are left have tiles of their own, and loops in parts have whole ones.
TEST(MatrixTiles, OfRowsThatAreLeftAndOfLongSums) {
  const Ref<Context> context = context_for({"interp", ""});
  const std::vector<TileProduct> products = tiles_of_product(product_of(context, 70, 16384, 64));
  ASSERT_EQ(products.size(), 2U);
  EXPECT_EQ(products[0].rows, 24);
  EXPECT_EQ(products[1].rows, 22);
  for (const TileProduct& p : products) EXPECT_EQ(p.steps, 16);
}

// A tile has fewer steps where as many do not divide the sum.
TEST(MatrixTiles, OfFewerSteps) {
  const Ref<Context> context = context_for({"interp", ""});
  const std::vector<TileProduct> products = tiles_of_product(product_of(context, 64, 96, 64));
  ASSERT_EQ(products.size(), 1U);
  EXPECT_EQ(products[0].steps, 12);
}

// Rows beyond a picture's border are zeros in some of the loops over channels.
TEST(MatrixTiles, OfAWindowWithABorder) {
  const Ref<Context> context = context_for({"interp", ""});
  const Tensor pixels = permute(bytes_of(context, kUInt8, {1, 28, 28, 128}, 1), {0, 3, 1, 2});
  const Tensor weights = permute(bytes_of(context, kInt8, {3, 3, 64, 128}, 2), {2, 3, 0, 1});
  const Tensor bordered = pad(pixels, {0, 0, 1, 1}, {0, 0, 1, 1});
  const std::vector<TileProduct> products =
      tiles_of_product(conv(cast(bordered, kInt32), cast(weights, kInt32), Tensor(), {}));
  ASSERT_FALSE(products.empty());
  for (const TileProduct& p : products) {
    EXPECT_EQ(p.steps, 16);
    EXPECT_TRUE(std::ranges::any_of(p.loops, [](const TileLoop& l) { return l.words.empty(); }));
  }
  EXPECT_TRUE(std::ranges::any_of(products, [](const TileProduct& p) {
    return std::ranges::any_of(p.loops, [](const TileLoop& l) { return !l.words.empty(); });
  }));
}

TEST(MatrixTiles, AreLeftWhereTheyGainNothing) {
  const Ref<Context> context = context_for({"interp", ""});
  EXPECT_TRUE(tiles_of_product(product_of(context, 1, 256, 64)).empty());
  EXPECT_TRUE(tiles_of_product(product_of(context, 64, 8, 64)).empty()) << "a short sum";
  EXPECT_TRUE(tiles_of_product(product_of(context, 64, 4 * 61, 64)).empty()) << "61 steps";
  EXPECT_TRUE(tiles_of_product(product_of(context, 64, 256, 64, kInt8, kInt8)).empty())
      << "no products of these bytes";
}

std::vector<int32_t> read_sums(const Tensor& value) {
  Tensor t = value;
  std::vector<int32_t> out(static_cast<size_t>(element_count(t)));
  read(t, out.data(), std::ssize(out) * 4);
  return out;
}

// Of random sizes, in either order of signs, and of 1x1 and 3x3 windows of pictures.
Tensor random_value(const Ref<Context>& context, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  const bool is_signed_first = below(2) != 0;
  const DType a = is_signed_first ? kInt8 : kUInt8, b = is_signed_first ? kUInt8 : kInt8;
  const int64_t steps = below(3) == 0 ? 1 + below(400) : 32 * (1 + below(12));
  const int64_t columns = below(2) ? 32 * (1 + below(4)) : 1 + below(120);
  if (below(4) == 0) {
    const int64_t side = 5 + below(26), taps = below(2) ? 1 : 3;
    Tensor pixels = permute(bytes_of(context, a, {1, side, side, steps}, seed), {0, 3, 1, 2});
    if (below(2)) pixels = pad(pixels, {0, 0, 1, 1}, {0, 0, 1, 1});
    const Tensor weights =
        permute(bytes_of(context, b, {taps, taps, columns, steps}, seed + 1), {2, 3, 0, 1});
    return conv(cast(pixels, kInt32), cast(weights, kInt32), Tensor(), {});
  }
  Tensor sums = product_of(context, 1 + below(100), steps, columns, a, b);
  if (below(2)) sums = sums + sums;
  return sums;
}

TEST(MatrixTiles, GiveTheSameBits) {
  const uint64_t first = testing::number_from("KERNEL_SEED", 1);
  const uint64_t count = testing::number_from("KERNELS", 40);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const auto want = read_sums(random_value(context_for({"interp", ""}, false), seed));
    ASSERT_EQ(read_sums(random_value(context_for({"cpu", ""}), seed)), want)
        << "KERNEL_SEED=" << seed;
  }
}

TEST(MatrixTiles, AreInTheMachineCodeOfThisProcessor) {
  const Ref<Context> context = context_for({"cpu", ""});
  Backend& backend = context->backend();
  if (!backend.machine().has_tiles(DotKind::U8S8)) GTEST_SKIP() << "no AMX on this processor";
  const UOp node = product_of(context, 70, 256, 64).node();
  const Schedule schedule = make_schedule({&node, 1}, backend.machine());
  const CodegenResult made = generate(schedule.kernels.back().kernel, backend.machine(), {});
  const std::string listing = backend.listing(made.program);
  EXPECT_NE(listing.find("TileDot"), std::string::npos) << listing;
  EXPECT_NE(listing.find("TileRelease"), std::string::npos) << "the next kernel's state is small";
}

}  // namespace
}  // namespace tiny
