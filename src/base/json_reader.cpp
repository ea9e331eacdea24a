#include "base/json_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/read_real.h"

namespace tiny {

namespace {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

void append_utf8(std::string& out, uint32_t code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace

void JsonReader::fail_in_words(uint64_t kinds, ...) const {
  va_list words;
  va_start(words, kinds);
  const std::string message = text_of(kinds, words);
  va_end(words);
  throw_error(Status::InvalidModel, "byte ", at_, ": ", message);
}

char JsonReader::peek() {
  at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
  return at_ < text_.size() ? text_[at_] : '\0';
}

void JsonReader::expect(char c, const char* what) {
  if (peek() != c) fail(what, " is due");
  ++at_;
}

void JsonReader::begin(char bracket) {
  expect(bracket, bracket == '{' ? "an object" : "a list");
  first_ = true;
}

bool JsonReader::next(char closing) {
  if (peek() == closing) {
    ++at_;
    first_ = false;
    return false;
  }
  if (!first_)
    expect(',', closing == '}' ? "a comma or the object's end" : "a comma or the list's end");
  first_ = false;
  return true;
}

bool JsonReader::next_key(std::string& key) {
  if (!next('}')) return false;
  key = text();
  expect(':', "a colon");
  return true;
}

uint32_t JsonReader::hex_digits() {
  uint32_t value = 0;
  const std::string_view digits = text_.substr(at_, 4);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || end != digits.data() + 4) fail("\\u needs four hexadecimal digits");
  at_ += 4;
  return value;
}

void JsonReader::append_escape(std::string& out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
  const char letter = at_ < text_.size() ? text_[at_] : '\0';
  const size_t known = kLetters.find(letter);
  if (known != std::string_view::npos) {
    out += kValues[known];
    ++at_;
    return;
  }
  if (letter != 'u') fail("an unknown escape");
  ++at_;
  uint32_t code = hex_digits();
  if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_, 2) == "\\u") {
    at_ += 2;
    const uint32_t low = hex_digits();
    if (low < 0xDC00 || low > 0xDFFF) fail("half a surrogate pair");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  if (code >= 0xD800 && code < 0xE000) fail("half a surrogate pair");
  append_utf8(out, code);
}

std::string JsonReader::text() {
  expect('"', "a string");
  std::string out;
  for (;;) {
    if (at_ == text_.size()) fail("a string does not end");
    const char c = text_[at_];
    if (c == '"') break;
    if (c == '\\') {
      ++at_;
      append_escape(out);
      continue;
    }
    if (static_cast<unsigned char>(c) < 0x20) fail("a control character in a string");
    const size_t n = utf8_bytes(text_.substr(at_));
    if (n == 0) fail("a string that is not UTF-8");
    out += text_.substr(at_, n);
    at_ += n;
  }
  ++at_;
  return out;
}

JsonReader::Kind JsonReader::kind() {
  switch (peek()) {
    case '{':
      return Kind::Object;
    case '[':
      return Kind::Array;
    case '"':
      return Kind::Text;
    default:
      return Kind::Number;
  }
}

bool JsonReader::skip_word(std::string_view word) {
  peek();
  if (text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

bool JsonReader::skip_null() {
  return skip_word("null");
}

JsonReader::Number JsonReader::number() {
  if (skip_word("true")) return {1, 1, true};
  if (skip_word("false")) return {0, 0, true};
  peek();
  const char* const begin = text_.data() + at_;
  const char* const last = text_.data() + text_.size();
  const char* const first = begin != last && *begin == '-' ? begin + 1 : begin;
  if (first == last || !is_digit(*first)) fail("a number is due");
  if (*first == '0' && first + 1 != last && is_digit(first[1]))
    fail("a number with a leading zero");
  Number out;
  const auto whole = std::from_chars(begin, last, out.integer);
  out.is_integer = whole.ptr == last || (*whole.ptr != '.' && (*whole.ptr | 0x20) != 'e');
  if (out.is_integer && whole.ec != std::errc()) fail("an integer beyond 64 bits");
  const char* end = whole.ptr;
  if (!out.is_integer && *end == '.') {
    ++end;
    if (end == last || !is_digit(*end)) fail("a fraction without digits");
  }
  const auto is_more = [](char c) {
    return is_digit(c) || c == '+' || c == '-' || (c | 0x20) == 'e';
  };
  while (end != last && is_more(*end)) ++end;
  const std::string digits(begin, end);
  const std::optional<double> real = read_real<double>(digits);
  if (!real || !std::isfinite(*real)) fail("a number that a double holds is due");
  out.real = *real;
  if (!out.is_integer) out.integer = 0;
  at_ += digits.size();
  return out;
}

int64_t JsonReader::natural() {
  const char first = peek();
  if (!is_digit(first)) fail("an integer that is not negative is due");
  int64_t value = 0;
  const char* begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (error != std::errc()) fail("an integer beyond 63 bits");
  const auto digits = static_cast<size_t>(end - begin);
  if (first == '0' && digits > 1) fail("an integer with a leading zero");
  at_ += digits;
  if (at_ < text_.size() && (text_[at_] == '.' || (text_[at_] | 0x20) == 'e'))
    fail("an integer is due, not a fraction or a power");
  return value;
}

std::optional<double> not_finite(std::string_view text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return kInfinity;
  if (text == "-inf") return -kInfinity;
  return std::nullopt;
}

void JsonReader::end() {
  peek();
  if (at_ != text_.size()) fail("text behind the value");
}

}  // namespace tiny
