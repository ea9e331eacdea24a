#include "ir/rewrite.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/sort.h"
#include "ir/fold.h"

namespace tiny {

namespace {

// How often what a rule made may be rewritten in turn.  Honest rules stay far below.
constexpr uint32_t kGenerationsMax = 2000;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A node of a pattern has the sources of its op, or none if the op may have any number.
void check_arities(PatternNodes nodes) {
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].kind != PatternNode::Kind::Node) continue;
    int children = 0;
    for (size_t at = n + 1; at < n + nodes[n].size(); at += nodes[at].size()) ++children;
    const int arity = info(nodes[n].op).arity;
    invariant(children == (arity == kVariadic ? 0 : arity), "a pattern has its op's sources");
  }
}

bool is_of_constants(Wildcard name) {
  return name == Wildcard::c0 || name == Wildcard::c1 || name == Wildcard::c2;
}

bool is_index_scalar(const UOp& u) {
  // Of a comparison the operands count, of a Where its values, of a connective its own dtype.
  const DType t = u.src().empty() ? u.dtype() : u.src().back().dtype();
  return t == kInt64 || (t == kBool && u.dtype() == kBool);
}

}  // namespace

// A literal, and a wildcard of constants, is a Const.
std::array<uint8_t, 2> RuleSet::sources_of(std::span<const PatternNode> form) {
  std::array<uint8_t, 2> ops{kAnyOp, kAnyOp};
  size_t source = 0;
  for (size_t at = 1; at < form.size() && source < ops.size(); at += form[at].size(), ++source) {
    const PatternNode& node = form[at];
    if (node.kind == PatternNode::Kind::Node)
      ops[source] = static_cast<uint8_t>(node.op);
    else if (node.kind != PatternNode::Kind::Wildcard || is_of_constants(node.wildcard()))
      ops[source] = static_cast<uint8_t>(Op::Const);
  }
  return ops;
}

RuleSet::RuleSet(std::initializer_list<RuleTable> tables) {
  std::array<std::vector<Form>, kOpCount> by_op;
  size_t nodes = 0;
  for (const RuleTable& table : tables)
    for (const Rule& rule : table.rules()) {
      const PatternNode& root = rule.left().front();
      invariant(root.kind == PatternNode::Kind::Node, "the left side of a rule is an op");
      check_arities(rule.left());
      invariant(rule_count_ < kRulesMax, "a set has room for its rules");
      rules_[rule_count_] = rule;
      tables_[rule_count_] = table.name;
      for (const Pattern& left : commuted_forms(rule.left())) {
        const std::span<const PatternNode> form = left.nodes();
        invariant(nodes + form.size() <= kNodesMax, "a set has room for its patterns");
        std::copy(form.begin(), form.end(), nodes_.begin() + static_cast<std::ptrdiff_t>(nodes));
        by_op[static_cast<size_t>(root.op)].push_back(
            {static_cast<uint16_t>(nodes), static_cast<uint16_t>(form.size()),
             static_cast<uint16_t>(rule_count_), table.index_only, sources_of(form)});
        nodes += form.size();
      }
      ++rule_count_;
    }
  size_t count = 0;
  for (size_t op = 0; op < kOpCount; ++op) {
    invariant(count + by_op[op].size() <= kFormsMax, "a set has room for its forms");
    first_form_[op] = static_cast<uint16_t>(count);
    for (const Form& form : by_op[op]) forms_[count++] = form;
  }
  first_form_[kOpCount] = static_cast<uint16_t>(count);
}

std::string to_string(const RewriteStats& stats) {
  std::vector<RewriteStats::Row> rows;
  for (const RewriteStats::Row& row : stats.rows)
    if (row.tries) rows.push_back(row);
  sort_stable(rows, [](const auto& a, const auto& b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.rule < b.rule;
  });
  std::string out = cat(stats.folded, " folded\n");
  for (const RewriteStats::Row& row : rows)
    out += cat(row.matches, " of ", row.tries, " in ", row.seconds * 1e6, " us  ", row.table, " ",
               to_string(*row.rule), "\n");
  return out;
}

std::string short_text(const UOp& u, int depth) {
  if (u.src().empty()) return expression_text(u);
  if (depth == 0) return "...";
  if (u.op() == Op::Range) return cat("r", arg_text(u));
  const OpInfo& op = info(u.op());
  std::vector<std::string> parts;
  for (const UOp& s : u.src()) parts.push_back(short_text(s, depth - 1));
  if (op.arity == 2 && has(u.op(), kElementwise))
    return cat("(", parts[0], " ", op.symbol, " ", parts[1], ")");
  return cat(op.symbol, "(", join(parts, ", "), ")");
}

std::string to_string(const RewriteStep& step) {
  return cat(step.rule ? cat(step.table, " ", to_string(*step.rule)) : "constant folding", "\n  ",
             short_text(step.before), "\n  -> ", short_text(step.after));
}

Rewriter::Rewriter(const RuleSet& rules) : Rewriter(rules, Options{}) {
}

Rewriter::Rewriter(const RuleSet& rules, const Options& options)
    : rules_(&rules), options_(options), facts_(options.facts.begin(), options.facts.end()) {
  options_.facts = {};  // the copy counts
  if (options_.stats) keep(*options_.stats);
}

// Makes a row for each rule.
void Rewriter::keep(RewriteStats& stats) {
  options_.stats = &stats;
  const size_t count = rules_->rules().size();
  if (stats.rows.size() == count) return;
  stats.rows.assign(count, {});
  for (size_t i = 0; i < count; ++i) {
    stats.rows[i].rule = &rules_->rules()[i];
    stats.rows[i].table = rules_->tables()[i];
  }
}

void Rewriter::attach(RewriteWatch& watch) {
  watched_ = true;
  if (!options_.trace && watch.trace) options_.trace = &watch.trace;
  if (!options_.stats && watch.count) keep(watch.stats[rules_]);
}

void Rewriter::clear() {
  done_.clear();
  bounds_.clear();
}

UOp Rewriter::operator()(const UOp& root) {
  if (const UOp* known = done_.find(root)) return *known;
  if (RewriteWatch* watch = root.graph().watch(); watch && !watched_) attach(*watch);
  stack_.clear();
  stack_.push_back({root, {}, {}, 0, 0});
  while (!stack_.empty())
    if (step(stack_.back())) stack_.pop_back();
  return *done_.find(root);
}

bool Rewriter::is_leaf(const UOp& u) const {
  return u.src().empty() || u.op() == Op::Range ||
         (options_.only_elementwise && !has(u.op(), kElementwise));
}

UOp Rewriter::on_rewritten_sources(const UOp& u) const {
  if (is_leaf(u)) return u;
  bool changed = false;
  for (const UOp& s : u.src()) changed |= !(*done_.find(s) == s);
  if (!changed) return u;
  std::vector<UOp> src;
  src.reserve(u.src().size());
  for (const UOp& s : u.src()) src.push_back(*done_.find(s));
  return u.with_src(src);
}

// Records that the frame on top is `result`, which no rule changes.
void Rewriter::finish(const UOp& result) {
  const Frame& frame = stack_.back();
  done_.insert(frame.node, result);
  if (frame.rebuilt) done_.insert(frame.rebuilt, result);
  done_.insert(result, result);
}

RewriteStep Rewriter::step_of(uint32_t rule, const UOp& before, const UOp& after) const {
  if (rule == kFolding) return {nullptr, "", before, after};
  return {&rules_->rules_[rule], rules_->tables_[rule], before, after};
}

// One step of the frame on top; true when it is done.  A push invalidates `frame`.
bool Rewriter::step(Frame& frame) {
  frame.node.graph().look();
  if (frame.waiting) {
    finish(UOp(*done_.find(frame.waiting)));
    return true;
  }
  if (!is_leaf(frame.node)) {
    while (frame.next < frame.node.src().size()) {
      const UOp& s = frame.node.src(frame.next);
      if (!done_.contains(s)) {
        Frame below{s, {}, {}, 0, frame.generation};
        stack_.push_back(std::move(below));
        return false;
      }
      ++frame.next;
    }
  }
  frame.rebuilt = on_rewritten_sources(frame.node);
  if (const UOp* known = done_.find(frame.rebuilt)) {
    finish(UOp(*known));
    return true;
  }
  uint32_t rule = kFolding;
  UOp after = apply(frame.rebuilt, &rule);
  if (!after) {
    finish(UOp(frame.rebuilt));
    return true;
  }
  if (const UOp* known = done_.find(after)) {
    finish(UOp(*known));
    return true;
  }
  if (frame.generation >= kGenerationsMax)
    throw_error(Status::Internal, "rewriting does not end; the last step was ",
                to_string(step_of(rule, frame.rebuilt, after)));
  frame.waiting = after;
  Frame next{std::move(after), {}, {}, 0, frame.generation + 1};
  stack_.push_back(std::move(next));
  return false;
}

UOp Rewriter::try_form(const RuleSet::Form& form, const UOp& u, Match& match) const {
  const Rule& rule = rules_->rules_[form.rule];
  match.unbind_all();
  if (!match_in_order(rules_->left_of(form), u, match)) return {};
  const PatternNode& condition = rule.condition().front();
  const bool always = condition.kind == PatternNode::Kind::Integer && condition.integer() == 1;
  if (!always && evaluate(rule.condition(), match).value_or(0) == 0) return {};
  if (rule.when && !rule.when(match)) return {};
  UOp after = rule.code ? rule.code(match) : build(rule.right(), match);
  if (after == u) return {};
  if (after) invariant(after.dtype() == u.dtype(), "a rule keeps the dtype");
  return after;
}

void Rewriter::count(const RuleSet::Form& form, bool matched, double seconds) {
  RewriteStats::Row& row = options_.stats->rows[form.rule];
  ++row.tries;
  row.matches += matched;
  row.seconds += seconds;
}

// What the first rule that matches makes of `u`; no node if none does.
UOp Rewriter::apply(const UOp& u, uint32_t* applied) {
  if (is_leaf(u)) return {};
  if (auto value = fold(u.op(), u.src(), u.dtype())) {
    if (options_.stats) ++options_.stats->folded;
    if (options_.trace) (*options_.trace)(step_of(kFolding, u, *value));
    return *value;
  }
  const std::span<const RuleSet::Form> forms = rules_->forms_of(u.op());
  if (forms.empty()) return {};
  const bool index = is_index_scalar(u);
  const OriginScope scope(u);
  Match match(u, bounds_, facts_);
  for (const RuleSet::Form& form : forms) {
    if ((form.index_only && !index) || !form.may_match(u)) continue;
    const double start = options_.stats ? now_seconds() : 0;
    UOp after = try_form(form, u, match);
    if (options_.stats) count(form, static_cast<bool>(after), now_seconds() - start);
    if (!after) continue;
    *applied = form.rule;
    if (options_.trace) (*options_.trace)(step_of(form.rule, u, after));
    return after;
  }
  return {};
}

UOp rewrite(const UOp& root, const RuleSet& rules, RewriteStats* stats, const Trace* trace) {
  Rewriter::Options options;
  options.stats = stats;
  options.trace = trace;
  return Rewriter(rules, options)(root);
}

}  // namespace tiny
