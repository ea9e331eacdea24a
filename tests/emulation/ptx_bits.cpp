// Logic, shifts, and what counts, picks and moves bits.
#include <algorithm>
#include <bit>

#include "tests/emulation/ptx_decode.h"
#include "tests/emulation/ptx_floats.h"
#include "tests/emulation/ptx_kinds.h"

namespace tiny::emulation {

namespace {

void and_bits(const Instruction& i, uint64_t* slots, Thread&) {
  slots[i.d] = slots[i.a] & slots[i.b];
}
void or_bits(const Instruction& i, uint64_t* slots, Thread&) {
  slots[i.d] = slots[i.a] | slots[i.b];
}
void xor_bits(const Instruction& i, uint64_t* slots, Thread&) {
  slots[i.d] = slots[i.a] ^ slots[i.b];
}
void not_bits(const Instruction& i, uint64_t* slots, Thread&) {
  slots[i.d] = ~slots[i.a] & i.mask;
}

uint64_t ones(uint32_t bits) {
  return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}

Type logic_type(Decoder& d) {
  const Type type = d.type();
  const bool is_bits = type.kind == Kind::Bits && type.bits >= 16;
  if (!is_bits && type.kind != Kind::Predicate) d.refuse("is of bits and predicates");
  d.out.mask = ones(type.bits);
  return type;
}

template <Handler kHandler>
void decode_logic(Decoder& d) {
  const Type type = logic_type(d);
  d.end(3);
  d.out.run = kHandler;
  d.out.d = d.destination(0, type);
  d.out.a = d.source(1, type);
  d.out.b = d.source(2, type);
}

void decode_not(Decoder& d) {
  const Type type = logic_type(d);
  d.end(2);
  d.out.run = not_bits;
  d.out.d = d.destination(0, type);
  d.out.a = d.source(1, type);
}

// A shift by more than the bits there are is one by all of them.
template <class T>
void shift_left(const Instruction& i, uint64_t* slots, Thread&) {
  const uint64_t by = slots[i.b];
  slots[i.d] = by >= 8 * sizeof(T) ? 0 : to_slot<T>(static_cast<T>(slots[i.a] << by));
}
template <class T>
void shift_right(const Instruction& i, uint64_t* slots, Thread&) {
  const uint64_t by = std::min<uint64_t>(slots[i.b], 8 * sizeof(T) - 1);
  const T value = from_slot<T>(slots[i.a]);
  const bool is_gone = std::is_unsigned_v<T> && slots[i.b] >= 8 * sizeof(T);
  slots[i.d] = is_gone ? 0 : to_slot<T>(static_cast<T>(value >> by));
}

template <bool kLeft>
void decode_shift(Decoder& d) {
  const Type type = d.type();
  if (kLeft && type.kind != Kind::Bits) d.refuse("is of bits");
  d.out.run = for_integer(
      d, type, []<class T>() -> Handler { return kLeft ? shift_left<T> : shift_right<T>; });
  d.end(3);
  d.out.d = d.destination(0, type);
  d.out.a = d.source(1, type);
  d.out.b = d.source(2, kU32);
}

// `imm`: the result for each of the eight triples of bits; it stands in `list`.
void any_logic(const Instruction& i, uint64_t* slots, Thread&) {
  const auto a = static_cast<uint32_t>(slots[i.a]), b = static_cast<uint32_t>(slots[i.b]),
             c = static_cast<uint32_t>(slots[i.c]);
  uint32_t result = 0;
  for (uint32_t triple = 0; triple < 8; ++triple) {
    if (((i.imm >> triple) & 1) == 0) continue;
    result |=
        ((triple & 4) != 0 ? a : ~a) & ((triple & 2) != 0 ? b : ~b) & ((triple & 1) != 0 ? c : ~c);
  }
  slots[i.d] = result;
}

// A number below `most` that is written as such.
int64_t written_number(Decoder& d, size_t n, uint64_t most) {
  const Operand& from = d.operand(n);
  if (from.form != Operand::Form::Number || from.number.bits > most)
    d.refuse("needs a number up to " + std::to_string(most));
  return static_cast<int64_t>(from.number.bits);
}

void take_words(Decoder& d, size_t count) {
  d.out.d = d.destination(0, kB32);
  d.out.a = d.source(1, kB32);
  if (count > 1) d.out.b = d.source(2, kB32);
  if (count > 2) d.out.c = d.source(3, kB32);
}

void decode_lop3(Decoder& d) {
  if (d.type() != kB32) d.refuse("is of .b32");
  d.end(5);
  take_words(d, 3);
  d.out.run = any_logic;
  d.out.imm = written_number(d, 4, 255);
}

// The upper (left) or lower half of b:a after a shift; `mode` & 1: right, & 2: by at most 32.
void funnel(const Instruction& i, uint64_t* slots, Thread&) {
  const uint64_t both = slots[i.b] << 32 | slots[i.a];
  const auto given = static_cast<uint32_t>(slots[i.c]);
  const uint32_t by = (i.mode & 2) != 0 ? std::min(given, 32u) : given & 31u;
  slots[i.d] = (i.mode & 1) != 0 ? static_cast<uint32_t>(both >> by)
                                 : static_cast<uint32_t>((both << by) >> 32);
}

void decode_shf(Decoder& d) {
  if (d.type() != kB32) d.refuse("is of .b32");
  const int side = d.take_one({"l", "r"}), how = d.take_one({"wrap", "clamp"});
  if (side < 0 || how < 0) d.refuse("needs .l or .r, .wrap or .clamp");
  d.end(4);
  take_words(d, 3);
  d.out.c = d.source(3, kU32);
  d.out.run = funnel;
  d.out.mode = static_cast<uint8_t>(side + 2 * how);
}

// Four bytes out of eight, each by four bits of `c`; the fourth of these takes its sign alone.
void pick_bytes(const Instruction& i, uint64_t* slots, Thread&) {
  const uint64_t bytes = slots[i.b] << 32 | slots[i.a];
  uint32_t result = 0;
  for (uint32_t n = 0; n < 4; ++n) {
    const auto pick = static_cast<uint32_t>(slots[i.c] >> (4 * n)) & 15u;
    auto byte = static_cast<uint32_t>(bytes >> (8 * (pick & 7u))) & 0xFFu;
    if ((pick & 8u) != 0) byte = (byte & 0x80u) != 0 ? 0xFFu : 0;
    result |= byte << (8 * n);
  }
  slots[i.d] = result;
}

void decode_prmt(Decoder& d) {
  if (d.type() != kB32) d.refuse("is of .b32");
  d.end(4);
  take_words(d, 3);
  d.out.run = pick_bytes;
}

template <class T>
void extract_bits(const Instruction& i, uint64_t* slots, Thread&) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  const auto at = static_cast<uint32_t>(slots[i.b]) & 0xFFu;
  const auto length = static_cast<uint32_t>(slots[i.c]) & 0xFFu;
  const uint64_t all = to_slot<T>(from_slot<T>(slots[i.a]));
  const uint32_t top = std::min(at + length, kBits) - 1;
  const bool sign = std::is_signed_v<T> && length > 0 && ((all >> std::min(top, kBits - 1)) & 1);
  uint64_t result = at < kBits ? (all >> at) & ones(length) : 0;
  if (sign && length < kBits) result |= ~ones(length);
  if (sign && at + length > kBits) result |= at < kBits ? ~ones(kBits - at) : ~uint64_t{0};
  slots[i.d] = result & ones(kBits);
}

void decode_bfe(Decoder& d) {
  const Type type = d.type();
  if (type.kind == Kind::Bits || type.bits < 32) d.refuse("is of words, signed or not");
  d.out.run = for_integer(d, type, []<class T>() -> Handler { return extract_bits<T>; });
  d.end(4);
  d.out.d = d.destination(0, type);
  d.out.a = d.source(1, type);
  d.out.b = d.source(2, kU32);
  d.out.c = d.source(3, kU32);
}

// `count` is the slot of the length.
void insert_bits(const Instruction& i, uint64_t* slots, Thread&) {
  const auto at = static_cast<uint32_t>(slots[i.c]) & 0xFFu;
  const auto length = static_cast<uint32_t>(slots[i.count]) & 0xFFu;
  const uint64_t field = at < 64 ? (ones(length) << at) & i.mask : 0;
  slots[i.d] = (slots[i.b] & ~field) | (at < 64 ? (slots[i.a] << at) & field : 0);
}

void decode_bfi(Decoder& d) {
  const Type type = logic_type(d);
  if (type.bits < 32) d.refuse("is of words");
  d.end(5);
  d.out.run = insert_bits;
  d.out.d = d.destination(0, type);
  d.out.a = d.source(1, type);
  d.out.b = d.source(2, type);
  d.out.c = d.source(3, kU32);
  d.out.count = d.source(4, kU32);
}

void count_ones(const Instruction& i, uint64_t* slots, Thread&) {
  slots[i.d] = static_cast<uint64_t>(std::popcount(slots[i.a]));
}
void count_leading(const Instruction& i, uint64_t* slots, Thread&) {
  slots[i.d] = static_cast<uint64_t>(std::countl_zero(slots[i.a])) - (64 - i.mode);
}
void reverse_bits(const Instruction& i, uint64_t* slots, Thread&) {
  uint64_t result = 0;
  for (uint32_t n = 0; n < i.mode; ++n) result |= ((slots[i.a] >> n) & 1) << (i.mode - 1u - n);
  slots[i.d] = result;
}

// `mode`: the bits of the operand.
template <Handler kHandler, bool kIsCount>
void decode_count(Decoder& d) {
  const Type type = d.type();
  if (type.kind != Kind::Bits || type.bits < 32) d.refuse("is of words");
  d.end(2);
  d.out.run = kHandler;
  d.out.mode = type.bits;
  d.out.d = d.destination(0, kIsCount ? kU32 : type);
  d.out.a = d.source(1, type);
}

// `mode`: & 1 the first's bytes are signed, & 2 the second's.
void dot_bytes(const Instruction& i, uint64_t* slots, Thread&) {
  auto sum = static_cast<uint32_t>(slots[i.c]);
  for (int n = 0; n < 4; ++n) {
    const auto byte = [&](uint64_t of, bool is_signed) {
      const auto bits = static_cast<uint8_t>(of >> (8 * n));
      return is_signed ? int32_t{static_cast<int8_t>(bits)} : int32_t{bits};
    };
    sum += static_cast<uint32_t>(byte(slots[i.a], (i.mode & 1) != 0) *
                                 byte(slots[i.b], (i.mode & 2) != 0));
  }
  slots[i.d] = sum;
}

void decode_dp4a(Decoder& d) {
  const Type a = d.type(), b = d.type();
  if (!a.is_integer() || !b.is_integer() || a.bits != 32 || b.bits != 32)
    d.refuse("is of .u32 and .s32");
  d.end(4);
  take_words(d, 3);
  d.out.run = dot_bytes;
  d.out.mode =
      static_cast<uint8_t>((a.kind == Kind::Signed ? 1 : 0) | (b.kind == Kind::Signed ? 2 : 0));
}

}  // namespace

std::vector<Decode> bit_decoders() {
  return {{"and", decode_logic<and_bits>},
          {"or", decode_logic<or_bits>},
          {"xor", decode_logic<xor_bits>},
          {"not", decode_not},
          {"shl", decode_shift<true>},
          {"shr", decode_shift<false>},
          {"lop3", decode_lop3},
          {"shf", decode_shf},
          {"prmt", decode_prmt},
          {"bfe", decode_bfe},
          {"bfi", decode_bfi},
          {"popc", decode_count<count_ones, true>},
          {"clz", decode_count<count_leading, true>},
          {"brev", decode_count<reverse_bits, false>},
          {"dp4a", decode_dp4a}};
}

}  // namespace tiny::emulation
