// Models as parts of other graphs: what their outputs are before anything runs, models compiled for
// variables, and models applied to tensors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "tests/onnx/model_writer.h"
#include "tests/support/api_values.h"
#include "tests/support/temporary_folder.h"
#include "tiny.h"

namespace tiny {
namespace {

namespace w = onnx::testing;
using testing::Dims;
using testing::error_has;
using Floats = std::vector<float>;

// y = relu(x @ w + b), x: float32 [N, 2]; what is said of y is `type`.
w::Message dense_model(const w::Message& y) {
  return w::model(w::typed_graph({w::node("MatMul", {"x", "w"}, {"p"}),
                                  w::node("Add", {"p", "b"}, {"s"}), w::node("Relu", {"s"}, {"y"})},
                                 {w::floats("x", {w::dim("N"), w::dim(2)})}, {},
                                 {w::float_tensor("w", {2, 3}, {1, 2, 3, 4, 5, -6}),
                                  w::float_tensor("b", {3}, {10, 20, 30})})
                      .message(field::GraphProto::output, y));
}

class Apply : public ::testing::Test, protected testing::ApiValues {
 protected:
  void SetUp() override { open("cpu"); }
  void TearDown() override {
    for (tiny_model* m : models_) tiny_model_release(m);
    close();
  }

  tiny_model* load(const w::Message& message) {
    const std::string path = folder_ / (std::to_string(models_.size()) + ".onnx");
    write_file(path, message.bytes());
    tiny_model* model = nullptr;
    EXPECT_EQ(tiny_model_load(context_, path.c_str(), &model), TINY_OK) << tiny_last_error();
    models_.push_back(model);
    return model;
  }
  tiny_tensor* apply(tiny_model* model, const std::vector<tiny_tensor*>& inputs) {
    tiny_tensor* t = nullptr;
    const tiny_status status = tiny_model_apply(model, inputs.data(), inputs.size(), &t, 1);
    return keep(status, t);
  }
  tiny_tensor* doubled(tiny_tensor* a) {
    tiny_tensor* t = nullptr;
    const tiny_status status = tiny_binary(TINY_ADD, a, a, &t);
    return keep(status, t);
  }
  tiny_program* compiled(const std::vector<tiny_tensor*>& inputs,
                         const std::vector<tiny_tensor*>& outputs) {
    tiny_program* program = nullptr;
    EXPECT_EQ(tiny_program_compile(inputs.data(), inputs.size(), outputs.data(), outputs.size(),
                                   &program),
              TINY_OK)
        << tiny_last_error();
    return program;
  }
  Floats run(tiny_program* program, tiny_tensor* x, size_t count) {
    tiny_run* run = nullptr;
    EXPECT_EQ(tiny_run_create(program, &run), TINY_OK);
    EXPECT_EQ(tiny_run_set_input(run, 0, x), TINY_OK) << tiny_last_error();
    EXPECT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error();
    Floats out(count);
    EXPECT_EQ(tiny_run_read_output(run, 0, out.data(), count * sizeof(float)), TINY_OK)
        << tiny_last_error();
    tiny_run_release(run);
    return out;
  }
  Dims output_shape(const tiny_model* model, size_t index) {
    Dims dims(8, 99);
    size_t rank = 0;
    EXPECT_EQ(tiny_model_output_shape(model, index, dims.data(), dims.size(), &rank), TINY_OK)
        << tiny_last_error();
    dims.resize(rank);
    return dims;
  }
  std::string output_dim(const tiny_model* model, size_t index, size_t axis) {
    const char* name = nullptr;
    EXPECT_EQ(tiny_model_output_dim_name(model, index, axis, &name), TINY_OK) << tiny_last_error();
    return name ? name : "NULL";
  }

  testing::TemporaryFolder folder_;
  std::vector<tiny_model*> models_;
};

// ---- What outputs are.

TEST_F(Apply, OutputsAreAsTheFileSays) {
  const tiny_model* model = load(dense_model(w::floats("y", {w::dim("rows"), w::dim(3)})));
  tiny_dtype dtype = 0;
  EXPECT_EQ(tiny_model_output_dtype(model, 0, &dtype), TINY_OK);
  EXPECT_EQ(dtype, TINY_FLOAT32);
  EXPECT_EQ(output_shape(model, 0), (Dims{-1, 3}));
  EXPECT_EQ(output_dim(model, 0, 0), "rows");
  EXPECT_EQ(output_dim(model, 0, 1), "");
  const char* name = "";
  EXPECT_EQ(tiny_model_output_dim_name(model, 0, 2, &name), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(name, nullptr);
  EXPECT_TRUE(error_has("2 axes; got axis 2")) << tiny_last_error();
  EXPECT_EQ(tiny_model_output_dtype(model, 1, &dtype), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(dtype, 0);
  size_t rank = 7;
  EXPECT_EQ(tiny_model_output_shape(nullptr, 0, nullptr, 0, &rank), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(rank, 0u);
}

TEST_F(Apply, OutputsThatTheFileDoesNotDescribeAreInferred) {
  const tiny_model* model = load(dense_model(w::value("y")));
  tiny_dtype dtype = 0;
  EXPECT_EQ(tiny_model_output_dtype(model, 0, &dtype), TINY_OK) << tiny_last_error();
  EXPECT_EQ(dtype, TINY_FLOAT32);
  EXPECT_EQ(output_shape(model, 0), (Dims{-1, 3}));
  EXPECT_EQ(output_dim(model, 0, 0), "N");
  // Part of a shape: the rest is inferred.
  EXPECT_EQ(output_shape(load(dense_model(w::floats("y", {w::dim("rows"), w::Message()}))), 0),
            (Dims{-1, 3}));
  // A formula of the input's name.
  const tiny_model* longer = load(w::model(
      w::typed_graph({w::node("Concat", {"x", "x"}, {"y"})
                          .message(field::NodeProto::attribute, w::int_attribute("axis", 0))},
                     {w::floats("x", {w::dim("N")})}, {"y"})));
  EXPECT_EQ(output_shape(longer, 0), (Dims{-1}));
  EXPECT_NE(output_dim(longer, 0, 0).find('N'), std::string::npos) << output_dim(longer, 0, 0);
}

TEST_F(Apply, OutputsThatNothingTellsAreUnknown) {
  // The elements of an input decide the shape.
  const tiny_model* model = load(w::model(w::typed_graph(
      {w::node("Reshape", {"x", "s"}, {"y"})},
      {w::floats("x", {w::dim(6)}), w::value("s", w::tensor_type(w::kInt64Type, {w::dim("R")}))},
      {"y"})));
  size_t rank = 5;
  EXPECT_EQ(tiny_model_output_shape(model, 0, nullptr, 0, &rank), TINY_ERROR_UNSUPPORTED);
  EXPECT_EQ(rank, 0u);
  EXPECT_TRUE(error_has("\"y\"") && error_has("not known before")) << tiny_last_error();
  tiny_dtype dtype = 3;
  EXPECT_EQ(tiny_model_output_dtype(model, 0, &dtype), TINY_ERROR_UNSUPPORTED);
  EXPECT_EQ(dtype, 0);
}

TEST_F(Apply, MetadataIsFoundByKey) {
  namespace f = field::ModelProto;
  w::Message message = dense_model(w::value("y"));
  message.text(f::producer_name, "maker").text(f::doc_string, "What it does.").text(f::domain, "d");
  message.message(f::metadata_props, w::Message()
                                         .text(field::StringStringEntryProto::key, "classes")
                                         .text(field::StringStringEntryProto::value, "cat,dog"));
  const tiny_model* model = load(message);
  size_t count = 0;
  EXPECT_EQ(tiny_model_metadata_count(model, &count), TINY_OK);
  std::string all;
  for (size_t i = 0; i < count; ++i) {
    const char *key = nullptr, *value = nullptr;
    EXPECT_EQ(tiny_model_metadata_key(model, i, &key), TINY_OK);
    EXPECT_EQ(tiny_model_metadata_value(model, i, &value), TINY_OK);
    all += std::string(key) + "=" + value + ";";
  }
  EXPECT_EQ(all, "producer_name=maker;domain=d;doc_string=What it does.;classes=cat,dog;");
  const char* text = nullptr;
  EXPECT_EQ(tiny_model_metadata(model, "classes", &text), TINY_OK);
  EXPECT_STREQ(text, "cat,dog");
  EXPECT_EQ(tiny_model_metadata(model, "graph_name", &text), TINY_OK);
  EXPECT_EQ(text, nullptr);
  EXPECT_EQ(tiny_model_metadata(model, nullptr, &text), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_model_metadata_key(model, count, &text), TINY_ERROR_INVALID_ARGUMENT);
}

// ---- Compiling for variables.

TEST_F(Apply, OneProgramForEverySizeOfAVariable) {
  tiny_model* model = load(dense_model(w::value("y")));
  tiny_variable* n = nullptr;
  ASSERT_EQ(tiny_variable_create(context_, "n", 1, 64, &n), TINY_OK);
  int64_t dims[] = {0, 2};
  ASSERT_EQ(tiny_variable_dim(n, &dims[0]), TINY_OK);
  tiny_program* program = nullptr;
  ASSERT_EQ(tiny_model_compile(model, dims, 2, &program), TINY_OK) << tiny_last_error();
  tiny_run* run = nullptr;
  ASSERT_EQ(tiny_run_create(program, &run), TINY_OK);
  for (int64_t rows : {1, 3, 64}) {
    Floats x(static_cast<size_t>(rows * 2));
    std::iota(x.begin(), x.end(), 0.f);
    const Floats nothing(static_cast<size_t>(rows * 3), -1.f);
    tiny_tensor* y = floats({rows, 3}, nothing);
    // The output's memory is set before the input says how large it is.
    ASSERT_EQ(tiny_run_set_variable(run, n, rows), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_set_output(run, 0, y), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_set_input(run, 0, floats({rows, 2}, x)), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error();
    const Floats got = read(y);
    EXPECT_EQ(got[0], 0 * 1 + 1 * 4 + 10);
    EXPECT_EQ(got.back(), std::max(0.f, x[x.size() - 2] * 3 - x.back() * 6 + 30));
    ASSERT_EQ(tiny_run_set_output(run, 0, nullptr), TINY_OK);
  }
  EXPECT_EQ(tiny_run_set_input(run, 0, floats({65, 2}, Floats(130))), TINY_ERROR_SHAPE);
  EXPECT_TRUE(error_has("\"n\"")) << tiny_last_error();
  tiny_run_release(run);
  tiny_program_release(program);
  // A dimension that the model fixes is not free, for a variable either.
  int64_t wrong[] = {2, dims[0]};
  EXPECT_EQ(tiny_model_compile(model, wrong, 2, &program), TINY_ERROR_SHAPE);
  EXPECT_TRUE(error_has("must be 2") && error_has("n")) << tiny_last_error();
  tiny_variable_release(n);
}

// ---- Applying.

TEST_F(Apply, AModelIsAPartOfAGraph) {
  tiny_model* model = load(dense_model(w::value("y")));
  tiny_tensor* x = floats({1, 2}, {1, 2});
  tiny_tensor* y = doubled(apply(model, {doubled(x)}));
  EXPECT_EQ(read(y), (Floats{56, 88, 24}));
  // Its output is another model's input.
  tiny_model* negative = load(w::model(w::typed_graph(
      {w::node("Neg", {"a"}, {"b"})}, {w::floats("a", {w::dim("N"), w::dim("M")})}, {"b"})));
  EXPECT_EQ(read(apply(negative, {apply(model, {x})})), (Floats{-19, -32, -21}));
  // Nothing needs the handle.
  tiny_tensor* late = apply(model, {x});
  tiny_model_release(std::exchange(models_[0], nullptr));
  EXPECT_EQ(read(late), (Floats{19, 32, 21}));
}

TEST_F(Apply, WeightsOfAnAppliedModelAreConstantsOfPrograms) {
  // A product large enough that its weight is laid out anew.
  const int64_t k = 256, n = 192, rows = 64;
  Floats weight(static_cast<size_t>(k * n));
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i % 13) - 6;
  tiny_model* model = load(w::model(w::typed_graph({w::node("MatMul", {"x", "w"}, {"y"})},
                                                   {w::floats("x", {w::dim("N"), w::dim(k)})},
                                                   {"y"}, {w::float_tensor("w", {k, n}, weight)})));
  const int64_t dims[] = {rows, k};
  tiny_program* alone = nullptr;
  ASSERT_EQ(tiny_model_compile(model, dims, 2, &alone), TINY_OK) << tiny_last_error();
  tiny_tensor* x = input({rows, k});
  tiny_program* part = compiled({x}, {apply(model, {x})});
  tiny_report *a = nullptr, *b = nullptr;
  ASSERT_EQ(tiny_program_kernels(alone, &a), TINY_OK);
  ASSERT_EQ(tiny_program_kernels(part, &b), TINY_OK);
  const auto names = [](const char* text) {
    std::string all = text;
    return all.substr(0, all.find("\"buffers\""));
  };
  EXPECT_EQ(names(tiny_report_text(a)).substr(0, 200), names(tiny_report_text(b)).substr(0, 200));
  size_t arena = 0, weights[2] = {};
  EXPECT_EQ(tiny_program_memory(alone, &arena, &weights[0]), TINY_OK);
  EXPECT_EQ(tiny_program_memory(part, &arena, &weights[1]), TINY_OK);
  EXPECT_EQ(weights[0], weights[1]);
  tiny_report_release(a);
  tiny_report_release(b);
  tiny_tensor* ones = floats({rows, k}, Floats(static_cast<size_t>(rows * k), 1.f));
  const auto count = static_cast<size_t>(rows * n);
  EXPECT_EQ(run(alone, ones, count), run(part, ones, count));
  tiny_program_release(alone);
  tiny_program_release(part);
}

TEST_F(Apply, WritingToAnOutputLeavesTheModelAsItIs) {
  // An output that is a weight, and one that is made of weights alone.
  tiny_model* model =
      load(w::model(w::typed_graph({w::node("Add", {"w", "w"}, {"t"})}, {}, {"w", "t"},
                                   {w::float_tensor("w", {3}, {1, 2, 3})})));
  tiny_tensor* out[2] = {};
  ASSERT_EQ(tiny_model_apply(model, nullptr, 0, out, 2), TINY_OK) << tiny_last_error();
  for (tiny_tensor* t : out) keep(TINY_OK, t);
  tiny_tensor* x = input({3});
  tiny_tensor* sum = nullptr;
  ASSERT_EQ(tiny_binary(TINY_ADD, x, out[1], &sum), TINY_OK);
  keep(TINY_OK, sum);
  tiny_program* program = compiled({x}, {sum});
  ASSERT_EQ(tiny_realize(out, 2), TINY_OK) << tiny_last_error();
  for (tiny_tensor* t : out) {
    ASSERT_EQ(tiny_assign(t, floats({3}, {7, 7, 7})), TINY_OK) << tiny_last_error();
    EXPECT_EQ(read(t), (Floats{7, 7, 7}));
  }
  tiny_tensor* again[2] = {};
  ASSERT_EQ(tiny_model_apply(model, nullptr, 0, again, 2), TINY_OK);
  EXPECT_EQ(read(keep(TINY_OK, again[0])), (Floats{1, 2, 3}));
  EXPECT_EQ(read(keep(TINY_OK, again[1])), (Floats{2, 4, 6}));
  EXPECT_EQ(run(program, floats({3}, {0, 0, 0}), 3), (Floats{2, 4, 6}));
  tiny_program_release(program);
}

TEST_F(Apply, ElementsThatDecideShapesAreReadNow) {
  tiny_model* model = load(w::model(w::typed_graph(
      {w::node("Reshape", {"x", "s"}, {"y"})},
      {w::floats("x", {w::dim(6)}), w::value("s", w::tensor_type(w::kInt64Type, {w::dim("R")}))},
      {"y"})));
  const int64_t sizes[] = {2, 3};
  const int64_t two[] = {2};
  tiny_tensor* s = nullptr;
  ASSERT_EQ(tiny_tensor_from_data(context_, TINY_INT64, two, 1, sizes, sizeof sizes, &s), TINY_OK);
  tiny_tensor* x = input({6});
  tiny_tensor* y = apply(model, {x, keep(TINY_OK, s)});
  int64_t dims[3] = {};
  size_t rank = 0;
  EXPECT_EQ(tiny_tensor_shape(y, dims, 3, &rank), TINY_OK);
  EXPECT_EQ(rank, 2u);
  EXPECT_EQ(dims[1], 3);
  // A placeholder's elements are not known.
  tiny_tensor* inputs[] = {x, input({2}, TINY_INT64)};
  EXPECT_EQ(tiny_model_apply(model, inputs, 2, &y, 1), TINY_ERROR_UNSUPPORTED);
  EXPECT_EQ(y, nullptr);
  EXPECT_TRUE(error_has("Reshape") && error_has("input data decides the size"))
      << tiny_last_error();
}

TEST_F(Apply, WrongInputsAreNamed) {
  tiny_model* model = load(dense_model(w::value("y")));
  tiny_tensor* out = nullptr;
  tiny_tensor* wide = floats({1, 3}, {1, 2, 3});
  EXPECT_EQ(tiny_model_apply(model, &wide, 1, &out, 1), TINY_ERROR_SHAPE);
  EXPECT_TRUE(error_has("\"x\"") && error_has("[1, 3]")) << tiny_last_error();
  tiny_tensor* whole = input({1, 2}, TINY_INT64);
  EXPECT_EQ(tiny_model_apply(model, &whole, 1, &out, 1), TINY_ERROR_DTYPE);
  EXPECT_TRUE(error_has("int64")) << tiny_last_error();
  EXPECT_EQ(tiny_model_apply(model, nullptr, 0, &out, 1), TINY_ERROR_INVALID_ARGUMENT);
  tiny_tensor* none = nullptr;
  EXPECT_EQ(tiny_model_apply(model, &none, 1, &out, 1), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_model_apply(model, &wide, 1, &out, 2), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_model_apply(nullptr, &wide, 1, &out, 1), TINY_ERROR_INVALID_ARGUMENT);
  tiny_context* other = nullptr;
  ASSERT_EQ(tiny_context_create(nullptr, &other), TINY_OK);
  tiny_tensor* foreign = nullptr;
  ASSERT_EQ(tiny_scalar_float(other, 1, &foreign), TINY_OK);
  EXPECT_EQ(tiny_model_apply(model, &foreign, 1, &out, 1), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("another context")) << tiny_last_error();
  tiny_tensor_release(foreign);
  tiny_context_release(other);
  EXPECT_EQ(out, nullptr);
}

}  // namespace
}  // namespace tiny
