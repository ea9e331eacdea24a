#include "json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace tiny::cli {
namespace {

constexpr int kDepthMax = 64;

// Shortest digits that round-trip, always recognisable as a float.
template <typename Float>
std::string float_text(Float value) {
  std::array<char, 64> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  std::string text(digits.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

const char* odd_text(double value) {
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

// The length of the well-formed UTF-8 sequence at the front, or 0.
size_t utf8_length(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = at(0);
  const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((at(i) & 0xC0) != 0x80) return 0;
  if ((lead == 0xE0 && at(1) < 0xA0) || (lead == 0xED && at(1) > 0x9F) ||
      (lead == 0xF0 && at(1) < 0x90) || (lead == 0xF4 && at(1) > 0x8F))
    return 0;
  return length;
}

void append_quoted(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const char c = text[0];
    size_t length = utf8_length(text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += "\\u00";
      out += kHex[(c >> 4) & 15];
      out += kHex[c & 15];
    } else if (length == 0) {
      out += "\\ufffd";  // a path may hold any bytes
      length = 1;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  out += '"';
}

void append_utf8(std::string& out, uint32_t code) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 63));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 63));
    put(0x80 | (code & 63));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 63));
    put(0x80 | (code >> 6 & 63));
    put(0x80 | (code & 63));
  }
}

}  // namespace

// Reads one value after the other; every function returns false where the text is no JSON.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : rest_(text) {}

  bool value(Json& out, int depth) {
    skip_space();
    if (rest_.empty() || depth > kDepthMax) return false;
    switch (rest_[0]) {
      case '{':
        return object(out, depth);
      case '[':
        return array(out, depth);
      case '"':
        out.kind_ = Json::Kind::String;
        return string(out.text_);
      case 't':
        return word("true", Json(true), out);
      case 'f':
        return word("false", Json(false), out);
      case 'n':
        return word("null", Json(), out);
      default:
        return number(out);
    }
  }

  bool at_end() {
    skip_space();
    return rest_.empty();
  }

 private:
  void skip_space() {
    const size_t first = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(first == std::string_view::npos ? rest_.size() : first);
  }

  bool take(char c) {
    skip_space();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool word(std::string_view spelled, Json meant, Json& out) {
    if (!rest_.starts_with(spelled)) return false;
    rest_.remove_prefix(spelled.size());
    out = std::move(meant);
    return true;
  }

  bool number(Json& out) {
    const size_t length = std::min(rest_.find_first_not_of("+-.0123456789eE"), rest_.size());
    double parsed;
    const auto end = std::from_chars(rest_.data(), rest_.data() + length, parsed);
    if (length == 0 || rest_[0] == '+' || end.ptr != rest_.data() + length) return false;
    out.kind_ = Json::Kind::Number;
    out.text_ = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return true;
  }

  bool hex4(uint32_t& out) {
    const auto end = rest_.data() + std::min<size_t>(4, rest_.size());
    const auto [at, error] = std::from_chars(rest_.data(), end, out, 16);
    if (error != std::errc() || at != rest_.data() + 4) return false;
    rest_.remove_prefix(4);
    return true;
  }

  bool escape(std::string& out) {
    if (rest_.empty()) return false;
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    const char letter = rest_[0];
    rest_.remove_prefix(1);
    if (const size_t i = kLetters.find(letter); i != std::string_view::npos) {
      out += kMeant[i];
      return true;
    }
    uint32_t code, low;
    if (letter != 'u' || !hex4(code)) return false;
    if (code >= 0xD800 && code < 0xDC00) {
      if (!rest_.starts_with("\\u")) return false;
      rest_.remove_prefix(2);
      if (!hex4(low) || low < 0xDC00 || low > 0xDFFF) return false;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(out, code);
    return true;
  }

  bool string(std::string& out) {
    rest_.remove_prefix(1);
    for (;;) {
      const size_t length = rest_.find_first_of("\"\\");
      if (length == std::string_view::npos) return false;
      out += rest_.substr(0, length);
      const bool ends = rest_[length] == '"';
      rest_.remove_prefix(length + 1);
      if (ends) return true;
      if (!escape(out)) return false;
    }
  }

  bool array(Json& out, int depth) {
    out.kind_ = Json::Kind::Array;
    take('[');
    if (take(']')) return true;
    do {
      if (!value(out.items_.emplace_back(), depth + 1)) return false;
    } while (take(','));
    return take(']');
  }

  bool object(Json& out, int depth) {
    out.kind_ = Json::Kind::Object;
    take('{');
    if (take('}')) return true;
    do {
      skip_space();
      if (rest_.empty() || rest_[0] != '"') return false;
      if (!string(out.keys_.emplace_back()) || !take(':')) return false;
      if (!value(out.items_.emplace_back(), depth + 1)) return false;
    } while (take(','));
    return take('}');
  }

  std::string_view rest_;
};

Json::Json(double value)
    : kind_(std::isfinite(value) ? Kind::Number : Kind::String),
      text_(std::isfinite(value) ? float_text(value) : odd_text(value)) {
}

Json::Json(float value)
    : kind_(std::isfinite(value) ? Kind::Number : Kind::String),
      text_(std::isfinite(value) ? float_text(value) : odd_text(value)) {
}

Json Json::array() {
  Json made;
  made.kind_ = Kind::Array;
  return made;
}

Json Json::object() {
  Json made;
  made.kind_ = Kind::Object;
  return made;
}

Json Json::integers(const std::vector<int64_t>& values) {
  Json made = array();
  for (const int64_t value : values) made.push(value);
  return made;
}

std::optional<Json> Json::parse(std::string_view text) {
  JsonReader reader(text);
  Json out;
  if (!reader.value(out, 0) || !reader.at_end()) return std::nullopt;
  return out;
}

double Json::number() const {
  return kind_ == Kind::Number ? std::strtod(text_.c_str(), nullptr) : 0;
}

const Json* Json::find(std::string_view key) const {
  for (size_t i = 0; i < keys_.size(); ++i)
    if (keys_[i] == key) return &items_[i];
  return nullptr;
}

Json& Json::set(std::string_view key, Json value) {
  kind_ = Kind::Object;
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] != key) continue;
    items_[i] = std::move(value);
    return *this;
  }
  keys_.emplace_back(key);
  items_.push_back(std::move(value));
  return *this;
}

Json& Json::push(Json value) {
  kind_ = Kind::Array;
  items_.push_back(std::move(value));
  return *this;
}

void Json::append_to(std::string& out) const {
  switch (kind_) {
    case Kind::Null:
      out += "null";
      return;
    case Kind::Bool:
    case Kind::Number:
      out += text_;
      return;
    case Kind::String:
      append_quoted(out, text_);
      return;
    case Kind::Array:
    case Kind::Object:
      break;
  }
  const bool object = kind_ == Kind::Object;
  out += object ? '{' : '[';
  for (size_t i = 0; i < items_.size(); ++i) {
    if (i > 0) out += ',';
    if (object) {
      append_quoted(out, keys_[i]);
      out += ':';
    }
    items_[i].append_to(out);
  }
  out += object ? '}' : ']';
}

std::string Json::dump() const {
  std::string out;
  append_to(out);
  return out;
}

}  // namespace tiny::cli
