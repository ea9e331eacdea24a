// Regular expressions, matched against whole texts or found in them in time of the text's length
// times the pattern's: both may come from strangers.
//
// Of RE2's syntax: characters, `.`, classes with ranges and escapes (\d \w \s and their opposites,
// [:alpha:] and its like), groups, alternatives, * + ? {m,n} (also followed by ?, which means the
// same in a whole match and in the longest), ^ and $ at the ends of the text, \b and \B, (?i) and
// (?s) at the begin. Error{Unsupported} for what is none of these, Error{Limit} for a pattern that
// is too large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/kernel_abi.h"

namespace tiny::onnx {

class Pattern {
 public:
  explicit Pattern(std::string_view text);
  // Both leave early, with what is void, where `poll` says so.
  bool matches(std::string_view text, const KernelPoll& poll = kStay) const;
  struct Match {
    size_t begin;  // bytes
    size_t size;
  };
  // Of the matches from this place on that begin first the longest; what is before is seen by ^ and
  // \b.
  std::optional<Match> find(std::string_view text, size_t from,
                            const KernelPoll& poll = kStay) const;

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
  bool reads(const State& state, char32_t c) const;
  std::optional<Match> search(std::string_view text, size_t from, bool is_whole,
                              const KernelPoll& poll) const;

  std::vector<Set> sets_;
  std::vector<State> states_;
  uint32_t start_ = 0;
  bool ignores_case_ = false;
};

}  // namespace tiny::onnx
