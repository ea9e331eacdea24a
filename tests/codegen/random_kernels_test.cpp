// Random kernels give what the interpreter gives without optimisations: with the options that are
// chosen, and with random lists.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <random>

#include "base/error.h"
#include "codegen/choose/choose.h"
#include "codegen/options/actions.h"
#include "codegen/options/options.h"
#include "codegen/options/stage.h"
#include "codegen/pipeline.h"
#include "engine/backend.h"
#include "engine/realize.h"
#include "ir/bounds.h"
#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tensor/window.h"
#include "tests/support/environment.h"
#include "tests/support/machines.h"
#include "tests/support/random_kernels.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Choices;
using testing::difference;
using testing::Floats;

Ref<Context> context_with(const char* device, const char* isa, const std::string& options,
                          bool optimise) {
  Flags flags = testing::flags_for(device, isa);
  flags.opts = options;
  flags.noopt = optimise ? 0 : 1;
  flags.threads = 2;  // wherever the tests run
  flags.bf16_dots = 1;
  flags.spec = 1;
  return make_ref<Context>(flags);
}

// One expression over small integers, which add exactly in any order and in any type that they are
// stored in or computed with, some with another that reads it or the same; the same for the same
// seed.
class Expression : Choices {
 public:
  Expression(Ref<Context> context, uint64_t seed) : Choices(seed), context_(std::move(context)) {}

  std::vector<Tensor> make() {
    if (chance(15)) wide_ = kInt32;
    if (chance(35)) narrow_ = true;
    std::vector<Tensor> made = some();
    for (std::vector<Tensor>* list : {&made, &magnitudes_})
      for (Tensor& t : *list) t = cast(t, kFloat32);
    return made;
  }
  bool exact() const { return exact_; }
  // Of each result the magnitudes of what it sums, or of itself; once they are made.
  const std::vector<Tensor>& magnitudes() const { return magnitudes_; }

 private:
  std::vector<Tensor> some() {
    const Tensor t = one();
    magnitudes_ = {t};
    if (!chance(30)) return {t};
    if (!chance(70)) return magnitudes_ = two_sums();
    const Tensor other = beside(t);
    return {t, other};
  }
  Tensor one() {
    switch (below(11)) {
      case 0:
      case 1:
        return epilogue(product());
      case 7:
        return epilogue(product_of_sums());
      case 8:
        return epilogue(product_of_windows());
      case 2:
        return epilogue(convolution());
      case 3:
        return epilogue(convolution_1d());
      case 4:
        return pooled();
      case 5:
        return reduced();
      case 6:
        exact_ = false;
        return rows();
      case 9:
        exact_ = false;
        return attention();
      default:
        return epilogue(depthwise());
    }
  }
  // What one kernel may store beside `t`: of each element, or of each row.
  Tensor beside(const Tensor& t) {
    const auto last = std::ssize(t.shape()) - 1;
    if (last >= 0 && chance(30)) {
      const bool is_sum = chance(50);
      magnitudes_.push_back(is_sum ? sum(abs(t), {last}) : max(t, {last}, true));
      return is_sum ? sum(t, {last}) : magnitudes_.back();
    }
    magnitudes_.push_back(epilogue(add(t, t)));
    return magnitudes_.back();
  }
  std::vector<Tensor> two_sums() {
    const Ints shape{size(40), size(200)};
    const Tensor x = data(shape), y = data(shape);
    const Ints axes{below(2)};
    return {sum(x, axes), chance(50) ? max(x, axes, true) : sum(mul(x, y), axes)};
  }

  // As it is computed with, or of another type and widened while it is read.
  DType stored_dtype() {
    static constexpr DType kNarrow[] = {kFloat16, kBFloat16, kInt8, kUInt8, kInt32, kBool, kInt16};
    static constexpr DType kOperands[] = {kInt8, kUInt8, kInt8, kInt16};
    if (!narrow_ || chance(20)) return wide_;
    if (wide_ == kInt32) return kOperands[below(std::ssize(kOperands))];
    return kNarrow[below(std::ssize(kNarrow))];
  }
  Tensor stored(DType dtype, const Ints& shape) {
    int64_t count = 1;
    for (int64_t n : shape) count *= n;
    std::vector<std::byte> bytes(static_cast<size_t>(count * dtype.bytes()));
    const int64_t least = dtype == kBool || dtype == kUInt8 ? 0 : -4;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t value = least + below(dtype == kBool ? 2 : 9);
      const uint64_t bits =
          dtype.is_float() ? bits_of(dtype, static_cast<double>(value)) : bits_of_int(dtype, value);
      std::memcpy(&bytes[static_cast<size_t>(i * dtype.bytes())], &bits,
                  static_cast<size_t>(dtype.bytes()));
    }
    return from_data(context_, dtype, shape, bytes.data(), std::ssize(bytes));
  }

  // Data behind a view: permuted, flipped, cut out of something larger, repeated.
  Tensor data(const Ints& shape) { return cast(viewed(shape, stored_dtype()), wide_); }
  Tensor viewed(const Ints& shape, DType dtype) {
    Ints axes(shape.size());
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
    if (chance(40)) shuffle(axes);
    Ints sizes(shape.size());
    Ints begin(shape.size());
    Ints end(shape.size());
    Ints back(shape.size());
    const bool cut = chance(30);
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto axis = static_cast<size_t>(axes[i]);
      begin[axis] = cut ? below(3) : 0;
      end[axis] = begin[axis] + shape[axis];
      sizes[i] = end[axis] + (cut ? below(3) : 0);
      back[axis] = static_cast<int64_t>(i);
    }
    Tensor t = permute(stored(dtype, sizes), back);
    if (cut) t = slice(t, to_shape(begin), to_shape(end));
    if (chance(15)) t = flip(t, {below(std::ssize(shape))});
    return t;
  }

  Tensor product() {
    const int64_t m = size(70);
    const int64_t n = size(150);
    const int64_t k = chance(15) ? 400 + below(300) : size(90);
    if (chance(30)) return matmul(data({1 + below(3), m, k}), data({k, n}));
    return matmul(data({m, k}), data({k, n}));
  }

  // An operand that is the same for every row is computed once, before the rows.
  Tensor product_of_sums() {
    const int64_t k = size(90);
    const Tensor x = sum(data({k, 1 + below(70)}), {1}, true);
    return matmul(data({size(150), k}), x);
  }

  Window window(size_t rank, const Ints& kernel) {
    Window options;
    for (size_t i = 0; i < rank; ++i) {
      options.strides.push_back(1 + below(3));
      options.dilations.push_back(chance(20) ? 2 : 1);
      options.before.push_back(below(kernel[i]));
      options.after.push_back(below(kernel[i]));
    }
    return options;
  }

  Tensor convolution() {
    const Ints kernel{1 + below(4), 1 + below(4)};
    const int64_t channels = size(20);
    const Tensor x = data({1, channels, 8 + below(12), 8 + below(30)});
    return conv(x, data({size(40), channels, kernel[0], kernel[1]}), Tensor(), window(2, kernel));
  }
  Tensor convolution_1d() {
    const Ints kernel{1 + below(6)};
    const int64_t channels = size(40);
    const Tensor x = data({1 + below(2), channels, 12 + below(90)});
    return conv(x, data({size(40), channels, kernel[0]}), Tensor(), window(1, kernel));
  }
  Tensor depthwise() {
    const Ints kernel{1 + below(4), 1 + below(4)};
    const int64_t channels = size(30);
    const Tensor x = data({1, channels, 8 + below(12), 8 + below(30)});
    return conv(x, data({channels, 1, kernel[0], kernel[1]}), Tensor(),
                window(2, kernel).with_groups(channels));
  }
  // A window of its own for each channel, several of them for some, and a product over channels.
  Tensor product_of_windows() {
    const Ints kernel{1 + below(5), 1 + below(5)};
    const int64_t channels = size(50);
    const int64_t each = chance(30) ? 2 : 1;
    // Room for five steps, two apart.
    const Tensor x = data({1 + below(2), channels, 9 + below(12), 9 + below(30)});
    Tensor rows = conv(x, data({channels * each, 1, kernel[0], kernel[1]}), Tensor(),
                       window(2, kernel).with_groups(channels));
    if (chance(20)) {
      Window options = window(2, kernel);
      options.dilations = {};
      rows = max_pool(x, options.with_kernel(kernel));
    }
    if (chance(50)) rows = add(rows, data({rows.shape()[1].value(), 1, 1}));
    if (chance(50)) rows = maximum(rows, number(rows, 0));
    return conv(rows, data({size(70), rows.shape()[1].value(), 1, 1}), Tensor(), Window());
  }
  Tensor pooled() {
    const Ints kernel{1 + below(3), 1 + below(3)};
    const Tensor x = data({1, size(20), 6 + below(20), 6 + below(20)});
    Window options = window(2, kernel);
    options.dilations = {};
    return max_pool(x, options.with_kernel(kernel));
  }
  Tensor reduced() {
    const Tensor x = data({size(20), size(40), size(70)});
    const Ints axes{below(3)};
    return chance(50) ? sum(x, axes) : max(x, axes, true);
  }
  Tensor rows() {
    const Tensor x = cast(data({size(30), size(200)}), kFloat32);
    switch (below(4)) {
      case 0:
        return softmax(x, below(2));
      case 1:
        return layer_norm(x, Tensor(), Tensor(), 1, 1e-5);
      case 2:
        return log_softmax(x, below(2));
      default:
        return rms_norm(x, Tensor(), 1);
    }
  }

  // Rows that are multiplied, weighed and multiplied again.
  Tensor attention() {
    wide_ = kFloat32;
    const int64_t heads = 1 + below(2), rows = size(33), width = size(33), keys = size(130);
    const Tensor k =
        chance(50) ? data({heads, width, keys}) : permute(data({heads, keys, width}), {0, 2, 1});
    Tensor scores = mul(matmul(data({heads, rows, width}), k),
                        from_data(context_, kFloat32, {1}, &kScale, sizeof kScale));
    if (chance(40)) scores = where(viewed({rows, keys}, kBool), scores, number(scores, -50));
    return matmul(softmax(scores, 2), data({heads, keys, size(64)}));
  }

  Tensor epilogue(Tensor t) {
    const auto& shape = t.shape();
    Ints sizes;
    for (const Dim& d : shape) sizes.push_back(d.value());
    if (chance(40)) t = add(t, data(sizes));
    if (chance(30)) t = maximum(t, number(t, 0));
    if (chance(20)) t = mul(t, data({sizes.back()}));
    if (chance(15)) t = where(viewed(sizes, kBool), t, number(t, 2));
    return t;
  }

  static constexpr float kScale = 0.125F;

  Ref<Context> context_;
  std::vector<Tensor> magnitudes_;
  DType wide_ = kFloat32;  // that is computed with
  bool narrow_ = false;
  bool exact_ = true;
};

Floats values_of(std::vector<Tensor> tensors) {
  std::vector<Tensor*> all;
  for (Tensor& t : tensors) all.push_back(&t);
  realize(all);
  Floats out;
  for (Tensor& t : tensors) {
    const Floats values = testing::floats_of(t);
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

Floats values_of(const Ref<Context>& context, uint64_t seed) {
  return values_of(Expression(context, seed).make());
}

// What the interpreter gives without optimisations, and what may be off.
struct Wanted {
  explicit Wanted(uint64_t seed) {
    const Ref<Context> context = context_with("interp", "auto", "", false);
    Expression expression(context, seed);
    values = values_of(expression.make());
    if (!expression.exact()) slack = testing::slack_of(values_of(expression.magnitudes()), 1e-5F);
  }
  Floats values;
  Floats slack;
};

// The one kernel that computes an expression; none if there are several, or it has no loops.
std::optional<Kernel> one_kernel(const Ref<Context>& context, uint64_t seed) {
  Expression expression(context, seed);
  std::vector<UOp> nodes;
  for (const Tensor& t : expression.make()) nodes.push_back(t.node());
  const tiny::Machine& target = context->backend().machine();
  const Schedule schedule = make_schedule(nodes, target);
  if (schedule.kernels.size() != 1) return std::nullopt;
  const Kernel kernel = prepare_kernel(schedule.kernels.front().kernel, target);
  return kernel.ranges.empty() ? std::nullopt : std::optional(kernel);
}

// A random list that fits the kernel.
class OptionMaker : Choices {
 public:
  OptionMaker(const Kernel& kernel, uint64_t seed, const Target& target)
      : Choices(seed), kernel_(kernel), target_(target) {}

  std::string make() {
    std::vector<Option> list;
    const int64_t steps = 1 + below(9);
    for (int64_t i = 0; i < steps; ++i) {
      const Option option = propose();
      try {
        const Kernel next = apply_option(kernel_, option);
        if (unrolled(next) > 48 || too_wide(next) || too_many_threads(next)) continue;
        kernel_ = next;
        list.push_back(option);
      } catch (const Error&) {
        // It does not fit: another one.
      }
    }
    return to_text(list);
  }

 private:
  int64_t range() {
    return kernel_.ranges[static_cast<size_t>(below(std::ssize(kernel_.ranges)))].range.int_arg();
  }

  Option propose() {
    static constexpr int64_t kSizes[] = {2, 3, 4, 6, 8, 14, 16, 32};
    Option option;
    option.range = range();
    switch (below(target_.group.threads > 1 ? 20 : 14)) {
      case 0:
      case 1:
      case 2:
      case 3:
        option.kind = OptionKind::Tile;
        option.amount = kSizes[below(std::ssize(kSizes))];
        return option;
      case 4:
        option.kind = OptionKind::Upcast;
        return option;
      case 5:
        option.kind = OptionKind::Vec;
        return option;
      case 6:
        option.kind = OptionKind::Unroll;
        return option;
      case 7:
        option.kind = OptionKind::Order;
        for (const KernelRange& r : kernel_.ranges) option.list.push_back(r.range.int_arg());
        shuffle(option.list);
        return option;
      case 8:
        option.kind = OptionKind::Thread;
        option.range = kernel_.ranges.front().range.int_arg();
        return option;
      case 9:
        option.kind = OptionKind::Bypass;
        option.amount = below(std::ssize(kernel_.params));
        return option;
      case 10:
        option.kind = OptionKind::Overlap;
        return option;
      case 11:
        option.kind = OptionKind::Prefetch;
        option.amount = below(std::ssize(kernel_.params));
        return option;
      case 12:
        option.kind = OptionKind::Stream;
        option.amount = kSizes[below(std::ssize(kSizes))];
        return option;
      case 14:
      case 15:
      case 16:
        option.kind = OptionKind::Local;
        option.amount = below(3);
        return option;
      default:
        option.kind = OptionKind::Stage;
        option.is_shared = target_.group.threads > 1 && below(4) != 0;
        if (below(4) == 0) option.range = -1;
        option.by_number = below(3) == 0;
        option.amount = below(option.by_number ? 60 : 4);
        if (below(2) == 0) option.list.push_back(range());
        option.padding = below(3) == 0 ? 3 : 0;
        return option;
    }
  }

  static int64_t unrolled(const Kernel& kernel) {
    int64_t copies = 1;
    for (const KernelRange& r : kernel.ranges)
      if (r.kind == RangeKind::Upcast || r.kind == RangeKind::Unroll)
        copies *= r.range.src(0).const_int();
    return copies;
  }
  bool too_many_threads(const Kernel& kernel) const {
    std::array<int64_t, kGroupAxes> group{1, 1, 1};
    for (const KernelRange& r : kernel.ranges)
      if (r.kind == RangeKind::Local) group[r.axis] = r.range.src(0).const_int();
    return group[0] * group[1] * group[2] > std::min(target_.group.threads, 64) ||
           shared_bytes(kernel) > target_.group.shared_bytes;
  }
  // At most one range with lanes, and no more than a register has: no value has those of two.
  static bool too_wide(const Kernel& kernel) {
    int64_t vectors = 0;
    bool wide = false;
    for (const KernelRange& r : kernel.ranges) {
      if (r.kind != RangeKind::Vec) continue;
      ++vectors;
      wide |= r.range.src(0).const_int() > 16;
    }
    return wide || vectors > 1;
  }

  Kernel kernel_;
  const Target& target_;
};

using testing::Machine;

// The list for the one kernel of an expression; "" if it has several.
std::string random_options(uint64_t seed, const Machine& machine) {
  const Ref<Context> context = context_with(machine.device, machine.isa, "", true);
  const std::optional<Kernel> kernel = one_kernel(context, seed);
  const Target& target = context->backend().target();
  return kernel ? OptionMaker(*kernel, seed * 7919 + 1, target).make() : "";
}

// A list that a search could come to: steps and changes from the chosen list or from none.
std::string walked_options(uint64_t seed, const Machine& machine) {
  const Ref<Context> context = context_with(machine.device, machine.isa, "", true);
  const std::optional<Kernel> found = one_kernel(context, seed);
  if (!found) return "";
  const Kernel& kernel = *found;
  const tiny::Machine& target = context->backend().machine();
  std::mt19937_64 random(seed * 104729 + 3);
  std::vector<Option> list;
  if (random() % 2) list = choose_options(kernel, target);
  for (int step = 0; step < 4; ++step) {
    std::vector<std::vector<Option>> next = changed_lists(kernel, list);
    for (const Action& action : possible_actions(apply_options(kernel, list), target)) {
      next.push_back(list);
      next.back().insert(next.back().end(), action.begin(), action.end());
    }
    if (next.empty()) break;
    const std::vector<Option>& chosen = next[random() % next.size()];
    try {
      if (fits_target(apply_options(kernel, chosen), target)) list = chosen;
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), Status::InvalidArgument) << e.message() << " of " << to_text(chosen);
    }
  }
  return to_text(list);
}

std::vector<Machine> machines() {
  std::vector<Machine> all{{"interp", "auto"}};
  if (testing::is_for_groups()) return all;
  for (const BackendInfo& backend : known_backends(Drivers::LeaveClosed)) {
    if (backend.name != "cpu" || !backend.available) continue;
    for (const std::string& isa : backend.isas)
      all.push_back({"cpu", isa == "avx2" ? "avx2" : "avx512"});
  }
  return all;
}

TEST(RandomKernels, AreRightUnderTheChosenOptions) {
  const uint64_t first = testing::number_from("KERNEL_SEED", 1);
  const uint64_t count = testing::number_from("KERNELS", 250);
  int failures = 0;
  for (uint64_t seed = first; seed < first + count && failures < 3; ++seed) {
    const Wanted want(seed);
    for (const Machine& machine : machines()) {
      std::string error;
      try {
        error = difference(values_of(context_with(machine.device, machine.isa, "", true), seed),
                           want.values, want.slack);
      } catch (const Error& e) {
        error = e.message();
      }
      EXPECT_EQ(error, "") << "KERNEL_SEED=" << seed << " KERNELS=1 on " << machine;
      failures += error.empty() ? 0 : 1;
    }
  }
}

// Every machine's results under the lists that `make` gives for a seed and a machine.  Returns how
// many of the lists are of groups, and of memory that they share.
struct GroupCounts {
  uint64_t local = 0, shared = 0;
};
GroupCounts check_lists(std::string (*make)(uint64_t seed, const Machine& machine)) {
  const uint64_t first = testing::number_from("KERNEL_SEED", 1);
  const uint64_t count = testing::number_from("KERNELS", 250);
  int failures = 0;
  uint64_t tried = 0;
  GroupCounts groups;
  for (uint64_t seed = first; seed < first + count && failures < 3; ++seed) {
    std::optional<Wanted> want;
    for (const Machine& machine : machines()) {
      std::string error;
      std::string options;
      try {
        options = make(seed, machine);
        if (options.empty()) continue;
        ++tried;
        groups.local += options.find("LOCAL") != std::string::npos;
        groups.shared += options.find("shared") != std::string::npos;
        if (!want) want.emplace(seed);
        error =
            difference(values_of(context_with(machine.device, machine.isa, options, true), seed),
                       want->values, want->slack);
      } catch (const std::exception& e) {
        error = e.what();
      }
      EXPECT_EQ(error, "") << "KERNEL_SEED=" << seed << " KERNELS=1 on " << machine
                           << " with TINY_OPTS=\"" << options << "\"";
      failures += error.empty() ? 0 : 1;
    }
  }
  if (count >= 100) {
    EXPECT_GT(tried, count * machines().size() / 2);
  }
  return groups;
}

TEST(RandomKernels, AreRightUnderRandomOptions) {
  const GroupCounts groups = check_lists(random_options);
  if (testing::number_from("KERNELS", 250) < 100) return;
  EXPECT_GT(groups.local, 30u);
  EXPECT_GT(groups.shared, 10u);
}

TEST(RandomKernels, AreRightUnderListsThatASearchTries) {
  if (testing::is_for_groups()) GTEST_SKIP() << "a search changes the lists of one thread";
  check_lists(walked_options);
}

}  // namespace
}  // namespace tiny
