#include "base/flags.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/error.h"

extern char** environ;

namespace tiny {

namespace {

bool parse_int(std::string_view text, int64_t* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

std::string variable_name(std::string_view key) {
  std::string name = "TINY_";
  for (char c : key) name += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return name;
}

[[noreturn]] void unknown_key(std::string_view key, FlagKind kind) {
  std::vector<std::string> known;
  for (const FlagInfo& flag : kFlags)
    if (flag.kind == kind) known.emplace_back(flag.key);
  throw Error(Status::InvalidArgument, cat("unknown ", kind == FlagKind::Int ? "integer" : "text",
                                           " option \"", key, "\"; known: ", join(known, ", ")));
}

void assign(int64_t& to, std::string_view text, std::string_view name,
            void (*warning)(const std::string&)) {
  int64_t value = 0;
  if (parse_int(text, &value))
    to = value;
  else if (warning)
    warning(cat(name, "=", text, " is not an integer; ignored"));
}

void assign(std::string& to, std::string_view text, std::string_view,
            void (*)(const std::string&)) {
  to = text;
}

}  // namespace

void Log::tell(const std::string& text) const {
  if (write)
    write(user, text.c_str());
  else
    std::fputs(text.c_str(), stderr);
}

Flags Flags::from_environment(void (*warning)(const std::string& line)) {
  Flags flags;
#define FLAG(key, kind, default_text, meaning)                                    \
  assign(flags.key, default_text, #key, nullptr);                                 \
  if (const char* text = std::getenv(variable_name(#key).c_str()); text && *text) \
    assign(flags.key, text, variable_name(#key), warning);
#include "base/flags.def"
  for (char** variable = environ; warning && variable && *variable; ++variable) {
    const std::string_view entry = *variable;
    if (entry.substr(0, 5) != "TINY_") continue;
    const std::string_view name = entry.substr(0, entry.find('='));
    bool known = false;
    for (const FlagInfo& flag : kFlags) known |= variable_name(flag.key) == name;
    if (!known) warning(cat("unknown environment variable ", name, "; ignored"));
  }
  return flags;
}

void Flags::set_int(std::string_view key, int64_t value) {
  const auto set = [&](auto& to) {
    if constexpr (std::is_same_v<std::decay_t<decltype(to)>, int64_t>) to = value;
  };
#define FLAG(name, kind, default_text, meaning) \
  if (key == #name && FlagKind::kind == FlagKind::Int) return set(name);
#include "base/flags.def"
  unknown_key(key, FlagKind::Int);
}

void Flags::set_text(std::string_view key, std::string_view value) {
  const auto set = [&](auto& to) {
    if constexpr (std::is_same_v<std::decay_t<decltype(to)>, std::string>) to = value;
  };
#define FLAG(name, kind, default_text, meaning) \
  if (key == #name && FlagKind::kind == FlagKind::Text) return set(name);
#include "base/flags.def"
  unknown_key(key, FlagKind::Text);
}

}  // namespace tiny
