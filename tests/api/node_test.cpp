// Nodes through the C ABI: what a tensor is made of, and what callers make themselves.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/api_values.h"
#include "tiny.h"

namespace tiny {
namespace {

using testing::error_has;

class Nodes : public ::testing::Test, protected testing::ApiValues {
 protected:
  void SetUp() override { open("interp"); }
  void TearDown() override {
    for (tiny_node* node : nodes_) tiny_node_release(node);
    close();
  }

  tiny_node* keep_node(tiny_status status, tiny_node* node) {
    EXPECT_EQ(status, TINY_OK) << tiny_last_error();
    nodes_.push_back(node);
    return node;
  }
  tiny_node* node_of(const tiny_tensor* tensor) {
    tiny_node* out = nullptr;
    const tiny_status status = tiny_tensor_node(tensor, &out);
    return keep_node(status, out);
  }
  tiny_node* source(const tiny_node* node, size_t index) {
    tiny_node* out = nullptr;
    const tiny_status status = tiny_node_source(node, index, &out);
    return keep_node(status, out);
  }
  tiny_node* integer(int64_t value) {
    tiny_node* out = nullptr;
    const tiny_status status = tiny_node_integer(context_, TINY_INT64, value, &out);
    return keep_node(status, out);
  }
  tiny_node* variable(const char* name, int64_t min, int64_t max) {
    tiny_node* out = nullptr;
    const tiny_status status = tiny_node_variable(context_, name, min, max, &out);
    return keep_node(status, out);
  }
  tiny_node* op(const char* name, const std::vector<tiny_node*>& sources, tiny_dtype dtype = 0) {
    tiny_node* out = nullptr;
    const tiny_status status =
        tiny_node_make(context_, name, dtype, sources.data(), sources.size(), &out);
    return keep_node(status, out);
  }
  tiny_node* simplified(const tiny_node* node) {
    tiny_node* out = nullptr;
    const tiny_status status = tiny_node_simplify(node, &out);
    return keep_node(status, out);
  }
  static std::string name(const tiny_node* node) {
    const char* out = nullptr;
    EXPECT_EQ(tiny_node_op(node, &out), TINY_OK);
    return out;
  }
  static int64_t id(const tiny_node* node) {
    int64_t out = 0;
    EXPECT_EQ(tiny_node_id(node, &out), TINY_OK);
    return out;
  }
  template <class Ask>
  static std::string report(const tiny_node* node, Ask ask) {
    tiny_report* out = nullptr;
    EXPECT_EQ(ask(node, &out), TINY_OK) << tiny_last_error();
    const std::string text = tiny_report_text(out);
    tiny_report_release(out);
    return text;
  }
  static std::string text(const tiny_node* node) { return report(node, tiny_node_text); }
  static std::string argument(const tiny_node* node) { return report(node, tiny_node_argument); }

  std::vector<tiny_node*> nodes_;
};

TEST_F(Nodes, AreInternedAndSayWhatTheyAre) {
  tiny_tensor* a = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  tiny_tensor *sum = nullptr, *again = nullptr;
  keep(tiny_binary(TINY_ADD, a, a, &sum), sum);
  keep(tiny_binary(TINY_ADD, a, a, &again), again);
  tiny_node* node = node_of(sum);
  EXPECT_EQ(name(node), "Add");
  EXPECT_EQ(id(node), id(node_of(again)));
  EXPECT_EQ(id(source(node, 0)), id(source(node, 1)));
  EXPECT_EQ(id(source(node, 0)), id(node_of(a)));

  tiny_dtype dtype = 0;
  std::array<int64_t, 4> dims{};
  size_t rank = 0;
  int32_t in_memory = 0;
  ASSERT_EQ(tiny_node_dtype(node, &dtype), TINY_OK);
  ASSERT_EQ(tiny_node_shape(node, dims.data(), dims.size(), &rank), TINY_OK);
  EXPECT_EQ(dtype, TINY_FLOAT32);
  EXPECT_EQ(rank, 2u);
  EXPECT_EQ(dims[1], 3);
  ASSERT_EQ(tiny_node_in_memory(node, &in_memory), TINY_OK);
  EXPECT_EQ(in_memory, 0);
  EXPECT_EQ(argument(node), "null");

  tiny_node* none = nullptr;
  EXPECT_EQ(tiny_node_source(node, 2, &none), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("has 2 sources; there is no source 2"));
}

TEST_F(Nodes, OutliveTheirTensors) {
  tiny_tensor* a = floats({1}, {4});
  tiny_tensor* sum = nullptr;
  ASSERT_EQ(tiny_binary(TINY_ADD, a, a, &sum), TINY_OK);
  tiny_node* node = node_of(sum);
  tiny_tensor_release(sum);
  tiny_tensor* made = nullptr;
  keep(tiny_node_tensor(node, &made), made);
  float value = 0;
  ASSERT_EQ(tiny_tensor_read(made, &value, sizeof value), TINY_OK) << tiny_last_error();
  EXPECT_EQ(value, 8);
}

TEST_F(Nodes, ExpressionsAreMadeAsTheyStandAndSimplified) {
  tiny_node* x = variable("x", 0, 9);
  EXPECT_EQ(argument(x), R"({"name":"x","min":0,"max":9})");
  tiny_node* scaled = op("Add", {op("Mul", {x, integer(4)}), integer(2)});
  EXPECT_EQ(text(scaled), "((x * 4) + 2)");
  tiny_node* divided = op("FloorDiv", {scaled, integer(4)});
  EXPECT_EQ(id(simplified(divided)), id(x));
  int64_t min = 0, max = 0;
  ASSERT_EQ(tiny_node_range(scaled, &min, &max), TINY_OK);
  EXPECT_EQ(min, 2);
  EXPECT_EQ(max, 38);
  EXPECT_EQ(argument(simplified(op("Less", {x, integer(10)}))), "true");
}

// What few nodes that share their operands would write has no end.
TEST_F(Nodes, TextsOfSharedOperandsHaveALimit) {
  tiny_node* x = variable("x", 0, 1);
  for (int i = 0; i < 10; ++i) x = op("Mul", {x, x});
  EXPECT_EQ(text(x).substr(0, 12), "((((((((((x ");
  for (int i = 0; i < 200; ++i) x = op("Mul", {x, x});
  tiny_report* out = nullptr;
  EXPECT_EQ(tiny_node_text(x, &out), TINY_ERROR_LIMIT);
  EXPECT_EQ(out, nullptr);
  EXPECT_NE(std::string(tiny_last_error()).find("more than 4000 nodes"), std::string::npos);
}

TEST_F(Nodes, WithOtherSourcesArePutIntoTensors) {
  tiny_tensor *a = floats({2}, {1, 2}), *b = floats({2}, {10, 20}), *sum = nullptr, *made = nullptr;
  keep(tiny_binary(TINY_ADD, a, a, &sum), sum);
  tiny_node* node = node_of(sum);
  const std::array<tiny_node*, 2> sources = {node_of(a), node_of(b)};
  tiny_node* other = nullptr;
  keep_node(tiny_node_with_sources(node, sources.data(), 2, &other), other);
  keep(tiny_node_tensor(op("Mul", {other, source(node, 0)}), &made), made);
  std::array<float, 2> values{};
  ASSERT_EQ(tiny_tensor_read(made, values.data(), sizeof values), TINY_OK) << tiny_last_error();
  EXPECT_EQ(values[0], 11);
  EXPECT_EQ(values[1], 44);
}

TEST_F(Nodes, MistakesAreNamed) {
  tiny_node *x = variable("x", 0, 9), *none = nullptr;
  tiny_node* one = nullptr;
  keep_node(tiny_node_float(context_, TINY_FLOAT32, 1, &one), one);
  const auto fails = [&](const char* name, std::vector<tiny_node*> sources, const char* message) {
    EXPECT_NE(tiny_node_make(context_, name, 0, sources.data(), sources.size(), &none), TINY_OK);
    EXPECT_TRUE(error_has(message)) << tiny_last_error();
    EXPECT_EQ(none, nullptr);
  };
  fails("Plus", {x, x}, "no op is named \"Plus\"");
  fails("Add", {x}, "op Add has 2 sources, not 1");
  fails("Add", {x, one}, "wants operands of one dtype, not int64 and float32");
  fails("FloorDiv", {one, one}, "does not take float32");
  fails("Reshape", {x}, "is not elementwise");
  fails("Cast", {x}, "wants the dtype that it makes");
  fails("Add", {x, nullptr}, "is NULL");
  tiny_tensor *a = floats({2}, {1, 2}), *b = floats({3}, {1, 2, 3});
  fails("Add", {node_of(a), node_of(b)}, "wants operands of one shape, not [2] and [3]");

  EXPECT_EQ(tiny_node_simplify(node_of(a), &none), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("a node of the tensor graph")) << tiny_last_error();
  int64_t min = 0, max = 0;
  EXPECT_EQ(tiny_node_range(one, &min, &max), TINY_ERROR_DTYPE);
  const std::array<tiny_node*, 1> wrong = {one};
  tiny_node* negated = op("Neg", {x});
  EXPECT_EQ(tiny_node_with_sources(negated, wrong.data(), 1, &none), TINY_ERROR_DTYPE);
  EXPECT_TRUE(error_has("source 0 of Neg is int64, not float32")) << tiny_last_error();
}

TEST_F(Nodes, StoresOfASchedule) {
  tiny_tensor *a = floats({4, 5}, std::vector<float>(20, 1)), *sum = nullptr;
  const int64_t axis = 1;
  keep(tiny_reduce(TINY_SUM, a, &axis, 1, 0, &sum), sum);
  tiny_node* store = nullptr;
  keep_node(tiny_schedule_store(&sum, 1, 0, 0, &store), store);
  EXPECT_EQ(name(store), "Store");
  EXPECT_EQ(name(source(store, 1)), "Reduce");
  tiny_dtype dtype = TINY_INT8;
  ASSERT_EQ(tiny_node_dtype(store, &dtype), TINY_OK);
  EXPECT_EQ(dtype, 0);
  int32_t has_shape = 1;
  ASSERT_EQ(tiny_node_has_shape(store, &has_shape), TINY_OK);
  EXPECT_EQ(has_shape, 0);
  tiny_node* none = nullptr;
  EXPECT_EQ(tiny_schedule_store(&sum, 1, 1, 0, &none), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("there are 1 kernels; there is no kernel 1")) << tiny_last_error();
  tiny_tensor* made = nullptr;
  EXPECT_EQ(tiny_node_tensor(store, &made), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_node_tensor(source(store, 1), &made), TINY_ERROR_INVALID_ARGUMENT);
}

TEST_F(Nodes, TheOpTableIsTold) {
  tiny_report* out = nullptr;
  ASSERT_EQ(tiny_ops(&out), TINY_OK);
  const std::string text = tiny_report_text(out);
  tiny_report_release(out);
  EXPECT_NE(text.find(R"({"name":"Add","symbol":"+","arity":2,"result":"first","weight":1,)"
                      R"("traits":["elementwise","commutative","associative"],)"
                      R"("stages":["tensor","kernel","linear"]})"),
            std::string::npos);
}

TEST_F(Nodes, TotalsCountEveryLaunch) {
  int64_t launches = 0, memory = 0;
  double operations = 0, bytes = 0, seconds = 0;
  tiny_tensor *a = floats({1000}, std::vector<float>(1000, 2)), *sum = nullptr;
  keep(tiny_binary(TINY_MUL, a, a, &sum), sum);
  ASSERT_EQ(tiny_realize(&sum, 1), TINY_OK);
  ASSERT_EQ(tiny_context_totals(context_, &launches, &operations, &bytes, &seconds, &memory),
            TINY_OK);
  EXPECT_EQ(launches, 1);
  EXPECT_EQ(operations, 1000);
  EXPECT_EQ(bytes, 8000);
  EXPECT_GE(memory, 8000);
  ASSERT_EQ(tiny_context_set_int(context_, "noopt", 1), TINY_OK);
  EXPECT_EQ(tiny_context_set_int(context_, "isa", 1), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("the setting isa is fixed once a context is made")) << tiny_last_error();
}

TEST(Record, KeepsWhatWasDone) {
  tiny_options* options = nullptr;
  tiny_context* context = nullptr;
  ASSERT_EQ(tiny_options_create(&options), TINY_OK);
  ASSERT_EQ(tiny_options_set_string(options, "device", "interp"), TINY_OK);
  for (const int64_t viz : {0, 1}) {
    ASSERT_EQ(tiny_options_set_int(options, "viz", viz), TINY_OK);
    ASSERT_EQ(tiny_context_create(options, &context), TINY_OK);
    const int64_t dims[] = {6, 5}, axis = 0;
    tiny_tensor *ones = nullptr, *sum = nullptr;
    ASSERT_EQ(tiny_full(context, TINY_FLOAT32, dims, 2, 1, &ones), TINY_OK);
    ASSERT_EQ(tiny_reduce(TINY_SUM, ones, &axis, 1, 0, &sum), TINY_OK);
    ASSERT_EQ(tiny_realize(&sum, 1), TINY_OK);
    tiny_report* report = nullptr;
    const tiny_status status = tiny_context_record(context, &report);
    EXPECT_EQ(status, viz ? TINY_OK : TINY_ERROR_INVALID_ARGUMENT);
    const std::string text = report ? tiny_report_text(report) : "";
    for (const char* part :
         {"\"graphs\":[{", "\"passes\":[{\"name\":\"decompose\"", "\"rewrites\":[", "\"nest\":\"",
          "\"c\":\"void ", "\"traceEvents\":[{", "\"cat\":\"launch\""})
      EXPECT_EQ(text.find(part) != std::string::npos, viz == 1) << part;
    tiny_report_release(report);
    tiny_tensor_release(sum);
    tiny_tensor_release(ones);
    tiny_context_release(context);
  }
  tiny_options_release(options);
}

}  // namespace
}  // namespace tiny
