#include "render/ptx/writer.h"

#include <cstdio>

#include "base/error.h"
#include "base/text.h"

namespace tiny::ptx {
namespace {

constexpr const char* kPrefixes[] = {"%p", "%h", "%r", "%d"};
constexpr const char* kDeclared[] = {"pred", "b16", "b32", "b64"};

File file_of_type(std::string_view type) {
  if (type == "pred") return File::Predicate;
  if (type.ends_with("64")) return File::Double;
  return type.ends_with("16") ? File::Half : File::Word;
}

std::string_view moved_as(File file) {
  return kDeclared[static_cast<size_t>(file)];
}

std::string hexadecimal(const char* prefix, uint64_t bits, int digits) {
  char text[24];
  std::snprintf(text, sizeof text, "%s%0*llX", prefix, digits,
                static_cast<unsigned long long>(bits));
  return text;
}

std::string literal(uint64_t bits, std::string_view type) {
  const bool is_wide = type.ends_with("64");
  if (type[0] == 'f') return hexadecimal(is_wide ? "0d" : "0f", bits, is_wide ? 16 : 8);
  if (type[0] == 'b') return hexadecimal("0x", bits, 1);
  if (type[0] == 'u') return std::to_string(bits);
  if (!is_wide) return std::to_string(static_cast<int32_t>(bits));
  // The lowest has no decimal form: its magnitude is not a number of 64 bits with a sign.
  return bits == uint64_t{1} << 63 ? hexadecimal("0x", bits, 16)
                                   : std::to_string(static_cast<int64_t>(bits));
}

}  // namespace

File file_of(DType dtype) {
  if (dtype.is_bool()) return File::Predicate;
  return dtype.bits() == 64 ? File::Double : File::Word;
}

std::string_view int_type(DType dtype) {
  if (dtype.bits() == 64) return dtype.is_signed() ? "s64" : "u64";
  return dtype.is_signed() ? "s32" : "u32";
}

std::string_view float_type(DType dtype) {
  invariant(dtype.element() == kFloat32 || dtype.element() == kFloat64,
            "half types are not computed with in a linear program");
  return dtype.bits() == 64 ? "f64" : "f32";
}

std::string_view bits_type(DType dtype) {
  return moved_as(file_of(dtype));
}

Operand constant(DType dtype, uint64_t bits) {
  if (dtype.is_signed() && dtype.bits() < 64) bits = static_cast<uint32_t>(int_of(dtype, bits));
  return {file_of(dtype), true, false, bits};
}

Operand number(int64_t value) {
  return {File::Double, true, false, static_cast<uint64_t>(value)};
}

Operand word(uint32_t value) {
  return {File::Word, true, false, value};
}

std::string Writer::text(const Operand& operand, std::string_view type) {
  if (!operand.is_constant) return cat(kPrefixes[static_cast<size_t>(operand.file)], operand.value);
  return literal(operand.value, type);
}

void Writer::line(std::string_view text) {
  body_ += cat("  ", text, ";\n");
}

void Writer::label(std::string_view name) {
  body_ += cat(name, ":\n");
}

std::string Writer::fresh_label() {
  return cat("$L", labels_++);
}

void Writer::into(const Operand& result, std::string_view opcode, std::string_view type,
                  std::initializer_list<Operand> sources) {
  std::string out = cat(opcode, ".", type, " ", text(result, type));
  for (const Operand& source : sources) out += ", " + text(source, type);
  line(out);
}

Operand Writer::make(std::string_view opcode, std::string_view type,
                     std::initializer_list<Operand> sources) {
  const Operand result = fresh(file_of_type(type));
  into(result, opcode, type, sources);
  return result;
}

Operand Writer::compare(std::string_view compare, std::string_view type,
                        std::initializer_list<Operand> sources) {
  const Operand result = fresh(File::Predicate);
  into(result, cat("setp.", compare), type, sources);
  return result;
}

Operand Writer::convert(std::string_view how, std::string_view to, std::string_view from,
                        const Operand& source) {
  const Operand result = fresh(file_of_type(to));
  const Operand read = source.is_constant ? in_register(source) : source;
  line(cat("cvt.", how, to, ".", from, " ", text(result, to), ", ", text(read, from)));
  return result;
}

Operand Writer::choose_bits(std::string_view type, const Operand& predicate, const Operand& a,
                            const Operand& b) {
  return make("selp", type, {a, b, predicate});
}

Operand Writer::choose(DType dtype, const Operand& predicate, const Operand& a, const Operand& b) {
  if (!dtype.is_bool()) return choose_bits(bits_type(dtype), predicate, a, b);
  const Operand one = make("and", "pred", {predicate, a});
  const Operand other = make("and", "pred", {make("not", "pred", {predicate}), b});
  return make("or", "pred", {one, other});
}

void Writer::move(const Operand& to, const Operand& from) {
  into(to, "mov", moved_as(to.file), {from});
}

Operand Writer::in_register(const Operand& operand) {
  if (!operand.is_constant && !operand.changes) return operand;
  const Operand result = fresh(operand.file);
  move(result, operand);
  return result;
}

std::string Writer::declarations() const {
  std::string out;
  for (size_t i = 0; i < 4; ++i)
    if (used_[i] > 0)
      out += cat("  .reg .", kDeclared[i], " ", kPrefixes[i], "<", used_[i], ">;\n");
  return out;
}

}  // namespace tiny::ptx
