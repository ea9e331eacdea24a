// The text of one kernel: its lines, and its registers, of which no two ops share one.
//
// A register is a predicate, or 16, 32 or 64 bits of any type: instructions say the type.  Integers
// of 8 and 16 bits are extended to 32 by their sign or by zeros, as constants are.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"

namespace tiny::ptx {

enum class File : uint8_t { Predicate, Half, Word, Double };  // of registers: %p %h %r %d

// What an instruction reads: a register, or the bits of a constant.
struct Operand {
  File file = File::Word;
  bool is_constant = false;
  bool changes = false;  // is written again: an accumulator
  uint64_t value = 0;    // the register's number, or bits

  bool operator==(const Operand&) const = default;
};

using Value = std::vector<Operand>;  // of each lane

// The registers that hold a dtype's lanes.
File file_of(DType dtype);

// The types of instructions on a dtype: "s32" of an int8, "u64"; "f32"; "b32" of either, "pred".
std::string_view int_type(DType dtype);
std::string_view float_type(DType dtype);
std::string_view bits_type(DType dtype);

// A constant of a dtype with these bits, extended as a register would hold them.
Operand constant(DType dtype, uint64_t bits);
Operand number(int64_t value);  // of 64 bits
Operand word(uint32_t value);

class Writer {
 public:
  // "%r3", or the constant as `type` spells it: decimal of s and u, 0x of b, 0f and 0d of f.
  static std::string text(const Operand& operand, std::string_view type);

  Operand fresh(File file) { return {file, false, false, used_[static_cast<size_t>(file)]++}; }
  void line(std::string_view text);
  void label(std::string_view name);
  std::string fresh_label();

  // `opcode.type result, sources`, into a new register, whose file follows from the type.
  Operand make(std::string_view opcode, std::string_view type,
               std::initializer_list<Operand> sources);
  void into(const Operand& result, std::string_view opcode, std::string_view type,
            std::initializer_list<Operand> sources);
  // `setp.compare.type`, with a predicate after `.and` or `.or`: "lt.and".
  Operand compare(std::string_view compare, std::string_view type,
                  std::initializer_list<Operand> sources);
  // `cvt.how.to.from`: "rn.", or nothing.
  Operand convert(std::string_view how, std::string_view to, std::string_view from,
                  const Operand& source);
  // a where the predicate holds, else b.
  Operand choose(DType dtype, const Operand& predicate, const Operand& a, const Operand& b);
  Operand choose_bits(std::string_view type, const Operand& predicate, const Operand& a,
                      const Operand& b);
  void move(const Operand& to, const Operand& from);
  // A register that holds the operand and is not written again.
  Operand in_register(const Operand& operand);
  // The same, but a constant may stay one.
  Operand fixed(const Operand& operand) { return operand.changes ? in_register(operand) : operand; }

  bool has_bfloat = false;  // `cvt.rn.bf16.f32`: from sm_80 on

  const std::string& body() const { return body_; }
  // The declarations of all registers.
  std::string declarations() const;

 private:
  std::string body_;
  uint64_t used_[4] = {};
  uint64_t labels_ = 0;
};

}  // namespace tiny::ptx
