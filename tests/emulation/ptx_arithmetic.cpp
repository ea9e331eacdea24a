// Arithmetic of integers and floats, comparisons and choices.
#include <algorithm>
#include <limits>

#include "tests/emulation/ptx_decode.h"
#include "tests/emulation/ptx_floats.h"
#include "tests/emulation/ptx_kinds.h"

namespace tiny::emulation {

namespace {

template <class T>
using Bits = std::make_unsigned_t<T>;

// One struct an operation: of integers, of the formats that are computed via double, of float32 and
// float64 themselves.
struct Add {
  template <std::integral T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Bits<T>>(a) + static_cast<Bits<T>>(b));
  }
  template <std::floating_point T>
  static T of(T a, T b) {
    return a + b;
  }
  static double odd(double a, double b) { return add_to_odd(a, b); }
};
struct Sub {
  template <std::integral T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Bits<T>>(a) - static_cast<Bits<T>>(b));
  }
  template <std::floating_point T>
  static T of(T a, T b) {
    return a - b;
  }
  static double odd(double a, double b) { return add_to_odd(a, -b); }
};
struct Mul {
  // 64 bits wide inside: 16 bits times 16 would be signed otherwise.
  template <std::integral T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
  template <std::floating_point T>
  static T of(T a, T b) {
    return a * b;
  }
  static double odd(double a, double b) { return multiply_to_odd(a, b); }
};
__extension__ using Signed128 = __int128;
__extension__ using Unsigned128 = unsigned __int128;
struct MulHigh {
  template <std::integral T>
  static T of(T a, T b) {
    using Wide = std::conditional_t<std::is_signed_v<T>, Signed128, Unsigned128>;
    return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (8 * sizeof(T)));
  }
};
// What PTX leaves open is all ones, as such a processor has it.
struct Div {
  template <std::integral T>
  static T of(T a, T b) {
    if (b == 0) return static_cast<T>(~Bits<T>{0});
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return static_cast<T>(Bits<T>{0} - static_cast<Bits<T>>(a));
    return static_cast<T>(a / b);
  }
  template <std::floating_point T>
  static T of(T a, T b) {
    return a / b;
  }
  static double odd(double a, double b) { return divide_to_odd(a, b); }
};
struct Rem {
  template <std::integral T>
  static T of(T a, T b) {
    if (b == 0) return static_cast<T>(~Bits<T>{0});
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return 0;
    return static_cast<T>(a % b);
  }
};

template <bool kMax, bool kKeepsNan, AnyFloat T>
T choose_float(T a, T b) {
  const double x = as_double(a), y = as_double(b);
  if (std::isnan(x) && std::isnan(y)) return a;
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) == kKeepsNan ? a : b;
  if (x == y) return std::signbit(x) == kMax ? b : a;  // -0 is below +0
  return (x < y) == kMax ? b : a;
}
template <bool kMax, bool kKeepsNan>
struct Choose {
  template <class T>
  static T of(T a, T b) {
    if constexpr (AnyFloat<T>)
      return choose_float<kMax, kKeepsNan>(a, b);
    else
      return (a < b) == kMax ? b : a;
  }
};

// Clears the payload of a NaN of 16 bits, as slots do it of a float32.
template <NarrowFloat T>
T canonical(T value) {
  return std::isnan(as_double(value)) ? T{static_cast<uint16_t>(0x7FFF)} : value;
}

template <class T, class F>
void binary(const Instruction& i, uint64_t* slots, Thread&) {
  const T a = from_slot<T>(slots[i.a]), b = from_slot<T>(slots[i.b]);
  if constexpr (NarrowFloat<T>)
    slots[i.d] = canonical(F::of(a, b)).bits;
  else
    slots[i.d] = to_slot<T>(F::of(a, b));
}

// Of narrow formats, and of float32 in another direction than to the nearest.
template <class T, class F>
void binary_rounded(const Instruction& i, uint64_t* slots, Thread&) {
  const double a = as_double(from_slot<T>(slots[i.a])), b = as_double(from_slot<T>(slots[i.b]));
  slots[i.d] = round_to(FormatOf<T>::value, F::odd(a, b), static_cast<Rounding>(i.mode));
}

template <class F>
void decode_integers(Decoder& d, Type type) {
  d.out.run = for_integer(d, type, []<class T>() -> Handler { return binary<T, F>; });
}

// .rn, which is what is done without a word too, .rz, .rm, .rp.
uint8_t take_rounding(Decoder& d) {
  const int taken = d.take_one({"rn", "rz", "rm", "rp"});
  return static_cast<uint8_t>(std::max(taken, 0));
}

template <class F>
void decode_floats(Decoder& d, Type type) {
  const uint8_t mode = d.out.mode = take_rounding(d);
  const bool is_plain = mode == 0 && type.kind == Kind::Float && type.bits >= 32;
  if (type.lanes != 1) d.refuse("of packed floats is not known");
  if (mode != 0 && type.bits == 64) d.refuse("of .f64 in that direction is not known");
  if (is_plain)
    d.out.run = type.bits == 32 ? Handler{binary<float, F>} : Handler{binary<double, F>};
  else
    d.out.run = for_narrow(d, type, []<class T>() -> Handler { return binary_rounded<T, F>; });
}

void take_two(Decoder& d, Type type) {
  d.end(3);
  d.out.d = d.destination(0, type);
  d.out.a = d.source(1, type);
  d.out.b = d.source(2, type);
}

template <class F>
void decode_sum(Decoder& d) {
  const Type type = d.type();
  if (type.is_float())
    decode_floats<F>(d, type);
  else
    decode_integers<F>(d, type);
  take_two(d, type);
}

template <class T, class F>
void widened(const Instruction& i, uint64_t* slots, Thread&) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  const Wide product = static_cast<Wide>(static_cast<uint64_t>(Wide{from_slot<T>(slots[i.a])}) *
                                         static_cast<uint64_t>(Wide{from_slot<T>(slots[i.b])}));
  const uint64_t sum = F::kAdds ? slots[i.c] : 0;
  slots[i.d] = (static_cast<uint64_t>(product) + sum) & i.mask;
}
struct Alone {
  static constexpr bool kAdds = false;
};
struct WithSum {
  static constexpr bool kAdds = true;
};

template <class T, class F>
void multiply_add(const Instruction& i, uint64_t* slots, Thread&) {
  slots[i.d] = to_slot<T>(Add::of<T>(F::of(from_slot<T>(slots[i.a]), from_slot<T>(slots[i.b])),
                                     from_slot<T>(slots[i.c])));
}

Type twice(Type type) {
  return {type.kind, static_cast<uint8_t>(2 * type.bits)};
}

template <class F>
void decode_wide(Decoder& d, Type type) {
  if (type.bits > 32) d.refuse("has no .wide of 64 bits");
  d.out.run = for_integer(d, type, []<class T>() -> Handler {
    if constexpr (sizeof(T) <= 4)
      return widened<T, F>;
    else
      return nullptr;
  });
  d.end(F::kAdds ? 4 : 3);
  d.out.d = d.destination(0, twice(type));
  d.out.mask = type.bits == 32 ? ~uint64_t{0} : 0xFFFFFFFFu;
  d.out.a = d.source(1, type);
  d.out.b = d.source(2, type);
  if (F::kAdds) d.out.c = d.source(3, twice(type));
}

void decode_mul(Decoder& d) {
  const Type type = d.type();
  if (type.is_float()) {
    decode_floats<Mul>(d, type);
    return take_two(d, type);
  }
  const int part = d.take_one({"lo", "hi", "wide"});
  if (part < 0) d.refuse("needs .lo, .hi or .wide");
  if (part == 2) return decode_wide<Alone>(d, type);
  if (part == 0)
    decode_integers<Mul>(d, type);
  else
    decode_integers<MulHigh>(d, type);
  take_two(d, type);
}

void take_three(Decoder& d, Type type) {
  d.end(4);
  d.out.d = d.destination(0, type);
  d.out.a = d.source(1, type);
  d.out.b = d.source(2, type);
  d.out.c = d.source(3, type);
}

void decode_mad(Decoder& d) {
  const Type type = d.type();
  if (type.is_float()) d.refuse("of floats is not known; fma is");
  const int part = d.take_one({"lo", "hi", "wide"});
  if (part < 0) d.refuse("needs .lo, .hi or .wide");
  if (part == 2) return decode_wide<WithSum>(d, type);
  d.out.run =
      part == 0
          ? for_integer(d, type, []<class T>() -> Handler { return multiply_add<T, Mul>; })
          : for_integer(d, type, []<class T>() -> Handler { return multiply_add<T, MulHigh>; });
  take_three(d, type);
}

template <class T>
void fused(const Instruction& i, uint64_t* slots, Thread&) {
  slots[i.d] = to_slot<T>(
      std::fma(from_slot<T>(slots[i.a]), from_slot<T>(slots[i.b]), from_slot<T>(slots[i.c])));
}
template <class T>
void fused_rounded(const Instruction& i, uint64_t* slots, Thread&) {
  const double sum =
      fma_to_odd(as_double(from_slot<T>(slots[i.a])), as_double(from_slot<T>(slots[i.b])),
                 as_double(from_slot<T>(slots[i.c])));
  slots[i.d] = round_to(FormatOf<T>::value, sum, static_cast<Rounding>(i.mode));
}

void decode_fma(Decoder& d) {
  const Type type = d.type();
  if (!type.is_float() || type.lanes != 1) d.refuse("is of single floats");
  const uint8_t mode = d.out.mode = take_rounding(d);
  if (type.bits == 64) {
    if (mode != 0) d.refuse("of .f64 in that direction is not known");
    d.out.run = fused<double>;
  } else if (type.bits == 32 && mode == 0) {
    d.out.run = fused<float>;
  } else {
    d.out.run = for_narrow(d, type, []<class T>() -> Handler { return fused_rounded<T>; });
  }
  take_three(d, type);
}

void decode_div(Decoder& d) {
  const Type type = d.type();
  if (!type.is_float()) {
    decode_integers<Div>(d, type);
  } else {
    if (type.bits < 32) d.refuse("of 16-bit floats does not exist");
    decode_floats<Div>(d, type);
  }
  take_two(d, type);
}

void decode_rem(Decoder& d) {
  const Type type = d.type();
  decode_integers<Rem>(d, type);
  take_two(d, type);
}

template <bool kMax>
void decode_choose(Decoder& d) {
  const Type type = d.type();
  const bool keeps_nan = d.take("NaN");
  if (!type.is_float()) {
    decode_integers<Choose<kMax, false>>(d, type);
  } else if (keeps_nan) {
    d.out.run =
        for_float(d, type, []<class T>() -> Handler { return binary<T, Choose<kMax, true>>; });
  } else {
    d.out.run =
        for_float(d, type, []<class T>() -> Handler { return binary<T, Choose<kMax, false>>; });
  }
  take_two(d, type);
}

struct Neg {
  template <class T>
  static T of(T a) {
    if constexpr (NarrowFloat<T>)
      return canonical(T{static_cast<uint16_t>(a.bits ^ 0x8000u)});
    else if constexpr (std::floating_point<T>)
      return -a;
    else
      return static_cast<T>(Bits<T>{0} - static_cast<Bits<T>>(a));
  }
};
struct Abs {
  template <class T>
  static T of(T a) {
    if constexpr (NarrowFloat<T>)
      return canonical(T{static_cast<uint16_t>(a.bits & 0x7FFFu)});
    else if constexpr (std::floating_point<T>)
      return std::fabs(a);
    else
      return a < 0 ? Neg::of(a) : a;
  }
};
struct Sqrt {
  template <std::floating_point T>
  static T of(T a) {
    return std::sqrt(a);
  }
  static double odd(double a) { return sqrt_to_odd(a); }
};
struct Rcp {
  template <std::floating_point T>
  static T of(T a) {
    return 1 / a;
  }
  static double odd(double a) { return divide_to_odd(1, a); }
};

template <class T, class F>
void unary(const Instruction& i, uint64_t* slots, Thread&) {
  slots[i.d] = to_slot<T>(F::of(from_slot<T>(slots[i.a])));
}
template <class F>
void unary_rounded(const Instruction& i, uint64_t* slots, Thread&) {
  slots[i.d] = round_to(kSingle, F::odd(as_double(from_slot<float>(slots[i.a]))),
                        static_cast<Rounding>(i.mode));
}

void take_single(Decoder& d, Type type) {
  d.end(2);
  d.out.d = d.destination(0, type);
  d.out.a = d.source(1, type);
}

template <class F>
void decode_sign(Decoder& d) {
  const Type type = d.type();
  if (type.kind == Kind::Unsigned) d.refuse("is of signed numbers");
  d.out.run = type.is_float()
                  ? for_float(d, type, []<class T>() -> Handler { return unary<T, F>; })
                  : for_integer(d, type, []<class T>() -> Handler { return unary<T, F>; });
  take_single(d, type);
}

template <class F>
void decode_root(Decoder& d) {
  const Type type = d.type();
  const int mode = d.take_one({"rn", "rz", "rm", "rp"});
  if (mode < 0) d.refuse("needs a rounding: approximations are not known");
  if (type.kind != Kind::Float || type.bits < 32 || type.lanes != 1)
    d.refuse("is of .f32 and .f64");
  if (mode != 0 && type.bits == 64) d.refuse("of .f64 in that direction is not known");
  d.out.mode = static_cast<uint8_t>(mode);
  if (mode != 0)
    d.out.run = unary_rounded<F>;
  else
    d.out.run = type.bits == 32 ? Handler{unary<float, F>} : Handler{unary<double, F>};
  take_single(d, type);
}

// Comparisons, in the order of their words. Those from `equ` on are true of a NaN.
constexpr std::string_view kComparisons[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",
                                             "lo",  "ls",  "hi",  "hs",  "equ", "neu",
                                             "ltu", "leu", "gtu", "geu", "num", "nan"};
enum : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kLo, kLs, kHi, kHs, kEqu, kNum = 16, kNan };

template <class T>
bool compare(T a, T b, int how) {
  switch (how) {
    case kEq:
      return a == b;
    case kNe:
      return a != b;
    case kLt:
      return a < b;
    case kLe:
      return a <= b;
    case kGt:
      return a > b;
    default:
      return a >= b;
  }
}

template <class T>
bool holds(T a, T b, int how) {
  if constexpr (AnyFloat<T>) {
    const double x = as_double(a), y = as_double(b);
    const bool has_nan = std::isnan(x) || std::isnan(y);
    if (how == kNum || how == kNan) return has_nan == (how == kNan);
    if (has_nan) return how >= kEqu;  // `ne` too is false of a NaN
    return compare(x, y, how >= kEqu ? how - kEqu : how);
  } else {
    return compare(a, b, how >= kLo ? how - kLo + kLt : how);
  }
}

bool combined(bool result, bool with, int64_t by) {
  if (by == 0) return result && with;
  if (by == 1) return result || with;
  if (by == 2) return result != with;
  return result;
}

// `imm`: .and, .or, .xor with `c`, whose negation is `count`.
template <class T>
void set_predicate(const Instruction& i, uint64_t* slots, Thread&) {
  const bool result = holds(from_slot<T>(slots[i.a]), from_slot<T>(slots[i.b]), i.mode);
  const bool with = (slots[i.c] != 0) != (i.count != 0);
  slots[i.d] = combined(result, with, i.imm) ? 1 : 0;
  slots[i.d2] = combined(!result, with, i.imm) ? 1 : 0;
}

void decode_setp(Decoder& d) {
  const Type type = d.type();
  const int how = d.take_one(kComparisons);
  if (how < 0) d.refuse("needs a comparison");
  d.out.mode = static_cast<uint8_t>(how);
  d.out.imm = d.take_one({"and", "or", "xor"});
  const bool is_of_floats = how >= kEqu, is_of_unsigned = how >= kLo && how < kEqu;
  if (is_of_floats && !type.is_float()) d.refuse("compares so no integers");
  if (is_of_unsigned && type.kind != Kind::Unsigned) d.refuse("compares so unsigned integers");
  if (type.kind == Kind::Bits && how > kNe) d.refuse("bits are equal or not");
  d.out.run = type.is_float()
                  ? for_float(d, type, []<class T>() -> Handler { return set_predicate<T>; })
                  : for_integer(d, type, []<class T>() -> Handler { return set_predicate<T>; });
  d.end(d.out.imm < 0 ? 3 : 4);
  Operand to = d.operand(0);
  if (!to.other.empty()) {
    Operand second;
    second.name = std::exchange(to.other, {});
    d.out.d2 = d.destination(second, kPredicate);
  }
  d.out.d = d.destination(to, kPredicate);
  d.out.a = d.source(1, type);
  d.out.b = d.source(2, type);
  if (d.out.imm < 0) return;
  Operand with = d.operand(3);
  d.out.count = std::exchange(with.is_negated, false) ? 1 : 0;
  d.out.c = d.predicate(with);
}

void select(const Instruction& i, uint64_t* slots, Thread&) {
  slots[i.d] = slots[i.c] != 0 ? slots[i.a] : slots[i.b];
}

void decode_selp(Decoder& d) {
  const Type type = d.type();
  if (type.kind == Kind::Predicate) d.refuse("is not of predicates");
  d.end(4);
  d.out.run = select;
  d.out.d = d.destination(0, type);
  d.out.a = d.source(1, type);
  d.out.b = d.source(2, type);
  d.out.c = d.predicate(d.operand(3));
}

template <class T>
void copy_sign(const Instruction& i, uint64_t* slots, Thread&) {
  slots[i.d] = to_slot<T>(std::copysign(from_slot<T>(slots[i.b]), from_slot<T>(slots[i.a])));
}

// The sign of the first, the magnitude of the second.
void decode_copysign(Decoder& d) {
  const Type type = d.type();
  if (type.kind != Kind::Float || type.bits < 32 || type.lanes != 1)
    d.refuse("is of .f32 and .f64");
  d.out.run = type.bits == 32 ? Handler{copy_sign<float>} : Handler{copy_sign<double>};
  take_two(d, type);
}

}  // namespace

std::vector<Decode> arithmetic_decoders() {
  return {{"add", decode_sum<Add>},     {"sub", decode_sum<Sub>},      {"mul", decode_mul},
          {"mad", decode_mad},          {"fma", decode_fma},           {"div", decode_div},
          {"rem", decode_rem},          {"min", decode_choose<false>}, {"max", decode_choose<true>},
          {"neg", decode_sign<Neg>},    {"abs", decode_sign<Abs>},     {"sqrt", decode_root<Sqrt>},
          {"rcp", decode_root<Rcp>},    {"setp", decode_setp},         {"selp", decode_selp},
          {"copysign", decode_copysign}};
}

}  // namespace tiny::emulation
