// Contractions with constant operands have the oracle's values, whatever panels the constants lie
// in and however they are walked.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "engine/backend.h"
#include "engine/compile.h"
#include "ir/dot.h"
#include "shape/shape.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/quantization.h"
#include "tensor/run.h"
#include "tensor/value.h"
#include "tensor/window.h"
#include "tests/reference/reference.h"
#include "tests/support/constants.h"
#include "tests/support/context.h"
#include "tests/support/environment.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : random_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t one_of(const Ints& list) { return list[static_cast<size_t>(below(std::ssize(list)))]; }
  Tensor tensor(const Ref<Context>& context, const Ints& shape) {
    testing::Floats values;
    for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i)
      values.push_back(static_cast<float>(below(33) - 16) / 16);
    return testing::floats(context, values, shape);
  }

 private:
  std::mt19937_64 random_;
};

// Sometimes what is read is computed on the way.
Tensor prologue(Random& random, const Tensor& x, const Ints& shape) {
  if (random.below(2)) return x;
  return relu(mul(add(x, random.tensor(Ref<Context>(&x.context()), shape)),
                  random.tensor(Ref<Context>(&x.context()), shape)));
}

// Two contractions, one after the other: the second's operand is a value that has a layout.
Tensor matrices(Random& random, const Tensor& x, int64_t k) {
  const Ref<Context> context(&x.context());
  const int64_t n = random.one_of({16, 32, 48, 50, 64, 96, 200, 203, 509, 1024});
  const int64_t m = random.one_of({7, 16, 24, 40});
  Tensor w = random.tensor(context, {k, n});
  if (random.below(2)) w = permute(random.tensor(context, {n, k}), {1, 0});
  return matmul(relu(matmul(prologue(random, x, {k}), w)), random.tensor(context, {n, m}));
}

// Channels lie second or last.
Tensor convolutions(Random& random, const Tensor& given, int64_t channels, bool is_last) {
  const Ref<Context> context(&given.context());
  const Tensor x = is_last ? permute(given, {0, 3, 1, 2}) : given;
  const int64_t groups = random.one_of({1, 1, 1, 2, channels});
  const int64_t middle = random.one_of({16, 32, 48, 64}) * (groups == channels ? channels / 8 : 1);
  const int64_t size = random.one_of({1, 3});
  Window options;
  options.before = options.after = {size / 2, size / 2};
  if (random.below(3) == 0) options.strides = {2, 2};
  const Tensor first = conv(prologue(random, x, {channels, 1, 1}),
                            random.tensor(context, {middle, channels / groups, size, size}),
                            Tensor(), options.with_groups(groups));
  return conv(relu(first), random.tensor(context, {random.one_of({8, 32, 40}), middle, 1, 1}),
              Tensor(), {});
}

struct Case {
  Tensor wanted, output;  // of the data, of an input that stands for it
  Tensor data, input;
};

void expect_oracles_values(const Ref<Context>& context, const Case& c) {
  const Ref<const TensorProgram> program =
      testing::compile_with_constants(context, c.input, c.output);
  TensorRun run(context, program);
  run.set_input(0, c.data);
  run.execute();
  const reference::Values want = reference::evaluate(c.wanted.node());
  testing::Floats got(want.size());
  run.read_output(0, got.data());
  EXPECT_EQ(reference::difference(want, got.data()), "");
}

TEST(PackedOperands, HaveTheOraclesValues) {
  const uint64_t seeds = testing::number_from("SEEDS", 40);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Random random(seed);
    Flags flags = testing::flags_for("cpu", random.below(2) ? "avx2" : "auto");
    flags.threads = 1 + random.below(2);
    flags.wino = "0";  // the oracle knows the bounds of the sum as it stands
    const Ref<Context> context = make_ref<Context>(flags);
    const bool is_conv = random.below(2) != 0;
    const int64_t k =
        is_conv ? random.one_of({8, 16, 24}) : random.one_of({24, 64, 400, 600, 1024});
    const int64_t rows = 1 + random.below(30);
    const int64_t height = 1 + random.below(12);
    const int64_t width = 1 + random.below(12);
    const bool is_last = random.below(2) != 0;
    const Ints image = is_last ? Ints{1, height, width, k} : Ints{1, k, height, width};
    const Ints shape = is_conv ? image : Ints{rows, k};
    const Tensor data = random.tensor(context, shape);
    const Tensor input = make_placeholder(context, kFloat32, to_shape(shape));
    Random of_program = random;
    const auto make = [&](Random& of, const Tensor& x) {
      return is_conv ? convolutions(of, x, k, is_last) : matrices(of, x, k);
    };
    const Tensor wanted = make(random, data);
    const Tensor output = make(of_program, input);
    SCOPED_TRACE(cat("seed ", seed));
    expect_oracles_values(context, {wanted, output, data, input});
  }
}

// A constant of bytes whose last word of each column is a part of one.
TEST(PackedOperands, BytesOfStepsThatFillNoWordsHaveTheOraclesValues) {
  for (const int64_t steps : {61, 62, 63, 191})
    for (const int64_t columns : {19, 64, 316}) {
      SCOPED_TRACE(cat(steps, " steps, ", columns, " columns"));
      const Ref<Context> context = make_ref<Context>(testing::flags_for("cpu"));
      std::mt19937_64 random(1);
      const auto bytes = [&](DType dtype, const Ints& shape) {
        std::vector<uint8_t> values(static_cast<size_t>(shape[0] * shape[1]));
        for (uint8_t& v : values) v = static_cast<uint8_t>(random());
        return from_data(context, dtype, shape, values.data(), std::ssize(values));
      };
      const Tensor weights = bytes(kInt8, {steps, columns}), data = bytes(kUInt8, {13, steps});
      const Tensor input = make_placeholder(context, kUInt8, to_shape({13, steps}));
      const auto make = [&](const Tensor& x) {
        return cast(matmul(cast(x, kInt32), cast(weights, kInt32)), kFloat32);
      };
      const Case c{make(data), make(input), data, input};
      expect_oracles_values(context, c);
      const auto program = testing::compile_with_constants(context, c.input, c.output);
      const bool has_words = context->backend().machine().has_dot(DotKind::U8S8);
      for (const auto& launch : program->compiled.program->tape)
        EXPECT_EQ(launch.info.options.find("DOT") != std::string::npos, has_words)
            << launch.info.name << ": " << launch.info.options;
    }
}

// Weights of few bits in blocks stay the bytes that they are, and words of them are made of bits.
TEST(PackedOperands, NumbersOfFewBitsHaveTheOraclesValues) {
  constexpr int64_t kBlock = 32, kColumns = 70;
  for (const char* isa : {"auto", "avx2"})
    for (const int64_t bits : {2, 4, 8})
      for (const int64_t rows : {1, 5})
        for (const int64_t steps : {96, 85}) {
          SCOPED_TRACE(cat(isa, ", ", bits, " bits, ", rows, " rows, ", steps, " steps"));
          const Ref<Context> context = make_ref<Context>(testing::flags_for("cpu", isa));
          Random random(static_cast<uint64_t>(bits));
          const int64_t blocks = (steps + kBlock - 1) / kBlock, bytes = kBlock * bits / 8;
          std::vector<uint8_t> values(static_cast<size_t>(kColumns * blocks * bytes));
          for (uint8_t& v : values) v = static_cast<uint8_t>(random.below(256));
          const Tensor packed = from_data(context, kUInt8, {kColumns, blocks, bytes}, values.data(),
                                          std::ssize(values));
          const Tensor scale = random.tensor(context, {kColumns, blocks});
          const Tensor zero = rows == 1 ? Tensor() : random.tensor(context, {kColumns, blocks});
          testing::Floats numbers;  // that are no halves of a step
          for (int64_t i = 0; i < rows * steps; ++i)
            numbers.push_back(std::sin(1.37F * static_cast<float>(i)));
          const Tensor data = testing::floats(context, numbers, {rows, steps});
          const Tensor input = make_placeholder(context, kFloat32, {rows, steps});
          const auto make = [&](const Tensor& x) {
            return matmul_packed(x, packed, bits, scale, zero);
          };
          const Case c{make(data), make(input), data, input};
          expect_oracles_values(context, c);
          const auto program = testing::compile_with_constants(context, c.input, c.output);
          const bool has_words = context->backend().machine().has_dot(DotKind::U8S8);
          bool found = false;
          for (const auto& launch : program->compiled.program->tape)
            found |= launch.info.options.find("DOT") != std::string::npos;
          EXPECT_EQ(found, has_words);
        }
}

// A matrix that stays as it lies is walked by its rows, with and without what follows the product.
TEST(PackedOperands, OneRowTimesALargeMatrixHasTheOraclesValues) {
  for (const int64_t threads : {1, 2})
    for (const int64_t steps : {264, 265})
      for (const bool has_bias : {false, true}) {
        SCOPED_TRACE(cat(threads, " threads, ", steps, " steps"));
        Flags flags = testing::flags_for("cpu", "avx2");
        flags.spec = 1;
        flags.threads = threads;
        const Ref<Context> context = make_ref<Context>(flags);
        Random random(1);
        const Tensor data = random.tensor(context, {1, steps});
        const Tensor input = make_placeholder(context, kFloat32, {1, steps});
        const Tensor matrix = random.tensor(context, {steps, 2100});
        const Tensor bias = random.tensor(context, {2100});
        const auto make = [&](const Tensor& x) {
          const Tensor product = matmul(x, matrix);
          return has_bias ? relu(add(product, bias)) : product;
        };
        expect_oracles_values(context, {make(data), make(input), data, input});
      }
}

}  // namespace
}  // namespace tiny
