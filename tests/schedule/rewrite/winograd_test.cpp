// Convolutions computed in tiles: which are, that their values are within the documented bound, and
// that all that follows stays in their last kernel.
#include "schedule/rewrite/winograd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>

#include "autograd/gradient.h"
#include "base/text.h"
#include "codegen/choose/choose.h"
#include "codegen/pipeline.h"
#include "cost/access_table.h"
#include "engine/compile.h"
#include "schedule/rewrite/pack_constants.h"
#include "schedule/rewrite/winograd_tiles.h"
#include "schedule/schedule.h"
#include "shape/shape.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/window.h"
#include "tests/reference/reference.h"
#include "tests/support/context.h"
#include "tests/support/environment.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

// What docs/semantics.md says is seen, as a part of max|x| * sum|w|.
constexpr double kErrorMax = 1e-6;

// The largest sum of the magnitudes of one output channel's filter.
double sum_of_filter(const Tensor& w) {
  const reference::Values values = reference::evaluate(w.node());
  const size_t each = values.size() / static_cast<size_t>(values.shape[0]);
  double most = 0;
  for (size_t i = 0; i < values.size(); i += each) {
    double sum = 0;
    for (size_t k = i; k < i + each; ++k) sum += std::abs(values.real[k]);
    most = std::max(most, sum);
  }
  return most;
}

// 0: none.
int64_t outputs_of(const ConvolutionSize& size, const Machine& target) {
  const auto tile = winograd_tile(size, target);
  return tile ? tile->outputs : 0;
}

class Winograd : public ::testing::Test {
 protected:
  Tensor values(const Ints& shape) {
    std::uniform_real_distribution<float> between(-1, 1);
    testing::Floats out;
    for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i) out.push_back(between(random_));
    held_.push_back(testing::floats(context_, out, shape));
    return held_.back();
  }
  // Computed data: no constant.
  Tensor data(const Ints& shape) { return neg(values(shape)); }

  static UOp rewritten(const Tensor& t, WinogradUse use = WinogradUse::WhereLegal) {
    std::vector<uint8_t> is_constant(t.graph().id_limit());
    for (const UOp& u : topological({&t.node(), 1})) is_constant[u.id()] = has_memory(u) ? 1 : 0;
    return rewrite_winograd({&t.node(), 1}, avx512_machine(), is_constant, use).roots.front();
  }
  static bool is_changed(const Tensor& t, WinogradUse use = WinogradUse::WhereLegal) {
    return !(rewritten(t, use) == t.node());
  }
  // The oracle's values of the sum and of what it became.
  static void expect_same_values(const Tensor& t, double scale) {
    const UOp out = rewritten(t);
    ASSERT_FALSE(out == t.node());
    const reference::Values want = reference::evaluate(t.node());
    const reference::Values got = reference::evaluate(out);
    ASSERT_EQ(got.shape, want.shape);
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got.real[i], want.real[i], kErrorMax * scale) << "element " << i;
  }

  // What a program whose captured memory is constant makes of `data`, and how many kernels it has.
  struct Computed {
    testing::Floats values;
    size_t kernels = 0;
  };
  Computed computed(const UOp& input, const Tensor& data, const Tensor& output) {
    const CompiledProgram made = compile_program(*context_, {&output.node(), 1}, {&input, 1});
    const auto run = make_ref<tiny::Run>(made.program);
    const testing::Floats given = testing::floats_of(data);
    run->bind_input(0, context_->from_host(given.data(), std::ssize(given) * 4));
    Computed out;
    out.values.resize(static_cast<size_t>(element_count(output)));
    const int64_t bytes = std::ssize(out.values) * 4;
    const Ref<Storage> memory = context_->allocate(bytes);
    run->bind_output(0, memory);
    run->execute();
    context_->device().copy_out(nullptr, out.values.data(), memory->memory(), 0, bytes);
    out.kernels = made.program->tape.size();
    return out;
  }

  static Window padded(int64_t before, int64_t after) {
    Window options;
    options.before = {before, before};
    options.after = {after, after};
    return options;
  }

  std::mt19937_64 random_{7};
  Ref<Context> context_ = testing::new_context("interp");
  std::vector<Tensor> held_;
};

// Of a run's sizes, too: the filter's transform is a constant all the same, so that no run makes
// it.
TEST_F(Winograd, PlacesMayBeCountedByARun) {
  const UOp h = context_->graph().variable("h", 2, 256),
            w = context_->graph().variable("w", 2, 256);
  const auto picture = [&](int64_t channels) {
    const Shape shape{Dim(2), Dim(channels), Dim(h), Dim(w)};
    return reshape(Tensor(context_, make_input(*context_, kFloat32, product(shape))), shape);
  };
  const Tensor filter = values({64, 64, 3, 3});
  const Tensor y = conv(picture(64), filter, Tensor(), padded(1, 1));
  const UOp out = rewritten(y, WinogradUse::WhereFaster);
  ASSERT_FALSE(out == y.node());
  EXPECT_EQ(shape_of(out), shape_of(y.node()));
  size_t filters = 0;
  for (const UOp& u : topological({&out, 1})) {
    if (u.op() != Op::Winograd || winograd_transform(u).part != WinogradPart::Filter) continue;
    ++filters;
    EXPECT_TRUE(std::ranges::none_of(topological({&u, 1}),
                                     [](const UOp& below) { return below.op() == Op::Variable; }));
  }
  EXPECT_EQ(filters, 1U);
  EXPECT_FALSE(is_changed(conv(picture(8), values({8, 8, 3, 3}), Tensor(), padded(1, 1)),
                          WinogradUse::WhereFaster));
}

TEST_F(Winograd, TilesHaveTheValuesOfTheSum) {
  for (const int64_t size : {3, 4, 6, 9}) {
    expect_same_values(conv(data({1, 3, size, 7}), values({5, 3, 3, 3}), Tensor(), padded(1, 1)),
                       27);
    expect_same_values(conv(data({2, 2, size + 2, 6}), values({4, 2, 3, 3}), Tensor(), {}), 18);
    expect_same_values(conv(data({1, 2, size, 5}), values({4, 2, 3, 3}), Tensor(), padded(0, 2)),
                       18);
    expect_same_values(conv(data({1, 2, size, 8}), values({4, 2, 3, 3}), Tensor(), padded(3, 1)),
                       18);
  }
}

TEST_F(Winograd, TilesOfFiveTapsHaveTheValuesOfTheSum) {
  for (const int64_t size : {6, 8, 13})
    for (const int64_t zeros : {0, 2, 3})
      expect_same_values(
          conv(data({2, 3, size, 9}), values({4, 3, 5, 5}), Tensor(), padded(zeros, zeros)), 75);
}

// Of the input, a convolution with the filter turned; of the filter, a sum over all tiles.
TEST_F(Winograd, GradientsHaveTheValuesOfTheSum) {
  for (const int64_t taps : {3, 5})
    for (const int64_t size : {6, 9})
      for (const int64_t zeros : {0, 1}) {
        const Tensor x = values({2, 3, size, size + 1}), w = values({4, 3, taps, taps});
        const Tensor y = conv(x, w, Tensor(), padded(zeros, zeros));
        const Tensor losses[] = {y}, upstreams[] = {values(const_dims(y.shape()))}, by[] = {x, w};
        for (const Tensor& slope : gradients(losses, upstreams, by)) {
          SCOPED_TRACE(cat(taps, " taps, ", size, ", zeros ", zeros));
          expect_same_values(slope, 4.0 * static_cast<double>(size * size));
        }
      }
}

TEST_F(Winograd, AFilterAndItsGradientShareTheTransformedInput) {
  const Tensor x = data({2, 16, 12, 12}), w = values({16, 16, 3, 3});
  const Tensor losses[] = {conv(x, w, Tensor(), padded(1, 1))}, by[] = {w};
  const Tensor slope = gradients(losses, {{values({2, 16, 12, 12})}}, by)[0];
  std::vector<uint8_t> is_constant(x.graph().id_limit());
  const UOp roots[] = {losses[0].node(), slope.node()};
  const ChangedGraph all =
      rewrite_winograd(roots, avx512_machine(), is_constant, WinogradUse::WhereLegal);
  std::map<WinogradPart, int> parts;
  for (const UOp& u : topological(all.roots))
    if (u.op() == Op::Winograd) ++parts[winograd_transform(u).part];
  EXPECT_EQ(parts, (std::map<WinogradPart, int>{{WinogradPart::Input, 1},
                                                {WinogradPart::Filter, 1},
                                                {WinogradPart::Output, 1},
                                                {WinogradPart::Slopes, 1},
                                                {WinogradPart::FilterSlopes, 1}}));
}

// Without padding what reached the output has fewer tiles than the input: both gradients are formed
// from it at the same points.
TEST_F(Winograd, BothGradientsShareWhatReachedTheTiles) {
  for (const int64_t taps : {3, 5}) {
    const Tensor x = data({2, 16, 14, 13}), w = values({16, 16, taps, taps});
    const Tensor y = conv(x, w, Tensor(), {});
    const Tensor losses[] = {y}, upstreams[] = {data(const_dims(y.shape()))}, by[] = {x, w};
    std::vector<UOp> roots;
    for (const Tensor& slope : gradients(losses, upstreams, by)) roots.push_back(slope.node());
    const std::vector<uint8_t> is_constant(x.graph().id_limit());
    const ChangedGraph all =
        rewrite_winograd(roots, avx512_machine(), is_constant, WinogradUse::WhereLegal);
    std::map<WinogradPart, int> parts;
    for (const UOp& u : topological(all.roots))
      if (u.op() == Op::Winograd) ++parts[winograd_transform(u).part];
    EXPECT_EQ(parts, (std::map<WinogradPart, int>{{WinogradPart::Input, 1},
                                                  {WinogradPart::Filter, 1},
                                                  {WinogradPart::Slopes, 1},
                                                  {WinogradPart::FilterSlopes, 1},
                                                  {WinogradPart::InputSlopes, 1}}))
        << taps << " taps";
    for (size_t k = 0; k < roots.size(); ++k) {
      const reference::Values want = reference::evaluate(roots[k]);
      const reference::Values got = reference::evaluate(all.roots[k]);
      ASSERT_EQ(got.shape, want.shape);
      for (size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got.real[i], want.real[i], kErrorMax * 2 * 14 * 13) << taps << " taps, " << i;
    }
  }
}

// The output's transform reads all planes of the products at once.
TEST_F(Winograd, PlanesThatAreReadAtOnceStartInSetsOfTheirOwn) {
  const Tensor y = data({2, 64, 16, 16}), w = values({64, 64, 3, 3});
  const Tensor sum = conv(y, w, Tensor(), padded(2, 2));
  const std::vector<uint8_t> is_constant(sum.graph().id_limit());
  UOp out =
      rewrite_winograd({&sum.node(), 1}, avx512_machine(), is_constant, WinogradUse::WhereFaster)
          .roots.front();
  ASSERT_TRUE(std::ranges::any_of(topological({&out, 1}), [](const UOp& u) {
    return u.op() == Op::Winograd && winograd_transform(u).part == WinogradPart::InputSlopes;
  }));
  out = out.graph().make(Op::Contiguous, {out});
  const Schedule schedule = make_schedule({&out, 1}, avx512_machine());
  int64_t found = 0;
  for (const ScheduledKernel& kernel : schedule.kernels)
    if (schedule.elements.contains(kernel.stores.front().destination.node())) {
      EXPECT_EQ(kernel.stores.front().view.strides[1].value(), 2 * 4 * 4 * 64 + 16);
      ++found;
    }
  EXPECT_EQ(found, 2) << "what reached the tiles, and its products";
}

// The transforms with tiles of each size, without the choice.
TEST_F(Winograd, BothSizesOfTilesMakeTheConvolution) {
  const Tensor w = values({5, 3, 3, 3});
  for (const int64_t m : {2, 4}) {
    const Tensor x = data({2, 3, 3 * m, 2 * m});
    const reference::Values want = reference::evaluate(conv(x, w, Tensor(), {}).node());
    const UOp v = winograd_input(make_permute(x.node(), {0, 2, 3, 1}), {m, 3});
    const UOp u = winograd_filter(make_permute(w.node(), {2, 3, 0, 1}), {m, 3});
    const UOp y = winograd_output(winograd_product(v, u), {m, 3});
    ASSERT_EQ(shape_of(y), (Shape{Dim(2), Dim(2 * m), Dim(m), Dim(5)}));
    const reference::Values got = reference::evaluate(make_permute(y, {0, 3, 1, 2}));
    for (int64_t i = 0; i < std::ssize(got.real); ++i) {
      const int64_t column = i % m;
      const int64_t row = i / m % (2 * m);
      const int64_t plane = i / (2 * m * m);
      const int64_t same = (plane * (3 * m - 2) + row) * (2 * m - 2) + column;
      ASSERT_NEAR(got.real[size_t(i)], want.real[size_t(same)], kErrorMax * 27) << "tiles of " << m;
    }
  }
}

// What kernels make of each part, beside the oracle's products with its matrix.
TEST_F(Winograd, TransformsHaveTheValuesOfTheirMatrices) {
  for (const WinogradTile& tile : kWinogradTiles) {
    const int64_t m = tile.outputs, r = tile.taps, p = tile.points();
    const std::vector<std::pair<WinogradPart, Ints>> parts{
        {WinogradPart::Input, {2, 4, m, 3, m, 5}},
        {WinogradPart::Filter, {r, r, 4, 5}},
        {WinogradPart::Output, {p, p, 2, 3, 2, 5}},
        {WinogradPart::Slopes, {2, 3, m, 2, m, 5}},
        {WinogradPart::FilterSlopes, {p, p, 4, 5}},
        {WinogradPart::InputSlopes, {p, p, 2, 3, 4, 5}}};
    for (const auto& [part, shape] : parts) {
      const auto of = [&](const Tensor& x) {
        return Tensor(context_, make_winograd(x.node(), part, tile));
      };
      const Tensor data = values(shape);
      const UOp input = make_input(*context_, kFloat32, element_count(data));
      const Tensor whole = of(reshape(Tensor(context_, input), to_shape(shape)));
      const reference::Values want = reference::evaluate(of(data).node());
      EXPECT_EQ(to_shape(want.shape), shape_of(whole.node()));
      const Computed got = computed(input, data, whole);
      for (size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got.values[i], want.real[i], want.error[i])
            << "tiles of " << m << " by " << r << " taps, " << i;
    }
  }
}

// Passes, joins and the choice of layouts see a node for a transform, not the sums of its tiles.
TEST_F(Winograd, ATransformIsOneNode) {
  const Tensor sum =
      conv(data({1, 64, 30, 30}), values({64, 64, 3, 3}), values({64}), padded(1, 1));
  const auto nodes = [](const UOp& root) { return std::ssize(topological({&root, 1})); };
  const UOp tiles = rewritten(sum);
  EXPECT_EQ(std::ranges::count(topological({&tiles, 1}), Op::Winograd, &UOp::op), 3);
  EXPECT_LE(nodes(tiles), nodes(sum.node()) + 64);
}

TEST_F(Winograd, WhatIsCutAndPaddedBeforeIsSeen) {
  const Tensor x = slice(data({1, 4, 12, 12}), {0, 1, 2, 3}, {1, 3, 11, 12}, {1, 1, 1, 1});
  expect_same_values(conv(x, values({4, 2, 3, 3}), Tensor(), padded(1, 1)), 18);
  expect_same_values(conv(x, values({4, 2, 3, 3}), Tensor(), padded(-1, 0)), 18);
  expect_same_values(conv(relu(x), values({4, 2, 3, 3}), Tensor(), padded(2, 0)), 18);
}

TEST_F(Winograd, WhatIsNotThatKindOfSumStays) {
  const Tensor x = data({1, 8, 9, 9});
  const Tensor w = values({8, 8, 3, 3});
  Window strided;
  strided.strides = {2, 2};
  Window dilated;
  dilated.dilations = {2, 2};
  Window one_way;
  one_way.strides = {1, 2};
  EXPECT_TRUE(is_changed(conv(x, w, Tensor(), {})));
  EXPECT_FALSE(is_changed(conv(x, w, Tensor(), strided)));
  EXPECT_FALSE(is_changed(conv(x, w, Tensor(), one_way)));
  EXPECT_FALSE(is_changed(conv(x, w, Tensor(), dilated)));
  EXPECT_FALSE(is_changed(conv(x, data({8, 8, 3, 3}), Tensor(), {}))) << "no constant";
  EXPECT_TRUE(is_changed(conv(x, values({8, 8, 5, 5}), Tensor(), {})));
  EXPECT_FALSE(is_changed(conv(data({1, 8, 16, 16}), values({8, 8, 7, 7}), Tensor(), {})));
  EXPECT_FALSE(is_changed(conv(x, values({8, 8, 3, 5}), Tensor(), {})));
  EXPECT_FALSE(is_changed(conv(x, values({8, 8, 1, 3}), Tensor(), {})));
  EXPECT_FALSE(is_changed(conv(x, values({8, 4, 3, 3}), Tensor(), Window().with_groups(2))))
      << "groups";
  EXPECT_FALSE(is_changed(conv(data({1, 8, 9}), values({8, 8, 3}), Tensor(), {}))) << "one axis";
  EXPECT_FALSE(is_changed(cast(conv(cast(x, kFloat64), cast(w, kFloat64), Tensor(), {}), kFloat32)))
      << "float64";
  EXPECT_FALSE(is_changed(conv(x, w, Tensor(), {}), WinogradUse::Never));
}

TEST_F(Winograd, ManyChannelsStayWithinTheBound) {
  for (const int64_t channels : {16, 64, 256}) {
    Flags flags = testing::flags_for("cpu");
    flags.wino = "1";
    held_.clear();
    context_ = make_ref<Context>(flags);
    const Tensor w = values({16, channels, 3, 3});
    const Tensor x = values({1, channels, 10, 10});
    const UOp input = make_input(*context_, kFloat32, channels * 100);
    const Tensor of_input = reshape(Tensor(context_, input), {1, channels, 10, 10});
    const Computed out = computed(input, x, conv(of_input, w, Tensor(), {}));
    const reference::Values want = reference::evaluate(conv(x, w, Tensor(), {}).node());
    const testing::Floats& got = out.values;
    EXPECT_EQ(out.kernels, 4U);
    double worst = 0;
    for (size_t i = 0; i < got.size(); ++i)
      worst = std::max(worst, std::abs(got[i] - want.real[i]) / sum_of_filter(w));
    EXPECT_LE(worst, kErrorMax) << channels << " channels";
    std::printf("%d channels: %.2g of max|x| * sum|w|\n", static_cast<int>(channels), worst);
  }
}

TEST_F(Winograd, AllThatFollowsIsInTheLastKernel) {
  const Tensor x = testing::float_input(context_, {1, 64, 30, 30});
  const Tensor residual = testing::float_input(context_, {1, 64, 30, 30});
  Tensor y = conv(x, values({64, 64, 3, 3}), values({64}), padded(1, 1));
  y = batch_norm(y, values({64}), values({64}), values({64}), values({64}), 1e-5);
  y = relu(add(y, residual));
  UOp out = rewritten(y);
  out = out.graph().make(Op::Contiguous, {out});
  // The filters are transformed by one more, and the input is laid out by channels.
  EXPECT_EQ(make_schedule({&out, 1}, avx512_machine()).kernels.size(), 5U);
}

// What is computed comes with its channels side by side; what was given is laid out so once.
TEST_F(Winograd, InputsInMemoryAreLaidOutByChannels) {
  const auto kernels = [&](const Tensor& x) {
    UOp out = rewritten(conv(x, values({64, 64, 3, 3}), Tensor(), padded(1, 1)));
    out = out.graph().make(Op::Contiguous, {out});
    return make_schedule({&out, 1}, avx512_machine()).kernels;
  };
  const Tensor x = testing::float_input(context_, {8, 64, 30, 30});
  const auto given = kernels(x);
  const auto is_copy = [](const ScheduledKernel& k) {
    return k.kernel.roots.front().src(1).op() == Op::Load;
  };
  EXPECT_EQ(std::ranges::count_if(given, is_copy), 1);
  const Tensor channels_last = testing::float_input(context_, {8, 30, 30, 64});
  EXPECT_EQ(std::ranges::count_if(kernels(permute(channels_last, {0, 3, 1, 2})), is_copy), 0);
  const Tensor computed = conv(x, values({64, 64, 1, 1}), values({64}), {});
  EXPECT_EQ(std::ranges::count_if(kernels(relu(computed)), is_copy), 0);
}

// Filters that are transformed and then laid out would be written, read and written again.
TEST_F(Winograd, FiltersAreTransformedInTheOrderThatProductsReadThem) {
  for (const int64_t channels : {64, 48}) {
    const Tensor x = testing::float_input(context_, {1, channels, 30, 30});
    std::vector<UOp> roots{
        rewritten(conv(x, values({channels, channels, 3, 3}), Tensor(), padded(1, 1)))};
    roots[0] = roots[0].graph().make(Op::Contiguous, {roots[0]});
    std::vector<uint8_t> is_constant(x.graph().id_limit());
    for (const UOp& u : topological(roots))
      if (u.op() == Op::Buffer)
        is_constant[u.id()] = is_input(u) ? 0 : 1;
      else if (u.op() == Op::Contiguous)
        is_constant[u.id()] =
            std::ranges::none_of(topological({&u, 1}), [](const UOp& n) { return is_input(n); });
    const std::vector<uint8_t> varies(is_constant.size(), 1);  // no factor is narrow
    const std::vector<UOp> packed =
        pack_constants(roots, avx512_machine(), is_constant, varies).roots;
    EXPECT_FALSE(packed[0] == roots[0]);
    EXPECT_EQ(make_schedule(packed, avx512_machine()).kernels.size(), 5U) << channels;
  }
}

// The filters of an input's gradient, read across: their planes, more than the caches hold, are
// written along their rows (in the other order at a third of the speed).
TEST_F(Winograd, PlanesOfTransposedFiltersAreStoredAsTheyLie) {
  constexpr int64_t kChannels = 512;
  const Tensor x = testing::float_input(context_, {8, kChannels, 16, 16});
  const Tensor w = testing::float_input(context_, {kChannels, kChannels, 3, 3});
  UOp out = rewritten(conv(x, permute(w, {1, 0, 2, 3}), Tensor(), padded(1, 1)));
  out = out.graph().make(Op::Contiguous, {out});
  bool is_there = false;
  for (const ScheduledKernel& k : make_schedule({&out, 1}, avx512_machine()).kernels) {
    const Kernel kernel =
        optimise(prepare_kernel(k.kernel, avx512_machine()), avx512_machine()).kernel;
    const AccessTable table = access_table(kernel);
    const auto& store = *std::ranges::find_if(table.accesses, &AccessInfo::store);
    const auto planes =
        std::ranges::count_if(store.strides, [](int64_t s) { return s >= kChannels * kChannels; });
    if (planes != 2) continue;
    is_there = true;
    int64_t around = INT64_MAX;
    for (size_t i = 0; i < kernel.ranges.size(); ++i) {
      if (kernel.ranges[i].kind != RangeKind::Loop) continue;
      EXPECT_LT(store.strides[i], around) << "loop " << i;
      around = store.strides[i];
    }
  }
  EXPECT_TRUE(is_there);
}

// The last tiles of 55 rows and columns have three of each, but are computed from as much as
// others: only what is stored is asked for.  Where several tiles side by side are stored as one
// run, the last of these runs has code of its own.
TEST_F(Winograd, TilesAtTheEdgesShareTheCodeOfTheOthers) {
  const auto code_of_last = [&](int64_t size, const Ints& order) {
    const Tensor x = testing::float_input(context_, {1, 64, size, size});
    UOp out = rewritten(relu(conv(x, values({64, 64, 3, 3}), values({64}), padded(1, 1))));
    out = out.graph().make(Op::Contiguous, {make_permute(out, order)});
    const Schedule schedule = make_schedule({&out, 1}, avx512_machine());
    PipelineOptions options;
    options.verify = true;
    return generate(schedule.kernels.back().kernel, avx512_machine(), options).program;
  };
  const auto count = [](const LinearProgram& program, Op op) {
    return std::ranges::count_if(program.ops, [op](const LinearOp& o) { return o.op == op; });
  };
  const Ints by_channels{0, 2, 3, 1}, by_rows{0, 1, 2, 3};
  const LinearProgram whole = code_of_last(56, by_channels);
  const LinearProgram edges = code_of_last(55, by_channels);
  for (const Op op : {Op::Loop, Op::Load, Op::Max, Op::Store, Op::Fma})
    EXPECT_EQ(count(edges, op), count(whole, op)) << info(op).name;
  EXPECT_EQ(count(whole, Op::If) - count(whole, Op::Poll), 0);
  EXPECT_GT(count(edges, Op::If) - count(edges, Op::Poll), 0);
  EXPECT_LE(count(code_of_last(55, by_rows), Op::Store),
            2 * count(code_of_last(56, by_rows), Op::Store));
}

TEST_F(Winograd, AutoTakesTilesWhereTheyAreExpectedToBeFaster) {
  const Machine target = avx512_machine();
  const auto tile = [&](int64_t in, int64_t out, int64_t size) {
    return outputs_of({1, size, size, in, out}, target);
  };
  for (const auto& [in, out, size] : std::vector<std::array<int64_t, 3>>{{64, 64, 56},
                                                                         {128, 128, 28},
                                                                         {64, 64, 224},
                                                                         {128, 128, 112},
                                                                         {256, 256, 56},
                                                                         {512, 512, 28},
                                                                         {16, 64, 55},
                                                                         {32, 128, 27},
                                                                         {48, 192, 13},
                                                                         {64, 256, 13},
                                                                         {128, 32, 56},
                                                                         {128, 32, 28},
                                                                         {96, 128, 28},
                                                                         {64, 192, 56}})
    EXPECT_EQ(tile(in, out, size), 4) << in << " to " << out << " at " << size;
  EXPECT_EQ(tile(256, 256, 14), 4);
  EXPECT_EQ(tile(512, 512, 14), 4);
  EXPECT_EQ(tile(512, 512, 7), 2) << "filters for larger tiles take longer to read than they save";
  EXPECT_EQ(tile(512, 512, 3), 0) << "filters for so few results";
  EXPECT_EQ(tile(3, 64, 224), 0) << "few channels in";
  EXPECT_EQ(tile(64, 3, 224), 0) << "few channels out";
  EXPECT_EQ(tile(64, 64, 1), 0) << "a tile is mostly waste";
  EXPECT_EQ(outputs_of({1, 56, 56, 64, 64}, Machine(generic_target())), 0) << "no lanes";
  EXPECT_EQ(outputs_of({1, 56, 56, 64, 64}, avx2_machine()), 4);
  EXPECT_EQ(outputs_of({8, 7, 7, 512, 512}, target), 4) << "a batch shares the filters";
}

// Planes whose distance is a multiple of 4 KB would fall into the same sets of a cache.
TEST_F(Winograd, PlanesOfTransformedTilesStartInSetsOfTheirOwn) {
  const Tensor x = testing::float_input(context_, {1, 128, 14, 14});
  UOp out = rewritten(conv(x, values({32, 128, 3, 3}), Tensor(), padded(1, 1)));
  out = out.graph().make(Op::Contiguous, {out});
  const Schedule schedule = make_schedule({&out, 1}, avx512_machine());
  int64_t found = 0;
  for (const ScheduledKernel& kernel : schedule.kernels) {
    if (!schedule.elements.contains(kernel.stores.front().destination.node())) continue;
    ++found;
    const int64_t plane = kernel.stores.front().view.strides[1].value();
    EXPECT_EQ(plane, 16 * 128 + 16);
    EXPECT_EQ(kernel.stores.front().view.strides[0].value(), 6 * plane);
    EXPECT_TRUE(schedule.elements.at(kernel.stores.front().destination.node()).is(36 * plane));
  }
  EXPECT_EQ(found, 1);
}

// Convolutions with random sizes and what often stands around them.
struct Chain {
  Ints shape;
  int64_t channels = 0;
  int64_t next = 0;
  Window options;
  bool residual = false;
  bool pools = false;

  Tensor of(const Tensor& x, const std::vector<Tensor>& constants) const {
    Tensor y = conv(x, constants[0], constants[1], options);
    if (residual) y = add(relu(y), constants[2]);
    y = relu(y);
    Window same;
    same.before = same.after = {1, 1};
    return conv(y, constants[3], Tensor(), same);
  }
};

TEST_F(Winograd, ProgramsHaveTheValuesOfTheOracle) {
  const uint64_t seeds = testing::number_from("SEEDS", 24);
  double worst = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    random_.seed(seed);
    const auto below = [&](int64_t n) { return static_cast<int64_t>(random_() % uint64_t(n)); };
    Flags flags = testing::flags_for(seed % 6 == 0 ? "interp" : "cpu", seed % 2 ? "avx2" : "auto");
    flags.wino = "1";
    flags.pack = seed % 5 == 0 ? 0 : 1;
    flags.noopt = seed % 7 == 0 ? 1 : 0;
    flags.threads = 1 + below(2);
    held_.clear();
    context_ = make_ref<Context>(flags);
    Chain chain;
    const int64_t in = 1 + below(3) * 8 + below(2);
    chain.shape = {1 + below(2), in, 3 + below(12), 3 + below(12)};
    chain.channels = 1 + below(40);
    chain.residual = below(2) != 0;
    chain.options = padded(below(2), below(3));
    const int64_t more = chain.options.before[0] + chain.options.after[0] - 2;
    std::vector<Tensor> constants{
        values({chain.channels, in, 3, 3}), values({chain.channels}),
        values({chain.shape[0], chain.channels, chain.shape[2] + more, chain.shape[3] + more}),
        values({1 + below(20), chain.channels, 3, 3})};
    const Tensor data = values(chain.shape);
    const UOp input = make_input(*context_, kFloat32, product(to_shape(chain.shape)));
    const Tensor of_input = reshape(Tensor(context_, input), to_shape(chain.shape));
    const reference::Values want = reference::evaluate(chain.of(data, constants).node());
    const Computed out = computed(input, data, chain.of(of_input, constants));
    const testing::Floats& got = out.values;
    // One row or column of results slides nowhere.
    const bool slides = chain.shape[2] + more > 1 && chain.shape[3] + more > 1;
    // Several channels are laid out side by side first.
    EXPECT_EQ(out.kernels, slides ? (in > 1 ? 7U : 6U) : 2U) << "seed " << seed;
    // Errors of the first convolution go through the second, whose input is no larger than this.
    const double first = sum_of_filter(constants[0]);
    const double scale = (first + first + 2) * sum_of_filter(constants[3]);
    for (size_t i = 0; i < got.size(); ++i) {
      const double error = std::abs(got[i] - want.real[i]) / scale;
      worst = std::max(worst, error);
      ASSERT_LE(error, kErrorMax) << "seed " << seed << ", element " << i;
    }
  }
  std::printf("largest error: %.2g of max|x| * sum|w|\n", worst);
}

}  // namespace
}  // namespace tiny
