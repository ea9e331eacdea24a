// Models with free dimensions: one program for many sizes gives what a program for each size gives.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "onnx/reader.h"
#include "tensor/create.h"
#include "tests/onnx/running.h"
#include "tests/onnx/shared_programs.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"

namespace tiny::onnx {
namespace {

using testing::difference;
using testing::dim;
using testing::expect_same;
using testing::float_tensor;
using testing::floats;
using testing::host_tensor;
using testing::int64_scalar;
using testing::int64s;
using testing::int_attribute;
using testing::ints_attribute;
using testing::kFloatType;
using testing::kInt64Type;
using testing::load;
using testing::Message;
using testing::node;
using testing::random_tensor;
using testing::run_once;
using testing::text_attribute;
using testing::Tolerance;
using testing::typed_graph;
using testing::weight;
using testing::with;
using tiny::testing::expect_failure;
using tiny::testing::failure_of;
using tiny::testing::new_context;

// Where sums of some hundred products are made in tiles (docs/semantics.md).
constexpr Tolerance kOfTiles{1e-4, 2e-4};

// Sizes around a tile of lanes, a tile of registers, and the greatest.
std::vector<std::vector<Ints>> sized(const std::function<std::vector<Ints>(int64_t)>& shapes) {
  std::vector<std::vector<Ints>> out;
  for (int64_t n : {2, 3, 15, 16, 17, 63, 64, 65, 256}) out.push_back(shapes(n));
  return out;
}

TEST(Symbolic, ReshapesWithALeftOverSize) {
  expect_same(
      typed_graph({node("Reshape", {"x", "apart"}, {"a"}),
                   with(node("Transpose", {"a"}, {"b"}), ints_attribute("perm", {0, 2, 1, 3})),
                   node("Reshape", {"b", "flat"}, {"y"}), node("Flatten", {"x"}, {"z"})},
                  {floats("x", {dim("N"), dim("L"), dim(12)})}, {"y", "z"},
                  {int64s("apart", {0, 0, 3, 4}), int64s("flat", {-1, 4})}),
      sized([](int64_t n) { return std::vector<Ints>{{3, n, 12}}; }), 1);
}

TEST(Symbolic, ShapeArithmeticFollowsTheSizes) {
  // y = reshape(x, [shape(x)[0] * shape(x)[1], -1]); p = x + range(shape(x)[1])
  expect_same(
      typed_graph({node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"a"}),
                   node("Gather", {"s", "one"}, {"b"}), node("Mul", {"a", "b"}, {"ab"}),
                   node("Unsqueeze", {"ab", "axis0"}, {"ab1"}),
                   with(node("Concat", {"ab1", "rest"}, {"t"}), int_attribute("axis", 0)),
                   node("Reshape", {"x", "t"}, {"y"}), node("Range", {"zero", "b", "one"}, {"r"}),
                   with(node("Cast", {"r"}, {"f"}), int_attribute("to", kFloatType)),
                   node("Unsqueeze", {"f", "axis1"}, {"g"}), node("Add", {"x", "g"}, {"p"}),
                   node("ConstantOfShape", {"s"}, {"zeros"}), node("Size", {"x"}, {"size"})},
                  {floats("x", {dim("N"), dim("L"), dim(5)})}, {"y", "p", "zeros", "size"},
                  {int64_scalar("zero", 0), int64_scalar("one", 1), int64s("axis0", {0}),
                   int64s("axis1", {1}), int64s("rest", {-1})}),
      sized([](int64_t n) { return std::vector<Ints>{{2, n, 5}}; }), 1);
}

TEST(Symbolic, ShapeArithmeticInNarrowIntegers) {
  constexpr int64_t kInt32Type = 6;
  // z = zeros[max(int32(shape(x)[0]) + 1, 3)]
  expect_same(
      typed_graph(
          {node("Shape", {"x"}, {"s"}),
           with(node("Cast", {"s"}, {"narrow"}), int_attribute("to", kInt32Type)),
           with(node("Cast", {"one"}, {"one32"}), int_attribute("to", kInt32Type)),
           with(node("Cast", {"three"}, {"three32"}), int_attribute("to", kInt32Type)),
           node("Add", {"narrow", "one32"}, {"more"}), node("Max", {"more", "three32"}, {"most"}),
           with(node("Cast", {"most"}, {"wide"}), int_attribute("to", kInt64Type)),
           node("ConstantOfShape", {"wide"}, {"z"}), node("Neg", {"x"}, {"y"})},
          {floats("x", {dim("N")})}, {"y", "z"}, {int64s("one", {1}), int64s("three", {3})}),
      sized([](int64_t n) { return std::vector<Ints>{{n}}; }), 1);
}

TEST(Symbolic, SizesThatFollowFromOthers) {
  // The keys of a decoder: what was there, what is new, and a mask of all.
  expect_same(typed_graph({with(node("Concat", {"past", "x"}, {"all"}), int_attribute("axis", 1)),
                           node("Add", {"all", "mask"}, {"y"})},
                          {floats("past", {dim(2), dim("P"), dim(3)}),
                           floats("x", {dim(2), dim("S"), dim(3)}),
                           floats("mask", {dim(2), dim("T"), dim(3)})},
                          {"y"}),
              {{{2, 5, 3}, {2, 3, 3}, {2, 8, 3}},
               {{2, 8, 3}, {2, 2, 3}, {2, 10, 3}},
               {{2, 64, 3}, {2, 17, 3}, {2, 81, 3}}},
              1);
}

TEST(Symbolic, AStepOfADecoder) {
  expect_same(typed_graph({with(node("Concat", {"past", "x"}, {"all"}), int_attribute("axis", 1)),
                           node("Add", {"all", "mask"}, {"y"})},
                          {floats("past", {dim(2), dim("P"), dim(3)}),
                           floats("x", {dim(2), dim(1), dim(3)}),
                           floats("mask", {dim(2), dim("T"), dim(3)})},
                          {"y"}),
              {{{2, 5, 3}, {2, 1, 3}, {2, 6, 3}}, {{2, 64, 3}, {2, 1, 3}, {2, 65, 3}}}, 1);
}

// What is halved twice and doubled again meets what was halved once where 4 divides the size.
TEST(Symbolic, SizesThatAreMultiples) {
  const auto pool = [](const std::string& from, const std::string& to) {
    return with(with(with(node("AveragePool", {from}, {to}), ints_attribute("kernel_shape", {2})),
                     ints_attribute("strides", {2})),
                ints_attribute("pads", {0, 1}));
  };
  const Message graph = typed_graph(
      {pool("x", "half"), pool("half", "quarter"),
       with(with(node("Resize", {"quarter", "", "scales"}, {"double"}),
                 text_attribute("nearest_mode", "floor")),
            text_attribute("coordinate_transformation_mode", "asymmetric")),
       node("Add", {"half", "double"}, {"y"})},
      {floats("x", {dim(1), dim(3), dim("L")})}, {"y"}, {float_tensor("scales", {3}, {1, 1, 2})});
  // The first size, which may be the only one, has a program of its own.
  expect_same(graph, {{{1, 3, 32}}, {{1, 3, 64}}, {{1, 3, 128}}, {{1, 3, 96}}}, 2);
}

// As onnxruntime-genai's builder writes it: the mask is input, and its shape's number is narrow.
TEST(Symbolic, StepsOfAGroupedQueryAttention) {
  constexpr int64_t kInt32Type = 6;
  const std::string domain = "com.microsoft";
  const Message graph = typed_graph(
      {node("ReduceSum", {"mask", "axis1"}, {"sum"}),
       with(node("Cast", {"sum"}, {"whole"}), int_attribute("to", kInt64Type)),
       node("Sub", {"whole", "one"}, {"last"}),
       with(node("Cast", {"last"}, {"lasts"}), int_attribute("to", kInt32Type)),
       node("Shape", {"mask"}, {"shape"}), node("Gather", {"shape", "axis"}, {"length"}),
       with(node("Cast", {"length"}, {"total"}), int_attribute("to", kInt32Type)),
       with(with(node("GroupQueryAttention", {"q", "k", "v", "past_k", "past_v", "lasts", "total"},
                      {"y", "key", "value"}, domain),
                 int_attribute("num_heads", 2)),
            int_attribute("kv_num_heads", 1))},
      {floats("mask", {dim("B"), dim("T")}), floats("q", {dim("B"), dim("S"), dim(8)}),
       floats("k", {dim("B"), dim("S"), dim(4)}), floats("v", {dim("B"), dim("S"), dim(4)}),
       floats("past_k", {dim("B"), dim(1), dim("P"), dim(4)}),
       floats("past_v", {dim("B"), dim(1), dim("P"), dim(4)})},
      {"y", "key", "value"}, {int64s("axis1", {1}), int64s("axis", {1}), int64_scalar("one", 1)});
  const Ref<Context> context = new_context("cpu");
  const auto loaded = [&] {
    const Message file =
        testing::model(graph).message(field::ModelProto::opset_import, testing::opset(domain, 1));
    return make_ref<LoadedModel>(context, parse_model(testing::shared(file)));
  };
  const Ref<LoadedModel> model = loaded(), apart = loaded();
  const auto run = [&](int64_t batch, int64_t past, int64_t more) {
    const Ints mask{batch, past + more}, q{batch, more, 8}, kv{batch, more, 4},
        kept{batch, 1, past, 4};
    std::vector<Tensor> inputs{full(context, kFloat32, to_shape(mask), 1)};
    for (const Ints& shape : {q, kv, kv, kept, kept})
      inputs.push_back(random_tensor(context, shape));
    const std::vector<Tensor> got = model->run(inputs);
    const auto want = run_once(context, apart->compile({mask, q, kv, kv, kept, kept}), inputs);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(difference(host_tensor(got[i]), want[i], {1e-4, 1e-5}), "");
  };
  run(1, 0, 5);
  for (const int64_t past : {5, 6, 7, 64}) run(1, past, 1);
  EXPECT_EQ(model->programs().size(), 2u);  // the prompt's and the steps'
  for (const int64_t past : {65, 71, 90}) run(1, past, past % 9 + 2);
  run(1, 0, 9);
  run(1, 99, 1);
  EXPECT_EQ(model->programs().size(), 3u);
}

TEST(Symbolic, EqualSizesOfOtherNames) {
  expect_same(
      typed_graph({node("Add", {"x", "y"}, {"z"})},
                  {floats("x", {dim("N"), dim(3)}), floats("y", {dim("M"), dim(3)})}, {"z"}),
      sized([](int64_t n) { return std::vector<Ints>{{n, 3}, {n, 3}}; }), 1);
}

TEST(Symbolic, ConcatenatesAndSlices) {
  expect_same(
      typed_graph(
          {with(node("Concat", {"x", "y", "x"}, {"c"}), int_attribute("axis", 1)),
           node("Slice", {"c", "two", "minus_one", "axis"}, {"s"}),
           node("Slice", {"c", "minus_one", "far_back", "axis", "minus_two"}, {"r"}),
           node("Slice", {"c", "one", "far", "axis", "two"}, {"e"}),
           node("Slice", {"x", "zero", "one", "axis"}, {"first"})},
          {floats("x", {dim(2), dim("L"), dim(3)}), floats("y", {dim(2), dim("M"), dim(3)})},
          {"c", "s", "r", "e", "first"},
          {int64s("zero", {0}), int64s("one", {1}), int64s("two", {2}), int64s("axis", {1}),
           int64s("minus_one", {-1}), int64s("minus_two", {-2}), int64s("far", {INT64_MAX}),
           int64s("far_back", {INT64_MIN})}),
      {{{2, 3, 3}, {2, 5, 3}}, {{2, 2, 3}, {2, 2, 3}}, {{2, 17, 3}, {2, 64, 3}}}, 1);
}

TEST(Symbolic, AttentionOverAFreeBatchAndLength) {
  expect_same(
      typed_graph(
          {node("MatMul", {"x", "wq"}, {"q0"}), node("MatMul", {"x", "wk"}, {"k0"}),
           node("MatMul", {"x", "wv"}, {"v0"}), node("Reshape", {"q0", "split"}, {"q1"}),
           node("Reshape", {"k0", "split"}, {"k1"}), node("Reshape", {"v0", "split"}, {"v1"}),
           with(node("Transpose", {"q1"}, {"q"}), ints_attribute("perm", {0, 2, 1, 3})),
           with(node("Transpose", {"k1"}, {"k"}), ints_attribute("perm", {0, 2, 3, 1})),
           with(node("Transpose", {"v1"}, {"v"}), ints_attribute("perm", {0, 2, 1, 3})),
           node("MatMul", {"q", "k"}, {"scores"}), node("Softmax", {"scores"}, {"p"}),
           node("MatMul", {"p", "v"}, {"o"}),
           with(node("Transpose", {"o"}, {"t"}), ints_attribute("perm", {0, 2, 1, 3})),
           node("Reshape", {"t", "join"}, {"y"})},
          {floats("x", {dim("N"), dim("L"), dim(32)})}, {"y"},
          {weight("wq", {32, 32}), weight("wk", {32, 32}), weight("wv", {32, 32}),
           int64s("split", {0, 0, 4, 8}), int64s("join", {0, 0, 32})}),
      {{{2, 2, 32}}, {{3, 15, 32}}, {{2, 16, 32}}, {{5, 17, 32}}, {{2, 65, 32}}}, 1);
}

TEST(Symbolic, ConvolvesOverAFreeBatchAndLength) {
  const Message pads = ints_attribute("pads", {1, 1});
  const auto nodes = [&](int64_t stride) {
    return std::vector<Message>{
        with(with(node("Conv", {"x", "w", "b"}, {"c"}), pads), ints_attribute("strides", {stride})),
        node("Relu", {"c"}, {"y"})};
  };
  for (int64_t stride : {1, 2, 3}) {
    SCOPED_TRACE(stride);
    expect_same(typed_graph(nodes(stride), {floats("x", {dim("N"), dim(4), dim("L")})}, {"y"},
                            {weight("w", {6, 4, 3}), weight("b", {6})}),
                {{{2, 4, 2}}, {{3, 4, 7}}, {{2, 4, 16}}, {{4, 4, 33}}, {{2, 4, 256}}}, 1);
  }
}

// Pictures of two free sizes: in tiles (32 channels), sums (of 3), phases that take turns, and
// pixels out of channels.
TEST(Symbolic, ConvolvesPicturesOfAnySize) {
  const auto convolved = [](const std::string& x, const std::string& w, const std::string& y) {
    return with(node("Conv", {x, w}, {y}), ints_attribute("pads", {1, 1, 1, 1}));
  };
  const Message turns =
      with(with(node("ConvTranspose", {"c", "up"}, {"d"}), ints_attribute("strides", {2, 2})),
           ints_attribute("kernel_shape", {2, 2}));
  expect_same(typed_graph({convolved("x", "first", "a"), node("Relu", {"a"}, {"b"}),
                           convolved("b", "second", "c"), turns,
                           with(node("DepthToSpace", {"d"}, {"y"}), int_attribute("blocksize", 3))},
                          {floats("x", {dim("N"), dim(3), dim("H"), dim("W")})}, {"y"},
                          {weight("first", {32, 3, 3, 3}), weight("second", {32, 32, 3, 3}),
                           weight("up", {32, 18, 2, 2})}),
              {{{2, 3, 2, 3}}, {{2, 3, 5, 4}}, {{3, 3, 4, 17}}, {{2, 3, 8, 8}}, {{2, 3, 13, 6}}}, 1,
              kOfTiles);
}

TEST(Symbolic, WindowsOfFreePicturesReachBeyondTheirEnds) {
  for (const Ints& pads : {Ints{0, 0, 0, 0}, Ints{2, 0, 1, 3}, Ints{3, 1, 0, 2}}) {
    SCOPED_TRACE(std::string(list_text(pads)));
    expect_same(typed_graph({with(node("Conv", {"x", "w"}, {"y"}), ints_attribute("pads", pads))},
                            {floats("x", {dim(1), dim(32), dim("H"), dim("W")})}, {"y"},
                            {weight("w", {32, 32, 3, 3})}),
                {{{1, 32, 17, 20}}, {{1, 32, 4, 7}}, {{1, 32, 9, 5}}, {{1, 32, 6, 18}}},
                pads[0] == 0 ? 2 : 1,  // a window is longer than the least size
                kOfTiles);
  }
}

TEST(Symbolic, SoftmaxAndReductionsOverAFreeAxis) {
  expect_same(
      typed_graph({with(node("Softmax", {"x"}, {"s"}), int_attribute("axis", 1)),
                   node("ReduceMean", {"x", "axis"}, {"m"}),
                   node("ReduceMax", {"x", "axis"}, {"h"}), node("ReduceSum", {"x"}, {"t"}),
                   with(node("ArgMax", {"x"}, {"a"}), int_attribute("axis", 1)),
                   node("LayerNormalization", {"x", "scale", "bias"}, {"n"})},
                  {floats("x", {dim("N"), dim("L"), dim(6)})}, {"s", "m", "h", "t", "a", "n"},
                  {int64s("axis", {1}), weight("scale", {6}), weight("bias", {6})}),
      sized([](int64_t n) { return std::vector<Ints>{{2, n, 6}}; }), 1);
}

// A layer of an encoder: attention, two norms, two products.
std::vector<Message> encoder_layer(const std::string& in, const std::string& out) {
  const auto name = [&](const char* part) { return out + part; };
  std::vector<Message> nodes;
  for (const char* part : {"q", "k", "v"}) {
    nodes.push_back(node("MatMul", {in, cat("w", part)}, {name(part) + "0"}));
    nodes.push_back(node("Reshape", {name(part) + "0", "split"}, {name(part) + "1"}));
    const bool turned = part[0] == 'k';
    nodes.push_back(with(node("Transpose", {name(part) + "1"}, {name(part)}),
                         ints_attribute("perm", turned ? Ints{0, 2, 3, 1} : Ints{0, 2, 1, 3})));
  }
  nodes.push_back(node("MatMul", {name("q"), name("k")}, {name("scores")}));
  nodes.push_back(node("Softmax", {name("scores")}, {name("p")}));
  nodes.push_back(node("MatMul", {name("p"), name("v")}, {name("o")}));
  nodes.push_back(
      with(node("Transpose", {name("o")}, {name("t")}), ints_attribute("perm", {0, 2, 1, 3})));
  nodes.push_back(node("Reshape", {name("t"), "join"}, {name("j")}));
  nodes.push_back(node("Add", {name("j"), in}, {name("a")}));
  nodes.push_back(node("LayerNormalization", {name("a"), "scale", "bias"}, {name("n")}));
  nodes.push_back(node("MatMul", {name("n"), "up"}, {name("h")}));
  nodes.push_back(node("Relu", {name("h")}, {name("r")}));
  nodes.push_back(node("MatMul", {name("r"), "down"}, {name("d")}));
  nodes.push_back(node("Add", {name("d"), name("n")}, {name("b")}));
  nodes.push_back(node("LayerNormalization", {name("b"), "scale", "bias"}, {out}));
  return nodes;
}

TEST(Symbolic, SixtyFourLengthsOfAnEncoderCompileOnce) {
  std::vector<Message> nodes = encoder_layer("x", "x1");
  for (Message& n : encoder_layer("x1", "y")) nodes.push_back(std::move(n));
  const Message graph = typed_graph(
      nodes, {floats("x", {dim("batch"), dim("length"), dim(32)})}, {"y"},
      {weight("wq", {32, 32}), weight("wk", {32, 32}), weight("wv", {32, 32}),
       weight("up", {32, 64}), weight("down", {64, 32}), weight("scale", {32}),
       weight("bias", {32}), int64s("split", {0, 0, 4, 8}), int64s("join", {0, 0, 32})});
  const Ref<Context> context = new_context("cpu");
  const Ref<Context> other = new_context("cpu");
  const Ref<LoadedModel> model = load(context, graph);
  const Ref<LoadedModel> apart = load(other, graph);
  const auto seconds = [](const TensorProgram& p) {
    return p.import_seconds + p.compiled.schedule_seconds + p.compiled.compile_seconds;
  };
  size_t nodes_after_four = 0;
  for (int64_t i = 1; i <= 64; ++i) {
    const int64_t length = 3 * i;
    const Tensor got = model->run({random_tensor(context, {1, length, 32})})[0];
    if (i == 4) nodes_after_four = context->graph().size();
    if (i % 8 != 1) continue;
    const Ref<const TensorProgram> program = apart->compile({{1, length, 32}});
    const HostTensor want = run_once(other, program, {random_tensor(other, {1, length, 32})})[0];
    EXPECT_EQ(want.shape, (Ints{1, length, 32}));
    EXPECT_EQ(difference(host_tensor(got), want, {1e-4, 1e-5}), "");
  }
  ASSERT_EQ(model->programs().size(), 1u);
  RecordProperty("shared_us", static_cast<int>(1e6 * seconds(*model->programs()[0])));
  RecordProperty("one_length_us", static_cast<int>(1e6 * seconds(*apart->programs()[0])));
  // Not a matter of seconds, which a busy machine stretches: as many kernels as one length has, and
  // a graph that does not grow.
  EXPECT_EQ(model->programs()[0]->compiled.program->tape.size(),
            apart->programs()[0]->compiled.program->tape.size());
  EXPECT_LE(context->graph().size(), nodes_after_four + 16);
}

TEST(Symbolic, SizesOfZeroAndOneHaveProgramsOfTheirOwn) {
  // A batch of 1 broadcasts against anything; 0 gives nothing.
  const Message graph =
      typed_graph({node("Add", {"x", "y"}, {"z"}), node("ReduceSum", {"z"}, {"s"})},
                  {floats("x", {dim("A"), dim(3)}), floats("y", {dim("B"), dim(3)})}, {"z", "s"});
  expect_same(graph, {{{4, 3}, {1, 3}}, {{9, 3}, {1, 3}}, {{1, 3}, {4, 3}}, {{0, 3}, {1, 3}}}, 3);
}

TEST(Symbolic, WhatCannotBeProvedIsCompiledForItsSizes) {
  // Whether 3 divides A is not known: it becomes a number, and so it stays.
  const Message thirds =
      typed_graph({node("Reshape", {"x", "thirds"}, {"y"})}, {floats("x", {dim("A"), dim("C")})},
                  {"y"}, {int64s("thirds", {3, -1, 7})});
  const Ref<Context> context = new_context("cpu");
  const Ref<LoadedModel> model = load(context, thirds);
  for (int64_t n : {9, 15}) {
    const Tensor x = random_tensor(context, {n, 7});
    EXPECT_EQ(host_tensor(model->run({x})[0]).shape, (Ints{3, n / 3, 7}));
    EXPECT_TRUE(model->programs().front()->variables.empty());
  }
  EXPECT_THROW(model->run({random_tensor(context, {10, 7})}), Error);
}

TEST(Symbolic, WhatIsNotEqualIsAnErrorAfterWhatWas) {
  const Message add =
      typed_graph({node("Add", {"x", "y"}, {"z"})},
                  {floats("x", {dim("A"), dim("C")}), floats("y", {dim("B"), dim("C")})}, {"z"});
  const Ref<Context> context = new_context("cpu");
  const Ref<LoadedModel> model = load(context, add);
  for (int64_t n : {4, 5, 9}) {
    const Tensor x = random_tensor(context, {n, 7});
    EXPECT_EQ(host_tensor(model->run({x, x})[0]).shape, (Ints{n, 7}));
    EXPECT_EQ(model->programs().size(), 1u);
  }
  for (int round = 0; round < 9; ++round) {
    const Tensor four = random_tensor(context, {4, 7}), six = random_tensor(context, {6, 7});
    expect_failure(failure_of([&] { model->run({four, six}); }), Status::Shape, {"[4, 7]"});
    EXPECT_EQ(host_tensor(model->run({four, four})[0]).shape, (Ints{4, 7}));
  }
}

TEST(Symbolic, ALargerValueMakesOneMoreProgram) {
  const Message graph =
      typed_graph({node("Neg", {"x"}, {"y"})}, {floats("x", {dim("N"), dim(2)})}, {"y"});
  expect_same(graph, {{{4, 2}}, {{256, 2}}, {{257, 2}}, {{512, 2}}, {{3, 2}}}, 2);
}

// Costs are weighed at the greatest value: what is laid out for 256 pictures is no good for two.
TEST(Symbolic, ABatchHasFewElementsUntilItHasMore) {
  const Message graph =
      typed_graph({node("Neg", {"x"}, {"y"})}, {floats("x", {dim("N"), dim(2), dim("L")})}, {"y"});
  expect_same(graph, {{{2, 2, 5}}, {{8, 2, 200}}, {{9, 2, 7}}, {{16, 2, 9}}, {{3, 2, 3}}}, 2);
  const Ref<Context> context = new_context("cpu");
  const Ref<LoadedModel> model = load(context, graph);
  model->run({random_tensor(context, {2, 2, 5})});
  std::map<std::string, int64_t> most;
  for (const ProgramVariable& v : model->programs()[0]->variables) most[v.name] = v.max;
  EXPECT_EQ(most, (std::map<std::string, int64_t>{{"N", 8}, {"L", 256}}));
}

TEST(Symbolic, ASizeThatComesAgainAndAgainGetsAProgramOfItsOwn) {
  const Message graph =
      typed_graph({node("Neg", {"x"}, {"y"})}, {floats("x", {dim("N"), dim(2)})}, {"y"});
  const Ref<Context> context = new_context("cpu");
  const Ref<LoadedModel> model = load(context, graph);
  const Tensor x = random_tensor(context, {5, 2});
  for (int i = 0; i < 4; ++i) model->run({x});
  EXPECT_EQ(model->programs().size(), 1u);
  model->run({x});
  ASSERT_EQ(model->programs().size(), 2u);
  EXPECT_TRUE(model->programs().front()->variables.empty());
  // Others still share.
  model->run({random_tensor(context, {6, 2})});
  EXPECT_EQ(model->programs().size(), 2u);
}

TEST(Symbolic, SizesThatTakeTurnsGetProgramsOfTheirOwn) {
  const Message graph =
      typed_graph({node("Neg", {"x"}, {"y"})}, {floats("x", {dim("N"), dim(2)})}, {"y"});
  const Ref<Context> context = new_context("cpu");
  const Ref<LoadedModel> turns = load(context, graph), grows = load(context, graph);
  for (int i = 0; i < 15; ++i) turns->run({random_tensor(context, {5 + i % 3, 2})});
  EXPECT_EQ(turns->programs().size(), 4u);
  // A text that grows has each length once.
  for (int i = 0; i < 150; ++i) grows->run({random_tensor(context, {5 + i % 50, 2})});
  EXPECT_EQ(grows->programs().size(), 1u);
}

TEST(Symbolic, ResultsStayWhenTheNextRunHasAnotherSize) {
  const Ref<Context> context = new_context("cpu");
  const Message graph = typed_graph(
      {node("MatMul", {"x", "w"}, {"h"}), node("Softmax", {"h"}, {"s"}),
       node("MatMul", {"s", "v"}, {"y"})},
      {floats("x", {dim("N"), dim(24)})}, {"y"}, {weight("w", {24, 40}), weight("v", {40, 8})});
  const Ref<LoadedModel> model = load(context, graph);
  const Ref<LoadedModel> apart = load(context, graph);
  std::vector<Tensor> got;
  std::vector<HostTensor> want;
  for (int64_t n : {5, 190, 7, 5, 33, 33, 2, 190}) {
    const Tensor input = random_tensor(context, {n, 24});
    got.push_back(model->run({input})[0]);
    want.push_back(run_once(context, apart->compile({{n, 24}}), {input})[0]);
  }
  EXPECT_EQ(model->programs().size(), 1u);
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(difference(host_tensor(got[i]), want[i], {1e-4, 1e-5}), "") << i;
}

TEST(Symbolic, OneNameIsOneSizeUntilItHasTwo) {
  const Message graph =
      typed_graph({node("Add", {"x", "y"}, {"z"})},
                  {floats("x", {dim("N"), dim(2)}), floats("y", {dim("N"), dim(2)})}, {"z"});
  expect_same(graph, {{{4, 2}, {4, 2}}, {{7, 2}, {7, 2}}}, 1);
  // What onnxruntime computes is computed: sizes are checked by what is done with them.
  expect_same(graph, {{{4, 2}, {4, 2}}, {{5, 2}, {1, 2}}, {{9, 2}, {9, 2}}}, 2);
  const Ref<Context> context = new_context("cpu");
  const Ref<LoadedModel> model = load(context, graph);
  const std::vector<Tensor> inputs{random_tensor(context, {4, 2}), random_tensor(context, {5, 2})};
  expect_failure(failure_of([&] { model->run(inputs); }), Status::Shape, {"[4, 2]", "[5, 2]"});
}

TEST(Symbolic, EqualNamesOfDifferentSizesAreDimensionsOfTheirOwn) {
  const Message joined = typed_graph(
      {with(node("Concat", {"x", "y"}, {"z"}), int_attribute("axis", 0))},
      {floats("x", {dim("unk__1"), dim(2)}), floats("y", {dim("unk__1"), dim(2)})}, {"z"});
  expect_same(joined, {{{4, 2}, {4, 2}}, {{4, 2}, {7, 2}}, {{9, 2}, {3, 2}}, {{5, 2}, {5, 2}}}, 2);
  const Message picture =
      typed_graph({node("Relu", {"x"}, {"y"})},
                  {floats("x", {dim("size"), dim(3), dim("size"), dim("size")})}, {"y"});
  expect_same(picture, {{{2, 3, 48, 192}}, {{2, 3, 48, 48}}, {{5, 3, 32, 100}}}, 1);
}

// As published classifiers of text lines have them.
TEST(Symbolic, QuestionMarksNameNothing) {
  for (const char* unknown : {"?", "", "??", "*"}) {
    SCOPED_TRACE(unknown);
    const Message graph =
        typed_graph({node("Relu", {"x"}, {"y"})},
                    {floats("x", {dim(unknown), dim(3), dim(unknown), dim(unknown)})}, {"y"});
    const Ref<LoadedModel> model = load(new_context("interp"), graph);
    EXPECT_EQ(model->input(0).type.dims[2].name, "");
    expect_same(graph, {{{2, 3, 48, 48}}, {{2, 3, 48, 192}}, {{6, 3, 32, 320}}}, 2);
  }
}

}  // namespace
}  // namespace tiny::onnx
