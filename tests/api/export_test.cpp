// Graphs of tensors as models: what is written is read again, is made of the operators that people
// expect, and computes the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "onnx/export/export.h"
#include "onnx/session.h"
#include "onnx/write.h"
#include "tensor/create.h"
#include "tensor/value.h"
#include "tests/reference/random_graph.h"
#include "tests/support/context.h"
#include "tests/support/temporary_folder.h"
#include "tiny.h"

namespace {

using tiny::onnx::LoadedModel;

class Export : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(tiny_context_create(nullptr, &context_), TINY_OK);
    path_ = folder_ / "model.onnx";
  }
  void TearDown() override {
    for (tiny_tensor* t : made_) tiny_tensor_release(t);
    tiny_context_release(context_);
  }
  tiny_tensor* keep(tiny_status status, tiny_tensor* t) {
    EXPECT_EQ(status, TINY_OK) << tiny_last_error();
    made_.push_back(t);
    return t;
  }
  tiny_tensor* input(const std::vector<int64_t>& dims, const char* name = "") {
    tiny_tensor* t = nullptr;
    const tiny_status status = tiny_input(context_, TINY_FLOAT32, dims.data(), dims.size(), &t);
    keep(status, t);
    EXPECT_EQ(tiny_tensor_set_name(t, name), TINY_OK);
    return t;
  }
  // Numbers that are no two alike.
  tiny_tensor* weight(const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (const int64_t d : dims) count *= d;
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(std::sin(static_cast<float>(++seed_)));
    tiny_tensor* t = nullptr;
    const tiny_status status =
        tiny_tensor_from_data(context_, TINY_FLOAT32, dims.data(), dims.size(), values.data(),
                              values.size() * sizeof(float), &t);
    return keep(status, t);
  }
  template <class Make, class... Arguments>
  tiny_tensor* made(Make make, Arguments... arguments) {
    tiny_tensor* t = nullptr;
    const tiny_status status = make(arguments..., &t);
    return keep(status, t);
  }
  tiny_status write(std::vector<tiny_tensor*> inputs, std::vector<tiny_tensor*> outputs) {
    return tiny_export_onnx(inputs.data(), inputs.size(), outputs.data(), outputs.size(),
                            path_.c_str());
  }
  // How many of each operator the file has, without what only passes on.
  std::map<std::string, int> operators() {
    const auto context = tiny::make_ref<tiny::Context>(tiny::Flags::defaults());
    std::map<std::string, int> counts;
    const auto model = tiny::make_ref<LoadedModel>(context, path_);
    for (const auto& node : model->model().graph.nodes) ++counts[node.op_type];
    counts.erase("Identity");
    return counts;
  }
  // The file's first output for this input, and what `output` is for it, by a program of its own.
  std::pair<std::vector<float>, std::vector<float>> both(tiny_tensor* x, tiny_tensor* output,
                                                         tiny_tensor* value) {
    tiny_model* model = nullptr;
    EXPECT_EQ(tiny_model_load(context_, path_.c_str(), &model), TINY_OK) << tiny_last_error();
    tiny_tensor* again = nullptr;
    EXPECT_EQ(tiny_model_run(model, &value, 1, &again, 1), TINY_OK) << tiny_last_error();
    tiny_model_release(model);
    tiny_program* program = nullptr;
    EXPECT_EQ(tiny_program_compile(&x, 1, &output, 1, &program), TINY_OK) << tiny_last_error();
    tiny_run* run = nullptr;
    EXPECT_EQ(tiny_run_create(program, &run), TINY_OK);
    EXPECT_EQ(tiny_run_set_input(run, 0, value), TINY_OK) << tiny_last_error();
    EXPECT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error();
    tiny_tensor* direct = nullptr;
    EXPECT_EQ(tiny_run_output_tensor(run, 0, &direct), TINY_OK);
    tiny_run_release(run);
    tiny_program_release(program);
    made_.insert(made_.end(), {again, direct});
    return {read(again), read(direct)};
  }
  static std::vector<float> read(const tiny_tensor* t) {
    int64_t count = 0;
    EXPECT_EQ(tiny_tensor_numel(t, &count), TINY_OK);
    std::vector<float> values(static_cast<size_t>(count));
    EXPECT_EQ(tiny_tensor_read(t, values.data(), values.size() * sizeof(float)), TINY_OK)
        << tiny_last_error();
    return values;
  }
  static bool says(const std::string& text) {
    return std::string(tiny_last_error()).find(text) != std::string::npos;
  }

  tiny_context* context_ = nullptr;
  std::vector<tiny_tensor*> made_;
  int seed_ = 0;
  tiny::testing::TemporaryFolder folder_;
  std::string path_;
};

using Counts = std::map<std::string, int>;

TEST_F(Export, ANetworkIsWrittenByItsLargerOperators) {
  tiny_tensor* x = input({2, 3, 9, 9}, "pictures");
  tiny_window* window = nullptr;
  const int64_t two[] = {2, 2}, one[] = {1, 1}, flat[] = {2, 64};
  ASSERT_EQ(tiny_window_create(2, &window), TINY_OK);
  EXPECT_EQ(tiny_window_set_strides(window, two, 2), TINY_OK);
  EXPECT_EQ(tiny_window_set_padding(window, one, one, 2), TINY_OK);
  tiny_tensor* y = made(tiny_conv, x, weight({4, 3, 3, 3}), weight({4}), window);
  y = made(tiny_batch_norm, y, weight({4}), weight({4}), weight({4}),
           made(tiny_unary, TINY_SQUARE, weight({4})), 1e-5);
  y = made(tiny_unary, TINY_RELU, y);
  tiny_window_release(window);
  ASSERT_EQ(tiny_window_create(2, &window), TINY_OK);
  EXPECT_EQ(tiny_window_set_kernel(window, two, 2), TINY_OK);
  y = made(tiny_max_pool, y, window);
  tiny_window_release(window);
  y = made(tiny_reshape, y, flat, size_t{2});
  y = made(tiny_matmul, y, weight({64, 10}));
  y = made(tiny_binary, TINY_ADD, y, weight({10}));
  y = made(tiny_softmax, y, int64_t{-1});
  ASSERT_EQ(tiny_tensor_set_name(y, "classes"), TINY_OK);
  ASSERT_EQ(write({x}, {y}), TINY_OK) << tiny_last_error();
  const Counts counts = operators();
  for (const char* op : {"Conv", "Relu", "MaxPool", "Gemm", "Softmax"})
    EXPECT_EQ(counts.contains(op) ? counts.at(op) : 0, 1) << op;
  const auto [again, direct] = both(x, y, weight({2, 3, 9, 9}));
  EXPECT_EQ(again, direct);
  tiny_model* model = nullptr;
  ASSERT_EQ(tiny_model_load(context_, path_.c_str(), &model), TINY_OK);
  size_t index = 1;
  EXPECT_EQ(tiny_model_input_index(model, "pictures", &index), TINY_OK) << tiny_last_error();
  EXPECT_EQ(tiny_model_output_index(model, "classes", &index), TINY_OK) << tiny_last_error();
  tiny_model_release(model);
}

TEST_F(Export, NormalisationsAndAttentionAreRecognized) {
  tiny_tensor* x = input({2, 5, 8});
  tiny_tensor* normal = made(tiny_layer_norm, x, weight({8}), weight({8}), int64_t{-1}, 1e-5);
  tiny_tensor* q = made(tiny_matmul, normal, weight({8, 8}));
  const int64_t order[] = {0, 2, 1};
  tiny_tensor* scores = made(tiny_matmul, q, made(tiny_permute, x, order, size_t{3}));
  tiny_tensor* y = made(tiny_matmul, made(tiny_softmax, scores, int64_t{2}), x);
  y = made(tiny_gelu, y, tiny_flags{0});
  ASSERT_EQ(write({x}, {y}), TINY_OK) << tiny_last_error();
  EXPECT_EQ(operators(), (Counts{{"LayerNormalization", 1},
                                 {"MatMul", 3},
                                 {"Transpose", 1},
                                 {"Softmax", 1},
                                 {"Gelu", 1}}));
  const auto [again, direct] = both(x, y, weight({2, 5, 8}));
  EXPECT_EQ(again, direct);
}

TEST_F(Export, NormalisationsOfLayersAreRecognized) {
  tiny_module* module = nullptr;
  ASSERT_EQ(tiny_module_create(context_, 1, &module), TINY_OK);
  ASSERT_EQ(tiny_module_set_training(module, 0), TINY_OK);
  tiny_tensor* x = input({2, 4, 8});
  // What a product is made of is a sum, too, and no mean.
  tiny_tensor* y = made(tiny_module_linear, module, "up", x, int64_t{8}, tiny_flags{0});
  y = made(tiny_binary, TINY_ADD, x, y);
  y = made(tiny_module_layer_norm, module, "first", y, int64_t{-1}, 1e-5, tiny_flags{0});
  y = made(tiny_module_batch_norm, module, "second", y, 0.1, 1e-5, tiny_flags{0});
  ASSERT_EQ(write({x}, {y}), TINY_OK) << tiny_last_error();
  const Counts counts = operators();
  EXPECT_EQ(counts.count("LayerNormalization"), 1U);
  EXPECT_EQ(counts.count("BatchNormalization"), 1U);
  EXPECT_EQ(counts.count("Sqrt"), 0U);
  const auto [again, direct] = both(x, y, weight({2, 4, 8}));
  // The model's weights are constants, which are computed with beforehand: sums round otherwise.
  ASSERT_EQ(again.size(), direct.size());
  for (size_t i = 0; i < again.size(); ++i) EXPECT_NEAR(again[i], direct[i], 1e-5);
  tiny_module_release(module);
}

TEST_F(Export, VariablesAreFreeDimensions) {
  tiny_variable* rows = nullptr;
  ASSERT_EQ(tiny_variable_create(context_, "rows", 2, 64, &rows), TINY_OK);
  int64_t n = 0, twice = 0;
  EXPECT_EQ(tiny_variable_dim(rows, &n), TINY_OK);
  EXPECT_EQ(tiny_dim_mul(context_, n, 2, &twice), TINY_OK);
  tiny_tensor* x = input({n, 6});
  const int64_t wide[] = {twice, 3};
  tiny_tensor* y = made(tiny_reshape, x, wide, size_t{2});
  y = made(tiny_binary, TINY_MUL, y, made(tiny_scalar_int, context_, twice));
  const int64_t repeats[] = {2, 1};
  y = made(tiny_tile, y, repeats, size_t{2});
  ASSERT_EQ(write({x}, {y}), TINY_OK) << tiny_last_error();
  tiny_model* model = nullptr;
  ASSERT_EQ(tiny_model_load(context_, path_.c_str(), &model), TINY_OK) << tiny_last_error();
  int64_t dims[2] = {};
  size_t rank = 0;
  EXPECT_EQ(tiny_model_input_shape(model, 0, dims, 2, &rank), TINY_OK);
  EXPECT_EQ(dims[0], TINY_DIM_FREE);
  const char* name = nullptr;
  EXPECT_EQ(tiny_model_input_dim_name(model, 0, 0, &name), TINY_OK);
  EXPECT_STREQ(name, "rows");
  tiny_model_release(model);
  for (const int64_t size : {3, 7}) {
    const auto [again, direct] = both(x, y, weight({size, 6}));
    EXPECT_EQ(again.size(), static_cast<size_t>(size * 12));
    EXPECT_EQ(again, direct);
  }
  tiny_variable_release(rows);
}

TEST_F(Export, TheBitsOfFloats) {
  tiny_tensor* x = input({4}, "x");
  tiny_tensor* bits = made(tiny_bitcast, x, TINY_INT32);
  tiny_tensor* y = made(tiny_bitcast, made(tiny_binary, TINY_ADD, bits, bits), TINY_FLOAT32);
  ASSERT_EQ(write({x}, {y}), TINY_OK) << tiny_last_error();
  EXPECT_EQ(operators()["BitCast"], 2);
  const auto [again, direct] = both(x, y, weight({4}));
  EXPECT_EQ(again.size(), 4U);
  EXPECT_EQ(again, direct);
}

TEST_F(Export, WhatCannotBeWrittenIsNamed) {
  tiny_tensor *x = input({4}, "x"), *other = input({4}, "x"), *w = weight({4});
  tiny_tensor* y = made(tiny_binary, TINY_ADD, x, other);
  EXPECT_EQ(write({x}, {y}), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(says("a placeholder that is none of the inputs")) << tiny_last_error();
  EXPECT_EQ(write({x, other}, {y}), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(says("two inputs are named \"x\"")) << tiny_last_error();
  EXPECT_EQ(write({w}, {y}), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(says("is no placeholder")) << tiny_last_error();
  EXPECT_EQ(write({x}, {}), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_realize(&w, 1), TINY_OK);
  EXPECT_EQ(tiny_assign(w, x), TINY_OK);
  EXPECT_EQ(write({x}, {w}), TINY_ERROR_UNSUPPORTED);
  EXPECT_TRUE(says("assignment")) << tiny_last_error();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

// Whether two elements are the same number, up to the last bits of a float.
bool same(tiny::DType dtype, const std::byte* a, const std::byte* b) {
  const auto width = static_cast<size_t>(dtype.bytes());
  if (std::memcmp(a, b, width) == 0) return true;
  if (!dtype.is_float()) return false;
  uint64_t bits[2] = {};
  std::memcpy(&bits[0], a, width);
  std::memcpy(&bits[1], b, width);
  const double x = tiny::double_of(dtype, bits[0]), y = tiny::double_of(dtype, bits[1]);
  if (std::isnan(x) && std::isnan(y)) return true;
  const double step = dtype.bytes() == 2 ? 1e-2 : dtype == tiny::kFloat32 ? 1e-5 : 1e-12;
  return x == y || std::abs(x - y) <= step * std::max(std::abs(x), std::abs(y));
}

// Every operation of the tensor graph, by graphs of all of them: what is read back computes what
// the graph does.
TEST_F(Export, RandomGraphsComeBack) {
  int written = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    const auto context = tiny::make_ref<tiny::Context>(tiny::Flags::defaults());
    tiny::testing::RandomGraph random(context, seed, {.steps = 10});
    std::vector<tiny::Tensor> tensors = random.make();
    std::vector<tiny::onnx::ExportPort> ports;
    for (const tiny::Tensor& t : tensors) ports.push_back({tiny::cat("y", ports.size()), t});
    try {
      tiny::onnx::write_model(path_, tiny::onnx::export_model(context, {}, ports));
    } catch (const tiny::Error& e) {
      ASSERT_EQ(e.status(), tiny::Status::Unsupported) << e.message() << '\n' << random.story();
      continue;
    }
    ++written;
    SCOPED_TRACE(random.story());
    const auto model = tiny::make_ref<LoadedModel>(context, path_);
    std::vector<tiny::Tensor> again;
    ASSERT_NO_THROW(again = model->run({})) << seed;
    ASSERT_EQ(again.size(), tensors.size());
    for (size_t i = 0; i < again.size(); ++i) {
      ASSERT_EQ(again[i].dtype(), tensors[i].dtype());
      ASSERT_EQ(tiny::Shape(again[i].shape()), tiny::Shape(tensors[i].shape()));
      const int64_t count = element_count(tensors[i]), width = tensors[i].dtype().bytes();
      std::vector<std::byte> a(static_cast<size_t>(count * width)), b(a.size());
      tiny::read(tensors[i], a.data(), std::ssize(a));
      tiny::read(again[i], b.data(), std::ssize(b));
      for (int64_t k = 0; k < count; ++k)
        ASSERT_TRUE(same(tensors[i].dtype(), a.data() + k * width, b.data() + k * width))
            << "seed " << seed << ", output " << i << ", element " << k;
    }
  }
  EXPECT_GE(written, 100);
}

}  // namespace
