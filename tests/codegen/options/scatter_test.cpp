// Kernels whose steps go in order, which store by index or in which values run along a loop, under
// random lists of options: what does not keep their order is refused, and what is not refused gives
// what no options give.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "codegen/options/options.h"
#include "codegen/pipeline.h"
#include "engine/option_lists.h"
#include "ir/fold.h"
#include "schedule/schedule.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/scatter.h"
#include "tensor/value.h"
#include "tests/support/environment.h"
#include "tests/support/machines.h"
#include "tests/support/random_kernels.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Choices;
using testing::Floats;
using testing::Machine;

// Updates of small whole numbers into places that are named often; the same for the same seed.
class RandomScatter : Choices {
 public:
  RandomScatter(Ref<Context> context, uint64_t seed)
      : Choices(seed), context_(std::move(context)) {}

  Tensor make() {
    Ints shape, given;
    const int64_t rank = 2 + below(2);
    const int64_t axis = below(rank);
    for (int64_t i = 0; i < rank; ++i) {
      shape.push_back(i == axis ? 1 + below(6) : size(40));
      given.push_back(i == axis ? size(70) : chance(80) ? shape.back() : 1 + below(shape.back()));
    }
    Ints places = given;
    if (chance(60))
      for (size_t i = 0; i < places.size(); ++i)
        if (static_cast<int64_t>(i) != axis) places[i] = 1;
    constexpr Fold kFolds[] = {Fold::None, Fold::None, Fold::None,
                               Fold::Add,  Fold::Mul,  Fold::Max};  // the order decides of most
    constexpr DType kTypes[] = {kFloat32, kFloat32, kFloat64, kInt32, kInt8, kBFloat16};
    const DType dtype = kTypes[below(std::ssize(kTypes))];
    const Fold fold = kFolds[below(std::ssize(kFolds))];
    const int64_t n = shape[static_cast<size_t>(axis)];
    const Tensor index = cast(values(places, n, 0), kInt64);
    Tensor updates = cast(values(given, 5, 2), dtype);
    if (chance(30)) updates = add(updates, cast(values(given, 3, 1), dtype));
    const Tensor out = scatter_elements(cast(values(shape, 5, 2), dtype),
                                        expand(index, to_shape(given)), updates, axis, fold);
    return cast(out, kFloat32);
  }

 private:
  // 0 to n - 1, less `lower`.
  Tensor values(const Ints& shape, int64_t n, int64_t lower) {
    Floats made;
    for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i)
      made.push_back(static_cast<float>(below(n) - lower));
    return testing::floats(context_, made, shape);
  }

  Ref<Context> context_;
};

// What has come together up to each element, before it or from the end, of small whole numbers.
class RandomRunning : Choices {
 public:
  RandomRunning(Ref<Context> context, uint64_t seed)
      : Choices(seed), context_(std::move(context)) {}

  Tensor make() {
    const int64_t rank = 1 + below(3), axis = below(rank);
    Ints shape;
    for (int64_t i = 0; i < rank; ++i) shape.push_back(size(i == axis ? 70 : 40));
    constexpr Op kOps[] = {Op::Add, Op::Add, Op::Mul, Op::Max, Op::Min};
    constexpr DType kTypes[] = {kFloat32, kFloat32, kFloat64, kInt32, kInt64, kUInt8, kBFloat16};
    const Op op = kOps[below(std::ssize(kOps))];
    const DType dtype = kTypes[below(std::ssize(kTypes))];
    Floats made;
    for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i)
      made.push_back(static_cast<float>(below(3)) - (op == Op::Mul || op == Op::Min ? 1.0F : 0.0F));
    const Tensor given = cast(testing::floats(context_, made, shape), dtype);
    const Tensor a = chance(30) ? add(given, given) : given;
    const int64_t n = shape[static_cast<size_t>(axis)];
    Tensor low = positions(context_, kInt64, n, axis + 1, rank + 1);
    Tensor high = positions(context_, kInt64, n, axis, rank + 1);
    if (chance(40)) std::swap(low, high);
    const Tensor taken = chance(50) ? less(low, high) : less_equal(low, high);
    const Tensor nothing = a.with(a.graph().constant_bits(dtype, identity_bits(op, dtype)));
    const Tensor out =
        reduce_as_is(where(taken, unsqueeze(a, {axis}), nothing), op, {axis + 1}, false);
    return cast(chance(30) ? maximum(out, number_int(out, 1)) : out, kFloat32);
  }

 private:
  Ref<Context> context_;
};

// A random list that fits the kernel.
class ListMaker : Choices {
 public:
  ListMaker(const Kernel& kernel, uint64_t seed) : Choices(seed), kernel_(kernel) {}

  std::string make() {
    std::vector<Option> list;
    for (int64_t steps = 2 + below(8); steps > 0; --steps) {
      const Option option = propose();
      try {
        const Kernel next = apply_option(kernel_, option);
        if (is_too_large(next)) continue;
        kernel_ = next;
        list.push_back(option);
      } catch (const Error& e) {
        EXPECT_EQ(e.status(), Status::InvalidArgument) << e.message();
      }
    }
    return to_text(list);
  }

 private:
  Option propose() {
    static constexpr int64_t kSizes[] = {2, 3, 4, 8, 16};
    static constexpr OptionKind kKinds[] = {
        OptionKind::Tile,  OptionKind::Tile,  OptionKind::Upcast,  OptionKind::Unroll,
        OptionKind::Vec,   OptionKind::Vec,   OptionKind::Thread,  OptionKind::Order,
        OptionKind::Order, OptionKind::Stage, OptionKind::Overlap, OptionKind::Prefetch};
    Option option;
    option.kind = kKinds[below(std::ssize(kKinds))];
    option.range =
        kernel_.ranges[static_cast<size_t>(below(std::ssize(kernel_.ranges)))].range.int_arg();
    switch (option.kind) {
      case OptionKind::Tile:
        option.amount = kSizes[below(std::ssize(kSizes))];
        break;
      case OptionKind::Thread:
        option.range = kernel_.ranges.front().range.int_arg();
        break;
      case OptionKind::Order:
        option.range = -1;
        for (const KernelRange& r : kernel_.ranges) option.list.push_back(r.range.int_arg());
        shuffle(option.list);
        break;
      case OptionKind::Stage:
        option.by_number = chance(50);
        option.amount = below(option.by_number ? 40 : 4);
        break;
      case OptionKind::Prefetch:
        option.amount = below(std::ssize(kernel_.params));
        break;
      default:
        break;
    }
    return option;
  }

  // Lanes of two ranges, or more copies than code has room for.
  static bool is_too_large(const Kernel& kernel) {
    int64_t copies = 1, vectors = 0;
    for (const KernelRange& r : kernel.ranges) {
      if (r.kind == RangeKind::Upcast || r.kind == RangeKind::Unroll)
        copies *= r.range.src(0).const_int();
      vectors += r.kind == RangeKind::Vec ? 1 : 0;
    }
    return copies > 48 || vectors > 1;
  }

  Kernel kernel_;
};

template <class Made>
Floats computed(Flags flags, uint64_t seed, const std::string& options) {
  flags.opts = options;
  flags.noopt = options.empty() ? 1 : 0;
  return testing::floats_of(Made(make_ref<Context>(flags), seed).make());
}

// A list for the kernel whose steps go in order, with its name; "" if it has no loops.
template <class Made>
std::string random_list(const Flags& flags, uint64_t seed) {
  const Ref<Context> context = make_ref<Context>(flags);
  const UOp root = Made(context, seed).make().node();
  const tiny::Machine& target = context->backend().machine();
  for (const ScheduledKernel& k : make_schedule({&root, 1}, target).kernels) {
    if (ordered_ranges(k.kernel) == 0) continue;
    const Kernel prepared = prepare_kernel(k.kernel, target);
    if (prepared.ranges.empty()) return "";
    const std::string list = ListMaker(prepared, seed * 7919 + 1).make();
    return list.empty() ? "" : structure_name(k.kernel) + ": " + list;
  }
  return "";
}

template <class Made>
void expect_order() {
  const uint64_t first = testing::number_from("KERNEL_SEED", 1);
  const uint64_t count = testing::number_from("KERNELS", 150);
  uint64_t tried = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Floats want = computed<Made>(testing::flags_on({"interp", ""}), seed, "");
    for (const Machine& machine : testing::kMachines) {
      const Flags flags = testing::flags_on(machine);
      const std::string options = random_list<Made>(flags, seed);
      if (options.empty()) continue;
      ++tried;
      EXPECT_EQ(computed<Made>(flags, seed, options), want)
          << "KERNEL_SEED=" << seed << " KERNELS=1 on " << machine << " with TINY_OPTS=\""
          << options << "\"";
    }
  }
  if (count >= 100) {
    EXPECT_GT(tried, count);
  }
}

TEST(ScatterOptions, KeepTheOrderOfSteps) {
  expect_order<RandomScatter>();
}

TEST(RunningOptions, KeepTheOrderOfSteps) {
  expect_order<RandomRunning>();
}

}  // namespace
}  // namespace tiny
