// The table of passes over graphs: what each needs stands before it, and each that changes a graph
// leaves its values, in a program and in what is computed at once.
#include "schedule/pipeline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "autograd/gradient.h"
#include "engine/compile.h"
#include "schedule/rewrite/same_loops.h"
#include "tensor/activation.h"
#include "tensor/alias.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/quantization.h"
#include "tensor/recurrence.h"
#include "tensor/reduce.h"
#include "tensor/window.h"
#include "tests/reference/reference.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using Names = std::set<std::string>;

TEST(GraphPasses, WhatEachNeedsStandsBeforeIt) {
  Names before;
  GraphStage stage = GraphStage::Graph;
  for (const GraphPass& pass : graph_passes()) {
    for (const std::string_view need : pass.needs)
      EXPECT_TRUE(need.empty() || before.contains(std::string(need)))
          << pass.name << " needs " << need;
    EXPECT_TRUE(before.insert(pass.name).second) << pass.name << " stands twice";
    EXPECT_GE(pass.stage, stage) << pass.name << " stands behind a later stage";
    stage = pass.stage;
  }
}

// Those with a case below.
const Names kCases{"drop_requantized",       "same_loops",       "same_results",
                   "drop_aliases",           "onehot_to_gather", "rewrite_scales",
                   "rewrite_zero_points",    "rewrite_winograd", "copy_windowed",
                   "fuse_products",          "split_reductions", "sum_in_floats",
                   "fold_uniform_reductions"};

TEST(GraphPasses, WhatRunsWithoutAProgramHasACase) {
  Names always;
  for (const GraphPass& pass : graph_passes())
    if (pass.use == PassUse::Always) always.insert(pass.name);
  EXPECT_EQ(always, kCases);
}

// A value of `x`, whose tensors beside are captured.
using Make = std::function<Tensor(const Tensor& x)>;

class GraphPassCase : public ::testing::Test {
 protected:
  // The passes that changed a graph since the last call.
  Names changed() {
    Names found;
    const std::string begin = "graph pass ";
    for (size_t at = log_.find(begin); at != std::string::npos; at = log_.find(begin, at + 1)) {
      const size_t name = at + begin.size();
      found.insert(log_.substr(name, log_.find(' ', name) - name));
    }
    log_.clear();
    return found;
  }
  Tensor values(const Ints& shape, int64_t first = 0) {
    testing::Floats out;
    for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i)
      out.push_back(static_cast<float>((i + first) % 11 - 5) / 8);
    return testing::floats(context_, out, shape);
  }
  // `make` of the same numbers: computed at once, and by a program that binds them.
  testing::Floats realized(const Ints& shape, const Make& make) {
    return testing::floats_of(make(values(shape)));
  }
  testing::Floats of_program(const Ints& shape, const Make& make) {
    const int64_t count = product(to_shape(shape)).value();
    const UOp input = make_input(*context_, kFloat32, count);
    const Tensor out = make(reshape(Tensor(context_, input), to_shape(shape)));
    const CompiledProgram made = compile_program(*context_, {&out.node(), 1}, {&input, 1});
    const auto run = make_ref<tiny::Run>(made.program);
    const testing::Floats given = testing::floats_of(values(shape));
    run->bind_input(0, context_->from_host(given.data(), count * 4));
    testing::Floats result(static_cast<size_t>(element_count(out)));
    const int64_t bytes = std::ssize(result) * 4;
    const Ref<Storage> memory = context_->allocate(bytes);
    run->bind_output(0, memory);
    run->execute();
    context_->device().copy_out(nullptr, result.data(), memory->memory(), 0, bytes);
    return result;
  }

  void expect(const std::string& pass, const Ints& shape, const Make& make) {
    ASSERT_TRUE(kCases.contains(pass));
    const reference::Values want = reference::evaluate(make(values(shape)).node());
    changed();
    const testing::Floats at_once = realized(shape, make);
    EXPECT_TRUE(changed().contains(pass)) << "computed at once, " << pass;
    const testing::Floats of_run = of_program(shape, make);
    EXPECT_TRUE(changed().contains(pass)) << "in a program, " << pass;
    ASSERT_EQ(at_once.size(), want.size());
    ASSERT_EQ(of_run.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      const double bound = 1e-4 * std::max(1.0, std::abs(want.real[i]));
      ASSERT_NEAR(at_once[i], want.real[i], bound) << pass << " computed at once, element " << i;
      ASSERT_NEAR(of_run[i], want.real[i], bound) << pass << " in a program, element " << i;
    }
  }

  static void listen(void* user, const char* text) { *static_cast<std::string*>(user) += text; }

  static Flags flags() {
    Flags f = testing::flags_for("cpu");
    f.threads = 2;
    f.debug = 3;
    f.spec = 1;
    f.wino = "1";  // wherever legal
    f.cache = 0;
    return f;
  }
  Ref<Context> make_context(Flags f = flags()) {
    f.log = {listen, &log_};
    return make_ref<Context>(f);
  }

  std::string log_;
  Ref<Context> context_ = make_context();
};

Tensor widened(const Tensor& t, DType via) {
  return cast(cast(t * number(t, 8), via), kInt32);
}

TEST_F(GraphPassCase, AliasesForGradientsAreTheirValues) {
  expect("drop_aliases", {4, 6},
         [&](const Tensor& x) { return detach(recompute(x * x) + detach(x)) * x; });
}

// The steps' gradient reads the states that the loss reads too.
TEST_F(GraphPassCase, AResultOfALoopIsStoredOnce) {
  const auto with_gradient = [&](const Tensor& x) {
    const Recurrence r{4, {{x, 0, false}}, {full(context_, kFloat32, {3}, 0)}, {}};
    const Tensor y = recur(context_, r, [](const RecurrenceStep& now) {
                       const Tensor h = tanh(now.state[0] + now.inputs[0]);
                       return RecurrenceResult{{h}, {h}};
                     }).outputs[0];
    const Tensor losses[] = {sum(y * y, {0, 1})}, by[] = {x};
    return gradients(losses, {}, by)[0] + y;
  };
  const auto by_hand = [](const Tensor& x) {
    std::vector<Tensor> h, slopes(4);
    for (int64_t t = 0; t < 4; ++t) {
      const Tensor now = slice_axis(x, 0, t, t + 1);
      h.push_back(tanh(h.empty() ? now : h.back() + now));
    }
    for (size_t t = 4; t-- > 0;) {
      const Tensor reached = number(x, 2) * h[t];
      slopes[t] = (t < 3 ? reached + slopes[t + 1] : reached) * (number(x, 1) - h[t] * h[t]);
    }
    return concat(slopes, 0) + concat(h, 0);
  };
  const testing::Floats want = testing::floats_of(by_hand(values({4, 3})));
  for (const bool in_program : {false, true}) {
    changed();
    const testing::Floats got =
        in_program ? of_program({4, 3}, with_gradient) : realized({4, 3}, with_gradient);
    EXPECT_TRUE(changed().contains("same_results"));
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5) << i;
  }
}

// An LSTM's gradient reads states and sums that its outputs do not have: the forward pass keeps
// them, and is not made again.  Steps back from the last one are loops of their own.
TEST_F(GraphPassCase, WhatAGradientReadsOfStepsIsKeptByTheForwardPass) {
  constexpr int64_t kSteps = 3, kWidth = 64;
  const Tensor weights = values({4 * kWidth, kWidth}, 3);
  const auto losses = [&](const Tensor& x, bool as_loop) {
    std::vector<Tensor> state(2, full(context_, kFloat32, {2, kWidth}, 0));
    const auto cell = [&](const Tensor& seen, const std::vector<Tensor>& before) {
      const Tensor z = matmul(before[0], permute(weights, {1, 0})) * number(x, 0.1);
      const auto gate = [&](int64_t i) {
        return slice_axis(z, 1, i * kWidth, (i + 1) * kWidth) + seen;
      };
      const Tensor c = sigmoid(gate(0)) * before[1] + sigmoid(gate(1)) * tanh(gate(2));
      return std::vector<Tensor>{sigmoid(gate(3)) * tanh(c), c};
    };
    std::vector<Tensor> h;
    if (as_loop) {
      const Recurrence r{kSteps, {{x, 0, false}}, state, {}};
      h = recur(context_, r, [&](const RecurrenceStep& now) {
            const std::vector<Tensor> after = cell(now.inputs[0], now.state);
            return RecurrenceResult{{after[0]}, after};
          }).outputs;
    } else {
      for (int64_t t = 0; t < kSteps; ++t) {
        state = cell(squeeze(slice_axis(x, 0, t, t + 1), {0}), state);
        h.push_back(unsqueeze(state[0], {0}));
      }
      h = {concat(h, 0)};
    }
    return sum(h[0] * h[0], {0, 1, 2});
  };
  const auto slopes = [&](bool as_loop) {
    return [&, as_loop](const Tensor& x) {
      const Tensor of[] = {losses(x, as_loop)}, by[] = {x, weights};
      const std::vector<Tensor> found = gradients(of, {}, by);
      return concat(std::vector<Tensor>{flatten(found[0]), flatten(found[1])}, 0);
    };
  };
  const Ints shape{kSteps, 2, kWidth};
  const testing::Floats want = testing::floats_of(slopes(false)(values(shape)));
  for (const bool in_program : {false, true}) {
    changed();
    const testing::Floats got =
        in_program ? of_program(shape, slopes(true)) : realized(shape, slopes(true));
    EXPECT_TRUE(changed().contains("same_loops"));
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-4) << i;
  }
  // Forward, and back: two loops, and one product of a step's state with the weights.
  const Tensor x = values(shape);
  const UOp node = slopes(true)(x).node();
  const ChangedGraph made = same_loops({&node, 1});
  std::set<const RefCounted*> loops;
  for (const UOp& u : topological(made.roots))
    if (u.op() == Op::Scan) loops.insert(scan_part(u).loop.get());
  EXPECT_EQ(loops.size(), 2U);
}

// Two loops of which the second needs what the first has made are two.
TEST_F(GraphPassCase, ALoopThatReadsAnotherIsNotMergedWithIt) {
  const auto twice = [&](const Tensor& x) {
    Tensor last = full(context_, kFloat32, {3}, 1);
    for (int pass = 0; pass < 2; ++pass) {
      const Tensor by = last;
      const Recurrence r{4, {{x, 0, false}}, {full(context_, kFloat32, {3}, 0)}, {}};
      const RecurrenceResult made = recur(context_, r, [&](const RecurrenceStep& now) {
        const Tensor h = tanh(now.state[0] + now.inputs[0]);
        return RecurrenceResult{{h * by}, {h}};
      });
      last = sum(made.outputs[0], {0}) + made.state[0];
    }
    return last;
  };
  const auto by_hand = [&](const Tensor& x) {
    Tensor last = full(context_, kFloat32, {1, 3}, 1);
    for (int pass = 0; pass < 2; ++pass) {
      Tensor h = full(context_, kFloat32, {1, 3}, 0), all = h;
      for (int64_t t = 0; t < 4; ++t) {
        h = tanh(h + slice_axis(x, 0, t, t + 1));
        all = all + h * last;
      }
      last = all + h;
    }
    return last;
  };
  const testing::Floats want = testing::floats_of(by_hand(values({4, 3})));
  for (const testing::Floats& got : {realized({4, 3}, twice), of_program({4, 3}, twice)})
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5) << i;
}

TEST_F(GraphPassCase, AProductWithAMaskIsARead) {
  const Tensor table = values({5, 3});
  expect("onehot_to_gather", {4}, [&](const Tensor& x) {
    const Tensor index = cast(abs(x) * number(x, 6.4), kInt64);
    return matmul(one_hot(index, 5, number(x, 1), number(x, 0)), table);
  });
}

TEST_F(GraphPassCase, BytesThatAreQuantizedAgainAreThose) {
  expect("drop_requantized", {16, 64}, [&](const Tensor& x) {
    const QuantizationParameters p{number(x, 0.0625), full(x.context_ref(), kUInt8, {}, 120)};
    const Tensor once = dequantize(quantize(x, p, kUInt8), p, kFloat32);
    return dequantize(quantize(permute(once, {1, 0}), p, kUInt8), p, kFloat32);
  });
}

TEST_F(GraphPassCase, ScalesLeaveProductsOfBytes) {
  if (!(context_->backend().target().dots & kIntegerDots)) GTEST_SKIP() << "no dot products";
  expect("rewrite_scales", {16, 64}, [&](const Tensor& x) {
    const Tensor a = cast(cast(x * number(x, 8), kInt8), kFloat32) * number(x, 0.125);
    const Tensor b = cast(cast(abs(x) * number(x, 8), kUInt8), kFloat32) * number(x, 0.25);
    return matmul(a, permute(b, {1, 0}));
  });
}

TEST_F(GraphPassCase, ZeroPointsLeaveProductsOfBytes) {
  if (!(context_->backend().target().dots & kIntegerDots)) GTEST_SKIP() << "no dot products";
  expect("rewrite_zero_points", {16, 64}, [&](const Tensor& x) {
    const Tensor a = widened(x, kInt8), b = widened(abs(x), kUInt8) - number(widened(x, kInt8), 3);
    return cast(matmul(a, permute(b, {1, 0})), kFloat32);
  });
}

TEST_F(GraphPassCase, BytesThatAreNotMultipliedInWordsAreFloats) {
  Flags without = flags();
  without.processor = "skylake";
  context_ = make_context(without);
  expect("sum_in_floats", {16, 64}, [&](const Tensor& x) {
    return cast(matmul(widened(x, kInt8), permute(widened(abs(x), kUInt8), {1, 0})), kFloat32);
  });
}

TEST_F(GraphPassCase, ConvolutionsAreComputedInTiles) {
  const Tensor w = values({8, 4, 3, 3}, 3);
  expect("rewrite_winograd", {1, 4, 10, 9},
         [&](const Tensor& x) { return relu(conv(x, w, Tensor(), {})); });
}

// The output is what the pass has made anew, in another order than it was stored in.
TEST_F(GraphPassCase, AConvolutionThatIsTheResultHasMemoryOfItsOwn) {
  const Tensor w = values({8, 4, 3, 3}, 3);
  expect("rewrite_winograd", {1, 4, 10, 9},
         [&](const Tensor& x) { return conv(x, w, Tensor(), {}); });
}

TEST_F(GraphPassCase, StridedWindowsReadACopy) {
  const Tensor w = values({8, 1, 9, 9}, 3);
  Window apart;
  apart.strides = {2, 2};
  expect("copy_windowed", {1, 8, 24, 23},
         [&](const Tensor& x) { return conv(x, w, Tensor(), apart.with_groups(8)); });
}

TEST_F(GraphPassCase, ProductsAndSumsAreOneRounding) {
  expect("fuse_products", {3, 5}, [](const Tensor& x) { return x * x + x; });
}

TEST_F(GraphPassCase, SumsOfOneValueAreProducts) {
  expect("fold_uniform_reductions", {3, 1},
         [](const Tensor& x) { return sum(exp(expand(x, {3, 5})), {1}); });
}

TEST_F(GraphPassCase, LongSumsAreCut) {
  expect("split_reductions", {1 << 19}, [](const Tensor& x) { return sum(exp(x), {0}); });
}

// What an index picks is widened in the run; a table that something else reads whole is widened
// once.
TEST_F(GraphPassCase, TablesOfBytesStayBytesForReadsByIndex) {
  constexpr int64_t kRows = 500, kColumns = 64;
  const auto table = [&] {
    std::vector<int8_t> bytes;
    for (int64_t i = 0; i < kRows * kColumns; ++i) bytes.push_back(static_cast<int8_t>(i * 37));
    return from_data(context_, kInt8, {kRows, kColumns}, bytes.data(), std::ssize(bytes));
  };
  const auto weights = [&](bool is_read_whole) {
    const Tensor bytes = table();
    const Tensor wide = cast(bytes, kInt32) - number(cast(bytes, kInt32), 3);
    const Tensor floats = cast(wide, kFloat32) * number(values({1}), 0.125);
    const UOp input = make_input(*context_, kInt64, 4);
    Tensor out = gather(floats, Tensor(context_, input), 0);
    const UOp other = make_input(*context_, kFloat32, kColumns);
    const Tensor whole = exp(floats * Tensor(context_, other));
    if (is_read_whole) out = out + sum(whole, {0});
    const std::vector<UOp> inputs =
        is_read_whole ? std::vector<UOp>{input, other} : std::vector<UOp>{input};
    return compile_program(*context_, {&out.node(), 1}, inputs).weight_bytes;
  };
  EXPECT_LT(weights(false), 2 * kRows * kColumns);
  EXPECT_GE(weights(true), 4 * kRows * kColumns);
  const Tensor bytes = table();
  expect("fuse_products", {4}, [&](const Tensor& x) {
    const Tensor index = cast(abs(x) * number(x, 700), kInt64);
    const Tensor rows = gather(cast(bytes, kFloat32) * number(x, 0.125), index, 0);
    return rows + rows * rows;
  });
}

// Equal values of which each is asked for.
TEST_F(GraphPassCase, ResultsThatBecomeOneNodeAreBothThere) {
  Tensor x = values({3, 5}), y = values({3, 5}, 2);
  Tensor a = x * y + x, b = x + x * y;
  Tensor* both[] = {&a, &b};
  realize(both);
  EXPECT_EQ(testing::floats_of(a), testing::floats_of(b));
}

}  // namespace
}  // namespace tiny
