#include "schedule/accesses.h"

#include <cstdint>

#include "ir/bounds.h"
#include "ir/build.h"

namespace tiny {

namespace {

constexpr std::pair<int64_t, int64_t> kNoElements{0, -1};

// A view as an argument; what is symbolic in it is appended to `src`.
ViewArg view_arg(const View& view, std::vector<UOp>& src) {
  const auto number = [&](const Dim& d) {
    if (d.is_const()) return d.value();
    src.push_back(d.expression());
    return kSymbolicDim;
  };
  ViewArg arg;
  arg.shape.reserve(view.shape.size());
  arg.strides.reserve(view.strides.size());
  for (const Dim& d : view.shape) arg.shape.push_back(number(d));
  for (const Dim& d : view.strides) arg.strides.push_back(number(d));
  arg.offset = number(view.offset);
  return arg;
}

std::pair<int64_t, int64_t> extent_or_all(const View& view) {
  const bool numbers = all_const(view.shape) && all_const(view.strides) && view.offset.is_const();
  return numbers ? extent(view) : std::pair<int64_t, int64_t>{0, INT64_MAX};
}

}  // namespace

bool is_in_range(const UOp& index, const Dim& size) {
  if (index.is_const() && size.is_const())
    return index.const_int() >= 0 && index.const_int() < size.value();
  if (index.op() == Op::Range && size.is_const() && index.src(0).is_const_int(size.value()))
    return true;
  const UOp room = sub(sub(size.uop(index.graph()), index), index.graph().integer(1));
  return prove_nonnegative(index) && prove_nonnegative(room);
}

UOp Accesses::param(const UOp& base, DType dtype, bool written) {
  size_t slot = 0;
  while (slot < out_.values.size() && !(out_.values[slot] == base)) ++slot;
  if (slot == out_.values.size()) {
    out_.values.push_back(base);
    out_.kernel.params.push_back({dtype, false, false});
  }
  (written ? out_.kernel.params[slot].written : out_.kernel.params[slot].read) = true;
  return base.graph().make(Op::Param, {}, static_cast<int64_t>(slot), dtype);
}

void Accesses::wait_for(std::span<const UOp> values) {
  for (const UOp& value : values)
    if (!has_memory(value) && decision_.stored[value.id()])
      out_.reads.push_back({value, kNoElements, false, {}});
}

UOp Accesses::load(const StoredView& stored, const std::vector<UOp>& index, DType dtype,
                   const UOp& reader) {
  wait_for(stored.before);
  UOp base = stored.base;
  View view = stored.view;
  const auto copy = decision_.copies.find({reader.node(), base.node()});
  if (copy != decision_.copies.end()) {
    view.offset = view.offset - copy->second.first;
    base = copy->second.node;
  }
  out_.reads.push_back({base, extent_or_all(view), false, {}});
  const size_t read = out_.reads.size() - 1;
  std::vector<UOp> src{param(decision_.slot(base), dtype, false)};
  // What repeats along an axis does not depend on it, and one place of it is a part of the offset:
  // the axis is left out where the index is in range anyway.
  for (size_t i = 0, axis = 0; i < index.size(); ++i) {
    const bool is_place = index[i].is_const() && view.strides[axis].is_const();
    if ((is_place || view.strides[axis].is(0)) && is_in_range(index[i], view.shape[axis])) {
      if (is_place) view.offset = view.offset + view.strides[axis] * Dim(index[i].const_int());
      view.shape.erase(view.shape.begin() + static_cast<int64_t>(axis));
      view.strides.erase(view.strides.begin() + static_cast<int64_t>(axis));
      continue;
    }
    src.push_back(index[i]);
    ++axis;
  }
  const ViewArg arg = view_arg(view, src);
  out_.reads[read].load = base.graph().make(Op::Load, std::move(src), arg, dtype);
  return out_.reads[read].load;
}

void Accesses::store(const ScheduledStore& store, const UOp& value, const std::vector<UOp>& index) {
  std::vector<UOp> src{param(store.destination, store.value.dtype(), true), value};
  src.insert(src.end(), index.begin(), index.end());
  const ViewArg arg = view_arg(store.view, src);
  out_.kernel.roots.push_back(value.graph().make(Op::Store, std::move(src), arg));
  out_.stores.push_back(store);
}

void Accesses::update(const ScheduledStore& store, const UOp& before, Op fold, const UOp& value,
                      const std::vector<UOp>& index) {
  // Never a copy of what was there: each step reads what those before it have stored.
  const DType dtype = store.value.dtype();
  std::vector<UOp> src{param(store.destination, dtype, false)};
  out_.reads.push_back({before, extent_or_all(store.view), true, {}});
  UOp result = value;
  if (fold != Op::Assign) {
    src.insert(src.end(), index.begin(), index.end());
    const ViewArg arg = view_arg(store.view, src);
    result =
        elementwise(fold, {value.graph().make(Op::Load, std::move(src), arg, dtype), value}, dtype);
  }
  this->store(store, result, index);
}

// Where an element of a load or store is; no node if the view is symbolic.
UOp Accesses::address(const UOp& access, size_t first) {
  const ViewArg& view = access.view_arg();
  if (access.src().size() != first + view.shape.size() || view.offset == kSymbolicDim) return {};
  Graph& graph = access.graph();
  UOp sum = graph.integer(view.offset);
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (view.strides[i] == kSymbolicDim || view.shape[i] == kSymbolicDim) return {};
    sum = add(sum, mul(access.src(first + i), graph.integer(view.strides[i])));
  }
  return simplify_(sum);
}

void Accesses::compare_addresses(bool no_loops) {
  for (size_t i = 0; i < out_.stores.size(); ++i) {
    UOp own;
    for (ScheduledKernel::Read& read : out_.reads) {
      if (!read.load || !(decision_.slot(read.base) == out_.stores[i].destination)) continue;
      if (!own) own = address(out_.kernel.roots[i], 2);
      read.in_place = own && address(read.load, 1) == own && (out_.stores.size() == 1 || no_loops);
    }
  }
}

}  // namespace tiny
