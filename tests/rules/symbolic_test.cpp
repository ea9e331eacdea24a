#include "rules/symbolic.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "base/text.h"
#include "ir/build.h"
#include "ir/fold.h"
#include "tests/rules/expression_parser.h"

namespace tiny {
namespace {

struct Case {
  int line;
  const char* symbols;
  const char* expression;
  const char* expected;
};
constexpr Case kCases[] = {
#define CASE(symbols, expression, expected) {__LINE__, symbols, expression, expected},
#include "tests/rules/symbolic_cases.def"
};

// The symbols of a case, and every combination of their values (thinned out where there are many).
struct World {
  Graph& graph;
  ExpressionParser::Symbols symbols;
  std::vector<UOp> leaves;
  std::vector<std::string> names;

  World(Graph& g, const std::string& text) : graph(g) {
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      const size_t at = word.find_first_of("<=");
      const std::string name = word.substr(0, at), value = word.substr(at + 1);
      UOp leaf;
      if (word[at] == '<') {
        const UOp size = std::isdigit(static_cast<unsigned char>(value[0]))
                             ? g.integer(std::stoll(value))
                             : symbols.at(value);
        leaf = g.make(Op::Range, {size}, static_cast<int64_t>(leaves.size()));
      } else {
        const size_t dots = value.find("..");
        leaf =
            g.variable(name, std::stoll(value.substr(0, dots)), std::stoll(value.substr(dots + 2)));
      }
      symbols.emplace(name, leaf);
      leaves.push_back(leaf);
      names.push_back(name);
    }
  }

  template <class Check>
  void for_all(const Check& check) const {
    std::vector<uint64_t> values(leaves.size());
    for_all(check, values, 0);
  }
  template <class Check>
  void for_all(const Check& check, std::vector<uint64_t>& values, size_t at) const {
    if (at == leaves.size()) return check(values);
    const UOp& leaf = leaves[at];
    int64_t lo = 0, hi = 0;
    if (leaf.op() == Op::Variable) {
      lo = leaf.variable_arg().min;
      hi = leaf.variable_arg().max;
    } else {
      const UOp& size = leaf.src(0);
      const auto of = std::find(leaves.begin(), leaves.end(), size);
      hi = (size.is_const()
                ? size.const_int()
                : static_cast<int64_t>(values[static_cast<size_t>(of - leaves.begin())])) -
           1;
    }
    const int64_t step = leaves.size() > 3   ? std::max<int64_t>(1, (hi - lo) / 5)
                         : leaves.size() > 1 ? std::max<int64_t>(1, (hi - lo) / 40)
                                             : 1;
    for (int64_t v = lo; v <= hi; v = v < hi && v + step > hi ? hi : v + step) {
      values[at] = static_cast<uint64_t>(v);
      for_all(check, values, at + 1);
    }
  }
};

std::string text_of(const UOp& u, const World& w) {
  for (size_t i = 0; i < w.leaves.size(); ++i)
    if (w.leaves[i] == u) return w.names[i];
  if (u.is_const()) return u.dtype().is_bool() ? (u.const_int() ? "true" : "false") : arg_text(u);
  const OpInfo& op = info(u.op());
  if (op.arity == 2 && !std::isalpha(static_cast<unsigned char>(op.symbol[0])))
    return cat("(", text_of(u.src(0), w), " ", op.symbol, " ", text_of(u.src(1), w), ")");
  if (u.op() == Op::Neg) return cat("-", text_of(u.src(0), w));
  std::vector<std::string> parts;
  for (const UOp& s : u.src()) parts.push_back(text_of(s, w));
  return cat(op.symbol, "(", join(parts, ", "), ")");
}

void expect_equal_everywhere(const UOp& before, const UOp& after, const World& w) {
  Evaluator a(before, w.leaves), b(after, w.leaves);
  bool equal = true;
  w.for_all([&](std::span<const uint64_t> values) {
    if (!equal || a(values) == b(values)) return;
    equal = false;
    std::string at;
    for (size_t i = 0; i < values.size(); ++i)
      at += cat(w.names[i], "=", static_cast<int64_t>(values[i]), " ");
    ADD_FAILURE() << text_of(before, w) << " is " << static_cast<int64_t>(a(values)) << " but "
                  << text_of(after, w) << " is " << static_cast<int64_t>(b(values)) << " at " << at;
  });
}

TEST(Symbolic, EveryCaseOfTheTable) {
  for (const Case& c : kCases) {
    Graph g;
    const World w(g, c.symbols);
    ExpressionParser parser(g, w.symbols);
    const UOp before = parser.parse(c.expression);
    const UOp expected = parser.parse(c.expected);
    const UOp after = simplify_index(before);
    EXPECT_EQ(text_of(after, w), text_of(expected, w))
        << "symbolic_cases.def:" << c.line << ": " << c.symbols << ": " << c.expression;
    expect_equal_everywhere(before, after, w);
    EXPECT_EQ(simplify_index(after), after) << c.expression << " changes again";
  }
  EXPECT_GT(std::size(kCases), 200u);
}

}  // namespace
}  // namespace tiny
