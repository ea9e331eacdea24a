#include "schedule/lower.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/sort.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/node_map.h"
#include "ir/rebuild.h"
#include "ir/shared_value.h"
#include "rules/running_reductions.h"
#include "rules/symbolic.h"
#include "schedule/accesses.h"
#include "schedule/kernel_ranges.h"
#include "schedule/lower_winograd.h"
#include "schedule/pad_conditions.h"
#include "shape/shape.h"

namespace tiny {

namespace {

bool reads_memory(const UOp& index) {
  return std::ranges::any_of(topological({&index, 1}),
                             [](const UOp& u) { return u.op() == Op::Load; });
}

// What of the graph a kernel reads from memory, and what it is there to compute.
class StoredValues {
 public:
  // The stores and what is inlined must outlive it.
  StoredValues(const Decision& decision, std::span<const ScheduledStore> stores,
               std::span<const UOp> inlined)
      : decision_(decision), inlined_(inlined) {
    for (const ScheduledStore& s : stores)
      if (!has_memory(s.value) && !decision.is_copied(s.value, s.destination))
        computed_.push_back(s.value.node());
    for (const UOp& u : inlined) computed_.push_back(u.node());
  }

  bool in_memory(const UOp& node) const {
    return has_memory(node) || (decision_.stored[node.id()] && !is_computed(node));
  }

  // What lies in memory is read at many indices, and of a chain of movement that is no view each
  // part is asked for.  Valid until the next is asked for.
  const std::optional<StoredView>& view(const UOp& node) {
    if (const auto* known = views_.find(node.node())) return *known;
    const UOp* lowest = nullptr;
    auto made = as_view(node, decision_.stored, decision_.layouts, computed_, &lowest);
    if (!made)
      for (const UOp* u = &node; u != lowest; u = &u->src(0)) views_[u->node()] = std::nullopt;
    return views_[(made ? node : *lowest).node()] = std::move(made);
  }

  // Whether this is movement of a version that the kernel writes.
  bool is_version_made_here(const UOp& node) const {
    UOp base = node;
    while (has(base.op(), kMovement) && base.op() != Op::AsStrided) base = UOp(base.src(0));
    return base.op() == Op::After && std::ranges::find(inlined_, base) != inlined_.end();
  }

 private:
  bool is_computed(const UOp& node) const {
    return std::ranges::find(computed_, node.node()) != computed_.end();
  }

  const Decision& decision_;
  std::span<const UOp> inlined_;
  // Where as_view does not stop, though they may have buffers: what this kernel is here to compute.
  std::vector<const Node*> computed_;
  NodeTable<std::optional<StoredView>> views_;
};

// Whether a range is in both.
bool shares_ranges(const UOp& a, const UOp& b) {
  return std::ranges::any_of(topological(std::span(&b, 1)),
                             [&](const UOp& u) { return u.op() == Op::Range && reaches(a, u); });
}

class Lowering {
 public:
  // The stores and what is inlined must outlive it.
  Lowering(const Decision& decision, std::span<const ScheduledStore> stores,
           std::span<const UOp> inlined)
      : decision_(decision),
        stores_(stores),
        stored_(decision, stores, inlined),
        root_(stores.front().value),
        graph_(root_.graph()),
        ranges_(out_.kernel, graph_, stores.size() > 1,
                [this](const UOp& u) { return stored_.in_memory(u); }) {}

  // Empty if a value has no ranges in common with the first.
  ScheduledKernel run() {
    const UOp* scatter = decision_.scatter_of(root_);
    const std::vector<UOp>& first =
        ranges_.make_output(scatter ? scatter->src(2) : root_, stores_.front().view);
    for (const ScheduledStore& s : stores_) {
      root_ = s.value;
      const auto index = out_.stores.empty()
                             ? std::optional(first)
                             : ranges_.index_beside(root_, computed_at_[root_.node()]);
      if (!index) return {};
      add_store(s, *index);
    }
    accesses_.compare_addresses(out_.kernel.ranges.size() == ranges_.outputs());
    out_.kernel.roots.insert(out_.kernel.roots.end(), checks_.begin(), checks_.end());
    run_reductions(out_.kernel);
    name_by_sizes(out_.kernel, ranges_.outputs());
    put_rows_outermost(out_.kernel);
    collect_variables();
    return std::move(out_);
  }

 private:
  // An index, each list of expressions once: many values are computed at the same one.
  using Index = const std::vector<UOp>*;

  Index interned(const std::vector<UOp>& index) {
    std::vector<const Node*> key;
    key.reserve(index.size());
    for (const UOp& e : index) key.push_back(e.node());
    return &indices_.try_emplace(std::move(key), index).first->second;
  }

  void add_store(const ScheduledStore& store, const std::vector<UOp>& index) {
    if (const UOp* scatter = decision_.scatter_of(root_)) return update(*scatter, store, index);
    // A part of a concatenation may be in memory already: it is copied.
    accesses_.store(store, evaluate(root_, index), index);
  }

  // One of a scatter's updates, of which this is the index.
  void update(const UOp& scatter, const ScheduledStore& store, const std::vector<UOp>& index) {
    const ReduceArg& arg = scatter.reduce_arg();
    const auto axis = static_cast<size_t>(arg.axes.front());
    const UOp value = evaluate(scatter.src(2), index);
    std::vector<UOp> place = index;
    place[axis] =
        graph_.make(Op::Place, {cast(evaluate(scatter.src(1), index), kInt64), UOp(index[axis])});
    // A write updates an older version of the memory.
    const bool is_write = root_.op() == Op::Assign;
    accesses_.update(store, is_write ? as_view(root_.src(0))->base : store.destination, arg.op,
                     value, place);
  }

  // A value that is being computed.  What it needs is computed first, and then it is asked again:
  // a graph may be deeper than the stack.
  struct Frame {
    UOp node;
    Index index = nullptr;
    Index below = nullptr;       // into the source; null: this and the next are not known yet
    std::vector<UOp> more = {};  // a reduction's ranges, a pad's conditions
  };
  struct Key {
    const Node* node;
    Index index;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return hash_mix(std::bit_cast<uintptr_t>(key.node), std::bit_cast<uintptr_t>(key.index));
    }
  };

  // The value of `node` at `index`; memoised, since a node may be reached by several ways.  None if
  // it is not known yet: then the caller returns none too and is asked again.
  UOp at(const UOp& node, Index index) {
    if (const auto found = memo_.find({node.node(), index}); found != memo_.end())
      return found->second;
    missing_.push_back({node, index});
    return {};
  }

  UOp evaluate(const UOp& root, const std::vector<UOp>& at_index) {
    std::vector<Frame> stack;
    stack.push_back({root, interned(at_index)});
    UOp value;
    while (!stack.empty()) {
      missing_.clear();
      Frame& frame = stack.back();
      value = fresh(frame);
      if (value) {
        memo_.emplace(Key{frame.node.node(), frame.index}, value);
        if (stores_.size() > 1) computed_at_[frame.node.node()].push_back(frame.index);
        stack.pop_back();
      } else {
        // The first that is needed is computed first.
        std::move(missing_.rbegin(), missing_.rend(), std::back_inserter(stack));
      }
    }
    return value;
  }

  UOp fresh(Frame& frame) {
    const UOp& node = frame.node;
    if (auto known = memo_.find({node.node(), frame.index}); known != memo_.end())
      return known->second;
    if (!frame.below)
      if (const auto& stored = stored_.view(node); stored && !stored_.is_version_made_here(node))
        return accesses_.load(*stored, *frame.index, node.dtype(), root_);
    return computed(frame);
  }

  UOp computed(Frame& frame) {
    const UOp& node = frame.node;
    const Index index = frame.index;
    if (has(node.op(), kMovement)) return moved(frame);
    if (has(node.op(), kElementwise)) {
      std::vector<UOp> src;
      for (const UOp& s : node.src()) src.push_back(at(s, index));
      return missing_.empty() ? elementwise(node.op(), std::move(src), node.dtype()) : UOp();
    }
    switch (node.op()) {
      case Op::Const:
        return node;
      case Op::Variable:
        return node;
      case Op::Iota:
        return cast(index->front(), node.dtype());
      case Op::Contiguous:
      case Op::Copy:
      case Op::ScanStore:
        return at(node.src(0), index);
      case Op::Assign:
        return at(node.src(1), index);
      case Op::After:
        return version(frame);
      case Op::ReduceAxis:
        return reduced(frame);
      case Op::Winograd:
        return transformed(node, *index);
      case Op::Gather:
        return gathered(frame);
      case Op::Concat:
        return concatenated(node, *index);
      default:
        throw_error(Status::Internal, "no kernel computes the op ", info(node.op()).name);
    }
  }

  // Wherever a value counts its index is inside of its axes: what a pad adds, its conditions
  // choose. Where bounds do not tell, something in whose bounds it is stands for what is reshaped,
  // so that it comes apart as it does without the pad.
  std::vector<UOp> index_below(const UOp& node, std::vector<UOp> index,
                               std::vector<UOp>& conditions) {
    std::vector<std::pair<UOp, UOp>> inside;
    const Shape& shape = shape_of(node);
    for (size_t i = 0; node.op() == Op::Reshape && i < index.size(); ++i) {
      const Interval b = bounds(index[i]);
      if (!shape[i].is_const() || (b.lo >= 0 && b.hi < shape[i].value()) || reads_memory(index[i]))
        continue;
      const UOp stands = graph_.variable(cat("axis ", i), 0, shape[i].value() - 1);
      inside.emplace_back(stands, std::exchange(index[i], stands));
    }
    std::vector<UOp> below = apply_movement_op(node, index, conditions);
    for (UOp& e : below) e = simplify_(e);
    if (inside.empty()) return below;
    below = rebuild(below, nullptr, [&](const UOp&, const UOp& now) {
      for (const auto& [stands, expression] : inside)
        if (now == stands) return expression;
      return now;
    });
    for (UOp& e : below) e = simplify_(e);
    return below;
  }

  UOp moved(Frame& frame) {
    const UOp& node = frame.node;
    if (!frame.below) {
      std::vector<UOp> before;
      append_read_before(node, before);
      accesses_.wait_for(before);
      std::vector<UOp> conditions;
      std::vector<UOp> below = index_below(node, *frame.index, conditions);
      for (const UOp& c : conditions) {
        const UOp simple = simplify_(c);
        if (!simple.is_const() || simple.const_bits() == 0) frame.more.push_back(simple);
      }
      frame.below = interned(below);
    }
    const UOp value = at(node.src(0), frame.below);
    if (!value) return value;
    leave_out_checked(value, frame.more);
    if (frame.more.empty() || is_zero_outside(shape_of(node.src(0)), value, *frame.below))
      return value;
    return where(all_of(graph_, frame.more), value, graph_.constant_bits(value.dtype(), 0));
  }

  // A version that was written whole: the value that was written, whatever its shape.
  UOp version(Frame& frame) {
    const UOp& written = frame.node.src(1);
    if (shape_of(written) == shape_of(frame.node)) return at(written, frame.index);
    if (!frame.below) {
      std::vector<UOp> conditions;
      const UOp same = make_reshape(written, shape_of(frame.node));
      std::vector<UOp> below = apply_movement_op(same, *frame.index, conditions);
      for (UOp& e : below) e = simplify_(e);
      frame.below = interned(below);
    }
    return at(written, frame.below);
  }

  UOp reduced(Frame& frame) {
    const UOp& node = frame.node;
    const ReduceArg& arg = node.reduce_arg();
    if (!frame.below) {
      std::vector<UOp> below = *frame.index;
      const std::vector<UOp>& ranges = ranges_.reduced(node, *frame.index);
      for (size_t i = 0; i < ranges.size(); ++i) {
        below[static_cast<size_t>(arg.axes[i])] = ranges[i];
        if (ranges[i].op() == Op::Range) frame.more.push_back(ranges[i]);
      }
      frame.below = interned(below);
    }
    UOp value = at(node.src(0), frame.below);
    if (!value || frame.more.empty()) return value;
    std::vector<UOp> src{value};
    src.insert(src.end(), frame.more.begin(), frame.more.end());
    return graph_.make(Op::Reduce, std::move(src), ReduceArg{arg.op, {}});
  }

  // Of the operands of its tile.
  UOp transformed(const UOp& node, const std::vector<UOp>& index) {
    const WinogradTransform transform = winograd_transform(node);
    std::vector<UOp> operands;
    for (int64_t i = 0; i < transform.operands(); ++i)
      for (int64_t j = 0; j < transform.operands(); ++j) {
        std::vector<UOp> below = transform.operand_index(index, i, j);
        for (UOp& e : below) e = simplify_(e);
        operands.push_back(at(node.src(0), interned(below)));
      }
    if (!missing_.empty()) return {};
    const auto [row, column] = transform.result_axes();
    return winograd_value(transform, operands, index[row], index[column]);
  }

  // data[.., index[..], ..]: an index that is data is checked, since nothing can prove it.
  UOp gathered(Frame& frame) {
    const UOp& node = frame.node;
    const std::vector<UOp>& index = *frame.index;
    if (!frame.below) {
      const auto axis = static_cast<size_t>(node.int_arg());
      const size_t rank = shape_of(node.src(1)).size();
      const std::vector<UOp> of_index(index.begin() + static_cast<int64_t>(axis),
                                      index.begin() + static_cast<int64_t>(axis + rank));
      const UOp position = at(node.src(1), interned(of_index));
      if (!position) return {};
      const UOp e = cast(position, kInt64);
      check_index(e, shape_of(node.src(0))[axis], shape_of(node.src(1)), of_index);
      std::vector<UOp> below(index.begin(), index.begin() + static_cast<int64_t>(axis));
      below.push_back(e);
      below.insert(below.end(), index.begin() + static_cast<int64_t>(axis + rank), index.end());
      frame.below = interned(below);
    }
    return at(node.src(0), frame.below);
  }

  void check_index(const UOp& e, const Dim& size, const Shape& shape,
                   const std::vector<UOp>& index) {
    const UOp last = add(size.uop(graph_), -1);
    if (prove_nonnegative(e) && prove_nonnegative(sub(last, e))) return;
    UOp ok = logical_and(nonnegative(e), nonnegative(sub(last, e)));
    // Around the index is what a padding of the result has, and nobody takes elements of there.
    for (size_t i = 0; i < shape.size(); ++i)
      for (const UOp& room : {index[i], sub(add(shape[i].uop(graph_), -1), index[i])})
        if (!prove_nonnegative(room)) ok = logical_or(ok, logical_not(nonnegative(room)));
    UOp position = graph_.integer(0);
    const Shape strides = row_major_strides(shape);
    // Where the condition repeats along an axis, the first of those that are equal is named.
    ok = simplify_index(ok);
    for (size_t i = 0; i < shape.size(); ++i)
      if (shares_ranges(ok, index[i]))
        position = add(position, mul(index[i], strides[i].uop(graph_)));
    checks_.push_back(graph_.make(Op::Check, {ok, position}, static_cast<int64_t>(checks_.size())));
  }

  UOp concatenated(const UOp& node, const std::vector<UOp>& index) {
    const auto axis = static_cast<size_t>(node.int_arg());
    Dim end = shape_of(node)[axis];
    UOp value;
    for (size_t i = node.src().size(); i-- > 0;) {
      const Dim begin = end - shape_of(node.src(i))[axis];
      std::vector<UOp> below = index;
      below[axis] = simplify_(sub(index[axis], begin.uop(graph_)));
      const UOp part = at(node.src(i), interned(below));
      if (missing_.empty())
        value = value ? where(less(index[axis], end.uop(graph_)), part, value) : part;
      end = begin;
    }
    return missing_.empty() ? value : UOp();
  }

  void collect_variables() {
    for (const UOp& u : topological(out_.kernel.roots))
      if (u.op() == Op::Variable) out_.kernel.variables.push_back(u);
  }

  const Decision& decision_;
  std::span<const ScheduledStore> stores_;
  StoredValues stored_;
  UOp root_;  // the value that is being lowered
  Graph& graph_;
  ScheduledKernel out_;
  KernelRanges ranges_;
  std::vector<UOp> checks_;
  std::map<std::vector<const Node*>, std::vector<UOp>> indices_;
  std::unordered_map<Key, UOp, KeyHash> memo_;
  NodeTable<std::vector<Index>> computed_at_;  // with several stores
  std::vector<Frame> missing_;                 // what the value just asked for needs
  IndexSimplifier simplify_;
  Accesses accesses_{decision_, out_, simplify_};
};

}  // namespace

// r_64_128 for a reduction, E_64 for elementwise work: output sizes, then reduced ones.
void name_by_sizes(Kernel& kernel, size_t outputs) {
  kernel.name = kernel.ranges.size() > outputs ? "r" : "E";
  for (const KernelRange& r : kernel.ranges) {
    const UOp& size = r.range.src(0);
    kernel.name += size.is_const() ? cat("_", size.const_int()) : std::string("_n");
  }
}

ScheduledKernel lower_store(const UOp& node, const UOp& destination, const View& view,
                            const Decision& decision) {
  const ScheduledStore store{node, destination, view};
  return Lowering(decision, {&store, 1}, {}).run();
}

std::optional<ScheduledKernel> lower_together(std::span<const ScheduledStore> stores,
                                              std::span<const UOp> inlined,
                                              const Decision& decision) {
  std::vector<ScheduledStore> largest_first(stores.begin(), stores.end());
  sort_stable(largest_first, std::greater<>(),
              [](const ScheduledStore& s) { return elements_at_most(s.value); });
  ScheduledKernel kernel = Lowering(decision, largest_first, inlined).run();
  return kernel.stores.empty() ? std::nullopt : std::optional(std::move(kernel));
}

ScheduledKernel lower_value(const UOp& node, const Decision& decision) {
  if (node.op() != Op::Assign) return lower_store(node, node, decision.view_of(node), decision);
  const UOp* scatter = decision.scatter_of(node);
  const auto target = scatter ? written_as(node, *scatter)
                              : as_view(node.src(0), decision.stored, decision.layouts);
  invariant(target.has_value(), "a write is to a view of memory");
  return lower_store(node, decision.slot(target->base), target->view, decision);
}

}  // namespace tiny
