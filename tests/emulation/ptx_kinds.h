// From a type of PTX to a type of C++ that computes it.
#pragma once

#include <cstdint>

#include "tests/emulation/ptx_decode.h"
#include "tests/emulation/ptx_floats.h"

namespace tiny::emulation {

template <class T>
struct FormatOf {
  static constexpr Format value = T::format;
};
template <>
struct FormatOf<float> {
  static constexpr Format value = kSingle;
};

// `make` for the integer type of at least 16 bits.  Bits count as unsigned.
template <class Make>
auto for_integer(const Decoder& d, Type type, Make make) {
  const bool is_signed = type.kind == Kind::Signed;
  if (type.is_float() || type.kind == Kind::Predicate) d.refuse("is not of " + to_string(type));
  switch (type.bits) {
    case 16:
      return is_signed ? make.template operator()<int16_t>() : make.template operator()<uint16_t>();
    case 32:
      return is_signed ? make.template operator()<int32_t>() : make.template operator()<uint32_t>();
    case 64:
      return is_signed ? make.template operator()<int64_t>() : make.template operator()<uint64_t>();
    default:
      d.refuse("is not of " + to_string(type));
  }
}

// The formats of at most 32 bits.
template <class Make>
auto for_narrow(const Decoder& d, Type type, Make make) {
  if (!type.is_float() || type.lanes != 1 || type.bits > 32)
    d.refuse("is not of " + to_string(type));
  if (type.bits == 32) return make.template operator()<float>();
  return type.kind == Kind::Float ? make.template operator()<Half>()
                                  : make.template operator()<Bfloat>();
}

template <class Make>
auto for_float(const Decoder& d, Type type, Make make) {
  if (type.kind == Kind::Float && type.bits == 64) return make.template operator()<double>();
  return for_narrow(d, type, make);
}

}  // namespace tiny::emulation
