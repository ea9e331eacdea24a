#include "render/x86/select/dead_code.h"

namespace tiny::x86 {

// What is written more than once may be read earlier in the program than it is written (in the next
// iteration), so any read keeps all its writes.
void drop_dead(MachineProgram& program) {
  std::vector<uint8_t> writes(program.regs.size(), 0), read(program.regs.size(), 0);
  const auto mark_sources = [](const Inst& inst, std::vector<uint8_t>& read_by) {
    for (VReg r : {inst.src[0], inst.src[1], inst.src[2], inst.mask, inst.mem.base, inst.mem.index})
      if (r != kNoReg) read_by[r] = 1;
  };
  std::vector<uint8_t> ever(program.regs.size(), 0);
  for (const Inst& inst : program.code) {
    if (inst.dst != kNoReg && writes[inst.dst] < 2) ++writes[inst.dst];
    mark_sources(inst, ever);
  }
  for (size_t r = 0; r < read.size(); ++r) read[r] = writes[r] > 1 && ever[r];
  size_t kept = program.code.size();
  for (size_t i = program.code.size(); i-- > 0;) {
    const Inst& inst = program.code[i];
    if (!(info(inst.op).flags & kEffectful) && inst.dst != kNoReg && !read[inst.dst]) continue;
    mark_sources(inst, read);
    if (--kept != i) program.code[kept] = program.code[i];
  }
  program.code.erase(program.code.begin(),
                     program.code.begin() + static_cast<std::ptrdiff_t>(kept));
}

}  // namespace tiny::x86
