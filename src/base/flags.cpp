#include "base/flags.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"

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

// What is wrong with a key: it is none, or of the other kind.
[[noreturn]] void refuse_key(std::string_view key) {
  std::vector<std::string> known;
  for (const FlagInfo& flag : kFlags) {
    require(key != flag.key, Status::InvalidArgument, "option \"", key, "\" is ",
            flag.kind == FlagKind::Int ? "an integer, not a text" : "a text, not an integer");
    known.emplace_back(flag.key);
  }
  throw Error(Status::InvalidArgument, cat("unknown option \"", key, "\"", did_you_mean(key, known),
                                           "; known: ", join(known, ", ")));
}

const FlagInfo& info_of(std::string_view key) {
  for (const FlagInfo& flag : kFlags)
    if (key == flag.key) return flag;
  refuse_key(key);
}

// "from 0 to 1024"
std::string range_text(const FlagInfo& flag) {
  return flag.most == kFlagAny ? cat("at least ", flag.least)
                               : cat("from ", flag.least, " to ", flag.most);
}

bool is_in_range(const FlagInfo& flag, int64_t value) {
  return value >= flag.least && value <= flag.most;
}

void assign(int64_t& to, std::string_view text, const FlagInfo& flag, std::string_view name,
            void (*warning)(const std::string&)) {
  int64_t value = 0;
  std::string wrong;
  if (!parse_int(text, &value))
    wrong = "is not an integer";
  else if (!is_in_range(flag, value))
    wrong = cat("is not ", range_text(flag));
  if (wrong.empty())
    to = value;
  else if (warning)
    warning(cat(name, "=", text, " ", wrong, "; ignored"));
}

void assign(std::string& to, std::string_view text, const FlagInfo&, std::string_view,
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

Flags Flags::defaults() {
  Flags flags;
#define FLAG(key, kind, default_text, least, most, meaning) \
  assign(flags.key, default_text, info_of(#key), #key, nullptr);
#include "base/flags.def"
  return flags;
}

Flags Flags::from_environment(void (*warning)(const std::string& line)) {
  Flags flags = defaults();
#define FLAG(key, kind, default_text, least, most, meaning)                       \
  if (const char* text = std::getenv(variable_name(#key).c_str()); text && *text) \
    assign(flags.key, text, info_of(#key), variable_name(#key), warning);
#include "base/flags.def"
  for (char** variable = environ; warning && variable && *variable; ++variable) {
    const std::string_view entry = *variable;
    if (entry.substr(0, 5) != "TINY_") continue;
    const std::string_view name = entry.substr(0, entry.find('='));
    std::vector<std::string> known;
    for (const FlagInfo& flag : kFlags) known.push_back(variable_name(flag.key));
    if (std::find(known.begin(), known.end(), name) == known.end())
      warning(cat("unknown environment variable ", name, did_you_mean(name, known), "; ignored"));
  }
  return flags;
}

void Flags::set_int(std::string_view key, int64_t value) {
  const auto set = [&](auto& to) {
    if constexpr (std::is_same_v<std::decay_t<decltype(to)>, int64_t>) {
      const FlagInfo& flag = info_of(key);
      require(is_in_range(flag, value), Status::InvalidArgument, "option \"", key, "\" wants ",
              range_text(flag), "; got ", value);
      to = value;
    }
  };
#define FLAG(name, kind, default_text, least, most, meaning) \
  if (key == #name && FlagKind::kind == FlagKind::Int) return set(name);
#include "base/flags.def"
  refuse_key(key);
}

void Flags::set_text(std::string_view key, std::string_view value) {
  const auto set = [&](auto& to) {
    if constexpr (std::is_same_v<std::decay_t<decltype(to)>, std::string>) to = value;
  };
#define FLAG(name, kind, default_text, least, most, meaning) \
  if (key == #name && FlagKind::kind == FlagKind::Text) return set(name);
#include "base/flags.def"
  refuse_key(key);
}

}  // namespace tiny
