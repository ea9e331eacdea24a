#include "codegen/linear/masked_blocks.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/checked.h"
#include "codegen/linearize/needed_terms.h"
#include "ir/affine.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "rules/symbolic.h"

namespace tiny {

namespace {

using Renaming = std::vector<std::pair<UOp, UOp>>;

// Steps at `place` or before, or from there on, are needed.
struct Bound {
  bool is_end = false;
  Affine place;  // of what is open around all of the walks
  bool operator==(const Bound&) const = default;
};

// A reduction, or what fills a stage, along steps that a mask may leave out.
struct Walk {
  UOp closer;
  std::vector<UOp> steps;       // the ranges, among those that it closes, that number the steps
  std::vector<UOp> conditions;  // each is >= 0 for every step that is needed
  UOp loop;                     // the outermost of these ranges; no node: it is something else's
  int64_t apart = 0;            // steps between its turns
  std::vector<Bound> bounds;
};

// Where a stage is read.
struct Reader {
  UOp closer;
  UOp index;  // no node: the stage is filled where it is read
};

bool is_compared(const UOp& u) {
  return (u.op() == Op::Less || u.op() == Op::LessEqual) && u.src(0).dtype() == kInt64;
}

class Masks {
 public:
  explicit Masks(Kernel& kernel) : kernel_(kernel), order_(topological(kernel.roots)) {}

  void run() {
    const auto is_running = [](const UOp& u) { return u.op() == Op::Running; };
    is_streamed_ = std::ranges::any_of(order_, is_running);
    if (is_streamed_ ? kernel_.facts.empty() : std::ranges::none_of(order_, is_compared)) return;
    add_free_ranges(kernel_, kernel_.roots, free_);
    for (const UOp& fact : kernel_.facts) add_free_ranges(kernel_, {&fact, 1}, free_);
    if (!is_streamed_) expand();
    find_readers();
    for (size_t i = order_.size(); i-- > 0;) {  // readers before what they read
      if (order_[i].op() == Op::Reduce) add_reduction(order_[i]);
      if (order_[i].op() == Op::Stage) add_stage(order_[i]);
    }
    if (walks_.empty() || !find_blocks()) return;
    for (const Walk& w : walks_)
      if (w.loop && (!is_streamed_ || is_stage(w.closer))) add_facts(w);
  }

 private:
  // The kernel's values with what stages hold in place of their elements.
  void expand() {
    for (const UOp& u : order_) {
      if (u.op() == Op::Stage) {
        expanded_.insert(u, UOp(expanded(u.src(0))));
      } else if (u.op() == Op::Index) {
        expanded_.insert(u, substitute(expanded(u.src(0)), coordinates(u)));
      } else if (!closes_ranges(u) && std::ranges::any_of(u.src(), [&](const UOp& s) {
                   return expanded_.contains(s);
                 })) {
        std::vector<UOp> src;
        for (const UOp& s : u.src()) src.push_back(expanded(s));
        expanded_.insert(u, u.with_src(src));
      }
    }
  }
  const UOp& expanded(const UOp& u) const {
    const UOp* other = expanded_.find(u);
    return other ? *other : u;
  }

  // What the ranges of a stage are at an element.
  static Renaming coordinates(const UOp& index) {
    Renaming out;
    for (size_t i = 1; i < index.src().size(); ++i)
      if (!(index.src(0).src(i) == index.src(i)))
        out.emplace_back(index.src(0).src(i), index.src(i));
    return out;
  }

  void find_readers() {
    std::vector<UOp> closers = kernel_.roots;
    for (const UOp& u : order_)
      if (closes_ranges(u)) closers.push_back(u);
    for (const UOp& closer : closers) {
      const std::span<const UOp> from =
          closes_ranges(closer) ? closer.src().first(1) : closer.src();
      for (const UOp& s : from) note_stage(closer, s);
      for (const UOp& u : topological(from, closes_ranges)) {
        if (closes_ranges(u)) {
          users_[u.node()].push_back(closer);
          continue;
        }
        if (u.op() == Op::Index) readers_[u.src(0).node()].push_back({closer, u});
        for (const UOp& s : u.src())
          if (u.op() != Op::Index) note_stage(closer, s);
      }
    }
  }
  void note_stage(const UOp& closer, const UOp& u) {
    if (u.op() == Op::Stage) readers_[u.node()].push_back({closer, {}});
  }

  const Walk* walk_of(const UOp& closer) const {
    const auto found = std::ranges::find(walks_, closer, &Walk::closer);
    return found == walks_.end() ? nullptr : &*found;
  }

  void add_reduction(const UOp& reduce) {
    Walk walk{reduce, {reduce.src().begin() + 1, reduce.src().end()}, {}, {}, 0, {}};
    if (is_streamed_)
      walk.conditions = sizes_of_blocks(reduce);
    else
      walk.conditions = needed_terms(expanded(reduce.src(0)), reduce.reduce_arg().op);
    if (keep(std::move(walk)) || !is_streamed_) return;
    // What is computed for each step of something else is needed where that is.
    const std::vector<UOp>& users = users_[reduce.node()];
    const Walk* around = users.size() == 1 ? walk_of(users.front()) : nullptr;
    if (around) walks_.push_back({reduce, around->steps, around->conditions, {}, 0, {}});
  }

  // Where the blocks that a reduction runs along end with the size.
  std::vector<UOp> sizes_of_blocks(const UOp& reduce) const {
    RangeSet own = 0;
    for (const UOp& r : reduce.src().subspan(1)) own |= bit(kernel_.position(r));
    std::vector<UOp> out;
    for (const UOp& fact : kernel_.facts) {
      const RangeSet free = free_.at(fact.node());
      if ((free & own) && !(free & ~(own | free_.at(reduce.node()))))
        out.push_back(simplify_index(fact));
    }
    return out;
  }

  // What stands in the choices that a stage's value is made of.
  std::vector<UOp> masks_of(const UOp& stage) const {
    std::vector<UOp> out;
    for (const Op op : {Op::Max, Op::Add})
      for (const UOp& e : needed_terms(expanded(stage), op)) out.push_back(e);
    return out;
  }

  // The sizes that a reader's conditions are of, in the stage's ranges, as these may stand for the
  // reader's.
  std::vector<UOp> sizes_of_stage(const UOp& stage, const Reader& reader) const {
    const Walk* walk = walk_of(reader.closer);
    if (!walk || !reader.index) return {};
    Renaming same;
    int64_t least = INT64_MAX;
    const std::vector<UOp> steps = steps_read(reader, *walk);
    for (size_t i = 1; i < stage.src().size(); ++i) {
      if (std::ranges::find(steps, stage.src(i)) == steps.end()) continue;
      least = std::min(least, stage.stage_arg().strides[i - 1]);
      if (reader.index.src(i).op() == Op::Range)
        same.emplace_back(reader.index.src(i), stage.src(i));
    }
    std::vector<UOp> out;
    for (const UOp& e : walk->conditions) {
      if (same.size() == walk->steps.size()) {
        out.push_back(substitute(e, same));
        continue;
      }
      // The stage's ranges as digits of the step's number, as they lie.
      Renaming none;
      for (const UOp& r : walk->steps) none.emplace_back(r, e.graph().integer(0));
      UOp room = substitute(e, none);
      for (size_t i = 1; i < stage.src().size(); ++i)
        if (std::ranges::find(steps, stage.src(i)) != steps.end())
          room = sub(room, mul(stage.src(i), stage.stage_arg().strides[i - 1] / least));
      out.push_back(simplify_index(room));
    }
    return out;
  }

  // A stage is filled where each of its readers needs it.
  void add_stage(const UOp& stage) {
    const auto found = readers_.find(stage.node());
    if (found == readers_.end()) return;
    Walk walk{stage, {}, {}, {}, 0, {}};
    walk.conditions = is_streamed_ ? sizes_of_stage(stage, found->second.front()) : masks_of(stage);
    for (const Reader& reader : found->second) {
      const Walk* of_reader = walk_of(reader.closer);
      if (!of_reader || !reader.index) return;
      std::vector<UOp> steps = steps_read(reader, *of_reader);
      if (!walk.steps.empty() && walk.steps != steps) return;
      walk.steps = std::move(steps);
      const Renaming to = coordinates(reader.index);
      std::erase_if(walk.conditions, [&](const UOp& e) {
        const std::optional<Affine> there = affine(simplify_index(substitute(e, to)));
        return std::ranges::none_of(of_reader->conditions,
                                    [&](const UOp& own) { return there && affine(own) == there; });
      });
    }
    keep(std::move(walk));
  }

  // The ranges of a stage that follow the steps of what reads it.
  std::vector<UOp> steps_read(const Reader& reader, const Walk& walk) const {
    std::vector<UOp> steps;
    for (size_t i = 1; i < reader.index.src().size(); ++i) {
      const UOp& at = reader.index.src(i);
      const std::vector<UOp> below = topological({&at, 1});
      const bool follows = std::ranges::any_of(
          walk.steps, [&](const UOp& r) { return std::ranges::find(below, r) != below.end(); });
      if (follows) steps.push_back(reader.index.src(0).src(i));
    }
    return steps;
  }

  // The walk with those of its conditions that number its steps, if there are any.
  bool keep(Walk walk) {
    std::erase_if(walk.conditions, [&](const UOp& e) { return !numbers_steps(walk, e); });
    if (walk.conditions.empty()) return false;
    walks_.push_back(std::move(walk));
    return true;
  }

  // Whether the condition is on the number of a step, in which the steps' ranges are as digits.
  bool numbers_steps(Walk& walk, const UOp& condition) const {
    const std::optional<Affine> sum = affine(condition);
    if (!sum) return false;
    UOp loop;
    int64_t apart = 0;
    int64_t last = 0;  // from the first step to the last, as the condition counts them
    for (const UOp& r : walk.steps) {
      const int64_t c = sum->coefficient(r);
      const int64_t most = bounds(r.src(0)).hi;
      if (c == 0 || (loop && (c < 0) != (apart < 0)) || most == INT64_MAX) return false;
      last += std::abs(c) * (most - 1);
      if (loop && std::abs(c) <= std::abs(apart)) continue;
      loop = r;
      apart = c;
    }
    if (!loop) return false;
    const int64_t within = last - std::abs(apart) * (bounds(loop.src(0)).hi - 1);
    if (within >= std::abs(apart)) return false;
    if (walk.loop && !(walk.loop == loop && walk.apart == std::abs(apart))) return false;
    if (kernel_.ranges[kernel_.position(loop)].kind != RangeKind::Loop) return false;
    walk.loop = loop;
    walk.apart = std::abs(apart);
    return true;
  }

  // What all walks leave out, in blocks that each of them goes through in whole turns.
  bool find_blocks() {
    RangeSet loops = 0;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if (kernel_.ranges[i].kind == RangeKind::Loop || kernel_.ranges[i].kind == RangeKind::Thread)
        loops |= bit(i);
    for (const Walk& w : walks_) {
      if (!w.loop) continue;
      block_ = std::max(block_, w.apart);
      loops &= free_.at(w.closer.node());
      if (is_shared(w.loop)) return false;
    }
    const auto is_in_turns = [&](const Walk& w) { return !w.loop || block_ % w.apart == 0; };
    if (!std::ranges::all_of(walks_, is_in_turns)) return false;
    for (Walk& w : walks_)
      for (const UOp& e : w.loop ? w.conditions : std::vector<UOp>())
        if (std::optional<Bound> b = bound_of(w, e, loops)) w.bounds.push_back(std::move(*b));
    for (Walk& w : walks_)
      std::erase_if(w.bounds, [&](const Bound& b) {
        return !std::ranges::all_of(walks_, [&](const Walk& other) {
          return !other.loop || std::ranges::find(other.bounds, b) != other.bounds.end();
        });
      });
    return true;
  }

  // Whether something else runs along the loop too.
  bool is_shared(const UOp& loop) const {
    const RangeSet own = bit(kernel_.position(loop));
    return std::ranges::any_of(order_,
                               [&](const UOp& u) {
                                 return closes_ranges(u) && !walk_of(u) &&
                                        std::ranges::any_of(u.src().subspan(1), [&](const UOp& r) {
                                          return r == loop;
                                        });
                               }) ||
           std::ranges::any_of(kernel_.roots,
                               [&](const UOp& u) { return (free_.at(u.node()) & own) != 0; });
  }

  // The condition for whatever a tile's rows are.
  std::optional<Bound> bound_of(const Walk& walk, const UOp& condition, RangeSet outside) const {
    const Affine sum = *affine(condition);
    Bound out{sum.coefficient(walk.loop) < 0, {sum.constant, {}}};
    for (const AffineTerm& term : sum.terms) {
      if (std::ranges::find(walk.steps, term.atom) != walk.steps.end()) continue;
      if (term.atom.op() == Op::Variable ||
          (term.atom.op() == Op::Range && (outside & bit(kernel_.position(term.atom))))) {
        out.place.terms.push_back(term);
        continue;
      }
      const Interval values = bounds(term.atom);
      if (values.lo == INT64_MIN || values.hi == INT64_MAX) return std::nullopt;
      out.place.constant +=
          checked_mul(term.coefficient, term.coefficient > 0 ? values.hi : values.lo, "an index");
    }
    return out;
  }

  void add_facts(const Walk& walk) {
    Graph& graph = walk.loop.graph();
    const int64_t turns = block_ / walk.apart;
    const UOp last = sub(ceil_div(walk.loop.src(0), graph.integer(turns)), 1);
    for (const Bound& b : walk.bounds) {
      const UOp place = to_uop(graph, b.place);
      if (b.is_end) {
        const UOp block = maximum(floor_div(place, block_), 0);
        add_fact(sub(mul(add(block, 1), turns), add(walk.loop, 1)));
        continue;
      }
      UOp block = minimum(maximum(floor_div(neg(place), block_), 0), last);
      // Not behind the end.
      for (const Bound& end : walk.bounds)
        if (end.is_end)
          block = minimum(block, maximum(floor_div(to_uop(graph, end.place), block_), 0));
      add_fact(sub(walk.loop, mul(block, turns)));
    }
  }
  void add_fact(const UOp& e) {
    const UOp fact = simplify_index(e);
    if (prove_nonnegative(fact)) return;
    if (std::ranges::find(kernel_.facts, fact) == kernel_.facts.end())
      kernel_.facts.push_back(fact);
  }

  Kernel& kernel_;
  std::vector<UOp> order_;
  NodeMap<UOp> expanded_;  // of those that are others
  FreeRanges free_;
  bool is_streamed_ = false;
  std::map<const Node*, std::vector<Reader>> readers_;
  std::map<const Node*, std::vector<UOp>> users_;  // of what is closed, what closes them
  std::vector<Walk> walks_;
  int64_t block_ = 1;
};

}  // namespace

void leave_out_masked_blocks(Kernel& kernel) {
  Masks(kernel).run();
}

}  // namespace tiny
