// Reads JSON text strictly (RFC 8259), one value after the other, as its caller asks for them.
// Nothing is kept and nothing recurs, so the caller's own nesting is the deepest that is read; what
// is not the value that was asked for is Error{InvalidModel} with its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"

namespace tiny {

class JsonReader {
 public:
  // The text is borrowed.
  explicit JsonReader(std::string_view text) : text_(text) {}

  // An object: begin_object(), then a key and its value for as long as next_key() is true.
  void begin_object() { begin('{'); }
  bool next_key(std::string& key);
  // A list: begin_array(), then a value for as long as next_item() is true.
  void begin_array() { begin('['); }
  bool next_item() { return next(']'); }

  // What the next value begins as; a number for whatever is none of the others.
  enum class Kind : uint8_t { Object, Array, Text, Number };
  Kind kind();
  // A number; true and false are 1 and 0.  An integer (without fraction and power) is exact within
  // 64 bits, and else Error.
  struct Number {
    double real = 0;
    int64_t integer = 0;
    bool is_integer = false;
  };
  Number number();
  // Passes over a null; false if something else is next.
  bool skip_null();

  // A string, its escapes resolved, as UTF-8.
  std::string text();
  // An integer from 0 to 2^63 - 1, written with digits alone.
  int64_t natural();
  // Nothing but white space is left.
  void end();

  // Error{InvalidModel}: "byte 17: " and the parts.
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    fail_in_words(text_kinds<Parts...>(), text_word(text_part(parts))...);
  }

 private:
  [[noreturn]] void fail_in_words(uint64_t kinds, ...) const;  // NOLINT: as cat
  // The next character that is no white space; NUL at the end.
  char peek();
  void expect(char c, const char* what);
  void begin(char bracket);
  bool next(char closing);
  bool skip_word(std::string_view word);
  void append_escape(std::string& out);
  uint32_t hex_digits();

  std::string_view text_;
  size_t at_ = 0;
  bool first_ = false;  // of the innermost object or list nothing was read yet
};

// What JsonWriter writes for a float that is no JSON number: "nan", "inf", "-inf".
std::optional<double> not_finite(std::string_view text);

}  // namespace tiny
