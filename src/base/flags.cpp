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
            flag.number ? "an integer, not a text" : "a text, not an integer");
    known.emplace_back(flag.key);
  }
  throw_error(Status::InvalidArgument, "unknown option \"", key, "\"", did_you_mean(key, known),
              "; known: ", join(known, ", "));
}

const FlagInfo& info_of(std::string_view key, bool number) {
  for (const FlagInfo& flag : kFlags)
    if (key == flag.key && number == (flag.number != nullptr)) return flag;
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

// What is wrong with the text of a setting, which else is taken: empty where it is right.
std::string assign(Flags& flags, const FlagInfo& flag, std::string_view text) {
  if (flag.text) {
    flags.*flag.text = text;
    return {};
  }
  int64_t value = 0;
  if (!parse_int(text, &value)) return "is not an integer";
  if (!is_in_range(flag, value)) return cat("is not ", range_text(flag));
  flags.*flag.number = value;
  return {};
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
  for (const FlagInfo& flag : kFlags) assign(flags, flag, flag.default_text);
  return flags;
}

Flags Flags::from_environment(void (*warning)(const std::string& line)) {
  Flags flags = defaults();
  std::vector<std::string> known;
  for (const FlagInfo& flag : kFlags) {
    known.push_back(variable_name(flag.key));
    const char* text = std::getenv(known.back().c_str());
    if (!text || !*text) continue;
    const std::string wrong = assign(flags, flag, text);
    if (!wrong.empty() && warning) warning(cat(known.back(), "=", text, " ", wrong, "; ignored"));
  }
  for (char** variable = environ; warning && variable && *variable; ++variable) {
    const std::string_view entry = *variable;
    if (entry.substr(0, 5) != "TINY_") continue;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (std::find(known.begin(), known.end(), name) == known.end())
      warning(cat("unknown environment variable ", name, did_you_mean(name, known), "; ignored"));
  }
  return flags;
}

void Flags::set_int(std::string_view key, int64_t value) {
  const FlagInfo& flag = info_of(key, true);
  require(is_in_range(flag, value), Status::InvalidArgument, "option \"", key, "\" wants ",
          range_text(flag), "; got ", value);
  this->*flag.number = value;
}

void Flags::set_text(std::string_view key, std::string_view value) {
  this->*info_of(key, false).text = value;
}

}  // namespace tiny
