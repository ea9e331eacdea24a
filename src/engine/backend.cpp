#include "engine/backend.h"

#include <utility>

#include "base/error.h"
#include "render/bytecode.h"
#include "render/c/c.h"
#include "render/x86/x86.h"
#include "runtime/cdev/cdev.h"
#include "runtime/cpu/cpu.h"
#include "runtime/cpu/cpuid.h"
#include "runtime/interp/interp.h"

namespace tiny {

namespace {

Code to_code(Rendered rendered) {
  Code code;
  switch (rendered.kind) {
    case RenderedKind::MachineCode:
      code.kind = CodeKind::MachineCode;
      break;
    case RenderedKind::Bytecode:
      code.kind = CodeKind::Bytecode;
      break;
    case RenderedKind::C:
      code.kind = CodeKind::C;
      break;
  }
  code.name = std::move(rendered.name);
  code.entry = std::move(rendered.entry);
  code.bytes = std::move(rendered.bytes);
  code.text = std::move(rendered.text);
  code.scratch_bytes = rendered.scratch_bytes;
  return code;
}

// Bytecode on the interpreter: every program, on every processor.
class InterpreterBackend : public Backend {
 public:
  InterpreterBackend() : device_(make_interpreter_device()), target_(generic_target(64)) {
    target_.name = "interp";
  }
  Device& device() override { return *device_; }
  const Target& target() const override { return target_; }
  std::vector<LoadedKernel> load(std::span<const LinearProgram> programs) override {
    std::vector<Code> codes;
    for (const LinearProgram& program : programs)
      codes.push_back(to_code(render_bytecode(program)));
    std::vector<LoadedKernel> loaded;
    for (Ref<Executable>& executable : device_->load(codes)) loaded.push_back({executable, true});
    return loaded;
  }
  std::string listing(const LinearProgram& program) override { return to_string(program); }

 private:
  std::unique_ptr<Device> device_;
  Target target_;
};

// What codegen may count on, from what the processor is; the rest are the defaults of its kind.
Target target_of(const CpuFacts& facts, CpuIsa isa) {
  Target t = isa == CpuIsa::Avx512 ? avx512_target()
             : isa == CpuIsa::Avx2 ? avx2_target()
                                   : generic_target(64);
  if (isa == CpuIsa::None) t.name = "cpu";
  t.l1_bytes = facts.l1_bytes;
  t.l2_bytes = facts.l2_bytes;
  if (facts.l3_bytes > 0) t.l3_bytes = facts.l3_bytes;
  t.cores = facts.cores;
  return t;
}

// Machine code on a pool of threads; the interpreter for what cannot be rendered, and for
// everything where the processor lacks AVX2 or memory cannot be made executable.
class CpuBackend : public Backend {
 public:
  explicit CpuBackend(const Flags& flags)
      : device_(make_cpu_device({static_cast<int>(flags.threads), flags.perf_map != 0})) {
    const CpuFacts facts = cpu_facts();
    target_ = target_of(facts, limit_isa(facts.isa, flags.isa));
    if (flags.threads > 0) target_.cores = static_cast<int32_t>(flags.threads);
  }
  Device& device() override { return *device_; }
  const Target& target() const override { return target_; }

  std::vector<LoadedKernel> load(std::span<const LinearProgram> programs) override {
    std::vector<Code> codes;
    for (const LinearProgram& program : programs) codes.push_back(render(program));
    std::vector<Ref<Executable>> executables;
    if (may_execute_) {
      try {
        executables = device_->load(codes);
      } catch (const Error& e) {
        if (e.status() != Status::Device) throw;
        may_execute_ = false;
      }
    }
    if (!may_execute_) {
      codes.clear();
      for (const LinearProgram& program : programs)
        codes.push_back(to_code(render_bytecode(program)));
      executables = device_->load(codes);
    }
    std::vector<LoadedKernel> loaded;
    for (size_t i = 0; i < executables.size(); ++i)
      loaded.push_back({executables[i], codes[i].kind == CodeKind::Bytecode});
    return loaded;
  }
  std::string listing(const LinearProgram& program) override {
    return target_.isa == Isa::Generic ? to_string(program) : x86_listing(program, target_);
  }

 private:
  Code render(const LinearProgram& program) const {
    if (may_execute_ && target_.isa != Isa::Generic) {
      try {
        return to_code(render_x86(program, target_));
      } catch (const Error& e) {
        if (e.status() != Status::Unsupported) throw;
      }
    }
    return to_code(render_bytecode(program));
  }

  std::unique_ptr<Device> device_;
  Target target_;
  bool may_execute_ = true;
};

// C compiled by the system's compiler: a batch is one translation unit.
class CBackend : public Backend {
 public:
  explicit CBackend(const std::string& compiler)
      : device_(make_c_device({compiler, "/tmp", {}})), target_(generic_target(64)) {
    target_.name = "c";
  }
  Device& device() override { return *device_; }
  const Target& target() const override { return target_; }
  std::vector<LoadedKernel> load(std::span<const LinearProgram> programs) override {
    std::vector<LinearProgram> named(programs.begin(), programs.end());
    for (size_t i = 0; i < named.size(); ++i) named[i].name += cat("_k", i);
    const std::string text = render_c_unit(named);
    std::vector<Code> codes;
    for (const LinearProgram& program : named) {
      Code code;
      code.kind = CodeKind::C;
      code.name = program.name;
      code.entry = program.name;
      code.text = text;
      code.scratch_bytes = program.scratch_bytes;
      codes.push_back(std::move(code));
    }
    std::vector<LoadedKernel> loaded;
    for (Ref<Executable>& executable : device_->load(codes)) loaded.push_back({executable, false});
    return loaded;
  }
  std::string listing(const LinearProgram& program) override { return render_c(program).text; }

 private:
  std::unique_ptr<Device> device_;
  Target target_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(const Flags& flags) {
  if (flags.device == "c") return std::make_unique<CBackend>(flags.cc);
  if (flags.device == "cpu") return std::make_unique<CpuBackend>(flags);
  if (flags.device == "interp") return std::make_unique<InterpreterBackend>();
  std::vector<std::string> names;
  for (const BackendInfo& info : known_backends()) names.push_back(info.name);
  throw Error(Status::InvalidArgument,
              cat("unknown device \"", flags.device, "\"; known: ", join(names, ", ")));
}

std::vector<BackendInfo> known_backends() {
  return {{"cpu", "machine code for AVX2 or AVX-512, on threads", true, "", {"avx512", "avx2"}},
          {"c", "C through the system's compiler", true, "", {}},
          {"interp", "interpreter of linear programs, for any processor", true, "", {}}};
}

}  // namespace tiny
