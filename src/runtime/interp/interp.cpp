#include "runtime/interp/interp.h"

#include <cstring>

#include "base/bytecode.h"
#include "base/error.h"
#include "runtime/host.h"
#include "runtime/interp/group.h"
#include "runtime/interp/step.h"
#include "runtime/interp/validate.h"

namespace tiny {
namespace {

using interp::Handler;
using interp::Step;

class BytecodeExecutable : public HostExecutable {
 public:
  BytecodeExecutable(std::string name, const BytecodeHeader& header,
                     std::span<const BytecodeInstruction> code, BytecodeIsa isa)
      : HostExecutable(std::move(name), interp::scratch_bytes(header)),
        header_(header),
        steps_(code.size()) {
    const bool avx2 = isa == BytecodeIsa::Best && interp::has_avx2();
    for (size_t i = 0; i < code.size(); ++i) decode(code, i, avx2);
  }

  void run(const KernelArgs& args) const override {
    if (header_.group[0] != 0)
      return interp::run_groups({name(), header_, steps_, meetings_}, args);
    std::byte* frame = args.scratch + header_.program_scratch_bytes;
    for (const Step* step = steps_.data(); step != nullptr;) step = step->run(step, frame, &args);
  }
  void check_launch(const Launch& launch) const override {
    require(static_cast<int64_t>(launch.arguments.size()) >= int64_t{header_.params} &&
                static_cast<int64_t>(launch.variables.size()) >= int64_t{header_.variables},
            Status::Internal, "kernel ", name(), " takes ", header_.params, " arguments and ",
            header_.variables, " variables, got ", launch.arguments.size(), " and ",
            launch.variables.size());
  }

 private:
  void decode(std::span<const BytecodeInstruction> code, size_t at, bool avx2) {
    const BytecodeInstruction& i = code[at];
    Step& s = steps_[at];
    s.run = avx2 ? interp::find_handler_avx2(i) : interp::find_handler_baseline(i);
    s.result = i.result;
    s.a = i.source[0];
    s.b = i.source[1];
    s.c = i.source[2];
    s.d = i.source[3];
    s.lanes = i.lanes;
    s.imm = i.imm;
    s.aux = i.aux;
    const auto other = static_cast<size_t>(i.aux);
    if (i.op == BytecodeOp::Loop || i.op == BytecodeOp::If || i.op == BytecodeOp::EndLoop)
      s.target = &steps_[other] + 1;
    if (i.op == BytecodeOp::EndLoop) {
      s.a = code[other].result;
      s.imm = code[other].imm;
    }
    if (i.op == BytecodeOp::Mma || i.op == BytecodeOp::LoadMatrix) {
      meetings_.push_back({{}, 0, true, i.op == BytecodeOp::Mma ? &kMatrixRows[i.aux] : nullptr});
      s.d = static_cast<uint32_t>(meetings_.size());
    }
    if (i.op != BytecodeOp::GroupFold) return;
    const int64_t slot = bytecode_slot_bytes(i.type, i.lanes);
    BytecodeInstruction pair = i;
    pair.op = static_cast<BytecodeOp>(i.imm);
    interp::GroupMeeting& fold = meetings_.emplace_back();
    fold.slot_bytes = slot;
    fold.combine.run = avx2 ? interp::find_handler_avx2(pair) : interp::find_handler_baseline(pair);
    fold.combine.lanes = i.lanes;
    fold.combine.b = static_cast<uint32_t>(slot);
    fold.combine.result = static_cast<uint32_t>(2 * slot);
    s.d = static_cast<uint32_t>(meetings_.size());
  }

  BytecodeHeader header_;
  std::vector<Step> steps_;
  std::vector<interp::GroupMeeting> meetings_;
};

class InterpreterDevice : public HostDevice {
 public:
  InterpreterDevice() : HostDevice("interp") {}
  using Device::load;
  std::vector<Ref<Executable>> load(std::span<const Code> codes, const StopSignal&) override {
    std::vector<Ref<Executable>> out;
    out.reserve(codes.size());
    for (const Code& code : codes) out.push_back(load_bytecode(code));
    return out;
  }
};

}  // namespace

Ref<Executable> load_bytecode(const Code& code, BytecodeIsa isa) {
  const auto law = [&](bool holds, const char* what) {
    require(holds, Status::Device, "bytecode of ", code.name, ": ", what);
  };
  BytecodeHeader header;
  law(code.kind == CodeKind::Bytecode, "the code is of another kind");
  law(code.bytes.size() >= sizeof header, "the header is cut off");
  std::memcpy(&header, code.bytes.data(), sizeof header);
  law(header.magic == kBytecodeMagic && header.version == kBytecodeVersion,
      "not this version's bytecode");
  law(code.bytes.size() == sizeof header + size_t{header.ops} * sizeof(BytecodeInstruction),
      "the size is not that of its ops");
  law(header.program_scratch_bytes >= 0 && header.program_scratch_bytes % 64 == 0 &&
          header.frame_bytes % 64 == 0 && header.shared_bytes % 64 == 0 &&
          code.scratch_bytes >= interp::scratch_bytes(header),
      "frames and shared memory are in the scratch");
  std::vector<BytecodeInstruction> ops(header.ops);
  if (!ops.empty())
    std::memcpy(ops.data(), code.bytes.data() + sizeof header, ops.size() * sizeof ops[0]);
  interp::validate(code.name, header, ops);
  return make_ref<BytecodeExecutable>(code.name, header, ops, isa);
}

void run_bytecode(const Executable& executable, const KernelArgs& args) {
  static_cast<const BytecodeExecutable&>(executable).run(args);
}

std::unique_ptr<Device> make_interpreter_device() {
  return std::make_unique<InterpreterDevice>();
}

}  // namespace tiny
