// Long float sums: their error, whatever options their kernels have, and what their loops cost.
#include "codegen/linear/partial_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "codegen/linear/linear_passes.h"
#include "codegen/pipeline.h"
#include "schedule/schedule.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/normalization.h"
#include "tensor/program.h"
#include "tensor/reduce.h"
#include "tensor/run.h"
#include "tensor/window.h"
#include "tests/support/context.h"
#include "tests/support/random_kernels.h"
#include "tests/support/tensors.h"

namespace tiny::testing {
namespace {

constexpr double kEpsilon = 0x1p-24;  // of float32

// What docs/semantics.md allows a sum of so many terms of one sign.
double error_allowed(int64_t steps) {
  const double levels =
      std::ceil(std::log2(static_cast<double>(steps)) / std::log2(static_cast<double>(kPartSteps)));
  return (static_cast<double>(kPartSteps) * levels + 64) * kEpsilon;
}

Ref<Context> context_with(const std::string& device, const std::string& isa,
                          const std::string& list) {
  Flags flags = flags_for(device, isa);
  if (list == "none") flags.noopt = 1;
  if (list != "none" && list != "chosen") flags.opts = list;
  flags.spec = 1;
  flags.threads = 1;  // a sum is not cut for others to help
  return make_ref<Context>(flags);
}

// Values between 0.05 and 0.15, most of them 0.1: what is lost at each step adds up.
Floats alike(int64_t count, uint64_t seed) {
  Choices choices(seed);
  Floats out(static_cast<size_t>(count), 0.1F);
  for (int64_t i = 0; i < count / 4; ++i)
    out[static_cast<size_t>(choices.below(count))] =
        0.05F + 0.1F * static_cast<float>(choices.below(1024)) / 1024;
  return out;
}

double worst_error(const Floats& got, const std::vector<double>& want) {
  if (got.size() != want.size()) return HUGE_VAL;
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(static_cast<double>(got[i]) / want[i] - 1);
    worst = error <= worst ? worst : error;
    if (std::isnan(error)) return HUGE_VAL;
  }
  return worst;
}

// The sums of a [outer, steps, inner] array along the middle.
std::vector<double> exact_sums(const Floats& x, const Ints& shape) {
  std::vector<double> sums(static_cast<size_t>(shape[0] * shape[2]));
  for (int64_t o = 0; o < shape[0]; ++o)
    for (int64_t k = 0; k < shape[1]; ++k)
      for (int64_t i = 0; i < shape[2]; ++i)
        sums[static_cast<size_t>(o * shape[2] + i)] +=
            static_cast<double>(x[static_cast<size_t>((o * shape[1] + k) * shape[2] + i)]);
  return sums;
}

struct Machine {
  std::string device;
  std::string isa;
};
std::vector<Machine> machines(bool with_compiler) {
  std::vector<Machine> all;
  for (const BackendInfo& backend : computing_backends()) {
    if (backend.name == "c" && !with_compiler) continue;
    all.push_back({backend.name, "auto"});
    if (backend.name == "cpu") all.push_back({backend.name, "avx2"});
  }
  return all;
}

// Lists for a sum: its elements are r0, its steps r1.
constexpr const char* kLists[] = {"chosen",
                                  "none",
                                  "TILE r1 4; UNROLL r2",
                                  "TILE r1 7; UPCAST r2",
                                  "TILE r1 16; VEC r2",
                                  "TILE r1 8; UNROLL r2; TILE r1 3",
                                  "TILE r1 1000",
                                  "TILE r1 2048; UNROLL r2",
                                  "ORDER r1 r0",
                                  "TILE r1 16; ORDER r1 r0 r2",
                                  "TILE r1 512; ORDER r1 r0 r2"};

void expect_small_errors(const Machine& machine, const std::string& list, const Ints& shape) {
  const Ref<Context> context = context_with(machine.device, machine.isa, list);
  const Floats x = alike(shape[0] * shape[1] * shape[2], static_cast<uint64_t>(shape[1]));
  const Floats got = floats_of(sum(floats(context, x, shape), {1}));
  EXPECT_LE(worst_error(got, exact_sums(x, shape)), error_allowed(shape[1]))
      << shape[0] << "x" << shape[1] << "x" << shape[2] << " on " << machine.device << " "
      << machine.isa << " with " << list;
}

TEST(PartialSums, OfAnyAxisUnderAnyListAreNearTheirValue) {
  const Ints shapes[] = {{1, 70001, 5}, {3, 20000, 1}, {1, 9000, 33}, {1, 5000, 16}};
  for (const Machine& machine : machines(false))
    for (const char* list : kLists)
      for (const Ints& shape : shapes) expect_small_errors(machine, list, shape);
}

TEST(PartialSums, OfACompilerAreNearTheirValue) {
  for (const Machine& machine : machines(true))
    if (machine.device == "c") expect_small_errors(machine, "none", {1, 70001, 5});
}

TEST(PartialSums, OfPartsOfPartsAreNearTheirValue) {
  expect_small_errors({"cpu", "auto"}, "none", {1, 3000000, 1});
}

TEST(PartialSums, OfWhateverIsAddedAreNearTheirValue) {
  const int64_t n = 100000;
  const Floats x(static_cast<size_t>(n * 8), 0.1F);
  const double tenth = 0.1F;
  struct Case {
    const char* name;
    std::function<Tensor(const Tensor& columns, const Tensor& rows)> of;
    double want;
  };
  const auto steps = static_cast<double>(n);
  const Case cases[] = {
      {"product", [](const Tensor& c, const Tensor& r) { return matmul(r, c); },
       tenth * tenth * steps},
      {"mean", [](const Tensor& c, const Tensor&) { return mean(c, {0}); }, tenth},
      {"sum of squares", [](const Tensor& c, const Tensor&) { return sum(square(c), {0}); },
       tenth * tenth * steps},
      {"sum of a branch",
       [](const Tensor& c, const Tensor&) {
         return sum(where(less(c, number(c, 0)), number(c, 0), c), {0});
       },
       tenth * steps},
      {"everything", [](const Tensor& c, const Tensor&) { return sum(c, {0, 1}); },
       tenth * steps * 8},
      {"convolution",
       [](const Tensor& c, const Tensor& r) {
         return conv(reshape(transpose(c, 0, 1), {Dim(1), Dim(8 * n / 100), Dim(100)}),
                     reshape(r, {Dim(1), Dim(8 * n / 100), Dim(100)}), Tensor(), Window());
       },
       tenth * tenth * steps * 8}};
  for (const Machine& machine : machines(false))
    for (const char* list : {"chosen", "none"})
      for (const Case& c : cases) {
        const Ref<Context> context = context_with(machine.device, machine.isa, list);
        const Floats got = floats_of(c.of(floats(context, x, {n, 8}), floats(context, x, {8, n})));
        EXPECT_LE(worst_error(got, std::vector<double>(got.size(), c.want)), error_allowed(8 * n))
            << c.name << " on " << machine.device << " " << machine.isa << " with " << list;
      }
}

TEST(PartialSums, OfNarrowFloatsAddUpInFloat32) {
  const int64_t n = 50000;
  for (const DType dtype : {kFloat16, kBFloat16})
    for (const char* list : {"chosen", "none"}) {
      const Ref<Context> context = context_with("cpu", "auto", list);
      const Tensor x =
          cast(floats(context, Floats(static_cast<size_t>(n * 4), 0.25F), {n, 4}), dtype);
      const Floats got = floats_of(cast(sum(x, {0}), kFloat32));
      const double half = dtype == kFloat16 ? 0x1p-11 : 0x1p-8;  // of a unit in the last place
      EXPECT_LE(worst_error(got, std::vector<double>(4, 0.25 * static_cast<double>(n))), half)
          << cat(dtype, " with ", list);
    }
}

TEST(PartialSums, WithASizeOfTheRunAreNearTheirValue) {
  for (const Machine& machine : machines(false)) {
    const Ref<Context> context = context_with(machine.device, machine.isa, "chosen");
    const UOp n = context->graph().variable("n", 1, 1 << 20);
    const Shape shape{Dim(n), Dim(4)};
    const UOp input = make_input(*context, kFloat32, product(shape));
    const Tensor sums = sum(reshape(Tensor(context, input), shape), {0});
    const Ref<TensorProgram> program = make_ref<TensorProgram>();
    program->variables = {{"n", 1, 1 << 20}};
    program->inputs = {make_port("x", kFloat32, shape, {&n, 1})};
    program->outputs = {make_port("sums", kFloat32, sums.shape(), {&n, 1})};
    program->inputs[0].number = program->outputs[0].number = 0;
    program->compiled = compile_program(*context, {{sums.node()}}, {{input}}, {{n}});
    const Ref<TensorRun> run = make_ref<TensorRun>(context, program);
    for (const int64_t rows : {1, 300, 70001}) {
      const Floats x = alike(rows * 4, 7);
      run->set_variable(0, rows);
      run->set_input(0, floats(context, x, {rows, 4}));
      run->execute();
      Floats out(4);
      run->read_output(0, out.data());
      EXPECT_LE(worst_error(out, exact_sums(x, {1, rows, 4})), error_allowed(rows))
          << rows << " rows on " << machine.device << " " << machine.isa;
    }
  }
}

// The program of the first kernel that computes a value.
LinearProgram program_of(const Ref<Context>& context, const Tensor& value,
                         const std::string& list) {
  const UOp stored = context->graph().make(Op::Contiguous, {value.node()});
  const Schedule schedule = make_schedule({&stored, 1}, context->backend().machine());
  PipelineOptions options;
  options.verify = true;
  options.options_text = list;
  options.optimise = list.empty();
  return generate(schedule.kernels.back().kernel, context->backend().machine(), options).program;
}

// The ops of the innermost loops that add products.
std::vector<LinearOp> multiplying_loop(const LinearProgram& program) {
  std::vector<LinearOp> loop, longest;
  for (const LinearOp& op : program.ops) {
    if (op.op == Op::Loop) loop.clear();
    loop.push_back(op);
    if (op.op != Op::EndLoop) continue;
    const auto is_product = [](const LinearOp& o) { return o.op == Op::Fma; };
    if (loop.size() > longest.size() && std::ranges::any_of(loop, is_product)) longest = loop;
    loop.clear();
  }
  return longest;
}

TEST(PartialSums, CostALoopOfProductsNothing) {
  const Ref<Context> context = context_with("cpu", "avx2", "chosen");
  const char* list =
      "TILE r0 6; TILE r1 16; TILE r4 8; UPCAST r3; UPCAST r4; VEC r5; "
      "ORDER r0 r1 r2 r3 r4 r5";
  const auto loop_of = [&](int64_t k) {
    const Tensor a = float_input(context, {48, k}), b = float_input(context, {k, 64});
    return multiplying_loop(program_of(context, matmul(a, b), list));
  };
  const std::vector<LinearOp> few = loop_of(kPartSteps), many = loop_of(20 * kPartSteps);
  EXPECT_FALSE(few.empty());
  EXPECT_EQ(few.size(), many.size());
  for (const LinearOp& op : many) EXPECT_NE(op.op, Op::Store);
}

TEST(PartialSums, OfFewStepsAreOneSum) {
  const Ref<Context> context = context_with("cpu", "avx2", "chosen");
  const Tensor x = float_input(context, {kPartSteps, 8});
  for (const LinearOp& op : program_of(context, sum(x, {0}), "TILE r0 8; VEC r2").ops)
    EXPECT_NE(op.op, Op::Scratch);
}

// sum of in[i] over i in [0, steps), which `change` may add to in the loop.
LinearProgram loop_of(int64_t steps, const std::function<void(LinearProgram&, LinearId)>& change,
                      DType dtype = kFloat32) {
  LinearProgram p;
  p.name = "sums";
  p.params = {{dtype, true, false}, {dtype, false, true}};
  const LinearId in = p.add(Op::Param, kAddress, {}, 0);
  const LinearId out = p.add(Op::Param, kAddress, {}, 1);
  const LinearId zero = p.add(Op::Const, kInt64), end = p.add(Op::Const, kInt64, {}, steps);
  const LinearId acc = p.add(Op::Accumulator, dtype, {p.add(Op::Const, dtype)});
  const LinearId loop = p.add(Op::Loop, kInt64, {zero, end}, 1);
  const LinearId x = p.add(Op::Load, dtype, {in, loop});
  p.add(Op::Set, kVoid, {acc, p.add(Op::Add, dtype, {acc, x})});
  if (change) change(p, acc);
  p.add(Op::EndLoop, kVoid, {loop});
  p.add(Op::Store, kVoid, {out, zero, acc});
  verify(p);
  sum_in_parts(p);
  verify(p);
  return p;
}
size_t loops_in(const LinearProgram& p) {
  return static_cast<size_t>(
      std::ranges::count_if(p.ops, [](const LinearOp& op) { return op.op == Op::Loop; }));
}

TEST(PartialSums, HaveALoopForEachLevel) {
  EXPECT_EQ(loops_in(loop_of(kPartSteps, {})), 1U);
  EXPECT_EQ(loops_in(loop_of(kPartSteps + 1, {})), 2U);
  EXPECT_EQ(loops_in(loop_of(kPartSteps * kPartSteps, {})), 2U);
  EXPECT_EQ(loops_in(loop_of(kPartSteps * kPartSteps + 1, {})), 3U);
}

TEST(PartialSums, AreOfFloatsThatNothingElseReads) {
  EXPECT_EQ(loops_in(loop_of(10000, {}, kInt32)), 1U);
  const auto stored = [](LinearProgram& p, LinearId acc) { p.add(Op::Store, kVoid, {1, 2, acc}); };
  EXPECT_EQ(loops_in(loop_of(10000, stored)), 1U);
  const auto set = [](LinearProgram& p, LinearId acc) {
    p.add(Op::Set, kVoid, {acc, p.add(Op::Neg, kFloat32, {acc})});
  };
  EXPECT_EQ(loops_in(loop_of(10000, set)), 1U);
}

}  // namespace
}  // namespace tiny::testing
