#include "onnx/reader.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "onnx/check.h"
#include "onnx/inline.h"
#include "tests/onnx/model_writer.h"

namespace tiny::onnx {
namespace {

using testing::attribute;
using testing::dim;
using testing::graph;
using testing::Message;
using testing::node;
using testing::opset;
using testing::shared;
using testing::tensor;
using testing::value;
using testing::with;

constexpr int64_t kFloatType = 1;
constexpr int64_t kInt64Type = 7;

// The status and message of reading the bytes; Ok if they are read.
Error reading(const SharedBytes& bytes, const Limits& limits = {}) {
  try {
    parse_model(bytes, "", limits);
  } catch (const Error& e) {
    return e;
  }
  return Error(Status::Ok, "");
}

Error reading(const Message& message, const Limits& limits = {}) {
  return reading(shared(message), limits);
}

#define EXPECT_ERROR(error, wanted, text)                                \
  {                                                                      \
    const Error e = (error);                                             \
    EXPECT_EQ(e.status(), Status::wanted) << e.message();                \
    EXPECT_NE(e.message().find(text), std::string::npos) << e.message(); \
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
  conv = with(conv, attribute("group", 2).number(a::i, 7));
  conv = with(conv, attribute("scales", 6).packed_reals(a::floats, {1, 2}).real(a::floats, 3));
  conv = with(conv, attribute("words", 8).text(a::strings, "a").text(a::strings, "b"));
  conv = with(conv, attribute("value", 4).message(a::t, steps));
  conv = with(conv, attribute("kind", 13).message(a::tp, testing::tensor_type(kFloatType, {})));
  const Message branch = graph({node("Relu", {"y"}, {"inner"})}, {}, {"inner"});
  Message choice = node("If", {"c"}, {"z"});
  choice = with(choice, attribute("then_branch", 5).message(a::g, branch));
  choice = with(choice, attribute("else_branch", 5).message(a::g, branch));
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
  const Message middle = graph(
      {with(node("If", {"c"}, {"m"}), attribute("then_branch", 5).message(a::g, deep))}, {}, {"m"});
  const Model model = parse_model(shared(testing::model(
      graph({with(node("If", {"c"}, {"z"}), attribute("then_branch", 5).message(a::g, middle)),
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
  EXPECT_ERROR(of(graph({node("Add", {"x", "b"}, {"a"}), node("Neg", {"a"}, {"b"})}, {"x"}, {})),
               InvalidModel, "cycle: Neg \"b\" -> Add \"a\"");
  EXPECT_ERROR(of(graph({node("Add", {"a", "a"}, {"a"})}, {}, {})), InvalidModel,
               "cycle: Add \"a\"");
  EXPECT_ERROR(of(graph({node("Neg", {"q"}, {"a"})}, {}, {})), InvalidModel,
               "Neg \"a\" uses \"q\", which nobody defines");
  EXPECT_ERROR(of(graph({}, {"x"}, {"y"})), InvalidModel, "no node makes the graph output \"y\"");
  EXPECT_ERROR(of(graph({node("Neg", {"x"}, {"x"})}, {"x"}, {})), InvalidModel,
               "\"x\" is defined twice");
  EXPECT_ERROR(of(graph({node("Neg", {"x"}, {"a"}), node("Abs", {"x"}, {"a"})}, {"x"}, {})),
               InvalidModel, "by Neg \"a\" and by Abs \"a\"");
  EXPECT_ERROR(of(graph({}, {"x", "x"}, {})), InvalidModel, "graph input \"x\" stands twice");
  EXPECT_ERROR(of(graph({}, {}, {}, {tensor("", kFloatType, {0})})), InvalidModel,
               "initializer 0 of graph \"\" has no name");
  EXPECT_ERROR(of(graph({}, {"x", ""}, {}).text(field::GraphProto::name, "main")), InvalidModel,
               "graph input 1 of graph \"main\" has no name");
  EXPECT_ERROR(of(graph({}, {"x"}, {"x", ""})), InvalidModel, "graph output 1 of graph");
  EXPECT_ERROR(of(graph({node("", {}, {})}, {}, {})), InvalidModel, "without an op_type");
  EXPECT_ERROR(of(graph({node("Foo", {}, {}, "com.example")}, {}, {})), InvalidModel,
               "imports no operator set \"com.example\"");
  EXPECT_EQ(of(graph({}, {"x"}, {"x"}, {tensor("x", kFloatType, {0})})).status(), Status::Ok);
}

TEST(Reader, AttributeMistakesAreNamed) {
  const auto of = [](const Message& a) {
    return reading(testing::model(graph({with(node("Op", {}, {}), a)}, {}, {})));
  };
  namespace a = field::AttributeProto;
  EXPECT_ERROR(of(attribute("k", 99)), InvalidModel, "type 99, which is no attribute type");
  EXPECT_ERROR(of(attribute("k", 99)), InvalidModel,
               "ModelProto.graph.node[0].attribute[0] at byte");
  EXPECT_ERROR(of(attribute("k", 0)), InvalidModel, "neither a type nor one value");
  EXPECT_ERROR(of(attribute("k", 5)), InvalidModel, "of type GRAPH has 0 values");
  EXPECT_ERROR(of(attribute("", 2)), InvalidModel, "without a name");
  EXPECT_ERROR(of(attribute("k", 0).text(a::ref_attr_name, "outer")), InvalidModel,
               "outside of a function");
  EXPECT_ERROR(
      reading(testing::model(
          graph({with(with(node("Op", {}, {}), attribute("k", 2)), attribute("k", 2))}, {}, {}))),
      InvalidModel, "\"k\" stands twice");
  EXPECT_EQ(of(attribute("k", 0).number(a::i, 3)).status(), Status::Ok);
}

TEST(Reader, FormatMistakesNameThePlace) {
  EXPECT_ERROR(reading(Message()), InvalidModel, "empty");
  EXPECT_ERROR(reading(Message().raw("\x08\x01")), InvalidModel, "holds no graph");
  EXPECT_ERROR(reading(Message().raw("\x3a\x7f")), InvalidModel,
               "ModelProto.graph at byte 1: a length of 127 bytes, but 0 are left");
  EXPECT_ERROR(reading(Message().raw("\x79")), InvalidModel, "the bytes end inside a value");
  EXPECT_ERROR(reading(Message().raw("\x3b")), InvalidModel, "unknown wire type");
  EXPECT_ERROR(reading(Message().raw(std::string("\x38\x01", 2))), InvalidModel, "wire type 0");
  // A length with more than 32 bits must not be cut to what is left.
  EXPECT_ERROR(reading(Message().raw(std::string("\x3a\x80\x80\x80\x80\x80\x80\x80\x01", 9))),
               InvalidModel, "a length of 562949953421312 bytes");
  Message two = testing::model(graph({}, {}, {}));
  two.message(field::ModelProto::graph, graph({}, {}, {}));
  EXPECT_ERROR(reading(two), InvalidModel, "second graph");
  EXPECT_ERROR(reading(testing::model(graph({}, {std::string("a\0b", 3)}, {}))), InvalidModel,
               "not UTF-8");
  EXPECT_ERROR(reading(testing::model(graph({}, {"\xC0\x80"}, {}))), InvalidModel, "not UTF-8");
  EXPECT_ERROR(reading(testing::model(graph({}, {"\xED\xA0\x80"}, {}))), InvalidModel, "not UTF-8");
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
  EXPECT_ERROR(of(kNewestIrVersion + 1), Unsupported, "IR version 14");
}

TEST(Reader, LimitsStopHostileCounts) {
  Message many;
  for (int i = 0; i < 1000; ++i) many.message(field::GraphProto::node, node("Op", {}, {}));
  Limits limits;
  limits.nodes = 999;
  EXPECT_ERROR(reading(testing::model(many), limits), Limit, "nodes = 999");
  limits = {};
  limits.structure_bytes = 10000;
  EXPECT_ERROR(reading(testing::model(many), limits), Limit, "structure_bytes");
  limits = {};
  limits.model_bytes = 10;
  EXPECT_ERROR(reading(testing::model(many), limits), Limit, "model_bytes");
  limits = {};
  limits.name_bytes = 3;
  EXPECT_ERROR(reading(testing::model(graph({}, {"long"}, {})), limits), Limit, "name_bytes");
  limits = {};
  limits.attribute_bytes = 16;
  EXPECT_ERROR(reading(testing::model(graph(
                           {with(node("Op", {}, {}),
                                 attribute("k", 7).packed(field::AttributeProto::ints, {1, 2, 3}))},
                           {}, {})),
                       limits),
               Limit, "more than 2 values");
}

TEST(Reader, DeepNestingIsALimitNotAStackOverflow) {
  Message inner = graph({}, {}, {});
  for (int i = 0; i < 3000; ++i)
    inner = graph(
        {with(node("If", {}, {}), attribute("b", 5).message(field::AttributeProto::g, inner))}, {},
        {});
  EXPECT_ERROR(reading(testing::model(inner)), Limit, "subgraph_depth = 64");
  Message type = testing::tensor_type(kFloatType, {});
  for (int i = 0; i < 3000; ++i)
    type = Message().message(field::TypeProto::sequence_type,
                             Message().message(field::TypeSequence::elem_type, type));
  Message g = graph({}, {}, {});
  g.message(field::GraphProto::input, value("x", type));
  EXPECT_ERROR(reading(testing::model(g)), Limit, "subgraph_depth = 64");
}

TEST(Reader, DepthSixtyFourIsRead) {
  Message inner = graph({}, {}, {});
  for (int i = 0; i < 63; ++i)
    inner = graph(
        {with(node("If", {}, {}), attribute("b", 5).message(field::AttributeProto::g, inner))}, {},
        {});
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
  const char* package = std::getenv("ONNX_PACKAGE");
  if (!package || !*package) GTEST_SKIP() << "ONNX_PACKAGE names no onnx wheel";
  const std::filesystem::path folder = std::filesystem::path(package) / "backend/test/data/light";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
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
  const char* package = std::getenv("ONNX_PACKAGE");
  if (!package || !*package) GTEST_SKIP() << "ONNX_PACKAGE names no onnx wheel";
  const std::filesystem::path folder = std::filesystem::path(package) / "backend/test/data";
  int models = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
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
  const char* package = std::getenv("ONNX_PACKAGE");
  if (!package || !*package) GTEST_SKIP() << "ONNX_PACKAGE names no onnx wheel";
  const SharedBytes file =
      map_file(std::string(package) + "/backend/test/data/light/light_squeezenet.onnx");
  for (int64_t size = 0; size < file.size(); size += 1009)
    EXPECT_ERROR(reading(file.part(0, size)), InvalidModel, "");
}

TEST(Reader, AMissingFileIsAnIoError) {
  EXPECT_THROW(
      {
        try {
          read_model("/nonexistent/model.onnx");
        } catch (const Error& e) {
          EXPECT_EQ(e.status(), Status::Io);
          throw;
        }
      },
      Error);
}

}  // namespace
}  // namespace tiny::onnx
