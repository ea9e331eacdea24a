#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tiny {
namespace {

TEST(Json, CommasStandBetweenValuesOnly) {
  JsonWriter json;
  json.begin_object().key("a").begin_array().integer(1).integer(-2).end_array();
  json.key("b").begin_object().end_object().key("c").null().key("d").boolean(true).end_object();
  EXPECT_EQ(json.result(), R"({"a":[1,-2],"b":{},"c":null,"d":true})");
}

TEST(Json, NumbersThatAreNoneAreStrings) {
  JsonWriter json;
  json.begin_array().real(0.1).real(NAN).real(INFINITY).real(-INFINITY).real(1e300);
  json.integer(std::numeric_limits<int64_t>::min()).end_array();
  EXPECT_EQ(json.result(), R"([0.1,"nan","inf","-inf",1e+300,-9223372036854775808])");
}

TEST(Json, StringsAreEscapedAndValidUtf8) {
  JsonWriter json;
  json.begin_array().text("a\"b\\c\n").text("h\xC3\xA9").text("x\xFFy").text("\xC0\xAF");
  json.text("\xED\xA0\x80").text("\xF0\x9F\x99\x82").text("\xE2\x82").end_array();
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(json.result(), "[\"a\\\"b\\\\c\\u000a\",\"h\xC3\xA9\",\"x" + bad + "y\",\"" + bad +
                               bad + "\",\"" + bad + bad + bad + "\",\"\xF0\x9F\x99\x82\",\"" +
                               bad + bad + "\"]");
}

}  // namespace
}  // namespace tiny
