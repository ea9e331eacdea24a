#include "schedule/operand_costs.h"

#include <algorithm>
#include <bit>

#include "schedule/decide.h"

namespace tiny {

namespace {

// Pieces of a kernel for each core that shares it.
constexpr double kPiecesPerCore = 6;
// How much longer products take where they are no kernel of their own.
constexpr double kFillSlowness = 16;
// Of the second cache: what panels may take of it beside the rows that they are multiplied with.
constexpr double kPanelsOfCache = 0.75;

}  // namespace

std::optional<double> OperandCosts::operand_seconds(size_t inputs) const {
  if (!test_.may_be_one(inputs)) return std::nullopt;
  std::vector<UOp> reductions;
  for (const UOp& u : loops_.nodes())
    if (u.op() == Op::Reduce) reductions.push_back(u);
  if (reductions.size() != 2) return std::nullopt;
  if (loops_.chooses_by_position()) return std::nullopt;
  const UOp& inner = reductions[0];
  const UOp& outer = reductions[1];
  // A product in register tiles has loops of its own: what they lose is more than a launch.
  if (loops_.is_contraction(outer)) return std::nullopt;
  const std::vector<UOp> below = topological({&outer, 1});
  if (std::find(below.begin(), below.end(), inner) == below.end()) return std::nullopt;
  const RangeSet free = loops_.free(inner);
  const RangeSet own = loops_.closed(outer);
  if (free == 0 || (free & ~own) != 0) return std::nullopt;
  const double bytes = loops_.extent(free) * static_cast<double>(inner.dtype().bytes());
  if (bytes > static_cast<double>(machine_.l1_bytes) / 2) return std::nullopt;
  const RangeSet all = free | loops_.closed(inner);
  double read = 0;
  for (const UOp& u : topological({&inner, 1}))
    if (u.op() == Op::Load)
      read += loops_.extent(loops_.walked(u) & all) * static_cast<double>(u.dtype().bytes());
  const double arithmetic = loops_.extent(all) / machine_.fma_rate;
  // A product that fills scratch has neither a tile of registers nor lanes.
  const double fill = inner.src(0).op() == Op::Mul ? arithmetic * kFillSlowness : 0;
  // Each piece of the loop that cores share computes the operand anew.
  const double pieces = costs_.work() < kSharedWorkMin ? 1 : kPiecesPerCore * machine_.cores;
  if (machine_.cores < 2 || pieces == 1) return fill;
  const double seconds =
      std::max(arithmetic, (saved_seconds(read, machine_) - machine_.launch_seconds) / 2);
  return fill + seconds * (pieces - 1) / machine_.cores;
}

// The rows that `outer` multiplies with a matrix, if they are made of `inner`, are walked whole by
// `outer`, and the matrix is the same for all.
std::optional<RangeSet> OperandCosts::rows_of_factor(const UOp& inner, const UOp& outer) const {
  const UOp product = outer.src(0);
  if (product.op() != Op::Mul || outer.reduce_arg().op != Op::Add) return std::nullopt;
  const auto is_made_of = [&](const UOp& u) {
    const std::vector<UOp> below = topological({&u, 1});
    return std::find(below.begin(), below.end(), inner) != below.end();
  };
  const bool first = is_made_of(product.src(0));
  if (first == is_made_of(product.src(1))) return std::nullopt;
  const RangeSet factor = loops_.free(product.src(first ? 0 : 1));
  const RangeSet matrix = loops_.free(product.src(first ? 1 : 0));
  const RangeSet own = loops_.closed(outer);
  const RangeSet rows = factor & ~own;
  if (std::popcount(own) != 1 || (own & ~factor) || (own & ~matrix)) return std::nullopt;
  if (rows == 0 || (rows & matrix) || (matrix & ~own) == 0) return std::nullopt;
  if (loops_.free(inner) & ~factor) return std::nullopt;
  return rows;
}

std::optional<OperandCosts::ComputedRows> OperandCosts::computed_rows(
    std::span<const UOp> values) const {
  if (!test_.may_be_one(values.size())) return std::nullopt;
  if (loops_.chooses_by_position()) return std::nullopt;
  std::vector<UOp> reductions;
  RangeSet common = ~RangeSet{0};
  for (const UOp& u : loops_.nodes()) {
    if (u.op() == Op::Reduce) reductions.push_back(u);
    if (u.op() == Op::Reduce || u.op() == Op::Store) common &= loops_.free(u);
  }
  if (reductions.size() != 2 || loops_.is_contraction(reductions[0], true)) return std::nullopt;
  const auto rows = rows_of_factor(reductions[0], reductions[1]);
  if (!rows || *rows != common || (common & (common + 1))) return std::nullopt;
  // What the rows read is another for each step: a product would want a tile of steps too.
  const RangeSet step = loops_.closed(reductions[1]);
  bool is_apart = false;
  for (const UOp& u : topological({&reductions[0], 1})) {
    if (u.op() != Op::Load || !(loops_.walked(u) & *rows)) continue;
    if (!(loops_.walked(u) & step)) return std::nullopt;
    is_apart |= is_given(u, values) && !loops_.has_neighbours(u, step);
  }
  const double row = loops_.extent(std::bit_floor(*rows));
  const auto bytes = static_cast<double>(reductions[1].dtype().bytes());
  const double steps = loops_.extent(step);
  const double columns = loops_.extent(loops_.free(reductions[1]) & ~*rows);
  const auto cache = static_cast<double>(machine_.l2_bytes);
  if (row < kRowTileMin || steps * bytes * kComputedRows > cache / 2) return std::nullopt;
  const double matrix = steps * columns * bytes;
  ComputedRows out;
  out.filled =
      loops_.extent(loops_.free(reductions[0]) | loops_.closed(reductions[0])) / machine_.fma_rate;
  const double lanes = static_cast<double>(machine_.vector_bytes) / loops_.widest_bytes();
  if (is_apart && !machine_.computes_in_groups()) out.by_element = out.filled * (lanes - 1);
  out.is_filtered = reductions[0].src(0).op() == Op::Mul;
  if (matrix > kPanelsOfCache * cache)
    out.panels =
        matrix * loops_.extent(*rows) / std::min(row, kComputedRows) / machine_.l3_bandwidth;
  return out;
}

}  // namespace tiny
