#include "render/c/types.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace tiny::c {
namespace {

template <class F>
std::string decimal(F value) {
  std::string out = shortest(value);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

std::string hex(uint64_t bits) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, bits, 16).ptr;
  return cat("0x", std::string(text, end));
}

template <class F>
std::string float_literal(F value, uint64_t bits, const char* suffix, const char* infinity,
                          const char* of_bits, const std::string& bits_suffix) {
  if (std::isnan(value) || (std::isinf(value) && !infinity))
    return cat(of_bits, "(", hex(bits), bits_suffix, ")");
  std::string text =
      std::isinf(value) ? std::string(infinity) : cat(decimal(std::fabs(value)), suffix);
  return std::signbit(value) ? cat("(-", text, ")") : text;
}

std::string signed_literal(int64_t value, const char* suffix) {
  if (value >= 0) return cat(value, suffix);
  // The lowest value has no positive counterpart to negate.
  if (value == -value || value == INT64_MIN || value == INT32_MIN)
    return cat("(", value + 1, suffix, " - 1)");
  return cat("(", value, suffix, ")");
}

// "trunc_div" of "TruncDiv".
std::string lower(const char* name) {
  std::string out;
  for (const char* p = name; *p; ++p) {
    const bool upper = *p >= 'A' && *p <= 'Z';
    if (upper && p != name) out += '_';
    out += upper ? static_cast<char>(*p - 'A' + 'a') : *p;
  }
  return out;
}

}  // namespace

std::string word_of(Op op) {
  return lower(info(op).name);
}

const char* symbol_of(Op op) {
  switch (op) {
    case Op::Add:
      return "+";
    case Op::Sub:
      return "-";
    case Op::Mul:
      return "*";
    case Op::Div:
      return "/";
    case Op::And:
      return "&";
    case Op::Or:
      return "|";
    case Op::Xor:
      return "^";
    case Op::Less:
      return "<";
    case Op::LessEqual:
      return "<=";
    case Op::Equal:
      return "==";
    case Op::NotEqual:
      return "!=";
    default:
      return nullptr;
  }
}

int64_t padded_lanes(DType dtype) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint32_t>(dtype.lanes)));
}

std::string type_name(DType dtype) {
  const char* one = "";
  switch (dtype.scalar) {
    case ScalarType::Bool:
      one = dtype.lanes == 1 ? "b8" : "i8";
      break;
    case ScalarType::Int8:
      one = "i8";
      break;
    case ScalarType::Int16:
      one = "i16";
      break;
    case ScalarType::Int32:
      one = "i32";
      break;
    case ScalarType::Int64:
      one = "i64";
      break;
    case ScalarType::UInt8:
      one = "u8";
      break;
    case ScalarType::UInt16:
      one = "u16";
      break;
    case ScalarType::UInt32:
      one = "u32";
      break;
    case ScalarType::UInt64:
      one = "u64";
      break;
    case ScalarType::Float16:
      one = "h16";
      break;
    case ScalarType::BFloat16:
      one = "bf16";
      break;
    case ScalarType::Float32:
      one = "f32";
      break;
    case ScalarType::Float64:
      one = "f64";
      break;
    case ScalarType::Address:
      one = "address";
      break;
    case ScalarType::Float8E4M3FN:
    case ScalarType::Float8E4M3FNUZ:
    case ScalarType::Float8E5M2:
    case ScalarType::Float8E5M2FNUZ:
    case ScalarType::Void:
      one = "void";
      break;
  }
  return dtype.lanes == 1 ? std::string(one) : cat(one, "x", dtype.lanes);
}

DType unsigned_of(DType dtype) {
  const int64_t bits = dtype.bits();
  return (bits == 8    ? kUInt8
          : bits == 16 ? kUInt16
          : bits == 32 ? kUInt32
                       : kUInt64)
      .with_lanes(dtype.lanes);
}

DType mask_of(DType dtype) {
  const int64_t bits = dtype.bits();
  return (bits == 8    ? kInt8
          : bits == 16 ? kInt16
          : bits == 32 ? kInt32
                       : kInt64)
      .with_lanes(dtype.lanes);
}

std::string literal(const Dialect& dialect, DType dtype, uint64_t bits) {
  const char* wide = dialect.long_suffix;
  switch (dtype.scalar) {
    case ScalarType::Float32:
      return float_literal(std::bit_cast<float>(static_cast<uint32_t>(bits)), bits, "f",
                           dialect.has_infinity ? "INFINITY" : nullptr, "f32_of_bits", "u");
    case ScalarType::Float64:
      return float_literal(std::bit_cast<double>(bits), bits, "",
                           dialect.has_infinity ? "(f64)INFINITY" : nullptr, "f64_of_bits",
                           cat("u", wide));
    case ScalarType::Float16:
    case ScalarType::BFloat16:
      return hex(bits);
    default:
      break;
  }
  const bool is_wide = dtype.bits() == 64;
  if (dtype.is_signed()) return signed_literal(int_of(dtype, bits), is_wide ? wide : "");
  return is_wide ? cat(bits, "u", wide) : cat(bits, dtype.bits() == 32 ? "u" : "");
}

std::string fill(std::string_view pattern, std::initializer_list<std::string_view> values) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '$') {
      out += pattern[i];
      continue;
    }
    const auto which = static_cast<size_t>(pattern[++i] - '0');
    invariant(which < values.size(), "a pattern has a value for each of its places");
    out += values.begin()[which];
  }
  return out;
}

}  // namespace tiny::c
