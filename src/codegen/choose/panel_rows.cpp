#include "codegen/choose/panel_rows.h"

#include <cstdlib>
#include <numeric>

#include "codegen/choose/lanes.h"
#include "codegen/linearize/split_reduce.h"
#include "ir/whole_rows.h"

namespace tiny {

namespace {

constexpr int64_t kPartOfWays = 4;  // the share of kWays for rows that meet in few sets
constexpr double kReadsOfRows = 2;  // of each element, by tiles of rows far from each other
// Bytes from one load to the next below which a processor fetches the one after (Intel 64 and IA-32
// Architectures Optimization Reference Manual, "Data Prefetching to L1 Data Cache").  On an Emerald
// Rapids, 2026-11-30, rows of 512 floats are not: 512 x 256 x 256 takes 0.77 of the time with the
// panels inside, rows of 256 as long.
constexpr int64_t kStrideFetched = 2048;

}  // namespace

// The range of steps that are farthest apart in the rows (pictures of a batch), where each tile of
// rows reads lines of all steps that other tiles read again (a filter's gradient, for each of its
// taps).
std::optional<size_t> PanelRows::range_read_again() const {
  const AccessInfo* rows = operand();
  if (!rows || rows->strides[row_] != 1) return std::nullopt;
  double read = 1;
  size_t farthest = row_;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i) {
    const int64_t stride = rows->strides[i];
    const bool is_step = (reduction_.own & bit(i)) != 0;
    if (stride == kOpaqueStride || (is_step && std::abs(stride) < edit_.lanes()))
      return std::nullopt;
    if (stride != 0) read *= edit_.extent(i);
    if (is_step && std::abs(stride) > std::abs(rows->strides[farthest])) farthest = i;
  }
  if (farthest == row_ || read < kReadsOfRows * rows->span) return std::nullopt;
  return farthest;
}

// So many steps along a range have their rows in the second level of cache without pushing out
// each other: rows that are a multiple of some lines apart lie in as many fewer sets.
int64_t PanelRows::steps_apart(size_t range) const {
  const AccessInfo* rows = strided();
  if (!rows) return INT64_MAX;
  const int64_t way = edit_.machine().l2_bytes / kWays;
  const int64_t stride = rows->strides[range] * rows->node.dtype().bytes();
  return way / std::gcd(stride, way) * (kWays / kPartOfWays);
}

// The operand that is broadcast, if its rows fall on each other in the cache; `along` is the range
// whose steps lie side by side in them.
const AccessInfo* PanelRows::colliding(size_t* along) const {
  for (const AccessInfo& a : edit_.table().accesses) {
    if (a.store || !a.inside_reduction || a.strides[lane_] != 0 || a.strides[row_] == 0) continue;
    if (!can_stage(edit_, a, row_) ||
        (a.strides[row_] * edit_.table().widest_bytes) % kPageBytes != 0)
      continue;
    for (size_t i = edit_.kernel().ranges.size(); i-- > 0;) {
      if (!(reduction_.own & bit(i)) || a.strides[i] != 1 || edit_.const_extent(i) < kReducedBlock)
        continue;
      if (along) *along = i;
      return &a;
    }
  }
  return nullptr;
}

// Rows of which a step reads elements apart (a convolution's strides), and all steps together no
// more than half of their lines' elements: each step's lines are far from the last's.
const AccessInfo* PanelRows::scattered() const {
  const AccessInfo* rows = operand();
  if (!rows || words_.range >= 0) return nullptr;
  const int64_t between_rows = std::abs(rows->strides[row_]);
  if (between_rows < 2 || between_rows * rows->node.dtype().bytes() >= kLineBytes) return nullptr;
  double between = 1;  // that are read of the elements from one row to the next
  for (size_t i = 0; i < rows->strides.size(); ++i) {
    if (rows->strides[i] == kOpaqueStride) return nullptr;
    const bool is_near = rows->strides[i] != 0 && std::abs(rows->strides[i]) <= between_rows;
    if ((reduction_.own & bit(i)) && is_near) between *= edit_.extent(i);
  }
  return 2 * between <= static_cast<double>(between_rows) ? rows : nullptr;
}

// Rows that lie side by side while each step is far from the last (a gradient of weights sums over
// rows of both operands), beyond the first level of cache: no processor fetches such ahead.
const AccessInfo* PanelRows::apart() const {
  const AccessInfo* rows = operand();
  if (!rows || words_.range >= 0) return nullptr;
  const int64_t bytes = rows->node.dtype().bytes();
  if (rows->strides[row_] != 1 ||
      rows->elements * static_cast<double>(bytes) <= static_cast<double>(edit_.machine().l1_bytes))
    return nullptr;
  for (size_t i = 0; i < rows->strides.size(); ++i) {
    const int64_t stride = rows->strides[i];
    const bool is_step = (reduction_.own & bit(i)) && edit_.const_extent(i) != 1;
    if (stride == kOpaqueStride || (is_step && std::abs(stride) * bytes < kStrideFetched))
      return nullptr;
  }
  return rows;
}

// Such rows that the second level does not hold either.
const AccessInfo* PanelRows::strided() const {
  const AccessInfo* rows = apart();
  const auto l2 = static_cast<double>(edit_.machine().l2_bytes);
  const bool is_held =
      rows && rows->elements * static_cast<double>(rows->node.dtype().bytes()) <= l2;
  return is_held ? nullptr : rows;
}

}  // namespace tiny
