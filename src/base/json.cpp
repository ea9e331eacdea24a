#include "base/json.h"

#include <cmath>
#include <cstdio>

#include "base/text.h"

namespace tiny {

void JsonWriter::separate() {
  if (!first_ && !after_key_) out_ += ',';
  first_ = false;
  after_key_ = false;
}

void JsonWriter::quote(std::string_view value) {
  out_ += '"';
  for (size_t i = 0; i < value.size();) {
    const char c = value[i];
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
      ++i;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out_ += escape;
      ++i;
    } else if (const size_t n = utf8_bytes(value.substr(i)); n > 0) {
      out_ += value.substr(i, n);
      i += n;
    } else {
      out_ += "\xEF\xBF\xBD";
      ++i;
    }
  }
  out_ += '"';
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_ += bracket;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_ += bracket;
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  quote(name);
  out_ += ':';
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::text(std::string_view value) {
  separate();
  quote(value);
  return *this;
}

JsonWriter& JsonWriter::integer(int64_t value) {
  separate();
  out_ += std::to_string(value);
  return *this;
}

JsonWriter& JsonWriter::real(double value) {
  if (std::isnan(value)) return text("nan");
  if (std::isinf(value)) return text(value > 0 ? "inf" : "-inf");
  separate();
  out_ += shortest(value);
  return *this;
}

JsonWriter& JsonWriter::boolean(bool value) {
  separate();
  out_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_ += json;
  return *this;
}

JsonWriter& JsonWriter::null() {
  separate();
  out_ += "null";
  return *this;
}

}  // namespace tiny
