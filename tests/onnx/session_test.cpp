// Loading, compiling and running models: shapes, names, caches, and what is refused and how.
#include "onnx/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "onnx/import/host_value.h"
#include "onnx/reader.h"
#include "tensor/create.h"
#include "tests/onnx/running.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"

namespace tiny::onnx {
namespace {

using testing::dim;
using testing::float_tensor;
using testing::floats;
using testing::graph;
using testing::graph_attribute;
using testing::host_tensor;
using testing::int64s;
using testing::int_attribute;
using testing::kBoolType;
using testing::kInt64Type;
using testing::load;
using testing::Message;
using testing::node;
using testing::tensor_type;
using testing::typed_graph;
using testing::value;
using testing::with;
using tiny::testing::expect_failure;
using tiny::testing::failure_of;

Ref<Context> new_context() {
  return tiny::testing::new_context("interp");
}

Tensor tensor_of(const Ref<Context>& context, const Ints& shape, const std::vector<float>& values) {
  return from_data(context, kFloat32, shape, values.data(),
                   static_cast<int64_t>(values.size() * sizeof(float)));
}

Tensor tensor_of(const Ref<Context>& context, const Ints& values) {
  return from_data(context, kInt64, {static_cast<int64_t>(values.size())}, values.data(),
                   static_cast<int64_t>(values.size() * sizeof(int64_t)));
}

TEST(Session, RunsWithFreeDimensions) {
  const Ref<Context> context = new_context();
  const Ref<LoadedModel> model =
      load(context,
           typed_graph({node("Add", {"x", "y"}, {"z"})},
                       {floats("x", {dim("N"), dim(2)}), floats("y", {dim("N"), dim(2)})}, {"z"}));
  for (int64_t n : {1, 3}) {
    const std::vector<float> ones(static_cast<size_t>(2 * n), 1.0f);
    const std::vector<Tensor> out =
        model->run({tensor_of(context, {n, 2}, ones), tensor_of(context, {n, 2}, ones)});
    ASSERT_EQ(out.size(), 1u);
    const HostTensor got = host_tensor(out[0]);
    EXPECT_EQ(got.shape, (Ints{n, 2}));
    EXPECT_EQ(reals_of(got), std::vector<double>(static_cast<size_t>(2 * n), 2.0));
  }
}

TEST(Session, ShapesAreComputedOnTheHostWhereTheDeviceShowsItNoMemory) {
  const Ref<LoadedModel> model =
      load(tiny::testing::new_context("null"),
           typed_graph({node("Shape", {"x"}, {"sizes"}), node("Gather", {"sizes", "order"}, {"to"}),
                        node("Reshape", {"x", "to"}, {"y"})},
                       {floats("x", {dim("N"), dim("M")})}, {"y"}, {int64s("order", {1, 0})}));
  EXPECT_EQ(model->compile({{2, 5}})->outputs[0].shape, (Ints{5, 2}));
}

TEST(Session, NamesTheInputAndTheDimensionThatDoNotFit) {
  const Ref<Context> context = new_context();
  const Ref<LoadedModel> model =
      load(context,
           typed_graph({node("Add", {"x", "y"}, {"z"})},
                       {floats("x", {dim("N"), dim(2)}), floats("y", {dim("N"), dim(2)})}, {"z"}));
  expect_failure(failure_of([&] { model->compile({{1, 3}, {1, 2}}); }), Status::Shape,
                 {"\"x\"", "[N, 2]", "[1, 3]", "dimension 1 must be 2"});
  expect_failure(failure_of([&] { model->compile({{4, 2}, {5, 2}}); }), Status::Shape,
                 {"[4, 2]", "[5, 2]", "broadcast"});
  expect_failure(failure_of([&] { model->compile({{4, 2, 1}, {4, 2}}); }), Status::Shape,
                 {"[4, 2, 1]"});
  expect_failure(failure_of([&] { model->compile({{4, 2}}); }), Status::InvalidArgument,
                 {"2 inputs"});
  expect_failure(failure_of([&] { model->fixed_shapes(); }), Status::InvalidArgument,
                 {"\"x\"", "free dimension"});
  expect_failure(failure_of([&] { model->input_index("w"); }), Status::InvalidArgument,
                 {"\"w\"", "x, y"});
  EXPECT_EQ(model->input_index("y"), 1u);
  EXPECT_EQ(model->output_index("z"), 0u);
}

TEST(Session, ProgramsAreCachedByShape) {
  const Ref<Context> context = new_context();
  const Ref<LoadedModel> model =
      load(context, typed_graph({node("Neg", {"x"}, {"y"})}, {floats("x", {dim("N")})}, {"y"}));
  const Ref<const TensorProgram> four = model->compile({{4}});
  EXPECT_EQ(model->compile({{4}}).get(), four.get());
  EXPECT_NE(model->compile({{5}}).get(), four.get());
  for (int64_t n = 10; n < 40; ++n) model->compile({{n}});
  EXPECT_NE(model->compile({{4}}).get(), four.get()) << "the cache is bounded";
}

TEST(Session, ProgramsShareTheWeightsThatTheyLayOut) {
  const Ref<Context> context = new_context();
  std::vector<float> weight(480 * 64);
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i % 7) - 3;
  const Ref<LoadedModel> model = load(
      context, typed_graph({node("MatMul", {"x", "w"}, {"y"})}, {floats("x", {dim("N"), dim(480)})},
                           {"y"}, {testing::float_tensor("w", {480, 64}, weight)}));
  const auto captured = [](const TensorProgram& program) {
    std::vector<Ref<Storage>> found;
    for (const Slot& slot : program.compiled.program->slots)
      if (slot.kind == SlotKind::Captured) found.push_back(slot.storage);
    return found;
  };
  const std::vector<Ref<Storage>> first = captured(*model->compile({{8, 480}}));
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(captured(*model->compile({{9, 480}})), first);
}

TEST(Session, InputsThatDecideShapesAreReadFirst) {
  const Ref<Context> context = new_context();
  const Ref<LoadedModel> model =
      load(context,
           typed_graph({node("Reshape", {"x", "shape"}, {"y"})},
                       {floats("x", {dim(6)}), value("shape", tensor_type(kInt64Type, {dim(2)}))},
                       {"y"}));
  EXPECT_FALSE(model->is_host_input(0));
  EXPECT_TRUE(model->is_host_input(1));
  const Tensor x = tensor_of(context, {6}, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(host_tensor(model->run({x, tensor_of(context, Ints{2, 3})})[0]).shape, (Ints{2, 3}));
  EXPECT_EQ(host_tensor(model->run({x, tensor_of(context, Ints{3, -1})})[0]).shape, (Ints{3, 2}));
  // Without them the run finds the sizes.
  const Ref<const TensorProgram> found = model->compile({{6}, {2}});
  EXPECT_EQ(std::ranges::count(found->variables, true, &ProgramVariable::is_computed), 2);
}

TEST(Session, ShapeArithmeticLeavesNoKernels) {
  const Ref<Context> context = new_context();
  // y = reshape(-x, [shape(x)[0] * shape(x)[1], -1])
  const Ref<LoadedModel> model = load(
      context, typed_graph({node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"a"}),
                            node("Gather", {"s", "one"}, {"b"}), node("Mul", {"a", "b"}, {"ab"}),
                            with(node("Concat", {"ab", "rest"}, {"t"}), int_attribute("axis", 0)),
                            node("Neg", {"x"}, {"n"}), node("Reshape", {"n", "t"}, {"y"})},
                           {floats("x", {dim("A"), dim("B"), dim("C")})}, {"y"},
                           {int64s("zero", {0}), int64s("one", {1}), int64s("rest", {-1})}));
  const Ref<const TensorProgram> program = model->compile({{2, 3, 4}});
  EXPECT_EQ(program->outputs[0].shape, (Ints{6, 4}));
  EXPECT_EQ(program->compiled.program->tape.size(), 1u);
}

TEST(Session, AMissingAttributeIsRefusedByName) {
  const Ref<LoadedModel> model =
      load(new_context(), typed_graph({node("Shape", {"x"}, {"s"}), node("Cast", {"s"}, {"c"})},
                                      {floats("x", {dim("A"), dim("B"), dim("C")})}, {"s"}));
  expect_failure(failure_of([&] { model->compile({{2, 3, 4}}); }), Status::InvalidModel,
                 {"Cast", "\"to\"", "missing"});
}

TEST(Session, AllUnsupportedNodesAreReportedTogether) {
  const Ref<Context> context = new_context();
  const Ref<LoadedModel> model =
      load(context, typed_graph({node("NoSuchOp", {"x"}, {"a"}), node("Relu", {"a"}, {"b"}),
                                 node("Another", {"b", "x"}, {"c"}), node("Neg", {"c"}, {"y"})},
                                {floats("x", {dim(2)})}, {"y"}));
  expect_failure(failure_of([&] { model->compile({{2}}); }), Status::Unsupported,
                 {"2 nodes", "NoSuchOp-17(float32)", "Another-17(?, float32)"});
  const std::vector<UnsupportedNode> listed =
      find_unsupported(model->model(), model->context()->custom_ops());
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].op_type, "NoSuchOp");
  EXPECT_EQ(listed[1].node, "c");
}

TEST(Session, AVersionWithoutARowIsRefusedByName) {
  const Ref<Context> context = new_context();
  Message m = Message()
                  .number(field::ModelProto::ir_version, 8)
                  .message(field::ModelProto::graph, typed_graph({node("Gelu", {"x"}, {"y"})},
                                                                 {floats("x", {dim(2)})}, {"y"}))
                  .message(field::ModelProto::opset_import, testing::opset("", 19));
  const Ref<LoadedModel> model = make_ref<LoadedModel>(context, parse_model(testing::shared(m)));
  expect_failure(failure_of([&] { model->compile({{2}}); }), Status::Unsupported,
                 {"Gelu-19", "version 19", "20-"});
}

TEST(Session, OutputsMayBeInputsConstantsAndTheSameValue) {
  const Ref<Context> context = new_context();
  const Ref<LoadedModel> model = load(
      context, typed_graph({node("Neg", {"x"}, {"n"}), node("Identity", {"n"}, {"m"}),
                            node("Identity", {"x"}, {"i"})},
                           {floats("x", {dim(2)})}, {"n", "m", "i", "w"}, {int64s("w", {7, 8})}));
  const std::vector<Tensor> out = model->run({tensor_of(context, {2}, {1, 2})});
  ASSERT_EQ(out.size(), 4u);
  EXPECT_EQ(reals_of(host_tensor(out[0])), (std::vector<double>{-1, -2}));
  EXPECT_EQ(reals_of(host_tensor(out[1])), (std::vector<double>{-1, -2}));
  EXPECT_EQ(reals_of(host_tensor(out[2])), (std::vector<double>{1, 2}));
  EXPECT_EQ(integers_of(host_tensor(out[3])), (Ints{7, 8}));
}

TEST(Session, EmptyInputsAndOutputsRun) {
  const Ref<Context> context = new_context();
  const Ref<LoadedModel> model =
      load(context, typed_graph({node("Neg", {"x"}, {"y"}), node("ReduceSum", {"x"}, {"s"})},
                                {floats("x", {dim("N"), dim(3)})}, {"y", "s"}));
  const std::vector<Tensor> out = model->run({tensor_of(context, {0, 3}, {})});
  EXPECT_EQ(host_tensor(out[0]).shape, (Ints{0, 3}));
  EXPECT_EQ(reals_of(host_tensor(out[1])), std::vector<double>{0});
}

TEST(Session, RunsOfOneProgramMayOverlap) {
  const Ref<Context> context = new_context();
  const Ref<LoadedModel> model =
      load(context, typed_graph({node("Exp", {"x"}, {"e"}), node("MatMul", {"e", "e"}, {"y"})},
                                {floats("x", {dim(16), dim(16)})}, {"y"}));
  const Ref<const TensorProgram> program = model->compile({{16, 16}});
  constexpr int kThreads = 4;
  std::vector<Ref<TensorRun>> runs;
  for (int t = 0; t < kThreads; ++t) {
    runs.push_back(make_ref<TensorRun>(context, program));
    runs.back()->set_input(
        0, tensor_of(context, {16, 16}, std::vector<float>(256, static_cast<float>(t))));
  }
  std::vector<std::thread> threads;
  for (const Ref<TensorRun>& run : runs)
    threads.emplace_back([&run] {
      for (int i = 0; i < 50; ++i) run->execute();
    });
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) {
    std::vector<float> y(256);
    runs[static_cast<size_t>(t)]->read_output(0, y.data());
    const float e = std::exp(static_cast<float>(t));
    for (float v : y) EXPECT_NEAR(v, 16 * e * e, 1e-4f * 16 * e * e);
  }
}

TEST(Session, ARunRefusesWhatDoesNotFit) {
  const Ref<Context> context = new_context();
  const Ref<LoadedModel> model =
      load(context, typed_graph({node("Neg", {"x"}, {"y"})}, {floats("x", {dim("N")})}, {"y"}));
  const Ref<TensorRun> run = make_ref<TensorRun>(context, model->compile({{2}}));
  expect_failure(failure_of([&] { run->execute(); }), Status::InvalidArgument,
                 {"not set", "\"x\""});
  expect_failure(failure_of([&] { run->set_input(0, tensor_of(context, {3}, {1, 2, 3})); }),
                 Status::Shape, {"\"x\"", "[2]", "[3]"});
  expect_failure(failure_of([&] { run->set_input(0, tensor_of(context, Ints{1, 2})); }),
                 Status::DType, {"float32", "int64"});
  expect_failure(failure_of([&] { run->set_input(1, tensor_of(context, {2}, {1, 2})); }),
                 Status::InvalidArgument, {"1 inputs", "index 1"});
}

Message branch(const std::string& op, const std::string& output) {
  return graph({node(op, {"x"}, {output})}, {}, {output});
}

Message if_node() {
  return with(with(node("If", {"c"}, {"y"}), graph_attribute("then_branch", branch("Neg", "a"))),
              graph_attribute("else_branch", branch("Abs", "b")));
}

TEST(Session, ConditionsChooseABranchOrBoth) {
  const Ref<Context> context = new_context();
  // A condition that is an input becomes part of the program's key; one that is computed does not.
  const Ref<LoadedModel> given = load(
      context, typed_graph({if_node()},
                           {value("c", tensor_type(kBoolType, {})), floats("x", {dim(2)})}, {"y"}));
  const Ref<LoadedModel> computed = load(
      context,
      typed_graph({node("ReduceSum", {"x"}, {"s"}),
                   with(node("Cast", {"s"}, {"c"}), int_attribute("to", kBoolType)), if_node()},
                  {floats("x", {dim(2)})}, {"y"}));
  for (const bool condition : {true, false}) {
    const Tensor c = full(context, kBool, {}, condition ? 1 : 0);
    EXPECT_EQ(reals_of(host_tensor(given->run({c, tensor_of(context, {2}, {1, -2})})[0])),
              condition ? (std::vector<double>{-1, 2}) : (std::vector<double>{1, 2}));
    const std::vector<float> x = condition ? std::vector<float>{3, -2} : std::vector<float>{3, -3};
    EXPECT_EQ(reals_of(host_tensor(computed->run({tensor_of(context, {2}, x)})[0])),
              condition ? (std::vector<double>{-3, 2}) : (std::vector<double>{3, 3}));
  }
}

TEST(Session, ABranchThatCannotBeBuiltIsAnErrorWhereItIsTaken) {
  const Ref<Context> context = new_context();
  const Message wrong = graph({node("Reshape", {"x", "five"}, {"b"})}, {}, {"b"});
  const Ref<LoadedModel> model =
      load(context, typed_graph({node("ReduceSum", {"x"}, {"s"}),
                                 with(node("Cast", {"s"}, {"c"}), int_attribute("to", kBoolType)),
                                 with(with(node("If", {"c"}, {"y"}),
                                           graph_attribute("then_branch", branch("Neg", "a"))),
                                      graph_attribute("else_branch", wrong))},
                                {floats("x", {dim(1), dim(2)})}, {"y"}, {int64s("five", {5})}));
  const auto run = [&](const std::vector<float>& x) {
    return reals_of(host_tensor(model->run({tensor_of(context, {1, 2}, x)})[0]));
  };
  EXPECT_EQ(run({3, -2}), (std::vector<double>{-3, 2}));
  expect_failure(failure_of([&] { run({3, -3}); }), Status::Unsupported,
                 {"cannot be computed", "Reshape"});
  EXPECT_EQ(run({1, 1}), (std::vector<double>{-1, -1}));
}

TEST(Session, LoopsTakeAsManyRoundsAsTheirInputsSay) {
  const Ref<Context> context = new_context();
  // As many rounds as x has positive elements, while the sum of the state is below 100.
  const Message body =
      typed_graph({node("Add", {"a", "a"}, {"next"}), node("ReduceSum", {"next"}, {"total"}),
                   node("Less", {"total", "limit"}, {"below"}),
                   node("Reshape", {"below", "scalar"}, {"again"})},
                  {value("i", tensor_type(kInt64Type, {})), value("c", tensor_type(kBoolType, {})),
                   floats("a", {dim(2)})},
                  {"again", "next"});
  const Ref<LoadedModel> model = load(
      context,
      typed_graph(
          {node("Greater", {"x", "zero"}, {"is_positive"}),
           with(node("Cast", {"is_positive"}, {"ones"}), int_attribute("to", kInt64Type)),
           node("ReduceSum", {"ones"}, {"sum"}), node("Reshape", {"sum", "scalar"}, {"m"}),
           with(node("Loop", {"m", "", "start"}, {"y"}), graph_attribute("body", body))},
          {floats("x", {dim("N"), dim(1)}), floats("start", {dim(2)})}, {"y"},
          {float_tensor("zero", {}, {0}), float_tensor("limit", {}, {100}), int64s("scalar", {})}));
  const auto run = [&](const std::vector<float>& x, const std::vector<float>& start) {
    const Tensor column = tensor_of(context, {std::ssize(x), 1}, x);
    return reals_of(host_tensor(model->run({column, tensor_of(context, {2}, start)})[0]));
  };
  EXPECT_EQ(run({1, -1, 1}, {1, 2}), (std::vector<double>{4, 8}));
  EXPECT_EQ(run({-1, -1, -1}, {1, 2}), (std::vector<double>{1, 2}));
  EXPECT_EQ(run({1, 1, 1, 1, 1, 1, 1, 1}, {10, 20}), (std::vector<double>{40, 80}));
  EXPECT_EQ(run({1, 1, 1, 1}, {1, 2}), (std::vector<double>{16, 32}));
}

// A loop of as many rounds as "m" says, which makes a of x: a half more in each of them.
Message counted_loop() {
  const Message body =
      typed_graph({node("Identity", {"c"}, {"again"}), node("Mul", {"a", "half"}, {"less"}),
                   node("Add", {"less", "one"}, {"next"})},
                  {value("i", tensor_type(kInt64Type, {})), value("c", tensor_type(kBoolType, {})),
                   floats("a", {dim(2)})},
                  {"again", "next"});
  return typed_graph({with(node("Loop", {"m", "", "x"}, {"y"}), graph_attribute("body", body))},
                     {floats("x", {dim(2)}), value("m", tensor_type(kInt64Type, {}))}, {"y"},
                     {float_tensor("half", {}, {0.5f}), float_tensor("one", {}, {1})});
}

// Known before the run or in it, few or more than anybody unrolls.
TEST(Session, LoopsTakeAnyNumberOfRounds) {
  const Ref<Context> context = new_context();
  const Ref<LoadedModel> model = load(context, counted_loop());
  const Ref<const TensorProgram> program = model->compile({{2}, {}});
  for (const int64_t rounds : {0, 1, 3, 200, 70'000}) {
    const Tensor m = full(context, kInt64, {}, static_cast<double>(rounds));
    const Tensor x = tensor_of(context, {2}, {10, 2});
    const double want = rounds > 100 ? 2 : 2 + 8 * std::pow(0.5, rounds);
    EXPECT_EQ(reals_of(host_tensor(model->run({x, m})[0])), (std::vector<double>{want, 2}));
    TensorRun run(context, program);
    run.set_input(0, x);
    run.set_input(1, m);
    run.execute();
    float got[2];
    run.read_output(0, got);
    EXPECT_EQ(std::vector<double>(got, got + 2), (std::vector<double>{want, 2}));
  }
}

// The numbers below that of the round are added up: their count is a shape, which unrolling knows.
TEST(Session, LoopsAreUnrolledWhereTheRoundDecidesAShape) {
  const Ref<Context> context = new_context();
  const Message body = typed_graph(
      {node("Identity", {"c"}, {"again"}), node("Range", {"zero", "i", "step"}, {"below"}),
       with(node("ReduceSum", {"below"}, {"sum"}), int_attribute("keepdims", 0)),
       node("Add", {"a", "sum"}, {"next"})},
      {value("i", tensor_type(kInt64Type, {})), value("c", tensor_type(kBoolType, {})),
       value("a", tensor_type(kInt64Type, {dim(2)}))},
      {"again", "next"});
  const Ref<LoadedModel> model =
      load(context,
           typed_graph({with(node("Loop", {"m", "", "x"}, {"y"}), graph_attribute("body", body))},
                       {value("x", tensor_type(kInt64Type, {dim(2)}))}, {"y"},
                       {testing::int64_scalar("m", 6), testing::int64_scalar("zero", 0),
                        testing::int64_scalar("step", 1)}));
  // 0 + 0 + 1 + 3 + 6 + 10
  EXPECT_EQ(reals_of(host_tensor(model->run({tensor_of(context, Ints{1, -1})})[0])),
            (std::vector<double>{21, 19}));
}

TEST(Session, ALoopThatCollectsFromTooManyRoundsSaysSo) {
  const Ref<Context> context = new_context();
  const Message body =
      typed_graph({node("Identity", {"c"}, {"again"}), node("Neg", {"x"}, {"made"})},
                  {value("i", tensor_type(kInt64Type, {})), value("c", tensor_type(kBoolType, {}))},
                  {"again", "made"});
  const Ref<LoadedModel> model =
      load(context, typed_graph({with(node("Loop", {"m"}, {"y"}), graph_attribute("body", body))},
                                {floats("x", {dim(2)})}, {"y"},
                                {testing::int64_scalar("m", int64_t{1} << 32)}));
  expect_failure(failure_of([&] { model->compile({{2}}); }), Status::Unsupported,
                 {"4294967296 rounds", "collects", "at most 65536"});
}

TEST(Session, ProgramsHoldNoNodes) {
  const Ref<Context> context = new_context();
  const auto compile_some = [&] {
    const Ref<LoadedModel> model =
        load(context, typed_graph({node("Exp", {"x"}, {"e"}), node("Softmax", {"e"}, {"y"})},
                                  {floats("x", {dim("N"), dim(8)})}, {"y"}));
    std::vector<Ref<const TensorProgram>> programs;
    for (int64_t n = 1; n < 5; ++n) programs.push_back(model->compile({{n, 8}}));
    return programs;
  };
  // The first time fills the cache of kernels, which is bounded by itself.
  compile_some();
  const size_t before = context->graph().size();
  const std::vector<Ref<const TensorProgram>> kept = compile_some();
  EXPECT_EQ(context->graph().size(), before);
}

}  // namespace
}  // namespace tiny::onnx
