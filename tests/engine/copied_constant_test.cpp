// A large constant that kernels read as it lies is copied piece by piece, and each time what was
// copied may leave memory; a later process does the same without looking at the graph.
#include "engine/copied_constant.h"

#include <gtest/gtest.h>

#include <atomic>

#include "engine/compile.h"
#include "engine/kernel_cache.h"
#include "engine/observe.h"
#include "engine/realize.h"
#include "schedule/schedule.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tests/support/context.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

constexpr int64_t kColumns = 2100;
constexpr int64_t kSteps = 4096;
constexpr int64_t kPieces = 3;  // of 16 MB

std::atomic<int> unloads{0};

float weight_at(int64_t i) {
  return static_cast<float>(i * 7 % 11 - 5);
}

// One row times a matrix whose columns lie in memory as they are multiplied.
struct Network {
  explicit Network(const Flags& flags) : context(make_ref<Context>(flags)) {
    testing::Floats values(kColumns * kSteps);
    for (size_t i = 0; i < values.size(); ++i) values[i] = weight_at(static_cast<int64_t>(i));
    weights = testing::floats(context, values, {kColumns, kSteps});
    storage_of(base())->set_unload([](void*) { ++unloads; });
    input = testing::float_input(context, {1, kSteps});
    output = matmul(input, permute(weights, {1, 0}));
  }
  UOp base() const {
    UOp node = weights.node();
    while (!has_memory(node)) node = UOp(node.src(0));
    return node;
  }

  Ref<Context> context;
  Tensor weights, input, output;
};

CompileCounts run(Network& network) {
  Context& context = *network.context;
  UOp input = network.input.node();
  while (input.op() != Op::Buffer) input = UOp(input.src(0));
  const CompiledProgram made = compile_program(context, {&network.output.node(), 1}, {&input, 1});
  testing::Floats x(kSteps);
  for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k % 3);
  const auto run = make_ref<tiny::Run>(made.program);
  run->bind_input(0, context.from_host(x.data(), kSteps * 4));
  const Ref<Storage> memory = context.allocate(kColumns * 4);
  run->bind_output(0, memory);
  run->execute();
  testing::Floats got(kColumns);
  context.device().copy_out(nullptr, got.data(), memory->memory(), 0, kColumns * 4);
  for (int64_t j = 0; j < kColumns; ++j) {
    float want = 0;  // whole numbers: exact in any order
    for (int64_t k = 0; k < kSteps; ++k)
      want += x[static_cast<size_t>(k)] * weight_at(j * kSteps + k);
    EXPECT_EQ(got[static_cast<size_t>(j)], want) << "column " << j;
  }
  return context.kernels().times();
}

TEST(CopiedConstant, GoesPieceByPieceAndIsRecorded) {
  const testing::TemporaryFolder folder;
  Flags flags = testing::flags_for("cpu");
  flags.spec = 0;  // what is verified is not taken from disk
  flags.debug = 0;
  flags.cache_dir = folder.string();
  for (const int64_t known : {0, 1}) {
    Network network(flags);
    unloads = 0;
    EXPECT_EQ(run(network).programs_on_disk, known);
    EXPECT_GE(unloads.load(), kPieces);
    // Another program finds the copy.
    unloads = 0;
    run(network);
    EXPECT_EQ(unloads.load(), 0);
  }
}

TEST(CopiedConstant, IsAllOfWhatCanLeaveMemoryAsItLies) {
  const Ref<Context> context = testing::new_context("cpu");
  Graph& graph = context->graph();
  const Tensor whole = testing::floats(context, testing::Floats(24), {4, 6});
  UOp base = whole.node();
  while (!has_memory(base)) base = UOp(base.src(0));
  const auto stored = [&](const Tensor& t) { return graph.make(Op::Contiguous, {t.node()}); };
  EXPECT_FALSE(is_copied(stored(whole))) << "it cannot leave memory";
  storage_of(base)->set_unload([](void*) {});
  EXPECT_TRUE(is_copied(stored(whole)));
  EXPECT_TRUE(is_copied(stored(reshape(whole, to_shape({2, 12})))));
  EXPECT_FALSE(is_copied(stored(permute(whole, {1, 0})))) << "it lies otherwise";
  EXPECT_FALSE(is_copied(stored(shrink(whole, to_shape({0, 0}), to_shape({2, 6}))))) << "a part";
  EXPECT_FALSE(is_copied(whole.node()));
}

}  // namespace
}  // namespace tiny
