#include "aot/names.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace tiny::aot {
namespace {

constexpr std::string_view kKeywords[] = {
    "alignas", "alignof", "and",       "asm",      "auto",     "bool",     "break",    "case",
    "catch",   "char",    "class",     "compl",    "const",    "continue", "decltype", "default",
    "delete",  "do",      "double",    "else",     "enum",     "explicit", "export",   "extern",
    "false",   "float",   "for",       "friend",   "goto",     "if",       "inline",   "int",
    "long",    "mutable", "namespace", "new",      "noexcept", "not",      "nullptr",  "operator",
    "or",      "private", "protected", "public",   "register", "requires", "restrict", "return",
    "short",   "signed",  "sizeof",    "static",   "struct",   "switch",   "template", "this",
    "throw",   "true",    "try",       "typedef",  "typeid",   "typename", "union",    "unsigned",
    "using",   "virtual", "void",      "volatile", "while",    "xor",      "linux",    "unix"};

bool is_letter(char ch) {
  return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

bool is_digit(char ch) {
  return ch >= '0' && ch <= '9';
}

bool is_keyword(const std::string& name) {
  return std::ranges::find(kKeywords, std::string_view(name)) != std::end(kKeywords);
}

}  // namespace

bool is_usable(const std::string& name) {
  return !name.empty() && is_letter(name[0]) && !is_keyword(name) &&
         std::ranges::all_of(name,
                             [](char ch) { return is_letter(ch) || is_digit(ch) || ch == '_'; });
}

std::string with_name(const char* text, const std::string& name) {
  std::string out;
  for (const char* p = text; *p; ++p)
    if (*p == '$')
      out += name;
    else
      out += *p;
  return out;
}

std::string Members::add(const std::string& name) {
  std::string member;
  for (const char ch : name) {
    const bool is_kept = is_letter(ch) || is_digit(ch);
    if (!is_kept && (member.empty() || member.back() == '_')) continue;
    member += is_kept ? ch : '_';
  }
  while (!member.empty() && member.back() == '_') member.pop_back();
  if (member.empty() || !is_letter(member[0])) member.insert(0, "x");
  if (is_keyword(member)) member += '_';
  std::string unique = member;
  for (int n = 2; !taken_.insert(unique).second; ++n) unique = cat(member, "_", n);
  return unique;
}

}  // namespace tiny::aot
