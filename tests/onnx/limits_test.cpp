// Small models that ask for much, under limits: time, memory and what a process comes to have.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <fstream>

#include "base/text.h"
#include "tests/onnx/model_writer.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"
#include "tiny.h"

namespace tiny::onnx::testing {
namespace {

using tiny::testing::Ended;
using tiny::testing::run_apart;
using tiny::testing::TemporaryFolder;

// A machine that others use takes its time; without limits these take minutes and gigabytes.
constexpr int64_t kTimeLimit = 1000, kMillisecondsMost = 5000;
constexpr int64_t kMemoryLimit = 10'000'000, kResidentMost = 200'000'000;
constexpr unsigned kSecondsMost = 60;

// Loads, compiles and runs the model in a process of its own; what is wrong with how that ended.
std::string trouble_with(const std::string& path, int64_t memory_limit) {
  const auto start = std::chrono::steady_clock::now();
  tiny_options* options = nullptr;
  tiny_context* context = nullptr;
  tiny_model* model = nullptr;
  tiny_options_create(&options);
  tiny_options_set_int(options, "cache", 0);
  tiny_options_set_int(options, "memory_limit", memory_limit);
  tiny_options_set_int(options, "time_limit", kTimeLimit);
  tiny_context_create(options, &context);
  tiny_status status = tiny_model_load(context, path.c_str(), &model);
  if (status == TINY_OK) {
    const int64_t dims[] = {1, 1, 2, 2};
    tiny_tensor *x = nullptr, *y = nullptr;
    tiny_full(context, TINY_FLOAT32, dims, 4, 1, &x);
    status = tiny_model_run(model, &x, 1, &y, 1);
    if (status == TINY_OK) status = tiny_realize(&y, 1);
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
                        std::chrono::steady_clock::now() - start)
                        .count();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::string wrong;
  // What is known to be padding takes no time.
  if (status != TINY_ERROR_LIMIT && status != TINY_OK) wrong += cat("status ", status, " ");
  if (took > kMillisecondsMost) wrong += cat(took, " milliseconds ");
  if (usage.ru_maxrss * 1024 > kResidentMost) wrong += cat(usage.ru_maxrss, " kB ");
  return wrong.empty() ? wrong : cat(wrong, tiny_last_error());
}

Message window_node(const std::string& op, const std::vector<int64_t>& kernel,
                    const std::vector<int64_t>& pads) {
  return with(with(node(op, {"x"}, {"y"}), ints_attribute("kernel_shape", kernel)),
              ints_attribute("pads", pads));
}

Message of_node(const Message& node, const std::vector<Message>& initializers = {}) {
  return model(
      typed_graph({node}, {floats("x", {dim(1), dim(1), dim(2), dim(2)})}, {"y"}, initializers));
}

// x twice as many times as there are rounds.
Message long_loop(int64_t rounds) {
  const Message x = floats("a", {dim(1), dim(1), dim(2), dim(2)});
  const Message body = typed_graph(
      {node("Identity", {"c"}, {"again"}), node("Add", {"a", "a"}, {"next"})},
      {value("i", tensor_type(kInt64Type, {})), value("c", tensor_type(kBoolType, {})), x},
      {"again", "next"});
  return of_node(with(node("Loop", {"n", "", "x"}, {"y"}), graph_attribute("body", body)),
                 {int64_scalar("n", rounds)});
}

TEST(Limits, HoldForSmallModelsThatAskForMuch) {
  const int64_t million = 1'000'000, huge = 1 << 28;
  struct Case {
    const char* name;
    Message model;
    int64_t memory_limit = kMemoryLimit;
  };
  const Message large_axis = int64s("n", {1, 1, 2, huge});
  const Case cases[] = {
      {"a mean of 10^12 places, four times",
       of_node(window_node("AveragePool", {million, million}, {million - 1, million - 1, 0, 0}))},
      {"a mean of 10^12 places, 10^12 times",
       of_node(window_node("AveragePool", {million, million},
                           {million - 1, million - 1, million - 1, million - 1}))},
      {"a mean of a long kernel",
       of_node(window_node("AveragePool", {1, huge}, {0, huge - 1, 0, huge - 1}))},
      {"a mean of a long kernel, with any memory",
       of_node(window_node("AveragePool", {1, huge}, {0, huge - 1, 0, 100})), 0},
      {"the greatest of a long kernel",
       of_node(window_node("MaxPool", {1, huge}, {0, huge - 1, 0, huge - 1}))},
      {"a resized axis",
       of_node(with(node("Resize", {"x", "", "", "n"}, {"y"}),
                    attribute("mode", 3).text(field::AttributeProto::s, "linear")),
               {large_axis})},
      {"a reflected axis",
       of_node(with(node("Pad", {"x", "n"}, {"y"}),
                    attribute("mode", 3).text(field::AttributeProto::s, "reflect")),
               {int64s("n", {0, 0, 0, 0, 0, 0, 0, huge})})},
      {"a window function", of_node(node("HannWindow", {"n"}, {"y"}), {int64_scalar("n", huge)})},
      {"a transform", of_node(with(node("DFT", {"x", "n"}, {"y"}), int_attribute("axis", 2)),
                              {int64_scalar("n", 8000)})},
      {"a loop of 2^32 rounds", long_loop(int64_t{1} << 32)},
      {"an expanded sum, with any memory",
       model(typed_graph({node("Expand", {"x", "n"}, {"e"}), node("Mul", {"e", "e"}, {"f"}),
                          node("Exp", {"f"}, {"g"}), node("ReduceSum", {"g"}, {"y"})},
                         {floats("x", {dim(1), dim(1), dim(2), dim(2)})}, {"y"},
                         {int64s("n", {1 << 20, 1 << 20, 2, 2})})),
       0},
  };
  const TemporaryFolder folder;
  for (const Case& c : cases) {
    const std::string path = (folder / "model.onnx").string();
    std::ofstream(path, std::ios::binary | std::ios::trunc) << c.model.bytes();
    const Ended ended = run_apart(kSecondsMost, [&] { return trouble_with(path, c.memory_limit); });
    EXPECT_EQ(ended.signal(), 0) << c.name;
    EXPECT_EQ(ended.exit_status(), 0) << c.name;
    EXPECT_EQ(ended.text, "") << c.name;
  }
}

// Building a graph makes no table of a window's places.
TEST(Limits, BuildingAPoolTakesNoMemory) {
  const Ended ended = run_apart(kSecondsMost, [] {
    tiny_context* context = nullptr;
    tiny_context_create(nullptr, &context);
    const int64_t dims[] = {1, 1, 4}, kernel[] = {1 << 29}, before[] = {1 << 29}, after[] = {0};
    tiny_tensor *x = nullptr, *y = nullptr;
    tiny_full(context, TINY_FLOAT32, dims, 3, 1, &x);
    tiny_window* window = nullptr;
    tiny_window_create(1, &window);
    tiny_window_set_kernel(window, kernel, 1);
    tiny_window_set_padding(window, before, after, 1);
    const tiny_status status = tiny_avg_pool(x, window, &y);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    if (status != TINY_OK) return cat(tiny_last_error());
    return usage.ru_maxrss * 1024 > kResidentMost ? cat(usage.ru_maxrss, " kB") : std::string();
  });
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.text, "");
}

}  // namespace
}  // namespace tiny::onnx::testing
