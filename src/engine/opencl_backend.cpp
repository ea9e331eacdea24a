#include "engine/opencl_backend.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cost/group_machines.h"
#include "render/c/opencl.h"
#include "runtime/opencl/device.h"

namespace tiny {
namespace {

constexpr int64_t kBufferAlignment = 256;  // Device::allocate

// The widest that drivers for processors compile well: kernels of 8 floats run at 57 to 106 GFLOPS,
// of 16 at 3 to 7 (PoCL 3.1 on Zen 5, whose native vectors it says are 16; ResNet-50's products).
constexpr int32_t kProcessorVectorBytes = 32;

// Limits are the device's own words; what things take on it nobody has measured: rates are those of
// a machine that is described.  A processor runs a group's threads one after the other between
// barriers, with all their values in memory: it has kernels for threads that work alone, on vectors
// of their own.
Machine machine_of(const opencl::Facts& facts) {
  constexpr int32_t kNoVectors = 4;
  Machine machine(generic_target(
      facts.is_processor ? std::clamp(facts.vector_bytes, kNoVectors, kProcessorVectorBytes)
                         : kNoVectors));
  if (!facts.is_processor) imitate(*find_group_machine("h100"), machine);
  machine.name = cat("opencl ", facts.model, " ", facts.platform);
  machine.cores = static_cast<int32_t>(facts.units);
  const auto threads = static_cast<int32_t>(facts.group_threads);
  machine.group.threads = facts.is_processor ? threads : std::min(machine.group.threads, threads);
  machine.group.shared_bytes = facts.is_processor
                                   ? facts.shared_bytes
                                   : std::min(machine.group.shared_bytes, facts.shared_bytes);
  machine.arena = {.alignment = kBufferAlignment, .page_bytes = 0, .margin = 0};
  return machine;
}

bool uses_float64(const LinearProgram& program) {
  for (const LinearOp& op : program.ops)
    if (op.dtype.scalar == ScalarType::Float64) return true;
  return false;
}

class OpenClBackend : public Backend {
 public:
  OpenClBackend(const Flags& flags, const DeviceNumber& which)
      : device_(make_opencl_device(which, flags.memory_kept)),
        machine_(machine_of(device_->facts())) {}
  Device& device() override { return *device_; }
  const Machine& machine() const override { return machine_; }
  std::vector<Code> render(std::span<const LinearProgram> programs, Form) override {
    for (const LinearProgram& program : programs)
      require(device_->facts().has_float64 || !uses_float64(program), Status::Unsupported,
              "kernel ", program.name, " computes with float64, which the device \"",
              device_->name(), "\" (", device_->facts().model, ") has not");
    return render_opencl(programs);
  }
  bool lists_source() const override { return true; }
  std::string listing(const LinearProgram& program) override {
    return render_opencl_unit({&program, 1});
  }

 private:
  std::unique_ptr<OpenClDevice> device_;
  Machine machine_;
};

BackendInfo info_of(const opencl::Facts& facts) {
  BackendInfo info{.name = facts.name, .description = cat(facts.model, " (", facts.platform, ")")};
  info.available = facts.missing.empty();
  info.reason = facts.missing;
  info.memory_bytes = facts.memory_bytes;
  info.buffer_bytes = facts.buffer_bytes;
  info.units = facts.units;
  info.group = {static_cast<int32_t>(facts.group_threads), facts.shared_bytes};
  return info;
}

}  // namespace

std::unique_ptr<Backend> make_opencl_backend(const Flags& flags, const DeviceNumber& which) {
  return std::make_unique<OpenClBackend>(flags, which);
}

std::vector<BackendInfo> list_opencl_backends() {
  BackendInfo none{.name = "opencl", .description = "", .available = false};
  try {
    std::vector<BackendInfo> all;
    for (const opencl::Facts& facts : opencl_devices()) all.push_back(info_of(facts));
    if (!all.empty()) return all;
    none.reason = "no driver has a device here";
  } catch (const Error& e) {
    if (e.status() != Status::Device) throw;
    none.reason = e.message();
  }
  return {none};
}

}  // namespace tiny
