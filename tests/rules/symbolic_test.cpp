#include "rules/symbolic.h"

#include <gtest/gtest.h>

#include <chrono>
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

// Random expressions as index lowering makes them: mixed sums, nested divisions, conditions.
class RandomIndex {
 public:
  RandomIndex(uint32_t seed, const World& w) : rng_(seed), w_(w) {}

  UOp integer(int depth) {
    Graph& g = w_.graph;
    if (depth == 0 || pick(8) == 0)
      return pick(5) ? w_.leaves[pick(w_.leaves.size())] : g.integer(constant());
    const UOp a = integer(depth - 1);
    const auto other = [&] { return integer(static_cast<int>(pick(static_cast<size_t>(depth)))); };
    switch (pick(12)) {
      case 0:
      case 1:
        return g.make(Op::Mul, {a, g.integer(constant())});
      case 2:
      case 3:
        return g.make(Op::FloorDiv, {a, g.integer(divisor())});
      case 4:
      case 5:
        return g.make(Op::FloorMod, {a, g.integer(divisor())});
      case 6:
        return g.make(Op::Neg, {a});
      case 7:
        return g.make(pick(2) ? Op::Min : Op::Max, {a, other()});
      case 8:
        return g.make(Op::Where, {condition(depth - 1), a, other()});
      case 9:
        return exotic(a, other());
      default:
        return g.make(Op::Add, {a, other()});
    }
  }
  UOp condition(int depth) {
    Graph& g = w_.graph;
    if (depth > 1 && pick(3) == 0)
      return g.make(pick(2) ? Op::And : Op::Or, {condition(depth - 1), condition(depth - 1)});
    if (depth > 0 && pick(6) == 0) return g.make(Op::Not, {condition(depth - 1)});
    static constexpr Op kCompare[] = {Op::Less, Op::Less, Op::LessEqual, Op::Equal, Op::NotEqual};
    const int below = std::max(0, depth - 1);
    return g.make(kCompare[pick(5)],
                  {integer(below), pick(2) ? g.integer(constant()) : integer(below)});
  }
  size_t pick(size_t n) { return rng_() % n; }

  // A sum of terms that share factors with the divisors it is split by, and is joined again from.
  UOp split_sum() {
    Graph& g = w_.graph;
    const UOp x = sum();
    UOp joined = g.integer(constant());
    for (size_t parts = 1 + pick(3); parts > 0; --parts) {
      UOp part = pick(6) ? x : sum();
      for (size_t steps = 1 + pick(3); steps > 0; --steps)
        part = g.make(pick(2) ? Op::FloorDiv : Op::FloorMod, {part, g.integer(factor())});
      if (pick(2)) part = g.make(Op::Mul, {part, g.integer(pick(5) ? factor() : -factor())});
      joined = g.make(Op::Add, {joined, part});
    }
    if (pick(3) == 0)
      return g.make(pick(2) ? Op::Less : Op::Equal, {joined, g.integer(constant() * 4)});
    return joined;
  }

 private:
  UOp sum() {
    Graph& g = w_.graph;
    UOp total = g.integer(static_cast<int64_t>(pick(40)) - 12);
    for (const UOp& leaf : w_.leaves) {
      if (pick(4) == 0) continue;
      const int64_t c = pick(8) ? factor() : -factor();
      total = g.make(Op::Add, {total, g.make(Op::Mul, {leaf, g.integer(c)})});
    }
    return total;
  }
  int64_t factor() {
    static constexpr int64_t kFactors[] = {1, 2, 2, 3, 4, 4, 6, 8, 8, 12, 16, 24};
    return kFactors[pick(std::size(kFactors))];
  }
  int64_t constant() {
    return pick(4) ? static_cast<int64_t>(pick(14)) - 2 : int64_t{1} << pick(6);
  }
  int64_t divisor() {
    const int64_t c = pick(2) ? int64_t{1} << pick(5) : 1 + static_cast<int64_t>(pick(12));
    return pick(12) ? c : -c;
  }
  UOp exotic(const UOp& a, const UOp& b) {
    static constexpr Op kOps[] = {Op::Mul,      Op::FloorDiv, Op::FloorMod,
                                  Op::TruncDiv, Op::TruncMod, Op::And};
    if (pick(3) == 0) return w_.graph.make(Op::Abs, {a});
    if (pick(4) == 0)
      return w_.graph.make(pick(2) ? Op::Shl : Op::Shr,
                           {a, w_.graph.integer(static_cast<int64_t>(pick(3)))});
    return w_.graph.make(kOps[pick(6)], {a, b});
  }
  std::mt19937 rng_;
  const World& w_;
};

constexpr const char* kWorlds[] = {"i<8 j<6", "i<5 j<3 k<4", "i<12 n=-6..7", "n=1..6 r<n i<4",
                                   "n=1..4 m=1..4 r<n s<m"};

size_t node_count(const UOp& u) {
  return topological({&u, 1}).size();
}

TEST(Symbolic, RandomExpressionsKeepTheirValues) {
  size_t before_total = 0, after_total = 0;
  for (const char* symbols : kWorlds) {
    Graph g;
    const World w(g, symbols);
    RandomIndex random(17, w);
    for (int trial = 0; trial < 3000 && !testing::Test::HasFailure(); ++trial) {
      const UOp before = trial % 2   ? random.split_sum()
                         : trial % 6 ? random.integer(4)
                                     : random.condition(3);
      const UOp after = simplify_index(before);
      expect_equal_everywhere(before, after, w);
      EXPECT_EQ(text_of(simplify_index(after), w), text_of(after, w)) << text_of(before, w);
      before_total += node_count(before);
      after_total += node_count(after);
    }
  }
  EXPECT_LT(after_total * 10, before_total * 9);
}

TEST(Symbolic, RandomExpressionsKeepTheirValuesWhereFactsHold) {
  size_t shorter = 0;
  for (const char* symbols : kWorlds) {
    Graph g;
    const World w(g, symbols);
    RandomIndex random(23, w);
    for (int trial = 0; trial < 600 && !testing::Test::HasFailure(); ++trial) {
      const UOp facts[] = {random.integer(2), random.integer(1)};
      UOp before = trial % 2 ? random.condition(3) : random.integer(3);
      if (trial % 3 == 0) before = g.make(Op::LessEqual, {g.integer(-2), facts[trial % 2]});
      const UOp after = simplify_index(before, facts);
      shorter += node_count(after) < node_count(simplify_index(before));
      Evaluator a(before, w.leaves), b(after, w.leaves), f0(facts[0], w.leaves),
          f1(facts[1], w.leaves);
      w.for_all([&](std::span<const uint64_t> values) {
        if (static_cast<int64_t>(f0(values)) < 0 || static_cast<int64_t>(f1(values)) < 0) return;
        ASSERT_EQ(a(values), b(values))
            << text_of(before, w) << " -> " << text_of(after, w) << " with " << text_of(facts[0], w)
            << " and " << text_of(facts[1], w);
      });
    }
  }
  EXPECT_GT(shorter, 50u);
}

TEST(Symbolic, EqualSumsMeetWhateverTheirOrder) {
  Graph g;
  const World w(g, "i<8 j<6 k<5 n=1..9");
  std::mt19937 rng(3);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<UOp> terms;
    for (const UOp& leaf : w.leaves) {
      terms.push_back(leaf * (static_cast<int64_t>(rng() % 9) - 4));
      terms.push_back(floor_div(leaf * 3 + 1, 4) * static_cast<int64_t>(rng() % 3));
    }
    terms.push_back(g.integer(static_cast<int64_t>(rng() % 20)));
    UOp meets;
    for (int order = 0; order < 4; ++order) {
      std::shuffle(terms.begin(), terms.end(), rng);
      UOp sum = terms[0];
      for (size_t t = 1; t < terms.size(); ++t)
        sum = rng() % 2 ? g.make(Op::Add, {sum, terms[t]}) : g.make(Op::Add, {terms[t], sum});
      const UOp after = simplify_index(sum);
      if (meets) {
        EXPECT_EQ(after, meets);
      }
      meets = after;
    }
  }
}

TEST(Symbolic, FactsDecideConditionsAndDivisions) {
  Graph g;
  const World w(g, "b<64 t<14 n=1..1000");
  const UOp b = w.symbols.at("b"), t = w.symbols.at("t"), n = w.symbols.at("n");
  const UOp fact = n - 14 - b * 14;  // a full tile of 14 rows
  const UOp row = b * 14 + t;
  EXPECT_EQ(simplify_index(less(row, n), {&fact, 1}), g.boolean(true));
  EXPECT_EQ(simplify_index(minimum(row, n - 1), {&fact, 1}), row);
  EXPECT_EQ(simplify_index(where(less(row, n), row, g.integer(0)), {&fact, 1}), row);
  EXPECT_FALSE(simplify_index(less(row, n)).is_const());
  EXPECT_EQ(simplify_index(floor_div(row, n), {&fact, 1}), g.integer(0));
  EXPECT_EQ(simplify_index(less(n - 1 - row, g.integer(0)), {&fact, 1}), g.boolean(false));
  EXPECT_FALSE(simplify_index(less(n - 15 - row, g.integer(0)), {&fact, 1}).is_const());
}

TEST(Symbolic, OtherNodesAreLeaves) {
  Graph g;
  const UOp n = g.variable("n", 1, 9);
  const UOp r = g.make(Op::Range, {g.make(Op::Add, {n, g.integer(0)})}, int64_t{0});
  EXPECT_EQ(simplify_index(g.make(Op::Add, {r, g.integer(0)})), r);
}

TEST(Symbolic, ASmallExpressionTakesMicroseconds) {
  Graph g;
  const World w(g, "i<56 j<56 k<64 n=1..64");
  ExpressionParser parser(g, w.symbols);
  const UOp e = parser.parse("(i*3584 + j*64 + k) // 64 % 56 * 64 + (i*3584 + j*64 + k) % 64");
  const auto start = std::chrono::steady_clock::now();
  constexpr int kRepeats = 200;
  for (int i = 0; i < kRepeats; ++i) simplify_index(e);
  const double us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() /
      kRepeats;
  RecordProperty("microseconds", std::to_string(us));
  std::printf("%.1f us each\n", us);
  EXPECT_LT(us, 2000);  // far above what it takes: a guard against another order of growth
}

}  // namespace
}  // namespace tiny
