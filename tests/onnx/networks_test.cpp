// How many kernels real networks become, and how well their memory is packed.  They are compiled
// for a device that computes nothing: Magika as its package has it, the others as
// tests/peers/make_models.py writes them below NETWORKS.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "onnx/session.h"
#include "tests/support/context.h"
#include "tests/support/environment.h"

namespace tiny::onnx {
namespace {

namespace fs = std::filesystem;

// The model file, empty where the environment names no folder that has it.
fs::path magika() {
  const fs::path package = tiny::testing::onnx_package();
  const fs::path file = package.parent_path() / "magika/models/standard_v3_3/model.onnx";
  return package.empty() || !fs::exists(file) ? fs::path() : file;
}

fs::path network(const std::string& name) {
  const char* folder = std::getenv("NETWORKS");
  if (!folder || !*folder) return {};
  const fs::path file = fs::path(folder) / name / "model.onnx";
  return fs::exists(file) ? file : fs::path();
}

constexpr const char* kNoModel = "scripts/setup.sh makes an environment that has it";

class Networks : public ::testing::TestWithParam<const char*> {
 protected:
  // Kernels of one run for inputs of these shapes (none: the model fixes them), after a look at the
  // memory: the arena is at most 1.25 of what must be there at once.
  // Convolutions are not computed in tiles unless `wino` says so: that is three kernels for one.
  size_t kernels(const fs::path& file, std::vector<Ints> shapes = {}, const char* wino = "0") {
    Flags flags = tiny::testing::flags_for("null", GetParam());
    flags.wino = wino;
    const Ref<Context> context = make_ref<Context>(flags);
    const Ref<LoadedModel> model = make_ref<LoadedModel>(context, file);
    if (shapes.empty()) shapes = model->fixed_shapes();
    const Program& program = *model->compile(shapes)->compiled.program;
    const auto arena = static_cast<double>(program.arena_bytes);
    const auto live = static_cast<double>(program.live_bytes_max);
    EXPECT_GT(live, 0);
    EXPECT_LE(arena, 1.25 * live) << file;
    copies_ = 0;
    for (const TapeEntry& entry : program.tape) {
      EXPECT_FALSE(entry.info.interpreted);
      copies_ += entry.info.operations == 0 ? 1 : 0;
    }
    std::printf("%s, %s: %zu kernels, arena %.2f of the largest live sum\n",
                file.parent_path().filename().c_str(), GetParam(), program.tape.size(),
                arena / live);
    return program.tape.size();
  }

  int copies_ = 0;  // kernels of the last that compute nothing
};

TEST_P(Networks, MagikaIsAtMostSixKernels) {
  if (magika().empty()) GTEST_SKIP() << kNoModel;
  EXPECT_LE(kernels(magika(), {{1, 2048}}), 6U);
  EXPECT_LE(kernels(magika(), {{10, 2048}}), 9U);
}

TEST_P(Networks, ResNet50IsAtMostFiftySevenKernels) {
  if (network("resnet50").empty()) GTEST_SKIP() << kNoModel;
  EXPECT_LE(kernels(network("resnet50")), 57U);
}

// Two more for each of the thirteen convolutions 3x3 that tiles make faster.
TEST_P(Networks, ResNet50InTilesIsAtMostTwentySixMore) {
  if (network("resnet50").empty()) GTEST_SKIP() << kNoModel;
  const size_t tiled = kernels(network("resnet50"), {}, "auto");
  EXPECT_LE(tiled, 56U + 26U);
  EXPECT_GE(tiled, 56U + 10U);
}

TEST_P(Networks, MobileNetV2IsAtMostThirtyEightKernels) {
  if (network("mobilenet_v2").empty()) GTEST_SKIP() << kNoModel;
  EXPECT_LE(kernels(network("mobilenet_v2")), 38U);
}

TEST_P(Networks, AnEncoderLayerIsAtMostNineKernels) {
  const fs::path one = network("one_layer/transformer"), four = network("transformer");
  if (one.empty() || four.empty()) GTEST_SKIP() << kNoModel;
  for (const Ints& shape : {Ints{1, 128}, Ints{2, 37}}) {
    const size_t first = kernels(one, {shape});
    const size_t all = kernels(four, {shape});
    ASSERT_GT(all, first);
    EXPECT_LE(all - first, 3 * 9U) << shape[1] << " tokens";
    EXPECT_LE(first, 9U + 5U) << "with what stands before and behind the layer";
  }
}

// Values lie in one order from a network's first kernel to its last.
TEST_P(Networks, ChainsOfConvolutionsAreNotReordered) {
  for (const char* name : {"resnet50", "mobilenet_v2"}) {
    if (network(name).empty()) GTEST_SKIP() << kNoModel;
    kernels(network(name));
    EXPECT_EQ(copies_, 0) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(For, Networks, ::testing::Values("avx512", "avx2"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tiny::onnx
