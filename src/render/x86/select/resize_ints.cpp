#include "render/x86/select/resize_ints.h"

#include <utility>
#include <vector>

namespace tiny::x86 {

namespace {

// Gathers the low bytes of the lanes in each 16 bytes, then joins the two.
VReg narrow_avx2(Emitter& e, int64_t lanes, int64_t from, int64_t to, VReg a) {
  const int64_t width = width_for(lanes * from);
  std::vector<std::byte> pattern(static_cast<size_t>(width), std::byte{0x80});
  for (int64_t base = 0; base < width; base += 16)
    for (int64_t lane = 0; lane < 16 / from; ++lane)
      for (int64_t b = 0; b < to; ++b)
        pattern[static_cast<size_t>(base + lane * to + b)] =
            static_cast<std::byte>(lane * from + b);
  const VReg packed =
      e.rrm(Opcode::vpshufb, width, a, e.pool_reg(e.pool_bytes(std::move(pattern)), width));
  if (width == 16) return packed;
  const VReg high = e.vec_reg(16);
  Inst& i = e.emit(Opcode::VExtract, 16, high, packed);
  i.width2 = 32;
  i.imm = 1;
  const int64_t each = 16 * to / from;
  const Opcode join = each == 8   ? Opcode::vpunpcklqdq
                      : each == 4 ? Opcode::vpunpckldq
                                  : Opcode::vpunpcklwd;
  return e.rrm(join, 16, packed, high);
}

}  // namespace

VReg resize_ints(Emitter& e, DType from, DType to, VReg a) {
  const int64_t lanes = from.lanes, s = from.bytes(), t = to.bytes();
  if (s == t) return a;
  if (s < t) {
    constexpr Opcode kNone = Opcode::VMove;
    constexpr Opcode kSign[3][4] = {
        {kNone, Opcode::vpmovsxbw, Opcode::vpmovsxbd, Opcode::vpmovsxbq},
        {kNone, kNone, Opcode::vpmovsxwd, Opcode::vpmovsxwq},
        {kNone, kNone, kNone, Opcode::vpmovsxdq}};
    constexpr Opcode kZero[3][4] = {
        {kNone, Opcode::vpmovzxbw, Opcode::vpmovzxbd, Opcode::vpmovzxbq},
        {kNone, kNone, Opcode::vpmovzxwd, Opcode::vpmovzxwq},
        {kNone, kNone, kNone, Opcode::vpmovzxdq}};
    const Opcode opcode = (from.is_signed() ? kSign : kZero)[log_of(s)][log_of(t)];
    return e.rr(opcode, width_for(lanes * t), a, width_for(lanes * s));
  }
  if (!e.avx512()) return narrow_avx2(e, lanes, s, t, a);
  constexpr Opcode kNone = Opcode::VMove;
  constexpr Opcode kNarrow[4][3] = {{kNone, kNone, kNone},
                                    {Opcode::vpmovwb, kNone, kNone},
                                    {Opcode::vpmovdb, Opcode::vpmovdw, kNone},
                                    {Opcode::vpmovqb, Opcode::vpmovqw, Opcode::vpmovqd}};
  return e.rr(kNarrow[log_of(s)][log_of(t)], width_for(lanes * t), a, width_for(lanes * s));
}

}  // namespace tiny::x86
