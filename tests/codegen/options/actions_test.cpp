// What a search may try: each step fits or is refused, and none changes a value.
#include "codegen/options/actions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "codegen/choose/choose.h"
#include "codegen/pipeline.h"
#include "ir/dot.h"
#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tensor/window.h"
#include "tests/support/context.h"

namespace tiny {
namespace {

Tensor data(const Ref<Context>& context, const Ints& shape) {
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7 % 17) - 8;
  return from_data(context, kFloat32, shape, values.data(), count * 4);
}

Tensor product(const Ref<Context>& context) {
  return matmul(data(context, {34, 40}), data(context, {40, 70}));
}
Tensor convolution(const Ref<Context>& context) {
  Window window;
  window.before = window.after = {1, 1};
  return conv(data(context, {1, 3, 9, 20}), data(context, {8, 3, 3, 3}), Tensor(), window);
}
Tensor rows(const Ref<Context>& context) {
  return softmax(data(context, {9, 50}), 1);
}
Tensor sums(const Ref<Context>& context) {
  return add(data(context, {9, 50}), data(context, {50}));
}
// Bytes, whose products a target may add in words.
Tensor words(const Ref<Context>& context) {
  std::vector<int8_t> values(128 * 64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int8_t>(i * 7 % 17 - 8);
  const auto bytes = [&](const Ints& shape) {
    return cast(from_data(context, kInt8, shape, values.data(), shape[0] * shape[1]), kInt32);
  };
  return matmul(bytes({32, 128}), bytes({128, 64}));
}
// Rows that are multiplied, weighed and multiplied again.
Tensor attention(const Ref<Context>& context) {
  const Tensor scores = matmul(data(context, {100, 8}), data(context, {8, 70}));
  return matmul(softmax(scores, 1), data(context, {70, 20}));
}
// The same rows are added up again and again.
Tensor expanded_sum(const Ref<Context>& context) {
  return sum(exp(expand(data(context, {1, 8}), to_shape({8, 8}))), {0, 1});
}
// More than any cache holds.
Tensor chain(const Ref<Context>& context) {
  return add(data(context, {3, 1 << 20}), data(context, {1 << 20}));
}
using Maker = Tensor (*)(const Ref<Context>&);
constexpr Maker kMakers[] = {product, convolution, rows, sums, words, attention};

Ref<Context> context_with(const std::string& options) {
  Flags flags = testing::flags_for("interp");
  flags.opts = options;
  flags.noopt = options.empty() ? 1 : 0;
  return make_ref<Context>(flags);
}

// The one kernel of an expression, as options see it; its nodes live in the context.
Kernel kernel_of(const Ref<Context>& context, Maker make, const Machine& target) {
  const UOp node = make(context).node();
  const Schedule schedule = make_schedule({&node, 1}, target);
  EXPECT_EQ(schedule.kernels.size(), 1u);
  return prepare_kernel(schedule.kernels.front().kernel, target);
}

std::vector<float> values_under(Maker make, const std::string& options) {
  const Ref<Context> context = context_with(options);
  Tensor t = make(context);
  std::vector<float> out(static_cast<size_t>(element_count(t)));
  read(t, out.data(), static_cast<int64_t>(out.size() * sizeof(float)));
  return out;
}

Machine two_cores() {
  Machine target = avx512_machine();
  target.cores = 2;
  return target;
}

// Lists one step or one change away from `list`.
std::vector<std::vector<Option>> lists_around(const Kernel& kernel, const std::vector<Option>& list,
                                              const Machine& target) {
  std::vector<std::vector<Option>> lists = changed_lists(kernel, list);
  for (const Action& action : possible_actions(apply_options(kernel, list), target)) {
    lists.push_back(list);
    lists.back().insert(lists.back().end(), action.begin(), action.end());
  }
  return lists;
}

TEST(Actions, AreDoneOrRefusedAndLeaveTheKernelAsItWas) {
  const Machine target = two_cores();
  for (const Maker make : kMakers) {
    const Ref<Context> context = context_with("");
    const Kernel kernel = kernel_of(context, make, target);
    const std::string before = uops_text(kernel);
    for (const std::vector<Option>& list :
         {std::vector<Option>(), choose_options(kernel, target)}) {
      size_t done = 0;
      const auto lists = lists_around(kernel, list, target);
      for (const std::vector<Option>& next : lists) {
        try {
          apply_options(kernel, next);
          EXPECT_EQ(to_text(parse_options(to_text(next))), to_text(next));
          ++done;
        } catch (const Error& e) {
          EXPECT_EQ(e.status(), Status::InvalidArgument) << to_text(next) << ": " << e.message();
        }
      }
      EXPECT_GT(done, 10u);
      EXPECT_GT(2 * done, lists.size()) << "most fit: they are made from extents and strides";
      EXPECT_EQ(uops_text(kernel), before);
    }
  }
}

TEST(Actions, OfAProductHaveEveryKind) {
  const Machine target = two_cores();
  const Ref<Context> context = context_with("");
  std::set<OptionKind> kinds;
  for (const Action& action : possible_actions(kernel_of(context, product, target), target))
    for (const Option& option : action) kinds.insert(option.kind);
  EXPECT_EQ(kinds.size(), 8u);
  Machine plain = target;
  plain.cores = 1;
  for (const Action& action : possible_actions(kernel_of(context, product, plain), plain))
    for (const Option& option : action) EXPECT_NE(option.kind, OptionKind::Thread);
}

// What the choice may use, a search may find.
TEST(Actions, OfSomeKernelHaveEveryKindThatThereIs) {
  Machine target = two_cores();
  target.dots = kAllDots;
  target.bypass_bytes = 8 << 20;
  std::set<OptionKind> kinds;
  for (const Maker make : {words, attention, chain, rows}) {
    const Ref<Context> context = context_with("");
    for (const Action& action : possible_actions(kernel_of(context, make, target), target))
      for (const Option& option : action) kinds.insert(option.kind);
  }
  for (int kind = 0; kind <= static_cast<int>(OptionKind::Stream); ++kind)
    EXPECT_TRUE(kinds.contains(static_cast<OptionKind>(kind)))
        << to_text(std::vector<Option>{{static_cast<OptionKind>(kind), 0, 1, {}, 0, false}});
}

// A search goes on from what was chosen: most of what is near it can be tried.
TEST(Actions, AroundAListOfWordsFitTheTarget) {
  Machine target = two_cores();
  target.dots = kAllDots;
  const Ref<Context> context = context_with("");
  const Kernel kernel = kernel_of(context, words, target);
  const std::vector<Option> list = choose_options(kernel, target);
  ASSERT_NE(to_text(list).find("DOT"), std::string::npos) << to_text(list);
  EXPECT_TRUE(fits_target(apply_options(kernel, list), target));
  const auto fits = [&](const std::vector<Option>& next) {
    try {
      return fits_target(apply_options(kernel, next), target);
    } catch (const Error&) {
      return false;
    }
  };
  const auto lists = lists_around(kernel, list, target);
  EXPECT_GT(3 * std::ranges::count_if(lists, fits), std::ssize(lists));
}

TEST(Actions, ChangeNoValue) {
  const Machine target = testing::new_context("interp")->backend().machine();
  for (const Maker make : {product, convolution, sums, attention}) {
    const std::vector<float> want = values_under(make, "");
    const Ref<Context> context = context_with("");
    const Kernel kernel = kernel_of(context, make, target);
    size_t tried = 0;
    for (const std::vector<Option>& list : {std::vector<Option>(), choose_options(kernel, target)})
      for (const std::vector<Option>& next : lists_around(kernel, list, target)) {
        try {
          if (!fits_target(apply_options(kernel, next), target)) continue;
        } catch (const Error&) {
          continue;  // refused, as the test before this one says
        }
        ++tried;
        const std::vector<float> got = values_under(make, to_text(next));
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i)
          ASSERT_NEAR(got[i], want[i], make == attention ? 1e-5 : 0) << to_text(next);
      }
    EXPECT_GT(tried, 20u);
  }
}

// Of a machine that computes in groups: threads of a group, more ranges that are launched, and
// what a group shares.  From one step a search goes on, so two are tried together.
TEST(Actions, OfGroupsChangeNoValue) {
  Flags flags = testing::flags_for("interp");
  flags.processor = "h100";
  const Machine target = make_ref<Context>(flags)->backend().machine();
  ASSERT_TRUE(target.computes_in_groups());
  std::set<std::string> seen;
  for (const Maker make : {product, convolution, sums, rows}) {
    const std::vector<float> want = values_under(make, "");
    const Ref<Context> context = context_with("");
    const Kernel kernel = kernel_of(context, make, target);
    size_t tried = 0;
    for (const char* before : {"", "THREAD r0", "TILE r0 4; LOCAL r8 0", "TILE r1 8; LOCAL r8 1"}) {
      std::string start = before;
      const std::string fresh = "r" + std::to_string(kernel.next_range_number());
      if (const size_t at = start.find("r8"); at != std::string::npos) start.replace(at, 2, fresh);
      for (const std::vector<Option>& next : lists_around(kernel, parse_options(start), target)) {
        try {
          if (!fits_target(apply_options(kernel, next), target)) continue;
        } catch (const Error& e) {
          EXPECT_EQ(e.status(), Status::InvalidArgument) << to_text(next) << ": " << e.message();
          continue;
        }
        const bool is_of_groups = std::ranges::any_of(
            next, [](const Option& o) { return o.kind == OptionKind::Local || o.is_shared; });
        if (!is_of_groups) continue;
        for (const Option& o : next) {
          if (o.kind == OptionKind::Local) seen.insert("LOCAL");
          if (o.is_shared) seen.insert("shared");
        }
        ++tried;
        const std::vector<float> got = values_under(make, to_text(next));
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i)
          ASSERT_NEAR(got[i], want[i], make == rows ? 1e-5 : 0) << to_text(next);
      }
    }
    EXPECT_GT(tried, 20u);
  }
  EXPECT_EQ(seen.size(), 2u);
}

// A group's threads and what it shares are within the target's bounds.
TEST(Actions, GroupsThatAreTooLargeAreToldApart) {
  Flags flags = testing::flags_for("interp");
  flags.processor = "h100";
  const Machine target = make_ref<Context>(flags)->backend().machine();
  const Ref<Context> context = context_with("");
  const Kernel kernel = kernel_of(context, product, target);
  const auto fits = [&](const char* list) {
    return fits_target(apply_options(kernel, parse_options(list)), target);
  };
  EXPECT_TRUE(fits("TILE r0 32; LOCAL r3 1; TILE r1 32; LOCAL r4 0"));
  EXPECT_FALSE(fits("TILE r0 64; LOCAL r3 1; TILE r1 32; LOCAL r4 0")) << "2048 threads";
}

TEST(Actions, MoreThanTheTargetCanIsToldApart) {
  const Machine target = avx2_machine();
  const Ref<Context> context = context_with("");
  const Kernel kernel = kernel_of(context, product, target);
  const auto fits = [&](const char* list) {
    return fits_target(apply_options(kernel, parse_options(list)), target);
  };
  EXPECT_TRUE(fits(""));
  EXPECT_TRUE(fits("TILE r1 8; VEC r3"));
  EXPECT_FALSE(fits("TILE r1 16; VEC r3")) << "eight lanes";
  EXPECT_FALSE(fits("TILE r1 8; VEC r3; TILE r0 8; VEC r4")) << "lanes of two ranges";
  EXPECT_FALSE(fits("TILE r1 16; UPCAST r3; TILE r0 8; UPCAST r4")) << "128 copies";
}

// A sum has lanes along what it closes, whether its value depends on that or not.
TEST(Actions, LanesOfTwoRangesThatOneSumClosesAreToldApart) {
  const Machine target = avx2_machine();
  const Ref<Context> context = context_with("");
  const Kernel kernel = kernel_of(context, expanded_sum, target);
  const auto fits = [&](const char* list) {
    return fits_target(apply_options(kernel, parse_options(list)), target);
  };
  EXPECT_TRUE(fits("VEC r0"));
  EXPECT_TRUE(fits("VEC r1"));
  EXPECT_FALSE(fits("VEC r0; VEC r1"));
}

}  // namespace
}  // namespace tiny
