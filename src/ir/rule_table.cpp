#include "ir/rule_table.h"

#include <cstring>

#include "base/text.h"

namespace tiny {

std::string to_string(const Rule& rule) {
  const char* slash = std::strrchr(rule.file, '/');
  return cat(slash ? slash + 1 : rule.file, ":", rule.line, ": ", to_string(rule.left()), " -> ",
             rule.code ? "code" : to_string(rule.right()));
}

std::vector<Rule> RuleTable::rules() const {
  std::vector<Rule> rules;
  const PatternNode* next = nodes;
  for (const PackedRule& row : packed) {
    rules.push_back({row.code, row.when, file, next, row.line, row.sizes});
    next += row.sizes[0] + row.sizes[1] + row.sizes[2];
  }
  return rules;
}

}  // namespace tiny
