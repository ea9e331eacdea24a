#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

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

std::string short_text(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit < 3; ++unit) bytes /= 1024;
  return fixed(bytes, unit ? 1 : 0) + " " + kUnits[unit];
}

size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // the first byte of a character
  }));
}

std::string left(std::string text, size_t width) {
  if (const size_t own = width_of(text); own < width) text.append(width - own, ' ');
  return text;
}

std::string right(std::string text, size_t width) {
  if (const size_t own = width_of(text); own < width) text.insert(0, width - own, ' ');
  return text;
}

std::string table(const std::vector<std::vector<std::string>>& rows, const std::string& indent) {
  std::vector<size_t> widths;
  std::vector<bool> is_number;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    is_number.resize(widths.size());
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  // What the last row holds says what the column holds: the first may be a heading.
  for (size_t i = 0; !rows.empty() && i < rows.back().size(); ++i)
    is_number[i] =
        std::string_view("-+.0123456789").find(rows.back()[i][0]) != std::string_view::npos;
  std::string text;
  for (const auto& row : rows) {
    std::string line = indent;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += is_number[i] ? right(row[i], widths[i]) : left(row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace tiny::cli
