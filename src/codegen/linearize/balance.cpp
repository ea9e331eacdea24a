#include "codegen/linearize/balance.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/sort.h"
#include "ir/affine.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/node_map.h"
#include "rules/symbolic.h"

namespace tiny {

namespace {

// Ranges that together number the elements of a tile, each with the elements between its steps; the
// first counts the steps of the tile.
struct Member {
  UOp range;
  int64_t apart = 1;
};
using Family = std::vector<Member>;

struct Cut {
  UOp range;  // numbers the tiles
  int64_t elements = 0;
  UOp size;
  std::vector<Family> families;
};

bool is_same(const Family& a, const Family& b) {
  return std::ranges::equal(a, b, [](const Member& s, const Member& t) {
    return s.range == t.range && s.apart == t.apart;
  });
}

const Member* member_of(const Family& family, const UOp& range) {
  const auto found = std::ranges::find(family, range, &Member::range);
  return found == family.end() ? nullptr : &*found;
}

// The family of a fact  size - elements * range - members - 1 >= 0.
std::optional<Family> family_of(const Kernel& kernel, const Affine& fact, const UOp& range) {
  Family family;
  for (const AffineTerm& term : fact.terms) {
    if (term.atom == range || term.atom.op() != Op::Range) continue;
    if (term.coefficient >= 0 || !term.atom.src(0).is_const()) return std::nullopt;
    family.push_back({term.atom, -term.coefficient});
  }
  sort_stable(family, std::ranges::greater(), &Member::apart);
  if (family.empty() || family.size() > 2) return std::nullopt;
  const auto kind = [&](size_t i) { return kernel.ranges[kernel.position(family[i].range)].kind; };
  if (kind(0) != RangeKind::Upcast && kind(0) != RangeKind::Unroll) return std::nullopt;
  if (family.size() == 2 && kind(1) != RangeKind::Vec) return std::nullopt;
  const int64_t below = family.size() == 2 ? family[1].range.src(0).const_int() : 1;
  if (family.back().apart != 1 || family[0].apart != below) return std::nullopt;
  return family;
}

// The cut that the kernel's facts tell of a range of run-time size.
std::optional<Cut> find_cut(const Kernel& kernel, const KernelRange& r) {
  if (r.range.src(0).is_const()) return std::nullopt;
  if (r.kind != RangeKind::Loop && r.kind != RangeKind::Thread) return std::nullopt;
  Cut cut{r.range, 0, {}, {}};
  for (const UOp& fact : kernel.facts) {
    std::optional<Affine> sum = affine(fact);
    if (!sum) return std::nullopt;
    const int64_t elements = -sum->coefficient(r.range);
    if (elements == 0) continue;
    const std::optional<Family> family = family_of(kernel, *sum, r.range);
    if (!family || elements != (*family)[0].apart * (*family)[0].range.src(0).const_int())
      return std::nullopt;
    std::erase_if(sum->terms, [](const AffineTerm& t) { return t.atom.op() == Op::Range; });
    sum->constant += 1;
    const UOp size = to_uop(fact.graph(), *sum);
    if (cut.size && (!(cut.size == size) || elements != cut.elements)) return std::nullopt;
    cut.size = size;
    cut.elements = elements;
    cut.families.push_back(*family);
  }
  if (!cut.size) return std::nullopt;
  const UOp count = floor_div(add(cut.size, cut.elements - 1), cut.elements);
  if (!simplify_index(sub(r.range.src(0), count)).is_const_int(0)) return std::nullopt;
  return cut;
}

// The kernel's expressions with the number of a tile times its elements as one range.
class Rewriter {
 public:
  Rewriter(const Cut& cut, const UOp& start, std::span<const UOp> order)
      : cut_(cut), start_(start), order_(order) {
    find_staged_families();
    for (const UOp& u : order_) {
      const bool is_own = u == cut_.range || is_member(u);
      const auto touches = [&](const UOp& s) { return touched_.contains(s); };
      if (is_own || std::ranges::any_of(u.src(), touches)) touched_.insert(u, true);
      done_.insert(u, touched_.contains(u) ? rewritten(u) : u);
    }
  }

  const std::vector<Family>& families() const { return families_; }

  // What a node becomes that no expression reads as a part of a sum; no node if it cannot.
  UOp operator()(const UOp& u) const {
    if (!touched_.contains(u)) return u;
    return u.dtype() == kInt64 ? index(u) : *done_.find(u);
  }

 private:
  bool is_member(const UOp& u) const {
    return std::ranges::any_of(families_, [&](const Family& f) { return member_of(f, u); });
  }

  // The ranges of a stage that is read at the members of a family are one.
  void find_staged_families() {
    families_ = cut_.families;
    for (size_t before = 0; before != families_.size();) {
      before = families_.size();
      for (const UOp& u : order_) {
        if (u.op() != Op::Index) continue;
        for (size_t i = 0; i < before; ++i) {
          Family copy;
          for (const Member& m : families_[i])
            for (size_t d = 1; d < u.src().size(); ++d)
              if (u.src(d) == m.range) copy.push_back({u.src(0).src(d), m.apart});
          const auto known = [&](const Family& f) { return is_same(f, copy); };
          if (copy.size() == families_[i].size() && std::ranges::none_of(families_, known))
            families_.push_back(copy);
        }
      }
    }
  }

  UOp index(const UOp& u) const {
    const std::optional<Affine> sum = affine(u);
    if (!sum) return {};
    if (sum->constant == 0 && sum->terms.size() == 1 && sum->terms[0].atom == u &&
        u.op() != Op::Range && u.op() != Op::Mul)
      return *done_.find(u);
    Affine out{sum->constant, {}};
    std::vector<Group> groups;
    for (const AffineTerm& term : sum->terms)
      if (!add_term(term, out, groups)) return {};
    for (const Group& g : groups)
      if (!is_whole(g)) return {};
    return to_uop(u.graph(), out);
  }

  // The terms that have the same factors but for the number of a tile, or a member.
  struct Group {
    std::vector<UOp> others;
    int64_t start = 0;  // the coefficient of the tile's first element
    Family members;     // each with its coefficient
  };

  bool add_term(const AffineTerm& term, Affine& out, std::vector<Group>& groups) const {
    std::vector<UOp> others;
    UOp own;
    for (const UOp& f : factors(term.atom)) {
      if (f == cut_.range || is_member(f)) {
        if (own) return false;
        own = f;
        continue;
      }
      const UOp* now = touched_.contains(f) ? done_.find(f) : &f;
      if (!now || !*now) return false;
      others.push_back(*now);
    }
    std::vector<UOp> all = others;
    if (!own) {
      out.terms.push_back({product_atom(std::move(all)), term.coefficient});
      return true;
    }
    auto group = std::ranges::find(groups, others, &Group::others);
    if (group == groups.end()) group = groups.insert(group, {others, 0, {}});
    if (own == cut_.range && term.coefficient % cut_.elements != 0) return false;
    const int64_t c = own == cut_.range ? term.coefficient / cut_.elements : term.coefficient;
    if (own == cut_.range)
      group->start = c;
    else
      group->members.push_back({own, c});
    all.push_back(own == cut_.range ? start_ : own);
    out.terms.push_back({product_atom(std::move(all)), c});
    return true;
  }

  // Whether the place of a tile and all its members stand together.
  bool is_whole(const Group& g) const {
    return std::ranges::any_of(families_, [&](const Family& f) {
      return f.size() == g.members.size() && std::ranges::all_of(f, [&](const Member& m) {
               const Member* in = member_of(g.members, m.range);
               return in && in->apart == g.start * m.apart;
             });
    });
  }

  UOp rewritten(const UOp& u) const {
    if (u.op() == Op::Range) return {};
    if (u.op() == Op::Index) return rewritten_index(u);
    const bool closes = u.op() == Op::Reduce || u.op() == Op::Stage;
    const bool is_sum =
        u.dtype() == kInt64 && (u.op() == Op::Add || u.op() == Op::Mul || u.op() == Op::Neg);
    if (is_sum) return index(u);
    std::vector<UOp> src;
    for (size_t i = 0; i < u.src().size(); ++i) {
      const UOp& s = u.src(i);
      if (closes && i > 0)
        src.push_back(s == cut_.range ? start_ : s);
      else
        src.push_back((*this)(s));
      if (!src.back()) return {};
    }
    if (u.op() == Op::Stage) return rewritten_stage(u, std::move(src));
    return u.graph().make(u.op(), std::move(src), u.arg(), u.dtype());
  }

  static size_t closed_at(const UOp& closer, const UOp& range) {
    for (size_t i = 1; i < closer.src().size(); ++i)
      if (closer.src(i) == range) return i;
    return 0;
  }

  // Elements must lie one after the other, wherever tiles begin.
  UOp rewritten_stage(const UOp& u, std::vector<UOp> src) const {
    StageArg arg = u.stage_arg();
    if (const size_t at = closed_at(u, cut_.range)) {
      int64_t& stride = arg.strides[at - 1];
      const int64_t step = stride / cut_.elements;
      const auto fits = [&](const Family& f) {
        return std::ranges::all_of(f, [&](const Member& m) {
          const size_t dimension = closed_at(u, m.range);
          return dimension && u.stage_arg().strides[dimension - 1] == m.apart * step;
        });
      };
      if (stride % cut_.elements != 0 || std::ranges::none_of(families_, fits)) return {};
      stride = step;
    }
    return u.graph().make(Op::Stage, std::move(src), std::move(arg));
  }

  UOp rewritten_index(const UOp& u) const {
    const UOp& stage = u.src(0);
    const size_t at = closed_at(stage, cut_.range);
    std::vector<UOp> src{(*this)(stage)};
    if (!src[0]) return {};
    for (size_t i = 1; i < u.src().size(); ++i) {
      const UOp& e = u.src(i);
      UOp now = is_member(e) && is_member(stage.src(i)) ? e : (*this)(e);
      if (!now) return {};
      src.push_back(i == at ? mul(now, cut_.elements) : now);
    }
    return u.graph().make(Op::Index, std::move(src));
  }

  const Cut& cut_;
  const UOp start_;
  std::span<const UOp> order_;
  std::vector<Family> families_;
  NodeMap<bool> touched_;
  NodeMap<UOp> done_;
};

// Where is fetched, if a tile begins at `start`.  It need not be right; 0 is where both begin. What
// follows the tiles' numbers otherwise than by so much each, as pieces of a panel do, has the
// number of that tile: none is larger than the given ones, nor fewer in number.
UOp fetched_from(const UOp& index, const Cut& cut, const UOp& start, const Rewriter& rewriter) {
  if (const UOp place = rewriter(index)) return place;
  const std::optional<Affine> sum = affine(index);
  const int64_t apart = sum ? sum->coefficient(cut.range) : 0;
  if (apart == 0 || apart % cut.elements != 0) {
    const UOp number = floor_div(add(start, cut.elements - 1), cut.elements);
    return substitute(index, {{cut.range, number}});
  }
  const UOp before = substitute(index, {{cut.range, index.graph().integer(0)}});
  return add(before, mul(start, apart / cut.elements));
}

// The kernel with one range balanced; false if its indices do not allow it.
bool balance(BalancedKernel& balanced, size_t at) {
  Kernel& kernel = balanced.kernel;
  const std::optional<Cut> cut = find_cut(kernel, kernel.ranges[at]);
  if (!cut) return false;
  if (balanced.outer)
    for (const UOp& r : balanced.outer.src().subspan(1))
      if (r == cut->range) return false;
  std::vector<UOp> all = kernel.roots;
  all.insert(all.end(), kernel.facts.begin(), kernel.facts.end());
  for (const KernelPrefetch& p : kernel.prefetches) all.push_back(p.index);
  if (balanced.added) all.push_back(balanced.added);
  const std::vector<UOp> order = topological(all);
  Graph& graph = cut->range.graph();
  const UOp start = graph.make(Op::Range, {cut->size}, cut->range.int_arg());
  const Rewriter rewriter(*cut, start, order);
  std::vector<UOp> roots;
  for (const UOp& u : kernel.roots) roots.push_back(rewriter(u));
  std::vector<UOp> facts;
  for (const UOp& u : kernel.facts) facts.push_back(rewriter(u));
  const auto is_missing = [](const UOp& u) { return !u; };
  if (std::ranges::any_of(roots, is_missing) || std::ranges::any_of(facts, is_missing))
    return false;
  kernel.roots = std::move(roots);
  kernel.facts = std::move(facts);
  for (KernelPrefetch& p : kernel.prefetches)
    p.index = fetched_from(p.index, *cut, start, rewriter);
  for (UOp* u : {&balanced.outer, &balanced.added})
    if (*u) *u = rewriter(*u);
  kernel.ranges[at].range = start;
  const Member& first = cut->families[0][0];
  BalancedTile tile{cut->size, first.apart, first.range.src(0).const_int(), 0,
                    UOp(cut->range.src(0))};
  for (const Family& f : rewriter.families())
    tile.steps_in |= RangeSet{1} << kernel.position(f[0].range);
  balanced.tiles[at] = std::move(tile);
  return true;
}

}  // namespace

BalancedKernel balance_tiles(const SplitReduction& split) {
  BalancedKernel out{split.kernel, split.outer, split.added, {}};
  out.tiles.resize(out.kernel.ranges.size());
  for (size_t i = 0; i < out.kernel.ranges.size(); ++i) balance(out, i);
  return out;
}

std::vector<int64_t> tile_steps(const BalancedTile& tile) {
  const Interval sizes = bounds(tile.size);
  std::vector<bool> occurs(static_cast<size_t>(tile.steps) + 1);
  // From so many on tiles are whole or one less, and both occur.
  const int64_t first = std::max<int64_t>(sizes.lo, 1);
  const int64_t last = std::min(sizes.hi, first + tile.steps * tile.steps);
  for (int64_t size = first; size <= last; ++size) {
    const int64_t tiles = (size + tile.steps - 1) / tile.steps;
    occurs[static_cast<size_t>(size / tiles)] = true;
    if (size % tiles != 0) occurs[static_cast<size_t>(size / tiles) + 1] = true;
  }
  std::vector<int64_t> found;
  for (int64_t t = tile.steps; t > 0; --t)
    if (occurs[static_cast<size_t>(t)]) found.push_back(t);
  return found;
}

}  // namespace tiny
