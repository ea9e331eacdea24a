#include "base/text.h"

#include <gtest/gtest.h>

#include <charconv>
#include <clocale>
#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"

namespace tiny {
namespace {

template <class F>
std::string standard(F value) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

template <class F>
std::vector<F> numbers() {
  using Limits = std::numeric_limits<F>;
  std::vector<F> all = {0,
                        -F{0},
                        1,
                        -1,
                        F(0.1),
                        F(1) / 3,
                        100000,
                        123456,
                        1000000,
                        F(1e20),
                        F(1e21),
                        F(1e-4),
                        F(1e-5),
                        F(1.5e-7),
                        F(2.5),
                        -F(7.5),
                        F(1e22),
                        Limits::max(),
                        Limits::min(),
                        Limits::denorm_min(),
                        Limits::epsilon(),
                        F(16777216),
                        F(123456792),
                        F(99999995),
                        F(9007199254740993),
                        F(1152921504606846976)};
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    const double digits = std::ldexp(static_cast<double>(random() >> 11), -53);
    all.push_back(static_cast<F>(digits * std::pow(10.0, static_cast<double>(random() % 60) - 30)));
    all.push_back(static_cast<F>(static_cast<int64_t>(random() % 200000) - 100000) / 100);
  }
  return all;
}

template <class F>
void expect_shortest() {
  for (const F value : numbers<F>()) {
    const std::string text = shortest(value);
    F back = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), back);
    EXPECT_TRUE(error == std::errc() && end == text.data() + text.size()) << text;
    EXPECT_EQ(back, value) << text;
    EXPECT_EQ(std::signbit(back), std::signbit(value)) << text;
    EXPECT_EQ(text, standard(value));
  }
}

struct Counted {
  mutable int written = 0;
};
std::string to_string(const Counted& counted) {
  ++counted.written;
  return "counted";
}

TEST(Text, WhatACheckWouldSayIsNotWrittenWhereItHolds) {
  const Counted counted;
  require(true, Status::Shape, "a thing ", counted);
  EXPECT_EQ(counted.written, 0);
  EXPECT_THROW(require(false, Status::Shape, "a thing ", counted), Error);
  EXPECT_EQ(counted.written, 1);
  EXPECT_EQ(cat("a ", counted, " thing"), "a counted thing");
}

TEST(Text, ANumberIsTheShortestThatReadsBackAsIt) {
  expect_shortest<double>();
  expect_shortest<float>();
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(0.1f), "0.1");
  EXPECT_EQ(shortest(-1.25e-300), "-1.25e-300");
  EXPECT_EQ(shortest(12345.5), "12345.5");
  EXPECT_EQ(shortest(1e300), "1e+300");
}

TEST(Text, ANumberIsTheSameInEveryLocale) {
  for (const char* locale : {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"}) {
    if (!std::setlocale(LC_NUMERIC, locale)) continue;
    EXPECT_EQ(shortest(0.5), "0.5");
    EXPECT_EQ(shortest(1234.75f), "1234.75");
    EXPECT_EQ(cat(-1234.75, " ", 2.5e-7f), "-1234.75 2.5e-07");
  }
  std::setlocale(LC_NUMERIC, "C");
}

TEST(Text, Utf8IsTakenAndNothingElse) {
  for (const char* good :
       {"", "a", "h\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x99\x82", "\xEF\xBF\xBD"})
    EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad : {"\x80", "\xC0\xAF", "\xC3", "a\xE2\x82", "\xED\xA0\x80",
                          "\xF5\x80\x80\x80", "\xFF", "\xE0\x9F\xBF", "\xF4\x90\x80\x80"})
    EXPECT_FALSE(is_utf8(bad)) << bad;
}

}  // namespace
}  // namespace tiny
