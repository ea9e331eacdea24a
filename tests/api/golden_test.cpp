// What tools see of schedules, kernels and work, through the C ABI: on the device that computes
// nothing, so that the texts do not depend on the processor.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "io/npy.h"
#include "tests/golden/golden.h"
#include "tests/onnx/model_writer.h"
#include "tests/support/temporary_folder.h"
#include "tiny.h"

namespace tiny {
namespace {

namespace fs = std::filesystem;
namespace w = onnx::testing;

// JSON with a line for each object of a list.
std::string readable(std::string json) {
  for (size_t at = 0; (at = json.find(",{", at)) != std::string::npos;) json.insert(++at, "\n");
  return json + "\n";
}

std::string text_of(tiny_report* report) {
  std::string text = tiny_report_text(report);
  tiny_report_release(report);
  return text;
}

struct Setting {
  const char* key;
  const char* text;
  int64_t number;
};

class Golden : public ::testing::Test {
 protected:
  void SetUp() override {}
  void TearDown() override { close(); }

  void open(const char* isa, const std::vector<Setting>& more = {}) {
    tiny_options* options = nullptr;
    ASSERT_EQ(tiny_options_create(&options), TINY_OK);
    ASSERT_EQ(tiny_options_set_string(options, "device", "null"), TINY_OK);
    ASSERT_EQ(tiny_options_set_string(options, "isa", isa), TINY_OK);
    ASSERT_EQ(tiny_options_set_int(options, "threads", 2), TINY_OK);
    ASSERT_EQ(tiny_options_set_int(options, "cache", 0), TINY_OK);
    for (const Setting& s : more)
      ASSERT_EQ(s.text ? tiny_options_set_string(options, s.key, s.text)
                       : tiny_options_set_int(options, s.key, s.number),
                TINY_OK);
    ASSERT_EQ(tiny_context_create(options, &context_), TINY_OK) << tiny_last_error();
    tiny_options_release(options);
  }
  void close() {
    for (tiny_tensor* t : tensors_) tiny_tensor_release(t);
    tensors_.clear();
    tiny_program_release(std::exchange(program_, nullptr));
    tiny_context_release(std::exchange(context_, nullptr));
  }

  tiny_tensor* keep(tiny_tensor* tensor) {
    tensors_.push_back(tensor);
    return tensor;
  }
  tiny_tensor* input(const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    const std::vector<float> data(static_cast<size_t>(count));
    tiny_tensor* out = nullptr;
    EXPECT_EQ(tiny_tensor_from_data(context_, TINY_FLOAT32, dims.data(), dims.size(), data.data(),
                                    data.size() * sizeof(float), &out),
              TINY_OK);
    return keep(out);
  }
  tiny_tensor* matmul(tiny_tensor* a, tiny_tensor* b) {
    tiny_tensor* out = nullptr;
    EXPECT_EQ(tiny_matmul(a, b, &out), TINY_OK);
    return keep(out);
  }
  tiny_tensor* add(tiny_tensor* a, tiny_tensor* b) {
    tiny_tensor* out = nullptr;
    EXPECT_EQ(tiny_binary(TINY_ADD, a, b, &out), TINY_OK);
    return keep(out);
  }
  tiny_tensor* softmax(tiny_tensor* a) {
    tiny_tensor* out = nullptr;
    EXPECT_EQ(tiny_softmax(a, -1, &out), TINY_OK);
    return keep(out);
  }
  std::string schedule(tiny_tensor* tensor) {
    tiny_report* report = nullptr;
    EXPECT_EQ(tiny_schedule(&tensor, 1, &report), TINY_OK) << tiny_last_error();
    return readable(text_of(report));
  }
  std::string counters() {
    tiny_report* report = nullptr;
    EXPECT_EQ(tiny_context_counters(context_, &report), TINY_OK) << tiny_last_error();
    return text_of(report);
  }

  // y = relu(x w), x: float32 [4, 8], w: [8, 16].
  void compile_program() {
    std::vector<float> weights(128);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 7) - 3;
    const w::Message graph = w::typed_graph(
        {w::node("MatMul", {"x", "w"}, {"p"}), w::node("Relu", {"p"}, {"y"})},
        {w::floats("x", {w::dim(4), w::dim(8)})}, {"y"}, {w::float_tensor("w", {8, 16}, weights)});
    const std::string path = folder_ / "model.onnx";
    write_file(path, w::model(graph).bytes());
    tiny_model* model = nullptr;
    ASSERT_EQ(tiny_model_load(context_, path.c_str(), &model), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_model_compile(model, nullptr, 0, &program_), TINY_OK) << tiny_last_error();
    tiny_model_release(model);
  }
  std::string source(const char* stage) {
    tiny_report* report = nullptr;
    EXPECT_EQ(tiny_program_kernel_source(program_, 0, stage, &report), TINY_OK)
        << tiny_last_error();
    return text_of(report);
  }
  std::vector<fs::path> written(const std::string& part) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      if (entry.path().filename().string().find(part) != std::string::npos)
        found.push_back(entry.path());
    return found;
  }
  static std::string content(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  tiny::testing::TemporaryFolder folder_;
  tiny_context* context_ = nullptr;
  tiny_program* program_ = nullptr;
  std::vector<tiny_tensor*> tensors_;
};

TEST_F(Golden, TheScheduleOfAMatrixProductWithBias) {
  open("avx512");
  testing::expect_golden("schedule_linear",
                         schedule(add(matmul(input({64, 256}), input({256, 128})), input({128}))));
}

TEST_F(Golden, TheScheduleOfASoftmaxOfAProduct) {
  open("avx2");
  testing::expect_golden("schedule_softmax",
                         schedule(softmax(matmul(input({64, 256}), input({256, 128})))));
}

TEST_F(Golden, AScheduleRunsNothingAndHasNamesOfItsOwn) {
  open("avx512");
  tiny_tensor* sum = add(input({1000}), input({1000}));
  const std::string before = counters();
  EXPECT_NE(schedule(sum).find("\"name\":\"E_"), std::string::npos);
  EXPECT_EQ(counters(), before);
}

TEST_F(Golden, TheTextOfAKernelAtEveryStage) {
  for (const char* isa : {"avx512", "avx2"}) {
    open(isa);
    compile_program();
    for (const char* stage : {"uops", "linear", "c", "asm"})
      testing::expect_golden(std::string("kernel_") + stage + "_" + isa, source(stage));
    tiny_report* report = nullptr;
    ASSERT_EQ(tiny_program_kernels(program_, &report), TINY_OK);
    testing::expect_golden(std::string("program_kernels_") + isa, readable(text_of(report)));
    close();
  }
}

TEST_F(Golden, MisuseOfKernelSourcesIsNamed) {
  open("avx512");
  compile_program();
  tiny_report* report = nullptr;
  EXPECT_EQ(tiny_program_kernel_source(program_, 0, "ptx", &report), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(tiny_last_error()).find("uops, linear, c, asm"), std::string::npos);
  EXPECT_EQ(tiny_program_kernel_source(program_, 7, "c", &report), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_program_kernel_source(program_, 0, nullptr, &report), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(report, nullptr);
  EXPECT_EQ(tiny_schedule(nullptr, 1, &report), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_context_counters(nullptr, &report), TINY_ERROR_INVALID_ARGUMENT);
}

TEST_F(Golden, CountersCountWork) {
  open("avx512");
  tiny_tensor* a = input({1000});
  tiny_tensor* first = add(a, a);
  tiny_tensor* second = add(a, input({1000}));
  ASSERT_EQ(tiny_realize(&first, 1), TINY_OK);
  ASSERT_EQ(tiny_realize(&second, 1), TINY_OK);
  std::vector<float> data(1000);
  ASSERT_EQ(tiny_tensor_read(first, data.data(), 4000), TINY_OK);
  const std::string text = counters();
  EXPECT_NE(text.find("\"launched\":2,\"compiled\":2,\"cached\":0,\"interpreted\":0"),
            std::string::npos)
      << text;
  // Two inputs in, one value out.
  EXPECT_NE(text.find("\"copies\":{\"count\":3,\"bytes\":12000}"), std::string::npos) << text;
  EXPECT_NE(text.find("\"linearize\":"), std::string::npos) << text;
}

TEST_F(Golden, KernelsOfOneShapeHaveDifferentNames) {
  open("avx512", {{"fusion", nullptr, 0}, {"debug", nullptr, 2}});
  tiny_tensor* a = input({1000});
  tiny_tensor* sum = add(a, a);
  tiny_tensor* difference = nullptr;
  ASSERT_EQ(tiny_binary(TINY_MUL, a, a, &difference), TINY_OK);
  keep(difference);
  tiny_tensor* both[] = {sum, difference};
  ::testing::internal::CaptureStderr();
  ASSERT_EQ(tiny_realize(both, 2), TINY_OK);
  close();
  const std::string told = ::testing::internal::GetCapturedStderr();
  const size_t name = told.find(" E_");
  ASSERT_NE(name, std::string::npos) << told;
  const std::string first = told.substr(name + 1, told.find(' ', name + 1) - name - 1);
  EXPECT_NE(told.find(first + "n1 "), std::string::npos) << told;
  // The last line, when the context ends.
  EXPECT_NE(told.find("avg: "), std::string::npos) << told;
  EXPECT_NE(told.find("total: 2 kernels"), std::string::npos) << told;
}

// What each level of the ladder adds.
TEST_F(Golden, TheLadderTellsMoreAtEachLevel) {
  const char* marks[] = {"",      "chosen: null", "*** null", "  options ",
                         "void ", "  pass ",      "objdump",  "rewrite "};
  size_t last = 0;
  for (int64_t level = 0; level <= 7; ++level) {
    ::testing::internal::CaptureStderr();
    open("avx512", {{"debug", nullptr, level}});
    tiny_tensor* value = softmax(input({8, 30}));
    ASSERT_EQ(tiny_realize(&value, 1), TINY_OK);
    close();
    const std::string told = ::testing::internal::GetCapturedStderr();
    for (int64_t mark = 1; mark <= 7; ++mark)
      EXPECT_EQ(told.find(marks[mark]) != std::string::npos, mark <= level)
          << "level " << level << ": " << marks[mark];
    EXPECT_EQ(told.empty(), level == 0) << told;
    EXPECT_GE(told.size(), last) << level;
    last = told.size();
    if (level == 3) {
      const size_t begin = told.find("kernel ");
      testing::expect_golden("debug3_softmax", told.substr(begin, told.find("***") - begin));
    }
  }
}

TEST_F(Golden, GraphsAndTracesAreFiles) {
  const std::string folder = folder_.string();
  ::testing::internal::CaptureStderr();
  open("avx512", {{"graph", nullptr, 1},
                  {"graphuops", nullptr, 1},
                  {"profile", nullptr, 1},
                  {"track_match_stats", nullptr, 1},
                  {"out_dir", folder.c_str(), 0}});
  tiny_tensor* value = softmax(input({8, 30}));
  ASSERT_EQ(tiny_realize(&value, 1), TINY_OK);
  EXPECT_TRUE(written("trace").empty());  // at the end only
  close();
  const std::string told = ::testing::internal::GetCapturedStderr();
  ASSERT_EQ(written("graph-").size(), 1u) << told;
  ASSERT_GE(written("uops-").size(), 1u) << told;
  ASSERT_EQ(written("trace-").size(), 1u) << told;
  const std::string graph = content(written("graph-")[0]);
  EXPECT_EQ(graph.substr(0, 4), "<svg");
  EXPECT_NE(graph.find("ReduceAxis"), std::string::npos);
  EXPECT_NE(graph.find("float32 [8, 30]"), std::string::npos) << graph;
  EXPECT_NE(content(written("uops-")[0]).find(">Store"), std::string::npos);
  const std::string trace = content(written("trace-")[0]);
  for (const char* part : {"\"traceEvents\":[", "\"cat\":\"launch\"", "\"cat\":\"schedule\"",
                           "\"cat\":\"compile\"", "\"ph\":\"X\"", "\"gflops\""})
    EXPECT_NE(trace.find(part), std::string::npos) << part;
  EXPECT_NE(told.find(written("graph-")[0].string()), std::string::npos) << told;
  EXPECT_NE(told.find("rules of "), std::string::npos) << told;
  EXPECT_NE(told.find(" of "), std::string::npos);
}

TEST_F(Golden, AFolderThatIsNotThereIsTold) {
  ::testing::internal::CaptureStderr();
  open("avx512", {{"graph", nullptr, 1}, {"out_dir", "/nowhere/at/all", 0}});
  tiny_tensor* value = softmax(input({8, 30}));
  EXPECT_EQ(tiny_realize(&value, 1), TINY_OK);
  close();
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("cannot write /nowhere/at/all"),
            std::string::npos);
}

}  // namespace
}  // namespace tiny
