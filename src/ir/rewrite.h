// Rewriting to a fixed point by rules.
//
// Bottom-up, on an explicit stack (graphs may be a million nodes deep), memoised: a node is rebuilt
// on its rewritten sources, then the first rule that matches is applied, then what it made is
// rewritten in turn, so that only users of what changed are looked at again.  An elementwise op on
// constants folds before any rule is tried.  A Range is a variable: it stays as it is, and so does
// its size.  Rules that do not terminate are Error{Internal} that
// names one of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/node_map.h"
#include "ir/rule_table.h"

namespace tiny {

// Tables composed in order and compiled into a dispatch on the root op; of several rules that match
// the first is taken.  Owns no memory, so that a set that is built on first use and never destroyed
// leaves nothing behind when the library is unloaded.
class RuleSet {
 public:
  RuleSet(std::initializer_list<RuleTable> tables);
  std::span<const Rule> rules() const { return {rules_.data(), rule_count_}; }
  // The names of the tables that rules()[i] stand in.
  std::span<const char* const> tables() const { return {tables_.data(), rule_count_}; }

 private:
  friend class Rewriter;
  static constexpr size_t kRulesMax = 256, kFormsMax = 512, kNodesMax = 4096;
  struct Form {  // one order of the operands of one rule
    uint16_t first_node;
    uint16_t nodes;
    uint16_t rule;
    bool index_only;
    // What the first two sources have to be, by op: most forms are told from the node by that.
    std::array<uint8_t, 2> sources;

    bool may_match(const UOp& u) const {
      const std::span<const UOp> src = u.src();
      for (size_t i = 0; i < std::min(src.size(), sources.size()); ++i)
        if (sources[i] != kAnyOp && sources[i] != static_cast<uint8_t>(src[i].op())) return false;
      return true;
    }
  };
  static constexpr uint8_t kAnyOp = 0xFF;
  static_assert(kOpCount < kAnyOp);
  static std::array<uint8_t, 2> sources_of(std::span<const PatternNode> form);
  std::span<const Form> forms_of(Op op) const {
    const auto i = static_cast<size_t>(op);
    return {forms_.data() + first_form_[i], size_t{first_form_[i + 1]} - first_form_[i]};
  }
  std::span<const PatternNode> left_of(const Form& form) const {
    return {nodes_.data() + form.first_node, form.nodes};
  }

  size_t rule_count_ = 0;
  std::array<Rule, kRulesMax> rules_{};
  std::array<const char*, kRulesMax> tables_{};
  std::array<uint16_t, kOpCount + 1> first_form_{};  // by op
  std::array<Form, kFormsMax> forms_{};
  std::array<PatternNode, kNodesMax> nodes_{};
};

// What each rule of a set did, in the order of RuleSet::rules().
struct RewriteStats {
  struct Row {
    const Rule* rule = nullptr;
    const char* table = "";
    uint64_t tries = 0;
    uint64_t matches = 0;
    double seconds = 0;
  };
  std::vector<Row> rows;
  uint64_t folded = 0;  // ops on constants
};

// The rows that were tried, most time first, one a line.
std::string to_string(const RewriteStats& stats);

// What one rule did.
struct RewriteStep {
  const Rule* rule = nullptr;  // null: constant folding
  const char* table = "";      // where the rule stands
  const UOp& before;
  const UOp& after;
};
using Trace = std::function<void(const RewriteStep& step)>;

// An expression cut off below some depth: what a step shows must stay readable, and a graph that
// grows without end has no full text.
std::string short_text(const UOp& u, int depth = 8);

// A step as TINY_DEBUG=7 prints it: the rule with its table and line, what was, what is.
std::string to_string(const RewriteStep& step);

// What all rewriting of a graph's nodes reports to (Graph::set_watch) where its caller asks for
// nothing else.
struct RewriteWatch {
  Trace trace;         // empty: steps are not told
  bool count = false;  // whether `stats` is kept
  std::map<const RuleSet*, RewriteStats> stats;
};

// Keeps its memo between calls, and with it every node that it saw: for passes that rewrite many
// expressions of one graph.  Dies before the graph.
class Rewriter {
 public:
  struct Options {
    RewriteStats* stats = nullptr;
    const Trace* trace = nullptr;
    std::span<const Affine> facts = {};  // known to be >= 0; copied
    bool only_elementwise = false;       // other nodes are leaves, kept as they are
  };
  explicit Rewriter(const RuleSet& rules);
  Rewriter(const RuleSet& rules, const Options& options);

  UOp operator()(const UOp& root);
  BoundsCache& bounds() { return bounds_; }
  std::span<const Affine> facts() const { return facts_; }
  void clear();  // forgets every node

 private:
  struct Frame {
    UOp node;           // what is being rewritten
    UOp rebuilt;        // on rewritten sources
    UOp waiting;        // what a rule made of it
    uint32_t next = 0;  // source
    uint32_t generation = 0;
  };

  void attach(RewriteWatch& watch);
  void keep(RewriteStats& stats);
  static constexpr uint32_t kFolding = UINT32_MAX;  // in place of a rule's number
  RewriteStep step_of(uint32_t rule, const UOp& before, const UOp& after) const;
  bool step(Frame& frame);
  bool is_leaf(const UOp& u) const;
  UOp on_rewritten_sources(const UOp& u) const;
  void finish(const UOp& result);
  UOp apply(const UOp& u, uint32_t* applied);
  UOp try_form(const RuleSet::Form& form, const UOp& u, Match& match) const;
  void count(const RuleSet::Form& form, bool matched, double seconds);

  const RuleSet* rules_;
  Options options_;
  bool watched_ = false;  // the graph's watch is attached
  std::vector<Affine> facts_;
  BoundsCache bounds_;
  NodeMap<UOp> done_;
  std::vector<Frame> stack_;
};

// `root` rewritten by `rules`.
UOp rewrite(const UOp& root, const RuleSet& rules, RewriteStats* stats = nullptr,
            const Trace* trace = nullptr);

}  // namespace tiny
