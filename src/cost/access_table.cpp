#include "cost/access_table.h"

#include <algorithm>
#include <cmath>

#include "ir/affine.h"
#include "ir/bounds.h"
#include "ir/node_map.h"
#include "rules/symbolic.h"

namespace tiny {

namespace {

constexpr double kUnknown = 1e15;  // elements: more than there are

class Builder {
 public:
  explicit Builder(const Kernel& kernel) : kernel_(kernel), order_(topological(kernel.roots)) {}

  AccessTable run() {
    for (const KernelRange& r : kernel_.ranges)
      table_.extents.push_back(
          static_cast<double>(std::max<int64_t>(bounds(r.range.src(0)).hi, 1)));
    free_.reserve(order_.size());
    for (const UOp& u : order_) {
      set_free(u);
      set_index(u);
    }
    for (const UOp& u : order_) {
      if (u.op() == Op::Load || u.op() == Op::Store) add_access(u);
      if (u.op() == Op::Index) add_index(u);
      if (u.op() == Op::Check) table_.opaque |= free_[u.node()];
      if (u.op() == Op::Reduce || u.op() == Op::Store) {
        add_closure(u);
        // A constant is spread over lanes where it is closed.
        const DType closed = u.op() == Op::Store ? u.src(1).dtype() : u.dtype();
        table_.widest_bytes = std::max(table_.widest_bytes, closed.bytes());
      }
      const bool index = is_index(u);
      if (index && has(u.op(), kElementwise) && u.op() != Op::Add && u.op() != Op::Neg &&
          !(u.op() == Op::Mul && (u.src(0).is_const() || u.src(1).is_const())))
        divided_ |= free_[u.node()];
    }
    table_.gathered = table_.opaque & ~divided_;
    table_.opaque |= divided_;
    RangeSet scalar = table_.opaque;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if (kernel_.ranges[i].kind == RangeKind::Vec) scalar &= ~bit(i);
    for (const UOp& u : order_) {
      // What depends on no range that lanes lie along, or may, is one value for all lanes.
      if (!(free_[u.node()] & ~scalar)) continue;
      if (has(u.op(), kElementwise)) count_indices(u);
      if (u.dtype() != kVoid && u.op() != Op::Param && !is_index(u))
        table_.widest_bytes = std::max(table_.widest_bytes, u.dtype().bytes());
    }
    std::vector<UOp> reductions;
    for (const ClosureInfo& c : table_.closures)
      if (!c.store) reductions.push_back(c.node);
    NodeSet reduced;
    for (const UOp& u : topological(reductions)) reduced.insert(u.node());
    for (AccessInfo& a : table_.accesses) a.inside_reduction = reduced.contains(a.node.node());
    table_.order = std::move(order_);
    table_.free = std::move(free_);
    return std::move(table_);
  }

 private:
  // Indices that are used as numbers have lanes too: 32 bits where a cast makes something narrower
  // of them, otherwise 64; only comparisons with each other do without.
  void count_indices(const UOp& u) {
    if (u.dtype() == kInt64) return;
    if ((u.op() == Op::Less || u.op() == Op::LessEqual) && is_index(u.src(0)) && is_index(u.src(1)))
      return;
    for (const UOp& s : u.src()) {
      if (!is_index(s) || !free_[s.node()]) continue;
      const Interval range = bounds(s);
      const bool narrow = u.op() == Op::Cast && u.dtype().bytes() <= 4 && range.lo >= INT32_MIN &&
                          range.hi <= INT32_MAX;
      table_.widest_bytes = std::max<int64_t>(table_.widest_bytes, narrow ? 4 : 8);
    }
  }
  // Integers made of ranges, variables and constants: scalars and a multiple of the lane's number.
  bool is_index(const UOp& u) const { return u.dtype() == kInt64 && index_.contains(u.node()); }
  void set_index(const UOp& u) {
    if (u.dtype() != kInt64) return;
    bool index = u.op() == Op::Range || u.op() == Op::Const || u.op() == Op::Variable;
    switch (u.op()) {
      case Op::Mul:
        index = is_index(u.src(0)) && is_index(u.src(1)) &&
                (u.src(0).is_const() || u.src(1).is_const());
        break;
      case Op::Add:
      case Op::FloorDiv:
      case Op::FloorMod:
      case Op::Max:
      case Op::Min:
        index = is_index(u.src(0)) && is_index(u.src(1));
        break;
      case Op::Neg:
        index = is_index(u.src(0));
        break;
      default:
        break;
    }
    if (index) index_.insert(u.node());
  }
  void set_free(const UOp& u) {
    uint64_t set = 0;
    if (u.op() == Op::Range) set = uint64_t{1} << kernel_.position(u);
    for (const UOp& s : u.src()) set |= free_.at(s.node());
    if (closes_ranges(u))
      for (size_t i = 1; i < u.src().size(); ++i) set &= ~free_.at(u.src(i).node());
    free_.emplace(u.node(), set);
  }

  void add_access(const UOp& u) {
    AccessInfo info;
    info.node = u;
    info.store = u.op() == Op::Store;
    info.strides.resize(kernel_.ranges.size());
    const ViewArg& view = u.view_arg();
    const size_t first = info.store ? 2 : 1;
    for (size_t i = 0; i < view.shape.size(); ++i) {
      const UOp& e = u.src(first + i);
      const auto sum = affine(e);
      const int64_t stride = view.strides[i] == kSymbolicDim ? kOpaqueStride : view.strides[i];
      if (view.strides[i] != 0)
        info.elements *= view.shape[i] == kSymbolicDim ? 1.0 : static_cast<double>(view.shape[i]);
      const bool is_known = view.shape[i] != kSymbolicDim && view.strides[i] != kSymbolicDim;
      info.span += is_known ? std::abs(static_cast<double>(view.strides[i])) *
                                  static_cast<double>(std::max<int64_t>(view.shape[i] - 1, 0))
                            : kUnknown;
      const Affine whole = sum ? *sum : Affine{0, {{e, 1}}};
      for (const AffineTerm& term : whole.terms) add_term(info, term, stride);
    }
    table_.accesses.push_back(std::move(info));
  }

  // A stage is read as a buffer is, with the strides of its layout.
  void add_index(const UOp& u) {
    AccessInfo info;
    info.node = u;
    info.strides.resize(kernel_.ranges.size());
    const UOp& stage = u.src(0);
    bool is_split = false;
    for (size_t i = 1; i < u.src().size(); ++i) {
      is_split = is_split || u.src(i).op() == Op::FloorDiv || u.src(i).op() == Op::FloorMod;
      info.elements *= static_cast<double>(std::max<int64_t>(bounds(stage.src(i).src(0)).hi, 1));
    }
    info.span = kUnknown;
    const auto add_index_of = [&](const UOp& e, int64_t stride) {
      const auto sum = affine(e);
      const Affine whole = sum ? *sum : Affine{0, {{e, 1}}};
      for (const AffineTerm& term : whole.terms) add_term(info, term, stride);
    };
    if (is_split) {
      kept_.push_back(flat_stage_index(u));
      for (const UOp& made : topological({&kept_.back(), 1}))
        if (!free_.find(made.node())) set_free(made);
      add_index_of(kept_.back(), 1);
    } else {
      for (size_t i = 1; i < u.src().size(); ++i) add_index_of(u.src(i), stage.ints()[i - 1]);
    }
    table_.accesses.push_back(std::move(info));
  }

  void add_term(AccessInfo& info, const AffineTerm& term, int64_t stride) {
    if (stride == 0) return;
    for (size_t r = 0; r < kernel_.ranges.size(); ++r) {
      if (!(free_[term.atom.node()] & (uint64_t{1} << r))) continue;
      int64_t& at = info.strides[r];
      if (is_index(term.atom) && term.atom.op() != Op::Range) divided_ |= uint64_t{1} << r;
      if (term.atom.op() != Op::Range) table_.opaque |= uint64_t{1} << r;
      const bool plain =
          term.atom.op() == Op::Range && stride != kOpaqueStride && at != kOpaqueStride;
      at = plain ? at + term.coefficient * stride : kOpaqueStride;
    }
  }

  void add_closure(const UOp& u) {
    ClosureInfo info;
    info.node = u;
    info.store = u.op() == Op::Store;
    if (info.store) {
      info.own = free_[u.node()];
    } else {
      for (size_t i = 1; i < u.src().size(); ++i) info.own |= free_[u.src(i).node()];
    }
    for (const UOp& s : u.src()) info.below |= free_[s.node()];
    table_.closures.push_back(std::move(info));
  }

  const Kernel& kernel_;
  std::vector<UOp> order_;
  AccessTable table_;
  NodeTable<uint64_t> free_;
  std::vector<UOp> kept_;  // what indices were made into stays alive
  NodeSet index_;
  uint64_t divided_ = 0;  // ranges that an index divides, or chooses by
};

}  // namespace

AccessTable access_table(const Kernel& kernel) {
  return Builder(kernel).run();
}

}  // namespace tiny
