// From an instruction's words and operands to its record.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/emulation/ptx_program.h"

namespace tiny::emulation {

struct Operand {
  enum class Form : uint8_t { Name, Number, Memory, Vector };
  Form form = Form::Name;
  std::string_view name;    // of a Name, of a Memory's base if that is none of numbers
  std::string_view other;   // of "p|q"
  bool is_negated = false;  // "!p"
  Token number;             // its bits have the sign
  int64_t offset = 0;       // of a Memory
  std::vector<Operand> parts;
};

struct Register {
  uint32_t slot;
  Type type;
};
// Of shared or local memory.
struct Variable {
  Space space;
  uint32_t offset;
};

// The names that an entry's instructions may use.
struct Names {
  std::vector<std::map<std::string_view, Register>> registers;  // by scope, the innermost last
  std::map<std::string_view, Variable> variables;
  std::map<std::string_view, uint32_t> labels;
  std::vector<std::pair<uint32_t, std::string_view>> branches;  // instruction, label
};

class Decoder {
 public:
  Decoder(Entry& entry, Names& names, uint32_t line) : entry_(entry), names_(names) {
    out.line = line;
  }

  Instruction out;
  std::vector<Operand> operands;

  // The words of "add.rn.f32" behind the first.
  void split(std::string_view opcode);
  // Fills `out`.
  void decode();

  // True if that word is left; it is not, then.
  bool take(std::string_view word);
  // Whichever of them is left first, as its number; -1: none.
  int take_one(std::span<const std::string_view> of);
  int take_one(std::initializer_list<std::string_view> of) {
    return take_one(std::span(of.begin(), of.size()));
  }
  Type type();  // the next word that names a type
  std::optional<Type> find_next_type();
  // All words have been taken, and there are so many operands.
  void end(size_t operands_min, size_t operands_max);
  void end(size_t count) { end(count, count); }

  uint32_t source(size_t n, Type type) { return source(operand(n), type); }
  uint32_t source(const Operand& from, Type type, bool may_be_wider = false);
  uint32_t destination(size_t n, Type type) { return destination(operand(n), type); }
  // Where `may_be_wider`, `out.mask` is set to what the register has.
  uint32_t destination(const Operand& to, Type type, bool may_be_wider = false);
  uint32_t predicate(const Operand& from);
  const Operand& operand(size_t n) const;
  uint32_t constant(uint64_t value);
  int64_t number(size_t n) const;  // an operand that is one
  uint32_t list(const std::vector<uint32_t>& slots);
  // Base into `out.a`, offset into `out.imm`.
  void address(const Operand& of);
  void parameter_address(const Operand& of);
  const Variable* find_variable(std::string_view name) const;
  const Register* find_register(std::string_view name) const;
  void branch_to(std::string_view label);
  void set_partial_barriers() { entry_.has_partial_barriers = true; }
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  uint64_t bits_of(const Operand& number, Type type) const;

  Entry& entry_;
  Names& names_;
  std::string_view opcode_;
  std::string_view head_;
  std::vector<std::string_view> words_;
};

// The parts of the table of instructions, each with its decoders.
struct Decode {
  std::string_view name;
  void (*decode)(Decoder&);
};
std::vector<Decode> arithmetic_decoders();
std::vector<Decode> bit_decoders();
std::vector<Decode> conversion_decoders();
std::vector<Decode> access_decoders();
std::vector<Decode> control_decoders();
std::vector<Decode> matrix_decoders();
std::vector<Decode> warpgroup_decoders();

}  // namespace tiny::emulation
