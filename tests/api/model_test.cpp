// Models, programs, runs and reports through the C ABI, and its misuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "io/npy.h"
#include "tests/onnx/model_writer.h"
#include "tests/support/temporary_folder.h"
#include "tiny.h"

namespace tiny {
namespace {

namespace fs = std::filesystem;
namespace w = onnx::testing;

// y = x + b, x: float32 [N, 2].
std::string model_bytes() {
  return w::model(w::typed_graph({w::node("Add", {"x", "b"}, {"y"})},
                                 {w::floats("x", {w::dim("N"), w::dim(2)})}, {"y"},
                                 {w::float_tensor("b", {2}, {10, 20})}))
      .bytes();
}

class ModelAbi : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = folder_ / "add.onnx";
    write_file(path_, model_bytes());
    tiny_options* options = nullptr;
    ASSERT_EQ(tiny_options_create(&options), TINY_OK);
    ASSERT_EQ(tiny_options_set_string(options, "device", "interp"), TINY_OK);
    ASSERT_EQ(tiny_context_create(options, &context_), TINY_OK);
    tiny_options_release(options);
  }
  void TearDown() override { tiny_context_release(context_); }
  tiny_model* load() {
    tiny_model* model = nullptr;
    EXPECT_EQ(tiny_model_load(context_, path_.c_str(), &model), TINY_OK) << tiny_last_error();
    return model;
  }
  tiny_tensor* floats(std::vector<int64_t> dims, const std::vector<float>& values) {
    tiny_tensor* tensor = nullptr;
    EXPECT_EQ(tiny_tensor_from_data(context_, TINY_FLOAT32, dims.data(), dims.size(), values.data(),
                                    values.size() * sizeof(float), &tensor),
              TINY_OK)
        << tiny_last_error();
    return tensor;
  }

  tiny::testing::TemporaryFolder folder_;
  std::string path_;
  tiny_context* context_ = nullptr;
};

bool error_has(const char* text) {
  return std::strstr(tiny_last_error(), text) != nullptr;
}

TEST_F(ModelAbi, InputsOfProgramsAreNoInputsOfARun) {
  tiny_model* model = load();
  const int64_t dims[] = {3, 2};
  tiny_tensor* x = nullptr;
  tiny_tensor* y = nullptr;
  ASSERT_EQ(tiny_input(context_, TINY_FLOAT32, dims, 2, &x), TINY_OK);
  EXPECT_EQ(tiny_model_run(model, &x, 1, &y, 1), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("depends on an input")) << tiny_last_error();
  EXPECT_EQ(y, nullptr);
  tiny_tensor_release(x);
  tiny_model_release(model);
}

TEST_F(ModelAbi, DescribesInputsAndOutputs) {
  tiny_model* model = load();
  size_t count = 0;
  EXPECT_EQ(tiny_model_input_count(model, &count), TINY_OK);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(tiny_model_output_count(model, &count), TINY_OK);
  EXPECT_EQ(count, 1u);
  const char* name = nullptr;
  EXPECT_EQ(tiny_model_input_name(model, 0, &name), TINY_OK);
  EXPECT_STREQ(name, "x");
  EXPECT_EQ(tiny_model_output_name(model, 0, &name), TINY_OK);
  EXPECT_STREQ(name, "y");
  EXPECT_EQ(tiny_model_input_name(model, 1, &name), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(name, nullptr);
  tiny_dtype dtype = 0;
  EXPECT_EQ(tiny_model_input_dtype(model, 0, &dtype), TINY_OK);
  EXPECT_EQ(dtype, TINY_FLOAT32);
  int64_t dims[4] = {};
  size_t rank = 0;
  EXPECT_EQ(tiny_model_input_shape(model, 0, dims, 4, &rank), TINY_OK);
  EXPECT_EQ(rank, 2u);
  EXPECT_EQ(dims[0], -1);
  EXPECT_EQ(dims[1], 2);
  EXPECT_EQ(tiny_model_input_dim_name(model, 0, 0, &name), TINY_OK);
  EXPECT_STREQ(name, "N");
  EXPECT_EQ(tiny_model_input_dim_name(model, 0, 1, &name), TINY_OK);
  EXPECT_STREQ(name, "");
  size_t index = 9;
  EXPECT_EQ(tiny_model_input_index(model, "x", &index), TINY_OK);
  EXPECT_EQ(index, 0u);
  EXPECT_EQ(tiny_model_input_index(model, "q", &index), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("\"q\"") && error_has("it has x")) << tiny_last_error();
  tiny_report* report = nullptr;
  EXPECT_EQ(tiny_model_info(model, &report), TINY_OK);
  const std::string info = tiny_report_text(report);
  EXPECT_EQ(info.size(), tiny_report_bytes(report));
  for (const char* text :
       {"\"ir_version\":8", "\"opset\":{\"\":17}", "\"shape\":[\"N\",2]", "\"dims\":[\"N\"]",
        "\"op\":\"Add\"", "\"count\":1", "\"supported\":true"})
    EXPECT_NE(info.find(text), std::string::npos) << text << " in " << info;
  tiny_report_release(report);
  ASSERT_EQ(tiny_model_header(model, &report), TINY_OK);
  const std::string header = tiny_report_text(report);
  EXPECT_EQ(header.find("{\"ir_version\":8,\"opset\":{\"\":17},\"producer\":"), 0u) << header;
  EXPECT_NE(info.find("\"model\":" + header), std::string::npos) << header << " in " << info;
  tiny_report_release(report);
  EXPECT_EQ(tiny_model_header(nullptr, &report), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(report, nullptr);
  tiny_model_release(model);
}

TEST_F(ModelAbi, InputsAndOutputsHaveKinds) {
  const w::Message sequence = w::Message().message(
      field::TypeProto::sequence_type,
      w::Message().message(field::TypeSequence::elem_type, w::tensor_type(w::kFloatType, {})));
  write_file(path_,
             w::model(w::typed_graph({w::node("Relu", {"x"}, {"y"})},
                                     {w::floats("x", {w::dim(2)}), w::value("s", sequence)}, {"y"}))
                 .bytes());
  tiny_model* model = load();
  tiny_kind kind = 7;
  EXPECT_EQ(tiny_model_input_kind(model, 0, &kind), TINY_OK);
  EXPECT_EQ(kind, TINY_KIND_TENSOR);
  EXPECT_EQ(tiny_model_input_kind(model, 1, &kind), TINY_OK);
  EXPECT_EQ(kind, TINY_KIND_SEQUENCE);
  EXPECT_EQ(tiny_model_output_kind(model, 0, &kind), TINY_OK);
  EXPECT_EQ(kind, TINY_KIND_TENSOR);
  EXPECT_EQ(tiny_model_output_kind(model, 1, &kind), TINY_ERROR_INVALID_ARGUMENT);
  tiny_dtype dtype = 0;
  EXPECT_EQ(tiny_model_input_dtype(model, 1, &dtype), TINY_ERROR_UNSUPPORTED);
  EXPECT_TRUE(error_has("seq(tensor(FLOAT)[])")) << tiny_last_error();
  tiny_model_release(model);
}

TEST_F(ModelAbi, CompilesAndRuns) {
  tiny_model* model = load();
  const int64_t dims[] = {3, 2};
  tiny_program* program = nullptr;
  ASSERT_EQ(tiny_model_compile(model, dims, 2, &program), TINY_OK) << tiny_last_error();
  tiny_model_release(model);  // the program stands alone
  size_t kernels = 0, interpreted = 0;
  EXPECT_EQ(tiny_program_kernel_count(program, &kernels), TINY_OK);
  EXPECT_EQ(kernels, 1u);
  EXPECT_EQ(tiny_program_interpreted_count(program, &interpreted), TINY_OK);
  EXPECT_EQ(interpreted, 1u);
  size_t cached = 7;
  EXPECT_EQ(tiny_program_cached_count(program, &cached), TINY_OK);
  EXPECT_EQ(cached, 0u);
  tiny_report* report = nullptr;
  EXPECT_EQ(tiny_program_kernels(program, &report), TINY_OK);
  EXPECT_NE(std::strstr(tiny_report_text(report), "\"interpreted\":true"), nullptr);
  tiny_report_release(report);
  double schedule = -1, compile = -1, init = -1;
  EXPECT_EQ(tiny_program_times(program, &schedule, &compile, &init), TINY_OK);
  EXPECT_GE(schedule, 0);
  size_t arena = 9, weights = 0;
  EXPECT_EQ(tiny_program_memory(program, &arena, &weights), TINY_OK);
  EXPECT_EQ(weights, 8u);

  tiny_run* run = nullptr;
  ASSERT_EQ(tiny_run_create(program, &run), TINY_OK);
  tiny_program_release(program);
  EXPECT_EQ(tiny_run_execute(run), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("\"x\"")) << tiny_last_error();
  tiny_tensor* x = floats({3, 2}, {0, 1, 2, 3, 4, 5});
  ASSERT_EQ(tiny_run_set_input(run, 0, x), TINY_OK) << tiny_last_error();
  tiny_tensor_release(x);
  ASSERT_EQ(tiny_run_set_timed(run, 1), TINY_OK);
  ASSERT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error();
  tiny_dtype dtype = 0;
  int64_t shape[2] = {};
  size_t rank = 0;
  EXPECT_EQ(tiny_run_output_dtype(run, 0, &dtype), TINY_OK);
  EXPECT_EQ(dtype, TINY_FLOAT32);
  EXPECT_EQ(tiny_run_output_shape(run, 0, shape, 2, &rank), TINY_OK);
  EXPECT_EQ(shape[0], 3);
  float y[6] = {};
  EXPECT_EQ(tiny_run_read_output(run, 0, y, sizeof y), TINY_OK);
  const float want[] = {10, 21, 12, 23, 14, 25};
  EXPECT_TRUE(std::ranges::equal(y, want));
  EXPECT_EQ(tiny_run_read_output(run, 0, y, 4), TINY_ERROR_SHAPE);
  EXPECT_EQ(tiny_run_read_output(run, 1, y, 4), TINY_ERROR_INVALID_ARGUMENT);
  double seconds[4];
  size_t count = 0;
  EXPECT_EQ(tiny_run_kernel_seconds(run, seconds, 4, &count), TINY_OK);
  EXPECT_EQ(count, 1u);
  tiny_run_release(run);
}

TEST_F(ModelAbi, RunsInOneCall) {
  tiny_model* model = load();
  for (int64_t n : {1, 2, 1}) {
    tiny_tensor* x = floats({n, 2}, std::vector<float>(static_cast<size_t>(2 * n), 1.0f));
    tiny_tensor* y = nullptr;
    ASSERT_EQ(tiny_model_run(model, &x, 1, &y, 1), TINY_OK) << tiny_last_error();
    std::vector<float> values(static_cast<size_t>(2 * n));
    EXPECT_EQ(tiny_tensor_read(y, values.data(), values.size() * sizeof(float)), TINY_OK);
    EXPECT_EQ(values.back(), 21);
    tiny_tensor_release(x);
    tiny_tensor_release(y);
  }
  tiny_tensor* y = floats({1}, {1});
  tiny_tensor* const kept = y;
  EXPECT_EQ(tiny_model_run(model, nullptr, 0, &y, 1), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(y, nullptr);
  tiny_tensor_release(kept);
  tiny_model_release(model);
}

TEST_F(ModelAbi, MisuseIsNamed) {
  tiny_model* model = nullptr;
  EXPECT_EQ(tiny_model_load(context_, "/nonexistent/m.onnx", &model), TINY_ERROR_IO);
  EXPECT_EQ(model, nullptr);
  EXPECT_EQ(tiny_model_load(nullptr, path_.c_str(), &model), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_model_load(context_, nullptr, &model), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_model_load(context_, path_.c_str(), nullptr), TINY_ERROR_INVALID_ARGUMENT);
  write_file(folder_ / "bad.onnx", "this is no model");
  EXPECT_EQ(tiny_model_load(context_, (folder_ / "bad.onnx").c_str(), &model),
            TINY_ERROR_INVALID_MODEL);
  model = load();
  tiny_program* program = nullptr;
  EXPECT_EQ(tiny_model_compile(model, nullptr, 0, &program), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("[N, 2]")) << tiny_last_error();
  const int64_t dims[] = {1, 3};
  EXPECT_EQ(tiny_model_compile(model, dims, 1, &program), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_model_compile(model, dims, 2, &program), TINY_ERROR_SHAPE);
  EXPECT_EQ(program, nullptr);
  const int64_t negative[] = {-1, 2};
  EXPECT_NE(tiny_model_compile(model, negative, 2, &program), TINY_OK);
  tiny_run* run = nullptr;
  EXPECT_EQ(tiny_run_create(nullptr, &run), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_run_execute(nullptr), TINY_ERROR_INVALID_ARGUMENT);
  size_t count = 0;
  EXPECT_EQ(tiny_model_input_count(nullptr, &count), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_model_run(nullptr, nullptr, 0, nullptr, 0), TINY_ERROR_INVALID_ARGUMENT);
  tiny_model_release(model);
  tiny_model_release(nullptr);
  tiny_program_release(nullptr);
  tiny_run_release(nullptr);
  tiny_report_release(nullptr);
}

TEST_F(ModelAbi, HandlesDieInAnyOrderOnAnyThread) {
  tiny_model* model = load();
  const int64_t dims[] = {1, 2};
  tiny_program* program = nullptr;
  ASSERT_EQ(tiny_model_compile(model, dims, 2, &program), TINY_OK);
  tiny_run* run = nullptr;
  ASSERT_EQ(tiny_run_create(program, &run), TINY_OK);
  tiny_tensor* x = floats({1, 2}, {1, 2});
  ASSERT_EQ(tiny_run_set_input(run, 0, x), TINY_OK);
  tiny_context_release(context_);
  context_ = nullptr;
  std::thread([&] {
    tiny_model_release(model);
    tiny_program_release(program);
    tiny_tensor_release(x);
  }).join();
  std::thread([&] {
    EXPECT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error();
    float y[2] = {};
    EXPECT_EQ(tiny_run_read_output(run, 0, y, sizeof y), TINY_OK);
    EXPECT_EQ(y[1], 22);
    tiny_run_release(run);
  }).join();
}

TEST_F(ModelAbi, TensorFilesRoundTrip) {
  tiny_tensor* x = floats({2, 3}, {0, 1, 2, 3, 4, 5});
  for (const char* ending : {".npy", ".pb"}) {
    const std::string file = folder_ / (std::string("x") + ending);
    ASSERT_EQ(tiny_tensor_save(x, file.c_str(), "x"), TINY_OK) << tiny_last_error();
    tiny_tensor* y = nullptr;
    ASSERT_EQ(tiny_tensor_load(context_, file.c_str(), &y), TINY_OK) << tiny_last_error();
    float values[6] = {};
    EXPECT_EQ(tiny_tensor_read(y, values, sizeof values), TINY_OK);
    EXPECT_EQ(values[5], 5);
    size_t rank = 0;
    EXPECT_EQ(tiny_tensor_rank(y, &rank), TINY_OK);
    EXPECT_EQ(rank, 2u);
    tiny_tensor_release(y);
  }
  EXPECT_EQ(tiny_tensor_save(x, (folder_ / "x.txt").c_str(), nullptr), TINY_ERROR_INVALID_ARGUMENT);
  tiny_tensor* y = x;
  EXPECT_EQ(tiny_tensor_load(context_, (folder_ / "none.npy").c_str(), &y), TINY_ERROR_IO);
  EXPECT_EQ(y, nullptr);
  tiny_tensor_release(x);
}

TEST(Operators, AreSupportedByVersion) {
  const int64_t newest = tiny_supported_opset();
  EXPECT_GE(newest, 22);
  EXPECT_EQ(tiny_op_supported("", "Softmax", 13), 1);
  EXPECT_EQ(tiny_op_supported("ai.onnx", "Softmax", newest), 1);
  EXPECT_EQ(tiny_op_supported(nullptr, "Softmax", 1), 1);
  EXPECT_EQ(tiny_op_supported("", "Softmax", newest + 1), 0);
  EXPECT_EQ(tiny_op_supported("", "Softmax", 0), 0);
  EXPECT_EQ(tiny_op_supported("", "Upsample", 9), 1);
  EXPECT_EQ(tiny_op_supported("", "Upsample", 10), 0);  // Resize is its successor
  EXPECT_EQ(tiny_op_supported("com.example", "Softmax", 13), 0);
  EXPECT_EQ(tiny_op_supported("", "NoSuchOp", 13), 0);
  EXPECT_EQ(tiny_op_supported("", nullptr, 13), 0);
  EXPECT_TRUE(error_has("op is NULL")) << tiny_last_error();
}

TEST_F(ModelAbi, DevicesAreListed) {
  tiny_report* report = nullptr;
  ASSERT_EQ(tiny_devices(&report), TINY_OK);
  EXPECT_NE(std::strstr(tiny_report_text(report), "\"name\":\"interp\""), nullptr);
  EXPECT_NE(std::strstr(tiny_report_text(report), "\"default\":true"), nullptr);
  tiny_report_release(report);
}

// A tensor of floats that are the file "weights".
w::Message in_file(const std::string& name, const std::vector<int64_t>& dims) {
  namespace f = field::TensorProto;
  return w::tensor(name, w::kFloatType, dims)
      .message(f::external_data, w::Message().text(1, "location").text(2, "weights"))
      .number(f::data_location, 1);
}

TEST_F(ModelAbi, IsReadFromMemory) {
  std::string bytes = model_bytes();
  tiny_model* model = nullptr;
  ASSERT_EQ(tiny_model_load_memory(context_, bytes.data(), bytes.size(), nullptr, &model), TINY_OK)
      << tiny_last_error();
  std::fill(bytes.begin(), bytes.end(), '\0');  // they were copied
  tiny_tensor* x = floats({1, 2}, {1, 2});
  tiny_tensor* y = nullptr;
  ASSERT_EQ(tiny_model_run(model, &x, 1, &y, 1), TINY_OK) << tiny_last_error();
  float values[2];
  ASSERT_EQ(tiny_tensor_read(y, values, sizeof values), TINY_OK);
  EXPECT_EQ(values[1], 22);
  tiny_tensor_release(x);
  tiny_tensor_release(y);
  tiny_model_release(model);
  EXPECT_EQ(tiny_model_load_memory(context_, nullptr, 3, nullptr, &model),
            TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_model_load_memory(context_, nullptr, 0, nullptr, &model),
            TINY_ERROR_INVALID_MODEL);
  EXPECT_EQ(tiny_model_load_memory(context_, "xyz", 3, nullptr, &model), TINY_ERROR_INVALID_MODEL);
  EXPECT_EQ(model, nullptr);
}

TEST_F(ModelAbi, OfMemoryHasItsFurtherFilesInTheFolderThatIsGiven) {
  const float values[] = {10, 20};
  write_file(folder_ / "weights", {reinterpret_cast<const char*>(values), sizeof values});
  const std::string bytes = w::model(w::typed_graph({w::node("Add", {"x", "b"}, {"y"})},
                                                    {w::floats("x", {w::dim("N"), w::dim(2)})},
                                                    {"y"}, {in_file("b", {2})}))
                                .bytes();
  tiny_model* model = nullptr;
  EXPECT_EQ(tiny_model_load_memory(context_, bytes.data(), bytes.size(), nullptr, &model),
            TINY_ERROR_UNSUPPORTED);
  EXPECT_TRUE(error_has("lies in the file \"weights\"")) << tiny_last_error();
  const std::string folder = folder_ / "";
  EXPECT_EQ(tiny_model_load_memory(context_, bytes.data(), bytes.size(), folder.c_str(), &model),
            TINY_OK)
      << tiny_last_error();
  tiny_model_release(model);
}

// With a mapped file this would end the process.
// Copies of files count against the limit of memory, as long as they are there.
TEST_F(ModelAbi, ThatIsReadIntoMemoryCounts) {
  const std::vector<float> large(1 << 20, 3.0f);
  const std::vector<int64_t> dims{std::ssize(large)};
  const int64_t bytes = std::ssize(large) * 4;
  const std::string path = folder_ / "large.onnx", saved = folder_ / "large.npy";
  write_file(path, w::model(w::typed_graph({w::node("Add", {"x", "b"}, {"y"})},
                                           {w::floats("x", {w::dim(1)})}, {"y"},
                                           {w::float_tensor("b", dims, large)}))
                       .bytes());
  for (const int64_t limit : {bytes / 2, bytes * 2}) {
    tiny_options* options = nullptr;
    tiny_context* context = nullptr;
    ASSERT_EQ(tiny_options_create(&options), TINY_OK);
    ASSERT_EQ(tiny_options_set_int(options, "map_files", 0), TINY_OK);
    ASSERT_EQ(tiny_options_set_int(options, "memory_limit", limit), TINY_OK);
    ASSERT_EQ(tiny_context_create(options, &context), TINY_OK);
    tiny_options_release(options);
    const auto memory_used = [&] {
      tiny_report* report = nullptr;
      EXPECT_EQ(tiny_context_info(context, &report), TINY_OK);
      const std::string text = tiny_report_text(report);
      tiny_report_release(report);
      constexpr std::string_view kKey = "\"memory_used\":";
      return std::stoll(text.substr(text.find(kKey) + kKey.size()));
    };
    const int64_t before = memory_used();
    tiny_model* model = nullptr;
    if (limit < bytes) {
      EXPECT_EQ(tiny_model_load(context, path.c_str(), &model), TINY_ERROR_LIMIT);
      EXPECT_EQ(memory_used(), before);
    } else {
      ASSERT_EQ(tiny_model_load(context, path.c_str(), &model), TINY_OK) << tiny_last_error();
      EXPECT_GE(memory_used(), before + bytes);
      tiny_model* twice = nullptr;
      EXPECT_EQ(tiny_model_load(context, path.c_str(), &twice), TINY_ERROR_LIMIT);
      const std::vector<char> same(static_cast<size_t>(fs::file_size(path)));
      EXPECT_EQ(tiny_model_load_memory(context, same.data(), same.size(), nullptr, &twice),
                TINY_ERROR_LIMIT);
      tiny_model_release(model);
      EXPECT_EQ(memory_used(), before);
      // What is copied of a file of tensors counts as well, and what it is copied to.
      tiny_tensor *t = nullptr, *read = nullptr;
      ASSERT_EQ(tiny_tensor_from_data(context, TINY_FLOAT32, dims.data(), 1, large.data(),
                                      large.size() * sizeof(float), &t),
                TINY_OK);
      ASSERT_EQ(tiny_tensor_save(t, saved.c_str(), ""), TINY_OK) << tiny_last_error();
      EXPECT_EQ(tiny_tensor_load(context, saved.c_str(), &read), TINY_ERROR_LIMIT);
      tiny_tensor_release(t);
    }
    tiny_context_release(context);
  }
}

TEST_F(ModelAbi, ThatIsReadIntoMemoryNeedsItsFilesNoMore) {
  std::vector<float> large(1 << 20, 3.0f);
  write_file(folder_ / "weights",
             {reinterpret_cast<const char*>(large.data()), large.size() * sizeof(float)});
  const std::vector<int64_t> dims{std::ssize(large)};
  const std::string path = folder_ / "large.onnx";
  write_file(path, w::model(w::typed_graph({w::node("Add", {"x", "b"}, {"s"}),
                                            w::node("Mul", {"s", "c"}, {"y"})},
                                           {w::floats("x", {w::dim(1)})}, {"y"},
                                           {w::float_tensor("b", dims, large), in_file("c", dims)}))
                       .bytes());
  tiny_options* options = nullptr;
  tiny_context* context = nullptr;
  ASSERT_EQ(tiny_options_create(&options), TINY_OK);
  ASSERT_EQ(tiny_options_set_string(options, "device", "interp"), TINY_OK);
  ASSERT_EQ(tiny_options_set_int(options, "map_files", 0), TINY_OK);
  ASSERT_EQ(tiny_context_create(options, &context), TINY_OK);
  tiny_options_release(options);
  tiny_model* model = nullptr;
  ASSERT_EQ(tiny_model_load(context, path.c_str(), &model), TINY_OK) << tiny_last_error();
  const std::string saved = folder_ / "large.safetensors";
  tiny_archive* archive = nullptr;
  tiny_tensor* part = nullptr;
  const int64_t count = dims[0];
  ASSERT_EQ(tiny_full(context, TINY_FLOAT32, &count, 1, 4, &part), TINY_OK);
  ASSERT_EQ(tiny_tensor_save(part, saved.c_str(), "a"), TINY_OK) << tiny_last_error();
  tiny_tensor_release(part);
  ASSERT_EQ(tiny_archive_load(context, saved.c_str(), &archive), TINY_OK) << tiny_last_error();
  for (const std::string& file : {path, saved, std::string(folder_ / "weights")})
    fs::resize_file(file, 16);
  tiny_tensor* x = nullptr;
  tiny_tensor* y = nullptr;
  const float one = 1;
  const int64_t single = 1;
  ASSERT_EQ(tiny_tensor_from_data(context, TINY_FLOAT32, &single, 1, &one, sizeof one, &x),
            TINY_OK);
  ASSERT_EQ(tiny_model_run(model, &x, 1, &y, 1), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_tensor_read(y, large.data(), large.size() * sizeof(float)), TINY_OK);
  EXPECT_EQ(large.back(), 12);
  ASSERT_EQ(tiny_archive_get(archive, "a", &part), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_tensor_read(part, large.data(), large.size() * sizeof(float)), TINY_OK);
  EXPECT_EQ(large.back(), 4);
  tiny_archive_release(archive);
  for (tiny_tensor* t : {x, y, part}) tiny_tensor_release(t);
  tiny_model_release(model);
  tiny_context_release(context);
}

}  // namespace
}  // namespace tiny
