#include "engine/text_backend.h"

#include "base/error.h"
#include "cost/group_machines.h"
#include "render/c/hip.h"
#include "render/c/metal.h"
#include "render/wgsl/wgsl.h"
#include "runtime/null/null.h"

namespace tiny {
namespace {

constexpr const char* kNoWgsl = "this build of the library writes no WGSL (TINY_WGSL was OFF)";

// What every device of the kind may be asked for: the most threads of a group, what they share, and
// those that take their steps together.
struct Language {
  const char* name;
  const char* description;
  int32_t threads;
  int64_t shared_bytes;
  int32_t warp;
  std::string (*render)(const LinearProgram& program);
};
std::string hip_of(const LinearProgram& program) {
  return render_hip({&program, 1});
}
std::string metal_of(const LinearProgram& program) {
  return render_metal({&program, 1});
}
constexpr Language kLanguages[] = {
    // HIP's documentation, hardware features: 1,024 threads and 64 KB of LDS a block on every
    // architecture; wavefronts of CDNA have 64 threads.
    {"hip", "writes HIP for AMD's GPUs; computes nothing", 1024, 64 << 10, 64, hip_of},
    // Metal Feature Set Tables, Apple7 on: 1,024 threads and 32 KB a threadgroup; SIMD groups have
    // 32 threads.
    {"metal", "writes Metal for Apple's GPUs; computes nothing", 1024, 32 << 10, 32, metal_of},
    // WebGPU, limits that every device has: 256 threads and 16 KB a workgroup; how many step
    // together is not said.
    {"wgsl", "writes WGSL for hosts of WebGPU; computes nothing", 256, 16 << 10, 32, render_wgsl},
};

const Language& language_of(std::string_view device) {
  for (const Language& language : kLanguages)
    if (device.substr(0, device.find(':')) == language.name) return language;
  throw_error(Status::Internal, "a device of text has a row in the table");
}

// Limits are the language's; what things take nobody has measured: rates are those of a machine
// that is described.
Machine machine_of(const Language& language) {
  Machine machine(generic_target(4));
  imitate(*find_group_machine("h100"), machine);
  machine.name = language.name;
  machine.group.threads = language.threads;
  machine.group.shared_bytes = language.shared_bytes;
  machine.group.warp = language.warp;
  machine.arena = {.alignment = 256, .page_bytes = 0, .margin = 0};
  return machine;
}

class TextBackend : public Backend {
 public:
  explicit TextBackend(const Language& language)
      : language_(language),
        device_(make_null_device(language.name)),
        machine_(machine_of(language)) {}
  Device& device() override { return *device_; }
  const Machine& machine() const override { return machine_; }
  bool is_fast() const override { return false; }
  std::vector<Code> render(std::span<const LinearProgram> programs, Form) override {
    std::vector<Code> codes;
    for (const LinearProgram& program : programs) {
      Code code;
      code.kind = CodeKind::C;  // a text, which nobody keeps and the device does not look at
      code.name = program.name;
      code.entry = program.name;
      code.text = language_.render(program);
      if (program.grouped) code.group = program.group;
      codes.push_back(std::move(code));
    }
    return codes;
  }
  bool lists_source() const override { return true; }
  std::string listing(const LinearProgram& program) override { return language_.render(program); }

 private:
  const Language& language_;
  std::unique_ptr<Device> device_;
  Machine machine_;
};

BackendInfo info_of(std::string_view name) {
  return {.name = std::string(name), .description = language_of(name).description};
}

}  // namespace

std::unique_ptr<Backend> make_text_backend(const Flags& flags, const DeviceNumber&) {
  const Language& language = language_of(flags.device);
  require(language.render != render_wgsl || has_wgsl_renderer(), Status::Unsupported,
          "the device \"wgsl\": ", kNoWgsl);
  return std::make_unique<TextBackend>(language);
}

BackendInfo hip_info() {
  return info_of("hip");
}

BackendInfo metal_info() {
  return info_of("metal");
}

BackendInfo wgsl_info() {
  BackendInfo info = info_of("wgsl");
  info.available = has_wgsl_renderer();
  if (!info.available) info.reason = kNoWgsl;
  return info;
}

}  // namespace tiny
