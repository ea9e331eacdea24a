// Modules hold parameters by name, layers compute what their definitions say, generators move on.
#include "nn/layers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "autograd/gradient.h"
#include "nn/optimizer.h"
#include "nn/sequence_layers.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tensor/random.h"
#include "tensor/reduce.h"
#include "tensor/run.h"
#include "tensor/value.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Floats;

class LayersTest : public ::testing::Test {
 protected:
  Tensor make(const Floats& values, const Ints& shape) {
    return testing::floats(context_, values, shape);
  }
  static Floats get(const Tensor& t) { return testing::floats_of(t); }
  Tensor random(uint64_t seed, const Ints& shape) {
    return random_normal(random_key(context_, seed), kFloat32, to_shape(shape));
  }

  const Ref<Context> context_ = testing::new_context("cpu");
  const Ref<Module> module_ = make_ref<Module>(context_, 1U);
};

TEST_F(LayersTest, ParametersAreMadeOnceByTheirNames) {
  const Tensor x = random(1, {2, 3});
  const Floats once = get(linear(*module_, "fc", x, 4));
  EXPECT_EQ(get(linear(*module_, "fc", x, 4)), once);
  ASSERT_EQ(module_->entries(true).size(), 2U);
  EXPECT_EQ(module_->entries(true)[0]->name, "fc.weight");
  EXPECT_EQ(module_->entries(true)[1]->name, "fc.bias");
  // Whatever is made before, and by whichever way.
  const Ref<Module> other = make_ref<Module>(context_, 1U);
  linear(*other, "first", x, 2);
  EXPECT_EQ(get(linear(*other, "fc", x, 4)), once);
  const Ref<Module> block = make_ref<Module>(context_, 1U)->child("block");
  EXPECT_EQ(get(linear(*block, "fc", x, 4)),
            get(linear(*make_ref<Module>(context_, 1U), "block.fc", x, 4)));
  EXPECT_NE(get(linear(*make_ref<Module>(context_, 2U), "fc", x, 4)), once);
  testing::expect_failure(testing::failure_of([&] { linear(*module_, "fc", x, 5); }), Status::Shape,
                          {"fc.weight", "[4, 3]", "[5, 3]"});
  testing::expect_failure(testing::failure_of([&] { linear(*module_, "a..b", x, 5); }),
                          Status::InvalidArgument, {"a..b"});
  testing::expect_failure(
      testing::failure_of([&] { module_->buffer("fc.bias", {4}, kFloat32, 0); }),
      Status::InvalidArgument, {"fc.bias", "parameter"});
}

TEST_F(LayersTest, LinearIsAProductAndASum) {
  const Tensor x = make({1, 2, 3, 4}, {2, 2});
  linear(*module_, "fc", x, 1);
  Tensor weight = module_->parameter("fc.weight", {1, 2}, {});
  Tensor bias = module_->parameter("fc.bias", {1}, {});
  assign(weight, make({10, 1}, {1, 2}));
  assign(bias, make({0.5}, {1}));
  EXPECT_EQ(get(linear(*module_, "fc", x, 1)), (Floats{12.5, 34.5}));
}

// Each step's batch moves the running statistics by a tenth, one by one and in a program.
TEST_F(LayersTest, BatchNormKeepsRunningStatistics) {
  const Tensor x = make({1, 10, 3, 20, 5, 30, 7, 40}, {4, 2});
  const auto stored = [&](const char* name) {
    return get(module_->buffer(name, {2}, kFloat32, 0));
  };
  Tensor y = batch_norm(*module_, "bn", x);
  EXPECT_NEAR(get(y)[0], -3 / std::sqrt(5.0), 1e-5);
  EXPECT_NEAR(stored("bn.running_mean")[0], 0.4, 1e-6);
  EXPECT_NEAR(stored("bn.running_var")[0], 0.9 + 0.1 * 20 / 3, 1e-6);
  // A result that is thrown away changes nothing; one that is computed does.
  batch_norm(*module_, "bn", x);
  const Tensor input = make_placeholder(context_, kFloat32, {Dim(4), Dim(2)});
  batch_norm(*module_, "other", input);
  const Tensor outputs[] = {batch_norm(*module_, "other", input)}, inputs[] = {input};
  const auto program = compile_tensors(context_, inputs, outputs);
  EXPECT_EQ(get(module_->buffer("other.running_mean", {2}, kFloat32, 0))[1], 0);
  const Ref<TensorRun> run = make_ref<TensorRun>(context_, program);
  for (int i = 1; i <= 3; ++i) {
    run->set_input(0, x);
    run->execute();
    EXPECT_NEAR(get(module_->buffer("other.running_mean", {2}, kFloat32, 0))[1],
                25 * (1 - std::pow(0.9, i)), 1e-4);
  }
  EXPECT_EQ(get(cast(module_->buffer("other.num_batches_tracked", {}, kInt64, 0), kFloat32)),
            Floats{3});
  module_->set_training(false);
  EXPECT_NEAR(get(batch_norm(*module_, "fresh", x))[1], 10, 1e-3);
  testing::expect_failure(testing::failure_of([&] {
                            module_->set_training(true);
                            batch_norm(*module_, "one", make({1, 2}, {1, 2}));
                          }),
                          Status::Shape, {"one value"});
}

// Steps one by one leave nothing behind that a later reader would have to compute.
TEST_F(LayersTest, StepsOneByOneWriteWhatLayersKeep) {
  const Tensor x = random(3, {8, 4});
  linear(*module_, "fc", x, 3);
  Optimizer optimizer(context_, OptimizerKind::Sgd);
  Tensor weight = module_->parameter("fc.weight", {3, 4}, {});
  optimizer.add_group({weight});
  for (int i = 0; i < 4; ++i) {
    Tensor loss = sum(
        square(dropout(*module_, batch_norm(*module_, "bn", linear(*module_, "fc", x, 3)), 0.5)),
        {0, 1});
    const Tensor losses[] = {loss}, by[] = {weight};
    optimizer.step(gradients(losses, {}, by));
    Tensor* const both[] = {&loss, &weight};
    realize(both);
    for (const Module::Entry* e : module_->entries(false))
      EXPECT_EQ(e->value.cell()->node().op(), Op::Buffer) << e->name << " after step " << i;
    EXPECT_EQ(module_->generator().state().cell()->node().op(), Op::Buffer);
  }
}

TEST_F(LayersTest, DropoutKeepsTheMean) {
  const Tensor x = full(context_, kFloat32, {100, 100}, 1);
  const Floats y = get(dropout(*module_, x, 0.25));
  const auto zeros = static_cast<double>(std::count(y.begin(), y.end(), 0.F));
  EXPECT_NEAR(zeros / 10000, 0.25, 0.02);
  EXPECT_NEAR(*std::max_element(y.begin(), y.end()), 1 / 0.75, 1e-6);
  EXPECT_NE(get(dropout(*module_, x, 0.25)), y);
  EXPECT_EQ(get(dropout(*module_, x, 1)), Floats(10000, 0));
  module_->set_training(false);
  EXPECT_EQ(get(dropout(*module_, x, 0.25)), Floats(10000, 1));
  testing::expect_failure(testing::failure_of([&] { dropout(*module_, x, 1.5); }),
                          Status::InvalidArgument, {"1.5"});
}

// Two keys a step: the same numbers one by one and in a program, other ones in each run.
TEST_F(LayersTest, GeneratorsMoveOnWithEachRun) {
  const auto step = [](Generator& g) {
    return random_uniform(g.next(), kFloat32, {3}) + random_uniform(g.next(), kFloat32, {3});
  };
  std::vector<Floats> one_by_one;
  Generator plain(context_, 7);
  for (int i = 0; i < 4; ++i) one_by_one.push_back(get(step(plain)));
  for (size_t i = 1; i < 4; ++i) EXPECT_NE(one_by_one[i], one_by_one[0]);
  Generator captured(context_, 7);
  const Tensor outputs[] = {step(captured)};
  const Ref<TensorRun> run = make_ref<TensorRun>(context_, compile_tensors(context_, {}, outputs));
  Floats got(3);
  for (size_t i = 0; i < 4; ++i) {
    run->execute();
    run->read_output(0, got.data());
    EXPECT_EQ(got, one_by_one[i]) << i;
  }
  // Put back, it goes on as before.
  Generator again(context_, 0);
  Tensor state = again.state();
  Generator third(context_, 7);
  get(step(third));
  assign(state, third.state());
  EXPECT_EQ(get(step(again)), one_by_one[1]);
}

// Tensor.manual_seed(seed), then Tensor.rand one after the other, of tinygrad 0.14.0: its seed is
// the second word behind that of its first device, its counter the words that were drawn before.
TEST_F(LayersTest, GeneratorsHaveTinygradsNumbers) {
  constexpr uint32_t kFirstDevice = 347607321;  // the last word of SHA-256 of four zero bytes
  Generator g(context_, 0);
  const auto key_at = [&](uint32_t seed, uint32_t drawn) {
    const uint32_t words[] = {kFirstDevice, seed, drawn};
    Tensor state = g.state();
    assign(state, from_data(context_, kUInt32, {3}, words, sizeof words));
    return g.next();
  };
  const auto rand = [&](uint32_t seed, uint32_t drawn, DType dtype, const Ints& shape) {
    Tensor wide = cast(random_uniform(key_at(seed, drawn), dtype, to_shape(shape)), kFloat64);
    std::vector<double> out(static_cast<size_t>(element_count(wide)));
    read(wide, out.data(), std::ssize(out) * 8);
    return out;
  };
  using Numbers = std::vector<double>;
  Generator first(context_, (uint64_t{1337} << 32) | kFirstDevice);
  const Numbers five{0x1.cc405p-1, 0x1.9bceep-3, 0x1.0e23a4p-1, 0x1.ce478p-3, 0x1.dbe5ap-4};
  EXPECT_EQ(get(random_uniform(first.next(), kFloat32, {5})), Floats(five.begin(), five.end()));
  EXPECT_EQ(rand(1337, 0, kFloat32, {5}), five);
  EXPECT_EQ(rand(1337, 5, kFloat32, {2, 3}), (Numbers{0x1.184dp-5, 0x1.515fdp-3, 0x1.314fp-5,
                                                      0x1.c3552p-1, 0x1.86273p-3, 0x1.b31cap-2}));
  EXPECT_EQ(rand(42, 0, kFloat16, {3}), (Numbers{0x1.66p-3, 0x1.828p-1, 0x1.7ep-2}));
  EXPECT_EQ(rand(42, 2, kFloat64, {3}),
            (Numbers{0x1.02569f3ba76c4p-2, 0x1.4d1ddb8970336p-1, 0x1.aa9f6345ec8aep-1}));
  EXPECT_EQ(rand(42, 8, kBFloat16, {3}), (Numbers{0x1.bp-1, 0x1.ap-1, 0x1.ep-2}));
  // Tensor.randn: cosines and logarithms may differ in the last bits.
  const Floats normal = get(random_normal(key_at(42, 10), kFloat32, {4}));
  const Floats wanted{-0x1.b251dep-3F, 0x1.42ad1p-1F, 0x1.410b3ep+0F, 0x1.4d40a8p-1F};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(normal[i], wanted[i], 3e-7) << i;
}

TEST_F(LayersTest, InitialValuesHaveTheirDeviations) {
  const Tensor key = random_key(context_, 3);
  const auto deviation = [&](const Initialization& how, const Ints& shape) {
    const Floats v = get(initialize(key, how, kFloat32, shape));
    double squares = 0;
    for (const float x : v) squares += static_cast<double>(x) * x;
    return std::sqrt(squares / static_cast<double>(v.size()));
  };
  const Ints shape{64, 32, 3, 3};
  EXPECT_NEAR(deviation({Initial::Normal, 0, 2}, shape), 2, 0.05);
  EXPECT_NEAR(deviation({Initial::XavierUniform, 1}, shape), std::sqrt(2.0 / (9 * 96)), 1e-3);
  EXPECT_NEAR(deviation({Initial::XavierNormal, 2}, shape), 2 * std::sqrt(2.0 / (9 * 96)), 2e-3);
  EXPECT_NEAR(deviation({Initial::KaimingUniform, std::sqrt(5.0)}, shape),
              std::sqrt(1.0 / 3 / (9 * 32)), 1e-3);
  EXPECT_NEAR(deviation({Initial::KaimingNormal, 0, 1}, shape), std::sqrt(2.0 / (9 * 64)), 1e-3);
  // Of a normal distribution cut at two deviations.
  EXPECT_NEAR(deviation({Initial::TruncatedNormal, 0, 1}, shape), 0.8796, 0.01);
  const Floats cut = get(initialize(key, {Initial::TruncatedNormal, 1, 0.5}, kFloat32, {10000}));
  EXPECT_GE(*std::min_element(cut.begin(), cut.end()), 0);
  EXPECT_LE(*std::max_element(cut.begin(), cut.end()), 2);
  const Floats sparse = get(initialize(key, {Initial::Sparse, 0.25, 1}, kFloat32, {8, 5}));
  EXPECT_EQ(std::count(sparse.begin(), sparse.end(), 0.F), 10);
  EXPECT_EQ(get(initialize(key, {Initial::Dirac, 1}, kFloat32, {2, 2, 3})),
            (Floats{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}));
  testing::expect_failure(
      testing::failure_of([&] { initialize(key, {Initial::XavierNormal, 1}, kFloat32, {3}); }),
      Status::Shape, {"at least 2 axes"});
}

TEST_F(LayersTest, OrthogonalValuesAre) {
  for (const Ints& shape : {Ints{5, 8}, Ints{8, 5}, Ints{24, 24}}) {
    const Tensor q = initialize(random_key(context_, 5), {Initial::Orthogonal, 1}, kFloat32, shape);
    const Tensor t = transpose(q, 0, 1);
    const Floats product = get(shape[0] <= shape[1] ? matmul(q, t) : matmul(t, q));
    const int64_t n = std::min(shape[0], shape[1]);
    for (int64_t i = 0; i < n * n; ++i)
      EXPECT_NEAR(product[static_cast<size_t>(i)], i % (n + 1) == 0 ? 1 : 0, 2e-5);
  }
}

// Layers of two directions are the layers of each, side by side.
TEST_F(LayersTest, RecurrentLayersHaveDirections) {
  const Tensor x = random(9, {3, 2, 4});
  const RecurrentLayers both = recurrent(*module_, "rnn", RecurrentKind::Gru, x, {5, 2, true});
  EXPECT_EQ(Shape(both.y.shape()), (Shape{3, 2, 10}));
  EXPECT_EQ(Shape(both.h.shape()), (Shape{4, 2, 5}));
  EXPECT_FALSE(both.c);
  EXPECT_EQ(module_->entries(true).back()->name, "rnn.bias_hh_l1_reverse");
  const RecurrentLayers one =
      recurrent(*make_ref<Module>(context_, 1U), "rnn", RecurrentKind::Gru, x, {5});
  const RecurrentLayers first =
      recurrent(*make_ref<Module>(context_, 1U), "rnn", RecurrentKind::Gru, x, {5, 1, true});
  // The order of sums is that of the kernels.
  const Floats of_both = get(slice_axis(first.y, 2, 0, 5)), alone = get(one.y);
  ASSERT_EQ(of_both.size(), alone.size());
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(of_both[i], alone[i], 1e-6);
  testing::expect_failure(testing::failure_of([&] {
                            recurrent(*module_, "lstm", RecurrentKind::Lstm, x, {5},
                                      full(context_, kFloat32, {1, 2, 5}, 0));
                          }),
                          Status::InvalidArgument, {"both or none"});
}

TEST_F(LayersTest, AttentionOfItselfIsThatOfThreeEqualInputs) {
  const Tensor x = random(11, {2, 3, 8}), same = x + number(x, 0);
  const Floats own = get(multi_head_attention(*module_, "mha", x, x, x, {2}));
  const Floats three = get(multi_head_attention(*module_, "mha", x, same, same, {2}));
  ASSERT_EQ(own.size(), three.size());
  for (size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(own[i], three[i], 1e-5);
  testing::expect_failure(
      testing::failure_of([&] { multi_head_attention(*module_, "odd", x, x, x, {3}); }),
      Status::InvalidArgument, {"3 heads"});
}

}  // namespace
}  // namespace tiny
