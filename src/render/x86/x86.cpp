#include "render/x86/x86.h"

#include "base/error.h"
#include "render/x86/allocate.h"
#include "render/x86/encode.h"
#include "render/x86/selector.h"

namespace tiny {

namespace {

bool wants_avx512(const Target& target) {
  require(target.isa != Isa::Generic, Status::Unsupported, "x86: target ", target.name,
          " has neither AVX2 nor AVX-512");
  return target.isa == Isa::Avx512;
}

const char* class_name(x86::RegClass cls) {
  return cls == x86::RegClass::Int ? "r" : cls == x86::RegClass::Vec ? "v" : "k";
}

}  // namespace

Rendered render_x86(const LinearProgram& program, const Target& target) {
  x86::MachineProgram machine = x86::select(program, wants_avx512(target));
  const x86::Allocation allocation = x86::allocate(machine);
  Rendered r;
  r.kind = RenderedKind::MachineCode;
  r.name = program.name;
  r.bytes = x86::encode(machine, allocation);
  r.scratch_bytes = program.scratch_bytes;
  return r;
}

std::string x86_listing(const LinearProgram& program, const Target& target) {
  x86::MachineProgram machine = x86::select(program, wants_avx512(target));
  const x86::Allocation allocation = x86::allocate(machine);
  std::vector<x86::CodeMark> marks;
  const std::vector<std::byte> bytes = x86::encode(machine, allocation, &marks);
  std::string out;
  const auto hex = [&](size_t from, size_t to) {
    constexpr char kDigits[] = "0123456789abcdef";
    for (size_t i = from; i < to; ++i) {
      out += ' ';
      out += kDigits[static_cast<size_t>(bytes[i]) >> 4];
      out += kDigits[static_cast<size_t>(bytes[i]) & 15];
    }
  };
  LinearId origin = UINT32_MAX;
  for (size_t m = 0; m < marks.size(); ++m) {
    const x86::Inst& inst = machine.code[marks[m].inst];
    if (inst.origin != origin) {
      origin = inst.origin;
      out += cat("%", origin, " ", info(program.ops[origin].op).name, " ",
                 to_string(program.ops[origin].dtype), "\n");
    }
    out += cat("  ", x86::info(inst.op).name);
    const auto reg = [&](x86::VReg v) {
      if (v != x86::kNoReg)
        out += cat(" ", class_name(machine.regs[v].cls), static_cast<int>(allocation.reg[v]));
    };
    reg(inst.dst);
    for (x86::VReg v : inst.src) reg(v);
    reg(inst.mask);
    reg(inst.mem.base);
    reg(inst.mem.index);
    out += " :";
    hex(marks[m].offset, m + 1 < marks.size() ? marks[m + 1].offset : marks[m].offset);
    out += "\n";
  }
  return out;
}

}  // namespace tiny
