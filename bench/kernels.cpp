// bench_kernels: single operations of tiny, through tiny.h alone, against libraries that have them.
//
//   bench_kernels [--threads N] [--isa auto|avx2] [--duration SECONDS] [--rounds N] [--only TEXT]
//                 [--list]
//
// Prints one JSON object: {"settings": [..], "rows": [..]}, the rows as row_json makes them; with
// --list only the rows' names.  The environment must hold the peers to the same threads and ISA:
// bench/kernels.py sets it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "engine.h"
#include "limits.h"
#include "rows.h"

namespace tiny::bench {
namespace {

struct Arguments {
  int threads = 1;
  std::string isa = "auto";
  Pace pace;
  std::string only;
  bool is_list = false;
};

// Which rows there are for a setting: all on one thread with all vectors; matrix products and two
// convolutions on more, and with narrower vectors.
enum Kept { kAlways, kWideOneThread };

struct GemmShape {
  const char* name;
  int64_t m, n, k;
  Kept kept;
};
constexpr GemmShape kGemms[] = {
    {"256^3", 256, 256, 256, kAlways},         {"512^3", 512, 512, 512, kAlways},
    {"1024^3", 1024, 1024, 1024, kAlways},     {"2048^3", 2048, 2048, 2048, kAlways},
    {"128x3072x768", 128, 3072, 768, kAlways}, {"251x509x127", 251, 509, 127, kAlways},
    {"1x3072x768", 1, 3072, 768, kAlways},     {"7x3072x768", 7, 3072, 768, kAlways},
    {"16x16x100000", 16, 16, 100000, kAlways}, {"1x64x262144", 1, 64, 262144, kAlways},
};

struct NamedConvolution {
  Convolution conv;
  Kept kept;
};

std::vector<NamedConvolution> convolutions() {
  return {
      {{"conv 3x3 64->64 at 56", 64, {56, 56}, 64, 3}, kAlways},
      {{"conv 3x3 128->128 at 28", 128, {28, 28}, 128, 3}, kWideOneThread},
      {{"conv 3x3 256->256 at 14", 256, {14, 14}, 256, 3}, kAlways},
      {{"conv 3x3 512->512 at 7", 512, {7, 7}, 512, 3}, kWideOneThread},
      {{"conv 7x7 stride 2 3->64 at 224", 3, {224, 224}, 64, 7, 2}, kWideOneThread},
      {{"conv 1x1 256->64 at 56", 256, {56, 56}, 64, 1}, kWideOneThread},
      {{"conv 1x1 64->256 at 56", 64, {56, 56}, 256, 1}, kWideOneThread},
      {{"conv 1x1 512->128 at 28", 512, {28, 28}, 128, 1}, kWideOneThread},
      {{"conv 1-D 3 256->256 at 512", 256, {512}, 256, 3}, kWideOneThread},
      {{"conv 1-D 5 128->128 at 1024", 128, {1024}, 128, 5}, kWideOneThread},
      {{"conv 1-D 9 64->64 at 2048", 64, {2048}, 64, 9}, kWideOneThread},
      {{"conv 1-D 15 64->64 at 2048", 64, {2048}, 64, 15}, kWideOneThread},
      {{"depthwise 3x3 32 at 112", 32, {112, 112}, 32, 3, 1, 32}, kWideOneThread},
      {{"depthwise 3x3 128 at 56", 128, {56, 56}, 128, 3, 1, 128}, kWideOneThread},
      {{"depthwise 3x3 144 at 56", 144, {56, 56}, 144, 3, 1, 144}, kWideOneThread},
      {{"depthwise 3x3 384 at 14", 384, {14, 14}, 384, 3, 1, 384}, kWideOneThread},
      {{"depthwise 3x3 960 at 7", 960, {7, 7}, 960, 3, 1, 960}, kWideOneThread},
      {{"depthwise 3x3 96 at 112 stride 2", 96, {112, 112}, 96, 3, 2, 96}, kWideOneThread},
      {{"depthwise and pointwise 32->64 at 112", 32, {112, 112}, 32, 3, 1, 32, 64}, kWideOneThread},
      {{"depthwise and pointwise 512->512 at 14", 512, {14, 14}, 512, 3, 1, 512, 512},
       kWideOneThread},
      {{"depthwise and pointwise 144->32 at 28", 144, {28, 28}, 144, 3, 1, 144, 32},
       kWideOneThread},
      {{"depthwise and pointwise 128->128 at 56", 128, {56, 56}, 128, 3, 1, 128, 128},
       kWideOneThread},
  };
}

struct NamedPass {
  const char* name;
  Bandwidth kind;
  int64_t rows, columns;
};
constexpr NamedPass kPasses[] = {
    {"relu(x*a+b)+c, 64 MB", Bandwidth::kChain, 16384, 1024},
    {"relu(x*a+b)+c, 4 MB", Bandwidth::kChain, 1024, 1024},
    {"relu(x*a+b)+c, 2 MB", Bandwidth::kChain, 512, 1024},
    {"softmax, 64 MB", Bandwidth::kSoftmax, 16384, 1024},
    {"softmax, 4 MB", Bandwidth::kSoftmax, 1024, 1024},
    {"softmax, 2 MB", Bandwidth::kSoftmax, 512, 1024},
    {"LayerNorm, 64 MB", Bandwidth::kLayerNorm, 16384, 1024},
    {"LayerNorm, 4 MB", Bandwidth::kLayerNorm, 1024, 1024},
    {"LayerNorm, 2 MB", Bandwidth::kLayerNorm, 512, 1024},
};

// Makes the rows one after the other: what an earlier one holds must not fill the caches.
class Runner {
 public:
  explicit Runner(const Arguments& arguments) : arguments_(arguments) {
    const bool is_single = arguments.threads == 1;
    context_ = new_context(arguments.threads, arguments.isa);
    if (!is_single) single_ = new_context(1, arguments.isa);
    const bool is_wide = arguments.isa != "avx2" && bench_is_wide() != 0;
    setting_ = {context_.get(), single_.get(), arguments.threads, is_wide};
    suffix_ = is_single ? "" : ", " + std::to_string(arguments.threads) + " threads";
    if (arguments.isa != "auto") suffix_ += ", " + arguments.isa;
  }

  void run_all() {
    for (const GemmShape& shape : kGemms) {
      gemm(shape, "matmul ", "", false);
      gemm(shape, "matmul ", ", constant B", true);
    }
    const GemmShape narrow{"1024^3", 1024, 1024, 1024, kWideOneThread};
    if (__builtin_cpu_supports("avx512bf16"))
      gemm(narrow, "matmul bf16 ", ", constant B", true, Elements::kBfloat16);
    if (__builtin_cpu_supports("avx512vnni"))
      gemm(narrow, "matmul int8 ", ", constant B", true, Elements::kInt8);
    for (const NamedConvolution& named : convolutions()) {
      convolution(named.conv.name, named.conv, named.kept, setting_);
      const std::string name = named.conv.name;
      if (name.find("conv 3x3") == 0)  // which are computed in Winograd tiles otherwise
        convolution(name + ", direct", named.conv, kWideOneThread, direct_setting());
    }
    for (const NamedPass& named : kPasses)
      run(named.name, kWideOneThread, [&](const std::string& name) {
        Pass pass{named.kind, named.rows, named.columns};
        finish(pass_row(setting_, name, pass));
      });
  }

 private:
  void convolution(const std::string& name, const Convolution& conv, Kept kept,
                   const Setting& setting) {
    run(name, kept, [&](const std::string& full) {
      Convolution work = conv;
      finish(convolution_row(setting, full, work));
    });
  }

  Setting direct_setting() {
    if (!direct_) direct_ = new_context(arguments_.threads, arguments_.isa, "0");
    Setting setting = setting_;
    setting.context = direct_.get();
    return setting;
  }

  // The work must outlive its row, whose peers read it.
  void gemm(const GemmShape& shape, const std::string& before, const std::string& after,
            bool is_constant, Elements elements = Elements::kFloat32) {
    run(before + shape.name + after, shape.kept, [&](const std::string& name) {
      Gemm work{shape.m, shape.n, shape.k, is_constant, elements};
      finish(gemm_row(setting_, name, work));
    });
  }

  template <typename Make>
  void run(const std::string& name, Kept kept, const Make& make) {
    if (kept == kWideOneThread && (arguments_.threads > 1 || arguments_.isa != "auto")) return;
    const std::string full = name + suffix_;
    if (full.find(arguments_.only) == full.npos) return;
    if (arguments_.is_list) {
      print("\"" + full + "\"");
      return;
    }
    std::fprintf(stderr, "bench: %s\n", full.c_str());
    try {
      make(full);
    } catch (const std::exception& problem) {  // the other rows are worth having
      std::fprintf(stderr, "bench: %s\n", problem.what());
      print(failed_json(full, problem.what()));
    }
  }

  void finish(const Row& row) { print(row_json(row, measure(row, arguments_.pace))); }

  void print(const std::string& text) {
    std::printf("%s\n%s", is_first_ ? "" : ",", text.c_str());
    is_first_ = false;
  }

  Arguments arguments_;
  Owned<tiny_context> context_;
  Owned<tiny_context> single_;
  Owned<tiny_context> direct_;  // without Winograd tiles
  Setting setting_;
  std::string suffix_;
  bool is_first_ = true;
};

void print_all(const Arguments& arguments) {
  std::printf("{\"settings\":[");
  const std::vector<std::string> settings = peer_settings();
  for (size_t i = 0; i < settings.size(); ++i)
    std::printf("%s\"%s\"", i > 0 ? "," : "", settings[i].c_str());
  std::printf("],\"rows\":[");
  Runner(arguments).run_all();
  std::printf("\n]}\n");
}

int main_of(int count, char** words) {
  Arguments arguments;
  CLI::App app("Single operations of tiny against libraries that have them");
  app.add_option("--threads", arguments.threads, "Of tiny; the environment holds the peers to it")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--isa", arguments.isa, "The same")
      ->check(CLI::IsMember({"auto", "avx2"}))
      ->capture_default_str();
  app.add_option("--duration", arguments.pace.seconds, "Seconds that a row is measured for")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--rounds", arguments.pace.rounds, "That a row has, unless they take long")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--only", arguments.only, "Rows whose name has this text");
  app.add_flag("--list", arguments.is_list, "Print the rows' names only");
  CLI11_PARSE(app, count, words);
  if (arguments.threads > 1) {  // threads that spin on after a turn would take part in the next one
    arguments.pace.turn = 0.01;
    arguments.pace.pause = 0.003;
  }
  print_all(arguments);
  return 0;
}

}  // namespace
}  // namespace tiny::bench

int main(int count, char** words) {
  try {
    return tiny::bench::main_of(count, words);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "bench_kernels: %s\n", problem.what());
    return 1;
  }
}
