// Operators of models applied to tensors through the C ABI: their attributes, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/api_values.h"
#include "tiny.h"

namespace tiny {
namespace {

using testing::Dims;
using Floats = std::vector<float>;

class Operator : public ::testing::Test, protected testing::ApiValues {
 protected:
  void SetUp() override { open("interp"); }
  void TearDown() override { close(); }
  tiny_tensor* int64s(const Dims& values) {
    return tensor(TINY_INT64, {std::ssize(values)}, values);
  }
  std::vector<tiny_tensor*> op(const char* name, const std::vector<tiny_tensor*>& inputs,
                               const char* attributes = nullptr, size_t outputs = 1,
                               const char* domain = nullptr, int64_t opset = 0) {
    std::vector<tiny_tensor*> out(outputs);
    EXPECT_EQ(tiny_op(context_, domain, name, opset, inputs.data(), inputs.size(), attributes,
                      out.data(), outputs),
              TINY_OK)
        << tiny_last_error();
    for (tiny_tensor* t : out) keep(t);
    return out;
  }
  void refused(tiny_status status, std::initializer_list<const char*> parts, const char* name,
               const std::vector<tiny_tensor*>& inputs, const char* attributes = nullptr,
               int64_t opset = 0, size_t outputs = 1) {
    std::vector<tiny_tensor*> out(outputs, reinterpret_cast<tiny_tensor*>(this));
    EXPECT_EQ(tiny_op(context_, "", name, opset, inputs.data(), inputs.size(), attributes,
                      out.data(), outputs),
              status)
        << name << ": " << tiny_last_error();
    for (tiny_tensor* t : out) EXPECT_EQ(t, nullptr);
    for (const char* part : parts)
      EXPECT_NE(std::strstr(tiny_last_error(), part), nullptr)
          << part << " in " << tiny_last_error();
  }
};

TEST_F(Operator, SeveralOutputsAndHostOperands) {
  tiny_tensor* x = floats({2, 3}, {1, 3, 2, 6, 5, 4});
  const auto top = op("TopK", {x, int64s({2})}, R"({"axis": -1, "largest": true})", 2);
  EXPECT_EQ(read(top[0]), (Floats{3, 2, 6, 5}));
  EXPECT_EQ(read<int64_t>(top[1]), (Dims{1, 2, 0, 1}));
  // A shape that is computed from another operator's result.
  tiny_tensor* sizes =
      op("Concat", {int64s({3}), op("Gather", {op("Shape", {x})[0], int64s({0})})[0]},
         R"({"axis": 0})")[0];
  EXPECT_EQ(shape(op("Reshape", {x, sizes})[0]), (Dims{3, 2}));
}

TEST_F(Operator, InputsAreLeftOut) {
  tiny_tensor* one = nullptr;
  ASSERT_EQ(tiny_scalar_float(context_, 1, &one), TINY_OK);
  EXPECT_EQ(read(op("Clip", {floats({3}, {-4, 0.5, 4}), nullptr, keep(one)})[0]),
            (Floats{-4, 0.5, 1}));
}

TEST_F(Operator, AttributesOfEveryKind) {
  tiny_tensor* x = floats({1, 2}, {1.5, -2});
  // Integers stand for floats, names for dtypes, null for nothing.
  EXPECT_EQ(read(op("LeakyRelu", {x}, R"({"alpha": 2})")[0]), (Floats{1.5, -4}));
  EXPECT_EQ(read<int32_t>(op("Cast", {x}, R"({"to": "int32"})")[0]), (std::vector{1, -2}));
  EXPECT_EQ(read<int32_t>(op("Cast", {x}, R"({"to": 6})")[0]), (std::vector{1, -2}));
  EXPECT_EQ(read(op("Softmax", {x}, R"({"axis": null})")[0]).size(), 2u);
  EXPECT_EQ(read(op("Constant", {}, R"({"value_floats": [1, 2.5e1]})")[0]), (Floats{1, 25}));
  EXPECT_EQ(
      read<int16_t>(op("Constant", {},
                       R"({"value": {"dtype": "int16", "shape": [2, 1], "data": [-7, 8]}})")[0]),
      (std::vector<int16_t>{-7, 8}));
  const Floats ends = read(
      op("Constant", {}, R"({"value": {"dtype": "float32", "data": ["-inf", "nan", 1e-3]}})")[0]);
  EXPECT_EQ(ends[0], -INFINITY);
  EXPECT_TRUE(std::isnan(ends[1]));
  EXPECT_EQ(ends[2], 1e-3f);
  EXPECT_EQ(read(op("Constant", {}, R"({"value_floats": [1, "-inf"]})")[0]),
            (Floats{1, -INFINITY}));
  EXPECT_EQ(shape(op("Transpose", {x}, R"({"perm": [1, 0]})")[0]), (Dims{2, 1}));
}

TEST_F(Operator, AttributesThatChangeNothingHereAreTaken) {
  tiny_tensor* x = floats({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(read(op("ReduceSum", {x, int64s({1})}, R"({"noop_with_empty_axes": 0})")[0]),
            (Floats{3, 7}));
  EXPECT_EQ(read(op("Dropout", {x}, R"({"seed": 7})")[0]), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(read(op("Cast", {x}, R"({"to": "float32", "saturate": 1})")[0]), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(read(op("TopK", {x, int64s({1})}, R"({"sorted": 1})", 2)[0]), (Floats{2, 4}));
  tiny_tensor *one = floats({2}, {1, 1}), *none = floats({2}, {0, 0});
  op("BatchNormalization", {x, one, none, none, one}, R"({"momentum": 0.9})");
}

TEST_F(Operator, RecurrentNetworksSayTheirSizeAndFunctions) {
  tiny_tensor *x = floats({1, 1, 1}, {-1}), *w = floats({1, 1, 1}, {1});
  const auto run = [&](const char* attributes) {
    return read(op("RNN", {x, w, w}, attributes)[0]);
  };
  constexpr const char* kLeaky = R"({"activations": ["LeakyRelu"], "activation_alpha": [2]})";
  EXPECT_EQ(run(kLeaky), (Floats{-2}));
  EXPECT_EQ(run(R"({"hidden_size": 1, "activations": ["Relu"]})"), (Floats{0}));
  refused(TINY_ERROR_INVALID_ARGUMENT, {"hidden_size is 3", "for 1"}, "RNN", {x, w, w},
          R"({"hidden_size": 3})");
  refused(TINY_ERROR_INVALID_ARGUMENT, {"activation_alpha", "STRING", "FLOATS"}, "RNN", {x, w, w},
          R"({"activation_alpha": "x"})");
}

TEST_F(Operator, VersionsAndDomains) {
  tiny_tensor* x = floats({1, 2}, {1, 1});
  // Before version 13 an axis splits the shape in two.
  EXPECT_EQ(
      read(op("Softmax", {floats({1, 2, 2}, {1, 1, 1, 1})}, R"({"axis": 1})", 1, "ai.onnx", 11)[0]),
      (Floats{0.25, 0.25, 0.25, 0.25}));
  EXPECT_EQ(read(op("Softmax", {x}, nullptr, 1, "", 13)[0]), (Floats{0.5, 0.5}));
  // The newest version that has the operator.
  EXPECT_EQ(shape(op("Upsample", {floats({1, 1, 1, 1}, {1}), floats({4}, {1, 1, 2, 2})})[0]),
            (Dims{1, 1, 2, 2}));
  refused(TINY_ERROR_UNSUPPORTED, {"Upsample", "version 10", "(versions "}, "Upsample", {x},
          nullptr, 10);
}

TEST_F(Operator, PlaceholdersFlowThrough) {
  const int64_t dims[] = {2};
  tiny_tensor* x = nullptr;
  ASSERT_EQ(tiny_input(context_, TINY_FLOAT32, dims, 1, &x), TINY_OK);
  tiny_tensor* y = op("Tan", {keep(x)})[0];
  tiny_program* program = nullptr;
  ASSERT_EQ(tiny_program_compile(&x, 1, &y, 1, &program), TINY_OK) << tiny_last_error();
  tiny_program_release(program);
  refused(TINY_ERROR_UNSUPPORTED, {"Reshape", "depends on input data"}, "Reshape", {x, x});
}

TEST_F(Operator, MistakesAreNamed) {
  tiny_tensor* x = floats({2}, {1, 2});
  refused(TINY_ERROR_UNSUPPORTED, {"TopKK", "not supported"}, "TopKK", {x});
  refused(TINY_ERROR_INVALID_ARGUMENT, {"Softmax", "\"axes\"", "axis"}, "Softmax", {x},
          R"({"axes": 0})");
  refused(TINY_ERROR_INVALID_ARGUMENT, {"Tan", "\"axis\"", "none"}, "Tan", {x}, R"({"axis": 0})");
  refused(TINY_ERROR_INVALID_ARGUMENT, {"Softmax", "\"axis\"", "STRING", "INT"}, "Softmax", {x},
          R"({"axis": "last"})");
  refused(TINY_ERROR_INVALID_ARGUMENT, {"\"axis\"", "byte 9"}, "Softmax", {x}, R"({"axis": })");
  refused(TINY_ERROR_INVALID_ARGUMENT, {"\"axis\"", "strings and numbers"}, "Softmax", {x},
          R"({"axis": [1, "last"]})");
  refused(TINY_ERROR_INVALID_ARGUMENT, {"attributes", "object"}, "Softmax", {x}, "[1]");
  refused(TINY_ERROR_INVALID_ARGUMENT, {"\"value\"", "shape [3]", "2 elements"}, "Constant", {},
          R"({"value": {"dtype": "int8", "shape": [3], "data": [1, 2]}})");
  refused(TINY_ERROR_INVALID_ARGUMENT, {"Cast", "\"to\"", "int33"}, "Cast", {x},
          R"({"to": "int33"})");
  refused(TINY_ERROR_INVALID_ARGUMENT, {"Add", "input 1 is left out"}, "Add", {x});
  refused(TINY_ERROR_UNSUPPORTED, {"Reluu", "not supported; did you mean \"Relu\"?"}, "Reluu", {x});
  refused(TINY_ERROR_UNSUPPORTED, {"softmax", "did you mean \"Softmax\"?"}, "softmax", {x});
  refused(TINY_ERROR_UNSUPPORTED, {"Tan", "output 1"}, "Tan", {x}, nullptr, 0, 2);
  tiny_tensor* yes = tensor<uint8_t>(TINY_BOOL, {1}, {1});
  refused(TINY_ERROR_UNSUPPORTED, {"If", "_branch\"", "only a model"}, "If", {yes});
  refused(TINY_ERROR_UNSUPPORTED, {"Loop", "\"body\"", "only a model"}, "Loop",
          {nullptr, nullptr, x});
  refused(TINY_ERROR_UNSUPPORTED, {"SequenceConstruct", "sequence"}, "SequenceConstruct", {x});
  tiny_tensor* out = nullptr;
  EXPECT_EQ(tiny_op(nullptr, "", "Tan", 0, &x, 1, nullptr, &out, 1), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_op(context_, "", nullptr, 0, &x, 1, nullptr, &out, 1),
            TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_op(context_, "", "Tan", -1, &x, 1, nullptr, &out, 1), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_op(context_, "", "Tan", 0, nullptr, 1, nullptr, &out, 1),
            TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_op(context_, "", "Tan", 0, &x, 1, nullptr, nullptr, 1),
            TINY_ERROR_INVALID_ARGUMENT);
  tiny_context* other = nullptr;
  ASSERT_EQ(tiny_context_create(nullptr, &other), TINY_OK);
  EXPECT_EQ(tiny_op(other, "", "Tan", 0, &x, 1, nullptr, &out, 1), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(tiny_last_error(), "another context"), nullptr) << tiny_last_error();
  tiny_context_release(other);
}

}  // namespace
}  // namespace tiny
