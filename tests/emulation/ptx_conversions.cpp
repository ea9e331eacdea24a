// Moves, and conversions between all types.
#include <algorithm>
#include <limits>

#include "tests/emulation/ptx_decode.h"
#include "tests/emulation/ptx_floats.h"
#include "tests/emulation/ptx_kinds.h"
#include "tests/emulation/ptx_machine.h"

namespace tiny::emulation {

namespace {

void move(const Instruction& i, uint64_t* slots, Thread&) {
  slots[i.d] = slots[i.a];
}

// `mode`: the bits of a part; the first part is the lowest.
void pack(const Instruction& i, uint64_t* slots, Thread& thread) {
  uint64_t value = 0;
  for (uint32_t n = 0; n < i.count; ++n)
    value |= slots[thread.lists()[i.first + n]] << (n * i.mode);
  slots[i.d] = value;
}
void unpack(const Instruction& i, uint64_t* slots, Thread& thread) {
  const uint64_t value = slots[i.a];
  for (uint32_t n = 0; n < i.count; ++n)
    slots[thread.lists()[i.first + n]] = (value >> (n * i.mode)) & ((uint64_t{1} << i.mode) - 1);
}

void decode_packed(Decoder& d, Type type) {
  const bool is_packed = d.operand(1).form == Operand::Form::Vector;
  const std::vector<Operand>& parts = d.operand(is_packed ? 1 : 0).parts;
  if (parts.size() != 2 && parts.size() != 4) d.refuse("packs 2 or 4 values");
  if (type.kind != Kind::Bits) d.refuse("packs bits");
  const auto bits = static_cast<uint8_t>(type.bits / parts.size());
  if (bits < 16) d.refuse("packs no bytes");
  const Type part{Kind::Bits, bits};
  std::vector<uint32_t> slots;
  for (const Operand& one : parts)
    slots.push_back(is_packed ? d.source(one, part) : d.destination(one, part));
  d.out.first = d.list(slots);
  d.out.count = static_cast<uint32_t>(slots.size());
  d.out.mode = bits;
  d.out.run = is_packed ? pack : unpack;
  if (is_packed)
    d.out.d = d.destination(0, type);
  else
    d.out.a = d.source(1, type);
}

void decode_mov(Decoder& d) {
  const Type type = d.type();
  d.end(2);
  if (d.operand(0).form == Operand::Form::Vector || d.operand(1).form == Operand::Form::Vector)
    return decode_packed(d, type);
  d.out.run = move;
  d.out.d = d.destination(0, type);
  d.out.a = d.source(1, type);
}

double rounded(double value, uint8_t mode) {
  switch (static_cast<Rounding>(mode)) {
    case Rounding::NearestEven:
      return std::nearbyint(value);
    case Rounding::Zero:
      return std::trunc(value);
    case Rounding::Down:
      return std::floor(value);
    default:
      return std::ceil(value);
  }
}

template <std::integral To>
To clamped(double value) {
  if (std::isnan(value)) return 0;
  // One above the largest is a power of two.
  const double above = std::ldexp(1.0, std::numeric_limits<To>::digits);
  if (value >= above) return std::numeric_limits<To>::max();
  if (value < static_cast<double>(std::numeric_limits<To>::min()))
    return std::numeric_limits<To>::min();
  return static_cast<To>(value);
}

template <std::integral To, std::integral From>
To narrowed(From value, bool saturates) {
  if (saturates) {
    if (std::cmp_less(value, std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (std::cmp_greater(value, std::numeric_limits<To>::max()))
      return std::numeric_limits<To>::max();
  }
  return static_cast<To>(value);
}

template <AnyFloat To>
uint64_t float_slot(double odd, uint8_t mode) {
  if constexpr (std::same_as<To, double>)
    return to_slot<double>(odd);
  else
    return round_to(FormatOf<To>::value, odd, static_cast<Rounding>(mode));
}

template <AnyFloat To, std::integral From>
uint64_t from_integer(From value, uint8_t mode) {
  if constexpr (std::same_as<To, double>) {
    return to_slot<double>(static_cast<double>(value));
  } else {
    const bool is_negative = std::cmp_less(value, 0);
    const auto bits = static_cast<uint64_t>(value);
    return float_slot<To>(integer_to_odd(is_negative ? ~bits + 1 : bits, is_negative), mode);
  }
}

// `mode`: a Rounding; `count` & 1: saturates, & 2: to an integral value.
template <class To, class From>
void convert(const Instruction& i, uint64_t* slots, Thread&) {
  const From value = from_slot<From>(slots[i.a]);
  if constexpr (AnyFloat<From> && AnyFloat<To>) {
    double of = as_double(value);
    if ((i.count & 2) != 0) of = rounded(of, i.mode);
    if ((i.count & 1) != 0) of = std::isnan(of) ? 0 : std::clamp(of, 0.0, 1.0);
    slots[i.d] = float_slot<To>(of, i.mode);
  } else if constexpr (AnyFloat<From>) {
    const To result = clamped<To>(rounded(as_double(value), i.mode));
    slots[i.d] = static_cast<uint64_t>(result) & i.mask;
  } else if constexpr (AnyFloat<To>) {
    slots[i.d] = from_integer<To>(value, i.mode);
  } else {
    slots[i.d] = static_cast<uint64_t>(narrowed<To>(value, (i.count & 1) != 0)) & i.mask;
  }
}

template <class Make>
Handler for_any(Decoder& d, Type type, Make make) {
  if (type.is_float()) return for_float(d, type, make);
  if (type.bits != 8) return for_integer(d, type, make);
  return type.kind == Kind::Signed ? make.template operator()<int8_t>()
                                   : make.template operator()<uint8_t>();
}

// Two floats in one word, the first above.
template <class T>
void convert_two(const Instruction& i, uint64_t* slots, Thread&) {
  const auto narrow = [&](uint32_t slot) {
    return round_to(T::format, as_double(from_slot<float>(slots[slot])),
                    static_cast<Rounding>(i.mode));
  };
  slots[i.d] = narrow(i.a) << 16 | narrow(i.b);
}

void decode_two(Decoder& d, Type to, Type from) {
  const int mode = d.take_one({"rn", "rz"});
  if (mode < 0 || from != Type{Kind::Float, 32}) d.refuse("needs .rn or .rz, and .f32");
  d.end(3);
  d.out.mode = static_cast<uint8_t>(mode);
  d.out.run = to.kind == Kind::Float ? convert_two<Half> : convert_two<Bfloat>;
  d.out.d = d.destination(0, Type{Kind::Bits, 32});
  d.out.a = d.source(1, from);
  d.out.b = d.source(2, from);
}

// Takes what rounding there is, and refuses it where there must be none, or one and there is none.
void take_rounding(Decoder& d, Type to, Type from) {
  const int integral = d.take_one({"rni", "rzi", "rmi", "rpi"});
  const int plain = d.take_one({"rn", "rz", "rm", "rp"});
  d.out.mode = static_cast<uint8_t>(std::max({integral, plain, 0}));
  if (integral >= 0) d.out.count |= 2;
  const bool same_format = to.kind == from.kind && to.bits == from.bits;
  if (from.is_float() && !to.is_float()) {
    if (integral < 0 || plain >= 0) d.refuse("needs .rni, .rzi, .rmi or .rpi");
  } else if (!to.is_float()) {
    if (integral >= 0 || plain >= 0) d.refuse("rounds nothing");
  } else if (from.is_float() && (same_format || to.bits > from.bits)) {
    if (plain >= 0 || (integral >= 0 && !same_format)) d.refuse("rounds nothing");
  } else if (plain < 0 || integral >= 0) {
    d.refuse("needs .rn, .rz, .rm or .rp");
  }
  if (to.is_float() && to.bits == 64 && !from.is_float() && plain > 0)
    d.refuse("to .f64 in that direction is not known");
}

void decode_cvt(Decoder& d) {
  const bool saturates = d.take("sat");
  const Type to = d.type(), from = d.type();
  if (to.kind == Kind::Predicate || from.kind == Kind::Predicate || from.lanes != 1 ||
      to.kind == Kind::Bits || from.kind == Kind::Bits)
    d.refuse("does not convert that");
  if (to.lanes == 2) return decode_two(d, to, from);
  d.out.count = saturates ? 1 : 0;
  take_rounding(d, to, from);
  d.end(2);
  d.out.run = for_any(d, to, [&]<class To>() -> Handler {
    return for_any(d, from, []<class From>() -> Handler { return convert<To, From>; });
  });
  d.out.d = d.destination(d.operand(0), to, !to.is_float());
  d.out.a = d.source(d.operand(1), from, !from.is_float());
}

// Between an address of one space and one that every instruction takes; `imm` is added.
void shift_address(const Instruction& i, uint64_t* slots, Thread&) {
  slots[i.d] = slots[i.a] + static_cast<uint64_t>(i.imm);
}

void decode_cvta(Decoder& d) {
  const bool is_from_generic = d.take("to");
  const int space = d.take_one({"global", "shared", "local"});
  const Type type = d.type();
  if (space < 0 || type != kU64) d.refuse("is of .global, .shared and .local and of .u64");
  d.end(2);
  d.out.run = shift_address;
  const uint64_t window = space == 0 ? 0 : space == 1 ? kSharedWindow : kLocalWindow;
  d.out.imm = static_cast<int64_t>(is_from_generic ? ~window + 1 : window);
  d.out.d = d.destination(0, type);
  d.out.a = d.source(1, type);
}

}  // namespace

std::vector<Decode> conversion_decoders() {
  return {{"mov", decode_mov}, {"cvt", decode_cvt}, {"cvta", decode_cvta}};
}

}  // namespace tiny::emulation
