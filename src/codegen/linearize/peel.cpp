// Tails and padding: what is known of conditions `e >= 0` over a loop.  A condition on loops alone
// becomes the loop's bound; one that involves unrolled ranges or lanes splits off the few
// iterations in which it does not hold for all of them.
#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "base/error.h"
#include "codegen/linearize/lineariser.h"
#include "ir/build.h"
#include "rules/symbolic.h"

namespace tiny {

namespace {

constexpr int64_t kWindowMin = 64;  // instances
// Values that all instances share, for each instance: so many cost more as a copy than a branch.
constexpr int64_t kSharedMin = 6;

bool is_product_with(const UOp& value, const UOp& factor) {
  if (value == factor) return true;
  if (value.op() == Op::Mul)
    return is_product_with(value.src(0), factor) || is_product_with(value.src(1), factor);
  return value.op() == Op::Cast && is_product_with(value.src(0), factor);
}

// Where a walk ends that stays within the loops of a stage.
bool is_closed(const UOp& u) {
  return closes_ranges(u);
}

}  // namespace

// A reduction without loops of its own, with so many instances that a few branches among them cost
// nothing.
bool Lineariser::is_window(const UOp& node) {
  if (node.op() != Op::Reduce) return false;
  RangeSet all = free_of(node);
  for (const UOp& r : node.src().subspan(1)) all |= free_of(r);
  const RangeSet own = all & ~free_of(node);
  int64_t instances = 1;
  for (RangeSet set = all & unrolled_; set && instances < kWindowMin; set &= set - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(set));
    instances *= kernel_.ranges[i].range.src(0).const_int();
  }
  return !(own & (loops_ | dots_)) && instances >= kWindowMin;
}

// The conditions of loads, and of comparisons of indices, that `node` is computed from; those that
// the sizes alone prove are left out, and those of windows that a stage is filled with: its loops
// would hold all that is made of the stage once for each edge of them.
const std::vector<UOp>& Lineariser::conditions_below(const UOp& node) {
  if (const auto found = conditions_.find(node.node()); found != conditions_.end())
    return found->second;
  std::vector<UOp> all;
  const auto keep = [&all](const UOp& e) {
    if (std::find(all.begin(), all.end(), e) == all.end()) all.push_back(e);
  };
  if (node.op() == Op::Load) add_range_conditions(node, false, all);
  std::vector<UOp> work;
  if (node.op() != Op::Load) work.push_back(node);
  while (!work.empty()) {
    const UOp root = work.back();
    work.pop_back();
    const bool is_filled = is_stage(root);
    const std::span<const UOp> from = is_filled ? root.src().first(1) : std::span(&root, 1);
    for (const UOp& u : topological(from, is_filled ? is_closed : is_stage)) {
      if (u.op() == Op::Load)
        for (const UOp& e : conditions_below(u)) keep(e);
      if (compares_indices(u)) keep(room_of(u));
      if (is_stage(u) || (is_filled && is_closed(u) && !is_window(u))) work.push_back(u);
    }
  }
  return conditions_.emplace(node.node(), std::move(all)).first->second;
}

// Conditions without which what a task adds is zero: those of a load that is a factor of a sum.
const std::vector<UOp>& Lineariser::void_outside(const Task& task) {
  const auto [at, is_new] = void_outside_.try_emplace(task.node.node());
  std::vector<UOp>& all = at->second;
  if (!is_new || task.node.op() != Op::Reduce || task.node.reduce_arg().op != Op::Add) return all;
  const UOp value = task.node.src(0);
  for (const UOp& u : topological({&value, 1})) {
    if (u.op() != Op::Load || !is_product_with(value, u)) continue;
    for (const UOp& e : conditions_below(u))
      if (std::ranges::find(all, e) == all.end()) all.push_back(e);
  }
  return all;
}

// condition = rest + c * r >= 0, where everything but r is known here, bounds the loop over r. With
// unrolled ranges or lanes in it, the loop ends where it holds for none of them.
void Lineariser::tighten(const UOp& condition, size_t range, LoopBounds& limits) {
  const RangeSet self = RangeSet{1} << range;
  const RangeSet free = free_of(condition);
  const RangeSet pending = pending_in(free);
  if (!(free & self) || (free & ~self & (loops_ & ~open_))) return;
  if (proven(condition)) return;
  const UOp& r = kernel_.ranges[range].range;
  std::optional<Affine> sum = fixed(condition);
  const int64_t c = sum ? sum->coefficient(r) : 0;
  if (c == 0 || (pending && c > 0)) return;
  Affine rest{sum->constant, {}};
  for (const AffineTerm& term : sum->terms) {
    if (term.atom == r) continue;
    if (!(free_of(term.atom) & pending)) {
      rest.terms.push_back(term);
      continue;
    }
    if (term.atom.op() != Op::Range || !term.atom.src(0).is_const()) return;
    if (term.coefficient > 0)
      rest.constant += checked_mul(term.coefficient, term.atom.src(0).const_int() - 1, "an index");
  }
  const UOp room = to_uop(condition.graph(), rest);
  const UOp fact = add(mul(r, c), room);
  if (pending && proven(fact)) return;
  if (c < 0) {
    const LinearId ends[] = {limits.end, scalar_index(add(floor_div(room, -c), 1))};
    limits.end = elementwise_op(Op::Min, kInt64, ends);
  } else {
    const LinearId begins[] = {limits.begin, scalar_index(mul(floor_div(room, c), -1))};
    limits.begin = elementwise_op(Op::Max, kInt64, begins);
  }
  limits.facts.push_back(pending ? fact : condition);
}

namespace {

// Whether all coordinates of the stage's ranges have places of their own.
bool has_place_for_each(const UOp& stage, BoundsCache& bounds) {
  std::vector<std::pair<int64_t, int64_t>> dimensions;  // strides, and the last coordinates
  for (size_t i = 1; i < stage.src().size(); ++i)
    dimensions.emplace_back(stage.ints()[i - 1], bounds.of(stage.src(i).src(0)).hi - 1);
  std::ranges::sort(dimensions);
  int64_t last = 0;
  for (const auto& [stride, most] : dimensions) {
    if (stride <= last) return false;
    last += stride * most;
  }
  return true;
}

}  // namespace

// Whether a fact on lanes of a run-time size, which keeps the last tile from being filled behind
// the size, is of no use: what is filled there has places that nobody reads, and reads no memory.
// Whole tiles and the last are one loop then.
bool Lineariser::has_room(const UOp& fact, const Task& task) {
  const RangeSet own = free_of(fact) & task.own;
  if (task.node.op() != Op::Stage || !(own & vec_) || (task.own & dots_)) return false;
  bool is_of_run = false;
  for (RangeSet set = own; set; set &= set - 1) {
    const UOp& r = kernel_.ranges[static_cast<size_t>(std::countr_zero(set))].range;
    is_of_run = is_of_run || !r.src(0).is_const();
  }
  if (!is_of_run || !has_place_for_each(task.node, bounds_)) return false;
  return std::ranges::none_of(topological({&task.node.src(0), 1}), [&](const UOp& u) {
    return u.op() == Op::Load && (free_of(u) & own);
  });
}

// The unrolled ranges and lanes among `free` that have no coordinate yet.
RangeSet Lineariser::pending_in(RangeSet free) const {
  return free & (unrolled_ | vec_ | dots_) & ~fixed_;
}

// What the tasks and the values below them ask for.
std::vector<UOp> Lineariser::conditions_of(const std::vector<Task*>& group) {
  std::vector<UOp> all;
  for (const Task* t : group) {
    for (const UOp& fact : kernel_.facts)
      if ((free_of(fact) & (t->own | free_of(t->node))) && !has_room(fact, *t)) all.push_back(fact);
    const bool is_filled = is_stage(t->node);
    for (const UOp& s : is_filled ? std::span(&t->node, 1) : t->node.src())
      for (const UOp& e : conditions_below(s)) all.push_back(e);
  }
  return all;
}

// Whether a condition that is no fact holds wherever the kernel's facts do.
bool Lineariser::follows_from_facts(const UOp& e) {
  if (std::ranges::find(kernel_.facts, e) != kernel_.facts.end()) return false;
  std::vector<Affine> facts;
  for (const UOp& fact : kernel_.facts)
    if (auto sum = fixed(fact)) facts.push_back(std::move(*sum));
  const std::optional<Affine> sum = fixed(e);
  return sum && !facts.empty() && prove_nonnegative(*sum, facts, bounds_);
}

// Whether the instances of these stores share most of what they are made of: an edge tile computes
// as much as any other, so that a copy of the loop for it is code for nothing, and a branch before
// some of the stores does.
bool Lineariser::shares_values(const std::vector<Task*>& group) {
  RangeSet instances_of = 0;
  std::vector<UOp> values;
  for (const Task* t : group) {
    if (t->node.op() != Op::Store) return false;
    instances_of |= value_ranges(*t);
    values.push_back(t->node.src(1));
  }
  int64_t least = kSharedMin;
  for (RangeSet set = instances_of; set; set &= set - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(set));
    least *= kernel_.ranges[i].range.src(0).const_int();
  }
  int64_t shared = 0;
  for (const UOp& u : topological(values)) {
    if (closes_ranges(u) || u.op() == Op::Running) return false;
    const bool is_value = u.op() == Op::Load || (has(u.op(), kElementwise) && !is_index(u));
    if (is_value && !pending_in(free_of(u) & unrolled_)) ++shared;
  }
  return shared >= least;
}

std::optional<Lineariser::Peel> Lineariser::find_peel(const std::vector<Task*>& group, size_t range,
                                                      LinearId end) {
  const UOp& r = kernel_.ranges[range].range;
  if (!r.src(0).is_const() || states_[range].limit) return std::nullopt;
  const int64_t size = end_of(range, end);
  Peel peel{0, size, {}};
  bool is_wanted = false;
  const auto consider = [&](const UOp& e) {
    const RangeSet free = free_of(e);
    if (!(free & (RangeSet{1} << range)) || !pending_in(free) || proven(e)) return;
    if (follows_from_facts(e)) return;  // whose loops are cut for them
    std::optional<Affine> rest = fixed(e);
    const int64_t c = rest ? rest->coefficient(r) : 0;
    if (c == 0) return;
    std::erase_if(rest->terms, [&](const AffineTerm& term) { return term.atom == r; });
    const int64_t worst = bounds_.of(*rest).lo;
    if (worst == INT64_MIN || worst < -(int64_t{1} << 48) || worst > (int64_t{1} << 48)) return;
    int64_t first = peel.first;
    int64_t last = peel.last;
    if (c > 0) first = std::max(first, ceil_div(-worst, c));
    if (c < 0) last = std::min(last, floor_div(worst, -c) + 1);
    if (first > kPeeledMax || size - last > kPeeledMax || last < first) return;
    peel.first = first;
    peel.last = last;
    peel.facts.push_back(add(mul(r, c), worst));
    const bool guards_stores = std::ranges::find(kernel_.facts, e) != kernel_.facts.end();
    is_wanted = is_wanted || !guards_stores || (free & vec_) || !shares_values(group);
  };
  for (const UOp& e : conditions_of(group)) consider(e);
  if (!is_wanted || (peel.first == 0 && peel.last == size)) return std::nullopt;
  return peel;
}

// c * r + rest >= 0 with c < 0 holds for all unrolled coordinates and lanes where it holds for the
// worst of them: up to rest' // -c.
std::optional<Lineariser::Split> Lineariser::find_split(const std::vector<Task*>& group,
                                                        size_t range) {
  const UOp& r = kernel_.ranges[range].range;
  if (r.src(0).is_const()) return std::nullopt;
  Split split;
  for (const UOp& e : conditions_of(group)) {
    const RangeSet self = RangeSet{1} << range;
    const RangeSet free = free_of(e);
    const RangeSet pending = pending_in(free);
    if (!(free & self) || !pending || (free & ~self & loops_ & ~open_) || proven(e)) continue;
    const std::optional<Affine> sum = fixed(e);
    const int64_t c = sum ? sum->coefficient(r) : 0;
    if (c >= 0) continue;
    Affine worst{sum->constant, {}};
    bool is_simple = true;
    for (const AffineTerm& term : sum->terms) {
      if (term.atom == r) continue;
      if (!(free_of(term.atom) & pending)) {
        worst.terms.push_back(term);
        continue;
      }
      const Interval bounds = bounds_.of(term.atom);
      is_simple = is_simple && term.atom.op() == Op::Range && bounds.hi < (int64_t{1} << 32);
      if (is_simple && term.coefficient < 0)
        worst.constant += checked_mul(term.coefficient, bounds.hi, "an index");
    }
    if (!is_simple) continue;
    Graph& graph = e.graph();
    const UOp room = to_uop(graph, worst);
    const UOp last = add(floor_div(room, -c), 1);
    const UOp fact = add(mul(r, c), room);
    if (std::find(split.facts.begin(), split.facts.end(), fact) != split.facts.end()) continue;
    split.last = split.last ? minimum(split.last, last) : last;
    split.facts.push_back(fact);
  }
  if (!split.last) return std::nullopt;
  return split;
}

// Tile i of those of one size begins at first + i * size.
void Lineariser::emit_tiles(const std::vector<Task*>& group, size_t range, const LoopBounds& limits,
                            const Tiles& tiles) {
  const BalancedTile& tile = *tiles_[range];
  const LinearId begins[] = {limits.begin, tiles.begin};
  const LinearId ends[] = {limits.end, tiles.end};
  const LinearId begin = elementwise_op(Op::Max, kInt64, begins);
  const LinearId end = elementwise_op(Op::Min, kInt64, ends);
  const LinearId loop = tree_.open(Op::Loop, kInt64, {begin, end}, 1);
  const LinearId walked_of[] = {loop, index_constant(tiles.apart)};
  const LinearId walked[] = {elementwise_op(Op::Mul, kInt64, walked_of), tiles.first};
  if (kernel_.ranges[range].overlaps) tree_.set_mark(loop);
  open_loop(range, elementwise_op(Op::Add, kInt64, walked));
  for (RangeSet set = tile.steps_in; set; set &= set - 1)
    states_[static_cast<size_t>(std::countr_zero(set))].limit = tiles.steps;
  const size_t known_before = known_.size();
  for (const UOp& fact : limits.facts) know(fact);
  know(tiles.fact);
  close_inside(group, range);
  known_.resize(known_before);
  for (RangeSet set = tile.steps_in; set; set &= set - 1)
    states_[static_cast<size_t>(std::countr_zero(set))].limit = 0;
  open_ &= ~(RangeSet{1} << range);
  release(range);
  tree_.close();
}

// As few tiles as there must be, whose steps differ by one at most: the first of them have one
// more.
std::vector<Lineariser::Tiles> Lineariser::balanced_tiles(size_t range) {
  const BalancedTile& tile = *tiles_[range];
  const UOp& start = kernel_.ranges[range].range;
  const UOp some = maximum(tile.count, 1);
  const UOp least_of = floor_div(tile.size, some);
  const LinearId zero = index_constant(0);
  const LinearId count = scalar_index(tile.count);
  const LinearId least = scalar_index(least_of);
  const LinearId larger = scalar_index(sub(tile.size, mul(least_of, some)));  // so many tiles
  std::vector<Tiles> all;
  for (const int64_t t : tile_steps(tile)) {
    const LinearId is_least = equals(least, t);
    const LinearId begin = choose(is_least, larger, zero);
    const LinearId end = choose(is_least, count, choose(equals(least, t - 1), larger, zero));
    all.push_back({t, t, begin, end, begin, sub(sub(tile.size, start), t)});
  }
  return all;
}

// Whole tiles, then the vectors that are left, the last of which may be a part.
std::vector<Lineariser::Tiles> Lineariser::lane_tiles(size_t range) {
  const BalancedTile& tile = *tiles_[range];
  const UOp& start = kernel_.ranges[range].range;
  const UOp room = sub(tile.size, start);
  const int64_t elements = tile.steps * tile.unit;
  const UOp whole = floor_div(tile.size, elements);
  const UOp rest = simplify_index(floor_mod(tile.size, elements));
  const LinearId zero = index_constant(0);
  const LinearId last = scalar_index(whole);
  std::vector<Tiles> all{{tile.steps, elements, zero, last, zero, sub(room, elements)}};
  if (rest.is_const_int(0)) return all;
  const LinearId vectors = scalar_index(floor_div(add(rest, tile.unit - 1), tile.unit));
  const LinearId count = scalar_index(tile.count);
  for (int64_t t = tile.steps; t > 0; --t)
    all.push_back({t, elements, last, choose(equals(vectors, t), count, zero), zero,
                   sub(room, (t - 1) * tile.unit + 1)});
  return all;
}

LinearId Lineariser::equals(LinearId value, int64_t number) {
  const LinearId both[] = {value, index_constant(number)};
  return elementwise_op(Op::Equal, kBool, both);
}

LinearId Lineariser::choose(LinearId condition, LinearId a, LinearId b) {
  const LinearId all[] = {condition, a, b};
  return elementwise_op(Op::Where, kInt64, all);
}

void Lineariser::emit_balanced(const std::vector<Task*>& group, size_t range, LoopBounds limits) {
  const BalancedTile& tile = *tiles_[range];
  if (kernel_.ranges[range].kind != RangeKind::Thread) limits.end = scalar_index(tile.count);
  const int64_t scratch = program_.scratch_bytes;  // tiles of different sizes share it
  int64_t most = scratch;
  for (const Tiles& tiles : tile.unit == 1 ? balanced_tiles(range) : lane_tiles(range)) {
    program_.scratch_bytes = scratch;
    emit_tiles(group, range, limits, tiles);
    most = std::max(most, program_.scratch_bytes);
  }
  program_.scratch_bytes = most;
}

}  // namespace tiny
