// The loops that are chosen for named shapes with constant operands, 16 lanes and 32
// registers: kernels are named after them.
#include "codegen/choose/choose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "codegen/pipeline.h"
#include "engine/backend.h"
#include "engine/compile.h"
#include "schedule/schedule.h"
#include "shape/shape.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/program.h"
#include "tensor/reduce.h"
#include "tensor/scan.h"
#include "tensor/window.h"
#include "tests/support/constants.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

// Whether a list has all of these options, in any order and among others.
bool has_options(const std::string& list, std::initializer_list<const char*> wanted) {
  const std::string all = "; " + list + ";";
  return std::ranges::all_of(wanted, [&](const char* option) {
    return all.find(std::string("; ") + option + ";") != std::string::npos;
  });
}

class ChoiceTest : public ::testing::Test {
 protected:
  void SetUp() override { use("auto"); }
  // A context with this setting of convolutions in tiles.
  void use(const char* wino) { set_up("", wino); }
  void compile_for_avx2() { set_up("avx2", "auto"); }
  void set_up(const char* isa, const char* wino) {
    Flags flags = testing::flags_for("null", isa);
    flags.cache = 0;
    flags.threads = 1;
    flags.wino = wino;
    context_ = make_ref<Context>(flags);
  }
  Tensor constant(const Ints& shape) {
    return testing::floats(
        context_, testing::Floats(static_cast<size_t>(product(to_shape(shape)).value()), 0.5F),
        shape);
  }
  Tensor pointwise(const Tensor& x, int64_t channels, int64_t stride = 1) {
    Window options;
    options.strides = {stride, stride};
    return relu(conv(x, constant({channels, x.shape()[1].value(), 1, 1}), Tensor(), options));
  }
  Tensor depthwise(const Tensor& x, int64_t stride = 1) {
    const int64_t channels = x.shape()[1].value();
    const Window options{{stride, stride}, {}, {1, 1}, {1, 1}};
    return conv(x, constant({channels, 1, 3, 3}), Tensor(), options.with_groups(channels));
  }
  static Tensor stored(const Tensor& t) { return permute(t, {0, 2, 3, 1}); }
  // Kernel `number` of the program that makes `output` of `input`.
  KernelInfo kernel(const Tensor& input, const Tensor& output, size_t number) {
    const Ref<const TensorProgram> program =
        testing::compile_with_constants(context_, input, output);
    return program->compiled.program->tape.at(number).info;
  }
  std::string loops(const Tensor& input, const Tensor& output, size_t number) {
    return kernel(input, output, number).name;
  }
  std::string options(const Tensor& input, const Tensor& output, size_t number) {
    return kernel(input, output, number).options;
  }
  // The list of the first kernel that makes a value of inputs alone.
  std::string list_of_inputs(const Tensor& value) {
    const UOp stored = context_->graph().make(Op::Contiguous, {value.node()});
    const Schedule schedule = make_schedule({&stored, 1}, avx512_machine());
    const Kernel kernel = prepare_kernel(schedule.kernels.front().kernel, avx512_machine());
    return to_text(choose_options(kernel, avx512_machine()));
  }

  Ref<Context> context_;
};

// What is read along rows and stored along columns turns by squares, bytes in pieces of 16; what is
// stored is walked as it lies.
TEST_F(ChoiceTest, WhatIsStoredAcrossTurnsBySquares) {
  const auto list = [&](const Ints& shape, DType dtype, Machine target) {
    const Tensor x = make_placeholder(context_, dtype, to_shape(shape));
    const UOp stored = context_->graph().make(Op::Contiguous, {permute(x, {1, 0}).node()});
    const Schedule schedule = make_schedule({&stored, 1}, target);
    return to_text(choose_options(prepare_kernel(schedule.kernels.front().kernel, target), target));
  };
  EXPECT_EQ(list({512, 2048}, kFloat32, avx512_machine()),
            "TILE r1 16; TILE r0 16; VEC r3; UPCAST r2");
  EXPECT_EQ(list({512, 2048}, kFloat32, avx2_machine()), "TILE r1 8; TILE r0 8; VEC r3; UPCAST r2");
  EXPECT_EQ(list({512, 2048}, kUInt8, avx512_machine()),
            "TILE r1 16; TILE r0 64; VEC r3; UPCAST r2");
  EXPECT_EQ(list({512, 2048}, kUInt8, avx2_machine()), "TILE r1 16; TILE r0 32; VEC r3; UPCAST r2");
  EXPECT_EQ(list({512, 2048}, kFloat64, avx2_machine()).find("UPCAST r2"), std::string::npos);
}

// A batch of pictures that no cache holds is walked once, through all four panels for each tile.
TEST_F(ChoiceTest, RowsInMemoryAreWalkedOnce) {
  const auto has_panels_outside = [&](int64_t rows) {
    const Tensor x = make_placeholder(context_, kFloat32, {rows, 64});
    return loops(x, matmul(x, constant({64, 128})), 0).starts_with("r_4_");
  };
  const int64_t held = context_->backend().machine().l3_bytes / (64 * 4);
  EXPECT_TRUE(has_panels_outside(held / 2));
  EXPECT_FALSE(has_panels_outside(held * 2));
}

// A gradient of weights that is subtracted from them as it is summed: a step of the rows is a page
// from the last, so a tile of them is copied, and meets all columns before the next.
TEST_F(ChoiceTest, RowsWhoseStepsArePagesApartAreCopiedOnce) {
  const Machine target = avx512_machine();
  const auto list = [&](int64_t steps, int64_t rows) {
    const Tensor weights = make_placeholder(context_, kFloat32, {rows, 256});
    const Tensor out = make_placeholder(context_, kFloat32, {steps, rows});
    const Tensor in = make_placeholder(context_, kFloat32, {steps, 256});
    const UOp stored = sub(weights, matmul(permute(out, {1, 0}), in)).node();
    const Schedule schedule = make_schedule({&stored, 1}, target);
    return to_text(choose_options(prepare_kernel(schedule.kernels.front().kernel, target), target));
  };
  const int64_t far = 2 * target.l2_bytes / (512 * 4);  // rows of 512 steps
  for (const char* part : {"ORDER r0 r1 r2", "STAGE p2 all", "STAGE p1 r0"})
    EXPECT_NE(list(512, far).find(part), std::string::npos) << part << ": " << list(512, far);
  EXPECT_EQ(list(512, 512).find(" all "), std::string::npos) << "they are near: " << list(512, 512);
}

// Of rows a multiple of a page apart only so many steps are near each other in the second level of
// cache as its sets hold; a line more between them, and they lie in all sets.
TEST_F(ChoiceTest, RowsThatMeetInFewSetsAreSummedInShorterBlocks) {
  const Machine target = avx512_machine();
  const auto steps = [&](int64_t rows) {
    const Tensor out = make_placeholder(context_, kFloat32, {512, rows});
    const Tensor in = make_placeholder(context_, kFloat32, {512, 768});
    const UOp stored = matmul(permute(out, {1, 0}), in).node();
    const Schedule schedule = make_schedule({&stored, 1}, target);
    const std::vector<Option> list =
        choose_options(prepare_kernel(schedule.kernels.front().kernel, target), target);
    const auto cut = std::ranges::find_if(
        list, [](const Option& o) { return o.kind == OptionKind::Tile && o.range == 2; });
    return cut == list.end() ? 512 : cut->amount;
  };
  EXPECT_EQ(steps(3072), 64);
  EXPECT_EQ(steps(3072 + 16), 256);
}

// A residual that is larger than the cache is fetched for the tile that comes next.
TEST_F(ChoiceTest, AnEpilogueIsFetchedAhead) {
  const Machine target = avx512_machine();
  const auto list = [&](int64_t rows) {
    const Tensor x = make_placeholder(context_, kFloat32, {rows, 128});
    const Tensor weights = make_placeholder(context_, kFloat32, {128, 512});
    const Tensor residual = make_placeholder(context_, kFloat32, {rows, 512});
    const UOp stored = add(matmul(x, weights), residual).node();
    const Schedule schedule = make_schedule({&stored, 1}, target);
    return to_text(choose_options(prepare_kernel(schedule.kernels.front().kernel, target), target));
  };
  const int64_t far = target.l2_bytes / (512 * 4);
  EXPECT_NE(list(2 * far).find("PREFETCH p2 r0"), std::string::npos) << list(2 * far);
  EXPECT_EQ(list(far / 4).find("PREFETCH p2"), std::string::npos) << list(far / 4);
}

// An index is checked once for all that is read by it: lanes lie along the rest, as wide as they.
TEST_F(ChoiceTest, WhatIsReadByACheckedIndexHasLanes) {
  const Tensor rows = make_placeholder(context_, kInt64, {64});
  const Tensor x = make_placeholder(context_, kFloat32, {1000, 256});
  const UOp stored = context_->graph().make(Op::Contiguous, {gather(x, rows, 0).node()});
  const Machine target = avx512_machine();
  const Schedule schedule = make_schedule({&stored, 1}, target);
  const Kernel kernel = prepare_kernel(schedule.kernels.front().kernel, target);
  const std::string list = to_text(choose_options(kernel, target));
  EXPECT_TRUE(has_options(list, {"TILE r1 64", "TILE r2 16", "VEC r3"})) << list;
}

// Each lane reads a line of its own: it is walked to its end before other lines are read.
TEST_F(ChoiceTest, WhatLanesWalkTheirLinesAlongIsInnermost) {
  const Tensor x = make_placeholder(context_, kFloat64, {512, 2048});
  EXPECT_EQ(loops(x, neg(permute(x, {1, 0})), 0), "E_64_2048_8");
  const Tensor short_lines = testing::float_input(context_, {512, 4});
  EXPECT_EQ(loops(short_lines, neg(permute(short_lines, {1, 0})), 0), "E_4_8_4_16")
      << "no line is left after it was read";
}

// Panels of 32 columns outermost, tiles of 14 rows, all steps: the panel stays in the cache.
TEST_F(ChoiceTest, PanelsInPlaceAreWalkedInOnePass) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 256, 14, 14});
  const Tensor y = pointwise(pointwise(pointwise(x, 1024), 256), 64);
  EXPECT_EQ(loops(x, y, 1), "r_8_14_512_2_14_2_16");
}

// Panels of three vectors are multiplied as they lie, also where lanes are stored apart.
TEST_F(ChoiceTest, PanelsOfThreeVectorsAreNotCutWhereLanesAreStoredApart) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 64, 24, 32});
  const Window same{{1, 1}, {}, {0, 1}, {0, 1}};
  const Tensor y = conv(x, constant({48, 64, 1, 3}), Tensor(), same);
  EXPECT_EQ(loops(x, y, 0), "r_24_4_64_3_8_3_16") << options(x, y, 0);
}

TEST_F(ChoiceTest, FewRowsAreWalkedInOnePassOfEachPanel) {
  const Tensor x = make_placeholder(context_, kFloat32, {32, 768});
  EXPECT_EQ(loops(x, matmul(relu(matmul(x, constant({768, 3072}))), constant({3072, 768})), 0),
            "r_96_3_768_11_2_16");
}

// Rows of a caller lie as they do: those a page apart are copied for a block of steps at a time.
// What comes from beyond the caches is fetched a panel ahead, though no pass is made over one.
TEST_F(ChoiceTest, APanelThatFewRowsWalkOnceIsFetchedAhead) {
  const Tensor x = testing::float_input(context_, {7, 1024});
  const int64_t blocks = context_->backend().machine().l3_bytes / (1024 * 32 * 4);
  const auto list = [&](int64_t n) { return options(x, matmul(x, constant({1024, n})), 0); };
  EXPECT_TRUE(list(32 * (blocks / 3 + 2)).ends_with("; PREFETCH p1 r1"))
      << list(32 * (blocks / 3 + 2));
  EXPECT_EQ(list(32 * (blocks / 4)).find("PREFETCH"), std::string::npos);
}

// Of a batch of products the rows of the next one are fetched, where all of them are in no cache.
TEST_F(ChoiceTest, RowsOfTheNextProductAreFetchedAhead) {
  constexpr int64_t kSteps = 3200;
  const auto list = [&](int64_t batch) {
    const Ints shape{batch, kSteps, 32};
    const Tensor rows = permute(testing::float_input(context_, shape), {0, 2, 1});
    return list_of_inputs(matmul(rows, testing::float_input(context_, shape)));
  };
  const int64_t far = avx512_machine().l3_bytes / (kSteps * 32 * 4);
  EXPECT_TRUE(list(far).ends_with("; PREFETCH p1 r0")) << list(far);
  EXPECT_EQ(list(4).find("PREFETCH p1"), std::string::npos) << list(4);
}

TEST_F(ChoiceTest, RowsThatCollideAreCopiedInBlocks) {
  const Tensor x = make_placeholder(context_, kFloat32, {1024, 1024});
  EXPECT_EQ(loops(x, matmul(x, constant({1024, 1024})), 0), "r_2_4_79_16_128_2_13_2_16");
}

// A strided convolution reads elements apart, in lines that hold little of what is wanted: a tile
// of them is copied for all panels where the second level of cache holds these, and lies as it does
// for few.
TEST_F(ChoiceTest, RowsThatAreReadApartAreCopied) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 256, 56, 56});
  const auto copies = [&](int64_t channels, int64_t stride) {
    return options(x, pointwise(x, channels, stride), 0).find("STAGE p0") != std::string::npos;
  };
  EXPECT_TRUE(copies(512, 2));
  EXPECT_FALSE(copies(128, 2));
}

// With few tiles of rows each panel is walked in one pass: a copy would be read once, unless it is
// one of all rows.
TEST_F(ChoiceTest, RowsThatCollideLieAsTheyDoForOnePanel) {
  const Tensor x = make_placeholder(context_, kFloat32, {64, 4096});
  const std::string list = options(x, matmul(x, constant({4096, 256})), 0);
  EXPECT_EQ(list.find("STAGE p0"), std::string::npos) << list;
  EXPECT_NE(list.find("UNROLL"), std::string::npos) << list;
  const Tensor near = make_placeholder(context_, kFloat32, {64, 1024});
  const std::string all = options(near, matmul(near, constant({1024, 512})), 0);
  EXPECT_NE(all.find("STAGE p0 all r5 r0 r2 pad 16; TILE r7 16; VEC r9"), std::string::npos) << all;
  const Tensor many = make_placeholder(context_, kFloat32, {1024, 1024});
  const std::string blocks = options(many, matmul(many, constant({1024, 1024})), 0);
  EXPECT_NE(blocks.find("STAGE p0"), std::string::npos) << blocks;
}

// Meanwhile a part of the next rows is fetched, and the place that their sums are added to; with
// few rows both are in the cache.
TEST_F(ChoiceTest, BlocksOfLargeProductsFetchTheNextRowsAndTheirPlace) {
  const auto list = [&](int64_t rows) {
    const Tensor x = make_placeholder(context_, kFloat32, {rows, 1024});
    return options(x, matmul(x, constant({1024, 1024})), 0);
  };
  EXPECT_TRUE(list(1024).ends_with("; PREFETCH p0 r5; PREFETCH p2 r5"));
  EXPECT_EQ(list(128).find("PREFETCH p2"), std::string::npos);
  // Panels of 1024 steps lie 128 KB apart: their blocks would share the sets of the cache.
  EXPECT_NE(list(1024).find("STAGE p1"), std::string::npos);
}

// Columns are stored side by side: an operand that lies the other way is turned on the way to its
// panel, by squares.  Blocks of steps and of columns are alike, so that none needs guards.
TEST_F(ChoiceTest, PanelsOfProductsOfInputs) {
  const auto list = [&](const Tensor& product) {
    const std::string text = list_of_inputs(product);
    return text.substr(0, text.find("; VEC"));
  };
  const auto input = [&](int64_t rows, int64_t columns) {
    return testing::float_input(context_, {rows, columns});
  };
  for (const int64_t columns : {3072, 512})
    EXPECT_TRUE(
        list(matmul(input(128, 768), permute(input(columns, 768), {1, 0}))).find("STAGE p1") !=
        std::string::npos)
        << columns;
  EXPECT_EQ(list(matmul(input(384, 1000), input(1000, 768))),
            "TILE r2 250; TILE r1 384; TILE r4 48; TILE r5 16; TILE r0 9; "
            "ORDER r1 r2 r0 r4 r3 r7 r5 r6");
}

// Rows of a batch lie far apart: the steps that lie in one line of each are side by side, around
// them the window's.
TEST_F(ChoiceTest, RowsOfABatchAreWalkedAlongTheirLines) {
  const Tensor x = permute(testing::float_input(context_, {32, 16, 16, 256}), {0, 3, 1, 2});
  const Tensor weight = testing::float_input(context_, {256, 256, 3, 3});
  const std::string list = list_of_inputs(stored(conv(x, weight, Tensor(), {})));
  EXPECT_NE(list.find("TILE r0 11"), std::string::npos) << list;
  EXPECT_NE(list.find(" r5 r6 r4 "), std::string::npos) << list;
}

// A filter's gradient sums over a batch and pictures: a panel holds images, as many in each, or
// the last of them would have guards around its steps.
TEST_F(ChoiceTest, PanelsOfASumOverABatchAreOfOneSize) {
  const Tensor x = permute(testing::float_input(context_, {128, 10, 10, 256}), {3, 0, 1, 2});
  const Tensor dy = permute(testing::float_input(context_, {128, 8, 8, 256}), {3, 0, 1, 2});
  const std::string list = list_of_inputs(permute(conv(x, dy, Tensor(), {}), {2, 3, 0, 1}));
  EXPECT_TRUE(list.starts_with("TILE r4 4;")) << list;
}

// Every tap of the filter reads all pictures again: those of a block stay in the second level
// beside its panel.
TEST_F(ChoiceTest, PicturesThatEachTapReadsStayNear) {
  const auto list = [&](int64_t size) {
    const Tensor x = permute(testing::float_input(context_, {128, size, size, 64}), {3, 0, 1, 2});
    const Tensor dy =
        permute(testing::float_input(context_, {128, size - 2, size - 2, 64}), {3, 0, 1, 2});
    return list_of_inputs(permute(conv(x, dy, Tensor(), {}), {2, 3, 0, 1}));
  };
  EXPECT_TRUE(list(8).starts_with("TILE r4 32;")) << list(8);
  EXPECT_TRUE(list(34).starts_with("TILE r4 1;")) << list(34);
}

// What a gradient of weights sums over comes in blocks that stay near: a few tiles of rows read a
// block as it lies, more of them a copy.
TEST_F(ChoiceTest, BlocksThatAreReadAFewTimesAreNotCopied) {
  const auto list = [&](int64_t steps, int64_t rows) {
    const Tensor out = testing::float_input(context_, {steps, rows});
    const Tensor in = testing::float_input(context_, {steps, 240});
    return list_of_inputs(matmul(permute(in, {1, 0}), out));
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  constexpr int64_t kFar = 12544;
  for (const int64_t rows : {24, 40}) {
    EXPECT_TRUE(has(list(kFar, rows), "TILE r2 256; ")) << list(kFar, rows);
    EXPECT_FALSE(has(list(kFar, rows), "STAGE")) << list(kFar, rows);
  }
  EXPECT_TRUE(has(list(kFar, 96), "STAGE")) << list(kFar, 96);
  EXPECT_FALSE(has(list(200, 24), "TILE r2 ")) << list(200, 24);
}

// While a row is stored, the next is computed and the one after that read, if they all stay in the
// first level of cache.  What is in no cache is asked for sooner.
TEST_F(ChoiceTest, LoopsOfRowsOverlap) {
  const Machine target = avx512_machine();
  const auto list = [&](const Tensor& value) {
    const UOp stored = context_->graph().make(Op::Contiguous, {value.node()});
    const Schedule schedule = make_schedule({&stored, 1}, target);
    return to_text(choose_options(prepare_kernel(schedule.kernels.front().kernel, target), target));
  };
  const int64_t far = target.l3_bytes / 4096 + 1;
  for (const int64_t rows : {int64_t{64}, far}) {
    const Tensor x = testing::float_input(context_, {rows, 1024});
    for (const Tensor& value : {softmax(x, 1), layer_norm(x, Tensor(), Tensor(), 1, 1e-5)}) {
      EXPECT_NE(list(value).find("OVERLAP r0"), std::string::npos);
      EXPECT_EQ(list(value).find("PREFETCH p0 r0") != std::string::npos, rows == far);
    }
    EXPECT_EQ(list(softmax(x, 0)).find("OVERLAP"), std::string::npos);  // rows are lanes
  }
  for (const Ints& shape : {Ints{4, 1024}, Ints{64, 24}, Ints{64, target.l1_bytes / 4}}) {
    const Tensor x = testing::float_input(context_, shape);
    EXPECT_EQ(list(softmax(x, 1)).find("OVERLAP"), std::string::npos);
  }
}

// A long row is walked in the cache: meanwhile the next one comes, unless all are there anyway.
TEST_F(ChoiceTest, TheNextRowIsFetchedWhileOneIsWalked) {
  const auto list = [&](int64_t rows) {
    const Tensor x = testing::float_input(context_, {rows, 8192});
    const Tensor value = softmax(x, 1);
    const UOp stored = context_->graph().make(Op::Contiguous, {value.node()});
    const Schedule schedule = make_schedule({&stored, 1}, avx512_machine());
    return to_text(choose_options(prepare_kernel(schedule.kernels.front().kernel, avx512_machine()),
                                  avx512_machine()));
  };
  EXPECT_NE(list(512).find("PREFETCH p0 r0"), std::string::npos);
  EXPECT_EQ(list(4).find("PREFETCH"), std::string::npos);
}

// What is stored does not fit the last cache: it need not pass through it.
TEST_F(ChoiceTest, LargeResultsPassTheCaches) {
  const auto list = [&](const Tensor& value, int64_t bypass_bytes, Machine target) {
    target.bypass_bytes = bypass_bytes;
    const UOp stored = context_->graph().make(Op::Contiguous, {value.node()});
    const Schedule schedule = make_schedule({&stored, 1}, target);
    return to_text(choose_options(prepare_kernel(schedule.kernels.front().kernel, target), target));
  };
  const Tensor x = testing::float_input(context_, {4096, 1024});
  constexpr int64_t kBytes = int64_t{4096} * 1024 * 4;
  for (const Tensor& value : {relu(x), softmax(x, 1)})
    for (const Machine& target : {avx512_machine(), avx2_machine()}) {
      EXPECT_NE(list(value, kBytes - 1, target).find("BYPASS p1"), std::string::npos);
      EXPECT_EQ(list(value, kBytes, target).find("BYPASS"), std::string::npos);
      EXPECT_EQ(list(value, 0, target).find("BYPASS"), std::string::npos);
    }
  EXPECT_EQ(list(relu(x), 1, Machine(generic_target())).find("BYPASS"),
            std::string::npos);  // no vectors
}

// An operand that lies the other way is laid out again by squares of 16 times 16, which the
// renderer turns in registers.
TEST_F(ChoiceTest, OperandsAreTurnedBySquares) {
  const Tensor a = testing::float_input(context_, {256, 256});
  const Tensor b = testing::float_input(context_, {256, 256});
  const UOp product = matmul(a, permute(b, {1, 0})).node();
  const Schedule schedule = make_schedule({&product, 1}, avx512_machine());
  const std::string list = to_text(choose_options(
      prepare_kernel(schedule.kernels.front().kernel, avx512_machine()), avx512_machine()));
  EXPECT_NE(list.find("VEC r9; UPCAST r8"), std::string::npos) << list;
}

// A few taps leave most of a vector empty, so that lanes lie along the pictures of a stride too,
// and the taps stand side by side.
TEST_F(ChoiceTest, ShortWindowsHaveNoLanesAlongTheirTaps) {
  for (const int64_t size : {14, 28, 57}) {
    const Tensor x = make_placeholder(context_, kFloat32, {1, 192, size, size});
    for (const int64_t kernel : {2, 3}) {
      const Window window{
          .strides = {2, 2}, .before = {1, 1}, .after = {1, 1}, .kernel = {kernel, kernel}};
      const std::string list = list_of_inputs(max_pool(x, window));
      EXPECT_EQ(list.find("TILE r4"), std::string::npos) << list;
      EXPECT_TRUE(has_options(list, {"UNROLL r4"})) << list;
    }
  }
}

// Rows of both operands along which a sum has its lanes are multiplied with each other: a load for
// each is shared by a tile of the other's.
TEST_F(ChoiceTest, FoldedSumsShareTheLoadsOfBothOperands) {
  const Tensor a = make_placeholder(context_, kFloat32, {17, 1000});
  const Tensor b = make_placeholder(context_, kFloat32, {31, 1000});
  const std::string both = list_of_inputs(matmul(a, permute(b, {1, 0})));
  EXPECT_TRUE(has_options("; " + both, {"TILE r1 4", "TILE r0 4", "UPCAST r3", "UPCAST r4"}))
      << both;
  const Tensor row = make_placeholder(context_, kFloat32, {1, 1000});
  const std::string one = list_of_inputs(matmul(row, permute(b, {1, 0})));
  EXPECT_EQ(std::ranges::count(one, 'U'), 2) << one << ": of rows, and of vectors";
}

// A gate's activations take as long as its sum: lanes of its steps would leave them one by one.
TEST_F(ChoiceTest, ShortSumsOfMuchArithmeticHaveLanesAlongOutputs) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 16});
  const Tensor w = make_placeholder(context_, kFloat32, {16, 16});
  const Tensor sums = matmul(x, permute(w, {1, 0}));
  const std::string plain = list_of_inputs(sums);
  EXPECT_TRUE(has_options(plain, {"VEC r1"})) << plain << ": steps, which lie side by side";
  const std::string gated = list_of_inputs(tanh(sums) * sigmoid(sums));
  EXPECT_TRUE(has_options(gated, {"VEC r0"})) << gated;
}

// So do lanes of half a vector's outputs: a picture of 8 x 8, whose sums are quantised and gated.
TEST_F(ChoiceTest, SumsOfMuchArithmeticHaveLanesAlongHalfAVectorsOutputs) {
  const auto channels_last = [&](const Shape& shape) {
    return permute(make_placeholder(context_, kFloat32, shape), {0, 3, 1, 2});
  };
  const Tensor x = channels_last({1, 8, 8, 32});
  const Tensor w = channels_last({4, 3, 3, 32});
  const Window same{{1, 1}, {}, {1, 1}, {1, 1}};
  Tensor y = conv(x, w, Tensor(), same);
  for (int i = 0; i < 20; ++i)
    y = minimum(maximum(round(y * number(y, 0.37)), number(y, -128)), number(y, 127));
  const std::string list = list_of_inputs(y);
  EXPECT_TRUE(has_options(list, {"VEC r0"}) || has_options(list, {"VEC r1"})) << list;
}

// Channels last, what is stored has lanes that lie apart along the pixels, and much is read beside:
// the row's last loop has lanes all the same.
TEST_F(ChoiceTest, RowsAreStoredByLanesThatLieApart) {
  const Tensor x = make_placeholder(context_, kFloat32, {32, 1024});
  const Tensor gain = make_placeholder(context_, kFloat32, {32, 1024});
  const auto normal = [](const Tensor& t) {
    const Tensor apart = t - mean(t, {1}, true);
    return apart / sqrt(mean(apart * apart, {1}, true));
  };
  Tensor last = normal(normal(x) * gain);
  for (int i = 0; i < 16; ++i) last = last * make_placeholder(context_, kFloat32, {32, 1024});
  const std::string list = list_of_inputs(permute(last, {1, 0}));
  EXPECT_TRUE(has_options(list, {"TILE r0 32", "VEC r15", "OVERLAP r1"})) << list;
}

// A matrix whose rows are pages apart is read in runs as long as registers allow, from memory eight
// rows side by side to their end; one row after the other comes faster in runs of 12 lines.
TEST_F(ChoiceTest, AVectorTimesALargeMatrixReadsLongRuns) {
  const Tensor cached = make_placeholder(context_, kFloat32, {384, 3072});
  EXPECT_EQ(loops(cached, matmul(constant({1, 384}), cached), 0), "r_8_24_16_384");
  const Tensor large = make_placeholder(context_, kFloat32, {3072, 3072});
  EXPECT_EQ(loops(large, matmul(constant({1, 3072}), large), 0), "r_384_48_4_16_8");
  const Tensor odd = make_placeholder(context_, kFloat32, {3073, 3072});
  EXPECT_EQ(loops(odd, matmul(constant({1, 3073}), odd), 0), "r_16_12_16_3073");
  const Tensor small = make_placeholder(context_, kFloat32, {128, 1024});
  EXPECT_EQ(loops(small, matmul(constant({1, 128}), small), 0), "r_3_22_16_128");
}

// So are few rows multiplied with it where a vector is less than a line, in tiles of all rows.
TEST_F(ChoiceTest, FewRowsTimesALargeMatrixWalkItsRowsToTheirEnd) {
  compile_for_avx2();
  const Tensor x = make_placeholder(context_, kFloat32, {768, 3072});
  EXPECT_EQ(options(x, matmul(constant({7, 768}), x), 0),
            "TILE r2 8; UNROLL r3; ORDER r2 r1 r0 r3; UPCAST r0; TILE r1 16; TILE r4 8; UPCAST r4; "
            "VEC r5");
  EXPECT_EQ(options(x, matmul(constant({40, 768}), x), 0).find("ORDER r2 r1"), std::string::npos);
}

// What a row shares with one vector alone is a load for each product: tiles are of two vectors,
// also where eleven rows of one would fill the registers as well.
TEST_F(ChoiceTest, RowsShareTheirLoadsAmongVectors) {
  compile_for_avx2();
  const Tensor x = make_placeholder(context_, kFloat32, {50, 768});
  const std::string list = options(x, matmul(x, constant({768, 768})), 0);
  EXPECT_NE(list.find("TILE r0 6"), std::string::npos) << list;
}

// Eight rows are four and four, which have sums enough to wait for none: not six and two.
TEST_F(ChoiceTest, FewRowsAreCutIntoTilesOfNearlyEqualSize) {
  compile_for_avx2();
  const Tensor x = make_placeholder(context_, kFloat32, {8, 768});
  EXPECT_NE(options(x, matmul(x, constant({768, 3072})), 0).find("TILE r0 4"), std::string::npos);
}

// A small picture is walked for one vector of channels after the other, unless its rows share so
// few sets of the first level that it would not stay there.
TEST_F(ChoiceTest, SmallPicturesAreWalkedByChannels) {
  const auto list = [&](int64_t size, int64_t channels) {
    const Tensor x = make_placeholder(context_, kFloat32, {1, size, size, channels});
    return options(x, stored(depthwise(permute(x, {0, 3, 1, 2}))), 0);
  };
  EXPECT_EQ(list(7, 960),
            "UPCAST r0; UNROLL r3; UNROLL r4; TILE r2 16; VEC r5; ORDER r2 r0 r1 r5 r3 r4");
  EXPECT_EQ(list(7, 512).find("ORDER"), std::string::npos);
  EXPECT_EQ(list(28, 960).find("ORDER"), std::string::npos);
}

// A panel's successor is fetched while 14 tiles of rows are multiplied with it, as 98 would be too
// many to gain from it.
TEST_F(ChoiceTest, TheNextPanelIsFetchedWhereFewPassesAreMade) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 256, 14, 14});
  EXPECT_TRUE(options(x, pointwise(pointwise(x, 1024), 64), 0).ends_with("; PREFETCH p1 r0"));
  const Tensor wide = make_placeholder(context_, kFloat32, {1, 64, 56, 56});
  const Tensor y = pointwise(pointwise(wide, 256), 64);
  EXPECT_EQ(options(wide, y, 1).find("PREFETCH"), std::string::npos);
}

// Three panels are an uneven share for two cores; tiles of rows are many.  Panels that are far
// larger than what would be gained are not read by both.
TEST_F(ChoiceTest, CoresShareTilesOfRowsWherePanelsAreFew) {
  Flags flags = testing::flags_for("null");
  flags.cache = 0;
  for (const int32_t threads : {1, 2}) {
    flags.threads = threads;
    context_ = make_ref<Context>(flags);
    const auto product = [&](int64_t size, int64_t in, int64_t out) {
      const Tensor x = make_placeholder(context_, kFloat32, to_shape({1, size, size, in}));
      return loops(x, stored(pointwise(permute(x, {0, 3, 1, 2}), out)), 0);
    };
    EXPECT_EQ(product(27, 192, 96), threads == 1 ? "r_3_61_96_2_12_2_16" : "r_61_3_96_2_12_2_16");
    EXPECT_EQ(product(27, 256, 64), threads == 1 ? "r_2_61_128_2_12_2_16" : "r_61_2_128_2_12_2_16");
    EXPECT_EQ(product(14, 576, 224), "r_7_14_288_2_14_2_16");
  }
}

// Two cores share the rows of a batch where all read and stored beside the panels is more than a
// copy of these for each of four parts (of rows, or of what else only they step with); else
// columns. Of a gradient for weights each copies all panels, within its rows.
TEST_F(ChoiceTest, CoresShareRowsThatAreMoreThanCopiesOfPanels) {
  Machine machine = avx512_machine();
  const auto list = [&](const Tensor& value, int32_t cores) {
    machine.cores = cores;
    const UOp stored = context_->graph().make(Op::Contiguous, {value.node()});
    const Schedule schedule = make_schedule({&stored, 1}, machine);
    return to_text(
        choose_options(prepare_kernel(schedule.kernels.front().kernel, machine), machine));
  };
  const auto product = [&](int64_t rows, int64_t steps, int64_t columns) {
    return matmul(
        make_placeholder(context_, kFloat32, to_shape({rows, steps})),
        permute(make_placeholder(context_, kFloat32, to_shape({columns, steps})), {1, 0}));
  };
  const auto is_shared_by_rows = [&](const std::string& text) {
    return text.find("TILE r0 ") < text.find("ORDER r0 ") && text.ends_with("; THREAD r0");
  };
  EXPECT_PRED1(is_shared_by_rows, list(product(1024, 512, 128), 2));
  EXPECT_NE(list(product(1024, 512, 128), 2).find("TILE r0 260;"), std::string::npos);
  EXPECT_NE(list(product(512, 768, 3072), 2).find("; THREAD r1"), std::string::npos)
      << list(product(512, 768, 3072), 2);
  EXPECT_EQ(list(product(1024, 512, 128), 1).find("TILE r0 260;"), std::string::npos);
  const Tensor of_weights =
      matmul(permute(make_placeholder(context_, kFloat32, to_shape({1024, 512})), {1, 0}),
             make_placeholder(context_, kFloat32, to_shape({1024, 128})));
  const std::string text = list(of_weights, 2);
  EXPECT_EQ(text.find(" all "), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("; THREAD r0")) << text;
  // 37 tiles of 14 are 19 and 18; as four parts they would be 20 and 17.
  EXPECT_NE(text.find("TILE r0 266;"), std::string::npos) << text;
}

// The means of 256 channels, side by side in memory, are computed once, with lanes along them; the
// products of the classifier have lanes along what they sum.
TEST_F(ChoiceTest, AStagedMeanHasLanesAlongChannels) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 64, 7, 7});
  const Tensor means = reshape(mean(pointwise(x, 256), {2, 3}), to_shape({1, 256}));
  const Tensor weights = permute(constant({1000, 256}), {1, 0});
  const std::string list = options(x, matmul(means, weights), 1);
  EXPECT_TRUE(list.starts_with("STAGE v"));
  EXPECT_NE(list.find("VEC r6; TILE r3 64; TILE r7 16; UPCAST r7; VEC r8"), std::string::npos)
      << list;
}

// A row that is computed is computed once, before it is multiplied with any panel.
TEST_F(ChoiceTest, ComputedRowsAreMultipliedWithAllPanelsBeforeTheNext) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 28, 28, 256});
  const Tensor normal = mul(permute(x, {0, 3, 1, 2}), constant({256, 1, 1}));
  const Tensor y = permute(pointwise(relu(normal), 128), {0, 2, 3, 1});
  EXPECT_EQ(loops(x, y, 0), "r_56_4_128_2_14_2_16");
}

// Lanes along channels that are stored apart: tiles are of places that are stored side by side, not
// of the 83 rows that would fill tiles of 14 better, so that both turn by squares.
TEST_F(ChoiceTest, TilesAreOfPlacesThatAreStoredSideBySide) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 83, 92, 12});
  const Window same{{1, 1}, {}, {1, 1}, {1, 1}};
  const Tensor y = conv(permute(x, {0, 3, 1, 2}), constant({32, 12, 3, 3}), constant({32}), same);
  EXPECT_NE(options(x, y, 0).find("TILE r2 12; ORDER"), std::string::npos) << options(x, y, 0);
}

// The steps of a window along which a tile's rows lie are side by side: rows share what they load,
// of which registers hold as much as there are, and what padding leaves out is known.
TEST_F(ChoiceTest, RowsAlongAWindowHaveItsStepsSideBySide) {
  use("0");
  const auto list = [&](int64_t height, int64_t width, int64_t size, int64_t channels) {
    const Tensor x = make_placeholder(context_, kFloat32, {1, 64, height, width});
    Window window;
    window.before = window.after = {size / 2, size / 2};
    return options(x, conv(x, constant({channels, 64, size, size}), Tensor(), window), 0);
  };
  // Twelve rows of a width of 36, of one vector of channels, load 16 elements a turn.
  EXPECT_NE(list(55, 36, 5, 16).find("TILE r2 12;"), std::string::npos) << list(55, 36, 5, 16);
  EXPECT_NE(list(55, 36, 5, 16).find("UNROLL r5"), std::string::npos) << list(55, 36, 5, 16);
  // Three steps of two vectors gain nothing over tiles of more rows.
  EXPECT_EQ(list(56, 50, 3, 64).find("UNROLL r5"), std::string::npos) << list(56, 50, 3, 64);
}

// Rows of which most reach beyond the border ask at each load: others are taken.
TEST_F(ChoiceTest, RowsLieWhereFewReachBeyondTheBorder) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 64, 12, 31});
  Window window;
  window.before = window.after = {5, 5};
  const std::string list = options(x, conv(x, constant({80, 64, 11, 11}), Tensor(), window), 0);
  EXPECT_NE(list.find("TILE r2 "), std::string::npos) << list;
}

// Where lanes run along places instead, what is computed for them is computed once for all
// channels.
TEST_F(ChoiceTest, ComputedLanesAreStagedAsTheyAreMultiplied) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 64, 56, 12});
  const Tensor y = conv(mul(x, sigmoid(x)), constant({256, 64, 1, 1}), constant({256}), Window());
  const std::string list = options(x, y, 0);
  EXPECT_NE(list.find("STAGE v"), std::string::npos) << list;
  EXPECT_EQ(list.find("STAGE p"), std::string::npos) << list;
}

// Four rows of outputs read six rows of inputs; the nine steps are side by side.
TEST_F(ChoiceTest, RowsOfAWindowShareWhatTheyLoad) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 56, 56, 128});
  const Tensor y = stored(depthwise(permute(x, {0, 3, 1, 2})));
  const std::string list = options(x, y, 0);
  EXPECT_TRUE(has_options(list, {"TILE r0 5", "UPCAST r5", "UNROLL r3", "UNROLL r4"})) << list;
}

// The steps of a short window are side by side: what its padding leaves out is known then.
TEST_F(ChoiceTest, AShortWindowHasNoLoop) {
  const Tensor x = make_placeholder(context_, kFloat32, {4096, 16});
  const Tensor sums =
      reduce_as_is(windows(pad(x, {0, 15}, {0, 0}), {16}, {1}, {1}, {16}), Op::Add, {-1}, false);
  const std::string list = options(x, sums, 0);
  EXPECT_TRUE(has_options(list, {"VEC r1", "UNROLL r2"})) << list;
}

// A value of many rows that is kept for a tile of them has the rows' lanes side by side.
TEST_F(ChoiceTest, KeptValuesHaveLanesSideBySide) {
  const Tensor x = make_placeholder(context_, kFloat32, {128, 1000});
  const std::string list = options(x, softmax(x, 0), 0);
  EXPECT_TRUE(has_options(list, {"UPCAST r4", "VEC r5"})) << list;
  EXPECT_NE(list.find("STAGE v"), std::string::npos) << list;
  EXPECT_TRUE(list.ends_with(" r4 r5")) << list;
}

// Outputs of some channels share what lanes load, which often begins inside a line; one channel's
// share it along the window, and so do many's where a tile is as high as the image.
TEST_F(ChoiceTest, ChannelsShareAWindowsLoadsWhereThatIsLess) {
  const auto list = [&](const Ints& shape, int64_t channels) {
    const Tensor x = make_placeholder(context_, kFloat32, to_shape(shape));
    const Tensor weights = constant({channels, shape[1], 3, 3});
    return options(x, conv(x, weights, Tensor(), Window()), 0);
  };
  EXPECT_EQ(list({16, 3, 64, 64}, 16),
            "TILE r1 4; UPCAST r7; TILE r3 64; TILE r8 16; UPCAST r8; VEC r9");
  EXPECT_TRUE(list({16, 3, 64, 64}, 1).starts_with("TILE r1 11; UPCAST"))
      << list({16, 3, 64, 64}, 1);
}

// Whatever the vectors and the tiles of rows that they leave, a list fits its kernel.
TEST_F(ChoiceTest, ListsFitForAllVectors) {
  for (const Machine& target : {avx2_machine(), avx512_machine()})
    for (const int64_t size : {5, 7, 14, 15, 23})
      for (const int64_t channels : {7, 64, 500, 1024}) {
        const Tensor x = testing::float_input(context_, {1, channels, size, size});
        const Tensor y = pointwise(x, 2 * channels, 2);
        const UOp stored = context_->graph().make(Op::Contiguous, {y.node()});
        const Schedule schedule = make_schedule({&stored, 1}, target);
        for (const ScheduledKernel& k : schedule.kernels)
          EXPECT_NO_THROW(choose_options(prepare_kernel(k.kernel, target), target))
              << target.vector_bytes << " " << size << " " << channels;
      }
}

// Columns that the first level of cache does not hold come from the second for every tile of rows:
// the more rows in one, the fewer loads.
TEST_F(ChoiceTest, ColumnsOfManyStepsAreReadForMoreRows) {
  const auto list = [&](int64_t steps) {
    return list_of_inputs(matmul(testing::float_input(context_, {51, steps}),
                                 testing::float_input(context_, {steps, 52})));
  };
  EXPECT_TRUE(list(100).starts_with("TILE r0 4; UPCAST r3; TILE r1 64;")) << list(100);
  EXPECT_FALSE(list(860).starts_with("TILE r0 4;")) << list(860);
}

// A loop over the taps of a wide, dilated window would ask for each row of a short image whether
// there is anything: side by side they know.
TEST_F(ChoiceTest, TapsBeyondTheBorderOfWholeRowsAreKnown) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 112, 20});
  Window window{.dilations = {4}, .before = {16}, .after = {16}};
  const std::string list = options(x, conv(x, constant({68, 112, 9}), Tensor(), window), 0);
  EXPECT_TRUE(has_options(list, {"UPCAST r1", "UNROLL r3"})) << list;
}

// A loop over the taps of lanes that reach beyond the border would ask for a mask at each, also
// where vectors side by side have some of what they read in common.
TEST_F(ChoiceTest, TapsThatDecideWhichLanesAreReadAreSideBySide) {
  const auto list = [&](const Ints& shape, const Ints& weights, const Window& window) {
    const Tensor x = make_placeholder(context_, kFloat32, to_shape(shape));
    return options(x, stored(conv(x, constant(weights), Tensor(), window)), 0);
  };
  const Window strided{.strides = {2, 2}, .before = {1, 1}, .after = {1, 1}};
  const std::string of_tiles = list({1, 24, 26, 60}, {24, 24, 3, 3}, strided);
  EXPECT_TRUE(has_options(of_tiles, {"TILE r2 12", "TILE r1 32", "UNROLL r5"})) << of_tiles;
  const Window dilated{.dilations = {2, 2}, .before = {8, 8}, .after = {8, 8}};
  const std::string whole = list({1, 200, 18, 17}, {6, 200, 9, 9}, dilated);
  EXPECT_TRUE(has_options(whole, {"TILE r1 32", "UNROLL r5"})) << whole;
}

// Sums of columns are as many side by side as registers hold: their rows are read in long runs.
TEST_F(ChoiceTest, SumsOfColumnsFillTheRegisters) {
  EXPECT_EQ(list_of_inputs(sum(make_placeholder(context_, kFloat32, {169, 320}), {0})),
            "TILE r0 320; TILE r2 16; UPCAST r2; VEC r3");
  EXPECT_EQ(list_of_inputs(sum(make_placeholder(context_, kFloat32, {169, 1000}), {0})),
            "TILE r0 336; TILE r2 16; UPCAST r2; VEC r3");
}

// Short rows of several reductions are computed side by side, long ones one after the other.
TEST_F(ChoiceTest, ShortRowsAreSideBySide) {
  const auto list = [&](int64_t size) {
    const Tensor x = make_placeholder(context_, kFloat32, {196, size});
    const Tensor centred = sub(x, mean(x, {1}, true));
    return list_of_inputs(mul(centred, rsqrt(mean(mul(centred, centred), {1}, true))));
  };
  for (const int64_t size : {48, 96})
    EXPECT_TRUE(has_options(list(size), {"TILE r0 4", "UPCAST r10"})) << list(size);
  EXPECT_EQ(list(320).find("TILE r0"), std::string::npos) << list(320);
}

// Sums of all before along an outer axis stay in registers while its steps are walked for as many
// vectors as half of these hold.
TEST_F(ChoiceTest, RunningSumsOfAnOuterAxisStayInRegisters) {
  const auto list = [&](const Ints& shape, int64_t axis) {
    return list_of_inputs(cumsum(make_placeholder(context_, kFloat32, to_shape(shape)), axis));
  };
  EXPECT_EQ(list({9, 13064}, 0), "TILE r1 256; TILE r2 16; UPCAST r2; VEC r3; ORDER r1 r0 r2 r3");
  EXPECT_EQ(list({36, 71, 92}, 1), "TILE r2 96; TILE r3 16; UPCAST r3; VEC r4");
}

// Where so few taps are at the border that their turns are written apart, a loop knows as well.
TEST_F(ChoiceTest, TapsWhoseBordersAreWrittenApartAreALoop) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 6, 69, 86});
  const Window window{{3, 3}, {2, 2}, {0, 1}, {0, 0}};
  const std::string list = options(x, conv(x, constant({80, 6, 7, 7}), Tensor(), window), 0);
  EXPECT_EQ(list.find("UNROLL"), std::string::npos) << list;
}

// Rows are chosen for the tile that they get: two vectors where lanes are stored apart, which five
// rows leave waiting for their sums.
TEST_F(ChoiceTest, RowsFillATileWhoseLanesAreStoredApart) {
  const Tensor x = make_placeholder(context_, kFloat32, {2, 192, 5, 33});
  const Window options{{1, 1}, {}, {0, 3}, {0, 3}};
  EXPECT_EQ(loops(x, conv(x, constant({100, 192, 1, 7}), Tensor(), options), 0),
            "r_4_2_5_4_192_7_9_2_16");
}

// An image that the second level of cache does not hold beside all else is read once, for all
// channels.
TEST_F(ChoiceTest, ColumnsFromBeyondTheSecondLevelAreReadOnce) {
  const auto list = [&](int64_t size) {
    const Tensor x = make_placeholder(context_, kFloat32, {1, 146, size});
    const Window window{.before = {1}, .after = {1}};
    return options(x, conv(x, constant({119, 146, 3}), Tensor(), window), 0);
  };
  const int64_t held = context_->backend().machine().l2_bytes / (146 * 4);
  EXPECT_NE(list(2 * held).find("ORDER r1 r0"), std::string::npos) << list(2 * held);
  EXPECT_EQ(list(held / 4).find("ORDER r1 r0"), std::string::npos) << list(held / 4);
  // It is not alone there.
  const int64_t nearly = context_->backend().machine().l2_bytes / (319 * 4) - 66;
  const Tensor x = make_placeholder(context_, kFloat32, {1, 319, nearly});
  const std::string once = options(x, conv(x, constant({39, 319, 1}), Tensor(), {}), 0);
  EXPECT_NE(once.find("ORDER r1 r0"), std::string::npos) << once;
}

// Rows half a page off share sets with every second one only: more of them are walked at once.
TEST_F(ChoiceTest, RowsHalfAPageOffCollideHalfAsMuch) {
  const auto list = [&](int64_t channels) {
    const Tensor x = make_placeholder(context_, kFloat32, {1, 112, 112, channels});
    return options(x, stored(depthwise(permute(x, {0, 3, 1, 2}), 2)), 0);
  };
  EXPECT_TRUE(list(96).starts_with("TILE r0 5; UPCAST r5;")) << list(96);
  EXPECT_TRUE(list(64).starts_with("TILE r0 3; UPCAST r5;")) << list(64);
}

// The matrix that one normalised row is multiplied with lies along its columns: lanes too.
TEST_F(ChoiceTest, AMatrixAfterReductionsOfOneRowHasLanesAlongItsColumns) {
  const Tensor x = testing::float_input(context_, {1, 512});
  const Tensor y = matmul(layer_norm(x, Tensor(), Tensor(), 1, 1e-5), constant({512, 256}));
  EXPECT_EQ(loops(x, y, 0), "r_8_128_4_2_16_16_2_16_16_2_16");
}

// Two rows of fourteen outputs of a window for all channels, then each panel with both; four where
// they stay in the first level of cache.  Short rows are beside each other in registers, unless the
// last would be alone.
TEST_F(ChoiceTest, ADepthwiseConvolutionIsComputedInTilesOfTheProductThatReadsIt) {
  const Tensor x = make_placeholder(context_, kFloat32, {1, 56, 56, 128});
  const Tensor y = stored(pointwise(relu(depthwise(permute(x, {0, 3, 1, 2}))), 128));
  EXPECT_EQ(loops(x, y, 0), "r_28_4_4_2_128_14_2_16_3_3");
  // Seven columns of both rows share what they load.
  EXPECT_NE(options(x, y, 0).find("TILE r12 7; ORDER r12 r11 r10 r4 r5 r14 r13; VEC r13; "
                                  "UPCAST r14; UNROLL r4; UNROLL r5; UPCAST r10"),
            std::string::npos);
  const auto narrow = [&](int64_t size, int64_t channels, int64_t columns) {
    const Tensor in = make_placeholder(context_, kFloat32, {1, size, size, channels});
    const Tensor out = pointwise(relu(depthwise(permute(in, {0, 3, 1, 2}))), columns);
    return loops(in, stored(out), 0);
  };
  EXPECT_EQ(narrow(112, 32, 16), "r_28_4_4_32_28_16_3_3");
  EXPECT_EQ(narrow(6, 960, 160), "r_3_5_960_2_6_2_16_3_3");
  EXPECT_EQ(narrow(7, 960, 160), "r_7_5_960_7_2_16_3_3");
}

}  // namespace
}  // namespace tiny
