// A launch of what the renderer of PTX makes of one program, on the emulated machine.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/kernel_abi.h"
#include "render/ptx/ptx.h"
#include "tests/emulation/ptx_machine.h"
#include "tests/emulation/ptx_program.h"

namespace tiny::emulation {

inline constexpr uint64_t kLaunchRoom = uint64_t{1} << 30;
inline constexpr uint64_t kStatusBytes = 16;
inline constexpr uint64_t kMostInstructions = 100'000'000;

// A launch of one program, as docs/architecture/ptx.md says: buffers go there and back.
class Launched {
 public:
  using Edit = std::function<void(std::string& text)>;
  Launched(const LinearProgram& program, const std::string& target, const Edit& edit = {})
      : code_(render_ptx(program, ptx_target(target))) {
    if (edit) edit(code_.text);
    module_ = parse_module(code_.text);
  }

  void add_buffer(void* host, int64_t bytes) {
    const uint64_t address = memory_.allocate(static_cast<uint64_t>(bytes), 0, kLaunchRoom);
    std::memcpy(at(address, static_cast<uint64_t>(bytes)), host, static_cast<size_t>(bytes));
    buffers_.push_back({host, address, static_cast<uint64_t>(bytes)});
    arguments_.push_back(address);
  }
  void add_variable(int64_t value) { arguments_.push_back(static_cast<uint64_t>(value)); }

  // In so many blocks, each of `piece` steps.
  void run(int64_t begin, int64_t end, int64_t piece, uint32_t blocks, uint64_t seed,
           AccessCounts* counts = nullptr) {
    const uint64_t status = memory_.allocate(kStatusBytes, 0, kLaunchRoom);
    std::memset(at(status, kStatusBytes), 0, kStatusBytes);
    for (const int64_t last : {begin, end, piece}) add_variable(last);
    arguments_.push_back(status);
    KernelLaunch launch;
    launch.entry = &module_.entries.at(code_.entry);
    launch.grid = {blocks, 1, 1};
    for (size_t axis = 0; axis < 3; ++axis)
      launch.block[axis] = static_cast<uint32_t>(std::max<int64_t>(code_.group[axis], 1));
    launch.dynamic_shared = static_cast<uint32_t>(code_.shared_bytes);
    launch.parameters.resize(arguments_.size() * sizeof arguments_[0]);
    std::memcpy(launch.parameters.data(), arguments_.data(), launch.parameters.size());
    Machine machine(memory_, 0, seed);
    machine.set_most_instructions(kMostInstructions);
    machine.set_counts(counts);
    machine.run(launch);
    for (const Copied& b : buffers_) std::memcpy(b.host, at(b.address, b.bytes), b.bytes);
    uint32_t check = 0;
    int64_t position = 0;
    std::memcpy(&check, at(status, 4), 4);
    std::memcpy(&position, at(status + 8, 8), 8);
    if (check != 0) status_ = check_status(int64_t{check} - 1, position);
  }
  int64_t status() const { return status_; }
  const Code& code() const { return code_; }

 private:
  struct Copied {
    void* host;
    uint64_t address, bytes;
  };
  std::byte* at(uint64_t address, uint64_t bytes) { return memory_.find(address, bytes, 0); }

  Code code_;
  Module module_;
  GlobalMemory memory_;
  std::vector<Copied> buffers_;
  std::vector<uint64_t> arguments_;
  int64_t status_ = 0;
};

}  // namespace tiny::emulation
