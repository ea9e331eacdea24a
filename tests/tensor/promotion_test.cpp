// The promotion table of docs/semantics.md, every pair of it.
#include "tensor/promotion.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensor/create.h"
#include "tests/support/context.h"

namespace tiny {
namespace {

// Row and column meet in what stands in the row's column; the table is symmetric.
const char* const kOrder[] = {"bool",     "uint8",   "int8",    "uint16",        "int16",
                              "uint32",   "int32",   "uint64",  "int64",         "float16",
                              "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"};
const std::vector<std::vector<const char*>> kTable = {
    {"bool"},
    {"uint8", "uint8"},
    {"int8", "int16", "int8"},
    {"uint16", "uint16", "int32", "uint16"},
    {"int16", "int16", "int16", "int32", "int16"},
    {"uint32", "uint32", "int64", "uint32", "int64", "uint32"},
    {"int32", "int32", "int32", "int32", "int32", "int64", "int32"},
    {"uint64", "uint64", "float32", "uint64", "float32", "uint64", "float32", "uint64"},
    {"int64", "int64", "int64", "int64", "int64", "int64", "int64", "float32", "int64"},
    {"float16", "float16", "float16", "float16", "float16", "float16", "float16", "float16",
     "float16", "float16"},
    {"bfloat16", "bfloat16", "bfloat16", "bfloat16", "bfloat16", "bfloat16", "bfloat16", "bfloat16",
     "bfloat16", "float32", "bfloat16"},
    {"float32", "float32", "float32", "float32", "float32", "float32", "float32", "float32",
     "float32", "float32", "float32", "float32"},
    {"float64", "float64", "float64", "float64", "float64", "float64", "float64", "float64",
     "float64", "float64", "float64", "float64", "float64"},
    {"float8_e4m3fn", "float8_e4m3fn", "float8_e4m3fn", "float8_e4m3fn", "float8_e4m3fn",
     "float8_e4m3fn", "float8_e4m3fn", "float8_e4m3fn", "float8_e4m3fn", "float16", "bfloat16",
     "float32", "float64", "float8_e4m3fn"},
    {"float8_e5m2", "float8_e5m2", "float8_e5m2", "float8_e5m2", "float8_e5m2", "float8_e5m2",
     "float8_e5m2", "float8_e5m2", "float8_e5m2", "float16", "bfloat16", "float32", "float64",
     "float16", "float8_e5m2"},
};

TEST(Promotion, FollowsTheTableBothWays) {
  for (size_t row = 0; row < kTable.size(); ++row)
    for (size_t column = 0; column <= row; ++column) {
      const DType a = *dtype_named(kOrder[row]);
      const DType b = *dtype_named(kOrder[column]);
      EXPECT_EQ(to_string(promoted(a, b)), kTable[row][column])
          << kOrder[row] << " " << kOrder[column];
      EXPECT_EQ(promoted(b, a), promoted(a, b)) << kOrder[row] << " " << kOrder[column];
    }
}

TEST(Promotion, WeakScalarsTakeTheDtypeOfATensorOfTheirCategoryOrAbove) {
  const Ref<Context> context = testing::new_context("interp");
  const auto met = [&](std::vector<Tensor> operands) {
    return to_string(common_dtype(refs_to(operands)));
  };
  const auto strong = [&](const char* name) { return full(context, *dtype_named(name), {}, 1); };
  const Tensor whole = Tensor::weak_int(context, 3);
  const Tensor real = Tensor::weak_float(context, 3.5);
  EXPECT_EQ(met({whole}), "int64");
  EXPECT_EQ(met({real}), "float32");
  EXPECT_EQ(met({whole, real}), "float32");
  EXPECT_EQ(met({strong("uint8"), whole}), "uint8");
  EXPECT_EQ(met({real, strong("bfloat16")}), "bfloat16");
  EXPECT_EQ(met({strong("float16"), whole}), "float16");
  EXPECT_EQ(met({strong("int16"), real}), "float32");
  EXPECT_EQ(met({strong("bool"), whole}), "int64");
  // A tensor without axes is strong.
  EXPECT_EQ(met({strong("int8"), strong("int64")}), "int64");
  EXPECT_EQ(met({strong("int8"), whole, strong("int16")}), "int16");
}

TEST(Promotion, SettingsSayWhatNumbersBecomeAndWhatGivesWay) {
  const Ref<Context> context = testing::new_context("interp");
  context->set("default_int", kInt16.info().number);
  context->set("default_float", kFloat16.info().number);
  const auto strong = [&](DType dtype) { return full(context, dtype, {}, 1); };
  const Tensor whole = Tensor::weak_int(context, 3);
  const Tensor real = Tensor::weak_float(context, 3.5);
  EXPECT_EQ(common_dtype(refs_to(std::vector{whole})), kInt16);
  EXPECT_EQ(common_dtype(refs_to(std::vector{strong(kBool), whole})), kInt16);
  EXPECT_EQ(common_dtype(refs_to(std::vector{strong(kInt8), real})), kFloat16);
  EXPECT_EQ(common_dtype(refs_to(std::vector{strong(kInt64), strong(kUInt64)})), kFloat16);
  EXPECT_EQ(float_dtype(strong(kInt32)), kFloat16);

  const std::vector<Tensor> both = {strong(kInt8), real};
  EXPECT_TRUE(meet_weakly(refs_to(both)));
  EXPECT_FALSE(meet_weakly(refs_to(std::vector{strong(kInt8), whole})));
  EXPECT_FALSE(weak_like(strong(kFloat16), refs_to(both)).weak());
  context->set("weak_results", 1);
  EXPECT_TRUE(weak_like(strong(kFloat16), refs_to(both)).weak());
  EXPECT_FALSE(weak_like(strong(kBool), refs_to(both)).weak());  // a comparison
}

TEST(Promotion, WeakNumbersAreRoundedOnceTheirDtypeIsKnown) {
  const Ref<Context> context = testing::new_context("interp");
  const UOp tenth = as_dtype(Tensor::weak_float(context, 0.1), kFloat64);
  EXPECT_EQ(double_of(kFloat64, tenth.const_bits()), 0.1);
  const UOp big = as_dtype(Tensor::weak_int(context, (int64_t{1} << 53) + 1), kInt64);
  EXPECT_EQ(big.const_int(), (int64_t{1} << 53) + 1);
  // Nearest even in one step from int64.
  const UOp rounded =
      as_dtype(Tensor::weak_int(context, (int64_t{1} << 60) + (int64_t{1} << 36) + 1), kFloat32);
  EXPECT_EQ(double_of(kFloat32, rounded.const_bits()), 0x1p60 + 0x1p37);
}

}  // namespace
}  // namespace tiny
