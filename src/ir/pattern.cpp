#include "ir/pattern.h"

#include <cctype>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "ir/build.h"
#include "ir/fold.h"

namespace tiny {

namespace {

using Kind = PatternNode::Kind;

constexpr const char* kNames[kWildcards] = {"x", "y", "z", "i",  "j",  "k", "f",
                                            "h", "b", "d", "c0", "c1", "c2"};

bool admits(Wildcard name, const UOp& u) {
  switch (name) {
    case Wildcard::x:
    case Wildcard::y:
    case Wildcard::z:
      return true;
    case Wildcard::i:
    case Wildcard::j:
    case Wildcard::k:
      return u.dtype().is_int();
    case Wildcard::f:
    case Wildcard::h:
      return u.dtype().is_float();
    case Wildcard::b:
    case Wildcard::d:
      return u.dtype().is_bool();
    case Wildcard::c0:
    case Wildcard::c1:
    case Wildcard::c2:
      return u.is_const();
  }
  return false;
}

double literal_value(const PatternNode& n) {
  if (n.kind == Kind::Float) return n.real();
  return static_cast<double>(n.integer());
}

uint64_t literal_bits(const PatternNode& n, DType dtype) {
  return n.kind == Kind::Float ? bits_of(dtype, literal_value(n)) : bits_of_int(dtype, n.integer());
}

bool matches_leaf(const PatternNode& n, const UOp& u, Match& match) {
  if (n.kind == Kind::Wildcard) {
    if (match.is_bound(n.wildcard())) return match[n.wildcard()] == u;
    if (!admits(n.wildcard(), u)) return false;
    match.bind(n.wildcard(), u);
    return true;
  }
  if (!u.is_const() || (n.kind == Kind::Float && !u.dtype().is_float())) return false;
  return u.const_bits() == literal_bits(n, u.dtype());
}

std::string literal_text(const PatternNode& n) {
  if (n.kind == Kind::Integer) return std::to_string(n.integer());
  const std::string text = cat(literal_value(n));
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

std::string pattern_text(PatternNodes nodes) {
  const PatternNode& n = nodes[0];
  const auto name = static_cast<size_t>(n.wildcard());
  switch (n.kind) {
    case Kind::Wildcard:
      return kNames[name];
    case Kind::Lowest:
      return cat("lo(", kNames[name], ")");
    case Kind::Highest:
      return cat("hi(", kNames[name], ")");
    case Kind::Integer:
    case Kind::Float:
      return literal_text(n);
    case Kind::Node:
      break;
  }
  const OpInfo& op = info(n.op);
  std::vector<std::string> parts;
  for (size_t at = 1; at < n.size(); at += nodes[at].size())
    parts.push_back(pattern_text(nodes.subspan(at)));
  if (op.arity == 2 && !std::isalpha(static_cast<unsigned char>(op.symbol[0])))
    return cat("(", parts[0], " ", op.symbol, " ", parts[1], ")");
  return cat(op.symbol, "(", join(parts, ", "), ")");
}

// a op b in int64; none on overflow.
std::optional<int64_t> checked_binary(Op op, int64_t a, int64_t b) {
  int64_t r = 0;
  switch (op) {
    case Op::Add:
      if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
      return r;
    case Op::Mul:
      if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
      return r;
    case Op::FloorDiv:
    case Op::FloorMod:
      if (b == 0 || (a == INT64_MIN && b == -1)) return std::nullopt;
      return op == Op::FloorDiv ? floor_div(a, b) : floor_mod(a, b);
    case Op::Less:
      return a < b;
    case Op::LessEqual:
      return a <= b;
    case Op::Equal:
      return a == b;
    case Op::NotEqual:
      return a != b;
    case Op::And:
      return a & b;
    case Op::Or:
      return a | b;
    case Op::Min:
      return std::min(a, b);
    case Op::Max:
      return std::max(a, b);
    default:
      break;
  }
  invariant(false, "a condition is made of + * / % < <= == != && || min max - !");
  return std::nullopt;
}

std::optional<int64_t> constant_value(const UOp& u) {
  if (!u.is_const() || u.dtype().is_float()) return std::nullopt;
  const int64_t v = u.const_int();
  if (u.dtype().scalar == ScalarType::UInt64 && v < 0) return std::nullopt;
  return v;
}

std::optional<int64_t> evaluate_leaf(const PatternNode& n, const Match& match) {
  switch (n.kind) {
    case Kind::Integer:
      return n.integer();
    case Kind::Wildcard:
      return constant_value(match[n.wildcard()]);
    case Kind::Lowest:
      return match.bounds(match[n.wildcard()]).lo;
    case Kind::Highest:
      return match.bounds(match[n.wildcard()]).hi;
    default:
      return std::nullopt;
  }
}

// The operands of a node being built; literals wait for the dtype of a sibling.
struct Operand {
  UOp value;
  const PatternNode* literal = nullptr;
};

UOp resolved(const Operand& o, Graph& graph, DType dtype) {
  return o.literal ? graph.constant_bits(dtype, literal_bits(*o.literal, dtype)) : o.value;
}

UOp build_node(Op op, std::span<const Operand> operands, const Match& match) {
  const size_t first = op == Op::Where ? 1 : 0;
  DType dtype = match.root().dtype();
  for (size_t i = operands.size(); i-- > first;)
    if (!operands[i].literal) dtype = operands[i].value.dtype();
  std::vector<UOp> src;
  for (size_t i = 0; i < operands.size(); ++i)
    src.push_back(resolved(operands[i], match.graph(), i < first ? kBool : dtype));
  invariant(info(op).result != OpResult::Declared, "a rule that makes a cast is code");
  return elementwise(op, std::move(src));
}

}  // namespace

std::string to_string(PatternNodes pattern) {
  return pattern_text(pattern);
}

bool match_in_order(PatternNodes nodes, const UOp& u, Match& match) {
  std::array<const UOp*, Pattern::kNodesMax> at;
  at[0] = &u;
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].kind != Kind::Node) {
      if (!matches_leaf(nodes[n], *at[n], match)) return false;
      continue;
    }
    if (at[n]->op() != nodes[n].op) return false;
    if (nodes[n].size() == 1) continue;  // of an op with any number of sources: all of them
    size_t child = n + 1;
    for (const UOp& s : at[n]->src()) {
      at[child] = &s;
      child += nodes[child].size();
    }
  }
  return true;
}

UOp build(PatternNodes nodes, const Match& match) {
  std::array<Operand, Pattern::kNodesMax> built;  // of the subtree that starts at each position
  for (size_t n = nodes.size(); n-- > 0;) {
    const PatternNode& node = nodes[n];
    if (node.kind == Kind::Wildcard) {
      built[n].value = match[node.wildcard()];
    } else if (node.kind != Kind::Node) {
      built[n].literal = &node;
    } else {
      std::array<Operand, 3> operands;
      size_t count = 0;
      for (size_t at = n + 1; at < n + node.size(); at += nodes[at].size())
        operands[count++] = built[at];
      built[n].value = build_node(node.op, {operands.data(), count}, match);
    }
  }
  return resolved(built[0], match.graph(), match.root().dtype());
}

std::optional<int64_t> evaluate(PatternNodes nodes, const Match& match) {
  std::array<std::optional<int64_t>, Pattern::kNodesMax> value;
  for (size_t n = nodes.size(); n-- > 0;) {
    const PatternNode& node = nodes[n];
    if (node.kind != Kind::Node) {
      value[n] = evaluate_leaf(node, match);
      continue;
    }
    const auto a = value[n + 1];
    if (info(node.op).arity == 1) {
      if (a && node.op == Op::Not) value[n] = *a == 0;
      if (a && node.op == Op::Neg && *a != INT64_MIN) value[n] = -*a;
      continue;
    }
    const auto b = value[n + 1 + nodes[n + 1].size()];
    // A false side decides, whatever overflowed on the other: `c0 > 0 && 7 % c0 == 1`.
    const bool decided = node.op == Op::And && (a == 0 || b == 0);
    if (decided) {
      value[n] = 0;
    } else if (a && b) {
      value[n] = checked_binary(node.op, *a, *b);
    }
  }
  return value[0];
}

namespace {

void append_nodes(std::vector<PatternNode>& to, PatternNodes from) {
  to.insert(to.end(), from.begin(), from.end());
}

// Every order of the subtree at the front of `nodes`.
std::vector<std::vector<PatternNode>> orders(PatternNodes nodes) {
  const PatternNode& root = nodes[0];
  std::vector<std::vector<PatternNode>> found{{root}};
  if (root.kind != Kind::Node) return found;
  std::vector<std::vector<std::vector<PatternNode>>> children;
  for (size_t at = 1; at < root.size(); at += nodes[at].size())
    children.push_back(orders(nodes.subspan(at, nodes[at].size())));
  const auto extended = [&](bool swapped) {
    std::vector<std::vector<PatternNode>> all{{root}};
    for (size_t c = 0; c < children.size(); ++c) {
      std::vector<std::vector<PatternNode>> longer;
      for (const auto& prefix : all)
        for (const auto& child : children[swapped ? children.size() - 1 - c : c]) {
          longer.push_back(prefix);
          append_nodes(longer.back(), child);
        }
      all = std::move(longer);
    }
    return all;
  };
  found = extended(false);
  if (!has(root.op, kCommutative)) return found;
  for (auto& other : extended(true)) {
    bool known = false;
    for (const auto& f : found) known |= f == other;
    if (!known) found.push_back(std::move(other));
  }
  return found;
}

}  // namespace

std::vector<Pattern> commuted_forms(PatternNodes pattern) {
  std::vector<Pattern> forms;
  for (const auto& nodes : orders(pattern)) forms.push_back(Pattern::of_nodes(nodes));
  return forms;
}

}  // namespace tiny
