// Attention of one query row or few over many keys: one kernel that reads keys and values once,
// with the oracle's values, whatever their number, what is masked and who reads them.  Few rows
// times a matrix that is larger than the second level of cache.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <optional>
#include <random>

#include "codegen/choose/choose.h"
#include "codegen/pipeline.h"
#include "engine/compile.h"
#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/value.h"
#include "tests/reference/reference.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Sizes {
  int64_t groups = 1;  // of rows that read the same keys
  int64_t shared = 1;  // heads of a group
  int64_t rows = 1;
  int64_t keys = 1;
  int64_t width = 64;
  int64_t depth = 64;
};

enum class Mask : uint8_t { None, Causal, Hidden };

// What random floats there are to multiply; equal for equal seeds.
class Attention {
 public:
  Attention(Ref<Context> context, const Sizes& sizes, Mask mask)
      : context_(std::move(context)), sizes_(sizes), mask_(mask) {}

  Tensor make() {
    const Sizes& n = sizes_;
    const int64_t heads = n.groups * n.shared;
    const Tensor q = tensor({heads, n.rows, n.width});
    const Tensor k = shared(tensor({n.groups, n.keys, n.width}));
    Tensor scores = matmul(q, permute(k, {0, 2, 1}));
    scores = mul(scores, testing::floats(context_, {0.25F}));
    if (mask_ != Mask::None) scores = add(scores, mask());
    return matmul(softmax(scores, 2), shared(tensor({n.groups, n.keys, n.depth})));
  }

 private:
  Tensor tensor(const Ints& shape) {
    int64_t count = 1;
    for (int64_t n : shape) count *= n;
    testing::Floats data;
    for (int64_t i = 0; i < count; ++i)
      data.push_back(static_cast<float>(static_cast<int64_t>(random_() % 33) - 16) / 8);
    return testing::floats(context_, data, shape);
  }
  // What all heads of a group read.
  Tensor shared(const Tensor& t) const {
    const Ints shape = const_dims(shape_of(t.node()));
    const Shape whole = to_shape({shape[0], sizes_.shared, shape[1], shape[2]});
    const Tensor wide = expand(reshape(t, to_shape({shape[0], 1, shape[1], shape[2]})), whole);
    return reshape(wide, to_shape({shape[0] * sizes_.shared, shape[1], shape[2]}));
  }
  // The last rows see what comes before them; or some keys are hidden, and the first row's all.
  Tensor mask() {
    testing::Floats data;
    for (int64_t r = 0; r < sizes_.rows; ++r)
      for (int64_t k = 0; k < sizes_.keys; ++k) {
        const bool is_later = k > sizes_.keys - sizes_.rows + r;
        const bool is_hidden =
            mask_ == Mask::Causal ? is_later : (sizes_.rows > 1 && r == 0) || random_() % 3 == 0;
        data.push_back(is_hidden ? -kInf : 0);
      }
    return testing::floats(context_, data, {sizes_.rows, sizes_.keys});
  }

  Ref<Context> context_;
  Sizes sizes_;
  Mask mask_;
  std::mt19937_64 random_{7};
};

struct Machine {
  const char* device;
  const char* isa;
  int threads;
};
constexpr Machine kMachines[] = {
    {"interp", "", 1}, {"cpu", "", 1}, {"cpu", "avx2", 1}, {"cpu", "", 2}, {"cpu", "avx2", 2}};

// Of what `make` makes in a context, on all machines.
void expect_oracles_values(const std::function<Tensor(const Ref<Context>&)>& make) {
  std::optional<reference::Values> want;
  for (const Machine& machine : kMachines) {
    SCOPED_TRACE(cat(machine.device, " ", machine.isa, ", ", machine.threads, " threads"));
    Flags flags = testing::flags_for(machine.device, machine.isa);
    flags.spec = 1;
    flags.threads = machine.threads;
    const Tensor output = make(make_ref<Context>(flags));
    if (!want) want = reference::evaluate(output.node());
    ASSERT_EQ(reference::difference(*want, testing::floats_of(output).data()), "");
  }
}

void expect_oracles_values(const Sizes& sizes, Mask mask) {
  SCOPED_TRACE(
      cat(sizes.groups, "x", sizes.shared, " heads, ", sizes.rows, " rows, ", sizes.keys, " keys"));
  expect_oracles_values(
      [&](const Ref<Context>& context) { return Attention(context, sizes, mask).make(); });
}

TEST(FewRows, HaveTheOraclesValuesForAnyNumberOfKeys) {
  for (const int64_t keys : {1, 2, 15, 16, 17, 63, 64, 65, 1000})
    for (const int64_t rows : {1, 3}) {
      expect_oracles_values({2, 1, rows, keys, 64, 64}, Mask::None);
      expect_oracles_values({1, 1, rows, keys, 33, 20}, Mask::None);
    }
}

TEST(FewRows, HaveTheOraclesValuesOverManyKeys) {
  for (const int64_t keys : {4095, 4096, 4097})
    expect_oracles_values({2, 1, 1, keys, 64, 64}, Mask::None);
}

TEST(FewRows, HaveTheOraclesValuesWhereKeysAreHidden) {
  for (const Mask mask : {Mask::Causal, Mask::Hidden})
    for (const int64_t rows : {1, 2, 4, 7})
      for (const int64_t keys : {17, 64, 200})
        expect_oracles_values({2, 1, rows, keys, 64, 32}, mask);
}

TEST(FewRows, HaveTheOraclesValuesWhereHeadsShareKeys) {
  for (const int64_t shared : {2, 4, 8})
    for (const int64_t rows : {1, 2})
      expect_oracles_values({2, shared, rows, 65, 128, 128}, Mask::None);
}

TEST(FewRows, TimesALargeMatrixHaveTheOraclesValues) {
  for (const int64_t rows : {1, 2, 3, 5, 7, 8, 9})
    for (const int64_t columns : {2048, 2100}) {
      SCOPED_TRACE(cat(rows, " rows, ", columns, " columns"));
      expect_oracles_values([&](const Ref<Context>& context) {
        const auto values = [&](int64_t height, int64_t width) {
          testing::Floats data;
          for (int64_t i = 0; i < height * width; ++i)
            data.push_back(static_cast<float>(i * 7919 % 33 - 16) / 8);
          return testing::floats(context, data, {height, width});
        };
        return matmul(values(rows, 160), values(160, columns));
      });
    }
}

Schedule schedule_of(const Ref<Context>& context, const Sizes& sizes) {
  const Tensor output = Attention(context, sizes, Mask::None).make();
  const UOp node = output.graph().make(Op::Contiguous, {output.node()});
  return make_schedule({&node, 1}, avx512_machine());
}

TEST(FewRows, AreOneKernel) {
  const Ref<Context> context = testing::new_context("interp", "avx512");
  EXPECT_EQ(schedule_of(context, {12, 1, 1, 128, 64, 64}).kernels.size(), 1U);
  EXPECT_EQ(schedule_of(context, {12, 1, 1, 2048, 64, 64}).kernels.size(), 1U);
  EXPECT_EQ(schedule_of(context, {8, 4, 1, 1024, 128, 128}).kernels.size(), 1U);
  EXPECT_EQ(schedule_of(context, {4, 1, 6, 1024, 64, 64}).kernels.size(), 1U);
}

// Keys are multiplied as they lie: none is laid across for one row.
TEST(FewRows, AreFoldedAlongTheWidth) {
  const Ref<Context> context = testing::new_context("interp", "avx512");
  const Schedule schedule = schedule_of(context, {12, 1, 1, 1024, 64, 64});
  ASSERT_EQ(schedule.kernels.size(), 1U);
  const tiny::Machine target = avx512_machine();
  const LinearProgram program = generate(schedule.kernels.front().kernel, target, {}).program;
  int64_t folds = 0;
  for (const LinearOp& op : program.ops) {
    folds += op.op == Op::Fold ? 1 : 0;
    const bool is_vector = op.op == Op::Load && op.dtype.lanes > 1;
    EXPECT_TRUE(!is_vector || op.aux == 1) << "lanes lie apart";
  }
  EXPECT_GE(folds, 8);
}

}  // namespace
}  // namespace tiny
