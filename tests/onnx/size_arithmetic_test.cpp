// Sizes as exporters compute them: quotients and rests in integers, products that are divided
// again, elements of inputs.
#include <gtest/gtest.h>

#include "onnx/reader.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tests/onnx/shared_programs.h"

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
using testing::load;
using testing::Message;
using testing::node;
using testing::random_tensor;
using testing::text_attribute;
using testing::typed_graph;
using testing::with;
using tiny::testing::new_context;

// One element of a shape, as a list of one.
std::vector<Message> size_of(const std::string& of, const std::string& axis,
                             const std::string& to) {
  return {node("Shape", {of}, {to + "_all"}), node("Gather", {to + "_all", axis}, {to})};
}

std::vector<Message> joined(std::vector<std::vector<Message>> lists) {
  std::vector<Message> all;
  for (std::vector<Message>& list : lists)
    for (Message& one : list) all.push_back(std::move(one));
  return all;
}

std::vector<std::vector<Ints>> lengths(const Ints& all) {
  std::vector<std::vector<Ints>> out;
  for (const int64_t n : all) out.push_back({{2, n, 3}});
  return out;
}

// Div rounds towards 0, windows count by what is below: of sizes both are one.  The pad is
// (7 - n % 7) % 7, and what is padded so is divided into windows of 7.
TEST(SizeArithmetic, WindowsOfWhatIsFilledUpToAMultiple) {
  const Message graph = typed_graph(
      joined({size_of("x", "one", "n"),
              {node("Mod", {"n", "seven"}, {"rest"}), node("Sub", {"seven", "rest"}, {"left"}),
               node("Mod", {"left", "seven"}, {"more"}),
               with(node("Concat", {"zeros", "more", "zero"}, {"pads"}), int_attribute("axis", 0)),
               node("Pad", {"x", "pads"}, {"p"})},
              size_of("p", "one", "m"),
              {node("Div", {"m", "seven"}, {"count"}),
               with(node("Concat", {"two", "count", "seven", "three"}, {"parts"}),
                    int_attribute("axis", 0)),
               node("Reshape", {"p", "parts"}, {"w"}),
               with(node("Softmax", {"w"}, {"y"}), int_attribute("axis", 2))}}),
      {floats("x", {dim(2), dim("L"), dim(3)})}, {"y"},
      {int64s("one", {1}), int64s("zero", {0}), int64s("two", {2}), int64s("three", {3}),
       int64s("seven", {7}), int64s("zeros", {0, 0, 0, 0})});
  expect_same(graph, lengths({20, 21, 22, 40, 9, 7, 100}), 1);
}

// As a decoder of pictures pads what was halved and doubled: (t - u) / 2 before, the rest behind.
TEST(SizeArithmetic, HalvesOfWhatIsLeft) {
  const auto half = [](const std::string& from, const std::string& to) {
    return with(with(node("MaxPool", {from}, {to}), ints_attribute("kernel_shape", {2})),
                ints_attribute("strides", {2}));
  };
  const Message graph = typed_graph(
      joined({{half("x", "a"), half("a", "b"),
               with(with(node("Resize", {"b", "", "scales"}, {"u"}),
                         text_attribute("nearest_mode", "floor")),
                    text_attribute("coordinate_transformation_mode", "asymmetric"))},
              size_of("a", "axis", "t"),
              size_of("u", "axis", "n"),
              {node("Sub", {"t", "n"}, {"more"}), node("Div", {"more", "two"}, {"before"}),
               node("Sub", {"more", "before"}, {"behind"}),
               with(node("Concat", {"zeros", "before", "zeros", "behind"}, {"pads"}),
                    int_attribute("axis", 0)),
               node("Pad", {"u", "pads"}, {"p"}), node("Add", {"a", "p"}, {"y"})}}),
      {floats("x", {dim(1), dim(3), dim("L")})}, {"y"},
      {float_tensor("scales", {3}, {1, 1, 2}), int64s("axis", {2}), int64s("two", {2}),
       int64s("zeros", {0, 0})});
  std::vector<std::vector<Ints>> cases;
  for (const int64_t n : {48, 50, 101, 77, 33, 47, 64}) cases.push_back({{1, 3, n}});
  expect_same(graph, cases, 2);  // the first sizes, which are long enough, and all
}

// The relative shift of attention: [.., n - 1, 2 * (n - 1)] as rows of one less.
TEST(SizeArithmetic, ProductsThatAreDividedAgain) {
  const Message graph = typed_graph(
      joined({{node("Slice", {"x", "one", "far", "axis"}, {"q"}),
               with(node("Transpose", {"q"}, {"t"}), ints_attribute("perm", {0, 2, 1})),
               node("MatMul", {"q", "t"}, {"s"}),
               with(node("Concat", {"s", "s"}, {"d"}), int_attribute("axis", 2))},
              size_of("s", "axis", "n"),
              {with(node("Concat", {"two", "minus", "n"}, {"shape"}), int_attribute("axis", 0)),
               node("Reshape", {"d", "shape"}, {"r"}),
               node("Slice", {"r", "zero", "n", "axis"}, {"h"}), node("Add", {"h", "s"}, {"y"})}}),
      {floats("x", {dim(2), dim("L"), dim(3)})}, {"y"},
      {int64s("one", {1}), int64s("zero", {0}), int64s("far", {INT64_MAX}), int64s("axis", {1}),
       int64s("two", {2}), int64s("minus", {-1})});
  expect_same(graph, lengths({5, 6, 17, 40, 100}), 1);
}

// What is sorted is of no more than twice the size; the first has a program of its own.
TEST(SizeArithmetic, TheFirstOfAFreeSize) {
  const Message graph =
      typed_graph({with(node("TopK", {"x", "two"}, {"y", "i"}), int_attribute("axis", 1))},
                  {floats("x", {dim(2), dim("L"), dim(3)})}, {"y", "i"}, {int64s("two", {2})});
  expect_same(graph, lengths({33, 40, 64, 41, 50}), 2);
  expect_same(graph, lengths({33, 40, 70, 41, 128}), 3);
}

TEST(SizeArithmetic, RegionsOfPicturesOfFreeSizes) {
  const auto regions = [](int64_t sampling) {
    return typed_graph(
        {node("Shape", {"b"}, {"s"}), node("Slice", {"s", "zero", "one"}, {"n"}),
         node("Expand", {"zero", "n"}, {"i"}),
         with(
             with(with(node("RoiAlign", {"x", "b", "i"}, {"y"}), int_attribute("output_height", 3)),
                  int_attribute("output_width", 2)),
             int_attribute("sampling_ratio", sampling))},
        {floats("x", {dim(1), dim(3), dim("H"), dim("W")}), floats("b", {dim("R"), dim(4)})}, {"y"},
        {int64s("zero", {0}), int64s("one", {1})});
  };
  const std::vector<std::vector<Ints>> cases{
      {{1, 3, 20, 16}, {5, 4}}, {{1, 3, 33, 40}, {3, 4}}, {{1, 3, 9, 7}, {6, 4}}};
  expect_same(regions(2), cases, 1);
}

// A position that moves on from run to run, and an end: three programs know them, the fourth finds
// them.
TEST(SizeArithmetic, ElementsThatKeepChangingAreFound) {
  const Message graph =
      typed_graph({node("Slice", {"x", "begin", "end", "axis"}, {"s"}), node("Neg", {"s"}, {"y"})},
                  {floats("x", {dim(2), dim("L"), dim(3)}),
                   testing::value("begin", testing::tensor_type(testing::kInt64Type, {dim(1)})),
                   testing::value("end", testing::tensor_type(testing::kInt64Type, {dim(1)}))},
                  {"y"}, {int64s("axis", {1})});
  const Ref<Context> context = new_context("cpu");
  const Ref<LoadedModel> model = load(context, graph);
  const auto number = [&](int64_t n) { return from_data(context, kInt64, {1}, &n, 8); };
  for (int64_t n = 0; n < 12; ++n) {
    const Tensor x = random_tensor(context, {2, 20 + n, 3});
    const HostTensor got = host_tensor(model->run({x, number(n), number(2 * n + 1)})[0]);
    const HostTensor want = host_tensor(neg(slice_axis(x, 1, n, 2 * n + 1)));
    EXPECT_EQ(difference(got, want, {0, 0}), "") << n;
    EXPECT_LE(model->programs().size(), 4u);
  }
  // What comes again and again is known.
  const Tensor x = random_tensor(context, {2, 20, 3});
  for (int i = 0; i < 6; ++i) model->run({x, number(3), number(5)});
  EXPECT_TRUE(model->programs().front()->variables.empty());
}

// The greatest number of positions as an input, a step after the other, with a cache that grows and
// one of room for all.
TEST(SizeArithmetic, StepsThatAreToldTheirPositions) {
  constexpr int64_t kInt32Type = 6;
  const std::string domain = "com.microsoft";
  const Message graph = typed_graph(
      {with(with(node("GroupQueryAttention", {"q", "k", "v", "past_k", "past_v", "last", "total"},
                      {"y", "key", "value"}, domain),
                 int_attribute("num_heads", 2)),
            int_attribute("kv_num_heads", 1))},
      {floats("q", {dim(1), dim("S"), dim(8)}), floats("k", {dim(1), dim("S"), dim(4)}),
       floats("v", {dim(1), dim("S"), dim(4)}),
       floats("past_k", {dim(1), dim(1), dim("P"), dim(4)}),
       floats("past_v", {dim(1), dim(1), dim("P"), dim(4)}),
       testing::value("last", testing::tensor_type(kInt32Type, {dim(1)})),
       testing::value("total", testing::tensor_type(kInt32Type, {}))},
      {"y", "key", "value"});
  const Message file =
      testing::model(graph).message(field::ModelProto::opset_import, testing::opset(domain, 1));
  const Ref<Context> context = new_context("cpu");
  const auto loaded = [&] {
    return make_ref<LoadedModel>(context, parse_model(testing::shared(file)));
  };
  for (const int64_t room : {0, 40}) {
    SCOPED_TRACE(room);
    const Ref<LoadedModel> model = loaded();
    size_t programs = 0;
    for (int64_t past = 3; past < 15; ++past) {
      const Ints kept{1, 1, room > 0 ? room : past, 4};
      const auto last = static_cast<int32_t>(past), total = static_cast<int32_t>(past + 1);
      std::vector<Tensor> inputs;
      for (const Ints& shape : {Ints{1, 1, 8}, Ints{1, 1, 4}, Ints{1, 1, 4}, kept, kept})
        inputs.push_back(random_tensor(context, shape));
      inputs.push_back(from_data(context, kInt32, {1}, &last, 4));
      inputs.push_back(from_data(context, kInt32, {}, &total, 4));
      const std::vector<Tensor> got = model->run(inputs), want = loaded()->run(inputs);
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_EQ(difference(host_tensor(got[i]), host_tensor(want[i]), {1e-4, 1e-5}), "") << past;
      if (past == 7) programs = model->programs().size();
    }
    EXPECT_EQ(model->programs().size(), programs);
  }
}

}  // namespace
}  // namespace tiny::onnx
