// Regular expressions: what they match, what they refuse, and that nothing takes long.
#include "onnx/pattern.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/failure.h"

namespace tiny::onnx {
namespace {

using tiny::testing::expect_failure;
using tiny::testing::failure_of;

bool matches(const std::string& pattern, const std::string& text) {
  return Pattern(pattern).matches(text);
}

TEST(Pattern, MatchesWholeTexts) {
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_TRUE(matches("ab|cd|", "cd"));
  EXPECT_TRUE(matches("ab|cd|", ""));
  EXPECT_FALSE(matches("ab", "abc"));
  EXPECT_TRUE(matches("a{2,3}b{2}c{1,}d?", "aabbccd"));
  EXPECT_FALSE(matches("a{2,3}", "aaaa"));
  EXPECT_TRUE(matches("a{,3}", "a{,3}"));  // no repetition
  EXPECT_TRUE(matches("(a|(?:bc)*?)+x", "abcbcax"));
  EXPECT_TRUE(matches("(?P<name>a)\\.", "a."));
}

TEST(Pattern, KnowsClassesAndPlaces) {
  EXPECT_TRUE(matches("[^a-c\\d]+", "xyz"));
  EXPECT_FALSE(matches("[^a-c\\d]+", "xy1"));
  EXPECT_TRUE(matches("[]a]+", "]a]"));
  EXPECT_TRUE(matches("[\\D]+", "ab"));
  EXPECT_TRUE(matches("[[:alpha:]_-]+", "a_b-c"));
  EXPECT_TRUE(matches("\\w+\\s\\S+", "ab_1 \xc3\x9c"));
  EXPECT_TRUE(matches("^a.*b$", "axxb"));
  EXPECT_FALSE(matches("a^b", "ab"));
  EXPECT_TRUE(matches(".*\\bfox\\b.*", "the fox runs"));
  EXPECT_FALSE(matches(".*\\bfox\\b.*", "the foxes"));
  EXPECT_FALSE(matches(".", "\n"));
  EXPECT_TRUE(matches("(?s).", "\n"));
}

TEST(Pattern, ReadsCharactersOfUtf8) {
  EXPECT_TRUE(matches(".", "\xc3\x9c"));
  EXPECT_TRUE(matches("[\xc3\xa0-\xc3\xbf]", "\xc3\xa4"));
  EXPECT_TRUE(matches("\\x{dc}\\x41",
                      "\xc3\x9c"
                      "A"));
  EXPECT_TRUE(matches("(?i)[a-c]X[^D]", "Bxe"));
  EXPECT_FALSE(matches("(?i)[^d]", "D"));
}

// "begin+size" of the match from a place on; "" if there is none.
std::string found(const std::string& pattern, const std::string& text, size_t from = 0) {
  const auto match = Pattern(pattern).find(text, from);
  return match ? cat(match->begin, "+", match->size) : "";
}

TEST(Pattern, FindsTheLongestOfTheFirst) {
  EXPECT_EQ(found("a|ab", "xabab"), "1+2");
  EXPECT_EQ(found("a|ab", "xabab", 2), "3+2");
  EXPECT_EQ(found("bc|abcd", "abcx abcd"), "1+2");
  EXPECT_EQ(found("abcd|b", "abcd"), "0+4");  // which ends last, and began first
  EXPECT_EQ(found("a+?", "baaa"), "1+3");
  EXPECT_EQ(found("x", "abc"), "");
  EXPECT_EQ(found("", "abc", 3), "3+0");
  EXPECT_EQ(found("x*", "axx"), "0+0");
  EXPECT_EQ(found("x*", "axx", 1), "1+2");
  EXPECT_EQ(found("x", "axx", 4), "");
  EXPECT_EQ(found("^a", "aa", 1), "");
  EXPECT_EQ(found("a$", "aa"), "1+1");
  EXPECT_EQ(found("\\ba", "ba a", 1), "3+1");
  EXPECT_EQ(found("[^ ]+", " \xc3\x9cx "), "1+3");
  EXPECT_EQ(found("(?i)B[^c]", "abcbd"), "3+2");
}

TEST(Pattern, LeavesEarly) {
  const KernelPoll leave{[](const KernelPoll*) noexcept -> int32_t { return 1; }};
  EXPECT_FALSE(Pattern("(a|b)*").matches(std::string(100000, 'a'), leave));
  EXPECT_FALSE(Pattern("b*$").find(std::string(100000, 'a'), 0, leave));
}

TEST(Pattern, TakesTimeOfItsLengthTimesTheTexts) {
  EXPECT_FALSE(matches("(a*)*b", std::string(20000, 'a')));
  EXPECT_FALSE(matches("(a|aa)+b", std::string(20000, 'a')));
  EXPECT_TRUE(matches("(a?){200}a{200}", std::string(200, 'a')));
}

TEST(Pattern, RefusesWhatItDoesNotKnow) {
  const auto refused = [](const std::string& pattern, Status status) {
    expect_failure(failure_of([&] { (void)Pattern(pattern); }), status, {"pattern"});
  };
  for (const char* pattern : {"(", ")", "a)", "[a", "*", "a|+", "\\p{L}", "\\1", "(?=a)", "(?x)a",
                              "[b-a]", "a{3,2}", "\\", "[[:no:]]"})
    refused(pattern, Status::Unsupported);
  refused("a{1001}", Status::Unsupported);
  refused("((((a{1000}){1000}){1000}))", Status::Limit);
  refused("((((){1000}){1000}){1000})", Status::Limit);
  refused(std::string(5000, 'a'), Status::Limit);
  refused(std::string(300, '(') + "a" + std::string(300, ')'), Status::Unsupported);
}

}  // namespace
}  // namespace tiny::onnx
