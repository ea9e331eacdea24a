#include "tests/emulation/ptx_program.h"

#include <algorithm>
#include <deque>

#include "tests/emulation/ptx_decode.h"

namespace tiny::emulation {

namespace {

struct NamedType {
  std::string_view name;
  Type type;
};
constexpr NamedType kTypes[] = {
    {"pred", kPredicate},
    {"b8", {Kind::Bits, 8}},
    {"b16", kB16},
    {"b32", kB32},
    {"b64", kB64},
    {"u8", {Kind::Unsigned, 8}},
    {"u16", {Kind::Unsigned, 16}},
    {"u32", kU32},
    {"u64", kU64},
    {"s8", {Kind::Signed, 8}},
    {"s16", {Kind::Signed, 16}},
    {"s32", {Kind::Signed, 32}},
    {"s64", {Kind::Signed, 64}},
    {"f16", {Kind::Float, 16}},
    {"f32", {Kind::Float, 32}},
    {"f64", {Kind::Float, 64}},
    {"bf16", {Kind::Bfloat, 16}},
    {"f16x2", {Kind::Float, 32, 2}},
    {"bf16x2", {Kind::Bfloat, 32, 2}},
};

struct NamedSpecial {
  std::string_view name;
  Special special;
};
constexpr NamedSpecial kSpecials[] = {
    {"%tid.x", Special::TidX},
    {"%tid.y", Special::TidY},
    {"%tid.z", Special::TidZ},
    {"%ntid.x", Special::NtidX},
    {"%ntid.y", Special::NtidY},
    {"%ntid.z", Special::NtidZ},
    {"%ctaid.x", Special::CtaidX},
    {"%ctaid.y", Special::CtaidY},
    {"%ctaid.z", Special::CtaidZ},
    {"%nctaid.x", Special::NctaidX},
    {"%nctaid.y", Special::NctaidY},
    {"%nctaid.z", Special::NctaidZ},
    {"%laneid", Special::Laneid},
    {"%warpid", Special::Warpid},
    {"%nwarpid", Special::Nwarpid},
    {"%lanemask_eq", Special::LanemaskEq},
    {"%lanemask_lt", Special::LanemaskLt},
    {"%lanemask_le", Special::LanemaskLe},
    {"%lanemask_gt", Special::LanemaskGt},
    {"%lanemask_ge", Special::LanemaskGe},
};

uint32_t align_up(uint32_t value, uint32_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

constexpr uint32_t kSharedBytesMax = 48 << 10;  // static shared memory of any device

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(split_tokens(text)) {}

  Module parse() {
    while (peek().kind != TokenKind::End) directive();
    if (module_.version == 0) refuse("the module has no .version");
    if (module_.target.empty()) refuse("the module has no .target");
    return std::move(module_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw Refused(peek().line, what); }
  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  Token take() { return tokens_[std::min(at_++, tokens_.size() - 1)]; }
  bool take_if(std::string_view text) {
    if (peek().text != text || peek().kind == TokenKind::End) return false;
    ++at_;
    return true;
  }
  void expect(std::string_view text) {
    if (!take_if(text))
      refuse("expected \"" + std::string(text) + "\", got \"" + std::string(peek().text) + "\"");
  }
  std::string_view name() {
    if (peek().kind != TokenKind::Word || peek().text[0] == '.')
      refuse("expected a name, got \"" + std::string(peek().text) + "\"");
    return take().text;
  }
  uint32_t number(uint64_t most) {
    if (peek().kind != TokenKind::Number || peek().as != Token::As::Integer || peek().bits > most)
      refuse("expected a number up to " + std::to_string(most) + ", got \"" +
             std::string(peek().text) + "\"");
    return static_cast<uint32_t>(take().bits);
  }
  Type type() {
    Type type;
    if (peek().kind != TokenKind::Word || peek().text[0] != '.' ||
        !find_type(peek().text.substr(1), type))
      refuse("expected a type, got \"" + std::string(peek().text) + "\"");
    take();
    return type;
  }

  void directive() {
    if (take_if(".version")) {
      const std::string version(take().text);
      const size_t dot = version.find('.');
      if (dot == std::string::npos || version.size() != dot + 2) refuse("no version: " + version);
      module_.version = static_cast<uint32_t>(10 * std::stoi(version) + (version[dot + 1] - '0'));
    } else if (take_if(".target")) {
      module_.target = std::string(name());
      if (!module_.target.starts_with("sm_")) refuse("unknown target " + module_.target);
    } else if (take_if(".address_size")) {
      if (number(64) != 64) refuse("addresses have 64 bits");
    } else if (take_if(".visible") || take_if(".extern")) {
      // Of what follows.
    } else if (take_if(".entry")) {
      entry();
    } else if (take_if(".shared")) {
      variable(Space::Shared, module_names_, module_shared_);
    } else {
      refuse("unknown directive \"" + std::string(peek().text) + "\"");
    }
  }

  // ".align N .type name[n];" behind its space.  Without a size in the brackets: what the launch
  // adds.
  void variable(Space space, Names& names, Entry& room) {
    uint32_t alignment = 0;
    if (take_if(".align")) alignment = number(4096);
    const Type element = type();
    alignment = std::max(alignment, element.bytes());
    const std::string_view called = name();
    uint64_t bytes = element.bytes();
    bool is_dynamic = false;
    while (take_if("[")) {
      is_dynamic = peek().text == "]";
      if (!is_dynamic) bytes *= number(1u << 30);
      expect("]");
    }
    expect(";");
    if (names.variables.contains(called)) refuse("declared twice: " + std::string(called));
    uint32_t& used = space == Space::Shared ? room.shared_bytes : room.local_bytes;
    if (is_dynamic) {
      if (space != Space::Shared) refuse("without a size: " + std::string(called));
      dynamic_.push_back(called);
      room.shared_alignment = std::max(room.shared_alignment, alignment);
      names.variables[called] = {space, 0};  // known at the end
      return;
    }
    used = align_up(used, alignment);
    names.variables[called] = {space, used};
    if (space == Space::Shared) room.shared_alignment = std::max(room.shared_alignment, alignment);
    if (space == Space::Shared && used + bytes > kSharedBytesMax)
      refuse("more than " + std::to_string(kSharedBytesMax) + " bytes of static shared memory");
    used += static_cast<uint32_t>(bytes);
  }

  void parameters(Entry& entry) {
    if (!take_if("(")) return;
    while (!take_if(")")) {
      expect(".param");
      uint32_t alignment = 0;
      if (take_if(".align")) alignment = number(128);
      Parameter parameter;
      parameter.type = type();
      if (take_if(".align")) alignment = number(128);
      alignment = std::max(alignment, parameter.type.bytes());
      parameter.name = std::string(name());
      parameter.bytes = parameter.type.bytes();
      if (take_if("[")) {
        parameter.bytes *= number(4096);
        expect("]");
      }
      parameter.offset = align_up(entry.parameter_bytes, alignment);
      entry.parameter_bytes = parameter.offset + parameter.bytes;
      for (const Parameter& other : entry.parameters)
        if (other.name == parameter.name) refuse("declared twice: " + parameter.name);
      entry.parameters.push_back(std::move(parameter));
      if (peek().text != ")") expect(",");
    }
  }

  void bounds(Entry& entry) {
    for (;;) {
      if (peek().text == ".maxntid" || peek().text == ".reqntid") {
        entry.threads_are_exact = take().text == ".reqntid";
        entry.threads_max = {number(1024), 1, 1};
        for (size_t axis = 1; axis < 3 && take_if(","); ++axis)
          entry.threads_max[axis] = number(1024);
      } else if (take_if(".minnctapersm") || take_if(".maxnreg")) {
        number(1024);
      } else {
        return;
      }
    }
  }

  void entry() {
    Entry entry;
    entry.name = std::string(name());
    entry.slots = slot_of(Special::Count);
    entry.shared_bytes = module_shared_.shared_bytes;
    entry.shared_alignment = module_shared_.shared_alignment;
    Names names = module_names_;
    names.registers.emplace_back();
    for (const NamedSpecial& s : kSpecials)
      names.registers.back()[s.name] = {slot_of(s.special), kU32};
    parameters(entry);
    bounds(entry);
    const size_t begin = at_;
    // Shared variables are placed before instructions name them: what is dynamic lies behind all.
    declare_variables(entry, names);
    const uint32_t dynamic_at = align_up(entry.shared_bytes, entry.shared_alignment);
    for (const std::string_view one : dynamic_)
      if (names.variables.contains(one)) names.variables[one].offset = dynamic_at;
    at_ = begin;
    expect("{");
    body(entry, names);
    for (const auto& [at, label] : names.branches) {
      const auto found = names.labels.find(label);
      if (found == names.labels.end())
        throw Refused(entry.code[at].line, "no label " + std::string(label));
      entry.code[at].target = found->second;
    }
    if (module_.entries.contains(entry.name)) refuse("declared twice: " + entry.name);
    const std::string key = entry.name;
    module_.entries.emplace(key, std::move(entry));
  }

  void declare_variables(Entry& entry, Names& names) {
    expect("{");
    for (int depth = 1; depth > 0;) {
      if (peek().kind == TokenKind::End) refuse("the body of " + entry.name + " has no end");
      if (take_if("{"))
        ++depth;
      else if (take_if("}"))
        --depth;
      else if (take_if(".shared"))
        variable(Space::Shared, names, entry);
      else if (take_if(".local"))
        variable(Space::Local, names, entry);
      else
        ++at_;
    }
  }

  void body(Entry& entry, Names& names) {
    names.registers.emplace_back();
    while (!take_if("}")) statement(entry, names);
    names.registers.pop_back();
    if (names.registers.size() > 1) return;
    // Behind the last instruction a thread ends.
    Instruction end;
    end.step = Step::End;
    end.line = peek().line;
    entry.code.push_back(end);
  }

  void statement(Entry& entry, Names& names) {
    const Token& at = peek();
    if (take_if("{")) return body(entry, names);
    if (take_if(".reg")) return registers(entry, names);
    if (take_if(".shared") || take_if(".local") || take_if(".pragma")) {
      while (!take_if(";")) ++at_;  // placed already; a hint
      return;
    }
    if (at.kind != TokenKind::Word && at.text != "@")
      refuse("unknown statement \"" + std::string(at.text) + "\"");
    if (at.text[0] == '.') refuse("unknown directive \"" + std::string(at.text) + "\"");
    if (peek(1).text == ":") {
      if (!names.labels.emplace(at.text, static_cast<uint32_t>(entry.code.size())).second)
        refuse("a label twice: " + std::string(at.text));
      at_ += 2;
      return;
    }
    instruction(entry, names);
  }

  void registers(Entry& entry, Names& names) {
    const Type of = type();
    do {
      const std::string_view called = name();
      if (take_if("<")) {
        const uint32_t count = number(1u << 20);
        expect(">");
        for (uint32_t i = 0; i < count; ++i) {
          made_.push_back(std::string(called) + std::to_string(i));
          declare(entry, names, made_.back(), of);
        }
      } else {
        declare(entry, names, called, of);
      }
    } while (take_if(","));
    expect(";");
  }

  void declare(Entry& entry, Names& names, std::string_view called, Type of) {
    if (!names.registers.back().emplace(called, Register{entry.slots, of}).second)
      refuse("declared twice: " + std::string(called));
    ++entry.slots;
  }

  void instruction(Entry& entry, Names& names) {
    Decoder decoder(entry, names, peek().line);
    if (take_if("@")) {
      decoder.out.guard_is_negated = take_if("!");
      Operand guard;
      guard.name = name();
      decoder.out.guard = decoder.predicate(guard);
    }
    if (peek().kind != TokenKind::Word) refuse("an instruction without a name");
    decoder.split(take().text);
    while (!take_if(";")) {
      decoder.operands.push_back(operand());
      if (peek().text != ";") expect(",");
    }
    decoder.decode();
    entry.code.push_back(decoder.out);
  }

  Token signed_number() {
    const bool is_negative = take_if("-");
    if (peek().kind != TokenKind::Number)
      refuse("expected a number, got \"" + std::string(peek().text) + "\"");
    Token token = take();
    if (!is_negative) return token;
    if (token.as == Token::As::Integer)
      token.bits = ~token.bits + 1;
    else
      token.bits ^= uint64_t{1} << (token.as == Token::As::Single ? 31 : 63);
    return token;
  }

  Operand operand() {
    Operand out;
    if (take_if("{")) {
      out.form = Operand::Form::Vector;
      do out.parts.push_back(operand());
      while (take_if(","));
      expect("}");
    } else if (take_if("[")) {
      out.form = Operand::Form::Memory;
      if (peek().kind == TokenKind::Word) out.name = name();
      if (take_if("+") || out.name.empty() || peek().text == "-")
        out.offset = static_cast<int64_t>(signed_number().bits);
      expect("]");
    } else if (peek().kind == TokenKind::Number || peek().text == "-") {
      out.form = Operand::Form::Number;
      out.number = signed_number();
    } else {
      out.is_negated = take_if("!");
      out.name = name();
      if (take_if("|")) out.other = name();
    }
    return out;
  }

  const std::vector<Token> tokens_;
  size_t at_ = 0;
  Module module_;
  Names module_names_;
  Entry module_shared_;
  std::vector<std::string_view> dynamic_;
  std::deque<std::string> made_;  // names of registers that the text does not spell
};

}  // namespace

bool find_type(std::string_view word, Type& type) {
  const auto* found = std::ranges::find(kTypes, word, &NamedType::name);
  if (found == std::end(kTypes)) return false;
  type = found->type;
  return true;
}

std::string to_string(Type type) {
  const auto* found = std::ranges::find(kTypes, type, &NamedType::type);
  return found == std::end(kTypes) ? "?" : "." + std::string(found->name);
}

Module parse_module(std::string_view text) {
  return Parser(text).parse();
}

}  // namespace tiny::emulation
