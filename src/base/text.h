// Text for messages: `cat("dim ", 3, " of ", shape)` concatenates strings, characters and numbers.
#pragma once

#include <bit>
#include <concepts>
#include <cstdarg>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tiny {

// A text is told by its parts, borrowed: their kinds as the digits of one number, four bits each
// and the first part's lowest, and a word for each part.  So what makes the text is compiled once,
// and a message costs its call little more than two instructions a part.
enum class TextKind : uint64_t {
  None,
  Chars,  // to a zero
  String,
  View,
  Character,
  Signed,
  Unsigned,
  Real,
  Object
};
constexpr size_t kTextPartsMax = 16;

// A part that `to_string` knows: written only if the text is made, which a check that holds does
// not.
struct TextObject {
  const void* object;
  void (*append)(std::string& out, const void* object);
};

template <class T>
concept HasText = std::is_class_v<T> && requires(const T& value) {
  { to_string(value) } -> std::same_as<std::string>;
};

template <class T>
constexpr TextKind text_kind() {
  if constexpr (HasText<T>)
    return TextKind::Object;
  else if constexpr (std::convertible_to<const T&, const char*>)
    return TextKind::Chars;
  else if constexpr (std::same_as<T, std::string>)
    return TextKind::String;
  else if constexpr (std::same_as<T, std::string_view>)
    return TextKind::View;
  else if constexpr (std::same_as<T, char>)
    return TextKind::Character;
  else if constexpr (std::signed_integral<T>)
    return TextKind::Signed;
  else if constexpr (std::unsigned_integral<T>)
    return TextKind::Unsigned;
  else if constexpr (std::floating_point<T>)
    return TextKind::Real;
}

template <class... Parts>
constexpr uint64_t text_kinds() {
  static_assert(sizeof...(Parts) <= kTextPartsMax, "a text of so many parts is several");
  uint64_t kinds = 0;
  int shift = -4;
  ((kinds |= static_cast<uint64_t>(text_kind<Parts>()) << (shift += 4)), ...);
  return kinds;
}

template <class T>
auto text_part(const T& value) {
  constexpr TextKind kind = text_kind<T>();
  if constexpr (kind == TextKind::Object)
    return TextObject{&value, [](std::string& out, const void* object) {
                        out += to_string(*static_cast<const T*>(object));
                      }};
  else if constexpr (kind == TextKind::Chars)
    return uint64_t{reinterpret_cast<uintptr_t>(static_cast<const char*>(value))};
  else if constexpr (kind == TextKind::String || kind == TextKind::View)
    return uint64_t{reinterpret_cast<uintptr_t>(&value)};
  else if constexpr (kind == TextKind::Real)
    return std::bit_cast<uint64_t>(static_cast<double>(value));
  else
    return static_cast<uint64_t>(value);
}
inline uint64_t text_word(uint64_t part) {
  return part;
}
inline uint64_t text_word(const TextObject& part) {
  return uint64_t{reinterpret_cast<uintptr_t>(&part)};
}

std::string text_of(uint64_t kinds, va_list words);
// Of words, which `cat` makes of parts.
std::string cat_words(uint64_t kinds, ...);  // NOLINT: any number

// The parts, one after the other: integers in decimal, bools as 0 and 1, floats with six digits,
// in every locale.
template <class... Parts>
std::string cat(const Parts&... parts) {
  return cat_words(text_kinds<Parts...>(), text_word(text_part(parts))...);
}

// "[2, 3, 4]", written only if the text is made; borrows the values.
struct ListText {
  const std::vector<int64_t>* values;
  operator std::string() const;  // NOLINT: it stands for its text
};
std::string to_string(const ListText& list);
inline ListText list_text(const std::vector<int64_t>& values) {
  return {&values};
}

// `items` joined by `separator`.
std::string join(const std::vector<std::string>& items, std::string_view separator);

// The shortest decimal that reads back as the finite `value`, like "0.1" and "1e+300", in every
// locale.
std::string shortest(double value);
std::string shortest(float value);

// The bytes of the UTF-8 character at the start of `text`, which is not empty; 0 if there is none.
size_t utf8_bytes(std::string_view text);
bool is_utf8(std::string_view text);

}  // namespace tiny
