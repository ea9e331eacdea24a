// Damaged model files through the C ABI: each ends with a model or with a status and a message that
// names the place; what loads is compiled and run, with the same ending.
//
// Files are cut, have bytes or fields changed, or claim weights in other files.  HOSTILE_LOADS and
// HOSTILE_RUNS say how many of them, HOSTILE_FIRST where to begin.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "tests/onnx/file_mutator.h"
#include "tests/onnx/suite.h"
#include "tests/support/environment.h"
#include "tests/support/process.h"
#include "tiny.h"

namespace tiny::onnx::testing {
namespace {

namespace fs = std::filesystem;
using tiny::testing::Ended;
using tiny::testing::number_from;
using tiny::testing::run_apart;

constexpr size_t kCutEvery = 1009;
constexpr size_t kSmallFile = 64 << 10;
constexpr unsigned kLoadSeconds = 60, kRunSeconds = 20;
constexpr int64_t kMemory = 64 << 20;

// What a worker tells the process that started it; in memory that both see.
struct Shared {
  std::atomic<uint64_t> at;  // the file being loaded
  std::atomic<uint64_t> loads, accepted, runs, results, timeouts;
  std::atomic<uint64_t> troubles;
  char text[1 << 16];
};

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

void write_all(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// The models that damage begins from.
struct Corpus {
  std::vector<std::string> large;               // networks: cut and flipped
  std::vector<std::string> small;               // one operator each: everything else
  std::vector<std::pair<size_t, size_t>> cuts;  // a large model and how much of it is left

  explicit Corpus(const fs::path& package) {
    std::vector<fs::path> paths;
    const auto add = [&](const fs::path& folder) {
      if (!fs::exists(folder)) return;
      for (const auto& entry : fs::recursive_directory_iterator(folder))
        if (entry.path().extension() == ".onnx") paths.push_back(entry.path());
    };
    add(package / "backend/test/data/light");
    add(package.parent_path() / "magika");
    std::sort(paths.begin(), paths.end());
    for (const fs::path& path : paths) large.push_back(read_all(path));
    for (const std::string& folder : cases_below(package / "backend/test/data/node")) {
      const std::string file = folder + "/model.onnx";
      if (fs::file_size(file) <= kSmallFile) small.push_back(read_all(file));
    }
    for (size_t k = 0; k < large.size(); ++k)
      for (size_t size = 0; size < large[k].size(); size += kCutEvery) cuts.emplace_back(k, size);
  }
};

// A folder for models, with files and links beside it that a model must not reach.
class Playground {
 public:
  explicit Playground(size_t worker)
      : root_((access("/dev/shm", W_OK) == 0 ? fs::path("/dev/shm") : fs::temp_directory_path()) /
              cat("tiny_hostile_", getpid(), "_", worker)) {
    fs::remove_all(root_);
    fs::create_directories(root_ / "model/sub");
    write_all(root_ / "secret.bin", std::string(1 << 16, 's'));
    write_all(root_ / "model/good.bin", std::string(1 << 16, 'g'));
    write_all(root_ / "model/short.bin", "abc");
    write_all(root_ / "model/sub/good.bin", std::string(1 << 16, 'g'));
    fs::create_symlink("../secret.bin", root_ / "model/link.bin");
    fs::create_symlink("..", root_ / "model/out");
    fs::create_symlink("loop.bin", root_ / "model/loop.bin");
    mkfifo((root_ / "model/pipe.bin").c_str(), 0600);
  }
  ~Playground() { fs::remove_all(root_); }
  Playground(const Playground&) = delete;
  Playground& operator=(const Playground&) = delete;

  fs::path model() const { return root_ / "model/model.onnx"; }
  fs::path secret() const { return root_ / "secret.bin"; }

 private:
  fs::path root_;
};

// File number `i` of the sequence: every cut, then bytes, fields and other files in turn.
std::string hostile_file(const Corpus& corpus, const Playground& ground, uint64_t i) {
  if (i < corpus.cuts.size()) {
    const auto [model, size] = corpus.cuts[i];
    return corpus.large[model].substr(0, size);
  }
  FileMutator mutator(i);
  const std::string& small = corpus.small[mutator.below(corpus.small.size())];
  switch (i % 8) {
    case 0: {
      const std::string& large = corpus.large[mutator.below(corpus.large.size())];
      return mutator.with_other_bytes(large);
    }
    case 1:
      return mutator.with_other_bytes(small);
    case 2: {
      const std::string locations[] = {"good.bin",
                                       "sub/good.bin",
                                       "missing.bin",
                                       "../secret.bin",
                                       "sub/../link.bin",
                                       "link.bin",
                                       "out/secret.bin",
                                       "loop.bin",
                                       "pipe.bin",
                                       "sub",
                                       "",
                                       "/etc/passwd",
                                       "/proc/self/mem",
                                       "short.bin",
                                       ground.secret(),
                                       std::string(5000, 'a'),
                                       "sub/../../secret.bin"};
      const std::string numbers[] = {
          "", "0", "1", "65536", "-1", "9223372036854775807", "1e3", "99999999999999999999"};
      return FileMutator::with_external_data(
          corpus.large[mutator.below(corpus.large.size())].size() > kSmallFile ? small
                                                                               : corpus.large[0],
          locations[mutator.below(std::size(locations))],
          numbers[mutator.below(2) ? 0 : mutator.below(std::size(numbers))],
          numbers[mutator.below(2) ? 0 : mutator.below(std::size(numbers))]);
    }
    default:
      return mutator.with_other_fields(
          mutator.below(16) == 0 ? corpus.large[mutator.below(corpus.large.size())] : small);
  }
}

// A name in quotes, a byte, where among a run's indices, or that there is nothing in the file.
bool names_a_place(const std::string& message) {
  for (const char* sign : {"\"", " at byte ", " at position ", "the model file is empty",
                           "operator set", "a model of"})
    if (message.find(sign) != std::string::npos) return true;
  return false;
}

// What is wrong with how a call ended; empty if nothing is.
std::string complaint(const char* call, tiny_status status, bool must_name_place) {
  if (status == TINY_OK) return "";
  const std::string message = tiny_last_error();
  const auto name = std::string("tiny_") + call + ": ";
  if (status == TINY_ERROR_INTERNAL) return "INTERNAL: " + message;
  if (message.rfind(name, 0) != 0 || message.size() == name.size())
    return cat("no message of ", call, ": \"", message, "\"");
  if (must_name_place && !names_a_place(message)) return "names no place: " + message;
  return "";
}

tiny_context* make_context() {
  tiny_options* options = nullptr;
  tiny_context* context = nullptr;
  tiny_options_create(&options);
  tiny_options_set_int(options, "memory_limit", kMemory);
  tiny_options_set_int(options, "cache", 0);
  tiny_options_set_int(options, "threads", 1);
  tiny_context_create(options, &context);
  tiny_options_release(options);
  return context;
}

// Loads, compiles and runs the file on small integers.
std::string run_trouble(const std::string& path, bool& gave_result) {
  tiny_context* context = make_context();
  tiny_model* model = nullptr;
  std::string trouble =
      complaint("model_load", tiny_model_load(context, path.c_str(), &model), true);
  size_t inputs = 0, outputs = 0;
  if (model && trouble.empty()) {
    tiny_model_input_count(model, &inputs);
    tiny_model_output_count(model, &outputs);
  }
  std::vector<tiny_tensor*> given, made(outputs);
  bool complete = model != nullptr;
  for (size_t i = 0; i < inputs && complete; ++i) {
    int64_t dims[TINY_RANK_MAX];
    size_t rank = 0;
    tiny_dtype dtype = 0;
    tiny_tensor* tensor = nullptr;
    if (tiny_model_input_shape(model, i, dims, TINY_RANK_MAX, &rank) != TINY_OK ||
        tiny_model_input_dtype(model, i, &dtype) != TINY_OK || rank > TINY_RANK_MAX) {
      complete = false;
      break;
    }
    for (size_t k = 0; k < rank; ++k) dims[k] = dims[k] < 0 ? 2 : dims[k];
    complete = tiny_full(context, dtype, dims, rank, 1, &tensor) == TINY_OK;
    if (tensor) given.push_back(tensor);
  }
  if (complete && outputs > 0) {
    const tiny_status status =
        tiny_model_run(model, given.data(), given.size(), made.data(), outputs);
    // A size above a limit is the sum of many nodes' values.
    const bool of_size = status == TINY_ERROR_LIMIT || status == TINY_ERROR_OUT_OF_MEMORY;
    trouble = complaint("model_run", status, !of_size);
    if (status == TINY_OK)
      trouble = complaint("realize", tiny_realize(made.data(), outputs), false);
    gave_result = status == TINY_OK;
  }
  for (tiny_tensor* tensor : given) tiny_tensor_release(tensor);
  for (tiny_tensor* tensor : made) tiny_tensor_release(tensor);
  tiny_model_release(model);
  tiny_context_release(context);
  return trouble;
}

// The same in a process of its own: a run may ask for any time.
std::string run_trouble_apart(const std::string& path, Shared& shared) {
  const Ended ended = run_apart(kRunSeconds, [&] {
    bool gave_result = false;
    std::string text = run_trouble(path, gave_result);
    if (gave_result) ++shared.results;
    return text;
  });
  ++shared.runs;
  if (ended.signal() == SIGALRM) {
    ++shared.timeouts;
    return "";
  }
  if (ended.signal()) return cat("signal ", ended.signal(), " in a run");
  if (ended.exit_status() != 0 && ended.text.empty())
    return cat("exit status ", ended.exit_status(), " of a run");
  return ended.text;
}

struct Counts {
  uint64_t first, loads, runs;
};

// Every `workers`th file from `begin` on.
void work(const Corpus& corpus, const Counts& counts, uint64_t begin, uint64_t workers,
          Shared& shared) {
  const Playground ground(begin % workers);
  const std::string path = ground.model();
  tiny_context* context = make_context();
  for (uint64_t i = begin; i < counts.first + counts.loads; i += workers) {
    shared.at = i;
    write_all(path, hostile_file(corpus, ground, i));
    alarm(kLoadSeconds);
    tiny_model* model = nullptr;
    const tiny_status status = tiny_model_load(context, path.c_str(), &model);
    std::string trouble = complaint("model_load", status, true);
    if (status != TINY_OK && trouble.empty() && !std::strstr(tiny_last_error(), path.c_str()))
      trouble = cat("does not name the file: ", tiny_last_error());
    ++shared.loads;
    tiny_model_release(model);
    alarm(0);
    if (status == TINY_OK) {
      ++shared.accepted;
      if (trouble.empty() && shared.runs < counts.runs) trouble = run_trouble_apart(path, shared);
    }
    if (trouble.empty()) continue;
    if (std::getenv("HOSTILE_KEEP"))
      fs::copy_file(path, fs::path(std::getenv("HOSTILE_KEEP")) / cat(i, ".onnx"));
    ++shared.troubles;
    const size_t used = std::strlen(shared.text);
    std::snprintf(shared.text + used, sizeof shared.text - used, "file %llu: %s\n",
                  static_cast<unsigned long long>(i), trouble.c_str());
  }
  tiny_context_release(context);
}

// A worker that ends early has crashed over one file; the next one goes on behind it.
TEST(HostileFiles, EndWithAModelOrAMessageThatNamesThePlace) {
  const fs::path package = tiny::testing::onnx_package();
  if (package.empty()) GTEST_SKIP() << tiny::testing::kNoOnnxPackage;
  const Corpus corpus(package);
  const Counts counts{number_from("HOSTILE_FIRST", 0), number_from("HOSTILE_LOADS", 6000),
                      number_from("HOSTILE_RUNS", 100)};
  constexpr uint64_t kWorkers = 2;
  void* memory = mmap(nullptr, kWorkers * sizeof(Shared), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* shared = new (memory) Shared[kWorkers];
  pid_t children[kWorkers];
  const auto start = [&](uint64_t w, uint64_t begin) {
    const Counts share{counts.first, counts.loads, (counts.runs + kWorkers - 1) / kWorkers};
    const pid_t child = fork();
    if (child == 0) {
      work(corpus, share, begin, kWorkers, shared[w]);
      _exit(0);
    }
    children[w] = child;
  };
  for (uint64_t w = 0; w < kWorkers; ++w) start(w, counts.first + w);
  Shared total{};
  for (uint64_t w = 0; w < kWorkers; ++w) {
    for (int crashes = 0;; ++crashes) {
      int status = 0;
      waitpid(children[w], &status, 0);
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
      ADD_FAILURE() << "file " << shared[w].at << " ended the process with status " << status;
      if (crashes == 10) break;
      start(w, shared[w].at + kWorkers);
    }
    EXPECT_EQ(shared[w].troubles, 0u) << shared[w].text;
    total.loads += shared[w].loads;
    total.accepted += shared[w].accepted;
    total.runs += shared[w].runs;
    total.results += shared[w].results;
    total.timeouts += shared[w].timeouts;
  }
  munmap(memory, kWorkers * sizeof(Shared));
  std::printf(
      "%zu files were loaded (%zu of them cut), %zu accepted; %zu run, %zu to a result, "
      "%zu out of time\n",
      static_cast<size_t>(total.loads), corpus.cuts.size(), static_cast<size_t>(total.accepted),
      static_cast<size_t>(total.runs), static_cast<size_t>(total.results),
      static_cast<size_t>(total.timeouts));
  EXPECT_EQ(total.loads, counts.loads);
  EXPECT_GE(total.runs, counts.runs);
  EXPECT_GT(total.accepted, 0u);
  EXPECT_LE(total.timeouts * 50, total.runs);
}

}  // namespace
}  // namespace tiny::onnx::testing
