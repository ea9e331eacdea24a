// A JSON value: what the commands print, and what the library's reports are read into.
//   Objects keep the order of their keys.  Numbers keep their text, so that what was read is
//   written as it was.  A float that is not finite is the string "nan", "inf" or "-inf".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tiny::cli {

class Json {
 public:
  enum class Kind { Null, Bool, Number, String, Array, Object };

  Json() = default;
  Json(bool value) : kind_(Kind::Bool), text_(value ? "true" : "false") {}
  Json(int value) : kind_(Kind::Number), text_(std::to_string(value)) {}
  Json(int64_t value) : kind_(Kind::Number), text_(std::to_string(value)) {}
  Json(uint64_t value) : kind_(Kind::Number), text_(std::to_string(value)) {}
  Json(double value);
  Json(float value);  // the shortest text that gives the same float
  Json(std::string value) : kind_(Kind::String), text_(std::move(value)) {}
  Json(std::string_view value) : Json(std::string(value)) {}
  Json(const char* value) : Json(std::string(value)) {}
  static Json array();
  static Json object();
  static Json integers(const std::vector<int64_t>& values);

  // The value of a text, or nothing if it is not JSON or is nested more than 64 deep.
  static std::optional<Json> parse(std::string_view text);

  Kind kind() const { return kind_; }
  bool truth() const { return kind_ == Kind::Bool && text_ == "true"; }
  // The number; 0 for any other kind.
  double number() const;
  // The characters of a string, the digits of a number; "" for null and containers.
  const std::string& text() const { return text_; }

  // Elements of an array, values of an object.
  const std::vector<Json>& items() const { return items_; }
  const std::vector<std::string>& keys() const { return keys_; }
  // The value of a key, or null if this is no object that has it.
  const Json* find(std::string_view key) const;

  // Adds to an object, or replaces what the key had.  Both return *this.
  Json& set(std::string_view key, Json value);
  Json& push(Json value);

  // One line without spaces.
  std::string dump() const;

 private:
  friend class JsonReader;
  void append_to(std::string& out) const;

  Kind kind_ = Kind::Null;
  std::string text_;
  std::vector<std::string> keys_;
  std::vector<Json> items_;
};

}  // namespace tiny::cli
