// Models that are legal as files but make no sense: whatever a node's operands and attributes are,
// compiling and running ends with a result or an error of the model's, never with a crash.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "onnx/import/table.h"
#include "onnx/reader.h"
#include "tensor/create.h"
#include "tests/onnx/suite.h"
#include "tests/support/environment.h"
#include "tests/support/process.h"

namespace tiny::onnx::testing {
namespace {

// The address sanitizer, which needs room for its shadow memory.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kMapsTerabytes = true;
#elif defined(__has_feature)
constexpr bool kMapsTerabytes = __has_feature(address_sanitizer);
#else
constexpr bool kMapsTerabytes = false;
#endif

namespace fs = std::filesystem;
using tiny::testing::Ended;
using tiny::testing::number_from;
using tiny::testing::run_apart;

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  int64_t number() {
    constexpr int64_t kOdd[] = {0,
                                1,
                                -1,
                                2,
                                -2,
                                3,
                                4,
                                5,
                                7,
                                -5,
                                16,
                                100,
                                -100,
                                1 << 20,
                                int64_t{1} << 31,
                                int64_t{1} << 40,
                                INT64_MAX,
                                INT64_MIN,
                                INT64_MIN + 1};
    return kOdd[below(std::size(kOdd))];
  }

  void mutate(Model& model, std::vector<Tensor>& inputs) {
    for (size_t times = 1 + below(2); times > 0; --times) {
      std::vector<Graph*> graphs;
      add_graphs(model.graph, graphs);
      Graph& graph = *graphs[below(graphs.size())];
      if (graph.nodes.empty()) return;
      Node& node = graph.nodes[below(graph.nodes.size())];
      switch (below(8)) {
        case 0:
        case 1:
        case 2:
          change_attribute(node);
          break;
        case 3:
          if (!node.inputs.empty()) node.inputs[below(node.inputs.size())] = some_name(graph);
          break;
        case 4:
          if (!node.inputs.empty() && below(2) == 0)
            node.inputs.pop_back();
          else
            node.inputs.push_back(some_name(graph));
          break;
        case 5:
          change_operator(node);
          break;
        case 6:
          if (!node.attributes.empty())
            node.attributes.erase(node.attributes.begin() +
                                  static_cast<int64_t>(below(node.attributes.size())));
          break;
        default:
          if (!inputs.empty()) change_input(model, inputs, below(inputs.size()));
          break;
      }
    }
  }

 private:
  // The graph, and those of its nodes' attributes.
  static void add_graphs(Graph& graph, std::vector<Graph*>& graphs) {
    graphs.push_back(&graph);
    for (Node& node : graph.nodes)
      for (Attribute& attribute : node.attributes)
        for (Graph& inner : attribute.graphs) add_graphs(inner, graphs);
  }

  // One that is defined before every node.
  std::string some_name(const Graph& graph) {
    const size_t n = graph.inputs.size() + graph.initializers.size();
    if (n == 0) return "";
    const size_t i = below(n);
    return i < graph.inputs.size() ? graph.inputs[i].name
                                   : graph.initializers[i - graph.inputs.size()].name;
  }

  // A neighbour, wrapping around.
  int64_t nudged(int64_t v) {
    return static_cast<int64_t>(static_cast<uint64_t>(v) + below(5) - 2);
  }

  void change_attribute(Node& node) {
    if (node.attributes.empty()) return;
    Attribute& a = node.attributes[below(node.attributes.size())];
    switch (below(4)) {
      case 0:
        a.i = number();
        a.f = static_cast<float>(number());
        a.s = "?";
        break;
      case 1:
        if (!a.ints.empty()) a.ints[below(a.ints.size())] = number();
        a.i = nudged(a.i);
        break;
      case 2:
        if (!a.ints.empty() && below(2) == 0)
          a.ints.pop_back();
        else
          a.ints.push_back(number());
        break;
      default:
        if (!a.ints.empty()) {
          int64_t& v = a.ints[below(a.ints.size())];
          v = nudged(v);
        }
        break;
    }
  }

  void change_operator(Node& node) {
    const std::span<const std::span<const Row>> all = tables();
    const std::span<const Row> rows = all[below(all.size())];
    const Row& row = rows[below(rows.size())];
    node.op_type = row.op_type;
    node.domain = row.domain;
    node.version = row.last;
  }

  // Another shape, or other elements.
  void change_input(Model& model, std::vector<Tensor>& inputs, size_t i) {
    Tensor& x = inputs[i];
    ValueType& type = model.graph.inputs[i].type;
    if (below(2) == 0 && x.dtype() == kInt64) {
      HostTensor host = host_tensor(x);
      std::vector<int64_t> values(static_cast<size_t>(host.bytes.size()) / sizeof(int64_t));
      for (int64_t& v : values) v = number();
      x = from_data(x.context_ref(), kInt64, host.shape, values.data(), host.bytes.size());
      return;
    }
    Ints shape;
    for (size_t rank = below(5); rank > 0; --rank) shape.push_back(static_cast<int64_t>(below(4)));
    x = full(x.context_ref(), x.dtype(), to_shape(shape), 1);
    type.dims.clear();
    for (int64_t d : shape) type.dims.push_back({d, ""});
  }

  std::mt19937_64 random_;
};

// Loads, compiles and runs the case, changed.
void run_mutated(const std::string& folder, uint64_t seed) {
  const Ref<Context> context = default_context();
  Model model = read_model(folder + "/model.onnx");
  std::vector<Tensor> inputs =
      from_host(context, read_numbered(folder + "/test_data_set_0", "input_"));
  Mutator(seed).mutate(model, inputs);
  const Ref<LoadedModel> loaded = make_ref<LoadedModel>(context, std::move(model));
  for (const Tensor& output : loaded->run(inputs)) host_tensor(output);
}

// What went wrong in a process of its own; empty if nothing did.
std::string trouble(const std::string& folder, uint64_t seed) {
  if (std::getenv("MUTATION_HERE")) run_mutated(folder, seed);  // for a debugger
  const Ended ended = run_apart(20, [&]() -> std::string {
    if (!kMapsTerabytes) {
      const rlimit memory{rlim_t{3} << 30, rlim_t{3} << 30};
      setrlimit(RLIMIT_AS, &memory);
    }
    try {
      run_mutated(folder, seed);
    } catch (const Error& e) {
      if (e.status() == Status::Internal) return e.message();
    } catch (const std::bad_alloc&) {
    } catch (const std::exception& e) {
      return cat("an exception: ", e.what());
    }
    return "";
  });
  // Time and memory are the caller's to limit.
  const int signal = ended.signal();
  if (signal != 0 && signal != SIGALRM && signal != SIGKILL) return cat("signal ", signal);
  if (ended.exit_status() != 0 && ended.text.empty())
    return cat("exit status ", ended.exit_status());
  return ended.text;
}

// MUTATION_SEED and MUTATION_COUNT choose others than the few of every run, MUTATION_CASES a folder
// of other cases (tests/peers/contributed_test.py and ml_test.py write theirs with --save).
TEST(Mutation, SenselessModelsEndWithAnError) {
  const fs::path package = tiny::testing::onnx_package();
  if (package.empty()) GTEST_SKIP() << tiny::testing::kNoOnnxPackage;
  const uint64_t first = number_from("MUTATION_SEED", 1);
  const uint64_t count = number_from("MUTATION_COUNT", 1000);
  const char* const other = std::getenv("MUTATION_CASES");
  const fs::path folder_of_cases = other ? fs::path(other) : package / "backend/test/data/node";
  const std::vector<std::string> cases = cases_below(folder_of_cases);
  size_t troubles = 0;
  for (uint64_t seed = first; seed < first + count && troubles < 30; ++seed) {
    const std::string& folder = cases[std::mt19937_64(seed)() % cases.size()];
    const std::string text = trouble(folder, seed);
    if (!text.empty()) {
      ++troubles;
      ADD_FAILURE() << "seed " << seed << ", " << fs::path(folder).filename() << ": " << text;
    }
  }
}

}  // namespace
}  // namespace tiny::onnx::testing
