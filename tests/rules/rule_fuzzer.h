// Tries a rule on random values: wherever its condition holds, both sides must agree bit for bit (a
// NaN with any NaN).  One fuzzer serves every table of rules.
//
//   Data rules   wildcards are opaque values of each dtype that the left side admits, with
//   infinities,
//                NaN, -0.0, denormals, the ends of the integers; arithmetic wraps.
//   Index rules  wildcards are random small expressions over variables with known bounds.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"
#include "ir/fold.h"
#include "ir/rewrite.h"

namespace tiny {

struct FuzzResult {
  int trials = 0;
  int hits = 0;         // trials where the rule applied
  std::string failure;  // the first disagreement; empty if none
};

class RuleFuzzer {
 public:
  RuleFuzzer(const Rule& rule, bool index_only, uint32_t seed)
      : rule_(rule), index_(index_only), rng_(seed) {}

  // Tries until `hits` matches or `trials` tries.
  FuzzResult run(int hits, int trials) {
    FuzzResult result;
    const std::vector<DType> dtypes = admitted();
    while (result.hits < hits && result.trials < trials && result.failure.empty()) {
      ++result.trials;
      Graph graph;
      trial(graph, dtypes[pick(dtypes.size())], result);
      bound_ = {};  // before the graph goes
      inputs_.clear();
    }
    return result;
  }

 private:
  size_t pick(size_t n) { return rng_() % n; }

  // The dtypes that wildcards without a type of their own may have.
  std::vector<DType> admitted() const {
    if (index_) return {kInt64};
    bool ints = false, floats = false, bits = false, value = false;
    for (const PatternNode& n : rule_.left()) {
      if (n.kind == PatternNode::Kind::Node) {
        floats |= has(n.op, kFloatOperands);
        bits |= has(n.op, kIntOperands) && has(n.op, kLogicOperands);
        ints |= has(n.op, kIntOperands) && !has(n.op, kLogicOperands);
      } else if (n.kind == PatternNode::Kind::Float) {
        floats = true;
      } else if (n.kind == PatternNode::Kind::Wildcard) {
        ints |= n.wildcard() == Wildcard::i || n.wildcard() == Wildcard::j ||
                n.wildcard() == Wildcard::k;
        floats |= n.wildcard() == Wildcard::f || n.wildcard() == Wildcard::h;
        value |= n.wildcard() != Wildcard::b && n.wildcard() != Wildcard::d;
      }
    }
    const std::vector<DType> whole = {kInt8,  kInt16,  kInt32,  kInt64,
                                      kUInt8, kUInt16, kUInt32, kUInt64};
    if (floats) return {kFloat16, kBFloat16, kFloat32, kFloat64};
    if (ints) return whole;
    std::vector<DType> all = whole;
    all.push_back(kBool);
    if (!value) return {kBool};
    if (!bits) all.insert(all.end(), {kFloat16, kBFloat16, kFloat32, kFloat64});
    return all;
  }

  int64_t small_constant() {
    static constexpr int64_t kLikely[] = {0, 1, 2, 3, 4, 5, 6, 8, 12, 15, 16, 31, -1, -2, -3, -4};
    return kLikely[pick(std::size(kLikely))];
  }

  uint64_t random_bits(DType t) {
    if (t.is_bool()) return pick(2);
    if (t.is_float()) {
      static const double kSpecial[] = {0.0, -0.0,     1.0,       -1.0, 2.0,  0.5,  3.0,  1e-7,
                                        6e4, INFINITY, -INFINITY, NAN,  1e30, 4e-8, 0.25, -7.75};
      if (pick(3)) return bits_of(t, kSpecial[pick(std::size(kSpecial))]);
      const uint64_t any = static_cast<uint64_t>(rng_()) << 32 | rng_();
      return t.bits() == 64 ? any : any & ((uint64_t{1} << t.bits()) - 1);
    }
    switch (pick(4)) {
      case 0:
        return pick(2) ? lowest_bits(t) : highest_bits(t);
      case 1:
        return bits_of_int(t, static_cast<int64_t>(static_cast<uint64_t>(rng_()) << 32 | rng_()));
      default:
        return bits_of_int(t, small_constant());
    }
  }

  UOp index_expression(int depth) {
    Graph& g = inputs_[0].graph();
    if (depth == 0 || pick(4) == 0) return pick(5) ? inputs_[pick(3)] : g.integer(small_constant());
    const auto sub = [&] { return index_expression(depth - 1); };
    switch (pick(7)) {
      case 0:
        return g.make(Op::Mul, {sub(), g.integer(small_constant())});
      case 1:
        return g.make(Op::FloorDiv, {sub(), g.integer(1 + static_cast<int64_t>(pick(12)))});
      case 2:
        return g.make(Op::FloorMod, {sub(), g.integer(1 + static_cast<int64_t>(pick(12)))});
      case 3:
        return g.make(pick(2) ? Op::Min : Op::Max, {sub(), sub()});
      case 4:
        return g.make(Op::Neg, {sub()});
      default:
        return g.make(Op::Add, {sub(), sub()});
    }
  }
  UOp index_condition(int depth) {
    Graph& g = inputs_[0].graph();
    static constexpr Op kOps[] = {Op::Less, Op::LessEqual, Op::Equal, Op::NotEqual};
    if (depth > 0 && pick(4) == 0)
      return g.make(pick(2) ? Op::And : Op::Or, {index_condition(0), index_condition(0)});
    return g.make(kOps[pick(4)], {index_expression(depth), index_expression(depth)});
  }

  bool is_constant(Wildcard w) {
    return w == Wildcard::c0 || w == Wildcard::c1 || w == Wildcard::c2;
  }
  bool is_bool(Wildcard w) { return w == Wildcard::b || w == Wildcard::d; }

  UOp leaf(Graph& g, Wildcard w, DType t) {
    if (bound_[static_cast<size_t>(w)]) return bound_[static_cast<size_t>(w)];
    UOp made;
    if (is_constant(w)) {
      made = index_ ? g.integer(small_constant()) : g.constant_bits(t, random_bits(t));
    } else if (index_) {
      made = is_bool(w) ? index_condition(1) : index_expression(static_cast<int>(pick(4)));
    } else {
      made = g.make(Op::Buffer, {}, static_cast<int64_t>(inputs_.size()), is_bool(w) ? kBool : t);
      inputs_.push_back(made);
    }
    return bound_[static_cast<size_t>(w)] = made;
  }

  DType any_dtype() {
    static constexpr DType kAll[] = {kBool,     kInt8,    kInt16,  kInt32,  kInt64,
                                     kUInt8,    kUInt16,  kUInt32, kUInt64, kFloat16,
                                     kBFloat16, kFloat32, kFloat64};
    return kAll[pick(std::size(kAll))];
  }

  DType cast_target(Op op, DType from) {
    for (;;) {
      const DType to = any_dtype();
      if (op == Op::Cast || (to.bits() == from.bits() && !to.is_bool())) return to;
    }
  }

  // The left side as written, nothing folded.
  UOp written(Graph& g, std::span<const PatternNode> nodes, DType t) {
    const PatternNode& n = nodes[0];
    if (n.kind == PatternNode::Kind::Wildcard) return leaf(g, n.wildcard(), t);
    if (n.kind == PatternNode::Kind::Integer) return g.constant_int(t, n.integer());
    if (n.kind == PatternNode::Kind::Float) return g.constant(t, n.real());
    std::vector<UOp> src;
    size_t child = 0;
    for (size_t at = 1; at < n.size(); at += nodes[at].size(), ++child) {
      // What a choice or a truth operation takes is bool whatever the rest is.
      const bool condition = (n.op == Op::Where && child == 0);
      // An operand that is a cast is one to what the others are, of anything.
      if (nodes[at].op == Op::Cast && nodes[at].kind == PatternNode::Kind::Node &&
          n.op != Op::Cast) {
        src.push_back(g.make(Op::Cast, {written(g, nodes.subspan(at + 1), any_dtype())}, {}, t));
        continue;
      }
      src.push_back(written(g, nodes.subspan(at), condition ? kBool : operand_dtype(nodes, t)));
    }
    const DType from = src.back().dtype();
    const bool declared = info(n.op).result == OpResult::Declared;
    return g.make(n.op, std::move(src), {}, declared ? cast_target(n.op, from) : kVoid);
  }
  // Literals beside bool wildcards and comparisons are bool.
  DType operand_dtype(std::span<const PatternNode> nodes, DType t) {
    const PatternNode& n = nodes[0];
    for (size_t at = 1; at < n.size(); at += nodes[at].size()) {
      if (n.op == Op::Where && at == 1) continue;
      if (nodes[at].kind == PatternNode::Kind::Wildcard && is_bool(nodes[at].wildcard()))
        return kBool;
    }
    return t;
  }

  void trial(Graph& g, DType t, FuzzResult& result) {
    if (index_)
      for (const char* name : {"p", "q", "r"}) {
        const int64_t lo = pick(3) ? 0 : -static_cast<int64_t>(pick(9));
        inputs_.push_back(g.variable(name, lo, lo + static_cast<int64_t>(pick(20))));
      }
    const UOp before = written(g, rule_.left(), t);
    BoundsCache cache;
    Match match(before, cache, {});
    if (!match_in_order(rule_.left(), before, match)) return;
    if (evaluate(rule_.condition(), match).value_or(0) == 0) return;
    if (rule_.when && !rule_.when(match)) return;
    const UOp after = rule_.code ? rule_.code(match) : build(rule_.right(), match);
    if (!after) return;
    ++result.hits;
    compare(before, after, result);
  }

  void compare(const UOp& before, const UOp& after, FuzzResult& result) {
    if (!(before.dtype() == after.dtype())) {
      result.failure = cat(to_string(rule_), ": the dtype changes");
      return;
    }
    Evaluator left(before, inputs_), right(after, inputs_);
    for (int sample = 0; sample < (index_ ? 40 : 12) && result.failure.empty(); ++sample) {
      std::vector<uint64_t> in;
      for (const UOp& u : inputs_) {
        if (index_) {
          const VariableArg& v = u.variable_arg();
          in.push_back(static_cast<uint64_t>(v.min) + pick(static_cast<size_t>(v.max - v.min + 1)));
        } else {
          in.push_back(random_bits(u.dtype()));
        }
      }
      const uint64_t l = left(in), r = right(in);
      const DType t = before.dtype();
      if (l == r || (t.is_float() && std::isnan(double_of(t, l)) && std::isnan(double_of(t, r))))
        continue;
      result.failure = cat("FALSE RULE ", to_string(rule_), "\n  ", expression_text(before), " of ",
                           to_string(t), " is ", double_of(t, l), " but ", expression_text(after),
                           " is ", double_of(t, r), " at");
      for (size_t i = 0; i < in.size(); ++i)
        result.failure += cat(" ", double_of(inputs_[i].dtype(), in[i]));
    }
  }

  const Rule& rule_;
  bool index_;
  std::mt19937 rng_;
  std::array<UOp, kWildcards> bound_;
  std::vector<UOp> inputs_;
};

}  // namespace tiny
