// Random kernels whose extents runs decide give, for each size, what the interpreter gives without
// optimisations for exactly that size.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "engine/backend.h"
#include "engine/observe.h"
#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/reduce.h"
#include "tensor/run.h"
#include "tensor/value.h"
#include "tensor/window.h"
#include "tests/support/context.h"
#include "tests/support/environment.h"
#include "tests/support/random_kernels.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Choices;
using testing::Floats;

Ref<Context> context_with(const std::string& device, const std::string& isa, bool optimise) {
  Flags flags = testing::flags_for(device, isa);
  flags.noopt = optimise ? 0 : 1;
  flags.threads = 2;  // wherever the tests run
  flags.spec = 1;
  return make_ref<Context>(flags);
}

struct Sizes {
  Dim first, second;
};

// One expression over small integers, which add exactly in any order; the same for the same seed
// whatever the sizes are.  Where they are variables, leaves that have them are inputs.
class SizedExpression : Choices {
 public:
  SizedExpression(Ref<Context> context, uint64_t seed, Sizes sizes)
      : Choices(seed),
        context_(std::move(context)),
        sizes_(std::move(sizes)),
        kind_(seed % kKinds) {}

  Tensor make() {
    if (kind_ == kPadded) return epilogue(padded_product());
    if (kind_ == kMoved) return finished(moved());
    switch (below(11)) {
      case 0:
      case 1:
        return epilogue(product(sizes_.first, size(90), 150));
      case 2:
        return epilogue(transpose_of(product(sizes_.first, size(90), 70)));
      case 3:
        return epilogue(product(size(70), sizes_.first, 70));
      case 4:
        return epilogue(batches());
      case 5:
        return reduced();
      case 6:
        share_ = 2e-5F;
        return rows();
      case 7:
        share_ = 2e-5F;
        return attention();
      case 8:
        return epilogue(convolution());
      case 9:
        return epilogue(product(sizes_.first, sizes_.second, 40));
      default:
        return epilogue(spread());
    }
  }
  // How far a value may be off, as a share of what it is, or of 1; 0: not at all.
  float share() const { return share_; }
  // Every leaf; `inputs` are those of them that are inputs.
  const std::vector<Tensor>& leaves() const { return leaves_; }
  const std::vector<size_t>& inputs() const { return inputs_; }

 private:
  // Some of its axes in another order in memory.
  Tensor leaf(const Shape& shape) {
    Ints axes(shape.size());
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
    if (chance(30)) shuffle(axes);
    Shape stored;
    Ints back(shape.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      stored.push_back(shape[static_cast<size_t>(axes[i])]);
      back[static_cast<size_t>(axes[i])] = static_cast<int64_t>(i);
    }
    const auto seed = static_cast<uint64_t>(below(1 << 30));
    if (all_const(stored)) {
      leaves_.push_back(data(stored, seed));
    } else {
      inputs_.push_back(leaves_.size());
      leaves_.push_back(make_placeholder(context_, kFloat32, stored));
    }
    return permute(leaves_.back(), back);
  }
  Tensor data(const Shape& shape, uint64_t seed) {
    std::mt19937_64 random(seed);
    Floats values(static_cast<size_t>(tiny::product(shape).value()));
    for (float& v : values) v = static_cast<float>(random() % 9) - 4;
    return testing::floats(context_, values, const_dims(shape));
  }

  Tensor product(const Dim& rows, const Dim& steps, int64_t columns_most) {
    const Tensor a = leaf({rows, steps});
    return matmul(a, leaf({steps, size(columns_most)}));
  }
  // Of a picture's places and a frame of zeros around, whose sums over channels have no steps.
  Tensor padded_product() {
    const Dim channels = chance(70) ? sizes_.second : Dim(size(40));
    const Dim columns = chance(70) ? sizes_.first : Dim(size(40));
    const Tensor x = leaf({1 + below(9), 1 + below(9), channels});
    const Tensor framed = pad(x, {below(2), below(2), 0}, {below(2), below(2), 0});
    return matmul(framed, permute(leaf({columns, channels}), {1, 0}));
  }
  // Axes padded, cut, turned, merged, repeated and joined.
  Tensor moved() {
    Shape shape{sizes_.first, size(12), size(16)};
    if (chance(50)) shape[static_cast<size_t>(1 + below(2))] = sizes_.second;
    Tensor t = leaf(shape);
    for (int64_t left = 1 + below(4); left > 0; --left) t = moved(t);
    return t;
  }
  Tensor moved(const Tensor& t) {
    const int64_t rank = t.rank(), axis = below(rank);
    const auto at = static_cast<size_t>(axis);
    Shape shape = t.shape(), none(shape.size(), Dim(0));
    Shape one = none;
    one[at] = Dim(1);
    Ints axes(shape.size());
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
    switch (below(9)) {
      case 0:
        return pad(t, chance(50) ? one : none, one, chance(30) ? 2 : 0);
      case 1:  // one step on
        return slice_axis(pad(t, none, one), axis, 1, shape[at] + Dim(1));
      case 2:
        return flip(t, {axis});
      case 3:
        shuffle(axes);
        return permute(t, axes);
      case 4: {
        if (axis + 1 == rank) return neg(t);
        shape[at] = shape[at] * shape[at + 1];
        shape.erase(shape.begin() + axis + 1);
        return reshape(t, shape);
      }
      case 5: {
        if (rank == 4) return flip(t, {axis});
        shape.insert(shape.begin() + axis, Dim(1 + below(3)));
        return expand(unsqueeze(t, {axis}), shape);
      }
      case 6: {
        shape[at] = chance(50) ? Dim(1 + below(5)) : sizes_.second;
        const Tensor parts[] = {t, leaf(shape)};
        return concat(parts, axis);
      }
      case 7:
        return rank < 2 ? neg(t) : chance(50) ? triu(t, below(3) - 1) : tril(t, below(3));
      default:
        return add(t, leaf({shape.back()}));
    }
  }
  // Summed, multiplied, or as it is.
  Tensor finished(const Tensor& t) {
    const int64_t axis = below(t.rank());
    switch (below(5)) {
      case 0:
        return sum(t, {axis});
      case 1:
        return max(t, {axis}, true);
      case 2:
        return t.rank() < 2 ? sum(t, {0}) : matmul(t, leaf({t.shape().back(), size(40)}));
      case 3:
        return mul(t, leaf({t.shape().back()}));
      default:
        return t;
    }
  }
  // The size of the run among the columns.
  static Tensor transpose_of(const Tensor& t) { return permute(t, {1, 0}); }
  Tensor spread() {
    const int64_t columns = size(40);
    const Tensor x = leaf({sizes_.first, columns});
    return add(x, leaf({sizes_.second, 1, columns}));
  }
  Tensor batches() {
    const int64_t k = size(40);
    const bool is_batch = chance(50);
    const int64_t count = 1 + below(4);
    const Tensor x =
        leaf(is_batch ? Shape{sizes_.first, size(40), k} : Shape{count, sizes_.first, k});
    return matmul(x, leaf(is_batch ? Shape{k, size(40)} : Shape{count, k, size(70)}));
  }
  Tensor reduced() {
    Shape shape{size(20), size(40), size(70)};
    shape[static_cast<size_t>(below(3))] = sizes_.first;
    const Tensor x = leaf(shape);
    const Ints axes{below(3)};
    return chance(50) ? sum(x, axes) : max(x, axes, true);
  }
  Tensor rows() {
    Shape shape{sizes_.first, size(100)};
    if (chance(60)) std::swap(shape[0], shape[1]);
    const Tensor x = leaf(shape);
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
  // Scores are small: what counts is not one of them alone.
  Tensor attention() {
    const int64_t heads = 1 + below(3);
    const int64_t width = size(70);
    const Dim& keys = chance(50) ? sizes_.first : sizes_.second;
    const Tensor queries = leaf({heads, sizes_.first, width});
    const Tensor scores = matmul(queries, permute(leaf({heads, keys, width}), {0, 2, 1}));
    const Tensor weights = softmax(mul(scores, number(scores, 1.0 / 64)), -1);
    return matmul(weights, leaf({heads, keys, size(70)}));
  }
  Tensor convolution() {
    const int64_t channels = size(20);
    const int64_t kernel = 1 + below(4);
    Window options;
    const bool is_line = chance(60);
    for (int i = 0; i < (is_line ? 1 : 2); ++i) {
      options.strides.push_back(1 + below(3));
      options.dilations.push_back(1);
      options.before.push_back(below(kernel));
      options.after.push_back(below(kernel));
    }
    if (!is_line) {
      if (kernel == 3)
        share_ = 5e-3F;  // Winograd's sums are of fractions; small integers are 1 apart
      const Tensor x = leaf({sizes_.first, channels, 5 + below(8), 5 + below(20)});
      return conv(x, leaf({size(30), channels, kernel, kernel}), Tensor(), options);
    }
    const Tensor x = chance(50) ? leaf({sizes_.first, channels, 12 + below(30)})
                                : leaf({1 + below(2), channels, sizes_.first + kernel});
    return conv(x, leaf({size(40), channels, kernel}), Tensor(), options);
  }
  Tensor epilogue(Tensor t) {
    if (chance(40)) t = add(t, leaf(t.shape()));
    if (chance(30)) t = maximum(t, number(t, 0));
    if (chance(20)) t = mul(t, leaf({t.shape().back()}));
    return t;
  }

  static constexpr uint64_t kKinds = 8, kPadded = 0, kMoved = 4;  // of seeds

  Ref<Context> context_;
  Sizes sizes_;
  uint64_t kind_ = 0;
  float share_ = 0;
  std::vector<Tensor> leaves_;
  std::vector<size_t> inputs_;
};

struct Values {
  int64_t first, second;
};

// Lowest values, around the sizes of tiles, and the greatest.
std::vector<Values> some_values(std::mt19937_64& random, const Values& least, const Values& most) {
  static constexpr int64_t kEdges[] = {3, 5, 7, 13, 14, 15, 16, 17, 26, 27, 31, 32, 33, 47, 48, 65};
  const auto one = [&](int64_t low, int64_t high) {
    const uint64_t r = random();
    const int64_t n = r % 2 ? kEdges[r / 2 % std::size(kEdges)]
                            : static_cast<int64_t>(r / 2 % static_cast<uint64_t>(high)) + 1;
    return std::clamp(n, low, high);
  };
  std::vector<Values> all{least, most};
  for (int i = 0; i < 3; ++i)
    all.push_back({one(least.first, most.first), one(least.second, most.second)});
  return all;
}

// A program for all sizes.  What is no input is a constant of it, as in a model.
class SizedProgram {
 public:
  SizedProgram(const Ref<Context>& context, uint64_t seed, const Values& least, const Values& most)
      : context_(context), seed_(seed) {
    const UOp n = context->graph().variable("n", least.first, most.first);
    const UOp m = context->graph().variable("m", least.second, most.second);
    SizedExpression expression(context, seed, {Dim(n), Dim(m)});
    const Tensor output = expression.make();
    inputs_ = expression.inputs();
    const UOp variables[] = {n, m};
    const Ref<TensorProgram> program = make_ref<TensorProgram>();
    program->variables = {{"n", least.first, most.first}, {"m", least.second, most.second}};
    std::vector<UOp> nodes;
    for (size_t i : inputs_) {
      const Tensor& t = expression.leaves()[i];
      program->inputs.push_back(make_port(cat("input ", i), kFloat32, t.shape(), variables));
      program->inputs.back().number = std::ssize(nodes);
      UOp base = t.node();
      while (!is_input(base)) base = UOp(base.src(0));
      nodes.push_back(base);
    }
    program->outputs.push_back(make_port("output", kFloat32, output.shape(), variables));
    program->outputs.back().number = 0;
    program->compiled = compile_program(*context, {{output.node()}}, nodes, variables);
    run_ = make_ref<TensorRun>(context, program);
  }

  // Kernels for which machine code could not be had.
  int64_t interpreted() const { return run_->program().compiled.program->launches->interpreted; }

  Floats run(const Values& values) {
    SizedExpression fixed(context_, seed_, {values.first, values.second});
    fixed.make();
    run_->set_variable(0, values.first);
    run_->set_variable(1, values.second);
    for (size_t i = 0; i < inputs_.size(); ++i) run_->set_input(i, fixed.leaves()[inputs_[i]]);
    run_->execute();
    Floats out(static_cast<size_t>(run_->output_ports()[0].bytes) / sizeof(float));
    run_->read_output(0, out.data());
    return out;
  }

 private:
  Ref<Context> context_;
  uint64_t seed_;
  std::vector<size_t> inputs_;
  Ref<TensorRun> run_;
};

// What a kernel for exactly these sizes has wrong; "" if nothing.
std::string check_known(const Ref<Context>& context, bool is_compiled, uint64_t seed,
                        const Values& values, const Floats& want, const Floats& slack) {
  SizedExpression expression(context, seed, {values.first, values.second});
  const Floats got = testing::floats_of(expression.make());
  if (is_compiled && context->observer().compiles().interpreted > 0)
    return "a kernel of known sizes is interpreted";
  return testing::difference(got, want, slack);
}

// What every machine computes for every one of some sizes, and for one of them as if it were known;
// how many were tried.
int64_t check_sizes(uint64_t seed, std::string& failure) {
  std::mt19937_64 random(seed * 7919 + 5);
  const Values least{random() % 2 ? 2 : 1, 2};
  const Values most{8 + static_cast<int64_t>(random() % 120),
                    8 + static_cast<int64_t>(random() % 60)};
  const std::vector<Values> values = some_values(random, least, most);
  std::vector<Floats> want;
  std::vector<Floats> slack;
  for (const Values& v : values) {
    SizedExpression expression(context_with("interp", "", false), seed, {v.first, v.second});
    want.push_back(testing::floats_of(expression.make()));
    slack.push_back(testing::slack_of(want.back(), expression.share()));
  }
  int64_t tried = 0;
  for (const BackendInfo& backend : known_backends(Drivers::LeaveClosed)) {
    const bool is_machine = testing::is_for_groups() ? backend.name == "interp"
                                                     : backend.name == "cpu" && backend.available;
    if (!is_machine) continue;
    const std::vector<std::string> any{"auto"};
    for (const std::string& isa : backend.isas.empty() ? any : backend.isas) {
      SizedProgram program(context_with(backend.name, isa, true), seed, least, most);
      if (backend.name == "cpu" && program.interpreted() > 0)
        failure = cat(isa, ": a kernel is interpreted");
      for (size_t i = 0; i < values.size(); ++i) {
        const std::string error = testing::difference(program.run(values[i]), want[i], slack[i]);
        if (!error.empty() && failure.empty())
          failure = cat(isa, ", n ", values[i].first, " of ", most.first, ", m ", values[i].second,
                        " of ", most.second, ": ", error);
        ++tried;
      }
      const std::string error =
          check_known(context_with(backend.name, isa, true), backend.name == "cpu", seed, values[2],
                      want[2], slack[2]);
      if (!error.empty() && failure.empty())
        failure = cat(isa, ", known n ", values[2].first, ", m ", values[2].second, ": ", error);
    }
  }
  return tried;
}

// A convolution over a length: the size of its result is a formula that can be simplified, and its
// channels are cut where the constant's panels are.
TEST(RandomSizes, ARangeKeepsTheSizeThatItHas) {
  std::string failure;
  EXPECT_GT(check_sizes(2162, failure), 0);
  EXPECT_EQ(failure, "");
}

// What the sizes prove is not asked again: an index of the window is a sum, and its padding is what
// the load leaves out anyway.
TEST(RandomSizes, AWindowOverALengthHasNoRemaindersAndNoChoices) {
  for (const int64_t stride : {1, 2, 3}) {
    const Ref<Context> context = context_with("interp", "", true);
    const Dim length(context->graph().variable("n", 2, 300));
    const Dim batch(context->graph().variable("m", 2, 9));
    const Tensor x = make_placeholder(context, kFloat32, {batch, 8, length});
    const Tensor y =
        conv(x, full(context, kFloat32, {16, 8, 5}, 1), Tensor(), Window{{stride}, {}, {2}, {2}});
    const Schedule schedule = make_schedule({{y.node()}}, context->backend().machine());
    for (const UOp& u : topological(schedule.kernels.back().kernel.roots)) {
      EXPECT_NE(u.op(), Op::FloorMod) << stride;
      EXPECT_NE(u.op(), Op::Where) << stride;
    }
  }
}

TEST(RandomSizes, AreRightForEachValue) {
  const uint64_t first = testing::number_from("KERNEL_SEED", 1);
  const uint64_t count = testing::number_from("KERNELS", 60);
  int failures = 0;
  int64_t tried = 0;
  for (uint64_t seed = first; seed < first + count && failures < 3; ++seed) {
    std::string failure;
    try {
      tried += check_sizes(seed, failure);
    } catch (const FreeDimension&) {
      continue;  // such a graph needs the number
    } catch (const Error& e) {
      failure = e.message();
    }
    EXPECT_EQ(failure, "") << "KERNEL_SEED=" << seed << " KERNELS=1";
    failures += failure.empty() ? 0 : 1;
  }
  if (count >= 50) {
    EXPECT_GE(tried, static_cast<int64_t>(count));
  }
}

}  // namespace
}  // namespace tiny
