// Sums of products of narrow values in words: the same on every machine, under the chosen
// options, under lists that name words, and where a target has no instruction for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "base/error.h"
#include "base/half.h"
#include "codegen/choose/choose.h"
#include "codegen/options/options.h"
#include "codegen/pipeline.h"
#include "engine/backend.h"
#include "engine/compile.h"
#include "ir/dot.h"
#include "schedule/schedule.h"
#include "shape/shape.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tensor/window.h"
#include "tests/support/environment.h"
#include "tests/support/machines.h"

namespace tiny {
namespace {

using testing::kMachines;
using testing::Machine;

Ref<Context> context_for(const Machine& machine, const std::string& options = "",
                         bool optimise = true) {
  Flags flags = testing::flags_on(machine);
  flags.opts = options;
  flags.noopt = optimise ? 0 : 1;
  flags.bf16_dots = 1;
  // Which kernels there are does not depend on the speeds of this machine: lists name their ranges.
  flags.processor = "zen5";
  return make_ref<Context>(flags);
}

// A product of two narrow tensors behind random views; equal for equal seeds.
class Product {
 public:
  Product(Ref<Context> context, uint64_t seed) : context_(std::move(context)), random_(seed) {}

  Tensor make() {
    static constexpr DType kTypes[][2] = {
        {kUInt8, kInt8}, {kInt8, kUInt8}, {kInt8, kInt8}, {kUInt8, kUInt8}, {kBFloat16, kBFloat16}};
    const DType* types = kTypes[below(5)];
    wide_ = types[0].is_float() ? kFloat32 : kInt32;
    const int64_t m = size(40), n = size(100), k = size(140);
    if (below(5) == 0) {
      const int64_t channels = size(24);
      const Tensor x = data(types[0], {1, channels, 8, 11});
      return conv(cast(x, wide_), cast(data(types[1], {size(36), channels, 3, 2}), wide_), Tensor(),
                  {});
    }
    const Tensor a = cast(data(types[0], {m, k}), wide_);
    const Tensor b = cast(data(types[1], {k, n}), wide_);
    return below(4) == 0 ? matmul(slice(a, {Dim(0), Dim(0)}, {Dim(1), Dim(k)}), b) : matmul(a, b);
  }
  DType wide() const { return wide_; }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t size(int64_t largest) {
    static constexpr int64_t kEdges[] = {1, 3, 4, 5, 8, 13, 16, 17, 32, 33, 64, 96};
    const int64_t n = below(2) ? kEdges[below(12)] : 1 + below(largest);
    return std::min(n, largest);
  }
  // Small enough that sums of bfloat16 are exact in any order.
  Tensor data(DType dtype, Ints shape) {
    const bool turned = below(3) == 0, cut = below(3) == 0;
    Ints stored = shape, begin(shape.size()), end = shape;
    if (cut)
      for (size_t i = 0; i < shape.size(); ++i) {
        begin[i] = below(3);
        end[i] = begin[i] + shape[i];
        stored[i] = end[i] + below(4);
      }
    if (turned) std::swap(stored[0], stored[1]);
    int64_t count = 1;
    for (int64_t n : stored) count *= n;
    std::vector<uint8_t> bytes;
    for (int64_t i = 0; i < count; ++i) {
      const auto bits = dtype == kBFloat16
                            ? bfloat_from_float(static_cast<float>(below(17) - 8) / 4)
                            : static_cast<uint16_t>(random_() & 0xFF);
      bytes.push_back(static_cast<uint8_t>(bits));
      if (dtype == kBFloat16) bytes.push_back(static_cast<uint8_t>(bits >> 8));
    }
    Tensor t = from_data(context_, dtype, stored, bytes.data(), std::ssize(bytes));
    if (turned) t = transpose(t, 0, 1);
    return cut ? slice(t, to_shape(begin), to_shape(end)) : t;
  }

  Ref<Context> context_;
  std::mt19937_64 random_;
  DType wide_ = kInt32;
};

std::vector<uint32_t> bits_of_product(const Ref<Context>& context, uint64_t seed) {
  Tensor t = Product(context, seed).make();
  std::vector<uint32_t> out(static_cast<size_t>(element_count(t)));
  read(t, out.data(), static_cast<int64_t>(out.size() * sizeof(uint32_t)));
  return out;
}

// The one kernel of a seed's product, as options find it; no roots if there are several.
Kernel kernel_of(const Ref<Context>& context, uint64_t seed) {
  const UOp node = Product(context, seed).make().node();
  const tiny::Machine& target = context->backend().machine();
  const Schedule schedule = make_schedule({&node, 1}, target);
  return schedule.kernels.size() == 1 ? prepare_kernel(schedule.kernels.front().kernel, target)
                                      : Kernel();
}

std::optional<DotProduct> product_in(const Kernel& kernel) {
  for (const UOp& u : topological(kernel.roots))
    if (auto product = dot_product(u)) return product;
  return std::nullopt;
}

void check_chosen(uint64_t seed) {
  const auto want = bits_of_product(context_for({"interp", ""}, "", false), seed);
  for (const Machine& machine : kMachines)
    ASSERT_EQ(bits_of_product(context_for(machine), seed), want)
        << "KERNEL_SEED=" << seed << " on " << machine;
}

TEST(DotProducts, GiveTheSameBitsUnderTheChosenOptions) {
  const uint64_t first = testing::number_from("KERNEL_SEED", 1);
  const uint64_t count = testing::number_from("KERNELS", 150);
  for (uint64_t seed = first; seed < first + count; ++seed) check_chosen(seed);
}

// The steps of a short window are side by side; those that are words are so already.
TEST(DotProducts, WordsOfAShortWindow) {
  check_chosen(984);
}

// A random list with a word in it.
std::string list_with_word(Kernel kernel, int64_t steps, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  std::vector<Option> list;
  const auto attempt = [&](const Option& option) {
    try {
      kernel = apply_option(kernel, option);
      list.push_back(option);
      return true;
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), Status::InvalidArgument) << e.message();
      return false;
    }
  };
  std::vector<int64_t> reduced;
  for (const KernelRange& r : kernel.ranges)
    if (r.reduced) reduced.push_back(r.range.int_arg());
  if (reduced.empty()) return "";
  int64_t word = reduced[below(reduced.size())];
  const int64_t made = kernel.next_range_number();
  if (attempt({OptionKind::Tile, word, steps, {}, 0, false})) word = made;
  if (!attempt({OptionKind::Dot, word, 0, {}, 0, false})) return "";
  bool has_lanes = false;
  for (int i = 0; i < 5; ++i) {
    const int64_t r = kernel.ranges[below(kernel.ranges.size())].range.int_arg();
    const int64_t inner = kernel.next_range_number();
    static constexpr int64_t kSizes[] = {2, 3, 8, 16};
    switch (below(4)) {
      case 0:
        if (!attempt({OptionKind::Tile, r, kSizes[below(3)], {}, 0, false})) break;
        if (below(2)) attempt({OptionKind::Upcast, inner, 0, {}, 0, false});
        break;
      case 1:
        if (has_lanes || !attempt({OptionKind::Tile, r, 16, {}, 0, false})) break;
        has_lanes = attempt({OptionKind::Vec, inner, 0, {}, 0, false});
        break;
      case 2: {
        Option stage{
            OptionKind::Stage, below(2) ? r : -1, static_cast<int64_t>(below(2)), {}, 0, false};
        if (below(2)) stage.list.push_back(word);
        stage.padding = below(3) == 0 ? static_cast<int64_t>(4 * below(3)) : 0;
        attempt(stage);
        break;
      }
      default:
        attempt({OptionKind::Unroll, r, 0, {}, 0, false});
    }
  }
  int64_t copies = 1;
  for (const KernelRange& r : kernel.ranges)
    if (r.kind == RangeKind::Upcast || r.kind == RangeKind::Unroll)
      copies *= r.range.src(0).const_int();
  return copies > 64 ? "" : to_text(list);
}

TEST(DotProducts, GiveTheSameBitsUnderListsThatNameWords) {
  const uint64_t first = testing::number_from("KERNEL_SEED", 1);
  const uint64_t count = testing::number_from("KERNELS", 150);
  int tried = 0, refused = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Ref<Context> owner = context_for({"interp", ""});
    const Kernel kernel = kernel_of(owner, seed);
    if (kernel.ranges.empty()) continue;
    const auto product = product_in(kernel);
    if (!product) continue;
    const std::string list = list_with_word(kernel, dot_steps(product->kind), seed);
    if (list.empty()) continue;
    const auto want = bits_of_product(context_for({"interp", ""}, "", false), seed);
    for (const Machine& machine : kMachines) {
      const Ref<Context> context = context_for(machine, list);
      try {
        ASSERT_EQ(bits_of_product(context, seed), want)
            << "KERNEL_SEED=" << seed << " on " << machine << " with TINY_OPTS=\"" << list << "\"";
        EXPECT_TRUE(context->backend().machine().has_dot(product->kind)) << list;
        ++tried;
      } catch (const Error& e) {
        EXPECT_EQ(e.status(), Status::InvalidArgument)
            << "KERNEL_SEED=" << seed << " on " << machine << " with TINY_OPTS=\"" << list << "\" "
            << e.message();
        EXPECT_FALSE(context->backend().machine().has_dot(product->kind)) << e.message();
        ++refused;
      }
    }
  }
  if (count >= 100) {
    EXPECT_GT(tried, 60);
    EXPECT_GT(refused, 10);
  }
}

// Of the first kernel of a value, on a target that has these dot products.
std::vector<Option> chosen_for(DotSet dots, const Tensor& value) {
  const UOp node = value.node();
  tiny::Machine target = avx512_machine();
  target.dots = dots;
  const Schedule schedule = make_schedule({&node, 1}, target);
  return choose_options(prepare_kernel(schedule.kernels.front().kernel, target), target);
}

// A product of constants' shapes on such a target.
std::vector<Option> chosen_for(DotSet dots, DType a, DType b, DType wide, int64_t steps = 256) {
  const Ref<Context> context = context_for({"interp", ""});
  const std::vector<uint8_t> zeros(static_cast<size_t>(256 * steps * 2));
  const auto tensor = [&](DType d) {
    return from_data(context, d, {256, steps}, zeros.data(), 256 * steps * d.bytes());
  };
  return chosen_for(dots, matmul(cast(tensor(a), wide), transpose(cast(tensor(b), wide), 0, 1)));
}

bool names_word(const std::vector<Option>& options) {
  return std::ranges::any_of(options, [](const Option& o) { return o.kind == OptionKind::Dot; });
}

TEST(DotProducts, AreChosenWhereTheTargetHasThem) {
  const DotSet mixed = dot_bit(DotKind::U8S8);
  EXPECT_TRUE(names_word(chosen_for(mixed, kUInt8, kInt8, kInt32)));
  EXPECT_TRUE(names_word(chosen_for(mixed, kInt8, kUInt8, kInt32)));
  EXPECT_FALSE(names_word(chosen_for(mixed, kInt8, kInt8, kInt32)));
  EXPECT_FALSE(names_word(chosen_for(mixed, kBFloat16, kBFloat16, kFloat32)));
  EXPECT_FALSE(names_word(chosen_for(0, kUInt8, kInt8, kInt32)));
  EXPECT_TRUE(names_word(chosen_for(kAllDots, kInt8, kInt8, kInt32)));
  EXPECT_TRUE(names_word(chosen_for(kAllDots, kUInt8, kUInt8, kInt32)));
  EXPECT_TRUE(names_word(chosen_for(kAllDots, kBFloat16, kBFloat16, kFloat32)));
  EXPECT_FALSE(names_word(chosen_for(kAllDots, kUInt8, kInt8, kInt64)));
}

// Lanes along channels or along rows of pixels, which cost about as much, are both of words.
TEST(DotProducts, AreChosenForAnyLanes) {
  const Ref<Context> context = context_for({"interp", ""});
  const std::vector<uint8_t> zeros(32 * 32 * 4);
  const auto bytes = [&](DType d, const Ints& shape, const Ints& order) {
    const int64_t count = product(to_shape(shape)).value();
    return permute(from_data(context, d, shape, zeros.data(), count), order);
  };
  const Tensor pixels = bytes(kUInt8, {1, 30, 30, 4}, {0, 3, 1, 2});
  const Tensor weights = bytes(kInt8, {3, 3, 32, 4}, {2, 3, 0, 1});
  const Tensor bordered = pad(pixels, {0, 0, 1, 1}, {0, 0, 1, 1});
  const Tensor sums = conv(cast(bordered, kInt32), cast(weights, kInt32), Tensor(), {});
  const std::vector<float> ones(32, 1);
  const auto each = [&] { return from_data(context, kFloat32, {32, 1, 1}, ones.data(), 128); };
  EXPECT_TRUE(names_word(chosen_for(kAllDots, cast(sums, kFloat32) * each() + each())));
}

// Rows of whole pages fall into the same sets of a cache: a tile of them is laid out with a line
// more a row, in whole words.
TEST(DotProducts, RowsThatCollideAreLaidOutInWords) {
  const auto padded = [](int64_t steps) {
    const std::vector<Option> options = chosen_for(kAllDots, kUInt8, kInt8, kInt32, steps);
    const auto word = std::ranges::find(options, OptionKind::Dot, &Option::kind);
    return std::ranges::any_of(options, [&](const Option& o) {
      return o.kind == OptionKind::Stage && o.padding == 64 && o.list.back() == word->range;
    });
  };
  EXPECT_TRUE(padded(4096));
  EXPECT_FALSE(padded(4000));
  std::vector<std::vector<int32_t>> results;
  for (const Machine& machine : {kMachines[0], kMachines[1], kMachines[2]}) {
    const Ref<Context> context = context_for(machine);
    std::mt19937_64 random(3);
    const auto tensor = [&](DType d) {
      std::vector<uint8_t> bytes(20 * 4096);
      for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
      return cast(from_data(context, d, {20, 4096}, bytes.data(), std::ssize(bytes)), kInt32);
    };
    const Tensor a = tensor(kUInt8);
    Tensor product = matmul(a, transpose(tensor(kInt8), 0, 1));
    std::vector<int32_t> out(20 * 20);
    read(product, out.data(), std::ssize(out) * 4);
    results.push_back(std::move(out));
  }
  EXPECT_EQ(results[1], results[0]);
  EXPECT_EQ(results[2], results[0]);
}

TEST(DotProducts, OfBfloat16NeedPermission) {
  Flags flags = testing::flags_for("interp");
  EXPECT_FALSE(make_ref<Context>(flags)->backend().machine().has_dot(DotKind::Bf16));
  flags.bf16_dots = 1;
  EXPECT_TRUE(make_ref<Context>(flags)->backend().machine().has_dot(DotKind::Bf16));
}

// What is no word is refused by name.
TEST(DotProducts, OptionsThatMakeNoWordAreRefused) {
  const Ref<Context> context = context_for({"interp", ""});
  const std::vector<uint8_t> zeros(64 * 64 * 4);
  const auto tensor = [&](DType d) {
    return from_data(context, d, {64, 64}, zeros.data(), 64 * 64 * d.bytes());
  };
  const auto refused = [&](const Tensor& t, const char* options, const char* why) {
    const UOp node = t.node();
    const Schedule schedule = make_schedule({&node, 1}, context->backend().machine());
    const Kernel kernel =
        prepare_kernel(schedule.kernels.front().kernel, context->backend().machine());
    try {
      apply_options(kernel, parse_options(options));
      ADD_FAILURE() << options << " is not refused";
    } catch (const Error& e) {
      EXPECT_NE(e.message().find(why), std::string::npos) << e.message();
    }
  };
  const Tensor bytes = matmul(cast(tensor(kUInt8), kInt32), cast(tensor(kInt8), kInt32));
  refused(bytes, "DOT r2", "a word has 4 steps");
  refused(bytes, "TILE r2 2; DOT r3", "a word has 4 steps");
  refused(bytes, "TILE r2 4; UNROLL r3; DOT r3", "has a kind already");
  refused(bytes, "TILE r1 4; DOT r3", "depends on it");
  refused(bytes, "TILE r2 4; DOT r3; TILE r2 4; DOT r4", "has a word already");
  refused(bytes, "DOT r9", "it has no range r9");
  refused(matmul(tensor(kFloat32), tensor(kFloat32)), "TILE r2 4; DOT r3", "no sum of products");
  refused(sum(cast(tensor(kInt8), kInt32), {1}), "TILE r1 4; DOT r2", "no sum of products");
}

// Products that are not exact: the instruction's rounding is that of a sum in some order.
TEST(DotProducts, OfBfloat16StayNearTheSum) {
  constexpr int64_t kSize = 200;
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  std::vector<uint16_t> a(kSize * kSize), b(kSize * kSize);
  for (uint16_t& x : a) x = bfloat_from_float(normal(random));
  for (uint16_t& x : b) x = bfloat_from_float(normal(random));
  std::vector<std::vector<float>> results;
  for (const Machine& machine : kMachines) {
    const Ref<Context> context = context_for(machine);
    const auto tensor = [&](const std::vector<uint16_t>& values) {
      return cast(from_data(context, kBFloat16, {kSize, kSize}, values.data(), 2 * kSize * kSize),
                  kFloat32);
    };
    Tensor product = matmul(tensor(a), transpose(tensor(b), 0, 1));
    std::vector<float> out(kSize * kSize);
    read(product, out.data(), static_cast<int64_t>(out.size() * sizeof(float)));
    results.push_back(std::move(out));
  }
  for (size_t i = 0; i < kSize; ++i)
    for (size_t j = 0; j < kSize; ++j) {
      double sum = 0, magnitude = 0;
      for (size_t k = 0; k < kSize; ++k) {
        const double term = static_cast<double>(float_from_bfloat(a[i * kSize + k])) *
                            float_from_bfloat(b[j * kSize + k]);
        sum += term;
        magnitude += std::abs(term);
      }
      for (const auto& result : results)
        ASSERT_NEAR(result[i * kSize + j], sum, kSize * 0x1p-24 * magnitude);
    }
}

}  // namespace
}  // namespace tiny
