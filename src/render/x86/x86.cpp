#include "render/x86/x86.h"

#include <algorithm>

#include "base/error.h"
#include "render/x86/allocate.h"
#include "render/x86/encode.h"
#include "render/x86/select.h"

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

void put_hex(std::string& out, size_t value, int digits) {
  constexpr char kDigits[] = "0123456789abcdef";
  while (digits < 16 && value >> (4 * digits)) ++digits;
  for (int i = digits - 1; i >= 0; --i) out += kDigits[value >> (4 * i) & 15];
}

// Bytes as text that disassemblers read: Intel HEX, 16 bytes a line.
std::string intel_hex(const std::vector<std::byte>& bytes) {
  std::string out;
  const auto record = [&](size_t address, size_t type, const std::vector<size_t>& data) {
    size_t sum = data.size() + (address >> 8) + (address & 255) + type;
    out += ':';
    put_hex(out, data.size(), 2);
    put_hex(out, address, 4);
    put_hex(out, type, 2);
    for (size_t b : data) {
      put_hex(out, b, 2);
      sum += b;
    }
    put_hex(out, -sum & 255, 2);
    out += '\n';
  };
  for (size_t at = 0; at < bytes.size(); at += 16) {
    if (at > 0 && (at & 0xFFFF) == 0) record(0, 4, {at >> 24 & 255, at >> 16 & 255});
    std::vector<size_t> data;
    for (size_t i = at; i < std::min(at + 16, bytes.size()); ++i)
      data.push_back(static_cast<size_t>(bytes[i]));
    record(at & 0xFFFF, 0, data);
  }
  record(0, 1, {});
  return out;
}

}  // namespace

Code render_x86(const LinearProgram& program, const Target& target) {
  require(!program.grouped, Status::Unsupported, "kernel ", program.name,
          " is of groups of threads, which x86 has not");
  x86::MachineProgram machine = x86::select(program, wants_avx512(target), target.tiles);
  const x86::Allocation allocation = x86::allocate(machine);
  Code r;
  r.kind = CodeKind::MachineCode;
  r.name = program.name;
  r.bytes = x86::encode(machine, allocation);
  r.scratch_bytes = program.scratch_bytes;
  return r;
}

std::string x86_listing(const LinearProgram& program, const Target& target) {
  x86::MachineProgram machine = x86::select(program, wants_avx512(target), target.tiles);
  const x86::Allocation allocation = x86::allocate(machine);
  std::vector<x86::CodeMark> marks;
  const std::vector<std::byte> bytes = x86::encode(machine, allocation, &marks);
  std::string out =
      cat("; machine code of ", program.name, " for ", target.name, ", ", bytes.size(),
          " bytes; its lines that begin with a colon are what\n"
          ";   objdump -D -b ihex -m i386:x86-64 FILE\n; reads\n");
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
    out += "  @";
    put_hex(out, marks[m].offset, 4);
    out += "\n";
  }
  return out + intel_hex(bytes);
}

}  // namespace tiny
