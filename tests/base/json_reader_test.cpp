#include "base/json_reader.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/failure.h"

namespace tiny {
namespace {

std::string string_in(const std::string& json) {
  JsonReader reader(json);
  std::string text = reader.text();
  reader.end();
  return text;
}

int64_t number_in(const std::string& json) {
  JsonReader reader(json);
  const int64_t number = reader.natural();
  reader.end();
  return number;
}

// An object of lists of numbers, as "key:1,2;".
std::string lists_in(const std::string& json) {
  JsonReader reader(json);
  std::string out;
  reader.begin_object();
  for (std::string key; reader.next_key(key);) {
    out += key + ":";
    for (reader.begin_array(); reader.next_item();) out += cat(reader.natural(), ",");
    out += ";";
  }
  reader.end();
  return out;
}

// A number as "3 whole" or "2.5".
std::string any_number_in(const std::string& json) {
  JsonReader reader(json);
  const JsonReader::Number number = reader.number();
  reader.end();
  return number.is_integer ? cat(number.integer, " whole") : cat(number.real);
}

template <class Read>
void expect_refused(Read read, const std::string& json, std::string_view message) {
  SCOPED_TRACE(json);
  testing::expect_failure(testing::failure_of([&] { read(json); }), Status::InvalidModel,
                          {"byte ", message});
}

TEST(JsonReader, StringsHaveTheirEscapesResolved) {
  EXPECT_EQ(string_in(R"("")"), "");
  EXPECT_EQ(string_in(R"( "a\"\\\/\b\f\n\r\tz" )"), "a\"\\/\b\f\n\r\tz");
  EXPECT_EQ(string_in(R"("\u0041\u00e9\u20AC\ud83d\ude42")"),
            "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x99\x82");
  EXPECT_EQ(string_in(R"("\u0000")"), std::string(1, '\0'));
  EXPECT_EQ(string_in("\"\xE2\x82\xAC\""), "\xE2\x82\xAC");
}

TEST(JsonReader, BadStringsAreRefusedWithTheirPlace) {
  expect_refused(string_in, "", "a string is due");
  expect_refused(string_in, "1", "a string is due");
  expect_refused(string_in, "\"ab", "a string does not end");
  expect_refused(string_in, "\"ab\\", "an unknown escape");
  expect_refused(string_in, R"("\x41")", "an unknown escape");
  expect_refused(string_in, R"("\u12")", "four hexadecimal digits");
  expect_refused(string_in, R"("\u-123")", "four hexadecimal digits");
  for (const char* half : {R"("\ud83d")", R"("\ude42")", R"("\ud83dx")", R"("\ud83d\u0041")"})
    expect_refused(string_in, half, "half a surrogate pair");
  expect_refused(string_in, "\"a\nb\"", "a control character");
  expect_refused(string_in, std::string("\"\0\"", 3), "a control character");
  expect_refused(string_in, "\"\xFF\"", "not UTF-8");
  expect_refused(string_in, "\"\xED\xA0\x80\"", "not UTF-8");
  expect_refused(string_in, "\"a\"b", "byte 3: text behind the value");
}

TEST(JsonReader, NumbersAreDigitsAlone) {
  EXPECT_EQ(number_in("0"), 0);
  EXPECT_EQ(number_in(" 9223372036854775807\n"), INT64_MAX);
  expect_refused(number_in, "9223372036854775808", "beyond 63 bits");
  expect_refused(number_in, "01", "a leading zero");
  for (const char* bad : {"", "-1", "+1", "a", "\"1\"", ".5", "true"})
    expect_refused(number_in, bad, "an integer that is not negative is due");
  for (const char* bad : {"1.0", "1e3", "1E3"})
    expect_refused(number_in, bad, "not a fraction or a power");
  expect_refused(number_in, "1x", "text behind the value");
}

TEST(JsonReader, ObjectsAndListsNest) {
  EXPECT_EQ(lists_in("{}"), "");
  EXPECT_EQ(lists_in(R"({"a":[]})"), "a:;");
  EXPECT_EQ(lists_in(" { \"a\" : [ 1 , 2 ] ,\n\"b\":[3]}\t"), "a:1,2,;b:3,;");
}

TEST(JsonReader, WhatIsNotWellFormedIsRefused) {
  expect_refused(lists_in, "[]", "an object is due");
  expect_refused(lists_in, R"({"a":{}})", "a list is due");
  expect_refused(lists_in, R"({"a" [1]})", "a colon is due");
  expect_refused(lists_in, R"({,"a":[1]})", "a string is due");
  expect_refused(lists_in, R"({"a":[1],})", "a string is due");
  expect_refused(lists_in, R"({"a":[1]"b":[2]})", "a comma or the object's end is due");
  expect_refused(lists_in, R"({"a":[1,]})", "an integer that is not negative is due");
  expect_refused(lists_in, R"({"a":[1 2]})", "a comma or the list's end is due");
  expect_refused(lists_in, R"({"a":[1])", "a comma or the object's end is due");
  expect_refused(lists_in, R"({a:[1]})", "a string is due");
  expect_refused(lists_in, R"({"a":[1]}})", "text behind the value");
}

TEST(JsonReader, NumbersOfBothKinds) {
  EXPECT_EQ(any_number_in("-12"), "-12 whole");
  EXPECT_EQ(any_number_in("-9223372036854775808"), "-9223372036854775808 whole");
  EXPECT_EQ(any_number_in(" true"), "1 whole");
  EXPECT_EQ(any_number_in("false "), "0 whole");
  EXPECT_EQ(any_number_in("2.5"), cat(2.5));
  EXPECT_EQ(any_number_in("-25e-1"), cat(-2.5));
  for (const char* wrong : {"", "-", "+1", ".5", "1.", "1.e3", "01", "nan", "inf", "1e999",
                            "9223372036854775808", "[1]", "null"})
    expect_refused(any_number_in, wrong, "byte");
}

TEST(JsonReader, WhatComesNextIsTold) {
  using Kind = JsonReader::Kind;
  EXPECT_EQ(JsonReader(" {").kind(), Kind::Object);
  EXPECT_EQ(JsonReader("[").kind(), Kind::Array);
  EXPECT_EQ(JsonReader("\"").kind(), Kind::Text);
  EXPECT_EQ(JsonReader("-1").kind(), Kind::Number);
  JsonReader null(" null ");
  EXPECT_TRUE(null.skip_null());
  EXPECT_FALSE(null.skip_null());
  null.end();
  EXPECT_EQ(not_finite("-inf"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(not_finite("infinity"), std::nullopt);
}

}  // namespace
}  // namespace tiny
