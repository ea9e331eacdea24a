// The parts of the command line that no run of it shows in full: JSON, element types, archives.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tools/array.h"
#include "tools/compare.h"
#include "tools/files.h"
#include "tools/inputs.h"
#include "tools/json.h"
#include "tools/npz.h"

namespace tiny::cli {
namespace {

std::string round_trip(const std::string& text) {
  const auto parsed = Json::parse(text);
  return parsed ? parsed->dump() : "no JSON";
}

TEST(Json, what_is_read_is_written_as_it_was) {
  for (const char* text :
       {"null", "true", "[]", "{}", "-0.5e-7", "12345678901234567890", "[1,[2,{\"a\":[]}],\"x\"]",
        "{\"b\":1,\"a\":{\"\":null}}", "\"tab \\u0009 quote \\\" line \\n\""})
    EXPECT_EQ(round_trip(text), text);
  EXPECT_EQ(round_trip(" { \"a\" : [ 1 , 2 ] } "), "{\"a\":[1,2]}");
}

TEST(Json, escapes_become_utf8) {
  EXPECT_EQ(Json::parse("\"\\u00e9\\ud83d\\ude00\\/\"")->text(), "\xC3\xA9\xF0\x9F\x98\x80/");
  EXPECT_EQ(Json("a\xFF\xC3\xA9").dump(), "\"a\\ufffd\xC3\xA9\"");
  EXPECT_EQ(Json("\xED\xA0\x80").dump(), "\"\\ufffd\\ufffd\\ufffd\"");  // a surrogate
}

TEST(Json, malformed_texts_are_refused) {
  for (const char* text : {"", "[", "[1", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "\"", "\"\\u12\"",
                           "\"\\ud800\"", "tru", "+1", "1e", "--1", "[1] 2", "\"\\q\"", "nan"})
    EXPECT_EQ(round_trip(text), "no JSON") << text;
  EXPECT_TRUE(Json::parse(std::string(60, '[') + std::string(60, ']')));
  EXPECT_FALSE(Json::parse(std::string(100000, '[')));
}

TEST(Json, floats_are_recognisable_and_shortest) {
  EXPECT_EQ(Json(3.0).dump(), "3.0");
  EXPECT_EQ(Json(0.1f).dump(), "0.1");
  EXPECT_EQ(Json(1e300).dump(), "1e+300");
  EXPECT_EQ(Json(std::nan("")).dump(), "\"nan\"");
  EXPECT_EQ(Json(-INFINITY).dump(), "\"-inf\"");
  EXPECT_EQ(Json(uint64_t{18446744073709551615u}).dump(), "18446744073709551615");
}

TEST(Array, halves_round_to_nearest_even) {
  Array array = zeros("x", TINY_FLOAT16, {1});
  const auto stored = [&](double value) {
    array.put(0, value);
    return array.at(0);
  };
  for (const double exact : {0.0, 1.0, -2.5, 65504.0, 0x1p-24, 0x1.ff8p-15, 0x1p-14})
    EXPECT_EQ(stored(exact), exact);
  EXPECT_EQ(stored(1 + 0x1p-11), 1);
  EXPECT_EQ(stored(1 + 3 * 0x1p-11), 1 + 0x1p-9);
  EXPECT_EQ(stored(65519), 65504);
  EXPECT_EQ(stored(65520), INFINITY);
  EXPECT_EQ(stored(0x1p-25), 0);
  EXPECT_TRUE(std::isnan(stored(NAN)));
  for (int bits = 0; bits < 0x7C00; ++bits) {
    std::memcpy(array.bytes.data(), &bits, 2);
    const auto value = static_cast<double>(array.at(0));
    array.put(0, value);
    EXPECT_EQ(std::memcmp(array.bytes.data(), &bits, 2), 0) << bits;
  }
}

TEST(Array, bfloats_round_to_nearest_even) {
  Array array = zeros("x", TINY_BFLOAT16, {1});
  array.put(0, 1 + 0x1p-8);
  EXPECT_EQ(array.at(0), 1);
  array.put(0, 1 + 3 * 0x1p-8);
  EXPECT_EQ(array.at(0), 1 + 0x1p-6);
}

TEST(Array, integers_wrap_and_stay_exact) {
  Array bytes = zeros("x", TINY_INT8, {1});
  bytes.put(0, 200);
  EXPECT_EQ(bytes.at(0), -56);
  Array words = zeros("x", TINY_UINT64, {1});
  words.put(0, 0x1p63);
  EXPECT_EQ(words.at(0), 0x1p63L);
  EXPECT_EQ(element(words, 0).text(), "9223372036854775808");
}

TEST(Array, sizes_that_overflow_are_no_sizes) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({0, INT64_MAX, INT64_MAX}), 0);
  EXPECT_EQ(element_count({INT64_MAX, 2}), -1);
  EXPECT_EQ(element_count({-1}), -1);
}

TEST(Npy, every_dtype_survives) {
  for (tiny_dtype dtype = TINY_BOOL; dtype <= TINY_FLOAT64; ++dtype) {
    Array array = zeros("x", dtype, {2, 3});
    for (size_t i = 0; i < 6; ++i) array.put(i, static_cast<double>(i));
    const Array back = parse_npy(format_npy(array), "x.npy", "");
    EXPECT_EQ(back.bytes, array.bytes);
    EXPECT_EQ(back.shape, array.shape);
    EXPECT_EQ(back.dtype, dtype == TINY_BFLOAT16 ? TINY_UINT16 : dtype);
  }
}

TEST(Npy, no_prefix_and_no_changed_byte_crashes) {
  Array array = zeros("x", TINY_FLOAT32, {2, 3});
  const std::vector<std::byte> whole = format_npy(array);
  const auto try_it = [](const std::vector<std::byte>& file) {
    try {
      const Array got = parse_npy(file, "x.npy", "");
      EXPECT_EQ(got.count(), static_cast<uint64_t>(element_count(got.shape)));
    } catch (const std::exception&) {
      return;
    }
  };
  for (size_t size = 0; size < whole.size(); ++size)
    try_it({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)});
  for (size_t at = 0; at < whole.size(); ++at)
    for (const char value : {'\0', '\xff', '9', '(', '\''}) {
      std::vector<std::byte> changed = whole;
      changed[at] = static_cast<std::byte>(value);
      try_it(changed);
    }
}

TEST(Files, names_become_names_of_files) {
  EXPECT_EQ(escaped("a_b-1.c"), "a_b-1.c");
  EXPECT_EQ(escaped("../a/b"), "%2E.%2Fa%2Fb");
  EXPECT_EQ(escaped(""), "%");
  EXPECT_LE(escaped(std::string(1000, '/')).size(), 255u);
  EXPECT_EQ(ending("a.b/c"), "");
  EXPECT_EQ(ending("a/B.NPY"), ".npy");
}

TEST(Compare, integers_beyond_double_are_told_apart) {
  Array a = zeros("a", TINY_INT64, {1}), b = a;
  const int64_t x = (int64_t{1} << 62) + 1, y = x + 1;
  std::memcpy(a.bytes.data(), &x, 8);
  std::memcpy(b.bytes.data(), &y, 8);
  EXPECT_FALSE(compare(a, b, "", {0, 0}).pass);
  EXPECT_TRUE(compare(a, b, "", {0, 1}).pass);
}

TEST(Synth, the_generator_gives_the_same_on_every_machine) {
  Array array = zeros("x", TINY_FLOAT32, {2});
  synthesise(array, "uniform", 0, 0);
  const float first = static_cast<float>(array.at(0));
  EXPECT_EQ(first, static_cast<float>(0xE220A8397B1DCDAF >> 40) * 0x1p-24f);
  synthesise(array, "uniform", 0, 1);
  EXPECT_NE(array.at(0), first);
}

}  // namespace
}  // namespace tiny::cli
