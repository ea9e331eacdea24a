// Writes JSON text: objects, arrays, strings, numbers; commas are put where they belong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tiny {

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  // The name of the next value of an object.
  JsonWriter& key(std::string_view name);

  JsonWriter& text(std::string_view value);  // bytes that are no UTF-8 become U+FFFD
  JsonWriter& integer(int64_t value);
  JsonWriter& real(double value);  // nan and the infinities as the strings "nan", "inf", "-inf"
  JsonWriter& boolean(bool value);
  JsonWriter& null();
  JsonWriter& raw(std::string_view json);  // a value that is JSON already

  // What was written so far.
  const std::string& result() const { return out_; }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();
  void quote(std::string_view value);

  std::string out_;
  bool first_ = true;       // of the innermost list
  bool after_key_ = false;  // the value of a key needs no comma
};

}  // namespace tiny
