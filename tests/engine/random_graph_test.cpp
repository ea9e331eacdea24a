// Random tensor graphs have the values that the oracle gives, on every device and option list.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ir/uop.h"
#include "tensor/value.h"
#include "tests/reference/random_graph.h"
#include "tests/reference/reference.h"
#include "tests/support/context.h"
#include "tests/support/environment.h"

namespace tiny {
namespace {

struct Setting {
  std::string name;
  std::string device;
  std::string isa;
  int64_t noopt;
};

void PrintTo(const Setting& setting, std::ostream* out) {
  *out << setting.name;
}

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const BackendInfo& backend : testing::computing_backends()) {
    std::vector<std::string> isas = backend.isas;
    if (isas.empty()) isas.push_back("auto");
    for (const std::string& isa : isas)
      for (const int64_t noopt : {0, 1})
        all.push_back(
            {backend.name + "_" + isa + (noopt ? "_noopt" : ""), backend.name, isa, noopt});
  }
  if (testing::has_opencl()) all.push_back({"opencl", "opencl", "auto", 0});
  if (testing::has_cuda()) all.push_back({"cuda", "cuda", "auto", 0});
  return all;
}

Flags flags_of(const Setting& setting) {
  Flags flags = testing::flags_for(setting.device, setting.isa);
  flags.noopt = setting.noopt;
  return flags;
}

std::string bytes_of(Tensor& t) {
  std::string bytes(static_cast<size_t>(element_count(t) * t.dtype().bytes()), '\xAA');
  read(t, bytes.data(), std::ssize(bytes));
  return bytes;
}

struct Tally {
  int64_t elements = 0;
  int64_t decided = 0;  // for which the oracle knows the value
  int64_t nodes = 0;
};

// "" if the graph of this seed has the oracle's values.
std::string check(const Setting& setting, uint64_t seed, testing::GraphOptions options,
                  Tally& tally) {
  const Ref<Context> context = make_ref<Context>(flags_of(setting));
  testing::RandomGraph graph(context, seed, options);
  std::string error;
  std::string nodes;
  try {
    std::vector<Tensor> made = graph.make();
    std::vector<reference::Values> wanted;
    for (const Tensor& t : made) wanted.push_back(reference::evaluate(t.node()));
    // Every second time in one schedule, where they may share kernels.
    std::vector<Tensor*> together;
    for (Tensor& t : made) together.push_back(&t);
    if (seed % 2 == 0) realize(together);
    for (size_t i = 0; i < made.size(); ++i) {
      const reference::Values& want = wanted[i];
      nodes = to_string(made[i].node());
      tally.elements += std::ssize(want.error);
      tally.decided += std::count_if(want.error.begin(), want.error.end(),
                                     [](double e) { return std::isfinite(e); });
      tally.nodes += std::ssize(topological({&made[i].node(), 1}));
      error = reference::difference(want, bytes_of(made[i]).data());
      if (!error.empty()) break;
    }
  } catch (const Error& e) {
    error = e.message();
  }
  return error.empty() ? "" : cat("seed ", seed, ": ", error, "\n", graph.story(), nodes);
}

class RandomGraphTest : public ::testing::TestWithParam<Setting> {};

// How many graphs a run tries, from which seed, how long, how large: GRAPHS, GRAPH_SEED,
// GRAPH_STEPS and GRAPH_ELEMENTS look further or at one.
TEST_P(RandomGraphTest, HasTheOraclesValues) {
  const bool slow = GetParam().device == "c" || GetParam().device == "opencl";
  const uint64_t first = testing::number_from("GRAPH_SEED", 1);
  const uint64_t count = testing::number_from("GRAPHS", slow ? 6 : 500);
  int failures = 0;
  Tally tally;
  for (uint64_t seed = first; seed < first + count && failures < 3; ++seed) {
    testing::GraphOptions options;
    options.transcendentals = seed % 3 == 0;
    options.steps = static_cast<int64_t>(testing::number_from("GRAPH_STEPS", 2 + seed % 11));
    options.elements_max = static_cast<int64_t>(testing::number_from("GRAPH_ELEMENTS", 600));
    const std::string error = check(GetParam(), seed, options, tally);
    EXPECT_EQ(error, "");
    failures += error.empty() ? 0 : 1;
  }
  // What is not decided is not tested.
  RecordProperty("elements", std::to_string(tally.elements));
  RecordProperty("nodes", std::to_string(tally.nodes));
  if (count >= 100) {
    EXPECT_GT(tally.decided * 10, tally.elements * 7);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, RandomGraphTest, ::testing::ValuesIn(settings()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tiny
