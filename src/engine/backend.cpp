#include "engine/backend.h"

#include <utility>

#include "base/error.h"
#include "render/bytecode.h"
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
    for (const LinearProgram& program : programs) codes.push_back(to_code(render_bytecode(program)));
    std::vector<LoadedKernel> loaded;
    for (Ref<Executable>& executable : device_->load(codes)) loaded.push_back({executable, true});
    return loaded;
  }
  std::string listing(const LinearProgram& program) override { return to_string(program); }

 private:
  std::unique_ptr<Device> device_;
  Target target_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(const Flags& flags) {
  if (flags.device == "interp" || flags.device == "cpu") return std::make_unique<InterpreterBackend>();
  std::vector<std::string> names;
  for (const BackendInfo& info : known_backends()) names.push_back(info.name);
  throw Error(Status::InvalidArgument,
              cat("unknown device \"", flags.device, "\"; known: ", join(names, ", ")));
}

std::vector<BackendInfo> known_backends() {
  return {{"interp", "interpreter of linear programs, for any processor", true, "", {}}};
}

}  // namespace tiny
