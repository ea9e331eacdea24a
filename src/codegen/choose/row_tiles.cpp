#include "codegen/choose/row_tiles.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "codegen/choose/fills.h"
#include "codegen/choose/lanes.h"
#include "codegen/choose/shared_values.h"
#include "codegen/choose/strategies.h"
#include "codegen/choose/words.h"
#include "codegen/options/prefetch.h"
#include "codegen/options/stage.h"
#include "ir/shared_value.h"

namespace tiny {

namespace {

constexpr int64_t kScalarRows = 8;   // of a tile, where there are no lanes
constexpr int64_t kRowPadding = 16;  // elements: rows of a power of two would share sets of a cache
constexpr int64_t kRowsBeside = 2;   // rows of another range in a tile
constexpr int64_t kRowsBesideOddMin = 13;  // of an odd number
constexpr int64_t kPassesOfStreams = 2;    // over what tiles of rows read, for which it streams
constexpr double kPartOfBlock = 8;         // of the second level of cache, for what comes next
constexpr int kSharedMax = 4;              // values of a tile that are kept

}  // namespace

RowTiles::RowTiles(Editor& edit)
    : edit_(edit), row_(rows_of_matrix()), common_(bit(common_outer_ranges(edit.kernel())) - 1) {
}

bool RowTiles::applies() const {
  const auto has_columns = [&](const ClosureInfo& closure) {
    return !closure.store && (closure.below & ~closure.own & ~common_) != 0;
  };
  return std::ranges::any_of(edit_.table().closures, has_columns) && (row_ || weighs_columns());
}

void RowTiles::run() {
  const bool is_streamed = stream_rows();
  if (!is_streamed) order_rows();
  const int64_t outside = place_;
  cut_rows();
  if (!is_streamed && row_ && outside >= 0) cut_rows_beside(outside);
  stage_shared_values();
  finish_rows();
  if (!is_streamed) prefetch_operands();
  if (!row_ || edit_.most(*row_) <= kPassesOfStreams * rows_) prefetch_streams();
}

// The position of the rows that a product's matrix is the same for.
std::optional<size_t> RowTiles::rows_of_matrix() const {
  const size_t count = common_outer_ranges(edit_.kernel());
  std::optional<size_t> row;
  for (const AccessInfo& a : edit_.table().accesses) {
    const auto walked = std::count_if(a.strides.begin() + static_cast<int64_t>(count),
                                      a.strides.end(), [](int64_t s) { return s != 0; });
    if (!a.inside_reduction || walked < 2) continue;
    for (size_t i = 0; i < count; ++i)
      if (a.strides[i] == 0 && edit_.most(i) > 1) row = std::max(i, row.value_or(0));
  }
  return row;
}

// Whether a product of columns is made of another reduction of the same length.
bool RowTiles::weighs_columns() const {
  return std::ranges::any_of(edit_.table().closures, [&](const ClosureInfo& product) {
    if (product.store || !(product.below & ~product.own & ~common_)) return false;
    return std::ranges::any_of(edit_.table().closures, [&](const ClosureInfo& inner) {
      return !inner.store && !(inner.node == product.node) && reaches(product.node, inner.node) &&
             inner.node.src(1).src(0) == product.node.src(1).src(0);
    });
  });
}

// The rows innermost among what everything lies inside of.
void RowTiles::order_rows() {
  const auto count = static_cast<size_t>(std::popcount(common_));
  std::vector<int64_t> order;
  for (size_t i = 0; i < count; ++i)
    if (i != row_) order.push_back(edit_.number(i));
  if (!order.empty()) place_ = order.back();
  if (!row_) return;
  order.push_back(edit_.number(*row_));
  if (*row_ + 1 != count) edit_.apply({OptionKind::Order, -1, 0, order, 0, false});
}

// The register tile of the products of these rows.
RegisterTile RowTiles::tile_of_rows() const {
  if (edit_.lanes() < 2) return {kScalarRows, 1, 0};
  const int64_t rows = row_ ? edit_.most(*row_) : 1;
  const double columns = columns_of_stores();
  if (is_few(rows)) return tile_of_few_rows(rows, columns);
  return register_tile(edit_, static_cast<double>(rows), columns, {kVectorsMax, kPanelBytes});
}

// The longest range of what is stored.
double RowTiles::columns_of_stores() const {
  double columns = 1;
  for (const ClosureInfo& c : edit_.table().closures)
    for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
      if (c.store && (c.own & ~common_ & bit(i))) columns = std::max(columns, edit_.extent(i));
  return columns;
}

// The most columns that a reduction has for each row.
double RowTiles::widest_row() const {
  double widest = 1;
  for (const ClosureInfo& c : edit_.table().closures) {
    double wide = 1;
    bool is_of_run = false;
    for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i) {
      if (c.store || !(c.below & ~c.own & ~common_ & bit(i))) continue;
      wide *= edit_.extent(i);
      is_of_run = is_of_run || edit_.const_extent(i) == 0;
    }
    // The greatest that a run may have is seldom what it has; that has room in all of the cache, or
    // rows run along blocks.
    widest = std::max(widest, is_of_run ? wide / 2 : wide);
  }
  return widest;
}

void RowTiles::cut_rows() {
  const RegisterTile best = tile_of_rows();
  vectors_ = best.vectors;
  if (!row_) return;
  const double row_bytes =
      kStagesOfRows * widest_row() * static_cast<double>(edit_.table().widest_bytes);
  const auto fit =
      static_cast<int64_t>(static_cast<double>(edit_.machine().l2_bytes) / 2 / row_bytes);
  rows_ = std::min({best.rows, edit_.most(*row_), std::max<int64_t>(fit, 1)});
  rows_max_ = (edit_.machine().vector_registers - 2 - best.vectors) / best.vectors;
  inner_ = edit_.number(*row_);
  if (rows_ == edit_.const_extent(*row_)) return;
  place_ = edit_.number(*row_);
  inner_ = edit_.tile(edit_.number(*row_), rows_);
}

// The last reduction, if it is a product of what another computes; null if it is not.
const ClosureInfo* RowTiles::product_of_computed() const {
  const ClosureInfo* product = nullptr;
  int reductions = 0;
  for (const ClosureInfo& c : edit_.table().closures)
    if (!c.store) product = &c, ++reductions;
  if (reductions != 2 || std::popcount(product->own) != 1) return nullptr;
  bool is_computed = false;
  for (const UOp& factor : product->node.src(0).src())
    is_computed |= std::ranges::any_of(topological({&factor, 1}),
                                       [](const UOp& u) { return u.op() == Op::Reduce; });
  return is_computed ? product : nullptr;
}

// How many rows of `range` a tile has beside its own; 1 where they would not stay near.
int64_t RowTiles::rows_beside(size_t range, size_t steps) {
  // The last tile of an odd number of rows is half empty.
  const int64_t size = edit_.const_extent(range);
  if (size % kRowsBeside != 0 && size < kRowsBesideOddMin) return 1;
  are_beside_in_registers_ = rows_ * kRowsBeside <= rows_max_;
  if (are_beside_in_registers_) return kRowsBeside;
  const double row_bytes = static_cast<double>(rows_) * edit_.extent(steps) *
                           static_cast<double>(edit_.table().widest_bytes);
  const auto cache = static_cast<double>(edit_.machine().l1_bytes);
  if (static_cast<double>(kRowsBeside) * row_bytes > cache) return 1;
  // Windows of neighbouring rows lie on the same elements.
  const bool has_room = static_cast<double>(2 * kRowsBeside) * row_bytes <= cache / 2;
  return size % (2 * kRowsBeside) == 0 && has_room ? 2 * kRowsBeside : kRowsBeside;
}

// Rows of another range in the same tile, where the operand that all rows share is the same for
// them and what is computed for the tile is the product's other operand: beside each other in
// registers if the row is short, else one after the other with the same panel.
void RowTiles::cut_rows_beside(int64_t range) {
  const ClosureInfo* product = product_of_computed();
  const size_t at = edit_.now().find_range(range);
  size_t beside = 0;
  while (edit_.number(beside) != range) ++beside;
  if (!product || edit_.const_extent(beside) < 2) return;
  const bool is_shared = std::ranges::none_of(edit_.table().accesses, [&](const AccessInfo& a) {
    return a.inside_reduction && a.strides[*row_] == 0 && a.strides[beside] != 0;
  });
  if (!is_shared) return;
  const int64_t count = rows_beside(beside, static_cast<size_t>(std::countr_zero(product->own)));
  if (count == 1) return;
  beside_ = edit_.const_extent(beside) == count ? range : edit_.tile(range, count);
  std::vector<int64_t> order;
  if (beside_ != range) order.push_back(range);
  if (inner_ != edit_.number(*row_)) order.push_back(edit_.number(*row_));
  place_ = order.empty() ? place_outside(at) : order.back();
  order.insert(order.end(), {beside_, inner_});
  edit_.apply({OptionKind::Order, -1, 0, order, 0, false});
}

// The number of the range right outside of a position; -1 if there is none.
int64_t RowTiles::place_outside(size_t at) const {
  return at == 0 ? -1 : edit_.now().ranges[at - 1].range.int_arg();
}

// The position of the first range inside the place where a tile's values are kept.
size_t RowTiles::begin_of_tile() const {
  if (inner_ >= 0) return edit_.now().find_range(inner_);
  return place_ < 0 ? 0 : edit_.now().find_range(place_) + 1;
}

// What is wanted again of a tile of rows; largest savings first, so that products come before what
// is made of them.
void RowTiles::stage_shared_values() {
  for (int count = 0; count < kSharedMax; ++count) {
    const auto shared = find_shared_value(edit_.now(), begin_of_tile(), kWorkWorthKeeping);
    if (!shared) return;
    const UOp stage =
        edit_.find_new_stage({OptionKind::Stage, place_, shared->number, {}, kRowPadding, true});
    if (stage) fill_rows(stage);
  }
}

// What the next tile reads is fetched while this one is multiplied: a window's rows are short runs
// that end before a processor sees them coming.  What all tiles of a loop outside read again (the
// keys of a head) is fetched for the next step of that loop, where all that the kernel reads and
// writes does not stay in the second level of cache.
void RowTiles::prefetch_operands() {
  const auto tiles = place_ < 0 ? edit_.now().ranges.size() : edit_.now().find_range(place_);
  if (tiles == edit_.now().ranges.size()) return;
  const auto l2 = static_cast<double>(edit_.machine().l2_bytes);
  const AccessTable table = access_table(edit_.now());
  std::map<int64_t, double> sizes;  // by parameter
  for (const AccessInfo& a : table.accesses) {
    if (!a.store && a.node.op() != Op::Load) continue;
    const DType element = a.store ? a.node.src(1).dtype() : a.node.dtype();
    sizes[a.node.src(0).int_arg()] = a.elements * static_cast<double>(element.bytes());
  }
  double all = 0;
  for (const auto& [param, bytes] : sizes) all += bytes;
  std::set<int64_t> done;
  for (const AccessInfo& a : table.accesses) {
    if (a.store || a.node.op() != Op::Load) continue;
    const int64_t param = a.node.src(0).int_arg();
    size_t at = tiles;
    while (at > 0 && a.strides[at] == 0) --at;
    if (a.strides[at] == 0) continue;
    double blocks = 1;
    for (size_t i = 0; i <= at; ++i)
      if (a.strides[i] != 0) blocks *= table.extents[i];
    const bool is_far = at == tiles && sizes[param] >= l2 / 2 && sizes[param] / blocks <= l2 / 2;
    const bool is_small = all >= l2 && sizes[param] / blocks <= l2 / kPartOfBlock;
    const Option option{
        OptionKind::Prefetch, edit_.now().ranges[at].range.int_arg(), param, {}, 0, false};
    if ((is_far || is_small) && done.insert(param).second && can_prefetch(edit_.now(), option))
      edit_.apply(option);
  }
}

void propose_row_tiles(const Seen& seen, std::vector<Proposal>& to) {
  Editor edit = with_words(seen);
  RowTiles tiles(edit);
  if (!tiles.applies()) return;
  tiles.run();
  share_values(edit);
  to.push_back(propose(edit.take(), seen.machine));
}

}  // namespace tiny
