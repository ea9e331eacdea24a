// Branches and loops that the run decides, against the same without branches and loops.
#include "tensor/control.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <random>
#include <thread>

#include "engine/compile.h"
#include "engine/kernel_cache.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tensor/recurrence.h"
#include "tensor/reduce.h"
#include "tensor/run.h"
#include "tests/reference/reference.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/temporary_folder.h"
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

struct Machine {
  const char* device;
  int threads;
};
void PrintTo(const Machine& m, std::ostream* out) {
  *out << m.device << " " << m.threads;
}

// Values of [kRows, kColumns] whole numbers.
constexpr int64_t kRows = 40, kColumns = 50;

class ControlOn : public ::testing::TestWithParam<Machine> {
 protected:
  static Ref<Context> new_context() {
    Flags flags = testing::flags_for(GetParam().device);
    flags.threads = GetParam().threads;
    return make_ref<Context>(flags);
  }
  Tensor whole(int seed) const {
    std::mt19937 random(static_cast<unsigned>(seed));
    Whole values(kRows * kColumns);
    for (int32_t& v : values) v = static_cast<int32_t>(random() % 2001) - 1000;
    return from_data(context_, kInt32, {kRows, kColumns}, values.data(), std::ssize(values) * 4);
  }
  Tensor number(int64_t value) const { return full(context_, kInt64, {}, double(value)); }

  // Runs the outputs of a program for these values of its one input.
  std::vector<Whole> executed(const Ref<TensorRun>& run, const Tensor& x, size_t outputs) const {
    run->set_input(0, x);
    run->execute();
    std::vector<Whole> all;
    for (size_t i = 0; i < outputs; ++i) {
      Whole& got = all.emplace_back(kRows * kColumns);
      run->read_output(i, got.data());
    }
    return all;
  }

  Ref<Context> context_ = new_context();
};

INSTANTIATE_TEST_SUITE_P(Devices, ControlOn,
                         ::testing::Values(Machine{"interp", 1}, Machine{"cpu", 1},
                                           Machine{"cpu", 2}),
                         [](const auto& info) {
                           return cat(info.param.device, info.param.threads);
                         });

// Whether the sum of a value is odd.
Tensor is_odd(const Tensor& x) {
  return cast(bit_and(sum_in_dtype(x, {0, 1}), full(x.context_ref(), kInt32, {}, 1)), kBool);
}

// Operations drawn at random: on values, and choices between lists of them, which may be nested.
class RandomGraph {
 public:
  using Choice = std::function<Tensors(const Tensor& condition, const std::function<Tensors()>& yes,
                                       const std::function<Tensors()>& no)>;
  RandomGraph(unsigned seed, Choice choice) : random_(seed), choice_(std::move(choice)) {}

  Tensors grow(Tensors pool, int steps, int depth) {
    const size_t given = pool.size();
    for (int i = 0; i < steps; ++i) {
      const auto any = [&] {
        return pool[pool.size() - 1 - random_() % std::min<size_t>(4, pool.size())];
      };
      const size_t kind = random_() % (depth > 0 ? 8 : 5);
      if (kind >= 5) {
        const Tensor condition = is_odd(any());
        const int inner = 1 + static_cast<int>(random_() % 4);
        const auto branch = [&] {
          const Tensors made = grow(pool, inner, depth - 1);
          return Tensors{made.back(), made[random_() % made.size()]};
        };
        const Tensors chosen = choice_(condition, branch, branch);
        pool.insert(pool.end(), chosen.begin(), chosen.end());
      } else {
        const Tensor a = any(), b = any();
        pool.push_back(made(kind, a, b));
      }
    }
    return {pool.begin() + static_cast<ptrdiff_t>(given), pool.end()};
  }

 private:
  static Tensor made(size_t kind, const Tensor& a, const Tensor& b) {
    switch (kind) {
      case 0:
        return a * b + a;
      case 1:
        return expand(sum_in_dtype(a, {0}, true), a.shape()) - b;
      case 2:
        return flip(a, {1}) + b;
      case 3:
        return maximum(a, b);
      default:
        return expand(sum_in_dtype(a * b, {1}, true), a.shape()) + a;
    }
  }

  std::mt19937 random_;
  Choice choice_;
};

TEST_P(ControlOn, ChoosesAsAChoiceByElementsDoes) {
  const bool is_slow = std::string(GetParam().device) == "interp";
  for (unsigned seed = 0; seed < (is_slow ? 10 : 40); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Tensor x = make_placeholder(context_, kInt32, {Dim(kRows), Dim(kColumns)});
    const Tensor other = whole(77);
    Tensor guard;
    Dependences known;
    const auto branches = [&](const Tensor& condition, const auto& yes, const auto& no) {
      const Tensor outer = guard;
      const auto under = [&](const Tensor& c, const auto& list) {
        guard = outer ? bit_and(outer, c) : c;
        Tensors made = list();
        guard = outer;
        return made;
      };
      const Tensors a = under(condition, yes), b = under(invert(condition), no);
      return choose(condition, a, b, known, guard);
    };
    const auto by_elements = [](const Tensor& condition, const auto& yes, const auto& no) {
      const Tensors a = yes(), b = no();
      return Tensors{where(condition, a[0], b[0]), where(condition, a[1], b[1])};
    };
    const auto program_of = [&](const RandomGraph::Choice& choice) {
      const Tensors made = RandomGraph(seed, choice).grow({x, other}, 8, 2);
      return compile_tensors(context_, {{x}}, {{made.back(), made.front(), made[made.size() / 2]}});
    };
    const auto run = make_ref<TensorRun>(context_, program_of(branches));
    const auto wanted = make_ref<TensorRun>(context_, program_of(by_elements));
    for (int input = 0; input < 4; ++input) {
      const Tensor given = whole(input);
      ASSERT_EQ(executed(run, given, 3), executed(wanted, given, 3)) << "input " << input;
    }
  }
}

TEST_P(ControlOn, WhatIsNotChosenIsNotLaunched) {
  const Tensor x = make_placeholder(context_, kInt32, {Dim(kRows), Dim(kColumns)});
  Tensor slow = x;
  for (int i = 0; i < 5; ++i) slow = slow * expand(sum_in_dtype(slow, {0}, true), slow.shape()) + x;
  Dependences known;
  const Tensors chosen = choose(is_odd(x), {slow}, {x + x}, known);
  const Ref<const TensorProgram> program = compile_tensors(context_, {{x}}, {{chosen[0]}});
  const auto run = make_ref<TensorRun>(context_, program);
  const auto launches = [&](int32_t first) {
    Whole values(kRows * kColumns, 2);
    values[0] = first;
    const Tensor given =
        from_data(context_, kInt32, {kRows, kColumns}, values.data(), std::ssize(values) * 4);
    const int64_t before = context_->device().counts().launches.load();
    const Whole got = executed(run, given, 1)[0];
    if (first % 2 == 0) {
      EXPECT_EQ(got[0], 2 * first);
    }
    return context_->device().counts().launches.load() - before;
  };
  const int64_t all = std::ssize(program->compiled.program->tape);
  EXPECT_LT(launches(3), all);
  EXPECT_LT(launches(4), all);
}

// Rounds of a loop with a number and a sum as its state.
Tensors halved(const Tensor& rounds, const Tensor& start) {
  Dependences known;
  return repeat(rounds, {start, full(start.context_ref(), kInt32, {}, 0)}, known,
                [](const Tensor&, const Tensors& now) {
                  const Tensor one = full(now[0].context_ref(), kInt32, {}, 1);
                  const Tensor next = shift_right(now[0], one);
                  const Tensor total = sum_in_dtype(next, {0, 1});
                  return Round{{next, now[1] + one}, greater(total, one)};
                });
}

TEST_P(ControlOn, RepeatsUntilAConditionOrANumberEndsIt) {
  const Tensor x = make_placeholder(context_, kInt32, {Dim(kRows), Dim(kColumns)});
  const Tensor most = make_placeholder(context_, kInt64, {Dim(1)});
  const Tensors last = halved(most, x);
  const auto run = make_ref<TensorRun>(
      context_, compile_tensors(context_, {{x, most}}, {{last[0] + last[0], last[1]}}));
  for (const int64_t rounds : {3, 0, 1, 100, 2, -5}) {
    Whole values(kRows * kColumns, 0);
    values[7] = 64;
    run->set_input(
        0, from_data(context_, kInt32, {kRows, kColumns}, values.data(), std::ssize(values) * 4));
    run->set_input(1, full(context_, kInt64, to_shape({1}), static_cast<double>(rounds)));
    run->execute();
    Whole got(kRows * kColumns);
    int32_t done = -1;
    run->read_output(0, got.data());
    run->read_output(1, &done);
    const auto want = static_cast<int32_t>(std::clamp<int64_t>(rounds, 0, 6));
    EXPECT_EQ(done, want) << rounds;
    EXPECT_EQ(got[7], 2 * (64 >> want)) << rounds;
  }
}

TEST_P(ControlOn, CollectsWhatRoundsMake) {
  const Tensor x = make_placeholder(context_, kInt32, {Dim(kRows), Dim(kColumns)});
  const Tensor asked = make_placeholder(context_, kInt64, {Dim(1)});
  constexpr int64_t kMost = 5;
  Dependences known;
  const Rounds made =
      collect(asked, kMost, {x}, known, [&](const Tensor& number, const Tensors& now) -> Round {
        const Tensor next = now[0] + now[0];
        return {{next}, full(context_, kBool, {}, 1), {sum_in_dtype(next, {1}), number}};
      });
  const auto run = make_ref<TensorRun>(
      context_, compile_tensors(context_, {{x, asked}},
                                {{made.collected[0], made.collected[1], made.count}}));
  for (const int64_t rounds : {3, 0, 5, 1}) {
    const Whole values(kRows * kColumns, 1);
    run->set_input(
        0, from_data(context_, kInt32, {kRows, kColumns}, values.data(), std::ssize(values) * 4));
    run->set_input(1, full(context_, kInt64, to_shape({1}), static_cast<double>(rounds)));
    run->execute();
    Whole sums(kMost * kRows);
    std::vector<int64_t> numbers(kMost);
    int64_t count = -1;
    run->read_output(0, sums.data());
    run->read_output(1, numbers.data());
    run->read_output(2, &count);
    EXPECT_EQ(count, rounds);
    for (int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(numbers[static_cast<size_t>(i)], i);
      EXPECT_EQ(sums[static_cast<size_t>(i * kRows)], kColumns << (i + 1)) << rounds;
    }
  }
}

// What a round makes on its way is as large as the loop's induction variable says: the first
// element, the first two, ..
TEST_P(ControlOn, RoundsHaveSizesThatTheyCount) {
  constexpr int64_t kFirst = 3, kRoom = 9;
  const UOp input = make_input(*context_, kInt64, 1);
  const UOp induction = context_->graph().variable("n", kFirst, kRoom);
  const Dim n(induction);
  Dependences known;
  const Rounds made =
      collect(Tensor(context_, input), kRoom,
              {full_bits(context_, kInt64, {}, 0), arange(context_, kInt64, kRoom)}, known,
              [&](const Tensor&, const Tensors& now) -> Round {
                // Places that are stored, so that a kernel knows nothing but the variable.
                const Tensor places = contiguous(arange(context_, kInt64, n));
                EXPECT_FALSE(known.of(places.node()).on_data());
                EXPECT_FALSE(known.of(places.node()).on_steps.empty());
                const Tensor seen = gather(now[1], places, 0);
                const Tensor next = now[0] + sum_in_dtype(seen, {0});
                return {{next, now[1]}, full(context_, kBool, {}, 1), {next}};
              },
              {induction, kFirst});
  EXPECT_TRUE(known.of(made.collected[0].node()).on_steps.empty());
  const std::vector<UOp> outputs{made.collected[0].node(), made.count.node()};
  const std::vector<UOp> inputs{input}, variables{induction};
  const CompiledProgram compiled = compile_program(*context_, outputs, inputs, variables);
  Device& device = context_->device();
  const auto memory = [&](int64_t bytes) { return make_ref<Storage>(device.allocate(bytes), 0); };
  const Ref<Storage> rounds = memory(8), sums = memory(8 * kRoom), count = memory(8);
  tiny::Run run(compiled.program);
  run.bind_input(0, rounds);
  run.bind_output(0, sums);
  run.bind_output(1, count);
  for (const int64_t asked : {4, 0, 7, 1}) {
    device.copy_in(nullptr, rounds->memory(), 0, &asked, 8);
    run.execute();
    Whole got(kRoom);
    int64_t ran = -1;
    std::vector<int64_t> all(kRoom);
    device.copy_out(nullptr, all.data(), sums->memory(), 0, 8 * kRoom);
    device.copy_out(nullptr, &ran, count->memory(), 0, 8);
    EXPECT_EQ(ran, asked);
    for (int64_t i = 0, sum = 0; i < asked; ++i) {
      const int64_t size = kFirst + i;
      sum += size * (size - 1) / 2;
      EXPECT_EQ(all[static_cast<size_t>(i)], sum) << asked << " " << i;
    }
  }
  const Tensor x = full(context_, kInt64, to_shape({kRoom}), 1);
  const auto collects_other_sizes = [&] {
    collect(Tensor(context_, input), kRoom, {x}, known,
            [&](const Tensor&, const Tensors& now) -> Round {
              return {now, full(context_, kBool, {}, 1), {slice_axis(now[0], 0, 0, n)}};
            },
            {induction, kFirst});
  };
  expect_failure(failure_of(collects_other_sizes), Status::Unsupported,
                 {"of which each round has another"});
}

// A round has a recurrence of its own, and work beside it that lives in the same memory.
TEST_P(ControlOn, RoundsHaveRecurrences) {
  const Tensor x = whole(3);
  const auto round = [&](const Tensors& state) {
    const auto step = [](const RecurrenceStep& now) -> RecurrenceResult {
      const Tensor next = now.state[0] + now.inputs[0];
      return {{next}, {next}};
    };
    const Tensor first = sum_in_dtype(state[0], {0});
    const RecurrenceResult all = recur(context_, {Dim(kRows), {{state[0] * x}}, {first}, {}}, step);
    return all.outputs[0] + expand(sum_in_dtype(all.outputs[0], {0}, true), x.shape());
  };
  Tensors hand{whole(4)};
  for (int i = 0; i < 3; ++i) hand = {round(hand)};
  const Tensor rounds = sum_in_dtype(full(context_, kInt64, to_shape({3}), 1), {0});
  Dependences known;
  const Tensors last = repeat(rounds, {whole(4)}, known, [&](const Tensor&, const Tensors& now) {
    return Round{{round(now)}, full(context_, kBool, {}, 1)};
  });
  EXPECT_EQ(whole_of(last[0]), whole_of(hand[0]));
}

// Processor time of all threads; other programs take none of it.
std::chrono::duration<double> time_worked() {
  return std::chrono::duration<double>(double(std::clock()) / CLOCKS_PER_SEC);
}

// How long work goes on, in processor time, after it was told to end.
std::chrono::duration<double> time_to_end(TensorRun& run) {
  const auto token = make_ref<CancelToken>();
  run.set_cancel(token);
  std::chrono::duration<double> told{};
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    told = time_worked();
    token->set();
  });
  expect_failure(failure_of([&] { run.execute(); }), Status::Cancelled, {});
  const auto ended = time_worked();
  other.join();
  return ended - told;
}

TEST_P(ControlOn, AnEndlessLoopEndsWhenItIsToldTo) {
  Dependences known;
  const Tensors last =
      repeat(number(INT64_MAX), {whole(1)}, known, [&](const Tensor&, const Tensors& now) {
        return Round{{now[0] + now[0]}, full(context_, kBool, {}, 1)};
      });
  const auto run = make_ref<TensorRun>(context_, compile_tensors(context_, {}, {{last[0]}}));
  std::vector<std::chrono::duration<double>> times;
  for (int i = 0; i < 9; ++i) times.push_back(time_to_end(*run));
  std::ranges::sort(times);
  EXPECT_LT(times[times.size() / 2], std::chrono::milliseconds(20) * GetParam().threads);
}

TEST(Control, IsWhatTheReferenceMakesOfIt) {
  const Ref<Context> context = testing::new_context("cpu");
  Dependences known;
  for (const int32_t first : {3, 4}) {
    Whole values(kRows * kColumns, 2);
    values[0] = first;
    const Tensor x =
        from_data(context, kInt32, {kRows, kColumns}, values.data(), std::ssize(values) * 4);
    const Tensors chosen =
        choose(is_odd(x), {sum_in_dtype(x, {0})}, {sum_in_dtype(x * x, {0})}, known);
    const Tensors last = halved(full(context, kInt64, {}, 9), x);
    for (const Tensor& t : {chosen[0], last[0], last[1]}) {
      const reference::Values want = reference::evaluate(t.node());
      EXPECT_EQ(reference::difference(want, whole_of(t).data()), "");
    }
  }
}

TEST(Control, IsKeptOnDisk) {
  const testing::TemporaryFolder folder;
  Flags flags = testing::flags_for("cpu");
  flags.spec = 0;
  flags.debug = 0;
  flags.cache_dir = folder.string();
  for (int process = 0; process < 2; ++process) {
    const Ref<Context> context = make_ref<Context>(flags);
    const Tensor x = make_placeholder(context, kInt32, {Dim(kRows), Dim(kColumns)});
    Dependences known;
    const Tensors chosen = choose(is_odd(x), {x * expand(sum_in_dtype(x, {0}, true), x.shape())},
                                  {halved(full(context, kInt64, {}, 3), x)[0]}, known);
    const auto run = make_ref<TensorRun>(context, compile_tensors(context, {{x}}, {{chosen[0]}}));
    EXPECT_EQ(context->kernels().times().compiled > 0, process == 0);
    for (const int32_t first : {5, 16, 5}) {
      Whole values(kRows * kColumns, 0), got(values.size());
      values[0] = first;
      run->set_input(
          0, from_data(context, kInt32, {kRows, kColumns}, values.data(), std::ssize(values) * 4));
      run->execute();
      run->read_output(0, got.data());
      EXPECT_EQ(got[0], first == 5 ? 25 : 2);
    }
  }
}

TEST(Control, SaysWhatCannotBe) {
  const Ref<Context> context = testing::new_context("interp");
  const Tensor x = full(context, kFloat32, to_shape({3}), 1);
  const Tensor condition = full(context, kBool, {}, 1);
  Dependences known;
  expect_failure(failure_of([&] { choose(condition, {x}, {slice_axis(x, 0, 0, 2)}, known); }),
                 Status::Unsupported, {"[3]", "[2]"});
  const auto grows = [&](const Tensor&, const Tensors& now) {
    return Round{{now[0] + full(context, kFloat32, to_shape({2, 3}), 1)}, condition};
  };
  expect_failure(failure_of([&] { repeat(full(context, kInt64, {}, 3), {x}, known, grows); }),
                 Status::Unsupported, {"[3]", "[2, 3]"});
}

}  // namespace
}  // namespace tiny
