#include "cost/access_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "ir/affine.h"
#include "ir/bounds.h"
#include "ir/node_map.h"
#include "ir/open_size.h"
#include "ir/source_places.h"
#include "rules/symbolic.h"

namespace tiny {

namespace {

constexpr double kUnknown = 1e15;  // elements: more than there are

class Builder {
 public:
  explicit Builder(const Kernel& kernel) : kernel_(kernel) {
    table_.order = topological(kernel.roots);
  }

  AccessTable run() {
    for (const KernelRange& r : kernel_.ranges)
      table_.extents.push_back(
          static_cast<double>(std::max<int64_t>(usual_most(r.range.src(0)), 1)));
    add_nodes();
    const std::span<const uint32_t> sources(table_.sources);
    size_t first = 0;
    for (uint32_t k = 0; k < table_.order.size(); ++k) {
      const UOp& u = table_.order[k];
      add(u, k, sources.subspan(first, u.src().size()));
      first += u.src().size();
    }
    table_.opaque |= table_.checked;
    table_.gathered = table_.opaque & ~divided_;
    table_.opaque |= divided_;
    find_widest();
    find_reduced();
    return std::move(table_);
  }

 private:
  // What is known of each node of its sources: which ranges are free in it, and whether it is an
  // index.
  void add_nodes() {
    const std::vector<UOp>& order = table_.order;
    table_.free.reserve(order.size());
    table_.places.reserve(order.size());
    table_.sources = SourcePlaces(order).take();
    index_.reserve(order.size());
    size_t first = 0;
    for (const UOp& u : order) {
      const auto sources = std::span<const uint32_t>(table_.sources).subspan(first, u.src().size());
      first += u.src().size();
      table_.places.emplace(u.node(), static_cast<uint32_t>(table_.free.size()));
      RangeSet set = u.op() == Op::Range ? bit(kernel_.position(u)) : 0;
      for (const uint32_t s : sources) set |= table_.free[s];
      if (closes_ranges(u))
        for (const uint32_t s : sources.subspan(1)) set &= ~table_.free[s];
      table_.free.push_back(set);
      index_.push_back(u.dtype() == kInt64 && is_made_of_indices(u, sources));
    }
  }

  // Integers made of ranges, variables and constants: scalars and a multiple of the lane's number.
  bool is_made_of_indices(const UOp& u, std::span<const uint32_t> sources) const {
    switch (u.op()) {
      case Op::Range:
      case Op::Const:
      case Op::Variable:
        return true;
      case Op::Mul:
        return index_[sources[0]] && index_[sources[1]] &&
               (u.src(0).is_const() || u.src(1).is_const());
      case Op::Add:
      case Op::FloorDiv:
      case Op::FloorMod:
      case Op::Max:
      case Op::Min:
        return index_[sources[0]] && index_[sources[1]];
      case Op::Neg:
        return index_[sources[0]] != 0;
      default:
        return false;
    }
  }

  void add(const UOp& u, uint32_t k, std::span<const uint32_t> sources) {
    if (u.op() == Op::Load || u.op() == Op::Store) add_access(u, k);
    if (u.op() == Op::Index) add_index(u, k);
    if (u.op() == Op::Check) table_.checked |= table_.free[k];
    if ((u.op() == Op::Less || u.op() == Op::LessEqual) && index_[sources[0]] &&
        index_[sources[1]] && (table_.free[k] & divided_))
      add_comparison(u);
    if (u.op() == Op::Reduce || u.op() == Op::Store) {
      add_closure(u, k, sources);
      // A constant is spread over lanes where it is closed.
      const DType closed = u.op() == Op::Store ? u.src(1).dtype() : u.dtype();
      table_.widest_bytes = std::max(table_.widest_bytes, closed.bytes());
    }
    if (index_[k] && has(u.op(), kElementwise) && u.op() != Op::Add && u.op() != Op::Neg &&
        !(u.op() == Op::Mul && (u.src(0).is_const() || u.src(1).is_const())))
      divided_ |= table_.free[k];
  }

  void find_widest() {
    RangeSet scalar = table_.opaque;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if (kernel_.ranges[i].kind == RangeKind::Vec) {
        scalar &= ~bit(i);
        if (table_.compared >> i & 1)
          table_.widest_bytes = std::max<int64_t>(table_.widest_bytes, kInt64.bytes());
      }
    size_t first = 0;
    for (size_t k = 0; k < table_.order.size(); ++k) {
      const UOp& u = table_.order[k];
      const auto sources = std::span<const uint32_t>(table_.sources).subspan(first, u.src().size());
      first += u.src().size();
      // What depends on no range that lanes lie along, or may, is one value for all lanes.
      if (!(table_.free[k] & ~scalar)) continue;
      if (has(u.op(), kElementwise)) count_indices(u, sources);
      if (u.dtype() != kVoid && u.op() != Op::Param && !index_[k])
        table_.widest_bytes = std::max(table_.widest_bytes, u.dtype().bytes());
    }
  }
  // Indices that are used as numbers have lanes too: 32 bits where a cast makes something narrower
  // of them, otherwise 64; only comparisons with each other do without.
  void count_indices(const UOp& u, std::span<const uint32_t> sources) {
    if (u.dtype() == kInt64) return;
    if ((u.op() == Op::Less || u.op() == Op::LessEqual) && index_[sources[0]] && index_[sources[1]])
      return;
    for (size_t i = 0; i < sources.size(); ++i) {
      if (!index_[sources[i]] || !table_.free[sources[i]]) continue;
      const Interval range = bounds(u.src(i));
      const bool narrow = u.op() == Op::Cast && u.dtype().bytes() <= 4 && range.lo >= INT32_MIN &&
                          range.hi <= INT32_MAX;
      table_.widest_bytes = std::max<int64_t>(table_.widest_bytes, narrow ? 4 : 8);
    }
  }

  // A comparison of indices asks for lanes of them along what it divides otherwise than by a
  // quotient alone.
  void add_comparison(const UOp& u) {
    const UOp slack = without_quotients(slack_of(u), bounds_);
    kept_.push_back(slack);
    const std::optional<Affine> sum = affine(slack);
    const std::vector<AffineTerm> terms = sum ? sum->terms : std::vector<AffineTerm>{{slack, 1}};
    for (const AffineTerm& term : terms) {
      if (term.atom.op() == Op::Range) continue;
      add_free_ranges(kernel_, {&term.atom, 1}, made_);
      table_.compared |= made_.at(term.atom.node());
    }
  }

  // What reductions need, each node before its sources.
  void find_reduced() {
    std::vector<uint8_t> reduced(table_.order.size());
    size_t end = table_.sources.size();
    for (size_t k = table_.order.size(); k-- > 0;) {
      const UOp& u = table_.order[k];
      const size_t begin = end - u.src().size();
      if (u.op() == Op::Reduce) reduced[k] = 1;
      if (reduced[k])
        for (size_t i = begin; i < end; ++i) reduced[table_.sources[i]] = 1;
      end = begin;
    }
    for (AccessInfo& a : table_.accesses) a.inside_reduction = reduced[a.place] != 0;
  }

  void add_access(const UOp& u, uint32_t place) {
    AccessInfo& info = new_access(u, place);
    info.store = u.op() == Op::Store;
    const ViewArg& view = u.view_arg();
    info.offset = static_cast<double>(view.offset);
    const size_t first = info.store ? 2 : 1;
    for (size_t i = 0; i < view.shape.size(); ++i) {
      const int64_t stride = view.strides[i] == kSymbolicDim ? kOpaqueStride : view.strides[i];
      if (view.strides[i] != 0)
        info.elements *= view.shape[i] == kSymbolicDim ? 1.0 : static_cast<double>(view.shape[i]);
      const bool is_known = view.shape[i] != kSymbolicDim && view.strides[i] != kSymbolicDim;
      info.span += is_known ? std::abs(static_cast<double>(view.strides[i])) *
                                  static_cast<double>(std::max<int64_t>(view.shape[i] - 1, 0))
                            : kUnknown;
      if (stride != 0) add_index_of(info, u.src(first + i), stride);
    }
  }

  // A stage is read as a buffer is, with the strides of its layout.
  void add_index(const UOp& u, uint32_t place) {
    AccessInfo& info = new_access(u, place);
    const UOp& stage = u.src(0);
    bool is_split = false;
    for (size_t i = 1; i < u.src().size(); ++i) {
      is_split = is_split || u.src(i).op() == Op::FloorDiv || u.src(i).op() == Op::FloorMod;
      info.elements *= static_cast<double>(std::max<int64_t>(usual_most(stage.src(i).src(0)), 1));
    }
    info.span = kUnknown;
    if (is_split) {
      const UOp flat = plain_stage_index(u);
      add_free_ranges(kernel_, {&flat, 1}, made_);
      add_index_of(info, flat, 1);
      kept_.push_back(flat);
    } else {
      for (size_t i = 1; i < u.src().size(); ++i)
        add_index_of(info, u.src(i), stage.stage_arg().strides[i - 1]);
    }
  }

  AccessInfo& new_access(const UOp& u, uint32_t place) {
    AccessInfo& info = table_.accesses.emplace_back();
    info.node = u;
    info.place = place;
    info.strides.resize(kernel_.ranges.size());
    return info;
  }

  // The steps of an expression that is an index, along an axis of this stride.
  void add_index_of(AccessInfo& info, const UOp& e, int64_t stride) {
    if (add_ranges(info, e, stride)) return;
    const auto sum = affine(e);
    if (!sum) return add_term(info, {e, 1}, stride);
    if (stride != kOpaqueStride)
      info.offset += static_cast<double>(sum->constant) * static_cast<double>(stride);
    for (const AffineTerm& term : sum->terms) add_term(info, term, stride);
  }
  // The same where it is a sum of multiples of ranges, as most are; false, and nothing done, if
  // not.
  bool add_ranges(AccessInfo& info, const UOp& e, int64_t stride) const {
    if (stride == kOpaqueStride) return false;
    struct Part {
      const UOp* node;
      int64_t coefficient;
    };
    constexpr size_t kPartsMax = 16;
    Part parts[kPartsMax] = {{&e, 1}};
    double constant = 0;
    size_t count = 1;  // of which the first `ranges` are ranges
    for (size_t ranges = 0; ranges < count;) {
      Part& part = parts[ranges];
      const UOp& u = *part.node;
      if (u.op() == Op::Range) {
        ++ranges;
      } else if (u.is_const()) {
        constant += static_cast<double>(part.coefficient) * static_cast<double>(u.const_int());
        part = parts[--count];
      } else if (u.op() == Op::Add && count < kPartsMax) {
        parts[count++] = {&u.src(1), part.coefficient};
        part.node = &u.src(0);
      } else if (u.op() == Op::Mul && u.src(1).is_const() &&
                 !__builtin_mul_overflow(part.coefficient, u.src(1).const_int(),
                                         &part.coefficient)) {
        part.node = &u.src(0);
      } else {
        return false;
      }
    }
    for (size_t i = 0; i < count; ++i)
      if (info.strides[kernel_.position(*parts[i].node)] == kOpaqueStride) return false;
    for (size_t i = 0; i < count; ++i)
      info.strides[kernel_.position(*parts[i].node)] += parts[i].coefficient * stride;
    info.offset += constant * static_cast<double>(stride);
    return true;
  }
  void add_term(AccessInfo& info, const AffineTerm& term, int64_t stride) {
    if (stride == 0) return;
    const bool is_range = term.atom.op() == Op::Range;
    const uint32_t* place = table_.places.find(term.atom.node());
    if (!place && !made_.contains(term.atom.node())) {  // a product that only the sum has
      add_free_ranges(kernel_, {&term.atom, 1}, made_);
      kept_.push_back(term.atom);
    }
    const RangeSet free = place ? table_.free[*place] : made_.at(term.atom.node());
    const bool is_index = place && index_[*place];
    for (RangeSet left = free; left; left &= left - 1) {
      int64_t& at = info.strides[static_cast<size_t>(std::countr_zero(left))];
      const bool plain = is_range && stride != kOpaqueStride && at != kOpaqueStride;
      at = plain ? at + term.coefficient * stride : kOpaqueStride;
    }
    if (is_index && !is_range) divided_ |= free;
    if (!is_range) table_.opaque |= free;
  }

  void add_closure(const UOp& u, uint32_t k, std::span<const uint32_t> sources) {
    ClosureInfo& info = table_.closures.emplace_back();
    info.node = u;
    info.store = u.op() == Op::Store;
    if (info.store) {
      info.own = table_.free[k];
    } else {
      for (const uint32_t s : sources.subspan(1)) info.own |= table_.free[s];
    }
    for (const uint32_t s : sources) info.below |= table_.free[s];
  }

  const Kernel& kernel_;
  AccessTable table_;
  std::vector<uint8_t> index_;  // by place: whether it is an index
  std::vector<UOp> kept_;       // what indices were made into stays alive
  FreeRanges made_;             // of these
  BoundsCache bounds_;
  uint64_t divided_ = 0;  // ranges that an index divides, or chooses by
};

}  // namespace

AccessTable access_table(const Kernel& kernel) {
  return Builder(kernel).run();
}

}  // namespace tiny
