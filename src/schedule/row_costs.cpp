#include "schedule/row_costs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "ir/dot.h"
#include "ir/shared_value.h"
#include "schedule/decide.h"
#include "schedule/schedule.h"

namespace tiny {

namespace {

// Columns that a register tile has at the most, as choose/packed_panel.cpp cuts them.
constexpr double kVectorsOfTile = 3;
// The share of a vector from which on columns of a computed matrix are filled up to it.
constexpr double kColumnsPadded = 0.5;

}  // namespace

bool is_given(const UOp& load, std::span<const UOp> values) {
  if (load.op() != Op::Load || load.src(0).op() != Op::Param) return false;
  const auto slot = static_cast<size_t>(load.src(0).int_arg());
  return slot < values.size() && has_memory(values[slot]);
}

namespace {

// A weight is packed for its product, and rows that are computed for it are kept for all of its
// panels.
bool is_weight(UOp factor, std::span<const UOp> values) {
  while (factor.op() == Op::Cast) factor = UOp(factor.src(0));
  return is_given(factor, values);
}

}  // namespace

RowCosts::RowCosts(const KernelLoops& loops, const Machine& machine)
    : loops_(loops), machine_(machine), registers_(loops.widest_bytes() / kRatedBytes) {
}

double RowCosts::work_of(const UOp& u) const {
  if (!has(u.op(), kElementwise) || u.dtype() == kInt64) return 0;
  return work_weight(u) * loops_.extent(loops_.free(u)) * registers_;
}

double RowCosts::work() const {
  double sum = 0;
  for (const UOp& u : loops_.nodes()) {
    sum += work_of(u);
    // Words of what is read are multiplied at once.
    const auto product = dot_product(u);
    if (product && machine_.has_dot(product->kind) && product->a.op() == Op::Load &&
        product->b.op() == Op::Load)
      sum -= loops_.extent(loops_.free(u.src(0))) *
             (1 - 1 / static_cast<double>(dot_steps(product->kind)));
  }
  return sum;
}

double RowCosts::work_again(std::span<const UOp> values) const {
  std::unordered_map<const Node*, double> times;  // the most, over all products
  for (const UOp& u : loops_.nodes()) {
    if (!is_reduce(u) || u.src(0).op() != Op::Mul || !loops_.is_contraction(u)) continue;
    const auto factors = u.src(0).src();
    if (std::ranges::any_of(factors, [&](const UOp& f) { return is_weight(f, values); })) continue;
    for (const UOp& factor : factors)
      for (const UOp& v : topological({&factor, 1}, is_reduce)) {
        const RangeSet repeated = loops_.free(u) & ~loops_.free(v);
        double& most = times[v.node()];
        most = std::max(most, std::ceil(loops_.extent(repeated) / kComputedRows));
      }
  }
  double sum = 0;
  std::unordered_set<const Node*> made_of_sums;  // kept where they are wanted again
  for (const UOp& u : loops_.nodes()) {
    const auto is_made = [&](const UOp& s) { return made_of_sums.contains(s.node()); };
    if (is_reduce(u) || std::ranges::any_of(u.src(), is_made)) made_of_sums.insert(u.node());
    const auto at = times.find(u.node());
    if (at == times.end() || made_of_sums.contains(u.node())) continue;
    sum += work_of(u) * (at->second - 1);
  }
  return sum;
}

bool RowCosts::has_steps_apart(const UOp& factor, RangeSet steps) const {
  return std::ranges::any_of(topological({&factor, 1}), [&](const UOp& v) {
    return v.op() == Op::Load && (loops_.walked(v) & steps) && !loops_.has_neighbours(v, steps);
  });
}

bool RowCosts::has_scattered_rows(std::span<const UOp> values) const {
  if (loops_.reductions() != 1) return false;  // rows of several have tiles of their own
  return std::ranges::any_of(loops_.nodes(), [&](const UOp& u) {
    if (!is_reduce(u) || u.src(0).op() != Op::Mul || !loops_.is_contraction(u)) return false;
    return std::ranges::any_of(u.src(0).src(), [&](const UOp& factor) {
      if (is_weight(factor, values) || factor.op() == Op::Load) return false;
      double longest = 1, all = 1;
      for (RangeSet rows = loops_.free(factor) & ~loops_.closed(u); rows; rows &= rows - 1) {
        const double size = loops_.extent(rows & (~rows + 1));
        longest = std::max(longest, size);
        all *= size;
      }
      if (all < kComputedRows) return false;
      return longest < kComputedRows || has_steps_apart(factor, loops_.closed(u));
    });
  });
}

bool RowCosts::has_factor_of_sums() const {
  return std::ranges::any_of(loops_.nodes(), [&](const UOp& u) {
    return is_reduce(u) && u.src(0).op() == Op::Mul && loops_.is_contraction(u) &&
           std::ranges::any_of(topological(u.src(0).src()), is_reduce);
  });
}

bool RowCosts::has_products_beside() const {
  RangeSet seen = 0;
  for (const UOp& u : loops_.nodes()) {
    if (!is_reduce(u) || u.src(0).op() != Op::Mul || u.src(0).src(0) == u.src(0).src(1)) continue;
    if (std::ranges::any_of(topological({&u.src(0), 1}), is_reduce)) continue;
    const RangeSet own = loops_.closed(u);
    if (seen != 0 && (seen & own) == 0) return true;
    seen |= own;
  }
  return false;
}

bool RowCosts::has_gathered_operand(const UOp& reduce) const {
  const RangeSet ranges = loops_.free(reduce);
  const auto is_opaque = [&](const UOp& u) {
    const bool is_sum =
        u.op() == Op::Range || u.op() == Op::Add || u.op() == Op::Sub || u.op() == Op::Mul;
    return !is_sum && (loops_.free(u) & ranges);
  };
  const auto is_gathered = [&](const UOp& u) {
    return u.op() == Op::Load && std::ranges::any_of(topological(u.src().subspan(1)), is_opaque);
  };
  return std::ranges::any_of(topological({&reduce.src(0), 1}, is_reduce), is_gathered);
}

double RowCosts::work_by_element(std::span<const UOp> values) const {
  if (machine_.computes_in_groups()) return 0;  // whose threads have an element each
  const double lanes = static_cast<double>(machine_.vector_bytes) / loops_.widest_bytes();
  double sum = 0;
  for (const UOp& u : loops_.nodes()) {
    if (!is_reduce(u) || u.src(0).op() != Op::Mul) continue;
    if (!loops_.is_contraction(u)) {
      const bool is_square = u.src(0).src(0) == u.src(0).src(1);
      if (!is_square && has_gathered_operand(u)) sum += work_of(u.src(0)) * (lanes - 1);
      continue;
    }
    // What words of bytes are made of is stored as bytes first, whatever joins.
    if (!u.dtype().is_float()) continue;
    // Of two computed factors that one is the matrix which has the innermost range.
    const RangeSet innermost = std::bit_floor(loops_.free(u));
    for (const bool first : {true, false}) {
      const UOp rows = u.src(0).src(first ? 0 : 1), matrix = u.src(0).src(first ? 1 : 0);
      const bool is_of_given = is_weight(matrix, values);
      if (!is_of_given && (is_weight(rows, values) || !(loops_.free(matrix) & innermost) ||
                           (loops_.free(rows) & innermost)))
        continue;
      const double columns = loops_.extent(loops_.free(matrix) & ~loops_.free(rows)) / lanes;
      if (columns < (is_of_given ? 1 : kColumnsPadded)) continue;
      // Rows of one step range that several panels want are filled into scratch, in lanes along it,
      // and so are windows.
      const RangeSet steps = loops_.closed(u) & loops_.free(rows);
      if (std::popcount(steps) == 1 && columns > kVectorsOfTile) continue;
      const std::vector<UOp> below = topological({&rows, 1});
      if (std::ranges::any_of(below, is_reduce)) continue;
      for (const UOp& v : below) sum += work_of(v) * (lanes - 1);
    }
  }
  return sum;
}

double RowCosts::staging_saves() const {
  // Without reductions nothing is wanted in another place.
  if (std::ranges::none_of(loops_.nodes(), is_reduce)) return 0;
  const size_t place = common_outer_ranges(loops_.kernel());
  if (place == 0) return 0;
  double sum = 0;
  for (const SharedValue& shared : find_shared_values(loops_.kernel(), place, 1)) {
    const double bytes = shared.elements * static_cast<double>(shared.value.dtype().bytes());
    // What the images have beside the value, as work() counts it.
    std::unordered_set<const Node*> kept;
    for (const UOp& u : topological({&shared.value, 1})) kept.insert(u.node());
    double work = 0;
    for (const UOp& u : topological(shared.images))
      if (!kept.contains(u.node())) work += work_of(u);
    sum += std::max(work / machine_.fma_rate - 2 * bytes / machine_.l2_bandwidth, 0.0);
  }
  return sum;
}

std::vector<double> RowCosts::tile_streams() const {
  std::vector<double> streams;
  if (!loops_.has_product()) return streams;
  for (const UOp& u : topological(loops_.kernel().roots, is_reduce)) {
    if (u.op() == Op::Load) streams.push_back(loops_.walked_bytes(u));
    if (u.op() == Op::Store) streams.push_back(loops_.stored_bytes(u));
  }
  return streams;
}

double RowCosts::alone_seconds() const {
  RangeSet common = ~RangeSet{0};
  for (const UOp& u : loops_.nodes())
    if (u.op() == Op::Store) common &= loops_.free(u);
  if (loops_.extent(common) > 1) return 0;
  return work() / machine_.fma_rate * (1 - 1.0 / machine_.cores);
}

}  // namespace tiny
