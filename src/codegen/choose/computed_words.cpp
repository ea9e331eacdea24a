// Products of words of which one operand is computed on the way (a row that is quantised): lanes
// along what it is computed for, so that each of its elements is computed once, with lanes, for
// all columns.
#include <algorithm>
#include <optional>

#include "base/checked.h"
#include "codegen/choose/strategies.h"
#include "ir/dot.h"

namespace tiny {

namespace {

constexpr int64_t kOtherVectors = 8;  // registers for all but the sums
constexpr int64_t kSumsBusy = 12;     // hide the latency of an addition

// Positions of the kernel's ranges.
struct ComputedWords {
  size_t rows = 0;     // that the operand is computed for
  size_t columns = 0;  // that it is the same for
  size_t words = 0;    // whose steps are those of a word
};

// The longest range among these; none where there is none.
std::optional<size_t> longest_of(const Seen& seen, RangeSet among) {
  std::optional<size_t> best;
  for (size_t i = 0; i < seen.kernel.ranges.size(); ++i)
    if ((among & bit(i)) && (!best || seen.table.extents[i] > seen.table.extents[*best])) best = i;
  return best;
}

std::optional<ComputedWords> computed_words(const Seen& seen) {
  if (!is_contraction(seen)) return std::nullopt;
  const ClosureInfo& sum = *seen.reductions.front();
  const std::optional<DotProduct> product = dot_product(sum.node);
  if (!product || !seen.machine.has_dot(product->kind)) return std::nullopt;
  const bool is_first = read_by_words(product->a).op() != Op::Load;
  if (is_first == (read_by_words(product->b).op() != Op::Load)) return std::nullopt;
  const RangeSet computed = seen.table.free_of(is_first ? product->a : product->b);
  RangeSet outputs = 0;
  for (const ClosureInfo& c : seen.table.closures)
    if (c.store) outputs |= c.own;
  const auto rows = longest_of(seen, outputs & computed);
  const auto columns = longest_of(seen, outputs & ~computed);
  if (!rows || !columns) return std::nullopt;
  for (size_t i = 0; i < seen.kernel.ranges.size(); ++i)
    if ((sum.own & bit(i)) &&
        seen.kernel.ranges[i].range.src(0).is_const_int(dot_steps(product->kind)))
      return ComputedWords{*rows, *columns, i};
  return std::nullopt;
}

}  // namespace

bool has_computed_words(const Seen& seen) {
  return computed_words(seen).has_value();
}

void propose_computed_words(const Seen& seen, std::vector<Proposal>& to) {
  const std::optional<ComputedWords> found = computed_words(seen);
  Editor edit(seen.kernel, seen.machine, seen.table);
  const int64_t columns = edit.const_extent(found->columns);
  if (edit.lanes() < 2 || columns == 0 || edit.most(found->rows) < edit.lanes()) return;
  const int64_t room = edit.machine().vector_registers - kOtherVectors;
  // Tiles of nearly equal size.
  const int64_t wide = ceil_div(columns, ceil_div(columns, room));
  edit.vector_tile(found->rows, std::max<int64_t>(kSumsBusy / wide, 1));
  const int64_t column = edit.number(found->columns);
  edit.kind(OptionKind::Upcast, wide == columns ? column : edit.tile(column, wide));
  edit.kind(OptionKind::Dot, edit.number(found->words));
  to.push_back(propose(edit.take(), seen.machine));
}

}  // namespace tiny
