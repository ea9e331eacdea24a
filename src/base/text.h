// Text for messages: `cat("dim ", 3, " of ", shape)` concatenates strings, characters and numbers.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tiny {

// One part of a text, borrowed: a call passes a short array of them, so that what makes the text
// is compiled once and not for every message.
class TextPart {
 public:
  TextPart(std::string_view text) : text_(text) {}       // NOLINT: parts are made silently
  TextPart(const char* text) : text_(text) {}            // NOLINT
  TextPart(const std::string& text) : text_(text) {}     // NOLINT
  TextPart(char c) : kind_(Kind::Character), int_(c) {}  // NOLINT
  template <std::signed_integral T>
  TextPart(T value) : kind_(Kind::Signed), int_(value) {}  // NOLINT
  template <std::unsigned_integral T>
  TextPart(T value) : kind_(Kind::Unsigned), int_(static_cast<int64_t>(value)) {}  // NOLINT
  template <std::floating_point T>
  TextPart(T value) : kind_(Kind::Float), float_(static_cast<double>(value)) {}  // NOLINT
  // What `to_string` knows: written only if the text is made, which a check that holds does not.
  template <class T>
    requires std::is_class_v<T> && requires(const T& value) {
      { to_string(value) } -> std::same_as<std::string>;
    }
  TextPart(const T& value)  // NOLINT
      : kind_(Kind::Object),
        object_(&value),
        write_([](const void* object) { return to_string(*static_cast<const T*>(object)); }) {}

  void append_to(std::string& out) const;

 private:
  enum class Kind : uint8_t { Text, Character, Signed, Unsigned, Float, Object };
  Kind kind_ = Kind::Text;
  std::string_view text_;
  int64_t int_ = 0;
  double float_ = 0;
  const void* object_ = nullptr;
  std::string (*write_)(const void*) = nullptr;
};

std::string cat_parts(std::initializer_list<TextPart> parts);

// The parts, one after the other: integers in decimal, bools as 0 and 1, floats with six digits,
// in every locale.
template <class... Parts>
std::string cat(const Parts&... parts) {
  return cat_parts({TextPart(parts)...});
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
