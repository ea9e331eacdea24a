#include "schedule/lower.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <numeric>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/shared_value.h"
#include "rules/symbolic.h"
#include "shape/shape.h"

namespace tiny {

namespace {

// The axes as they lie in memory, the outermost first; where that is not known, in their order.
std::vector<size_t> axes_by_stride(const View& view) {
  std::vector<size_t> axes(view.strides.size());
  std::iota(axes.begin(), axes.end(), size_t{0});
  if (view.strides.empty() || !all_const(view.strides)) return axes;
  std::stable_sort(axes.begin(), axes.end(), [&](size_t a, size_t b) {
    return view.strides[a].value() > view.strides[b].value();
  });
  return axes;
}

class Lowering {
 public:
  Lowering(const Decision& decision, const UOp& root)
      : decision_(decision), root_(root), graph_(root.graph()) {}

  ScheduledKernel run(const UOp& destination, const View& view) {
    out_.stored.push_back(root_);
    out_.destination = destination;
    out_.view = view;
    const Shape& shape = shape_of(root_);
    std::vector<UOp> index(shape.size());
    for (size_t axis : axes_by_stride(view)) index[axis] = new_range(shape[axis], false);
    const size_t output_ranges = out_.kernel.ranges.size();
    // A part of a concatenation may be in memory already: it is copied.
    const UOp value = evaluate(root_, index);
    std::vector<UOp> src{param(destination, root_.dtype(), true), value};
    src.insert(src.end(), index.begin(), index.end());
    const ViewArg arg = view_arg(view, src);
    out_.kernel.roots.push_back(graph_.make(Op::Store, std::move(src), arg));
    compare_addresses(destination);
    out_.kernel.roots.insert(out_.kernel.roots.end(), checks_.begin(), checks_.end());
    name(output_ranges);
    put_rows_outermost(out_.kernel);
    collect_variables();
    return std::move(out_);
  }

 private:
  UOp new_range(const Dim& size, bool reduced) {
    if (size.is(1)) return graph_.integer(0);
    const auto number = static_cast<int64_t>(out_.kernel.ranges.size());
    const UOp range = graph_.make(Op::Range, {size.uop(graph_)}, number);
    out_.kernel.ranges.push_back({range, RangeKind::Loop, reduced});
    return range;
  }

  UOp param(const UOp& base, DType dtype, bool written) {
    size_t slot = 0;
    while (slot < out_.values.size() && !(out_.values[slot] == base)) ++slot;
    if (slot == out_.values.size()) {
      out_.values.push_back(base);
      out_.kernel.params.push_back({dtype, false, false});
    }
    (written ? out_.kernel.params[slot].written : out_.kernel.params[slot].read) = true;
    return graph_.make(Op::Param, {}, static_cast<int64_t>(slot), dtype);
  }

  // A view as an argument; what is symbolic in it is appended to `src`.
  ViewArg view_arg(const View& view, std::vector<UOp>& src) {
    const auto number = [&](const Dim& d) {
      if (d.is_const()) return d.value();
      src.push_back(d.expression());
      return kSymbolicDim;
    };
    ViewArg arg;
    for (const Dim& d : view.shape) arg.shape.push_back(number(d));
    for (const Dim& d : view.strides) arg.strides.push_back(number(d));
    arg.offset = number(view.offset);
    return arg;
  }

  // An index, each list of expressions once: many values are computed at the same one.
  using Index = const std::vector<UOp>*;

  Index interned(const std::vector<UOp>& index) {
    std::vector<const Node*> key;
    key.reserve(index.size());
    for (const UOp& e : index) key.push_back(e.node());
    return &indices_.try_emplace(std::move(key), index).first->second;
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
        stack.pop_back();
      } else {
        // The first that is needed is computed first.
        std::move(missing_.rbegin(), missing_.rend(), std::back_inserter(stack));
      }
    }
    return value;
  }

  bool in_memory(const UOp& node) const {
    return has_memory(node) || (decision_.stored[node.id()] && !(node == root_));
  }

  UOp fresh(Frame& frame) {
    const UOp& node = frame.node;
    if (auto known = memo_.find({node.node(), frame.index}); known != memo_.end())
      return known->second;
    if (!frame.below)
      if (auto stored = as_view(node, memory_flags(), decision_.layouts))
        return load(*stored, *frame.index, node.dtype());
    return computed(frame);
  }

  // as_view stops at every buffer, but not at the value that this kernel is here to compute.
  const std::vector<uint8_t>& memory_flags() {
    if (flags_.empty()) {
      flags_ = decision_.stored;
      if (!has_memory(root_)) flags_[root_.id()] = 0;
    }
    return flags_;
  }

  UOp load(const StoredView& stored, const std::vector<UOp>& index, DType dtype) {
    UOp base = stored.base;
    View view = stored.view;
    const auto copy = decision_.copies.find({root_.node(), base.node()});
    if (copy != decision_.copies.end()) {
      view.offset = view.offset - copy->second.first;
      base = copy->second.node;
    }
    out_.reads.push_back({base, extent_or_all(view), false, {}});
    const size_t read = out_.reads.size() - 1;
    std::vector<UOp> src{param(decision_.slot(base), dtype, false)};
    // What repeats along an axis does not depend on it: the axis is left out where the index is in
    // range anyway.
    for (size_t i = 0, axis = 0; i < index.size(); ++i) {
      if (view.strides[axis].is(0) && in_range(index[i], view.shape[axis])) {
        view.shape.erase(view.shape.begin() + static_cast<int64_t>(axis));
        view.strides.erase(view.strides.begin() + static_cast<int64_t>(axis));
        continue;
      }
      src.push_back(index[i]);
      ++axis;
    }
    const ViewArg arg = view_arg(view, src);
    out_.reads[read].load = graph_.make(Op::Load, std::move(src), arg, dtype);
    return out_.reads[read].load;
  }

  bool in_range(const UOp& index, const Dim& size) const {
    const UOp room = sub(sub(size.uop(graph_), index), graph_.integer(1));
    return prove_nonnegative(index) && prove_nonnegative(room);
  }

  static std::pair<int64_t, int64_t> extent_or_all(const View& view) {
    const bool numbers = all_const(view.shape) && all_const(view.strides) && view.offset.is_const();
    return numbers ? extent(view) : std::pair<int64_t, int64_t>{0, INT64_MAX};
  }

  // Where an element of a load or store is; no node if the view is symbolic.
  UOp address(const UOp& access, size_t first) const {
    const ViewArg& view = access.view_arg();
    if (access.src().size() != first + view.shape.size() || view.offset == kSymbolicDim) return {};
    UOp sum = graph_.integer(view.offset);
    for (size_t i = 0; i < view.shape.size(); ++i) {
      if (view.strides[i] == kSymbolicDim || view.shape[i] == kSymbolicDim) return {};
      sum = add(sum, mul(access.src(first + i), graph_.integer(view.strides[i])));
    }
    return simplify_(sum);
  }

  // Finds the reads of the memory that is written which have the store's own address.
  void compare_addresses(const UOp& destination) {
    UOp own;
    for (ScheduledKernel::Read& read : out_.reads) {
      if (!(decision_.slot(read.base) == destination)) continue;
      if (!own) own = address(out_.kernel.roots.front(), 2);
      read.in_place = own && address(read.load, 1) == own;
    }
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
        return at(node.src(0), index);
      case Op::Assign:
        return at(node.src(1), index);
      case Op::ReduceAxis:
        return reduced(frame);
      case Op::Gather:
        return gathered(frame);
      case Op::Concat:
        return concatenated(node, *index);
      default:
        throw Error(Status::Internal, cat("no kernel computes the op ", info(node.op()).name));
    }
  }

  UOp moved(Frame& frame) {
    const UOp& node = frame.node;
    if (node.op() == Op::AsStrided)
      throw Error(Status::Internal, "as_strided of a value without memory");
    if (!frame.below) {
      std::vector<UOp> conditions;
      std::vector<UOp> below = apply_movement_op(node, *frame.index, conditions);
      for (UOp& e : below) e = simplify_(e);
      for (const UOp& c : conditions) {
        const UOp simple = simplify_(c);
        if (!simple.is_const() || simple.const_bits() == 0) frame.more.push_back(simple);
      }
      frame.below = interned(below);
    }
    const UOp value = at(node.src(0), frame.below);
    if (!value || frame.more.empty() || zero_outside(node, value, *frame.below)) return value;
    return where(all_of(graph_, frame.more), value, graph_.constant_bits(value.dtype(), 0));
  }

  // A load is zero where an index leaves its axis: the conditions of a pad say the same once more.
  bool zero_outside(const UOp& pad, const UOp& value, const std::vector<UOp>& below) const {
    if (value.op() != Op::Load) return false;
    const ViewArg& view = value.view_arg();
    const Shape& shape = shape_of(pad.src(0));
    // An axis that the load has not is one whose index is in range anyway.
    size_t axis = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
      const bool same = axis < view.shape.size() && shape[i].is(view.shape[axis]) &&
                        value.src(1 + axis) == below[i];
      if (!same && !in_range(below[i], shape[i])) return false;
      axis += same ? 1 : 0;
    }
    return axis == view.shape.size();
  }

  UOp reduced(Frame& frame) {
    const UOp& node = frame.node;
    const ReduceArg& arg = node.reduce_arg();
    if (!frame.below) {
      const Shape& shape = shape_of(node.src(0));
      std::vector<UOp> below = *frame.index;
      // A value that is reduced for several indices walks the same ranges for each.
      std::vector<UOp>& ranges = reduced_over_[node.node()];
      if (ranges.empty())
        for (int64_t axis : arg.axes)
          ranges.push_back(new_range(shape[static_cast<size_t>(axis)], true));
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
    const UOp ok = logical_and(nonnegative(e), nonnegative(sub(last, e)));
    UOp position = graph_.integer(0);
    const Shape strides = row_major_strides(shape);
    for (size_t i = 0; i < shape.size(); ++i)
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

  // r_64_128 for a reduction, E_64 for elementwise work: output sizes, then reduced ones.
  void name(size_t output_ranges) {
    std::string text = out_.kernel.ranges.size() > output_ranges ? "r" : "E";
    for (const KernelRange& r : out_.kernel.ranges) {
      const UOp& size = r.range.src(0);
      text += size.is_const() ? cat("_", size.const_int()) : std::string("_n");
    }
    out_.kernel.name = text;
  }

  void collect_variables() {
    for (const UOp& u : topological(out_.kernel.roots))
      if (u.op() == Op::Variable) out_.kernel.variables.push_back(u);
  }

  const Decision& decision_;
  UOp root_;
  Graph& graph_;
  ScheduledKernel out_;
  std::vector<UOp> checks_;
  std::map<std::vector<const Node*>, std::vector<UOp>> indices_;
  std::unordered_map<Key, UOp, KeyHash> memo_;
  std::unordered_map<const Node*, std::vector<UOp>> reduced_over_;  // by reduction: its ranges
  std::vector<Frame> missing_;  // what the value just asked for needs
  std::vector<uint8_t> flags_;
  mutable IndexSimplifier simplify_;
};

}  // namespace

ScheduledKernel lower_store(const UOp& node, const UOp& destination, const View& view,
                            const Decision& decision) {
  return Lowering(decision, node).run(destination, view);
}

ScheduledKernel lower_value(const UOp& node, const Decision& decision) {
  if (node.op() != Op::Assign) return lower_store(node, node, decision.view_of(node), decision);
  const auto target = as_view(node.src(0), decision.stored, decision.layouts);
  invariant(target.has_value(), "a write is to a view of memory");
  return lower_store(node, decision.slot(target->base), target->view, decision);
}

}  // namespace tiny
