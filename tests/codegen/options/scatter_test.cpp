// Kernels that store by index under random lists of options: what does not keep their order is
// refused, and what is not refused gives what no options give.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "codegen/options/options.h"
#include "codegen/pipeline.h"
#include "engine/option_lists.h"
#include "schedule/schedule.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
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

Floats computed(Flags flags, uint64_t seed, const std::string& options) {
  flags.opts = options;
  flags.noopt = options.empty() ? 1 : 0;
  return testing::floats_of(RandomScatter(make_ref<Context>(flags), seed).make());
}

// A list for the kernel of the updates, with its name; "" if it has no loops.
std::string random_list(const Flags& flags, uint64_t seed) {
  const Ref<Context> context = make_ref<Context>(flags);
  const UOp root = RandomScatter(context, seed).make().node();
  const tiny::Machine& target = context->backend().machine();
  for (const ScheduledKernel& k : make_schedule({&root, 1}, target).kernels) {
    if (!stores_by_index(k.kernel)) continue;
    const Kernel prepared = prepare_kernel(k.kernel, target);
    if (prepared.ranges.empty()) return "";
    const std::string list = ListMaker(prepared, seed * 7919 + 1).make();
    return list.empty() ? "" : structure_name(k.kernel) + ": " + list;
  }
  return "";
}

TEST(ScatterOptions, KeepTheOrderOfSteps) {
  const uint64_t first = testing::number_from("KERNEL_SEED", 1);
  const uint64_t count = testing::number_from("KERNELS", 150);
  uint64_t tried = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Floats want = computed(testing::flags_on({"interp", ""}), seed, "");
    for (const Machine& machine : testing::kMachines) {
      const Flags flags = testing::flags_on(machine);
      const std::string options = random_list(flags, seed);
      if (options.empty()) continue;
      ++tried;
      EXPECT_EQ(computed(flags, seed, options), want)
          << "KERNEL_SEED=" << seed << " KERNELS=1 on " << machine << " with TINY_OPTS=\""
          << options << "\"";
    }
  }
  if (count >= 100) {
    EXPECT_GT(tried, count);
  }
}

}  // namespace
}  // namespace tiny
