#include "engine/cuda_backend.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cost/group_machines.h"
#include "render/ptx/ptx.h"
#include "runtime/cuda/cuda.h"

namespace tiny {
namespace {

constexpr int64_t kBufferAlignment = 256;  // Device::allocate

// The version of PTX that a driver's assembler knows, as 10 * major + minor (PTX ISA, "Release
// Notes": CUDA 11.4 has 7.4, 12.0 8.0, 12.5 and 12.6 both 8.5, 13.0 9.0).
int ptx_of_driver(int version) {
  const int major = version / 1000, minor = version % 1000 / 10;
  return 10 * (major - 4) + (major == 12 && minor > 5 ? minor - 1 : minor);
}

PtxTarget target_of(const CudaFacts& facts) {
  PtxTarget target = ptx_target(facts.compute, ptx_of_driver(facts.driver_version));
  target.parameter_alignment = kCudaAlignment;
  return target;
}

template <class T, class From>
void take(T& to, From said) {
  if (said > 0) to = static_cast<T>(said);
}

// Limits are the driver's words, and so are clocks and the width of memory; what steps take on it
// nobody has measured: they take the cycles of the one that is described.
Machine machine_of(const CudaFacts& facts, const PtxTarget& target, const Flags& flags) {
  constexpr int kHopper = 90;
  const GroupMachine& described = *find_group_machine(facts.compute >= kHopper ? "h100" : "a100");
  Machine machine(generic_target(described.limits.access_bytes));
  imitate(described, machine);
  machine.name = cat("cuda ", target.name, " ", facts.name, ", driver ", facts.driver_version);
  machine.cores = facts.multiprocessors;
  take(machine.l2_bytes, facts.l2_bytes);
  machine.l3_bytes = machine.l2_bytes;
  machine.group.threads = std::min(machine.group.threads, facts.group_threads);
  machine.group.shared_bytes = std::min(machine.group.shared_bytes, facts.shared_bytes);
  machine.group.argument_alignment = kCudaAlignment;
  machine.group.matrices = matrices_of(target, flags.tf32 != 0);
  GroupRates& rates = machine.of_groups;
  take(rates.threads, facts.resident_threads);
  take(rates.groups, facts.resident_groups);
  take(rates.registers, facts.registers);
  take(rates.shared_bytes, facts.resident_shared_bytes);
  take(rates.clock, facts.clock);
  take(machine.memory_bandwidth, facts.memory_bandwidth);
  const double times =
      rates.clock * machine.cores / (described.rates.of_groups.clock * described.processors);
  for (double* rate : {&machine.fma_rate, &machine.l2_bandwidth, &machine.l3_bandwidth,
                       &rates.matrix_rate, &rates.wide_matrix_rate})
    *rate *= times;
  machine.arena = {.alignment = kBufferAlignment, .page_bytes = 0, .margin = 0};
  return machine;
}

class CudaBackend : public Backend {
 public:
  CudaBackend(const Flags& flags, int64_t number)
      : device_(make_cuda_device(number, {flags.memory_kept})),
        target_(target_of(device_->facts())),
        machine_(machine_of(device_->facts(), target_, flags)) {}
  Device& device() override { return *device_; }
  const Machine& machine() const override { return machine_; }
  // Assembled here already, so that what is kept on disk need not be again.
  std::vector<Code> render(std::span<const LinearProgram> programs, Form) override {
    std::vector<Code> codes;
    for (const LinearProgram& program : programs)
      codes.push_back(device_->assemble(units_of(program)));
    return codes;
  }
  Ref<Collectives> collectives(std::span<Backend* const> backends) override {
    std::vector<CudaDevice*> devices;
    for (Backend* one : backends) {
      if (one->device().driver() != device_->driver()) return {};
      devices.push_back(static_cast<CudaBackend*>(one)->device_.get());
    }
    return device_->collectives(devices);
  }
  std::string listing(const LinearProgram& program) override {
    return render_ptx(program, target_).text;
  }

 private:
  // The program, and where it relies on its arguments' alignment what does not.
  std::vector<Code> units_of(const LinearProgram& program) const {
    PtxTarget any = target_;
    any.parameter_alignment = 1;
    std::vector<Code> units{render_ptx(program, target_)};
    LinearProgram unaligned = program;
    for (LinearParam& param : unaligned.params) param.alignment = 1;
    if (render_ptx(unaligned, any).text == units[0].text) return units;
    unaligned.name += kAnyAlignment;
    units.push_back(render_ptx(unaligned, any));
    return units;
  }

  std::unique_ptr<CudaDevice> device_;
  PtxTarget target_;
  Machine machine_;
};

BackendInfo info_of(const CudaFacts& facts, size_t number) {
  BackendInfo info{.name = cat("cuda:", number),
                   .description = cat(facts.name, ", compute capability ", facts.compute / 10, ".",
                                      facts.compute % 10)};
  info.reason = facts.missing;
  info.available = facts.missing.empty();
  info.memory_bytes = facts.memory_bytes;
  info.buffer_bytes = facts.memory_bytes;
  info.units = facts.multiprocessors;
  info.group = {facts.group_threads, facts.shared_bytes};
  return info;
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const Flags& flags, const DeviceNumber& which) {
  return std::make_unique<CudaBackend>(flags, which.number);
}

std::vector<BackendInfo> list_cuda_backends() {
  BackendInfo none{.name = "cuda", .description = "", .available = false};
  try {
    std::vector<BackendInfo> all;
    for (const CudaFacts& facts : list_cuda_devices()) all.push_back(info_of(facts, all.size()));
    if (!all.empty()) return all;
    none.reason = "the driver has no device here";
  } catch (const Error& e) {
    if (e.status() != Status::Device && e.status() != Status::DeviceLost) throw;
    none.reason = e.message();
  }
  return {none};
}

}  // namespace tiny
