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

// One part of a text, borrowed: a call passes a short array of them, two words each, so that what
// makes the text is compiled once and not for every message.
class TextPart {
 public:
  TextPart(const char* text) : append_(append_chars) { value_.chars = text; }  // NOLINT: silently
  TextPart(const std::string& text) : TextPart(append_string, &text) {}        // NOLINT
  TextPart(const std::string_view& text) : TextPart(append_view, &text) {}     // NOLINT
  TextPart(char c) : append_(append_character) { value_.integer = c; }         // NOLINT
  template <std::signed_integral T>
  TextPart(T value) : append_(append_signed) {  // NOLINT
    value_.integer = value;
  }
  template <std::unsigned_integral T>
  TextPart(T value) : append_(append_unsigned) {  // NOLINT
    value_.integer = static_cast<int64_t>(value);
  }
  template <std::floating_point T>
  TextPart(T value) : append_(append_real) {  // NOLINT
    value_.real = static_cast<double>(value);
  }
  // What `to_string` knows: written only if the text is made, which a check that holds does not.
  template <class T>
    requires std::is_class_v<T> && requires(const T& value) {
      { to_string(value) } -> std::same_as<std::string>;
    }
  TextPart(const T& value)  // NOLINT
      : TextPart(
            [](std::string& out, Value of) { out += to_string(*static_cast<const T*>(of.object)); },
            &value) {}

  void append_to(std::string& out) const { append_(out, value_); }

 private:
  union Value {
    const char* chars;
    const void* object;
    int64_t integer;
    double real;
  };
  using Append = void (*)(std::string& out, Value value);

  TextPart(Append append, const void* object) : append_(append) { value_.object = object; }
  static void append_chars(std::string& out, Value value);
  static void append_string(std::string& out, Value value);
  static void append_view(std::string& out, Value value);
  static void append_character(std::string& out, Value value);
  static void append_signed(std::string& out, Value value);
  static void append_unsigned(std::string& out, Value value);
  static void append_real(std::string& out, Value value);

  Append append_;
  Value value_;
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
