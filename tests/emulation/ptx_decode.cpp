#include "tests/emulation/ptx_decode.h"

#include <algorithm>
#include <bit>

#include "tests/emulation/ptx_floats.h"

namespace tiny::emulation {

namespace {

std::map<std::string_view, void (*)(Decoder&)> all_decoders() {
  std::map<std::string_view, void (*)(Decoder&)> all;
  for (const auto& part :
       {arithmetic_decoders(), bit_decoders(), conversion_decoders(), access_decoders(),
        control_decoders(), matrix_decoders(), warpgroup_decoders()})
    for (const Decode& one : part) all[one.name] = one.decode;
  return all;
}

// Whether an instruction of type `wanted` takes a register of type `has`.
bool fits(Type has, Type wanted, bool may_be_wider) {
  if (has.kind == Kind::Predicate || wanted.kind == Kind::Predicate) return has == wanted;
  if (has.bits != wanted.bits) return may_be_wider && has.bits > wanted.bits;
  if (has.kind == Kind::Bits || wanted.kind == Kind::Bits) return true;
  if (may_be_wider) return true;
  return has.is_float() ? has.kind == wanted.kind : wanted.is_integer();
}

}  // namespace

void Decoder::refuse(const std::string& what) const {
  throw Refused(out.line, std::string(opcode_) + ": " + what);
}

void Decoder::split(std::string_view opcode) {
  opcode_ = opcode;
  head_ = opcode.substr(0, opcode.find('.'));
  for (size_t at = head_.size(); at < opcode.size();) {
    const size_t end = std::min(opcode.find('.', at + 1), opcode.size());
    words_.push_back(opcode.substr(at + 1, end - at - 1));
    at = end;
  }
}

void Decoder::decode() {
  static const auto decoders = all_decoders();
  const auto found = decoders.find(head_);
  if (found == decoders.end()) refuse("unknown instruction");
  found->second(*this);
  if (!words_.empty()) refuse("unknown modifier ." + std::string(words_.front()));
}

bool Decoder::take(std::string_view word) {
  const auto found = std::ranges::find(words_, word);
  if (found == words_.end()) return false;
  words_.erase(found);
  return true;
}

int Decoder::take_one(std::span<const std::string_view> of) {
  int number = 0;
  for (const std::string_view word : of) {
    if (take(word)) return number;
    ++number;
  }
  return -1;
}

std::optional<Type> Decoder::find_next_type() {
  for (auto word = words_.begin(); word != words_.end(); ++word) {
    Type type;
    if (!find_type(*word, type)) continue;
    words_.erase(word);
    return type;
  }
  return std::nullopt;
}

Type Decoder::type() {
  const auto found = find_next_type();
  if (!found) refuse("no type");
  return *found;
}

void Decoder::end(size_t operands_min, size_t operands_max) {
  if (!words_.empty()) refuse("unknown modifier ." + std::string(words_.front()));
  if (operands.size() < operands_min || operands.size() > operands_max)
    refuse("has " + std::to_string(operands.size()) + " operands");
}

const Operand& Decoder::operand(size_t n) const {
  if (n >= operands.size()) refuse("has " + std::to_string(operands.size()) + " operands");
  return operands[n];
}

const Register* Decoder::find_register(std::string_view name) const {
  for (auto scope = names_.registers.rbegin(); scope != names_.registers.rend(); ++scope)
    if (const auto found = scope->find(name); found != scope->end()) return &found->second;
  return nullptr;
}

const Variable* Decoder::find_variable(std::string_view name) const {
  const auto found = names_.variables.find(name);
  return found == names_.variables.end() ? nullptr : &found->second;
}

uint64_t Decoder::bits_of(const Operand& from, Type type) const {
  const Token& number = from.number;
  if (type.kind == Kind::Predicate) refuse("a number where a predicate belongs");
  if (number.as == Token::As::Integer) {
    if (type.is_float()) refuse("an integer where a float belongs");
    return type.bits == 64 ? number.bits : number.bits & ((uint64_t{1} << type.bits) - 1);
  }
  if (type.is_integer()) refuse("a float where an integer belongs");
  const double value = number.as == Token::As::Single
                           ? std::bit_cast<float>(static_cast<uint32_t>(number.bits))
                           : std::bit_cast<double>(number.bits);
  if (type.bits == 64)
    return number.as == Token::As::Double ? number.bits : std::bit_cast<uint64_t>(value);
  if (type.bits != 32 || type.lanes != 1) refuse("a float of that size cannot be written");
  if (number.as == Token::As::Single) return number.bits;
  return std::bit_cast<uint32_t>(static_cast<float>(value));
}

int64_t Decoder::number(size_t n) const {
  if (operand(n).form != Operand::Form::Number) refuse("needs a number");
  return static_cast<int64_t>(bits_of(operand(n), kU64));
}

uint32_t Decoder::source(const Operand& from, Type type, bool may_be_wider) {
  if (from.form == Operand::Form::Number) return constant(bits_of(from, type));
  if (from.form != Operand::Form::Name || from.is_negated || !from.other.empty())
    refuse("an operand that it does not take");
  if (const Variable* variable = find_variable(from.name)) {
    if (type.is_float() || type.bits < 32) refuse("an address as " + to_string(type));
    return constant(variable->offset);
  }
  const Register* found = find_register(from.name);
  if (!found) refuse("unknown name " + std::string(from.name));
  if (!fits(found->type, type, may_be_wider))
    refuse("the register " + std::string(from.name) + " is " + to_string(found->type) + ", not " +
           to_string(type));
  return found->slot;
}

uint32_t Decoder::destination(const Operand& to, Type type, bool may_be_wider) {
  if (to.form != Operand::Form::Name || to.is_negated) refuse("a result that is no register");
  if (to.name == "_") return kSinkSlot;
  const Register* found = find_register(to.name);
  if (!found || found->slot < slot_of(Special::Count))
    refuse("no register to write: " + std::string(to.name));
  if (!fits(found->type, type, may_be_wider))
    refuse("the register " + std::string(to.name) + " is " + to_string(found->type) + ", not " +
           to_string(type));
  if (may_be_wider && found->type.bits < 64) out.mask = (uint64_t{1} << found->type.bits) - 1;
  return found->slot;
}

uint32_t Decoder::predicate(const Operand& from) {
  return source(from, kPredicate);
}

uint32_t Decoder::constant(uint64_t value) {
  for (const auto& [slot, known] : entry_.constants)
    if (known == value) return slot;
  entry_.constants.emplace_back(entry_.slots, value);
  return entry_.slots++;
}

uint32_t Decoder::list(const std::vector<uint32_t>& slots) {
  const auto first = static_cast<uint32_t>(entry_.lists.size());
  entry_.lists.insert(entry_.lists.end(), slots.begin(), slots.end());
  return first;
}

void Decoder::address(const Operand& of) {
  if (of.form != Operand::Form::Memory) refuse("no address in brackets");
  out.imm = of.offset;
  if (of.name.empty()) {
    out.a = constant(0);
    return;
  }
  if (const Variable* variable = find_variable(of.name)) {
    if (variable->space != out.space) refuse("an address of another space");
    out.a = constant(variable->offset);
    return;
  }
  const Register* found = find_register(of.name);
  if (!found) refuse("unknown name " + std::string(of.name));
  const bool may_be_narrow = out.space == Space::Shared || out.space == Space::Local;
  if (found->type.is_float() ||
      (found->type.bits != 64 && !(may_be_narrow && found->type.bits == 32)))
    refuse("the address " + std::string(of.name) + " is " + to_string(found->type));
  out.a = found->slot;
}

void Decoder::parameter_address(const Operand& of) {
  if (of.form != Operand::Form::Memory) refuse("no parameter in brackets");
  const auto found = std::ranges::find(entry_.parameters, of.name, &Parameter::name);
  if (found == entry_.parameters.end()) refuse("no parameter " + std::string(of.name));
  const uint32_t read = out.bytes * std::max(out.count, 1u);
  if (of.offset < 0 || of.offset + read > found->bytes)
    refuse("reads outside of the parameter " + found->name);
  if (found->offset % out.bytes != 0 || of.offset % out.bytes != 0)
    refuse("the parameter " + found->name + " is not aligned to that");
  out.imm = found->offset + of.offset;
}

void Decoder::branch_to(std::string_view label) {
  names_.branches.emplace_back(static_cast<uint32_t>(entry_.code.size()), label);
}

}  // namespace tiny::emulation
