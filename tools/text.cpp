#include <array>
#include <cstdio>

#include "commands.h"

namespace tiny::cli {

Json json_head(const std::string& command, const std::optional<Failure>& failure) {
  Json head = Json::object();
  head.set("schema", 1).set("command", command).set("ok", !failure.has_value());
  head.set("tiny", tiny_version()).set("status", failure ? failure->status : "OK");
  if (!failure) return head;
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  Json error = Json::object();
  error.set("status", failure->status).set("message", failure->message);
  error.set("call", or_null(failure->call)).set("node", or_null(failure->node));
  error.set("file", or_null(failure->file));
  return head.set("error", error);
}

Failure mismatch(std::string message) {
  return Failure(Exit::Mismatch, "MISMATCH", std::move(message));
}

std::string fixed(double value, int digits) {
  std::array<char, 400> text;
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit < 3; ++unit) bytes /= 1024;
  return fixed(bytes, unit ? 1 : 0) + " " + kUnits[unit];
}

std::string left(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string right(std::string text, size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

}  // namespace tiny::cli
