// What is chosen for a machine that computes in groups of threads, as properties of the kernel that
// the options make: how much memory is touched, how wide, where threads lie, what a group shares.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "codegen/choose/choose.h"
#include "codegen/choose/group_editor.h"
#include "codegen/choose/strategies.h"
#include "codegen/options/options.h"
#include "codegen/options/stage.h"
#include "codegen/pipeline.h"
#include "cost/access_table.h"
#include "cost/group_estimate.h"
#include "cost/group_machines.h"
#include "engine/backend.h"
#include "ir/bounds.h"
#include "ir/kernel.h"
#include "render/access_alignment.h"
#include "schedule/rewrite/split_reductions.h"
#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/program.h"
#include "tensor/reduce.h"
#include "tests/support/context.h"

namespace tiny {
namespace {

// A chosen kernel, and what one launch of it does.
class Chosen {
 public:
  Chosen(const Kernel& kernel, const Machine& machine) : machine_(machine) {
    PipelineOptions options;
    options.verify = true;
    Machine aligned = machine;
    aligned.group.argument_alignment = 256;
    made_ = generate(kernel, aligned, options);
    table_ = access_table(made_.kernel);
    for (size_t i = 0; i < made_.kernel.ranges.size(); ++i) {
      const KernelRange& r = made_.kernel.ranges[i];
      if (r.kind == RangeKind::Local) sizes_[r.axis] = r.range.src(0).const_int();
    }
  }

  const std::string& options() const { return made_.options; }
  const Kernel& kernel() const { return made_.kernel; }
  int64_t threads() const { return made_.program.group_threads(); }
  int64_t groups() const {
    return made_.threads_extent.is_const() ? made_.threads_extent.value() : 0;
  }
  bool fits() const { return fits_group(made_.kernel, machine_); }

  // Loads of a parameter from memory, each with how often all threads make it, in elements.
  double loaded(int64_t param) const {
    double all = 0;
    for (const AccessInfo& a : table_.accesses) {
      if (a.node.op() != Op::Load || a.node.src(0).int_arg() != param) continue;
      double n = 1;
      const RangeSet set = table_.free[a.place];
      for (size_t i = 0; i < table_.extents.size(); ++i)
        if (set & bit(i)) n *= table_.extents[i];
      all += n;
    }
    return all;
  }

  // The widest access of the parameter that a renderer would make of the program; 0: it is not
  // accessed.
  int64_t access_bytes_of(int64_t param) const {
    const LinearProgram& program = made_.program;
    const AccessAlignment alignment(program);
    int64_t widest = 0;
    for (LinearId id = 0; id < program.ops.size(); ++id) {
      const LinearOp& op = program.ops[id];
      if (op.op != Op::Load && op.op != Op::Store) continue;
      LinearOp base = program.ops[op.src[0]];
      while (base.op == Op::Address) base = program.ops[base.src[0]];
      if (base.op == Op::Param && base.imm == param)
        widest = std::max(widest, access_bytes(program, alignment, id, 16));
    }
    return widest;
  }

  // From one thread of axis 0 to the next, in elements, in each access of memory; thread 1 goes on
  // where thread 0 ends.
  bool is_coalesced() const {
    for (const AccessInfo& a : table_.accesses) {
      if (a.node.op() == Op::Index) continue;
      int64_t step = 0, lanes = 1;
      for (size_t i = 0; i < a.strides.size(); ++i) {
        const KernelRange& r = made_.kernel.ranges[i];
        if (r.kind == RangeKind::Local && r.axis == 0 && a.strides[i] != 0) step = a.strides[i];
        if (r.kind == RangeKind::Vec && a.strides[i] == 1) lanes *= r.range.src(0).const_int();
      }
      if (step != 0 && step != lanes) return false;
    }
    return true;
  }

  // Turns that threads of a warp wait for each other's banks, in all reads of shared memory.
  int64_t conflicts() const {
    int64_t all = 0;
    for (const AccessInfo& a : table_.accesses) {
      if (a.node.op() != Op::Index || !a.node.src(0).stage_arg().is_shared) continue;
      std::array<int64_t, kGroupAxes> steps{};
      int64_t lanes = 1;
      for (size_t i = 0; i < a.strides.size(); ++i) {
        const KernelRange& r = made_.kernel.ranges[i];
        if (r.kind == RangeKind::Local && a.strides[i] != 0) steps[r.axis] = a.strides[i];
        if (r.kind == RangeKind::Vec && a.strides[i] == 1) lanes *= r.range.src(0).const_int();
      }
      const int64_t element = a.node.dtype().bytes();
      all += bank_conflicts(steps, sizes_, element, element * lanes, machine_.group);
    }
    return all;
  }

 private:
  const Machine& machine_;
  CodegenResult made_;
  AccessTable table_;
  std::array<int64_t, kGroupAxes> sizes_{1, 1, 1};
};

class GroupChoices : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    Flags flags = testing::flags_for("interp");
    flags.cache = 0;
    flags.processor = GetParam();
    context_ = make_ref<Context>(flags);
  }
  bool is_h100() const { return std::string(GetParam()) == "h100"; }

  Tensor input(const Ints& shape, DType dtype = kFloat32) {
    return make_placeholder(context_, dtype, to_shape(shape));
  }
  // The kernels of what makes `output`, in order.
  std::vector<Chosen> chosen(const Tensor& output) { return chosen({{output.node()}}); }
  std::vector<Chosen> chosen(const std::vector<UOp>& roots) {
    const Machine& machine = context_->backend().machine();
    const Schedule schedule = make_schedule(roots, machine);
    std::vector<Chosen> all;
    for (const ScheduledKernel& k : schedule.kernels) all.emplace_back(k.kernel, machine);
    return all;
  }
  Chosen only(const Tensor& output) {
    std::vector<Chosen> all = chosen(output);
    EXPECT_EQ(all.size(), 1u);
    return std::move(all.front());
  }

  Ref<Context> context_;
};

TEST_P(GroupChoices, ElementsAreAccessedWideAndBesideEachOther) {
  const Chosen of = only(relu(add(input({1000, 512}), input({1000, 512}))));
  SCOPED_TRACE(of.options());
  EXPECT_TRUE(of.fits());
  EXPECT_TRUE(of.is_coalesced());
  for (int64_t p = 0; p < 3; ++p) EXPECT_EQ(of.access_bytes_of(p), 16) << p;
  EXPECT_EQ(of.loaded(0), 512000);
  EXPECT_GE(of.threads(), 32);
  EXPECT_GE(of.groups(), context_->backend().machine().cores);
}

TEST_P(GroupChoices, NarrowElementsToo) {
  const Chosen of =
      only(cast(add(input({4096, 4096}, kFloat16), input({4096, 4096}, kFloat16)), kFloat16));
  SCOPED_TRACE(of.options());
  EXPECT_TRUE(of.is_coalesced());
  EXPECT_GE(of.access_bytes_of(0), 8);
}

TEST_P(GroupChoices, ATransposeReadsAndStoresSideBySide) {
  const Chosen of =
      only(add(permute(input({2048, 1024}), {1, 0}), permute(input({2048, 1024}), {1, 0})));
  SCOPED_TRACE(of.options());
  EXPECT_TRUE(of.fits());
  EXPECT_TRUE(of.is_coalesced() || !is_h100());
}

TEST_P(GroupChoices, ATurnedSquareHasNoBankConflicts) {
  const Chosen of = only(relu(permute(input({2048, 1024}), {1, 0})));
  SCOPED_TRACE(of.options());
  EXPECT_TRUE(of.fits());
  if (!is_h100()) return;  // its caches turn squares as well
  EXPECT_TRUE(of.is_coalesced());
  EXPECT_EQ(of.conflicts(), 0);
  EXPECT_GT(shared_bytes(of.kernel()), 0);
  EXPECT_EQ(of.loaded(0), 2048 * 1024);
}

TEST_P(GroupChoices, ARowIsReadOnce) {
  for (const int64_t columns : {256, 1024, 4096}) {
    const Chosen of = only(softmax(input({4096, columns}), 1));
    SCOPED_TRACE(of.options());
    EXPECT_TRUE(of.fits());
    EXPECT_TRUE(of.is_coalesced());
    if (!is_h100()) continue;  // its rows are in a core's cache when they are read again
    EXPECT_EQ(of.loaded(0), 4096.0 * static_cast<double>(columns));
    EXPECT_EQ(of.access_bytes_of(0), 16);
    EXPECT_EQ(of.conflicts(), 0);
  }
}

TEST_P(GroupChoices, ShortRowsShareAGroup) {
  const Chosen of = only(softmax(input({8192, 64}), 1));
  SCOPED_TRACE(of.options());
  EXPECT_TRUE(of.fits());
  EXPECT_TRUE(of.is_coalesced());
  EXPECT_GE(of.threads(), 32);
  EXPECT_LE(of.groups(), 8192);
}

TEST_P(GroupChoices, SumsOfColumnsAreReadByRows) {
  const Chosen of = only(sum(input({512, 4096}), {0}));
  SCOPED_TRACE(of.options());
  EXPECT_TRUE(of.fits());
  EXPECT_TRUE(of.is_coalesced());
  EXPECT_EQ(of.loaded(0), 512.0 * 4096);
}

TEST_P(GroupChoices, ASumOfAllIsOfAllProcessors) {
  const Tensor of_all = sum(input({1 << 24}), {0});
  const ChangedGraph cut = split_reductions({{of_all.node()}}, context_->backend().machine());
  const std::vector<Chosen> all = chosen(cut.roots);
  ASSERT_EQ(all.size(), 2u);
  SCOPED_TRACE(all.front().options());
  EXPECT_GE(all.front().groups() * all.front().threads(), context_->backend().machine().cores);
  EXPECT_EQ(all.front().loaded(0), 1 << 24);
  EXPECT_TRUE(all.front().is_coalesced());
}

TEST_P(GroupChoices, AProductIsTiled) {
  const int64_t n = 1024;
  const Chosen of = only(matmul(input({n, n}), input({n, n})));
  SCOPED_TRACE(of.options());
  EXPECT_TRUE(of.fits());
  const double all = static_cast<double>(n) * n * n;
  if (is_h100()) {
    EXPECT_GT(shared_bytes(of.kernel()), 0);
    EXPECT_LE(of.loaded(0) + of.loaded(1), all / 16);
    EXPECT_GE(of.groups(), context_->backend().machine().cores / 2);
  }
  EXPECT_EQ(of.access_bytes_of(2), 16);
}

TEST_P(GroupChoices, FewRowsReadTheMatrixOnce) {
  for (const bool is_turned : {false, true}) {
    const Tensor matrix = is_turned ? permute(input({4096, 2048}), {1, 0}) : input({2048, 4096});
    const std::vector<Chosen> all = chosen(matmul(input({4, 2048}), matrix));
    const Chosen& of = all.front();
    SCOPED_TRACE(of.options());
    EXPECT_TRUE(of.fits());
    if (!is_h100()) continue;
    EXPECT_EQ(of.loaded(1), 2048.0 * 4096);
    EXPECT_TRUE(of.is_coalesced());
    // Lanes along the columns would leave too few groups.
    if (is_turned) {
      EXPECT_EQ(of.access_bytes_of(1), 16);
    }
  }
}

// What is chosen is text that makes the same kernel.
TEST_P(GroupChoices, AreReplayedByTheirText) {
  for (const Tensor& t : {softmax(input({100, 300}), 1), matmul(input({70, 50}), input({50, 90})),
                          relu(permute(input({33, 65}), {1, 0})), sum(input({40, 50, 60}), {1})})
    for (const Chosen& of : chosen(t)) {
      EXPECT_EQ(to_text(parse_options(of.options())), of.options());
    }
}

INSTANTIATE_TEST_SUITE_P(Machines, GroupChoices, ::testing::Values("h100", "pocl"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tiny
