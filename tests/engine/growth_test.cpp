// A graph is scheduled, planned and compiled in time that grows as the graph does: four times the
// nodes, kernels, buffers, constants, branches, readers or writes take four times as long, about.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "engine/compile.h"
#include "engine/program.h"
#include "tensor/control.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tensor/window.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using Tensors = std::vector<Tensor>;

// From the first node of a graph of some size to the end of the last.
using Work = void (*)(const Ref<Context>&, int64_t size);

Tensor input(const Ref<Context>& context, const Ints& shape) {
  return testing::float_input(context, shape);
}

// In memory of its own; a few different ones.
Tensor captured(const Ref<Context>& context, const Ints& shape, int64_t number) {
  const auto count = static_cast<size_t>(product(to_shape(shape)).value());
  return testing::floats(context, testing::Floats(count, static_cast<float>(number % 5) / 8),
                         shape);
}

Tensor plus(const Tensor& a, int64_t value) {
  return add(a, number(a, static_cast<double>(value)));
}

Ref<Program> compile(const Ref<Context>& context, const Tensors& outputs, const Tensors& inputs) {
  std::vector<UOp> out, in;
  for (const Tensor& t : outputs) out.push_back(t.node());
  for (const Tensor& t : inputs) {
    UOp node = t.node();
    while (node.op() != Op::Buffer) node = UOp(node.src(0));
    in.push_back(node);
  }
  return compile_program(*context, out, in).program;
}

void realize_all(Tensors tensors) {
  std::vector<Tensor*> all;
  for (Tensor& t : tensors) all.push_back(&t);
  realize(all);
}

void elementwise_and_movement(const Ref<Context>& context, int64_t size) {
  const Tensor in = input(context, {4, 6});
  Tensor x = in;
  for (int64_t i = 0; i < size; ++i) {
    x = i % 3 == 0 ? plus(x, i % 7) : i % 3 == 1 ? tanh(x) : reshape(permute(x, {1, 0}), {4, 6});
    if (i % 25 == 24) x = contiguous(x);
  }
  compile(context, {x}, {in});
}

void movement_alone(const Ref<Context>& context, int64_t size) {
  const Tensor in = input(context, {4, 6});
  Tensor x = in;
  for (int64_t i = 0; i < size; ++i) x = i % 2 == 0 ? permute(x, {1, 0}) : flip(x, {0});
  compile(context, {x}, {in});
}

// Each part of the chain has to be looked for in memory, and lies there as no view.
void movement_that_is_no_view(const Ref<Context>& context, int64_t size) {
  const Tensor x = input(context, {8, 8});
  Tensor t = x;
  for (int64_t i = 0; i < size; ++i)
    t = reshape(flip(reshape(permute(t, {1, 0}), {4, 16}), {1}), {8, 8});
  compile(context, {exp(t)}, {x});
}

void kernels_in_a_row(const Ref<Context>& context, int64_t size) {
  const Tensor in = input(context, {4, 4});
  const Tensor weight = captured(context, {4, 4}, 1);
  Tensor x = in;
  for (int64_t i = 0; i < size; ++i) x = tanh(matmul(x, weight));
  compile(context, {x}, {in});
}

// As gradients need them: what is made first is read last.
void values_that_live_long(const Ref<Context>& context, int64_t size) {
  const Tensor in = input(context, {4, 4});
  const Tensor weight = captured(context, {4, 4}, 1);
  Tensors values{in};
  for (int64_t i = 0; i < size / 2; ++i) values.push_back(tanh(matmul(values.back(), weight)));
  Tensor x = values.back();
  for (int64_t i = size / 2; i-- > 0;) x = mul(matmul(x, weight), values[static_cast<size_t>(i)]);
  compile(context, {x}, {in});
}

void inputs_and_outputs(const Ref<Context>& context, int64_t size) {
  Tensors in, out;
  for (int64_t i = 0; i < size; ++i) {
    in.push_back(input(context, {8 + i % 3}));
    out.push_back(exp(in.back()));
  }
  const Ref<Run> run = make_ref<Run>(compile(context, out, in));
  const Ref<Storage> from = context->allocate(64), to = context->allocate(64);
  for (int64_t i = 0; i < size; ++i) run->bind_input(i, from);
  for (int64_t i = 0; i < size; ++i) run->bind_output(i, to);
}

void captured_tensors_and_results(const Ref<Context>& context, int64_t size) {
  Tensors out;
  for (int64_t i = 0; i < size; ++i) out.push_back(exp(captured(context, {8}, i)));
  realize_all(std::move(out));
}

void constants_to_compute(const Ref<Context>& context, int64_t size) {
  const Tensor in = input(context, {4, 4});
  Tensor x = in;
  for (int64_t i = 0; i < size; ++i) x = matmul(x, exp(captured(context, {4, 4}, i)));
  compile(context, {x}, {in});
}

void parts_of_one_constant(const Ref<Context>& context, int64_t size) {
  const Tensor in = input(context, {4});
  const Tensor all = captured(context, {size, 4}, 1);
  Tensor x = in;
  for (int64_t i = 0; i < size; ++i) {
    x = mul(x, exp(reshape(slice_axis(all, 0, i, i + 1), {4})));
    if (i % 8 == 7) x = contiguous(x);
  }
  compile(context, {x}, {in});
}

// Each is made of the one before, and read: what a constant is made of is not walked for each.
void constants_over_each_other(const Ref<Context>& context, int64_t size) {
  const Tensor in = input(context, {4, 4});
  Tensor x = in, made = captured(context, {4, 4}, 1);
  for (int64_t i = 0; i < size; ++i) {
    made = contiguous(tanh(made));
    x = matmul(x, made);
  }
  compile(context, {x}, {in});
}

void convolutions(const Ref<Context>& context, int64_t size) {
  const Tensor in = input(context, {1, 32, 8, 8});
  Window same;
  same.before = same.after = {1, 1};
  Tensor x = in;
  for (int64_t i = 0; i < size; ++i)
    x = conv(x, captured(context, {32, 32, 3, 3}, i), Tensor(), same);
  compile(context, {x}, {in});
}

void branches(const Ref<Context>& context, int64_t size) {
  const Tensor in = input(context, {4, 4});
  Tensors parts;
  for (int64_t i = 0; i < size; ++i) parts.push_back(matmul(in, captured(context, {4, 4}, i)));
  compile(context, {concat(parts, 0)}, {in});
}

// Values that two chains take, which meet at their ends.
void branches_that_meet(const Ref<Context>& context, int64_t size) {
  const Tensor in = input(context, {16});
  Tensor a = in, b = in;
  for (int64_t i = 0; i < size; ++i) {
    const Tensor both = plus(in, i);
    a = mul(a, both);
    b = add(b, both);
  }
  compile(context, {add(a, b)}, {in});
}

// Each of the two lists is chosen by what the choice before made.
void choices(const Ref<Context>& context, int64_t size) {
  const Tensor in = input(context, {4, 4});
  Dependences known;
  Tensor x = in;
  for (int64_t i = 0; i < size; ++i) {
    const Tensor is_more = less(number(x, 0), sum(x, {0, 1}));
    x = choose(is_more, {matmul(x, in)}, {plus(sum(x, {0}, true), i) + x}, known)[0];
  }
  compile(context, {x}, {in});
}

// The same side by side.
void choices_of_one_value(const Ref<Context>& context, int64_t size) {
  const Tensor in = input(context, {4, 4});
  Dependences known;
  Tensors out;
  for (int64_t i = 0; i < size; ++i) {
    const Tensor is_more = less(number(in, static_cast<double>(i)), sum(in, {0, 1}));
    out.push_back(choose(is_more, {matmul(in, plus(in, i))}, {sum(in, {0}, true) + in}, known)[0]);
  }
  compile(context, out, {in});
}

void readers_of_one_value(const Ref<Context>& context, int64_t size) {
  const Tensor in = input(context, {4, 4});
  const Tensor read = contiguous(exp(in));
  Tensors out;
  for (int64_t i = 0; i < size; ++i) out.push_back(sum(plus(read, i), {i % 2}));
  compile(context, out, {in});
}

void writes(const Ref<Context>& context, int64_t size) {
  const Tensor whole = captured(context, {size, 4}, 1);
  for (int64_t i = 0; i < size; ++i) {
    Tensor row = slice_axis(whole, 0, i, i + 1);
    assign(row, captured(context, {1, 4}, i));
  }
  realize_all({whole});
}

void writes_and_reads(const Ref<Context>& context, int64_t size) {
  const Tensor whole = captured(context, {size, 4}, 1);
  Tensors seen;
  for (int64_t i = 0; i < size; ++i) {
    Tensor row = slice_axis(whole, 0, i, i + 1);
    seen.push_back(sum(row, {1}));
    assign(row, captured(context, {1, 4}, i));
  }
  seen.push_back(whole);
  realize_all(std::move(seen));
}

void writes_to_many(const Ref<Context>& context, int64_t size) {
  Tensors all;
  for (int64_t i = 0; i < size; ++i) {
    all.push_back(captured(context, {8}, i));
    assign(all.back(), exp(all.back()));
  }
  realize_all(std::move(all));
}

// The sum needs the value before the write and the one after it.
void versions_to_copy(const Ref<Context>& context, int64_t size) {
  Tensors written, sums;
  for (int64_t i = 0; i < size; ++i) {
    Tensor t = captured(context, {8}, i);
    const Tensor before = mul(t, t);
    assign(t, exp(t));
    sums.push_back(add(before, t));
    written.push_back(std::move(t));
  }
  realize_all(std::move(sums));
}

struct Case {
  const char* name;
  int64_t size;  // of the small graph
  Work work;
};

const Case kCases[] = {
    {"ElementwiseAndMovement", 4000, elementwise_and_movement},
    {"MovementAlone", 2000, movement_alone},
    {"MovementThatIsNoView", 100, movement_that_is_no_view},
    {"KernelsInARow", 1000, kernels_in_a_row},
    {"ValuesThatLiveLong", 1000, values_that_live_long},
    {"InputsAndOutputs", 2000, inputs_and_outputs},
    {"CapturedTensorsAndResults", 2000, captured_tensors_and_results},
    {"ConstantsToCompute", 2000, constants_to_compute},
    {"PartsOfOneConstant", 1000, parts_of_one_constant},
    {"ConstantsOverEachOther", 500, constants_over_each_other},
    {"Convolutions", 10, convolutions},
    {"Branches", 2000, branches},
    {"BranchesThatMeet", 2000, branches_that_meet},
    {"Choices", 500, choices},
    {"ChoicesOfOneValue", 500, choices_of_one_value},
    {"ReadersOfOneValue", 500, readers_of_one_value},
    {"Writes", 1000, writes},
    {"WritesAndReads", 1000, writes_and_reads},
    {"WritesToMany", 1000, writes_to_many},
    {"VersionsToCopy", 500, versions_to_copy},
};

double seconds_of(Work work, int64_t size) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double begin = now();
  work(testing::new_context("null"), size);
  return now() - begin;
}

class Growth : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Of, Growth, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST_P(Growth, IsTheGraphs) {
  constexpr int64_t kTimes = 4;
  constexpr double kMost = 1.7 * kTimes;  // a large graph leaves the caches; a square is 4 times
  // What works beside takes the caches for a while, and the large graph needs them more: tries lie
  // further and further apart, 18 s in all.
  constexpr int kTries = 12;
  constexpr std::chrono::milliseconds kPause(270);
  double small = std::numeric_limits<double>::infinity(), large = small;
  for (int i = 0; i < kTries; ++i) {
    small = std::min(small, seconds_of(GetParam().work, GetParam().size));
    large = std::min(large, seconds_of(GetParam().work, GetParam().size * kTimes));
    if (large <= kMost * small) break;
    std::this_thread::sleep_for(i * kPause);
  }
  EXPECT_LE(large, kMost * small) << "seconds; " << small << " for a size of " << GetParam().size;
}

}  // namespace
}  // namespace tiny
