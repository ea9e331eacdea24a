#include "codegen/options/stage.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "base/matrix.h"
#include "base/sort.h"
#include "ir/affine.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "rules/symbolic.h"

namespace tiny {

namespace {

std::vector<size_t> positions(RangeSet set) {
  std::vector<size_t> out;
  for (; set; set &= set - 1) out.push_back(static_cast<size_t>(std::countr_zero(set)));
  return out;
}

using Renaming = std::vector<std::pair<UOp, UOp>>;

// The place where a value is wanted, and the renaming that makes the staged value of it.
struct Occurrence {
  UOp value;
  std::vector<size_t> ranges;  // inside the place, outer to inner
};

// One dimension of a stage: a range of its own, and the expression that users index it with, in
// terms of the ranges of the occurrence that was staged.
struct Dimension {
  UOp range;
  UOp index;
  std::vector<size_t> from;  // the ranges that it stands for
  RangeKind kind = RangeKind::Loop;
};

class Stager {
 public:
  Stager(const Kernel& kernel, const Option& option)
      : kernel_(kernel), option_(option), order_(topological(kernel.roots)) {
    add_free_ranges(kernel, kernel.roots, free_);
    place_ = option.range < 0 ? 0 : position_of(option.range) + 1;
  }

  Kernel run() {
    if (option_.swizzle > kSwizzledBitsMax) refuse("a line has eight pieces");
    const UOp value = find_value();
    check(value);
    occurrences_ = {{value, positions(inside(value))}};
    if (occurrences_.front().ranges.empty())
      refuse("the value does not depend on a range inside the place");
    find_others();
    const std::optional<size_t> home = find_home();
    const size_t staged = home.value_or(0);
    std::vector<Dimension> dims = home ? own_ranges(occurrences_[staged]) : copies(value);
    arrange(dims);
    unroll_split_words(dims);
    const UOp stage = make_stage(home ? occurrences_[staged].value : renamed_, dims);
    Kernel out = kernel_;
    Renaming replaced;
    for (size_t i = 0; i < occurrences_.size(); ++i) {
      if (home && i == staged) continue;
      std::vector<UOp> src{stage};
      const Renaming to = renaming(occurrences_[staged], occurrences_[i]);
      for (const Dimension& d : dims) src.push_back(substitute(d.index, to));
      replaced.emplace_back(occurrences_[i].value, value.graph().make(Op::Index, std::move(src)));
    }
    for (UOp& root : out.roots) root = substitute(root, replaced);
    if (!home)
      for (const Dimension& d : dims) out.ranges.push_back({d.range, d.kind, false});
    return out;
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw_error(Status::InvalidArgument, "option ", to_text({&option_, 1}),
                " does not fit the kernel: ", why);
  }

  size_t position_of(int64_t number) const {
    const size_t at = kernel_.find_range(number);
    if (at == kernel_.ranges.size()) refuse(cat("it has no range r", number));
    return at;
  }

  // Of a node that the kernel need not hold.
  RangeSet free_of(const UOp& u) const {
    FreeRanges known;
    add_free_ranges(kernel_, {&u, 1}, known);
    return known.at(u.node());
  }
  // What the value is memoised over: what a group shares, over its threads too.
  RangeSet inside(const UOp& u) const {
    const RangeSet free = free_.at(u.node());
    const RangeSet threads = option_.is_shared ? free & local_ranges(kernel_) : 0;
    return free >> place_ << place_ | threads;
  }

  UOp find_value() const {
    if (option_.by_number) {
      const auto n = static_cast<size_t>(option_.amount);
      if (n >= order_.size()) refuse(cat("it has ", order_.size(), " values"));
      const UOp& u = order_[n];
      if (u.dtype() == kVoid || u.dtype() == kAddress || u.op() == Op::Range || u.src().empty())
        refuse(cat("v", n, " is no value"));
      return u;
    }
    for (const UOp& u : order_)
      if (u.op() == Op::Load && u.src(0).int_arg() == option_.amount) return u;
    refuse("it has no load of the parameter");
  }

  void check(const UOp& value) const {
    for (size_t i : positions(free_.at(value.node()) & ~inside(value)))
      if (kernel_.ranges[i].kind != RangeKind::Loop &&
          kernel_.ranges[i].kind != RangeKind::Thread && kernel_.ranges[i].kind != RangeKind::Local)
        refuse("the value depends on lanes or registers outside of the place");
    for (const UOp& u : topological({&value, 1}))
      if (u.op() == Op::Running && (inside(u) & bit(kernel_.position(u.src(1)))))
        refuse("it runs along a loop inside the place");
    for (const UOp& u : topological({&value, 1}))
      if (u.op() == Op::Place) refuse("steps before may store it");
    for (const UOp& u : topological({&value, 1}))
      if (u.op() == Op::Index && (free_.at(u.node()) & inside(value)) && u == value)
        refuse("it is read from a stage already");
  }

  static Renaming renaming_of(const Kernel& kernel, const std::vector<size_t>& from,
                              const std::vector<size_t>& to) {
    Renaming out;
    for (size_t i = 0; i < from.size(); ++i)
      if (from[i] != to[i])
        out.emplace_back(kernel.ranges[from[i]].range, kernel.ranges[to[i]].range);
    return out;
  }
  Renaming renaming(const Occurrence& a, const Occurrence& b) const {
    return renaming_of(kernel_, a.ranges, b.ranges);
  }

  // Nodes that compute the same over other ranges of the same sizes.
  void find_others() {
    const Occurrence first = occurrences_.front();
    for (const UOp& u : order_) {
      if (u.op() != first.value.op() || u.dtype() != first.value.dtype() || u == first.value)
        continue;
      Occurrence other{u, positions(inside(u))};
      if (other.ranges.size() != first.ranges.size()) continue;
      bool alike = true;
      for (size_t i = 0; i < first.ranges.size(); ++i) {
        const KernelRange& a = kernel_.ranges[first.ranges[i]];
        const KernelRange& b = kernel_.ranges[other.ranges[i]];
        alike = alike && a.range.src(0) == b.range.src(0) && a.kind == b.kind;
      }
      if (alike && substitute(first.value, renaming(first, other)) == u)
        occurrences_.push_back(std::move(other));
    }
    if (!option_.by_number)
      for (const UOp& u : order_)
        if (u.op() == Op::Load && u.src(0).int_arg() == option_.amount &&
            std::none_of(occurrences_.begin(), occurrences_.end(),
                         [&](const Occurrence& o) { return o.value == u; }))
          refuse("it has loads of the parameter with different indices");
  }

  // The first occurrence that a reduction over exactly its ranges computes, once inside the place,
  // if another needs it: the stage is filled in that reduction's loop.
  std::optional<size_t> find_home() const {
    if (occurrences_.size() < 2 || option_.is_shared) return std::nullopt;
    for (size_t i = 0; i < occurrences_.size(); ++i)
      for (const UOp& u : order_) {
        if (u.op() != Op::Reduce || inside(u)) continue;
        RangeSet own = 0;
        for (size_t k = 1; k < u.src().size(); ++k) own |= bit(kernel_.position(u.src(k)));
        if (own != inside(occurrences_[i].value) || (own & local_ranges(kernel_))) continue;
        const std::vector<UOp> below = topological({&u, 1});
        if (std::find(below.begin(), below.end(), occurrences_[i].value) != below.end()) return i;
      }
    return std::nullopt;
  }

  std::vector<Dimension> own_ranges(const Occurrence& home) const {
    std::vector<Dimension> dims;
    for (size_t i : home.ranges) {
      const UOp r = kernel_.ranges[i].range;
      dims.push_back({r, r, {i}, RangeKind::Loop});
    }
    return dims;
  }

  // Ranges of the stage's own; `renamed_` is the value over them.
  std::vector<Dimension> copies(const UOp& value) {
    number_ = kernel_.next_range_number();
    std::vector<Dimension> dims;
    RangeSet left = inside(value);
    Renaming replaced;
    if (value.op() == Op::Load) {
      left = windows(value, left, dims);
      if (left == inside(value)) left = runs(value, left, dims);
    }
    for (size_t i : positions(left)) {
      const UOp r = kernel_.ranges[i].range;
      const RangeKind kind = copied_kind(kernel_.ranges[i]);
      dims.push_back({new_range(r.src(0)), r, {i}, kind});
      replaced.emplace_back(r, dims.back().range);
    }
    renamed_ = substitute(renamed_ ? renamed_ : value, replaced);
    return dims;
  }

  // Lanes are filled as lanes; a few registers as so many steps.
  static RangeKind copied_kind(const KernelRange& r) {
    if (r.kind == RangeKind::Vec || r.kind == RangeKind::Dot) return r.kind;
    const bool few = r.kind == RangeKind::Upcast && r.range.src(0).const_int() <= 4;
    return few ? RangeKind::Unroll : RangeKind::Loop;
  }

  UOp new_range(const UOp& size) { return size.graph().make(Op::Range, {UOp(size)}, number_++); }

  // Indices that sum overlapping ranges become dimensions over what the sums cover; returns the
  // ranges that are left.
  RangeSet windows(const UOp& load, RangeSet set, std::vector<Dimension>& dims) {
    std::vector<UOp> src(load.src().begin(), load.src().end());
    RangeSet left = set;
    for (size_t axis = 1; axis < src.size(); ++axis) {
      const RangeSet here = free_.at(load.src(axis).node()) & set;
      bool alone = std::popcount(here) > 1;
      for (size_t other = 1; other < src.size(); ++other)
        alone = alone && (other == axis || !(free_.at(load.src(other).node()) & here));
      const std::optional<Affine> sum = affine(src[axis]);
      if (!alone || !sum) continue;
      Affine inner;
      Affine outer{sum->constant, {}};
      std::vector<std::pair<int64_t, int64_t>> steps;  // coefficient, size
      bool plain = true;
      for (const AffineTerm& term : sum->terms) {
        const bool mine = (free_of(term.atom) & here) != 0;
        (mine ? inner : outer).terms.push_back(term);
        if (!mine) continue;
        plain = plain && term.atom.op() == Op::Range && term.atom.src(0).is_const();
        if (plain) steps.emplace_back(std::abs(term.coefficient), term.atom.src(0).const_int());
      }
      if (!plain || is_mixed_radix(steps)) continue;
      BoundsCache cache;
      const Interval covered = cache.of(inner);
      Graph& graph = load.graph();
      const UOp range = new_range(graph.integer(covered.hi - covered.lo + 1));
      outer.constant += covered.lo;
      src[axis] = add(to_uop(graph, outer), range);
      inner.constant -= covered.lo;
      dims.push_back({range, to_uop(graph, inner), positions(here), RangeKind::Loop});
      left &= ~here;
    }
    renamed_ = load.graph().make(Op::Load, std::move(src), load.arg(), load.dtype());
    return left;
  }

  // Axes that lie in memory as one, each walked whole by a loop of its own, become one dimension:
  // it is filled in long steps.  Returns the ranges that are left.
  RangeSet runs(const UOp& load, RangeSet set, std::vector<Dimension>& dims) {
    ViewArg view = load.view_arg();
    std::vector<UOp> src(load.src().begin(), load.src().end());
    RangeSet left = set;
    for (size_t axis = view.shape.size(); axis-- > 1;) {
      std::vector<size_t> from = walked_by(load, axis, set);
      if (from.empty()) continue;
      size_t first = axis;
      int64_t size = view.shape[axis];
      UOp index = load.src(1 + axis);
      while (first > 0 && view.strides[first - 1] == view.strides[axis] * size) {
        const std::vector<size_t> next = walked_by(load, first - 1, set);
        if (next.empty() || !in_order(next.front(), from.front())) break;
        --first;
        index = add(index, mul(load.src(1 + first), size));
        size = checked_mul(size, view.shape[first], "a stage's size");
        from.insert(from.begin(), next.front());
      }
      if (first == axis) continue;
      const UOp range = new_range(load.graph().integer(size));
      for (size_t i : from) left &= ~bit(i);
      dims.push_back({range, index, from, RangeKind::Loop});
      view.shape[axis] = size;
      src[1 + axis] = range;
      const auto gone = [&](auto& list, size_t offset) {
        list.erase(list.begin() + static_cast<int64_t>(first + offset),
                   list.begin() + static_cast<int64_t>(axis + offset));
      };
      gone(view.shape, 0);
      gone(view.strides, 0);
      gone(src, 1);
      break;  // a load has one such run in practice, and positions have changed
    }
    renamed_ = load.graph().make(Op::Load, std::move(src), view, load.dtype());
    return left;
  }

  // The one loop of `set` that walks the whole axis and no other; nothing if there is none.
  std::vector<size_t> walked_by(const UOp& load, size_t axis, RangeSet set) const {
    const ViewArg& view = load.view_arg();
    const UOp& index = load.src(1 + axis);
    if (index.op() != Op::Range || !index.src(0).is_const_int(view.shape[axis])) return {};
    if (view.strides[axis] == kSymbolicDim || load.src().size() != view.shape.size() + 1) return {};
    const size_t at = kernel_.position(index);
    if (!(set & bit(at)) || kernel_.ranges[at].kind != RangeKind::Loop) return {};
    for (size_t other = 0; other < view.shape.size(); ++other)
      if (other != axis && (free_.at(load.src(1 + other).node()) & bit(at))) return {};
    return {at};
  }

  // Whether the layout has `a` right before `b`, as one dimension of both would.
  bool in_order(size_t a, size_t b) const {
    const auto place = [&](size_t at) {
      return std::find(option_.list.begin(), option_.list.end(),
                       kernel_.ranges[at].range.int_arg());
    };
    const auto first = place(a);
    const auto second = place(b);
    if (first == option_.list.end() || second == option_.list.end())
      return first == second && a < b;
    return first + 1 == second;
  }

  // Whether different coordinates have different sums, as digits of a number do.
  static bool is_mixed_radix(std::vector<std::pair<int64_t, int64_t>> steps) {
    sort_stable(steps);
    int64_t reach = 0;
    for (const auto& [step, size] : steps) {
      if (step <= reach) return false;
      reach += step * (size - 1);
    }
    return true;
  }

  // The layout: named ranges last, in their order, what is not named before them.
  void arrange(std::vector<Dimension>& dims) const {
    std::vector<Dimension> named;
    for (int64_t number : option_.list) {
      const size_t at = position_of(number);
      const auto holds = [at](const Dimension& d) {
        return std::find(d.from.begin(), d.from.end(), at) != d.from.end();
      };
      if (std::any_of(named.begin(), named.end(), holds)) continue;  // one dimension for several
      const auto found = std::find_if(dims.begin(), dims.end(), holds);
      if (found == dims.end()) refuse(cat("r", number, " is not inside the place"));
      named.push_back(*found);
      dims.erase(found);
    }
    dims.insert(dims.end(), named.begin(), named.end());
  }

  // A word is filled at once where its steps lie side by side; elsewhere one step after the other.
  void unroll_split_words(std::vector<Dimension>& dims) const {
    for (Dimension& d : dims) {
      if (d.kind != RangeKind::Dot) continue;
      const bool whole =
          d.range == dims.back().range && option_.padding % d.range.src(0).const_int() == 0;
      if (!whole) d.kind = RangeKind::Unroll;
    }
  }

  UOp make_stage(const UOp& value, const std::vector<Dimension>& dims) const {
    std::vector<UOp> src{value};
    Ints strides(dims.size());
    int64_t stride = 1;
    for (size_t i = dims.size(); i-- > 0;) {
      strides[i] = stride;
      stride = checked_mul(stride, bounds(dims[i].range.src(0)).hi, "a stage's size");
      if (i == 1) stride = checked_add(stride, option_.padding, "a stage's size");
    }
    for (const Dimension& d : dims) src.push_back(d.range);
    return value.graph().make(
        Op::Stage, std::move(src),
        StageArg{strides, option_.is_shared, static_cast<uint8_t>(option_.swizzle)});
  }

  const Kernel& kernel_;
  const Option& option_;
  std::vector<UOp> order_;
  FreeRanges free_;
  size_t place_ = 0;
  std::vector<Occurrence> occurrences_;
  UOp renamed_;
  int64_t number_ = 0;
};

}  // namespace

namespace {

// The rooms that a stage has: those of the loops that it is filled in.
int64_t rooms_of(const Kernel& kernel, const UOp& stage) {
  FreeRanges free;
  add_free_ranges(kernel, {&stage, 1}, free);
  int64_t rooms = 1;
  for (RangeSet set = free.at(stage.node()); set && stage.stage_arg().is_shared; set &= set - 1)
    rooms *= kernel.ranges[static_cast<size_t>(std::countr_zero(set))].rooms;
  return rooms;
}

template <class Counts>
int64_t bytes_of_stages(const Kernel& kernel, const Counts& counts) {
  int64_t sum = 0;
  for (const UOp& u : topological(kernel.roots)) {
    if (u.op() != Op::Stage || !counts(u)) continue;
    int64_t last = 0;
    for (size_t i = 1; i < u.src().size(); ++i)
      last += (bounds(u.src(i).src(0)).hi - 1) * u.stage_arg().strides[i - 1];
    const int64_t bytes = (last + 1) * u.dtype().bytes();
    const int64_t rooms = rooms_of(kernel, u);
    const int64_t line = std::max(shared_line(kernel, u), rooms > 1 ? kSwizzledLine : kSharedLine);
    sum += rooms * (u.stage_arg().is_shared ? round_up(bytes, line) : bytes);
  }
  return sum;
}

// The memory through which threads of a group fold what each has, the widest of all folds: a value
// of each thread, with all its lanes.  What no fold between warps needs is counted all the same.
int64_t fold_bytes(const Kernel& kernel) {
  int64_t threads = 1;
  RangeSet local = 0, lanes_of = 0;
  for (size_t i = 0; i < kernel.ranges.size(); ++i) {
    const KernelRange& r = kernel.ranges[i];
    const auto bit = RangeSet{1} << i;
    if (r.kind == RangeKind::Local) local |= bit;
    if (r.kind == RangeKind::Vec) lanes_of |= bit;
  }
  std::array<int64_t, kGroupAxes> group{1, 1, 1};
  for (const size_t i : positions(local))
    group[kernel.ranges[i].axis] = kernel.ranges[i].range.src(0).const_int();
  for (const int64_t size : group) threads *= size;
  FreeRanges free;
  int64_t widest = 0;
  for (const UOp& u : topological(kernel.roots)) {
    if (u.op() != Op::Reduce) continue;
    const auto is_local = [&](const UOp& r) { return local >> kernel.position(r) & 1; };
    if (std::ranges::none_of(u.src().subspan(1), is_local)) continue;
    if (free.size() == 0) add_free_ranges(kernel, kernel.roots, free);
    uint64_t lanes = 1;
    for (const size_t i : positions(free.at(u.node()) & lanes_of))
      lanes *= static_cast<uint64_t>(kernel.ranges[i].range.src(0).const_int());
    widest = std::max(widest, static_cast<int64_t>(std::bit_ceil(lanes)) * u.dtype().bytes());
  }
  return threads * widest;
}

}  // namespace

int64_t staged_bytes(const Kernel& kernel) {
  return bytes_of_stages(kernel, [](const UOp&) { return true; });
}

int64_t shared_bytes(const Kernel& kernel) {
  return bytes_of_stages(kernel, [](const UOp& u) { return u.stage_arg().is_shared; });
}

int64_t shared_line(const Kernel& kernel, const UOp& stage) {
  if (stage.stage_arg().is_shared && shared_columns(kernel) != 0) return kMatrixBlock;
  return stage.stage_arg().swizzle != 0 ? kSwizzledLine : kSharedLine;
}

int64_t group_bytes(const Kernel& kernel) {
  return shared_bytes(kernel) + fold_bytes(kernel);
}

Kernel apply_stage(const Kernel& kernel, const Option& option) {
  return Stager(kernel, option).run();
}

}  // namespace tiny
