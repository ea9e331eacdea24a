#include "codegen/figures.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "base/text.h"
#include "codegen/linear/trips.h"
#include "ir/affine.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/node_map.h"

namespace tiny {

namespace {

// For each node a row of bits, by position in the kernel, of which it may have any number: the
// ranges below it that nothing below it closes.
class FreeRows {
 public:
  FreeRows(const Kernel& kernel, size_t nodes)
      : words_((kernel.ranges.size() + kBits - 1) / kBits), bits_(nodes * words_) {
    for (const KernelRange& r : kernel.ranges)
      sizes_.push_back(static_cast<double>(bounds(r.range.src(0)).hi));
  }

  void set(size_t row, size_t range) { word(row, range) |= bit(range); }
  void clear(size_t row, size_t range) { word(row, range) &= ~bit(range); }
  void add(size_t row, size_t other) {
    for (size_t i = 0; i < words_; ++i) bits_[row * words_ + i] |= bits_[other * words_ + i];
  }
  double product(size_t row) const {
    double times = 1;
    for_each(row, [&](size_t range) { times *= sizes_[range]; });
    return times;
  }
  std::vector<size_t> ranges(size_t row) const {
    std::vector<size_t> all;
    for_each(row, [&](size_t range) { all.push_back(range); });
    return all;
  }

 private:
  static constexpr size_t kBits = 64;
  template <class Body>
  void for_each(size_t row, Body body) const {
    for (size_t i = 0; i < words_; ++i)
      for (uint64_t left = bits_[row * words_ + i]; left; left &= left - 1)
        body(i * kBits + static_cast<size_t>(std::countr_zero(left)));
  }
  static uint64_t bit(size_t range) { return uint64_t{1} << range % kBits; }
  uint64_t& word(size_t row, size_t range) { return bits_[row * words_ + range / kBits]; }

  size_t words_;
  std::vector<uint64_t> bits_;
  std::vector<double> sizes_;
};

// Trips of a loop whose bounds the program does not tell.
constexpr double kTripsUnknown = 8;

// Calls body(free, row) for every operation that counts.
template <class Body>
void for_each_operation(const Kernel& kernel, Body body) {
  const std::vector<UOp> order = topological(kernel.roots);
  FreeRows free(kernel, order.size());
  std::vector<uint8_t> of_data(order.size());  // depends on an element that was loaded
  NodeTable<uint32_t> rows;
  rows.reserve(order.size());
  for (size_t row = 0; row < order.size(); ++row) {
    const UOp& u = order[row];
    rows.emplace(u.node(), static_cast<uint32_t>(row));
    if (u.op() == Op::Range) free.set(row, kernel.position(u));
    bool data = u.op() == Op::Load;
    for (const UOp& s : u.src()) {
      const size_t below = rows.at(s.node());
      free.add(row, below);
      data |= of_data[below] != 0;
    }
    of_data[row] = data ? 1 : 0;
    const bool arithmetic = has(u.op(), kElementwise) && u.op() != Op::Cast &&
                            u.op() != Op::Bitcast && (data || u.dtype().is_float());
    if (arithmetic || u.op() == Op::Reduce) body(free, row);
    if (u.op() == Op::Fma) body(free, row);  // it counts as two
    if (closes_ranges(u))
      for (const UOp& range : u.src().subspan(1)) free.clear(row, kernel.position(range));
  }
}

// A sum of products of sizes, short enough to be evaluated at every launch; where it is none, the
// most that it can be.
UOp settled(const UOp& sum) {
  const std::optional<Affine> terms = affine(sum);
  return terms ? to_uop(sum.graph(), *terms) : sum.graph().integer(bounds(sum).hi);
}

}  // namespace

double count_operations(const Kernel& kernel) {
  double sum = 0;
  for_each_operation(kernel, [&](const FreeRows& free, size_t row) { sum += free.product(row); });
  return sum;
}

UOp operations_of(const Kernel& kernel) {
  std::map<std::vector<size_t>, int64_t> counts;
  for_each_operation(kernel, [&](const FreeRows& free, size_t row) { ++counts[free.ranges(row)]; });
  UOp sum = kernel.roots.front().graph().integer(0);
  for (const auto& [ranges, count] : counts) {
    UOp product = sum.graph().integer(count);
    for (const size_t r : ranges) product = mul(product, kernel.ranges[r].range.src(0));
    sum = add(sum, product);
  }
  return settled(sum);
}

namespace {

// The steps that name places along an axis: as many elements of it are touched at most.
UOp steps_of(const UOp& place) {
  UOp steps = place.graph().integer(1);
  for (const UOp& u : topological({&place.src(1), 1}))
    if (u.op() == Op::Range) steps = mul(steps, u.src(0));
  return steps;
}

}  // namespace

UOp bytes_of(const Kernel& kernel) {
  Graph& graph = kernel.roots.front().graph();
  UOp sum = graph.integer(0);
  for (const UOp& u : topological(kernel.roots)) {
    if (u.op() != Op::Load && u.op() != Op::Store) continue;
    const bool store = u.op() == Op::Store;
    const ViewArg& view = u.view_arg();
    UOp bytes = graph.integer((store ? u.src(1).dtype() : u.dtype()).bytes());
    size_t symbolic = (store ? 2 : 1) + view.shape.size();
    for (size_t i = 0; i < view.shape.size(); ++i) {
      const UOp size =
          view.shape[i] == kSymbolicDim ? UOp(u.src(symbolic++)) : graph.integer(view.shape[i]);
      const UOp& index = u.src((store ? 2 : 1) + i);
      if (view.strides[i] != 0)
        bytes = mul(bytes, index.op() == Op::Place ? steps_of(index) : size);
    }
    sum = add(sum, bytes);
  }
  return settled(sum);
}

double count_bytes(const Kernel& kernel) {
  double sum = 0;
  for (const UOp& u : topological(kernel.roots)) {
    if (u.op() != Op::Load && u.op() != Op::Store) continue;
    const bool store = u.op() == Op::Store;
    double elements = 1;
    const ViewArg& view = u.view_arg();
    for (size_t i = 0; i < view.shape.size(); ++i) {
      const UOp& index = u.src((store ? 2 : 1) + i);
      if (view.strides[i] == 0) continue;
      if (index.op() == Op::Place)
        elements *= static_cast<double>(bounds(steps_of(index)).hi);
      else if (view.shape[i] != kSymbolicDim)
        elements *= static_cast<double>(view.shape[i]);
    }
    sum += elements * static_cast<double>((store ? u.src(1).dtype() : u.dtype()).bytes());
  }
  return sum;
}

double count_executed(const LinearProgram& program, int64_t threads_extent) {
  double sum = 0;
  std::vector<double> times{1};
  const TripBounds bounds(program, threads_extent);
  for (LinearId i = 0; i < program.ops.size(); ++i) {
    const LinearOp& op = program.ops[i];
    if (op.op == Op::EndLoop) {
      times.pop_back();
      continue;
    }
    const bool is_apart = (op.op == Op::Load && op.dtype.lanes > 1 && op.aux != 1) ||
                          (op.op == Op::Store && op.aux != 1);
    const DType value = op.op == Op::Store ? program.ops[op.src[2]].dtype : op.dtype;
    sum += times.back() * (is_apart ? static_cast<double>(value.lanes) : 1);
    if (op.op != Op::Loop) continue;
    const double trips = bounds.most(i);
    times.push_back(times.back() * (std::isfinite(trips) ? trips : kTripsUnknown));
  }
  return sum;
}

std::string shape_name(const Kernel& kernel) {
  std::vector<UOp> staged;
  bool reduces = false;
  for (const UOp& u : topological(kernel.roots)) {
    reduces |= u.op() == Op::Reduce;
    if (u.op() == Op::Stage) staged.insert(staged.end(), u.src().begin() + 1, u.src().end());
  }
  std::string name = reduces ? "r" : "E";
  for (const KernelRange& r : kernel.ranges) {
    if (std::find(staged.begin(), staged.end(), r.range) != staged.end()) continue;
    const UOp& size = r.range.src(0);
    name += size.is_const() ? cat("_", size.const_int()) : std::string("_n");
  }
  return name;
}

}  // namespace tiny
