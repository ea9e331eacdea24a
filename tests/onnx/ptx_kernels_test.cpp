// Every kernel of onnx's node suite as PTX, for each generation of GPUs, through the assembler:
// they are made as for such a device, and interpreted.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <vector>

#include "cost/group_machines.h"
#include "engine/backend.h"
#include "render/bytecode.h"
#include "render/ptx/ptx.h"
#include "runtime/interp/interp.h"
#include "tests/onnx/suite.h"
#include "tests/onnx/suite_kernels.h"
#include "tests/support/assembler.h"
#include "tests/support/environment.h"

namespace tiny {
namespace {

// Equal but for their names, once.
class Programs {
 public:
  void add(const LinearProgram& program) {
    const std::lock_guard lock(mutex_);
    LinearProgram copy = program;
    copy.name = "k";
    if (!known_.try_emplace(to_string(copy), found_.size()).second) return;
    copy.name = cat("k", found_.size());
    copy.stop = nullptr;
    found_.push_back(std::move(copy));
  }
  const std::vector<LinearProgram>& found() const { return found_; }

 private:
  std::mutex mutex_;
  std::map<std::string, size_t> known_;
  std::vector<LinearProgram> found_;
};

Programs& interpreted() {
  static Programs programs;
  return programs;
}

// The interpreter, with choices as for a graphics processor.
class GroupBackend : public Backend {
 public:
  GroupBackend() : device_(make_interpreter_device()), machine_(generic_target(16)) {
    machine_.dots = kIntegerDots;
    imitate(*find_group_machine("h100"), machine_);
  }
  Device& device() override { return *device_; }
  const Machine& machine() const override { return machine_; }
  bool is_fast() const override { return false; }
  std::vector<Code> render(std::span<const LinearProgram> programs, Form) override {
    std::vector<Code> codes;
    for (const LinearProgram& program : programs) {
      interpreted().add(program);
      codes.push_back(render_bytecode(program));
    }
    return codes;
  }
  std::string listing(const LinearProgram& program) override { return to_string(program); }

 private:
  std::unique_ptr<Device> device_;
  Machine machine_;
};

}  // namespace

// The linker puts this in the place of make_backend.
std::unique_ptr<Backend> group_backend(const Flags& flags) asm(
    "__wrap__ZN4tiny12make_backendERKNS_5FlagsE");
std::unique_ptr<Backend> group_backend(const Flags&) {
  return std::make_unique<GroupBackend>();
}

namespace {

namespace fs = std::filesystem;

// Kernels that are assembled at once: the program of a process, not its start, is what takes time.
constexpr size_t kKernelsOfUnit = 100;

class PtxKernels : public ::testing::TestWithParam<const char*> {};

TEST_P(PtxKernels, AssembleWithoutASpill) {
  const std::string assembler = testing::ptx_assembler();
  if (assembler.empty()) GTEST_SKIP() << testing::kNoAssembler;
  if (testing::onnx_package().empty()) GTEST_SKIP() << testing::kNoOnnxPackage;
  const std::vector<LinearProgram>& all = testing::kernels_of_suite();
  EXPECT_GT(all.size(), 1000U);
  for (size_t first = 0; first < all.size(); first += kKernelsOfUnit) {
    const std::span unit(&all[first], std::min(kKernelsOfUnit, all.size() - first));
    const std::string text = render_ptx_unit(unit, ptx_target(std::string(GetParam())))[0].text;
    const testing::Assembled got = testing::assemble(assembler, text, GetParam());
    EXPECT_EQ(got.status, 0) << got.log.substr(0, 4000);
    EXPECT_EQ(got.spilled(), std::vector<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, PtxKernels,
                         ::testing::Values("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a",
                                           "sm_120a"));

}  // namespace

const std::vector<LinearProgram>& testing::kernels_of_suite() {
  const fs::path package = testing::onnx_package();
  const std::vector<LinearProgram>& found = interpreted().found();
  if (package.empty() || !found.empty()) return found;
  setenv("TINY_CACHE", "0", 1);
  for (const std::string& folder : onnx::testing::cases_below(package / "backend/test/data/node"))
    onnx::testing::run_case(folder, {});
  std::printf("%zu kernels\n", found.size());
  return found;
}

}  // namespace tiny
