#include "engine/backend.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cost/group_machines.h"
#include "cost/processors.h"
#include "engine/cuda_backend.h"
#include "engine/measure_speeds.h"
#include "engine/opencl_backend.h"
#include "engine/text_backend.h"
#include "render/bytecode.h"
#include "render/c/c.h"
#include "render/x86/x86.h"
#include "runtime/cdev/cdev.h"
#include "runtime/cpu/cpu.h"
#include "runtime/cpu/cpuid.h"
#include "runtime/far/far.h"
#include "runtime/interp/interp.h"
#include "runtime/null/null.h"

namespace tiny {

DotSet dots_of(const CpuFacts& facts, CpuIsa isa) {
  DotSet dots = 0;
  if (isa == CpuIsa::Avx512) {
    if (facts.has_byte_dots) dots |= dot_bit(DotKind::U8S8);
    if (facts.has_bfloat_dots) dots |= dot_bit(DotKind::Bf16);
  } else {
    if (facts.has_byte_dots_avx2) dots |= dot_bit(DotKind::U8S8);
    if (facts.has_signed_dots_avx2) dots |= kIntegerDots;
  }
  return dots;
}

DotSet tiles_of(const CpuFacts& facts, CpuIsa isa) {
  const bool has_tiles = isa == CpuIsa::Avx512 && facts.has_byte_tiles;
  return has_tiles ? static_cast<DotSet>(dots_of(facts, isa) & kIntegerDots) : DotSet{0};
}

namespace {

// What is measured is never twice the same, and other choices are other bits.
void check_deterministic(const Flags& flags) {
  if (flags.deterministic == 0) return;
  require(flags.beam == 0, Status::InvalidArgument, "options deterministic=1 and beam=", flags.beam,
          ": a search chooses by time");
  require(flags.processor != "measure", Status::InvalidArgument,
          "options deterministic=1 and processor=measure: choices would follow what is measured");
}

// Those that give what the products and sums would, and the others where they are allowed.
DotSet allowed(DotSet dots, const Flags& flags) {
  return flags.bf16_dots != 0 ? dots : static_cast<DotSet>(dots & kIntegerDots);
}

// A compute capability that has all products of matrices.
constexpr int32_t kAnyCompute = INT32_MAX;

// Bytecode on the interpreter: every program, on every processor.
class InterpreterBackend : public Backend {
 public:
  InterpreterBackend(const Flags& flags, std::unique_ptr<Device> device)
      : device_(std::move(device)), machine_(generic_target(64)) {
    machine_.name = device_->name();
    machine_.dots = allowed(kAllDots, flags);
    machine_.group.threads = 1024;  // as a graphics processor has them
    machine_.group.shared_bytes = 48 << 10;
    machine_.group.matrices = matrices_of(kAnyCompute, flags.tf32 != 0);
    if (const GroupMachine* of = find_group_machine(flags.processor)) {
      imitate(*of, machine_);
      machine_.group.matrices = matrices_of(of->compute, flags.tf32 != 0);
    }
    if (!device_->sees_host() || machine_.computes_in_groups())
      machine_.arena = {.alignment = 256, .page_bytes = 0, .margin = 0};
  }
  Device& device() override { return *device_; }
  const Machine& machine() const override { return machine_; }
  bool is_fast() const override { return false; }
  std::vector<Code> render(std::span<const LinearProgram> programs, Form) override {
    std::vector<Code> codes;
    for (const LinearProgram& program : programs) codes.push_back(render_bytecode(program));
    return codes;
  }
  std::string listing(const LinearProgram& program) override { return to_string(program); }

 private:
  std::unique_ptr<Device> device_;
  Machine machine_;
};

// How many cores choices assume where results must not depend on how many there are: sums are cut
// into as many parts with one thread as with any other number.
constexpr int32_t kDeterministicCores = 2;

// The cores that choices assume, where kernels run on so many threads.
int32_t assumed_cores(const Flags& flags, int32_t threads) {
  return flags.deterministic != 0 ? kDeterministicCores : threads;
}

// What the processor can do, and what that takes, as data for the choices and codegen.
Machine cpu_machine(const CpuFacts& facts, CpuIsa isa, const Flags& flags) {
  Machine machine(isa == CpuIsa::Avx512 ? avx512_target() : avx2_target());
  machine.dots = allowed(dots_of(facts, isa), flags);
  machine.tiles = tiles_of(facts, isa);
  machine.l1_bytes = facts.l1_bytes;
  machine.l2_bytes = facts.l2_bytes;
  machine.l3_bytes = std::max(facts.l3_bytes, facts.l2_bytes);
  if (flags.processor == "auto") {
    if (const Processor* p = find_processor(facts.vendor, facts.family, facts.model))
      static_cast<Rates&>(machine) = rates_of(*p, machine);
    machine.bypass_bytes = machine.l3_bytes;  // of the cache that this one has
  } else if (const Processor* p = find_processor(flags.processor)) {
    imitate(*p, machine);
  } else {
    machine.bypass_bytes = machine.l3_bytes;
  }
  return machine;
}

void check_processor(const Flags& flags, const std::string& device) {
  const std::string& wanted = flags.processor;
  if (wanted == "auto" || wanted == "measure" || find_processor(wanted)) return;
  if (find_group_machine(wanted)) {
    require(
        device == "interp" || device == "far", Status::InvalidArgument, "processor \"", wanted,
        "\" computes in groups of threads: of devices that can be any, interp and far are; got ",
        device);
    return;
  }
  std::string names = "auto, measure";
  for (const Processor& p : known_processors()) names += cat(", ", p.name);
  for (const GroupMachine& m : known_group_machines()) names += cat(", ", m.name);
  throw_error(Status::InvalidArgument, "processor \"", wanted, "\": known are ", names);
}

// Bytecode for a program with an op that the target has no instructions for, and for every one
// where machine code of the target is not made.
Code machine_code(const LinearProgram& program, const Target& target) {
  try {
    return render_x86(program, target);
  } catch (const Error& e) {
    if (e.status() != Status::Unsupported) throw;
    return render_bytecode(program);
  }
}

std::string machine_listing(const LinearProgram& program, const Target& target) {
  return machine_code(program, target).kind == CodeKind::MachineCode ? x86_listing(program, target)
                                                                     : to_string(program);
}

// Machine code made here; bytecode for what the memory protection of the system refuses.
class CpuBackend : public Backend {
 public:
  CpuBackend(const Flags& flags, const CpuFacts& facts, CpuIsa isa)
      : device_(make_cpu_device({static_cast<int>(flags.threads), flags.perf_map != 0,
                                 flags.memory_kept, flags.threads_of_caller})),
        machine_(cpu_machine(facts, isa, flags)) {
    machine_.cores =
        assumed_cores(flags, flags.threads > 0 ? static_cast<int32_t>(flags.threads) : facts.cores);
    if (flags.processor == "measure")
      static_cast<Rates&>(machine_) = measure_speeds(*this, machine_, StopSignal());
    else if (flags.processor == "auto" && flags.deterministic == 0 &&
             !find_processor(facts.vendor, facts.family, facts.model))
      static_cast<Rates&>(machine_) = cached_speeds(*this, machine_, facts.brand, flags);
  }
  Device& device() override { return *device_; }
  const Machine& machine() const override { return machine_; }
  std::vector<Code> render(std::span<const LinearProgram> programs, Form form) override {
    std::vector<Code> codes;
    for (const LinearProgram& program : programs)
      codes.push_back(form == Form::Best ? machine_code(program, machine_)
                                         : render_bytecode(program));
    return codes;
  }
  std::string listing(const LinearProgram& program) override {
    return machine_listing(program, machine_);
  }

 private:
  std::unique_ptr<Device> device_;
  Machine machine_;
};

// C compiled by the system's compiler: a batch is one translation unit.
class CBackend : public Backend {
 public:
  explicit CBackend(const Flags& flags)
      : device_(make_c_device({flags.cc, "/tmp", {}})), machine_(generic_target(64)) {
    machine_.name = "c";
    machine_.dots = allowed(kAllDots, flags);
  }
  Device& device() override { return *device_; }
  const Machine& machine() const override { return machine_; }
  std::vector<Code> render(std::span<const LinearProgram> programs, Form) override {
    const std::string text = render_c_unit(programs);
    std::vector<Code> codes;
    for (const LinearProgram& program : programs) {
      Code code;
      code.kind = CodeKind::C;
      code.name = program.name;
      code.entry = program.name;
      code.text = text;
      code.scratch_bytes = program.scratch_bytes;
      codes.push_back(std::move(code));
    }
    return codes;
  }
  std::string listing(const LinearProgram& program) override { return render_c(program).text; }

 private:
  std::unique_ptr<Device> device_;
  Machine machine_;
};

// Everything but the work itself, for the processor that the settings name.
class NullBackend : public Backend {
 public:
  explicit NullBackend(const Flags& flags)
      : device_(make_null_device()),
        machine_(flags.isa == "avx2" ? avx2_target() : avx512_target()) {
    if (const Processor* p = find_processor(flags.processor)) imitate(*p, machine_);
    require(limit_isa(CpuIsa::Avx512, flags.isa) != CpuIsa::None, Status::InvalidArgument,
            "device null makes machine code: isa \"", flags.isa, "\" has none");
    machine_.cores =
        assumed_cores(flags, flags.threads > 0 ? static_cast<int32_t>(flags.threads) : 1);
  }
  Device& device() override { return *device_; }
  const Machine& machine() const override { return machine_; }
  bool is_fast() const override { return false; }
  std::vector<Code> render(std::span<const LinearProgram> programs, Form) override {
    std::vector<Code> codes;
    for (const LinearProgram& program : programs) codes.push_back(machine_code(program, machine_));
    return codes;
  }
  std::string listing(const LinearProgram& program) override {
    return machine_listing(program, machine_);
  }

 private:
  std::unique_ptr<Device> device_;
  Machine machine_;
};

constexpr const char* kNoC = "this build of the library writes no C (TINY_C was OFF)";

std::unique_ptr<Backend> make_cpu(const Flags& flags, const DeviceNumber&) {
  const CpuFacts facts = cpu_facts();
  const CpuIsa isa = limit_isa(facts.isa, flags.isa);
  if (isa != CpuIsa::None) return std::make_unique<CpuBackend>(flags, facts, isa);
  // Without AVX2 the interpreter does the work, and every kernel says so.
  return std::make_unique<InterpreterBackend>(flags, make_interpreter_device());
}

std::unique_ptr<Backend> make_interpreter(const Flags& flags, const DeviceNumber&) {
  return std::make_unique<InterpreterBackend>(flags, make_interpreter_device());
}

std::unique_ptr<Backend> make_far(const Flags& flags, const DeviceNumber&) {
  return std::make_unique<InterpreterBackend>(flags, make_far_device());
}

std::unique_ptr<Backend> make_c(const Flags& flags, const DeviceNumber&) {
  require(has_c_renderer(), Status::Unsupported, "the device \"c\": ", kNoC);
  return std::make_unique<CBackend>(flags);
}

std::unique_ptr<Backend> make_null(const Flags& flags, const DeviceNumber&) {
  return std::make_unique<NullBackend>(flags);
}

BackendInfo cpu_info() {
  const CpuFacts facts = cpu_facts();
  BackendInfo info{.name = "cpu", .description = facts.brand};
  info.available = facts.isa != CpuIsa::None;
  if (facts.isa == CpuIsa::Avx512) info.isas = {"avx512", "avx2"};
  if (facts.isa == CpuIsa::Avx2) info.isas = {"avx2"};
  if (!info.available)
    info.reason = cat("the processor has no ", facts.missing, "; kernels are interpreted");
  return info;
}

BackendInfo c_info() {
  return {.name = "c",
          .description = "C through the system's compiler",
          .available = has_c_renderer(),
          .reason = has_c_renderer() ? "" : kNoC};
}

BackendInfo far_info() {
  return {.name = "far",
          .description = "the interpreter in memory of its own, for tests of what the host sees",
          .available = has_far_device(),
          .reason = has_far_device() ? "" : kNoFarDevice};
}

// A kind of device: how one is made, and what there is of it.
struct BackendKind {
  const char* name;
  std::unique_ptr<Backend> (*make)(const Flags& flags, const DeviceNumber& which);
  enum class Many : uint8_t { One, Numbers, Parts } many;  // Parts: numbers, and parts of each
  const char* description;  // of one that is always there, or of those that no driver was asked for
  BackendInfo (*info)();    // of one that may not be; may be null
  std::vector<BackendInfo> (*ask)();  // a driver, which is opened for that; may be null
};
using Many = BackendKind::Many;
constexpr BackendKind kKinds[] = {
    {"cpu", make_cpu, Many::One, nullptr, cpu_info, nullptr},
    {"interp", make_interpreter, Many::One, "interpreter of linear programs, for any processor",
     nullptr, nullptr},
    {"c", make_c, Many::One, nullptr, c_info, nullptr},
    {"opencl", make_opencl_backend, Many::Parts, "devices of OpenCL's drivers", nullptr,
     list_opencl_backends},
    {"cuda", make_cuda_backend, Many::Numbers, "NVIDIA's GPUs, by their driver", nullptr,
     list_cuda_backends},
    {"hip", make_text_backend, Many::One, nullptr, hip_info, nullptr},
    {"metal", make_text_backend, Many::One, nullptr, metal_info, nullptr},
    {"wgsl", make_text_backend, Many::One, nullptr, wgsl_info, nullptr},
    {"far", make_far, Many::One, nullptr, far_info, nullptr},
    {"null", make_null, Many::One, "computes nothing; all before the launch is real", nullptr,
     nullptr},
};

// KIND, KIND:N or KIND:N.P/Q.
struct DeviceName {
  const BackendKind* kind = nullptr;
  DeviceNumber which;
};

// Takes a number from the front of what is left; -1 where none is there.
int64_t take_number(std::string_view& left) {
  int64_t number = 0;
  const char* const begin = left.data();
  const size_t digits = std::min(left.find_first_not_of("0123456789"), left.size());
  if (digits == 0) return -1;
  if (std::from_chars(begin, begin + digits, number).ec != std::errc()) number = INT64_MAX;
  left.remove_prefix(digits);
  return number;
}

bool take(std::string_view& left, char mark) {
  if (!left.starts_with(mark)) return false;
  left.remove_prefix(1);
  return true;
}

// What follows a kind's name; false where that is not how devices are named.
bool read_number(std::string_view text, Many many, DeviceNumber& out) {
  if (text.empty()) return true;
  if (!take(text, ':')) return false;
  out.number = take_number(text);
  if (many == Many::Parts && take(text, '.')) {
    out.part = take_number(text);
    if (!take(text, '/')) return false;
    out.parts = take_number(text);
  }
  return text.empty() && std::min({out.number, out.part, out.parts}) >= 0;
}

DeviceName parse_device(const std::string& device) {
  const size_t colon = std::min(device.find(':'), device.size());
  DeviceName out;
  std::vector<std::string> names;
  for (const BackendKind& kind : kKinds) {
    if (device.substr(0, colon) == kind.name) out.kind = &kind;
    names.push_back(kind.name);
  }
  const bool is_named =
      out.kind && read_number(std::string_view(device).substr(colon), out.kind->many, out.which);
  require(is_named, Status::InvalidArgument, "unknown device \"", device,
          "\"; known: ", join(names, ", "));
  require(out.which.part < out.which.parts, Status::InvalidArgument, "device \"", device,
          "\": parts are numbered from 0, and there is no ", out.which.part, " of ",
          out.which.parts);
  require(out.kind->many != Many::One || out.which.number == 0, Status::Device, "no device \"",
          device, "\": of each kind there is one, here \"", out.kind->name, ":0\"");
  return out;
}

}  // namespace

int Backend::threads() {
  const ThreadPool* pool = device().threads();
  return pool ? pool->workers() : 1;
}

std::vector<LoadedKernel> Backend::load(std::span<const Code> codes, const StopSignal& stop) {
  std::vector<LoadedKernel> loaded;
  std::vector<Ref<Executable>> executables = device().load(codes, stop);
  for (size_t i = 0; i < executables.size(); ++i)
    loaded.push_back({std::move(executables[i]), codes[i].kind == CodeKind::Bytecode});
  return loaded;
}

std::unique_ptr<Backend> make_backend(const Flags& flags) {
  const DeviceName device = parse_device(flags.device);
  check_processor(flags, device.kind->name);
  check_deterministic(flags);
  return device.kind->make(flags, device.which);
}

std::string canonical_device(const std::string& device) {
  const auto [kind, which] = parse_device(device);
  if (which.parts > 1) return cat(kind->name, ":", which.number, ".", which.part, "/", which.parts);
  return which.number == 0 ? std::string(kind->name) : cat(kind->name, ":", which.number);
}

std::vector<BackendInfo> known_backends(Drivers drivers) {
  std::vector<BackendInfo> all;
  for (const BackendKind& kind : kKinds) {
    if (kind.info)
      all.push_back(kind.info());
    else if (kind.ask && drivers == Drivers::Ask)
      std::ranges::move(kind.ask(), std::back_inserter(all));
    else
      all.push_back({.name = kind.name, .description = kind.description});
  }
  return all;
}

}  // namespace tiny
