// Recurrences as loops of a program, against the same steps one after the other.
#include "tensor/recurrence.h"

#include <gtest/gtest.h>

#include <random>

#include "engine/compile.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tensor/reduce.h"
#include "tensor/run.h"
#include "tests/reference/reference.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;
using testing::Floats;
using testing::floats_of;
using testing::Whole;
using testing::whole_of;

using Tensors = std::vector<Tensor>;

// What recur() does, with nodes for each step.
RecurrenceResult by_hand(const Recurrence& r, const RecurrenceFunction& step, int64_t steps) {
  std::vector<Tensors> outputs;
  Tensors state = r.state;
  for (int64_t n = 0; n < steps; ++n) {
    RecurrenceStep now{{}, state};
    for (const Sequence& s : r.sequences) {
      const int64_t t = s.reverse ? steps - 1 - n : n;
      now.inputs.push_back(squeeze(slice_axis(s.tensor, s.axis, t, t + 1), {s.axis}));
    }
    const RecurrenceResult made = step(now);
    outputs.resize(made.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const bool backwards = !r.is_backwards.empty() && r.is_backwards[i];
      outputs[i].insert(backwards ? outputs[i].begin() : outputs[i].end(), made.outputs[i]);
    }
    state = made.state;
  }
  RecurrenceResult all{{}, state};
  for (const Tensors& parts : outputs) all.outputs.push_back(stack(parts, 0));
  return all;
}

struct Machine {
  const char* device;
  int threads;
};
void PrintTo(const Machine& m, std::ostream* out) {
  *out << m.device << " " << m.threads;
}

class RecurrenceOn : public ::testing::TestWithParam<Machine> {
 protected:
  static Ref<Context> new_context() {
    Flags flags = testing::flags_for(GetParam().device);
    flags.threads = GetParam().threads;
    return make_ref<Context>(flags);
  }
  Tensor whole(const Ints& shape, int seed) const {
    std::mt19937 random(static_cast<unsigned>(seed));
    Whole values(static_cast<size_t>(product(to_shape(shape)).value()));
    for (int32_t& v : values) v = static_cast<int32_t>(random() % 2001) - 1000;
    return from_data(context_, kInt32, shape, values.data(), std::ssize(values) * 4);
  }

  Ref<Context> context_ = new_context();
};

INSTANTIATE_TEST_SUITE_P(Devices, RecurrenceOn,
                         ::testing::Values(Machine{"interp", 1}, Machine{"cpu", 1},
                                           Machine{"cpu", 2}, Machine{"c", 1}),
                         [](const auto& info) {
                           return cat(info.param.device, info.param.threads);
                         });

// A step of rows of whole numbers: operations drawn at random of what it is given, of tensors that
// are the same in all steps and of what was made before.
class RandomStep {
 public:
  RandomStep(unsigned seed, int64_t size, Tensors same, size_t outputs, size_t states)
      : seed_(seed), size_(size), same_(std::move(same)), outputs_(outputs), states_(states) {}

  RecurrenceResult operator()(const RecurrenceStep& now) const {
    std::mt19937 random(seed_);
    Tensors pool = now.state;
    pool.insert(pool.end(), now.inputs.begin(), now.inputs.end());
    pool.insert(pool.end(), same_.begin(), same_.end());
    const auto any = [&] { return pool[random() % pool.size()]; };
    const auto operations = 1 + random() % 8;
    for (size_t i = 0; i < operations; ++i) pool.push_back(made(random() % 7, any(), any()));
    const auto newest = [&] {
      return pool[pool.size() - 1 - random() % std::min<size_t>(4, pool.size())];
    };
    RecurrenceResult result;
    for (size_t i = 0; i < outputs_; ++i) result.outputs.push_back(newest());
    for (size_t i = 0; i < states_; ++i) result.state.push_back(newest());
    return result;
  }

 private:
  Tensor made(size_t op, const Tensor& a, const Tensor& b) const {
    switch (op) {
      case 0:
        return a + b;
      case 1:
        return a * b;
      case 2:
        return maximum(a, b);
      case 3:
        return flip(a, {0});
      case 4:
        return expand(sum_in_dtype(a, {0}, true), to_shape({size_}));
      case 5:  // a product with a matrix that is made here
        return sum_in_dtype(unsqueeze(a, {0}) * unsqueeze(b, {1}), {1}) + a;
      default:
        return concat(Tensors{slice_axis(a, 0, 1, size_), slice_axis(b, 0, 0, 1)}, 0);
    }
  }

  unsigned seed_;
  int64_t size_;
  Tensors same_;
  size_t outputs_, states_;
};

TEST_P(RecurrenceOn, ComputesWhatItsStepsDo) {
  const unsigned seeds = std::string(GetParam().device) == "c" ? 4 : 150;  // a compiler is slow
  for (unsigned seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    std::mt19937 random(seed + 1000);
    const int64_t steps = 2 + random() % 6, size = 2 + random() % 20;
    const Tensor matrix = whole({size, size}, 3);
    Recurrence r{Dim(steps), {}, {}, {}};
    for (size_t i = random() % 3; i > 0; --i)
      r.sequences.push_back(
          {i % 2 ? whole({steps, size}, 5) * whole({steps, size}, 6) : whole({size, steps}, 7),
           i % 2 ? 0 : 1, random() % 2 == 0});
    const size_t outputs = random() % 3, states = (outputs == 0 ? 1 : 0) + random() % 3;
    for (size_t i = 0; i < states; ++i)
      r.state.push_back(whole({size}, static_cast<int>(20 + i)) + whole({size}, 9));
    for (size_t i = 0; i < outputs; ++i) r.is_backwards.push_back(random() % 2);
    const RandomStep step(seed, size,
                          {whole({size}, 1) * whole({size}, 2), sum_in_dtype(matrix, {0})}, outputs,
                          states);
    const RecurrenceResult loop = recur(context_, r, step), hand = by_hand(r, step, steps);
    // Some results are wanted together, some alone, some by nobody.
    Tensors wanted, expected;
    for (size_t i = 0; i < outputs + states; ++i) {
      if (random() % 3 == 0) continue;
      wanted.push_back(i < outputs ? loop.outputs[i] : loop.state[i - outputs]);
      expected.push_back(i < outputs ? hand.outputs[i] : hand.state[i - outputs]);
    }
    if (random() % 2 == 0) {
      std::vector<Tensor*> together;
      for (Tensor& t : wanted) together.push_back(&t);
      realize(together);
    }
    for (size_t i = 0; i < wanted.size(); ++i)
      ASSERT_EQ(whole_of(wanted[i]), whole_of(expected[i])) << i;
  }
}

TEST_P(RecurrenceOn, TakesManyStepsInOneLoopOfTheTape) {
  constexpr int64_t kSteps = 3000;
  const Tensor ones = full(context_, kInt32, to_shape({kSteps, 8}), 1);
  const auto step = [](const RecurrenceStep& now) -> RecurrenceResult {
    const Tensor total = now.state[0] + now.inputs[0];
    return {{total}, {total}};
  };
  const Tensor start = full(context_, kInt32, to_shape({8}), 0);
  const RecurrenceResult all = recur(context_, {Dim(kSteps), {{ones}}, {start}, {}}, step);
  const Ref<const TensorProgram> program = compile_tensors(context_, {}, {{all.outputs[0]}});
  EXPECT_LE(program->compiled.program->tape.size(), 4u);
  const Whole got = whole_of(all.outputs[0]);
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], static_cast<int32_t>(i / 8) + 1);
}

// Runs of one program say how many steps there are.
TEST_P(RecurrenceOn, TakesAsManyStepsAsARunSays) {
  const Dim steps(context_->graph().variable("steps", 2, 500));
  const Tensor x = make_placeholder(context_, kInt32, {steps, Dim(5)});
  const auto step = [](const RecurrenceStep& now) -> RecurrenceResult {
    const Tensor next = flip(now.state[0], {0}) * now.inputs[0] + now.inputs[1];
    return {{next, now.state[0]}, {next}};
  };
  const auto of = [&](const Tensor& input, const Dim& count) {
    const Recurrence r{count, {{input}, {input, 0, true}}, {whole({5}, 4)}, {0, 1}};
    return count.is_const() ? by_hand(r, step, count.value()) : recur(context_, r, step);
  };
  const RecurrenceResult all = of(x, steps);
  const Ref<const TensorProgram> program =
      compile_tensors(context_, {{x}}, {{all.outputs[0], all.outputs[1], all.state[0]}});
  const Ref<TensorRun> run = make_ref<TensorRun>(context_, program);
  for (const int64_t count : {3, 60, 2, 37, 60}) {
    const Tensor values = whole({count, 5}, static_cast<int>(count));
    run->set_input(0, values);
    run->execute();
    const RecurrenceResult hand = of(values, Dim(count));
    const Tensor want[] = {hand.outputs[0], hand.outputs[1], hand.state[0]};
    for (size_t i = 0; i < 3; ++i) {
      Whole got(static_cast<size_t>(element_count(want[i])));
      run->read_output(i, got.data());
      ASSERT_EQ(got, whole_of(want[i])) << count << " steps, output " << i;
    }
  }
}

// The parts of a sequence and of an output lie as far apart as a run says, whenever it says so.
TEST_P(RecurrenceOn, TakesStepsAsLargeAsARunSays) {
  const Dim rows(context_->graph().variable("rows", 1, 50));
  const Tensor x = make_placeholder(context_, kInt32, {Dim(4), rows});
  const auto step = [](const RecurrenceStep& now) -> RecurrenceResult {
    const Tensor next = now.state[0] * now.inputs[0] + now.inputs[0];
    return {{next}, {next}};
  };
  const Tensor start = full(context_, kInt32, {rows}, 1);
  const RecurrenceResult all = recur(context_, {Dim(4), {{x}}, {start}, {1}}, step);
  const UOp outputs[] = {all.outputs[0].node()};
  UOp input = x.node();
  while (!is_input(input)) input = UOp(input.src(0));
  const UOp variable = rows.expression();
  const CompiledProgram made = compile_program(*context_, outputs, {&input, 1}, {&variable, 1});
  const auto run = make_ref<tiny::Run>(made.program);
  const auto memory = [&] { return context_->allocate(4 * 50 * 4); };
  const Ref<Storage> given = memory(), got = memory();
  run->bind_input(0, given);
  run->bind_output(0, got);
  for (const int64_t count : {3, 50, 1, 3}) {
    Whole values(static_cast<size_t>(4 * count));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i % 5) - 2;
    context_->device().copy_in(nullptr, given->memory(), given->byte_offset(), values.data(),
                               std::ssize(values) * 4);
    run->bind_variable(0, count);
    run->execute();
    Whole result(values.size()), want(values.size());
    context_->device().copy_out(nullptr, result.data(), got->memory(), got->byte_offset(),
                                std::ssize(result) * 4);
    const auto n = static_cast<size_t>(count);
    for (size_t k = 0; k < n; ++k)
      for (size_t t = 0, state = 1; t < 4; ++t) {
        const int32_t now = static_cast<int32_t>(state) * values[t * n + k] + values[t * n + k];
        want[(3 - t) * n + k] = now;
        state = static_cast<size_t>(now);
      }
    ASSERT_EQ(result, want) << count << " rows";
  }
}

TEST(Recurrence, IsWhatTheReferenceMakesOfIt) {
  const Ref<Context> context = testing::new_context("cpu");
  const Tensor w = testing::floats(context, Floats(36, 0.125F), {6, 6});
  const auto step = [&](const RecurrenceStep& now) -> RecurrenceResult {
    const Tensor next = tanh(now.inputs[0] + matmul(now.state[0], w));
    return {{next * next}, {next}};
  };
  Floats values;
  for (int i = 0; i < 2 * 6 * 5; ++i) values.push_back(static_cast<float>(i % 7) / 8 - 0.3F);
  const Tensor x = testing::floats(context, values, {5, 2, 6});
  const Tensor start = full(context, kFloat32, to_shape({2, 6}), 0);
  const RecurrenceResult all = recur(context, {Dim(5), {{x, 0, true}}, {start}, {1}}, step);
  for (const Tensor& t : {all.outputs[0], all.state[0]}) {
    const reference::Values want = reference::evaluate(t.node());
    EXPECT_EQ(reference::difference(want, floats_of(t).data()), "");
  }
}

// Each step of the outer recurrence has nodes of its own then.
TEST(Recurrence, MayHaveRecurrencesInItsSteps) {
  const Ref<Context> context = testing::new_context("cpu");
  const auto inner = [](const RecurrenceStep& now) -> RecurrenceResult {
    const Tensor next = now.state[0] + now.inputs[0];
    return {{next}, {next}};
  };
  const auto outer = [&](const RecurrenceStep& now) -> RecurrenceResult {
    const RecurrenceResult row =
        recur(context, {Dim(4), {{now.inputs[0]}}, {now.state[0]}, {}}, inner);
    return {{row.outputs[0]}, {row.state[0]}};
  };
  const Tensor x = full(context, kFloat32, to_shape({3, 4}), 1);
  const Tensor start = full(context, kFloat32, {}, 0);
  const RecurrenceResult all = recur(context, {Dim(3), {{x}}, {start}, {}}, outer);
  EXPECT_EQ(floats_of(all.outputs[0]), (Floats{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(floats_of(all.state[0]), Floats{12});
}

TEST(Recurrence, MayChangeTheShapeOfItsState) {
  const Ref<Context> context = testing::new_context("cpu");
  const auto step = [](const RecurrenceStep& now) -> RecurrenceResult {
    return {{}, {concat(Tensors{now.state[0], now.inputs[0]}, 0)}};
  };
  const Tensor x = testing::floats(context, {2, 3, 4}, {3, 1});
  const RecurrenceResult all =
      recur(context, {Dim(3), {{x}}, {testing::floats(context, {1})}, {}}, step);
  EXPECT_EQ(floats_of(all.state[0]), (Floats{1, 2, 3, 4}));
}

// A loop's steps read a tensor that is written before and after it.
TEST(Recurrence, ReadsTheVersionThatItWasBuiltOn) {
  const Ref<Context> context = testing::new_context("cpu");
  Tensor weight = testing::floats(context, {1, 2});
  const Tensor x = full(context, kFloat32, to_shape({4, 2}), 1);
  const auto step = [&](const RecurrenceStep& now) -> RecurrenceResult {
    const Tensor next = now.state[0] + now.inputs[0] * weight;
    return {{next}, {next}};
  };
  const Tensor start = full(context, kFloat32, to_shape({2}), 0);
  assign(weight, testing::floats(context, {10, 20}));
  const RecurrenceResult first = recur(context, {Dim(4), {{x}}, {start}, {}}, step);
  assign(weight, weight + first.state[0]);
  const RecurrenceResult second = recur(context, {Dim(4), {{x}}, {start}, {}}, step);
  assign(weight, testing::floats(context, {0, 0}));
  EXPECT_EQ(floats_of(second.state[0]), (Floats{200, 400}));
  EXPECT_EQ(floats_of(first.state[0]), (Floats{40, 80}));
  EXPECT_EQ(floats_of(weight), (Floats{0, 0}));
}

TEST(Recurrence, EndsAtItsLimits) {
  const Ref<Context> context = testing::new_context("interp");
  const auto summed = [](const RecurrenceStep& now) -> RecurrenceResult {
    const Tensor total = now.state[0] + now.inputs[0];
    return {{total}, {total}};
  };
  const auto of = [&](int64_t steps) {
    const Tensor x = full(context, kFloat32, {Dim(steps)}, 1);
    return recur(context, {Dim(steps), {{x}}, {full(context, kFloat32, {}, 0)}, {}}, summed);
  };
  EXPECT_EQ(floats_of(of(3).outputs[0]), (Floats{1, 2, 3}));
  EXPECT_EQ(floats_of(of(3).state[0]), (Floats{3}));
  const int64_t many = kRecurrenceStepsMax + 1;
  expect_failure(failure_of([&] { of(many); }), Status::Unsupported, {cat(many, " steps")});
  const Tensor x = full(context, kFloat32, {Dim(3)}, 1);
  expect_failure(failure_of([&] { recur(context, {Dim(4), {{x}}, {}, {}}, summed); }),
                 Status::Shape, {"[3]", "4 steps"});
}

// No step is taken: nothing is collected, and the state is what it was.
TEST(Recurrence, MayHaveNoSteps) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor x = full(context, kFloat32, {Dim(3), Dim(0), Dim(2)}, 1);
  const Recurrence none{Dim(0), {{x, 1}}, {full(context, kFloat32, {Dim(2)}, 7)}, {}};
  const RecurrenceResult all = recur(context, none, [](const RecurrenceStep& now) {
    const Tensor total = now.inputs[0] + now.state[0];
    return RecurrenceResult{{cast(total, kInt32)}, {sum(total, {0})}};
  });
  EXPECT_EQ(all.outputs[0].shape(), (Shape{Dim(0), Dim(3), Dim(2)}));
  EXPECT_EQ(all.outputs[0].dtype(), kInt32);
  EXPECT_EQ(floats_of(all.state[0]), (Floats{7, 7}));
}

}  // namespace
}  // namespace tiny
