// Sides of rewrite rules as data, written so that they read as the identity they apply:
//
//     rule((i + c0) + c1,         i + (c0 + c1)),
//     rule(i % c0,                i,                 lo(i) >= 0 && hi(i) < c0),
//
// Wildcards are typed by name: x y z any, i j k integer, f h float, b d bool, c0 c1 c2 constant.
// The same name must match the same node.  `/` and `%` are FloorDiv and FloorMod.  A literal takes
// the dtype of the operand beside it and matches by bits (0.0 is not -0.0).  The matcher tries the
// commuted forms of commutative ops; an op with any number of sources stands without them, for code
// to look at.  A condition is evaluated in int64 over constants and bounds;
// it fails where that overflows.  What needs code is a named function in place of the right side
// (no node: it does not apply) or of the condition.
//
// Patterns are literal types: tables of them are constexpr, with no static constructors.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/affine.h"
#include "ir/bounds.h"
#include "ir/uop.h"

namespace tiny {

enum class Wildcard : uint8_t { x, y, z, i, j, k, f, h, b, d, c0, c1, c2 };
inline constexpr size_t kWildcards = 13;

// Four bytes, since tables hold thousands.
struct PatternNode {
  enum class Kind : uint8_t { Wildcard, Integer, Float, Node, Lowest, Highest };
  Kind kind = Kind::Integer;
  Op op = Op::Const;    // Node
  int16_t payload = 0;  // Node: nodes of this subtree, in prefix order; the wildcard; the literal

  static constexpr PatternNode of(Wildcard name, Kind kind) {
    return {kind, Op::Const, static_cast<int16_t>(name)};
  }
  // A literal that has no room does not compile.
  static constexpr PatternNode of(int literal) {
    if (literal != static_cast<int16_t>(literal)) throw literal;
    return {Kind::Integer, Op::Const, static_cast<int16_t>(literal)};
  }
  // The upper half of a float's bits, which is all of it.
  static constexpr PatternNode of(double literal) {
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(literal));
    if ((bits & 0xFFFF) != 0) throw literal;
    return {Kind::Float, Op::Const, static_cast<int16_t>(bits >> 16)};
  }

  constexpr Wildcard wildcard() const { return static_cast<Wildcard>(payload); }  // and bounds
  constexpr size_t size() const { return kind == Kind::Node ? static_cast<size_t>(payload) : 1; }
  constexpr int64_t integer() const { return payload; }
  constexpr float real() const {
    return std::bit_cast<float>(uint32_t{static_cast<uint16_t>(payload)} << 16);
  }
  constexpr bool operator==(const PatternNode&) const = default;
};

// Of a pattern, in prefix order.
using PatternNodes = std::span<const PatternNode>;

class Pattern {
 public:
  static constexpr size_t kNodesMax = 16;

  constexpr Pattern(int literal) {  // NOLINT: implicit, so that `x + 0` is a pattern.
    push(PatternNode::of(literal));
  }
  constexpr Pattern(double literal) {  // NOLINT
    push(PatternNode::of(literal));
  }
  constexpr Pattern(Wildcard name,
                    PatternNode::Kind kind = PatternNode::Kind::Wildcard) {  // NOLINT
    push(PatternNode::of(name, kind));
  }
  template <class... Sources>
  static constexpr Pattern node(Op op, const Sources&... src) {
    Pattern p;
    p.push({PatternNode::Kind::Node, op, 1});
    (p.append(src), ...);
    p.nodes_[0].payload = p.count_;
    return p;
  }

  static constexpr Pattern of_nodes(PatternNodes nodes) {
    Pattern p;
    for (const PatternNode& n : nodes) p.push(n);
    return p;
  }

  constexpr PatternNodes nodes() const { return {nodes_.data(), count_}; }
  constexpr operator PatternNodes() const {
    return nodes();
  }  // NOLINT: what is made of one is used
  constexpr const PatternNode& root() const { return nodes_[0]; }

 private:
  constexpr Pattern() = default;
  constexpr void push(PatternNode n) { nodes_.at(count_++) = n; }  // too big: does not compile
  constexpr void append(const Pattern& p) {
    for (const PatternNode& n : p.nodes()) push(n);
  }
  std::array<PatternNode, kNodesMax> nodes_{};
  uint8_t count_ = 0;
};

std::string to_string(PatternNodes pattern);

// What a rule's wildcards were bound to, at one node.
class Match {
 public:
  Match(const UOp& root, BoundsCache& bounds, std::span<const Affine> facts)
      : root_(&root), bounds_(&bounds), facts_(facts) {}

  const UOp& root() const { return *root_; }
  Graph& graph() const { return root_->graph(); }
  const UOp& operator[](Wildcard name) const { return *bound_[static_cast<size_t>(name)]; }
  bool is_bound(Wildcard name) const { return bound_[static_cast<size_t>(name)] != nullptr; }
  Interval bounds(const UOp& u) const { return bounds_->of(u); }
  BoundsCache& cache() const { return *bounds_; }
  std::span<const Affine> facts() const { return facts_; }  // known to be >= 0
  // `value` must outlive the match.
  void bind(Wildcard name, const UOp& value) { bound_[static_cast<size_t>(name)] = &value; }
  void unbind_all() { bound_ = {}; }

 private:
  const UOp* root_;
  BoundsCache* bounds_;
  std::span<const Affine> facts_;
  std::array<const UOp*, kWildcards> bound_{};
};

// Whether `left` matches `u` read in exactly this order of operands; binds wildcards.
bool match_in_order(PatternNodes left, const UOp& u, Match& match);
// The right side with the wildcards of `match`; literals at the top have the dtype of its root.
UOp build(PatternNodes right, const Match& match);
// The value of a condition; none if it overflows or a constant is no integer.
std::optional<int64_t> evaluate(PatternNodes condition, const Match& match);

// `pattern` with the operands of its commutative nodes in every order, itself first.
std::vector<Pattern> commuted_forms(PatternNodes pattern);

// The words of rules.  Rule files say `using namespace pattern_words`.
namespace pattern_words {

inline constexpr Pattern x = Wildcard::x, y = Wildcard::y, z = Wildcard::z, i = Wildcard::i,
                         j = Wildcard::j, k = Wildcard::k, f = Wildcard::f, h = Wildcard::h,
                         b = Wildcard::b, d = Wildcard::d, c0 = Wildcard::c0, c1 = Wildcard::c1,
                         c2 = Wildcard::c2;

// The bounds of what an integer wildcard matched; in conditions only.
constexpr Pattern lo(const Pattern& wildcard) {
  return {wildcard.root().wildcard(), PatternNode::Kind::Lowest};
}
constexpr Pattern hi(const Pattern& wildcard) {
  return {wildcard.root().wildcard(), PatternNode::Kind::Highest};
}

constexpr Pattern min(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::Min, p, q);
}
constexpr Pattern max(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::Max, p, q);
}
constexpr Pattern where(const Pattern& c, const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::Where, c, p, q);
}
constexpr Pattern div(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::Div, p, q);
}
constexpr Pattern trunc_div(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::TruncDiv, p, q);
}
constexpr Pattern trunc_mod(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::TruncMod, p, q);
}
constexpr Pattern pow(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::Pow, p, q);
}
constexpr Pattern abs(const Pattern& p) {
  return Pattern::node(Op::Abs, p);
}
constexpr Pattern unary(Op op, const Pattern& p) {
  return Pattern::node(op, p);
}

}  // namespace pattern_words

constexpr Pattern operator-(const Pattern& p) {
  return Pattern::node(Op::Neg, p);
}
constexpr Pattern operator!(const Pattern& p) {
  return Pattern::node(Op::Not, p);
}
constexpr Pattern operator+(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::Add, p, q);
}
constexpr Pattern operator-(const Pattern& p, const Pattern& q) {
  return p + (-q);
}
constexpr Pattern operator*(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::Mul, p, q);
}
constexpr Pattern operator/(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::FloorDiv, p, q);
}
constexpr Pattern operator%(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::FloorMod, p, q);
}
constexpr Pattern operator<<(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::Shl, p, q);
}
constexpr Pattern operator>>(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::Shr, p, q);
}
constexpr Pattern operator<(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::Less, p, q);
}
constexpr Pattern operator>(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::Less, q, p);
}
constexpr Pattern operator<=(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::LessEqual, p, q);
}
constexpr Pattern operator>=(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::LessEqual, q, p);
}
constexpr Pattern operator==(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::Equal, p, q);
}
constexpr Pattern operator!=(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::NotEqual, p, q);
}
constexpr Pattern operator&(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::And, p, q);
}
constexpr Pattern operator|(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::Or, p, q);
}
constexpr Pattern operator^(const Pattern& p, const Pattern& q) {
  return Pattern::node(Op::Xor, p, q);
}
constexpr Pattern operator&&(const Pattern& p, const Pattern& q) {
  return p & q;
}
constexpr Pattern operator||(const Pattern& p, const Pattern& q) {
  return p | q;
}

}  // namespace tiny
