// The text of one kernel: its lines, and its registers, of which no two ops share one.
//
// A register is a predicate, or 16, 32 or 64 bits of any type: instructions say the type.  Integers
// of 8 and 16 bits are extended to 32 by their sign or by zeros, as constants are.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
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
std::string int_type(DType dtype);
std::string float_type(DType dtype);
std::string bits_type(DType dtype);

// A constant of a dtype with these bits, extended as a register would hold them.
Operand constant(DType dtype, uint64_t bits);
Operand number(int64_t value);  // of 64 bits
Operand word(uint32_t value);

class Writer {
 public:
  // "%r3", or the constant as `type` spells it: decimal of s and u, 0x of b, 0f and 0d of f.
  static std::string text(const Operand& operand, const std::string& type);

  Operand fresh(File file) { return {file, false, false, used_[static_cast<size_t>(file)]++}; }
  void line(const std::string& text) { body_ += "  " + text + ";\n"; }
  void label(const std::string& name) { body_ += name + ":\n"; }
  std::string fresh_label() { return "$L" + std::to_string(labels_++); }

  // `opcode.type result, sources`, into a new register, whose file follows from the type.
  Operand make(const std::string& opcode, const std::string& type,
               std::initializer_list<Operand> sources);
  void into(const Operand& result, const std::string& opcode, const std::string& type,
            std::initializer_list<Operand> sources);
  // `setp.compare.type`, with a predicate after `.and` or `.or`: "lt.and".
  Operand compare(const std::string& compare, const std::string& type,
                  std::initializer_list<Operand> sources);
  // `cvt.how.to.from`: "rn.", or nothing.
  Operand convert(const std::string& how, const std::string& to, const std::string& from,
                  const Operand& source);
  // a where the predicate holds, else b.
  Operand choose(DType dtype, const Operand& predicate, const Operand& a, const Operand& b);
  Operand choose_bits(const std::string& type, const Operand& predicate, const Operand& a,
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
