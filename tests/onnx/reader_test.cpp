#include "onnx/reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "onnx/check.h"
#include "onnx/inline.h"
#include "tests/onnx/model_writer.h"
#include "tests/support/environment.h"
#include "tests/support/failure.h"

namespace tiny::onnx {
namespace {

using testing::attribute;
using testing::dim;
using testing::graph;
using testing::graph_attribute;
using testing::int_attribute;
using testing::kFloatType;
using testing::kInt64Type;
using testing::Message;
using testing::node;
using testing::opset;
using testing::shared;
using testing::tensor;
using testing::value;
using testing::with;
using tiny::testing::expect_failure;
using tiny::testing::failure_of;

// The status and message of reading the bytes; Ok if they are read.
Error reading(const SharedBytes& bytes, const Limits& limits = {}) {
  return failure_of([&] { parse_model(bytes, "", limits); });
}

Error reading(const Message& message, const Limits& limits = {}) {
  return reading(shared(message), limits);
}

// One of each: weights, types, attributes of every kind, a subgraph.
Message sample() {
  namespace g = field::GraphProto;
  namespace a = field::AttributeProto;
  namespace t = field::TensorProto;
  const Message weight = tensor("w", kFloatType, {2, 3}).text(t::raw_data, std::string(24, '\x01'));
  const Message steps = tensor("steps", kInt64Type, {3}).packed(t::int64_data, {4, -5, 6});
  Message conv = node("Conv", {"x", "w"}, {"y"});
  conv.text(field::NodeProto::name, "layer1/conv");
  conv = with(conv, attribute("pads", 7).packed(a::ints, {1, 2, 3}).number(a::ints, -4));
  conv = with(conv, attribute("alpha", 1).real(a::f, 0.5f));
  conv = with(conv, attribute("auto_pad", 3).text(a::s, "SAME_UPPER"));
  conv = with(conv, int_attribute("group", 7));
  conv = with(conv, attribute("scales", 6).packed_reals(a::floats, {1, 2}).real(a::floats, 3));
  conv = with(conv, attribute("words", 8).text(a::strings, "a").text(a::strings, "b"));
  conv = with(conv, attribute("value", 4).message(a::t, steps));
  conv = with(conv, attribute("kind", 13).message(a::tp, testing::tensor_type(kFloatType, {})));
  const Message branch = graph({node("Relu", {"y"}, {"inner"})}, {}, {"inner"});
  Message choice = node("If", {"c"}, {"z"});
  choice = with(choice, graph_attribute("then_branch", branch));
  choice = with(choice, graph_attribute("else_branch", branch));
  Message m;
  m.message(g::node, conv).message(g::node, choice).text(g::name, "main");
  m.message(g::input,
            value("x", testing::tensor_type(kFloatType, {dim(1), dim("N"), Message(), dim(-1)})));
  m.message(g::input, value("c"));
  m.message(g::output, value("z"));
  m.message(g::initializer, weight);
  return testing::model(m);
}

TEST(Reader, ReadsEveryPartOfAModel) {
  const Model model = parse_model(shared(sample()));
  EXPECT_EQ(model.ir_version, 8);
  ASSERT_EQ(model.opset_imports.size(), 1u);
  EXPECT_EQ(model.graph.name, "main");
  ASSERT_EQ(model.graph.nodes.size(), 2u);
  const Node& conv = model.graph.nodes[0];
  EXPECT_EQ(conv.version, 17);
  EXPECT_EQ(describe(conv), "Conv \"layer1/conv\"");
  EXPECT_EQ(conv.inputs, (std::vector<std::string>{"x", "w"}));
  EXPECT_EQ(conv.attribute("pads")->ints, (Ints{1, 2, 3, -4}));
  EXPECT_EQ(conv.attribute("alpha")->f, 0.5f);
  EXPECT_EQ(conv.attribute("auto_pad")->s, "SAME_UPPER");
  EXPECT_EQ(conv.attribute("group")->i, 7);
  EXPECT_EQ(conv.attribute("scales")->floats, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(conv.attribute("words")->strings, (std::vector<std::string>{"a", "b"}));
  const TensorData& steps = conv.attribute("value")->tensors.at(0);
  ASSERT_EQ(steps.bytes.size(), 24);
  int64_t second = 0;
  std::memcpy(&second, steps.bytes.data() + 8, 8);
  EXPECT_EQ(second, -5);
  EXPECT_EQ(conv.attribute("absent"), nullptr);
  const Node& choice = model.graph.nodes[1];
  EXPECT_EQ(choice.attribute("then_branch")->graphs.at(0).nodes.at(0).version, 17);
  EXPECT_EQ(to_string(model.graph.inputs[0].type), "tensor(FLOAT)[1, N, ?, ?]");
  EXPECT_EQ(to_string(model.graph.inputs[1].type), "untyped");
  EXPECT_EQ(to_string(AttributeType::TypeProtos), std::string("TYPE_PROTOS"));
}

TEST(Reader, WeightsAreViewsThatKeepTheFileAlive) {
  const SharedBytes bytes = shared(sample());
  const std::byte* begin = bytes.data();
  const std::byte* end = begin + bytes.size();
  SharedBytes weight;
  {
    const Model model = parse_model(bytes);
    weight = model.graph.initializers.at(0).bytes;
  }
  EXPECT_GE(weight.data(), begin);
  EXPECT_LE(weight.data() + weight.size(), end);
  EXPECT_EQ(weight.owner(), bytes.owner());
  EXPECT_EQ(weight.view()[23], std::byte{1});
}

TEST(Reader, NestedTypesAreRecorded) {
  namespace y = field::TypeProto;
  const Message inner = testing::tensor_type(kInt64Type, {dim("N")});
  const Message sequence =
      Message().message(y::sequence_type, Message().message(field::TypeSequence::elem_type, inner));
  const Message optional = Message().message(
      y::optional_type, Message().message(field::TypeOptional::elem_type, sequence));
  const Message map = Message().message(
      y::map_type,
      Message().number(field::TypeMap::key_type, 8).message(field::TypeMap::value_type, inner));
  Message g = graph({}, {}, {});
  g.message(field::GraphProto::input, value("a", optional));
  g.message(field::GraphProto::input, value("b", map));
  const Model model = parse_model(shared(testing::model(g)));
  EXPECT_EQ(to_string(model.graph.inputs[0].type), "optional(seq(tensor(INT64)[N]))");
  EXPECT_EQ(to_string(model.graph.inputs[1].type), "map(STRING, tensor(INT64)[N])");
}

TEST(Reader, NodesOutOfOrderAreSorted) {
  const Model model = parse_model(
      shared(testing::model(graph({node("Add", {"a", "b"}, {"c"}), node("Relu", {"x"}, {"a"}),
                                   node("Neg", {"a"}, {"b"}), node("Abs", {"x"}, {"d"})},
                                  {"x"}, {"c", "d"}))));
  std::vector<std::string> ops;
  for (const Node& n : model.graph.nodes) ops.push_back(n.op_type);
  EXPECT_EQ(ops, (std::vector<std::string>{"Relu", "Neg", "Add", "Abs"}));
}

TEST(Reader, ANameTakenBySubgraphsOrdersTheirNodes) {
  namespace a = field::AttributeProto;
  const Message deep = graph({node("Relu", {"late"}, {"r"})}, {}, {"r"});
  const Message middle =
      graph({with(node("If", {"c"}, {"m"}), graph_attribute("then_branch", deep))}, {}, {"m"});
  const Model model = parse_model(shared(
      testing::model(graph({with(node("If", {"c"}, {"z"}), graph_attribute("then_branch", middle)),
                            node("Neg", {"x"}, {"late"})},
                           {"x", "c"}, {"z"}))));
  EXPECT_EQ(model.graph.nodes[0].op_type, "Neg");
}

TEST(Reader, ALongChainInReverseNeedsNoStack) {
  constexpr int kLength = 200000;
  Message g;
  for (int i = kLength; i-- > 0;)
    g.message(field::GraphProto::node,
              node("Relu", {i == 0 ? "x" : cat("v", i - 1)}, {cat("v", i)}));
  g.message(field::GraphProto::input, value("x"));
  const Model model = parse_model(shared(testing::model(g)));
  EXPECT_EQ(model.graph.nodes.front().inputs[0], "x");
  EXPECT_EQ(model.graph.nodes.back().outputs[0], cat("v", kLength - 1));
}

TEST(Reader, GraphMistakesAreNamed) {
  const auto of = [](const Message& g) { return reading(testing::model(g)); };
  expect_failure(of(graph({node("Add", {"x", "b"}, {"a"}), node("Neg", {"a"}, {"b"})}, {"x"}, {})),
                 Status::InvalidModel, {"cycle: Neg \"b\" -> Add \"a\""});
  expect_failure(of(graph({node("Add", {"a", "a"}, {"a"})}, {}, {})), Status::InvalidModel,
                 {"cycle: Add \"a\""});
  expect_failure(of(graph({node("Neg", {"q"}, {"a"})}, {}, {})), Status::InvalidModel,
                 {"Neg \"a\" uses \"q\", which nobody defines"});
  expect_failure(of(graph({}, {"x"}, {"y"})), Status::InvalidModel,
                 {"no node makes the graph output \"y\""});
  expect_failure(of(graph({node("Neg", {"x"}, {"x"})}, {"x"}, {})), Status::InvalidModel,
                 {"\"x\" is defined twice"});
  expect_failure(of(graph({node("Neg", {"x"}, {"a"}), node("Abs", {"x"}, {"a"})}, {"x"}, {})),
                 Status::InvalidModel, {"by Neg \"a\" and by Abs \"a\""});
  expect_failure(of(graph({}, {"x", "x"}, {})), Status::InvalidModel,
                 {"graph input \"x\" stands twice"});
  expect_failure(of(graph({}, {}, {}, {tensor("", kFloatType, {0})})), Status::InvalidModel,
                 {"initializer 0 of graph \"\" has no name"});
  expect_failure(of(graph({}, {"x", ""}, {}).text(field::GraphProto::name, "main")),
                 Status::InvalidModel, {"graph input 1 of graph \"main\" has no name"});
  expect_failure(of(graph({}, {"x"}, {"x", ""})), Status::InvalidModel,
                 {"graph output 1 of graph"});
  expect_failure(of(graph({node("", {}, {})}, {}, {})), Status::InvalidModel,
                 {"without an op_type"});
  expect_failure(of(graph({node("Foo", {}, {}, "com.example")}, {}, {})), Status::InvalidModel,
                 {"imports no operator set \"com.example\""});
  EXPECT_EQ(of(graph({}, {"x"}, {"x"}, {tensor("x", kFloatType, {0})})).status(), Status::Ok);
}

TEST(Reader, AttributeMistakesAreNamed) {
  const auto of = [](const Message& a) {
    return reading(testing::model(graph({with(node("Op", {}, {}), a)}, {}, {})));
  };
  namespace a = field::AttributeProto;
  expect_failure(of(attribute("k", 99)), Status::InvalidModel,
                 {"type 99, which is no attribute type"});
  expect_failure(of(attribute("k", 99)), Status::InvalidModel,
                 {"ModelProto.graph.node[0].attribute[0] at byte"});
  expect_failure(of(attribute("k", 0)), Status::InvalidModel, {"neither a type nor one value"});
  expect_failure(of(attribute("k", 5)), Status::InvalidModel, {"of type GRAPH has 0 values"});
  expect_failure(of(attribute("", 2)), Status::InvalidModel, {"without a name"});
  expect_failure(of(attribute("k", 0).text(a::ref_attr_name, "outer")), Status::InvalidModel,
                 {"outside of a function"});
  expect_failure(
      reading(testing::model(
          graph({with(with(node("Op", {}, {}), attribute("k", 2)), attribute("k", 2))}, {}, {}))),
      Status::InvalidModel, {"\"k\" stands twice"});
  EXPECT_EQ(of(attribute("k", 0).number(a::i, 3)).status(), Status::Ok);
}

TEST(Reader, FormatMistakesNameThePlace) {
  expect_failure(reading(Message()), Status::InvalidModel, {"empty"});
  expect_failure(reading(Message().raw("\x08\x01")), Status::InvalidModel, {"holds no graph"});
  expect_failure(reading(Message().raw("\x3a\x7f")), Status::InvalidModel,
                 {"ModelProto.graph at byte 1: a length of 127 bytes, but 0 are left"});
  expect_failure(reading(Message().raw("\x79")), Status::InvalidModel,
                 {"the bytes end inside a value"});
  expect_failure(reading(Message().raw("\x3b")), Status::InvalidModel, {"unknown wire type"});
  expect_failure(reading(Message().raw(std::string("\x38\x01", 2))), Status::InvalidModel,
                 {"wire type 0"});
  // A length with more than 32 bits must not be cut to what is left.
  expect_failure(reading(Message().raw(std::string("\x3a\x80\x80\x80\x80\x80\x80\x80\x01", 9))),
                 Status::InvalidModel, {"a length of 562949953421312 bytes"});
  Message two = testing::model(graph({}, {}, {}));
  two.message(field::ModelProto::graph, graph({}, {}, {}));
  expect_failure(reading(two), Status::InvalidModel, {"second graph"});
  expect_failure(reading(testing::model(graph({}, {std::string("a\0b", 3)}, {}))),
                 Status::InvalidModel, {"not UTF-8"});
  expect_failure(reading(testing::model(graph({}, {"\xC0\x80"}, {}))), Status::InvalidModel,
                 {"not UTF-8"});
  expect_failure(reading(testing::model(graph({}, {"\xED\xA0\x80"}, {}))), Status::InvalidModel,
                 {"not UTF-8"});
  EXPECT_EQ(reading(testing::model(graph({}, {"\xC3\xA4\xF0\x9F\x98\x80"}, {}))).status(),
            Status::Ok);
}

TEST(Reader, ANewerFormatIsRefused) {
  const auto of = [](int64_t version) {
    return reading(Message()
                       .number(field::ModelProto::ir_version, version)
                       .message(field::ModelProto::graph, graph({}, {}, {})));
  };
  EXPECT_EQ(of(kNewestIrVersion).status(), Status::Ok);
  expect_failure(of(kNewestIrVersion + 1), Status::Unsupported, {"IR version 14"});
}

TEST(Reader, LimitsStopHostileCounts) {
  Message many;
  for (int i = 0; i < 1000; ++i) many.message(field::GraphProto::node, node("Op", {}, {}));
  Limits limits;
  limits.nodes = 999;
  expect_failure(reading(testing::model(many), limits), Status::Limit, {"nodes = 999"});
  limits = {};
  limits.structure_bytes = 10000;
  expect_failure(reading(testing::model(many), limits), Status::Limit, {"structure_bytes"});
  limits = {};
  limits.model_bytes = 10;
  expect_failure(reading(testing::model(many), limits), Status::Limit, {"model_bytes"});
  limits = {};
  limits.name_bytes = 3;
  expect_failure(reading(testing::model(graph({}, {"long"}, {})), limits), Status::Limit,
                 {"name_bytes"});
  limits = {};
  limits.attribute_bytes = 16;
  expect_failure(
      reading(testing::model(
                  graph({with(node("Op", {}, {}),
                              attribute("k", 7).packed(field::AttributeProto::ints, {1, 2, 3}))},
                        {}, {})),
              limits),
      Status::Limit, {"more than 2 values"});
}

TEST(Reader, DeepNestingIsALimitNotAStackOverflow) {
  Message inner = graph({}, {}, {});
  for (int i = 0; i < 3000; ++i)
    inner = graph({with(node("If", {}, {}), graph_attribute("b", inner))}, {}, {});
  expect_failure(reading(testing::model(inner)), Status::Limit, {"subgraph_depth = 64"});
  Message type = testing::tensor_type(kFloatType, {});
  for (int i = 0; i < 3000; ++i)
    type = Message().message(field::TypeProto::sequence_type,
                             Message().message(field::TypeSequence::elem_type, type));
  Message g = graph({}, {}, {});
  g.message(field::GraphProto::input, value("x", type));
  expect_failure(reading(testing::model(g)), Status::Limit, {"subgraph_depth = 64"});
}

TEST(Reader, DepthSixtyFourIsRead) {
  Message inner = graph({}, {}, {});
  for (int i = 0; i < 63; ++i)
    inner = graph({with(node("If", {}, {}), graph_attribute("b", inner))}, {}, {});
  EXPECT_EQ(reading(testing::model(inner)).status(), Status::Ok);
}

// Whatever the bytes are, the outcome is a model or one of these.
void expect_model_or_error(const std::string& bytes) {
  const Status status = reading(SharedBytes::copy(bytes)).status();
  EXPECT_TRUE(status == Status::Ok || status == Status::InvalidModel || status == Status::Limit ||
              status == Status::Unsupported)
      << status_name(status);
}

TEST(Reader, EveryTruncationEndsInAModelOrAnError) {
  const std::string bytes = sample().bytes();
  for (size_t size = 0; size < bytes.size(); ++size) expect_model_or_error(bytes.substr(0, size));
}

TEST(Reader, EveryChangedByteEndsInAModelOrAnError) {
  const std::string bytes = sample().bytes();
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int value : {0x00, 0x01, 0x7F, 0x80, 0xFF, bytes[i] ^ 0x08, bytes[i] + 1, bytes[i] - 1}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(value);
      expect_model_or_error(changed);
    }
}

// The wheel's own models: real files, written by others.
TEST(Reader, ReadsTheLightModelsOfTheOnnxWheel) {
  const std::filesystem::path package = tiny::testing::onnx_package();
  if (package.empty()) GTEST_SKIP() << tiny::testing::kNoOnnxPackage;
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(package / "backend/test/data/light")) {
    if (entry.path().extension() != ".onnx") continue;
    Model model = read_model(entry.path());
    EXPECT_GT(model.graph.nodes.size(), 20u) << entry.path();
    EXPECT_FALSE(model.graph.outputs.empty()) << entry.path();
    ++count;
  }
  EXPECT_EQ(count, 9);
}

// Thousands of small models of every operator, subgraphs among them.
TEST(Reader, ReadsEveryTestModelOfTheOnnxWheel) {
  const std::filesystem::path package = tiny::testing::onnx_package();
  if (package.empty()) GTEST_SKIP() << tiny::testing::kNoOnnxPackage;
  int models = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(package / "backend/test/data")) {
    if (entry.path().extension() != ".onnx") continue;
    try {
      Model model = read_model(entry.path());
      ++models;
      inline_functions(model);
      check_and_sort(model);
    } catch (const Error& e) {
      ADD_FAILURE() << e.message();
    }
  }
  EXPECT_GT(models, 1000);
}

TEST(Reader, TruncatedRealModelsEndInErrors) {
  const std::filesystem::path package = tiny::testing::onnx_package();
  if (package.empty()) GTEST_SKIP() << tiny::testing::kNoOnnxPackage;
  const SharedBytes file = map_file(package / "backend/test/data/light/light_squeezenet.onnx");
  for (int64_t size = 0; size < file.size(); size += 1009)
    expect_failure(reading(file.part(0, size)), Status::InvalidModel);
}

TEST(Reader, AMissingFileIsAnIoError) {
  expect_failure(failure_of([] { read_model("/nonexistent/model.onnx"); }), Status::Io);
}

}  // namespace
}  // namespace tiny::onnx
