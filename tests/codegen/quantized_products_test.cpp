// Products of quantised values and of narrow constants have the oracle's values: what is rewritten
// for words, stored for them, or widened where it is read.
#include <gtest/gtest.h>

#include <random>

#include "engine/backend.h"
#include "engine/compile.h"
#include "engine/program.h"
#include "ir/dot.h"
#include "shape/shape.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/run.h"
#include "tensor/window.h"
#include "tests/reference/reference.h"
#include "tests/support/constants.h"
#include "tests/support/context.h"
#include "tests/support/environment.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

// A product of a float input with a constant; equal for equal seeds.
class Product {
 public:
  Product(Ref<Context> context, uint64_t seed) : context_(std::move(context)), random_(seed) {
    kind_ = static_cast<Kind>(below(4));
    k_ = kind_ == Kind::Weights ? one_of({256, 512}) : one_of({8, 24, 61, 128});
    if (kind_ == Kind::Convolution)
      shape_ = {1, one_of({4, 6, 8, 19, 50}), 3 + below(9), 3 + below(9)};
    else
      shape_ = {kind_ == Kind::Weights ? 1 + below(7) : 1 + below(40), k_};
  }

  const Ints& shape() const { return shape_; }
  Tensor input() { return floats(shape_, 16); }

  Tensor make(const Tensor& x) {
    switch (kind_) {
      case Kind::Weights:
        return matmul(x, weights(one_of({48, 600, 1024})));
      case Kind::Dynamic: {
        const Tensor range = max(abs(x), {0, 1});
        const Tensor q = quantized(x, range / number(range, 127), number(range, 9));
        return cast(matmul(wide(q) - number_int(wide(q), 9), wide(bytes({k_, columns()}, kInt8))),
                    kFloat32) *
               range;
      }
      case Kind::Quantized:
        return matmul(dequantized(x), widened(Ints{k_, columns()}, below(4)));
      case Kind::Convolution:
        break;
    }
    Window options;
    const int64_t size = one_of({1, 3});
    options.before = options.after = {below(size), below(size)};
    const Tensor w = widened({one_of({16, 40}), shape_[1], size, size}, below(2) ? 0 : 4);
    return conv(dequantized(x), w, Tensor(), options);
  }

 private:
  enum class Kind { Weights, Dynamic, Quantized, Convolution };

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t one_of(const Ints& list) { return list[static_cast<size_t>(below(std::ssize(list)))]; }
  int64_t columns() { return one_of({16, 20, 64, 96}); }
  static Tensor wide(const Tensor& t) { return cast(t, kInt32); }

  Tensor floats(const Ints& shape, int64_t parts) {
    testing::Floats values;
    for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i)
      values.push_back(static_cast<float>(below(2 * parts + 1) - parts) /
                       static_cast<float>(parts));
    return testing::floats(context_, values, shape);
  }
  Tensor scale(const Ints& shape) {
    return abs(floats(shape, 7)) + testing::floats(context_, {0.3F});
  }
  Tensor bytes(const Ints& shape, DType dtype) {
    std::vector<uint8_t> values;
    for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i)
      values.push_back(static_cast<uint8_t>(random_()));
    return from_data(context_, dtype, shape, values.data(), std::ssize(values));
  }
  // Bytes less a point, scaled: 0 for all, 1 by column, 2 by step, 3 without a point, 4 by filter.
  Tensor widened(const Ints& shape, int64_t how) {
    Ints each(shape.size(), 1);
    if (how == 1) each.back() = shape.back();
    if (how == 2) each[0] = shape[0];
    if (how == 4) each[0] = shape[0];
    const DType dtype = below(2) ? kInt8 : kUInt8;
    Tensor q = wide(bytes(shape, dtype));
    if (how != 3) q = q - wide(bytes(how == 2 ? Ints(shape.size(), 1) : each, dtype));
    return cast(q, kFloat32) * scale(each);
  }
  Tensor weights(int64_t columns) {
    Ints shape{k_, columns};
    const bool turned = below(3) == 0;
    if (turned) std::swap(shape[0], shape[1]);
    const int64_t how = below(6);
    Tensor w = how == 4   ? cast(cast(floats(shape, 99), kFloat16), kFloat32)
               : how == 5 ? cast(cast(floats(shape, 99), kBFloat16), kFloat32) * scale({1, 1})
                          : widened(shape, how);
    return turned ? transpose(w, 0, 1) : w;
  }
  static Tensor quantized(const Tensor& x, const Tensor& scale, const Tensor& point) {
    const Tensor steps = round(x / scale) + point;
    return cast(minimum(maximum(steps, number(steps, 0)), number(steps, 255)), kUInt8);
  }
  Tensor dequantized(const Tensor& x) {
    const Tensor scale = number(x, 0.01);
    const Tensor q = wide(quantized(x, scale, number(x, 117)));
    return cast(q - number_int(q, 117), kFloat32) * scale;
  }

  Ref<Context> context_;
  std::mt19937_64 random_;
  Kind kind_ = Kind::Weights;
  Ints shape_;
  int64_t k_ = 1;
};

TEST(QuantizedProducts, HaveTheOraclesValues) {
  const uint64_t first = testing::number_from("SEED", 1);
  const uint64_t count = testing::number_from("SEEDS", 24);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    for (const auto& [device, isa] : {std::pair("cpu", "auto"), {"cpu", "avx2"}, {"interp", ""}}) {
      Flags flags = testing::flags_for(device, isa);
      flags.threads = 1 + static_cast<int64_t>(seed % 3 == 0);
      const Ref<Context> context = make_ref<Context>(flags);
      Product product(context, seed);
      const Tensor data = product.input();
      Product of_program = product;
      const Tensor input = make_placeholder(context, kFloat32, to_shape(product.shape()));
      const Tensor wanted = product.make(data);
      const Ref<const TensorProgram> program =
          testing::compile_with_constants(context, input, of_program.make(input));
      TensorRun run(context, program);
      run.set_input(0, data);
      run.execute();
      const reference::Values want = reference::evaluate(wanted.node());
      testing::Floats got(want.size());
      run.read_output(0, got.data());
      EXPECT_EQ(reference::difference(want, got.data()), "")
          << "SEED=" << seed << " " << device << " " << isa;
    }
  }
}

// Rows a page apart are copied, all at once.
TEST(QuantizedProducts, RowsThatCollideHaveTheSumsOfTheirProducts) {
  constexpr int64_t kRows = 29, kColumns = 512, kSteps = 4096;
  std::vector<uint8_t> codes(kRows * kSteps);
  std::vector<int8_t> weights(kSteps * kColumns);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i * 7919 % 251);
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = static_cast<int8_t>(static_cast<int64_t>(i * 31 % 127) - 63);
  std::vector<int32_t> want(kRows * kColumns);
  for (size_t r = 0; r < kRows; ++r)
    for (size_t k = 0; k < kSteps; ++k)
      for (size_t c = 0; c < kColumns; ++c)
        want[r * kColumns + c] += codes[r * kSteps + k] * weights[k * kColumns + c];
  for (const int64_t threads : {1, 2}) {
    Flags flags = testing::flags_for("cpu", "auto");
    flags.spec = 1;
    flags.threads = threads;
    const Ref<Context> context = make_ref<Context>(flags);
    const Tensor input = make_placeholder(context, kUInt8, {kRows, kSteps});
    const Tensor w =
        from_data(context, kInt8, {kSteps, kColumns}, weights.data(), std::ssize(weights));
    const Tensor product = matmul(cast(input, kInt32), cast(w, kInt32));
    TensorRun run(context, testing::compile_with_constants(context, input, product));
    run.set_input(0, from_data(context, kUInt8, {kRows, kSteps}, codes.data(), std::ssize(codes)));
    run.execute();
    std::vector<int32_t> got(want.size());
    run.read_output(0, got.data());
    EXPECT_EQ(got, want) << threads << " threads";
  }
}

// The correction of a zero point differs from column to column alone: no row has its own.
TEST(QuantizedProducts, CorrectionsAreStoredOnce) {
  constexpr int64_t kRows = 32, kColumns = 64, kSteps = 128;
  const Ref<Context> context = make_ref<Context>(testing::flags_for("cpu", "auto"));
  if (!(context->backend().machine().dots & kIntegerDots)) GTEST_SKIP() << "no products of bytes";
  const Tensor x = make_placeholder(context, kUInt8, {kRows, kSteps});
  const testing::Floats codes(static_cast<size_t>(kSteps * kColumns), 3.0F);
  const Tensor w = cast(testing::floats(context, codes, {kSteps, kColumns}), kInt8);
  const Tensor shifted = cast(x, kInt32) - cast(testing::floats(context, {117}, {1, 1}), kInt32);
  const Tensor product = matmul(shifted, cast(w, kInt32));
  const Ref<const TensorProgram> program = testing::compile_with_constants(context, x, product);
  int64_t bytes = 0;
  for (const Slot& slot : program->compiled.program->slots)
    if (slot.kind == SlotKind::Captured) bytes += slot.bytes;
  EXPECT_EQ(bytes, kSteps * kColumns + kColumns * 4);
}

}  // namespace
}  // namespace tiny
