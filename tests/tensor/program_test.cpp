// Programs from graphs built by hand: replayed with other inputs, writing tensors in place.
#include "tensor/program.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/error.h"
#include "engine/backend.h"
#include "tensor/alias.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/run.h"
#include "tensor/value.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Floats;

class GraphProgram : public ::testing::TestWithParam<std::string> {
 protected:
  Tensor make(const Floats& values, const Ints& shape = {}) {
    return testing::floats(context_, values, shape);
  }
  Tensor input(const Ints& shape) { return make_placeholder(context_, kFloat32, to_shape(shape)); }
  Tensor scalar(double value) { return Tensor::weak_float(context_, value); }
  Ref<TensorRun> run_of(const Ref<const TensorProgram>& program) {
    return make_ref<TensorRun>(context_, program);
  }
  Ref<const TensorProgram> compile(const std::vector<Tensor>& inputs,
                                   const std::vector<Tensor>& outputs) {
    return compile_tensors(context_, inputs, outputs);
  }
  static Floats get(const Tensor& t) { return testing::floats_of(t); }
  static Floats output(const Ref<TensorRun>& run, size_t index) {
    Floats out(static_cast<size_t>(run->program().outputs[index].bytes / 4));
    run->read_output(index, out.data());
    return out;
  }

  Ref<Context> context_ = testing::new_context(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices, GraphProgram, ::testing::Values("interp", "cpu", "c", "far"),
                         [](const auto& info) { return info.param; });

// A concatenation is stored part by part into the output's memory, whatever shape it is given.
TEST_P(GraphProgram, AReshapedConcatenationIsStoredOnce) {
  const Tensor x = input({2, 3});
  const Tensor parts[] = {neg(x), square(x)};
  const Tensor whole = concat(parts, 1);
  const Ref<TensorRun> once = run_of(compile({x}, {reshape(whole, {3, 4})}));
  const Ref<TensorRun> often =
      run_of(compile({x}, {whole, reshape(whole, {12}), reshape(whole, {12})}));
  const Floats in{1, 2, 3, 4, 5, 6}, want{-1, -2, -3, 1, 4, 9, -4, -5, -6, 16, 25, 36};
  once->set_input(0, make(in, {2, 3}));
  const int64_t before = context_->device().counts().launches.load();
  once->execute();
  EXPECT_EQ(context_->device().counts().launches.load() - before, 1);
  EXPECT_EQ(output(once, 0), want);
  often->set_input(0, make(in, {2, 3}));
  often->execute();
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(output(often, i), want) << i;
}

// What the graph of a step has of a parameter may have been looked at before it is compiled.
TEST_P(GraphProgram, WhatWasComputedOfWhatItWritesIsComputedAnew) {
  const Tensor x = input({3});
  Tensor w = make({1, 2, 3});
  Tensor twice = mul(w, scalar(2));
  const Tensor y = mul(x, twice);
  assign(w, add(w, x));
  EXPECT_EQ(get(twice), (Floats{2, 4, 6}));
  const Ref<TensorRun> run = run_of(compile({x}, {y, w}));
  run->set_input(0, make({1, 1, 1}));
  for (float f : {0.0f, 1.0f, 2.0f}) {
    run->execute();
    EXPECT_EQ(output(run, 0), (Floats{2 * f + 2, 2 * f + 4, 2 * f + 6}));
  }
  EXPECT_EQ(get(w), (Floats{4, 5, 6}));
  EXPECT_EQ(get(twice), (Floats{2, 4, 6}));  // as it was
}

// What a step compares with is what was computed, where it was built on that or on a clone.
TEST_P(GraphProgram, WhatWasKeptOfWhatItWritesStays) {
  const Tensor x = input({2});
  Tensor w = make({1, 2});
  Tensor kept = mul(w, scalar(1));
  EXPECT_EQ(get(kept), (Floats{1, 2}));
  Tensor copied = tiny::clone(w);
  const Tensor y = add(mul(sub(w, kept), x), sub(w, copied));
  EXPECT_EQ(get(copied), (Floats{1, 2}));
  assign(w, add(w, x));
  const Ref<TensorRun> run = run_of(compile({x}, {y, w}));
  run->set_input(0, make({1, 2}));
  for (float f : {0.0f, 1.0f, 2.0f}) {
    run->execute();
    EXPECT_EQ(output(run, 0), (Floats{2 * f, 6 * f}));
  }
}

// A loss that was looked at before the step is compiled would be the same in every run.
TEST_P(GraphProgram, WhatWasLookedAtIsNoOutputOfAStepThatWritesWhatItIsMadeOf) {
  Tensor w = make({1, 2, 3}), b = make({4});
  const Tensor x = input({3});
  Tensor loss = sum(mul(w, w), {0}), other = mul(b, b);
  EXPECT_EQ(get(loss), Floats{14});
  EXPECT_EQ(get(other), Floats{16});
  assign(w, sub(w, mul(w, x)));
  testing::expect_failure(testing::failure_of([&] { compile({x}, {w, reshape(loss, {1})}); }),
                          Status::InvalidArgument, {"outputs[1]", "computed before", "tiny_clone"});
  const Ref<TensorRun> run = run_of(compile({x}, {w, tiny::clone(loss), other}));
  run->set_input(0, make({0.5, 0.5, 0.5}));
  run->execute();
  EXPECT_EQ(output(run, 1), Floats{14});
  EXPECT_EQ(output(run, 2), Floats{16});
  EXPECT_EQ(get(w), (Floats{0.5, 1, 1.5}));
  Tensor again = sum(mul(w, w), {0});  // of what is there now
  EXPECT_EQ(get(again), Floats{3.5});
}

// Whichever way it was looked at.
TEST_P(GraphProgram, WhatWasGivenToOthersIsNoOutputEither) {
  Tensor w = make({1, 2, 3});
  const Tensor x = input({3});
  Tensor loss = sum(mul(w, w), {0}), row = mul(w, scalar(2)), copied = add(w, scalar(1));
  if (std::string(GetParam()) == "far")  // its memory is not the host's
    get(loss);
  else
    elements_of(loss);
  row_major_memory(row);
  copy_to(context_->device(), copied);
  assign(w, sub(w, mul(w, x)));
  for (const Tensor& looked_at : {loss, row, copied})
    testing::expect_failure(testing::failure_of([&] { compile({x}, {w, looked_at}); }),
                            Status::InvalidArgument, {"outputs[1]", "computed before"});
}

// Who realises a value keeps it: weights that were drawn and are frozen stay what they are while
// the step draws more, be they few or many, and read or not.
TEST_P(GraphProgram, WhatWasRealisedStaysAnOutput) {
  for (const size_t count : {size_t{1}, size_t{20}}) {
    Tensor key = make({1, 2});
    std::vector<Tensor> frozen;
    for (size_t i = 0; i < count; ++i) frozen.push_back(add(key, scalar(static_cast<int>(i))));
    std::vector<Tensor*> all;
    for (Tensor& t : frozen) all.push_back(&t);
    realize(all);
    EXPECT_EQ(get(frozen[0]), (Floats{1, 2}));
    const Tensor x = input({2});
    assign(key, add(key, x));
    const Ref<TensorRun> run = run_of(compile({x}, {mul(frozen.back(), key), frozen[0]}));
    run->set_input(0, make({1, 1}));
    for (const float step : {1.0f, 2.0f}) {
      run->execute();
      const auto last = static_cast<float>(count - 1);
      EXPECT_EQ(output(run, 0), (Floats{(1 + last) * (1 + step), (2 + last) * (2 + step)}));
      EXPECT_EQ(output(run, 1), (Floats{1, 2}));
    }
  }
}

// A value of a weight that has others by now cannot be computed again.
TEST_P(GraphProgram, WhatIsMadeOfReplacedElementsStaysInMemory) {
  const Tensor x = input({2});
  Tensor w = make({1, 2}), scale = make({10, 20});
  Tensor product = mul(w, scale);
  const Tensor y = mul(product, x);
  EXPECT_EQ(get(product), (Floats{10, 40}));
  assign(scale, make({0, 0}));
  EXPECT_EQ(get(scale), (Floats{0, 0}));
  assign(w, add(w, x));
  const Ref<TensorRun> run = run_of(compile({x}, {y, w}));
  run->set_input(0, make({1, 2}));
  for (int i = 0; i < 2; ++i) {
    run->execute();
    EXPECT_EQ(output(run, 0), (Floats{10, 80}));
  }
}

TEST_P(GraphProgram, IsReplayedWithOtherInputs) {
  const Tensor x = input({3});
  const Tensor w = make({1, 2, 3});
  const Tensor y = add(mul(x, w), scalar(1));
  const Ref<const TensorProgram> program = compile({x}, {y, sum(y, {0})});
  const Ref<TensorRun> run = run_of(program);
  for (float f : {1.0f, 2.0f, -3.0f}) {
    run->set_input(0, make({f, f, f}));
    run->execute();
    EXPECT_EQ(output(run, 0), (Floats{f + 1, 2 * f + 1, 3 * f + 1}));
    EXPECT_EQ(output(run, 1), Floats{6 * f + 3});
  }
  EXPECT_EQ(context_->counters().launches, 0);
}

// Each part goes where it lies in the output; only who wants it a second time has a copy.
TEST_P(GraphProgram, AConcatenationIsStoredOnce) {
  const Tensor x = input({2});
  const Tensor y = input({3});
  const Tensor both = concat(std::vector<Tensor>{x, mul(y, scalar(2))}, 0);
  const auto check = [&](const std::vector<Tensor>& outputs, const std::vector<Floats>& want) {
    const Ref<const TensorProgram> program = compile({x, y}, outputs);
    EXPECT_EQ(program->compiled.program->arena_bytes, 0) << outputs.size() << " outputs";
    const Ref<TensorRun> run = run_of(program);
    run->set_input(0, make({1, 2}));
    run->set_input(1, make({3, 4, 5}));
    run->execute();
    for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(output(run, i), want[i]) << i;
  };
  const Floats all{1, 2, 6, 8, 10};
  check({both}, {all});
  check({both, both}, {all, all});
  check({add(both, scalar(1)), both}, {{2, 3, 7, 9, 11}, all});
}

TEST_P(GraphProgram, APlaceholderHasNoValue) {
  Tensor x = input({2});
  Tensor y = add(x, scalar(1));
  Floats two(2);
  EXPECT_THROW(read(x, two.data(), 8), Error);
  EXPECT_THROW(read(y, two.data(), 8), Error);
  EXPECT_THROW(compile({}, {y}), Error);              // it is not among the inputs
  EXPECT_THROW(compile({x, x}, {y}), Error);          // listed twice
  EXPECT_THROW(compile({make({1, 2})}, {y}), Error);  // no placeholder
  EXPECT_EQ(compile({x}, {y})->outputs.size(), 1u);
}

TEST_P(GraphProgram, CapturedTensorsAreReadAsTheyAreWhenARunExecutes) {
  const Tensor x = input({2});
  Tensor w = make({1, 2});
  const Ref<TensorRun> run = run_of(compile({x}, {mul(x, add(w, scalar(1)))}));
  run->set_input(0, make({10, 10}));
  run->execute();
  EXPECT_EQ(output(run, 0), (Floats{20, 30}));
  assign(w, make({4, 5}));
  Tensor* one[] = {&w};
  realize(one);
  run->execute();
  EXPECT_EQ(output(run, 0), (Floats{50, 60}));
}

TEST_P(GraphProgram, AStepOfTrainingWritesItsWeightsInPlace) {
  // loss = sum((x*w - y)^2); w -= 0.25 * gradient.
  const Tensor x = input({2});
  const Tensor y = input({2});
  Tensor w = make({0, 0});
  Tensor count = make({0});
  const Tensor difference = sub(mul(x, w), y);
  const Tensor loss = sum(mul(difference, difference), {0});
  assign(w, sub(w, mul(scalar(0.5), mul(difference, x))));
  assign(count, add(count, scalar(1)));
  const Ref<const TensorProgram> program = compile({x, y}, {loss, w, count});
  EXPECT_TRUE(program->compiled.program->is_exclusive);
  // Nothing has happened yet.
  EXPECT_EQ(get(w), (Floats{0, 0}));
  const Ref<TensorRun> run = run_of(program);
  run->set_input(0, make({1, 1}));
  run->set_input(1, make({8, -4}));
  const Floats losses{80, 20, 5};
  for (size_t step = 0; step < losses.size(); ++step) {
    run->execute();
    EXPECT_EQ(output(run, 0), Floats{losses[step]});
    EXPECT_EQ(output(run, 1), get(w));
  }
  EXPECT_EQ(get(w), (Floats{7, -3.5}));
  EXPECT_EQ(get(count), Floats{3});
  // It goes on from what is there now, also after a write by hand.
  assign(w, make({8, -4}));
  EXPECT_EQ(get(w), (Floats{8, -4}));
  run->execute();
  EXPECT_EQ(output(run, 0), Floats{0});
  EXPECT_EQ(context_->counters().copies, 0);
}

TEST_P(GraphProgram, WhatWasBuiltOnATensorThatARunWroteIsRefused) {
  Tensor w = make({1, 2});
  Tensor before = mul(w, scalar(2));
  Tensor computed = mul(w, scalar(3));
  EXPECT_EQ(get(computed), (Floats{3, 6}));
  assign(w, add(w, scalar(1)));
  const Ref<TensorRun> run = run_of(compile({}, {w}));
  run->execute();
  Floats two(2);
  EXPECT_THROW(read(before, two.data(), 8), Error);
  EXPECT_EQ(get(computed), (Floats{3, 6}));
  EXPECT_EQ(get(w), (Floats{2, 3}));
  EXPECT_EQ(get(mul(w, scalar(2))), (Floats{4, 6}));
}

TEST_P(GraphProgram, ALaterWriteThatIsNotListedIsRefused) {
  Tensor w = make({1, 2});
  assign(w, add(w, scalar(1)));
  const Tensor reader = mul(w, scalar(2));
  assign(w, add(w, scalar(1)));
  EXPECT_THROW(compile({}, {reader}), Error);
  EXPECT_EQ(get(w), (Floats{3, 4}));
  EXPECT_EQ(get(reader), (Floats{4, 6}));
}

TEST_P(GraphProgram, AnInputMustNotBeATensorThatTheProgramWrites) {
  const Tensor x = input({2});
  Tensor w = make({1, 2});
  assign(w, add(w, flip(x, {0})));
  const Ref<TensorRun> run = run_of(compile({x}, {w}));
  EXPECT_THROW(run->set_input(0, w), Error);
  run->set_input(0, contiguous(w));
  run->execute();
  EXPECT_EQ(get(w), (Floats{3, 3}));
}

TEST_P(GraphProgram, OldVersionsWithinARunAreCopied) {
  Tensor a = make({0, 1, 2, 3});
  Tensor tail = slice(a, {1}, {4});
  assign(tail, slice(a, {0}, {3}));
  const Ref<TensorRun> run = run_of(compile({}, {a}));
  run->execute();
  EXPECT_EQ(get(a), (Floats{0, 0, 1, 2}));
  run->execute();
  EXPECT_EQ(get(a), (Floats{0, 0, 0, 1}));
}

TEST_P(GraphProgram, AnOutputIsTakenWithoutACopy) {
  const Tensor x = input({2});
  const Ref<TensorRun> run = run_of(compile({x}, {add(x, scalar(1))}));
  run->set_input(0, make({1, 2}));
  run->execute();
  Tensor first = run->take_output(0);
  run->set_input(0, make({5, 6}));
  run->execute();
  EXPECT_EQ(get(first), (Floats{2, 3}));
  EXPECT_EQ(get(run->take_output(0)), (Floats{6, 7}));
  assign(first, scalar(0));
  EXPECT_EQ(get(first), (Floats{0, 0}));
}

TEST_P(GraphProgram, ASecondRunOfAProgramThatWritesIsBusy) {
  // Long enough for the other thread to meet it; the sum says how many runs there were.
  const Tensor x = input({300, 300});
  Tensor total = make({0});
  Tensor state = from_data(context_, kFloat32, {300, 300}, Floats(90000).data(), 360000);
  assign(state, matmul(x, x));
  assign(total, add(total, scalar(1)));
  const Ref<const TensorProgram> program = compile({x}, {total, state});
  std::atomic<int> done{0};
  std::atomic<int> busy{0};
  const Tensor zeros = from_data(context_, kFloat32, {300, 300}, Floats(90000).data(), 360000);
  std::vector<Ref<TensorRun>> runs;
  for (int i = 0; i < 2; ++i) {
    runs.push_back(run_of(program));
    runs.back()->set_input(0, zeros);
  }
  const auto work = [&](const Ref<TensorRun>& run) {
    for (int i = 0; i < 4000 && busy == 0; ++i) {
      try {
        run->execute();
        ++done;
      } catch (const Error& e) {
        EXPECT_EQ(e.status(), Status::Busy);
        ++busy;
      }
    }
  };
  std::thread other([&] { work(runs[0]); });
  work(runs[1]);
  other.join();
  EXPECT_GT(busy, 0);
  EXPECT_EQ(get(total), Floats{static_cast<float>(done)});
}

// What a training step writes beside its outputs: what they are made of, and what only these inputs
// can make.
TEST_P(GraphProgram, AStepIsDoneAsAWhole) {
  const Tensor x = input({2}), y = input({2});
  Tensor weight = make({1, 1}), momentum = make({0, 0}), average = make({0, 0});
  Tensor other = make({5, 5}), later = make({0, 0});
  assign(momentum, add(mul(momentum, scalar(0.5)), x));
  assign(weight, sub(weight, momentum));
  assign(average, add(mul(average, scalar(0.5)), weight));  // read by nothing
  assign(other, make({6, 6}));                              // has nothing to do with the step
  assign(later, add(x, y));                                 // no input of the program
  const Ref<TensorRun> run = run_of(compile({x}, {weight}));
  run->set_input(0, make({1, 2}));
  run->execute();
  run->execute();
  EXPECT_EQ(get(momentum), (Floats{1.5, 3}));
  EXPECT_EQ(get(weight), (Floats{-1.5, -4}));
  EXPECT_EQ(get(average), (Floats{-1.5, -4.5}));
  EXPECT_EQ(get(other), (Floats{6, 6}));
  const Ref<TensorRun> both = run_of(compile({x, y}, {later}));
  both->set_input(0, make({1, 2}));
  both->set_input(1, make({3, 4}));
  both->execute();
  EXPECT_EQ(get(later), (Floats{4, 6}));
}

// One that writes nothing leaves what is pending alone.
TEST_P(GraphProgram, WithoutWritesTakesNone) {
  const Tensor x = input({2});
  Tensor weight = make({1, 2});
  const Tensor product = mul(weight, x);
  assign(weight, sub(weight, x));
  const Ref<TensorRun> run = run_of(compile({x}, {product}));
  run->set_input(0, make({3, 4}));
  run->execute();
  run->execute();
  EXPECT_EQ(output(run, 0), (Floats{3, 8}));
}

}  // namespace
}  // namespace tiny
