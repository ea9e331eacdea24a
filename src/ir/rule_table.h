// Rewrite rules: as they are written, as they stand in the library, as they are read.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/pattern.h"

namespace tiny {

// A rule as it is written.  The patterns of all three sides stand together: most are short.
class WrittenRule {
 public:
  static constexpr size_t kNodesMax = 28;

  UOp (*code)(const Match&) = nullptr;   // instead of a right side, if not null
  bool (*when)(const Match&) = nullptr;  // in addition to the condition, if not null
  const char* file = nullptr;            // where the rule is written, for traces and failures
  uint16_t line = 0;
  std::array<uint8_t, 3> sizes{};  // nodes of the left side, the right side and the condition

  constexpr WrittenRule(PatternNodes left, PatternNodes right, PatternNodes condition,
                        const char* in, int at)
      : file(in), line(static_cast<uint16_t>(at)) {
    if (line != at) throw at;  // no constant
    size_t side = 0, count = 0;
    for (const PatternNodes pattern : {left, right, condition}) {
      sizes[side++] = static_cast<uint8_t>(pattern.size());
      for (const PatternNode& node : pattern) nodes_.at(count++) = node;  // too many: no constant
    }
  }
  constexpr PatternNodes nodes() const {
    return PatternNodes(nodes_).first(size_t{sizes[0]} + sizes[1] + sizes[2]);
  }

 private:
  std::array<PatternNode, kNodesMax> nodes_{};
};

// A rule of a table, whose nodes stand there.
struct Rule {
  UOp (*code)(const Match&) = nullptr;
  bool (*when)(const Match&) = nullptr;
  const char* file = nullptr;
  const PatternNode* nodes = nullptr;
  uint16_t line = 0;
  std::array<uint8_t, 3> sizes{};

  PatternNodes left() const { return {nodes, sizes[0]}; }
  PatternNodes right() const { return {nodes + sizes[0], sizes[1]}; }
  PatternNodes condition() const { return {nodes + sizes[0] + sizes[1], sizes[2]}; }
};

// Functions rather than braces: gcc gives the line of the whole list for elements in braces.
constexpr WrittenRule rule(const Pattern& left, const Pattern& right, const Pattern& condition = 1,
                           const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return {left, right, condition, file, line};
}
constexpr WrittenRule rule(const Pattern& left, const Pattern& right, bool (*when)(const Match&),
                           const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  WrittenRule made(left, right, Pattern(1), file, line);
  made.when = when;
  return made;
}
constexpr WrittenRule rule(const Pattern& left, UOp (*code)(const Match&),
                           const Pattern& condition = 1, const char* file = __builtin_FILE(),
                           int line = __builtin_LINE()) {
  WrittenRule made(left, Pattern(0), condition, file, line);
  made.code = code;
  return made;
}

// "integers.cpp:12: (i + 0) -> i".
std::string to_string(const Rule& rule);

// What a table keeps of a written rule; its nodes follow those of the rule before it.
struct PackedRule {
  UOp (*code)(const Match&) = nullptr;
  bool (*when)(const Match&) = nullptr;
  uint16_t line = 0;
  std::array<uint8_t, 3> sizes{};
};

// A written rule has room for the longest; most are short.
template <const auto& written>
constexpr auto pack() {
  constexpr size_t count = [] {
    size_t sum = 0;
    for (const WrittenRule& rule : written) sum += rule.nodes().size();
    return sum;
  }();
  struct {
    std::array<PackedRule, std::size(written)> rules;
    std::array<PatternNode, count> nodes;
  } packed{};
  size_t row = 0, node = 0;
  for (const WrittenRule& rule : written) {
    packed.rules[row++] = {rule.code, rule.when, rule.line, rule.sizes};
    for (const PatternNode& n : rule.nodes()) packed.nodes[node++] = n;
  }
  return packed;
}
template <const auto& written>
inline constexpr auto kPacked = pack<written>();

// A table of rules of one file and where they hold.
struct RuleTable {
  const char* name;
  const char* file;
  std::span<const PackedRule> packed;
  const PatternNode* nodes;
  // The rules assume that int64 arithmetic does not overflow: they are tried only where the
  // operands are int64 scalars, and a pass that uses them promises that those are indices.
  bool index_only;

  std::vector<Rule> rules() const;
};
template <const auto& written>
RuleTable rule_table(const char* name, bool index_only = false) {
  return {name, written[0].file, kPacked<written>.rules, kPacked<written>.nodes.data(), index_only};
}

}  // namespace tiny
