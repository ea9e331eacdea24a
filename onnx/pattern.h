// Regular expressions, matched against whole texts in time of the text's length times the
// pattern's: both may come from strangers.
//
// Of RE2's syntax: characters, `.`, classes with ranges and escapes (\d \w \s and their opposites,
// [:alpha:] and its like), groups, alternatives, * + ? {m,n} (also followed by ?, which means the
// same in a whole match), ^ and $ at the ends of the text, \b and \B, (?i) and (?s) at the begin.
// Error{Unsupported} for what is none of these, Error{Limit} for a pattern that is too large.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tiny::onnx {

class Pattern {
 public:
  explicit Pattern(std::string_view text);
  bool matches(std::string_view text) const;

  // A set of characters, as ranges from first to last.
  struct Set {
    std::vector<std::pair<char32_t, char32_t>> ranges;
    bool is_negated = false;
    bool has(char32_t c) const;
  };
  // A state of the automaton: what leads on from it.
  struct State {
    enum class Kind : uint8_t { Set, Fork, Begin, End, Word, NoWord, Accept };
    Kind kind = Kind::Accept;
    uint32_t set = 0;  // of Set: which
    uint32_t next = 0;
    uint32_t other = 0;  // of Fork
  };

 private:
  std::vector<Set> sets_;
  std::vector<State> states_;
  uint32_t start_ = 0;
  bool ignores_case_ = false;
};

}  // namespace tiny::onnx
