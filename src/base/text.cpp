#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace tiny {

namespace {

// `digits` of a number as printf writes it, with a point in the place of the locale's.
void append_number(const char* digits, std::string& out) {
  for (bool in_point = false; *digits; ++digits) {
    const bool plain = (*digits >= '0' && *digits <= '9') || (*digits >= 'a' && *digits <= 'z') ||
                       *digits == '-' || *digits == '+';
    if (plain)
      out += *digits;
    else if (!in_point)
      out += '.';
    in_point = !plain;
  }
}

}  // namespace

std::string text_of(uint64_t kinds, va_list words) {
  std::string out;
  for (; kinds != 0; kinds >>= 4) {
    const auto word = va_arg(words, uint64_t);
    const auto* const place = reinterpret_cast<const void*>(static_cast<uintptr_t>(word));
    char digits[32];
    switch (static_cast<TextKind>(kinds & 0xF)) {
      case TextKind::None:
        break;
      case TextKind::Chars:
        out += static_cast<const char*>(place);
        break;
      case TextKind::String:
        out += *static_cast<const std::string*>(place);
        break;
      case TextKind::View:
        out += *static_cast<const std::string_view*>(place);
        break;
      case TextKind::Character:
        out += static_cast<char>(word);
        break;
      case TextKind::Signed:
        out.append(digits, std::to_chars(digits, std::end(digits), static_cast<int64_t>(word)).ptr);
        break;
      case TextKind::Unsigned:
        out.append(digits, std::to_chars(digits, std::end(digits), word).ptr);
        break;
      case TextKind::Real:
        std::snprintf(digits, sizeof digits, "%g", std::bit_cast<double>(word));
        append_number(digits, out);
        break;
      case TextKind::Object: {
        const auto& part = *static_cast<const TextObject*>(place);
        part.append(out, part.object);
        break;
      }
    }
  }
  return out;
}

std::string cat_words(uint64_t kinds, ...) {
  va_list words;
  va_start(words, kinds);
  std::string out = text_of(kinds, words);
  va_end(words);
  return out;
}

std::string join(const std::vector<std::string>& items, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i) out += separator;
    out += items[i];
  }
  return out;
}

std::string to_string(const ListText& list) {
  std::vector<std::string> items;
  items.reserve(list.values->size());
  for (int64_t v : *list.values) items.push_back(std::to_string(v));
  return cat("[", join(items, ", "), "]");
}

ListText::operator std::string() const {
  return to_string(*this);
}

namespace {

// What printf makes of a value below 1e22 in the form 'f', or of any in the form 'e'.
std::array<char, 32> printed(int behind_point, char form, double value) {
  const char pattern[] = {'%', '.', '*', form, 0};
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), pattern, behind_point, value);
  return text;
}

// `text` is what printf("%.*e") makes of `value`, in any locale: once more as "1.25e-07" or, if
// that is no longer, without an exponent, a whole number then with all its digits.
std::string without_locale(const char* text, double value) {
  std::string digits, out;
  if (*text == '-') out += *text++;
  for (; *text && *text != 'e'; ++text)
    if (*text >= '0' && *text <= '9') digits += *text;
  digits.erase(std::max<size_t>(1, digits.find_last_not_of('0') + 1));
  const int64_t power = std::atoi(text + 1);
  const auto n = static_cast<int64_t>(digits.size());
  std::string scientific = digits.substr(0, 1);
  if (n > 1) scientific += cat(".", digits.substr(1));
  scientific += cat(power < 0 ? "e-" : "e+", std::abs(power) < 10 ? "0" : "", std::abs(power));
  std::string fixed;
  if (power > 21 || power < -21)
    return out + scientific;
  else if (power < 0)
    fixed = cat("0.", std::string(static_cast<size_t>(-power - 1), '0'), digits);
  else if (n <= power + 1)
    fixed = printed(0, 'f', std::fabs(value)).data();
  else
    fixed = cat(digits.substr(0, static_cast<size_t>(power + 1)), ".",
                digits.substr(static_cast<size_t>(power + 1)));
  return out + (fixed.size() <= scientific.size() ? fixed : scientific);
}

// A decimal of digits10 digits stays what it is on the way through a normal F, so where that many
// read back as the value, the shortest are they without their zeros; max_digits10 always do.
template <class F>
std::string shortest_of(F value, F (*read)(const char*, char**)) {
  using Limits = std::numeric_limits<F>;
  int behind_point = std::isnormal(value) ? Limits::digits10 - 1 : 0;
  for (;; ++behind_point) {
    const auto text = printed(behind_point, 'e', static_cast<double>(value));
    if (behind_point + 1 == Limits::max_digits10 || read(text.data(), nullptr) == value)
      return without_locale(text.data(), static_cast<double>(value));
  }
}

}  // namespace

std::string shortest(double value) {
  return shortest_of(value, std::strtod);
}

std::string shortest(float value) {
  return shortest_of(value, std::strtof);
}

size_t utf8_bytes(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = at(0);
  const size_t n = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead >= 0x80 && (lead < 0xC2 || lead > 0xF4)) return 0;
  if (text.size() < n) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((at(i) & 0xC0) != 0x80) return 0;
  // Overlong forms, surrogates and what lies beyond U+10FFFF.
  if (n > 1) {
    const unsigned char second = at(1);
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second >= 0xA0) ||
        (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second >= 0x90))
      return 0;
  }
  return n;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t n = utf8_bytes(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

}  // namespace tiny
