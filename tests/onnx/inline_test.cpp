#include "onnx/inline.h"

#include <gtest/gtest.h>

#include "onnx/check.h"
#include "onnx/reader.h"
#include "tests/onnx/model_writer.h"
#include "tests/support/failure.h"

namespace tiny::onnx {
namespace {

using testing::attribute;
using testing::graph;
using testing::graph_attribute;
using testing::int_attribute;
using testing::Message;
using testing::node;
using testing::opset;
using testing::shared;
using testing::with;

constexpr char kDomain[] = "local";

Message function(const std::string& name, const std::vector<std::string>& inputs,
                 const std::vector<std::string>& outputs, const std::vector<Message>& nodes) {
  namespace f = field::FunctionProto;
  Message m;
  m.text(f::name, name).text(f::domain, kDomain);
  for (const std::string& n : inputs) m.text(f::input, n);
  for (const std::string& n : outputs) m.text(f::output, n);
  for (const Message& n : nodes) m.message(f::node, n);
  return m.message(f::opset_import, opset("", 13)).message(f::opset_import, opset(kDomain, 1));
}

Model read(const Message& g, const std::vector<Message>& functions) {
  Message m = testing::model(g);
  m.message(field::ModelProto::opset_import, opset(kDomain, 1));
  for (const Message& f : functions) m.message(field::ModelProto::functions, f);
  return parse_model(shared(m));
}

// "Add(x,b)->y" for each node, subgraphs in brackets.
std::string text_of(const Graph& g) {
  std::vector<std::string> items;
  for (const Node& n : g.nodes) {
    std::string item = cat(n.op_type, "(", join(n.inputs, ","), ")->", join(n.outputs, ","));
    for (const Attribute& a : n.attributes)
      for (const Graph& inner : a.graphs) item += cat("[", text_of(inner), "]");
    items.push_back(item);
  }
  return join(items, " ");
}

Model inlined(const Message& g, const std::vector<Message>& functions, const Limits& limits = {}) {
  Model model = read(g, functions);
  inline_functions(model, limits);
  EXPECT_TRUE(model.functions.empty());
  const std::string before = text_of(model.graph);
  check_and_sort(model);
  EXPECT_EQ(text_of(model.graph), before);
  return model;
}

Error error_of(const Message& g, const std::vector<Message>& functions, const Limits& limits = {}) {
  return tiny::testing::failure_of([&] { inlined(g, functions, limits); });
}

TEST(Inline, ACallBecomesItsBody) {
  const Message f =
      function("twice", {"a"}, {"b"}, {node("Relu", {"a"}, {"t"}), node("Neg", {"t"}, {"b"})});
  const Model model =
      inlined(graph({node("twice", {"x"}, {"y"}, kDomain), node("twice", {"y"}, {"z"}, kDomain)},
                    {"x"}, {"z"}),
              {f});
  EXPECT_EQ(text_of(model.graph),
            "Relu(x)->call_1/twice/t Neg(call_1/twice/t)->y "
            "Relu(y)->call_2/twice/t Neg(call_2/twice/t)->z");
  EXPECT_EQ(model.graph.nodes[0].version, 13);  // of the function's own imports
}

TEST(Inline, MadeNamesAvoidTheModels) {
  const Message f =
      function("f", {"a"}, {"b"}, {node("Relu", {"a"}, {"t"}), node("Neg", {"t"}, {"b"})});
  const Model model =
      inlined(graph({node("Abs", {"x"}, {"call_1/f/t"}), node("f", {"call_1/f/t"}, {"y"}, kDomain)},
                    {"x"}, {"y"}),
              {f});
  EXPECT_EQ(text_of(model.graph),
            "Abs(x)->call_1/f/t Relu(call_1/f/t)->call_2/f/t Neg(call_2/f/t)->y");
}

TEST(Inline, CallsInsideFunctionsAndSubgraphsAreExpanded) {
  const Message inner = function("inner", {"a"}, {"b"}, {node("Relu", {"a"}, {"b"})});
  const Message outer =
      function("outer", {"a"}, {"b"},
               {node("inner", {"a"}, {"t"}, kDomain), node("inner", {"t"}, {"b"}, kDomain)});
  const Message branch = graph({node("outer", {"x"}, {"r"}, kDomain)}, {}, {"r"});
  const Model model =
      inlined(graph({with(node("If", {"c"}, {"y"}), graph_attribute("then_branch", branch))},
                    {"c", "x"}, {"y"}),
              {inner, outer});
  EXPECT_EQ(text_of(model.graph), "If(c)->y[Relu(x)->call_1/outer/t Relu(call_1/outer/t)->r]");
}

TEST(Inline, SubgraphsOfABodySeeItsNames) {
  const Message branch = graph({node("Add", {"a", "t"}, {"r"})}, {}, {"r"});
  const Message f = function(
      "f", {"a", "c"}, {"b"},
      {node("Relu", {"a"}, {"t"}), with(node("If", {"c"}, {"b"}), graph_attribute("g", branch))});
  const Model model =
      inlined(graph({node("f", {"x", "k"}, {"y"}, kDomain)}, {"x", "k"}, {"y"}), {f});
  EXPECT_EQ(text_of(model.graph), "Relu(x)->call_1/f/t If(k)->y[Add(x,call_1/f/t)->call_1/f/r]");
  EXPECT_EQ(model.graph.nodes[1].attributes[0].graphs[0].outputs[0].name, "call_1/f/r");
}

TEST(Inline, AttributesComeFromTheCallTheDefaultOrNobody) {
  namespace a = field::AttributeProto;
  Message f = function(
      "f", {"a"}, {"b"},
      {with(with(with(node("Op", {"a"}, {"b"}), attribute("alpha", 1).text(a::ref_attr_name, "p")),
                 attribute("beta", 1).text(a::ref_attr_name, "q")),
            attribute("gamma", 1).text(a::ref_attr_name, "r"))});
  f.text(field::FunctionProto::attribute, "p");
  f.message(field::FunctionProto::attribute_proto, attribute("q", 1).real(a::f, 0.25f));
  const Model model =
      inlined(graph({with(node("f", {"x"}, {"y"}, kDomain), attribute("p", 1).real(a::f, 4))},
                    {"x"}, {"y"}),
              {f});
  const Node& op = model.graph.nodes.at(0);
  EXPECT_EQ(op.attribute("alpha")->f, 4);
  EXPECT_EQ(op.attribute("beta")->f, 0.25f);
  EXPECT_EQ(op.attribute("gamma"), nullptr);
  EXPECT_EQ(op.attribute("p"), nullptr);
}

TEST(Inline, AnAttributeOfTheWrongTypeIsRefused) {
  namespace a = field::AttributeProto;
  const Message f =
      function("f", {"a"}, {"b"},
               {with(node("Op", {"a"}, {"b"}), attribute("alpha", 1).text(a::ref_attr_name, "p"))});
  const Error e = error_of(
      graph({with(node("f", {"x"}, {"y"}, kDomain), int_attribute("p", 4))}, {"x"}, {"y"}), {f});
  EXPECT_EQ(e.status(), Status::InvalidModel);
  EXPECT_NE(e.message().find("is of type INT, the function wants FLOAT"), std::string::npos);
}

TEST(Inline, InputsAndOutputsMayBeLeftOut) {
  const Message f = function("f", {"a", "b", "c"}, {"p", "q"},
                             {node("Clip", {"a", "b", "c"}, {"p"}), node("Neg", {"p"}, {"q"})});
  const Model model = inlined(
      graph({node("f", {"x", "", "x"}, {"", "y"}, kDomain), node("f", {"x"}, {"z"}, kDomain)},
            {"x"}, {"y", "z"}),
      {f});
  EXPECT_EQ(text_of(model.graph),
            "Clip(x,,x)->call_1/f/p Neg(call_1/f/p)->y "
            "Clip(x,,)->z Neg(z)->call_2/f/q");
}

TEST(Inline, AnInputPassedThroughIsAnIdentity) {
  const Message f = function("f", {"a"}, {"a", "b", "b"}, {node("Neg", {"a"}, {"b"})});
  const Model model =
      inlined(graph({node("f", {"x"}, {"p", "q", "r"}, kDomain)}, {"x"}, {"p", "q", "r"}), {f});
  EXPECT_EQ(text_of(model.graph), "Neg(x)->q Identity(x)->p Identity(q)->r");
}

TEST(Inline, RecursionIsRefused) {
  const Message f = function("f", {"a"}, {"b"}, {node("g", {"a"}, {"b"}, kDomain)});
  const Message g = function("g", {"a"}, {"b"}, {node("f", {"a"}, {"b"}, kDomain)});
  const Error e = error_of(graph({node("f", {"x"}, {"y"}, kDomain)}, {"x"}, {"y"}), {f, g});
  EXPECT_EQ(e.status(), Status::InvalidModel);
  EXPECT_NE(e.message().find("calls itself"), std::string::npos) << e.message();
}

TEST(Inline, RecursionThroughASubgraphIsRefused) {
  const Message branch = graph({node("f", {"a"}, {"r"}, kDomain)}, {}, {"r"});
  const Message f =
      function("f", {"a"}, {"b"}, {with(node("If", {"a"}, {"b"}), graph_attribute("g", branch))});
  const Error e = error_of(graph({node("f", {"x"}, {"y"}, kDomain)}, {"x"}, {"y"}), {f});
  EXPECT_EQ(e.status(), Status::InvalidModel) << e.message();
}

TEST(Inline, CallsThatMultiplyStopAtTheLimit) {
  // Thirty functions, each of which calls the next one twice: a billion nodes.
  std::vector<Message> functions;
  for (int i = 0; i < 30; ++i) {
    const std::string next = cat("f", i + 1);
    functions.push_back(
        function(cat("f", i), {"a"}, {"b"},
                 {node(next, {"a"}, {"t"}, kDomain), node(next, {"t"}, {"b"}, kDomain)}));
  }
  functions.push_back(function("f30", {"a"}, {"b"}, {node("Neg", {"a"}, {"b"})}));
  Limits limits;
  limits.nodes = 10000;
  EXPECT_EQ(error_of(graph({node("f0", {"x"}, {"y"}, kDomain)}, {"x"}, {"y"}), functions, limits)
                .status(),
            Status::Limit);
}

TEST(Inline, DeepCallsStopAtTheLimit) {
  std::vector<Message> functions;
  for (int i = 0; i < 100; ++i)
    functions.push_back(
        function(cat("f", i), {"a"}, {"b"}, {node(cat("f", i + 1), {"a"}, {"b"}, kDomain)}));
  functions.push_back(function("f100", {"a"}, {"b"}, {node("Neg", {"a"}, {"b"})}));
  EXPECT_EQ(error_of(graph({node("f0", {"x"}, {"y"}, kDomain)}, {"x"}, {"y"}), functions).status(),
            Status::Limit);
}

TEST(Inline, BrokenFunctionsAreRefusedWhenRead) {
  const Message use = graph({}, {}, {});
  const auto status = [&](const std::vector<Message>& functions) {
    return error_of(use, functions).status();
  };
  EXPECT_EQ(status({function("f", {"a"}, {"b"}, {node("Neg", {"q"}, {"b"})})}),
            Status::InvalidModel);
  EXPECT_EQ(status({function("f", {"a"}, {"b"}, {})}), Status::InvalidModel);
  EXPECT_EQ(status({function("f", {"a", "a"}, {}, {})}), Status::InvalidModel);
  const Message f = function("f", {}, {}, {});
  EXPECT_EQ(status({f, f}), Status::InvalidModel);
  EXPECT_EQ(status({f}), Status::Ok);
  const Message g = function("f", {"a"}, {}, {});
  EXPECT_EQ(error_of(graph({node("f", {"x", "x"}, {}, kDomain)}, {"x"}, {}), {g}).status(),
            Status::InvalidModel);
}

}  // namespace
}  // namespace tiny::onnx
