#include "codegen/choose/contraction.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "base/checked.h"
#include "codegen/choose/far_columns.h"
#include "codegen/choose/lanes.h"
#include "codegen/choose/next_tile.h"
#include "codegen/choose/packed_panel.h"
#include "codegen/choose/shared_values.h"
#include "codegen/choose/sliding_rows.h"
#include "codegen/choose/strategies.h"
#include "codegen/linearize/split_reduce.h"
#include "cost/borders.h"
#include "cost/limit.h"
#include "ir/bounds.h"
#include "ir/picked_lanes.h"
#include "ir/tile_products.h"
#include "ir/whole_rows.h"

namespace tiny {

namespace {

constexpr double kLanesOfSumMax = 60;    // what lanes may cost that are worth having
constexpr double kLanesClose = 1.3;      // times as much as the cheapest is no clear difference
constexpr double kFarFromLimit = 1.5;    // of the kernel: others are looked at whatever they cost
constexpr double kOtherGain = 1.05;      // of other lanes; less is none
constexpr int64_t kLongRunVectors = 12;  // where each step reads another page of memory,
constexpr double kFewRows = 4;           // which that many rows share
constexpr int64_t kRowsAtOnce = 4;       // of memory, read side by side
constexpr int64_t kWholeRowVectors = 4;  // of a row walked to its end, in a turn,
constexpr double kWholeRowUses = 8;      // if it is not used more often
constexpr double kStepsOfStore = 40;     // of a sum take as long as storing a lane that lies apart
constexpr int64_t kWindowMax = 16;       // steps of a window that are unrolled,
constexpr int64_t kWindowVectors = 36;   // those of all vectors side by side
// Of a tile and the steps of its innermost loop: on a Zen 5, 2026-11-30, turns of 66 to 216
// products take 0.5 to 0.8 of a loop over the steps; longer ones were not tried.
constexpr int64_t kProductsMax = 256;
constexpr int64_t kFoldedRows = 4;        // rows of sums whose lanes are folded,
constexpr int64_t kFoldedRowVectors = 2;  // with so many vectors of each
constexpr int64_t kApartLanes = 32;       // of a tile whose lanes are stored apart: a line for each
constexpr double kFarRows = 1e-3;         // what rows far apart lose, for each doubling
constexpr int64_t kStepOfRun =
    1 << 14;                         // elements between rows that are as far apart as a run says
constexpr double kBorderRows = 0.5;  // what all rows lose where each is at a border

}  // namespace

Contraction::Contraction(Editor& edit, Words& words, const ClosureInfo& reduction,
                         std::optional<size_t> lanes)
    : edit_(edit),
      words_(words),
      reduction_(reduction),
      lane_(edit.kernel().ranges.size()),
      row_(edit.kernel().ranges.size()) {
  for (const ClosureInfo& c : edit.table().closures)
    if (c.store) outputs_ |= c.own;
  for (size_t i = 0; i < edit.kernel().ranges.size(); ++i)
    if (reduction.own & bit(i)) steps_ *= edit.extent(i);
  if (edit.lanes() < 2) return;
  if (lanes) {
    lane_ = *lanes;
  } else {
    choose_lane();
  }
  if (lane_ < edit.kernel().ranges.size() && !(reduction.own & bit(lane_))) choose_row();
}

std::optional<size_t> Contraction::row() const {
  return row_ < edit_.kernel().ranges.size() ? std::optional(row_) : std::nullopt;
}

// The cheapest lanes, along outputs or steps; none that cost too much.  Along steps of less than
// half a vector (a window's taps) where there are no more outputs: what is folded then is mostly
// nothing.
void Contraction::choose_lane() {
  const size_t none = edit_.kernel().ranges.size();
  // What is computed of a sum is computed one by one where lanes are steps of sums, unless there
  // are fewer outputs than half a vector's lanes.
  const int64_t lanes = edit_.lanes();
  const int64_t vectors = has_lanes_of_outputs(lanes) ? 1 : has_lanes_of_outputs(lanes / 2) ? 2 : 0;
  const double apart =
      vectors > 0 ? ops_of_sums() * static_cast<double>(lanes - vectors) / steps_ : 0;
  double best = 0, least = 0;
  std::vector<std::pair<size_t, double>> full;  // outputs that fill vectors, and their price
  for (size_t i = 0; i < none; ++i) {
    const bool reduced = (reduction_.own & bit(i)) != 0;
    if (!(outputs_ & bit(i)) && !reduced) continue;
    const bool is_short = reduced && 2 * edit_.most(i) < edit_.lanes();
    if (is_short && has_lanes_of_outputs(edit_.most(i))) continue;
    const double cost = lane_cost(edit_, i, reduced, steps_, outputs_ | reduction_.own);
    const double price = reduced ? cost + apart : cost;
    if (!reduced && edit_.most(i) >= edit_.lanes()) full.emplace_back(i, price);
    if (lane_ == none || price < best) lane_ = i, best = price, least = cost;
  }
  if (least > kLanesOfSumMax) lane_ = none;
  std::erase_if(full, [&](const auto& other) { return other.first == lane_; });
  const auto next = std::ranges::min_element(full, {}, &std::pair<size_t, double>::second);
  if (next == full.end()) return;
  next_lanes_ = next->first;
  is_next_close_ = next->second < best * kLanesClose;
}

// The arithmetic on each sum, once it is complete.
double Contraction::ops_of_sums() const {
  const AccessTable& table = edit_.table();
  std::vector<bool> is_of_sum(table.order.size());
  double ops = 0;
  size_t source = 0;
  for (size_t i = 0; i < table.order.size(); ++i) {
    const UOp& u = table.order[i];
    bool found = u == reduction_.node;
    for (size_t k = 0; k < u.src().size(); ++k) found |= is_of_sum[table.sources[source + k]];
    source += u.src().size();
    is_of_sum[i] = found;
    ops += found && has(u.op(), kElementwise) ? 1 : 0;
  }
  return ops;
}

// Whether at least so many outputs may lie along lanes.
bool Contraction::has_lanes_of_outputs(int64_t count) const {
  const LaneChoice found = cheapest_lanes(edit_, outputs_, false);
  return found.range && found.cost <= kLanesOfSumMax && edit_.most(*found.range) >= count;
}

// Whether lanes along `lane_range` are stored apart, while steps along `row` lie side by side: the
// vectors of a tile are turned by squares then.
bool Contraction::is_stored_along(size_t row) const {
  return std::ranges::any_of(edit_.table().accesses, [&](const AccessInfo& a) {
    return a.store && std::abs(a.strides[lane_]) > 1 && a.strides[row] == 1;
  });
}

// The vectors of a tile of a panel.  Lanes that are stored apart need a line each; a panel that
// lies in place is not copied for that.
int64_t Contraction::panel_vectors_max() const {
  for (const AccessInfo& a : edit_.table().accesses) {
    size_t panels = lane_;
    if (!a.store && a.inside_reduction && lies_in_panels(edit_, a, lane_, &panels))
      return edit_.const_extent(lane_) / edit_.lanes();
  }
  const bool is_apart = std::ranges::any_of(edit_.table().accesses, [&](const AccessInfo& a) {
    return a.store && a.strides[lane_] != 1;
  });
  return is_apart ? std::min(kApartLanes / edit_.lanes(), kVectorsMax) : kVectorsMax;
}

// The output range whose steps reuse the vectors that are loaded along `lane_`: the one that
// fills register tiles best, of equals the one whose steps lie closest.  Elements that are stored
// one by one count beside the steps of their sums.
void Contraction::choose_row() {
  double steps = 1;
  bool can_turn = false;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i) {
    if (!(outputs_ & bit(i)) && edit_.kernel().ranges[i].reduced) steps *= edit_.extent(i);
    can_turn |= (outputs_ & bit(i)) && is_stored_along(i);
  }
  const TileCost cost{panel_vectors_max(), 0};
  double best_score = 0;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i) {
    if (!(outputs_ & bit(i)) || i == lane_ || edit_.most(i) < 2) continue;
    bool reuses = false;
    int64_t step = 0;
    for (const AccessInfo& a : edit_.table().accesses) {
      if (a.store) continue;
      if (a.strides[lane_] != 0 && a.strides[i] == 0) reuses = true;
      if (a.strides[lane_] == 0)
        step = std::max(step, a.strides[i] == kOpaqueStride ? kStepOfRun : std::abs(a.strides[i]));
    }
    if (!reuses) continue;
    // Of what a run says there may be few (a batch of pictures).
    const UOp& size = edit_.kernel().ranges[i].range.src(0);
    const double rows = size.is_const()
                            ? edit_.extent(i)
                            : static_cast<double>(std::max<int64_t>(bounds(size).lo, 2));
    double score = register_tile(edit_, rows, edit_.extent(lane_), cost).score /
                   (1 + kFarRows * std::log2(1.0 + static_cast<double>(step)));
    if (can_turn && !is_stored_along(i)) score /= 1 + kStepsOfStore / steps;
    score /= 1 + kBorderRows * share_at_borders(edit_, lane_, i);
    if (score > best_score) row_ = i, best_score = score;
  }
}

// What a register tile along `lane` loads for each step of an element's sum.
double Contraction::loads_of_columns() const {
  const bool has_rows = row().has_value();
  const RegisterTile tile =
      register_tile(edit_, has_rows ? edit_.extent(row_) : 1, edit_.extent(lane_), {kVectorsMax});
  const auto rows = static_cast<double>(tile.rows), vectors = static_cast<double>(tile.vectors);
  double loads = 0;
  for (const AccessInfo& a : edit_.table().accesses) {
    if (a.store || !a.inside_reduction) continue;
    const double along =
        a.strides[lane_] == 0 ? 1 : vectors * load_price(edit_, a, reduction_, lane_);
    loads += along * (has_rows && a.strides[row_] != 0 ? rows : 1);
  }
  return loads / (rows * vectors);
}

// The bytes of an operand with lanes that is too large for the second-level cache, read at most so
// many times, and lies in rows that are pages apart; 0 if there is none.
double Contraction::bytes_in_pages(double uses) const {
  double most = 0;
  for (const AccessInfo& a : edit_.table().accesses) {
    if (a.store || a.strides[lane_] != 1 || reuse(edit_, a, outputs_ | reduction_.own) > uses)
      continue;
    const auto size = static_cast<int64_t>(a.node.dtype().bytes());
    const double bytes = a.elements * static_cast<double>(size);
    if (bytes <= static_cast<double>(edit_.machine().l2_bytes)) continue;
    for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
      if ((reduction_.own & bit(i)) && a.strides[i] != kOpaqueStride &&
          std::abs(a.strides[i]) * size >= kPageBytes)
        most = std::max(most, bytes);
  }
  return most;
}

// The reduced range whose steps are rows of memory beyond the last cache, pages apart: they come
// faster from some of them at once.
std::optional<size_t> Contraction::rows_at_once() const {
  if (bytes_in_pages(kFewRows) <= static_cast<double>(edit_.machine().l3_bytes))
    return std::nullopt;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
    if ((reduction_.own & bit(i)) && edit_.const_extent(i) > kRowsAtOnce &&
        edit_.const_extent(i) % kRowsAtOnce == 0)
      return i;
  return std::nullopt;
}

// The vectors of a row of memory that are multiplied with so many rows at once.
int64_t Contraction::whole_row_vectors(int64_t height) const {
  return std::min<int64_t>((edit_.machine().vector_registers - 2) / height, kWholeRowVectors);
}

// The reduced range whose steps are rows of memory that come fastest as a whole, some side by side:
// from beyond the last cache, and where a vector is less than a line.  The sums stay in the first
// level, those of several rows of a product, `row`, in the second.
std::optional<size_t> Contraction::whole_rows() const {
  const std::optional<size_t> row = this->row();
  const double bytes = bytes_in_pages(row ? kWholeRowUses : kFewRows);
  const bool is_far = bytes > static_cast<double>(edit_.machine().l3_bytes);
  if (bytes == 0 || (!is_far && !comes_in_whole_rows(edit_.machine()))) return std::nullopt;
  if (!can_add_into_destination(edit_.kernel()) || !std::has_single_bit(reduction_.own))
    return std::nullopt;
  const auto rows = static_cast<size_t>(std::countr_zero(reduction_.own));
  const int64_t columns = edit_.const_extent(lane_);
  const int64_t height = row ? edit_.const_extent(*row) : 1;
  if (height == 0 || whole_row_vectors(height) < 2) return std::nullopt;
  const int64_t sums = columns * height * edit_.table().widest_bytes;
  if (sums > (row ? edit_.machine().l2_bytes : edit_.machine().l1_bytes) / 2 ||
      !can_walk_whole_rows(edit_.const_extent(rows), columns))
    return std::nullopt;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
    if (i != lane_ && i != rows && i != row && edit_.const_extent(i) != 1) return std::nullopt;
  return rows;
}

// Each core has columns of its own, and walks its part of some rows at a time.
void Contraction::walk_whole_rows(size_t rows) {
  const std::optional<size_t> row = this->row();
  std::vector<int64_t> order;
  int64_t columns = edit_.number(lane_);
  const int64_t tile_columns =
      edit_.lanes() * whole_row_vectors(row ? edit_.const_extent(*row) : 1);
  const int64_t part =
      ceil_div(ceil_div(edit_.const_extent(lane_), int64_t{edit_.machine().cores}), tile_columns) *
      tile_columns;
  if (edit_.machine().cores > 1 && part >= kWholeRowMin) {
    order.push_back(columns);
    columns = edit_.tile(columns, part);
  }
  const int64_t inside = edit_.tile(edit_.number(rows), kWholeRows);
  edit_.kind(OptionKind::Unroll, inside);
  order.insert(order.end(), {edit_.number(rows), columns});
  if (row) order.push_back(edit_.number(*row));
  order.push_back(inside);
  edit_.apply({OptionKind::Order, -1, 0, order, 0, false});
  if (row) edit_.kind(OptionKind::Upcast, edit_.number(*row));
  const int64_t vectors = edit_.tile(columns, tile_columns);
  const int64_t lanes = edit_.tile(vectors, edit_.lanes());
  edit_.kind(OptionKind::Upcast, vectors);
  edit_.kind(OptionKind::Vec, lanes);
}

// The vectors of a register tile along `lane`.  Rows that are pages apart are fetched at full speed
// only in long runs: as long as registers allow, but from memory row after row in shorter ones.  So
// are sums of columns, whose rows are walked for each run, and whose additions wait for each other.
int64_t Contraction::vectors_max() const {
  const double bytes = bytes_in_pages(kFewRows);
  const bool is_far = bytes > static_cast<double>(edit_.machine().l3_bytes);
  if (is_far && !rows_at_once()) return kLongRunVectors;
  if (bytes == 0 && (row() || steps_ <= kWindowMax)) return kVectorsMax;
  const int64_t all = ceil_div(edit_.most(lane_), edit_.lanes());
  const int64_t runs = ceil_div(all, int64_t{edit_.machine().vector_registers} * 3 / 4);
  return ceil_div(all, bytes == 0 ? std::max<int64_t>(runs, edit_.machine().cores) : runs);
}

// The few steps of a pooling window, or of a filter for each channel, side by side, as those of
// words are already.
void Contraction::unroll_window(int64_t vectors) {
  int64_t steps = 1;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
    if (reduction_.own & bit(i)) steps *= edit_.const_extent(i);
  if (steps == 0 || steps > kWindowMax || steps * vectors > kWindowVectors) return;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
    if ((reduction_.own & bit(i)) && edit_.is_loop(edit_.number(i)))
      edit_.kind(OptionKind::Unroll, edit_.number(i));
}

// Whether lanes lie beyond a border of what is read or not by the step of the range at `taps`.
bool Contraction::are_lanes_asked(size_t taps) const {
  const UOp& lane = edit_.kernel().ranges[lane_].range;
  const UOp& tap = edit_.kernel().ranges[taps].range;
  return std::ranges::any_of(edit_.table().accesses, [&](const AccessInfo& a) {
    if (a.node.op() != Op::Load || !a.inside_reduction) return false;
    const ViewArg& view = a.node.view_arg();
    for (size_t i = 0; i < view.shape.size(); ++i) {
      const UOp& index = a.node.src(i + 1);
      if (view.shape[i] != kSymbolicDim && reaches(index, lane) && reaches(index, tap) &&
          reach_beyond(index, view.shape[i], {}).most() > 0)
        return true;
    }
    return false;
  });
}

// The few taps of the innermost loop of a tile's sums, where they decide which lanes are read: side
// by side each has a mask that is known.  Some loop is left around them, so that what is loaded of
// all steps does not wait in registers.
void Contraction::unroll_taps_of_tile(int64_t sums) {
  if (words_.range >= 0) return;
  for (size_t i = edit_.kernel().ranges.size(); i-- > 0;) {
    if (!(reduction_.own & bit(i))) continue;
    const int64_t taps = edit_.const_extent(i);
    if (taps > 1 && taps <= kWindowMax && taps * sums <= kProductsMax &&
        steps_ > static_cast<double>(taps) && edit_.is_loop(edit_.number(i)) && are_lanes_asked(i))
      edit_.kind(OptionKind::Unroll, edit_.number(i));
    return;
  }
}

// The last range of outputs whose steps share a load with lanes; beside `other`, one over which
// another load with lanes has the same elements at each of its steps.
std::optional<size_t> Contraction::folded_row(std::optional<size_t> other) const {
  std::optional<size_t> row;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i) {
    if (!(outputs_ & bit(i)) || edit_.most(i) < kFoldedRows || i == other) continue;
    for (const AccessInfo& a : edit_.table().accesses)
      if (!a.store && a.strides[lane_] != 0 && a.strides[i] == 0 &&
          (!other || (a.strides[*other] != 0 && a.strides[*other] != kOpaqueStride)))
        row = i;
  }
  return row;
}

// Lanes and a few vectors along a reduced range, folded at the end.  Where both operands have
// lanes, rows of both are multiplied with each other, so that each is loaded for some of the other.
bool Contraction::fold_lanes() {
  if (lane_ == edit_.kernel().ranges.size() || !(reduction_.own & bit(lane_))) return false;
  const int64_t vectors = edit_.most(lane_) >= 4 * edit_.lanes()   ? 4
                          : edit_.most(lane_) >= 2 * edit_.lanes() ? 2
                                                                   : 1;
  const std::optional<size_t> row = folded_row({});
  // A short sum takes the time of its folding, whatever it loads.
  const std::optional<size_t> beside = row && vectors > 1 ? folded_row(row) : std::nullopt;
  // Registers hold the sums, a vector of each row and one of those beside.
  const int64_t most = (edit_.machine().vector_registers - kFoldedRows - 1) / kFoldedRows;
  const auto repeat = [&](size_t range, int64_t rows) {
    edit_.kind(OptionKind::Upcast, edit_.tile(edit_.number(range), rows));
  };
  if (row) repeat(*row, kFoldedRows);
  if (beside) repeat(*beside, std::clamp<int64_t>(most, 1, kFoldedRows));
  edit_.vector_tile(lane_, beside ? 1 : row ? std::min(vectors, kFoldedRowVectors) : vectors);
  return true;
}

bool Contraction::slide() {
  if (lane_ == edit_.kernel().ranges.size() || (reduction_.own & bit(lane_))) return false;
  const auto window =
      window_tile(edit_, reduction_.node, edit_.number(lane_), outputs_, edit_.extent(lane_));
  if (!window || window->loads >= loads_of_columns()) return false;
  edit_.kind(OptionKind::Upcast, window_tile_range(edit_, *window));
  unroll_taps(edit_, *window, reduction_.node);
  edit_.vector_tile(lane_, 1);
  if (stays_near_by_lanes(edit_, lane_) && edit_.is_loop(edit_.number(lane_)))
    edit_.put_first(edit_.number(lane_));
  return true;
}

bool Contraction::walk_rows() {
  if (lane_ == edit_.kernel().ranges.size() || (reduction_.own & bit(lane_))) return false;
  const std::optional<size_t> rows = whole_rows();
  if (rows) walk_whole_rows(*rows);
  return rows.has_value();
}

bool Contraction::pack_panels() {
  if (!row() || edit_.most(lane_) < edit_.lanes()) return false;
  const TileCost cost{panel_vectors_max(), kPanelBytes};
  const RegisterTile tile = register_tile(edit_, edit_.extent(row_), edit_.extent(lane_), cost);
  PackedPanel panel(edit_, words_, reduction_, {lane_, row_, outputs_ | reduction_.own, tile});
  return panel.run();
}

// As many rows as two tiles have, in pieces of one size.
bool Contraction::pack_tiles() {
  if (words_.range < 0 || !row() || edit_.most(lane_) < edit_.lanes()) return false;
  RegisterTile tile;
  const int64_t rows = edit_.most(row_);
  // Of a panel that lies as it is all vectors, else as many as two tiles of rows have beside them.
  const int64_t most = panel_vectors_max();
  tile.vectors = std::min(most > kTileVectorsMax ? kTileVectorsMax - 1 : most,
                          ceil_div(edit_.most(lane_), edit_.lanes()));
  tile.rows = ceil_div(rows, ceil_div(rows, tile_rows_max(tile.vectors)));
  PackedPanel panel(edit_, words_, reduction_,
                    {lane_, row_, outputs_ | reduction_.own, tile, true});
  return panel.run();
}

// Of a tile whose rows lie along the window that is walked innermost.
std::optional<SlidingRows> Contraction::sliding_rows_of(const RegisterTile& tile) const {
  if (!row() || words_.range >= 0) return std::nullopt;
  for (size_t i = edit_.kernel().ranges.size(); i-- > 0;)
    if (reduction_.own & bit(i)) return sliding_rows(edit_, lane_, row_, i, tile);
  return std::nullopt;
}

// Of all steps that a vector of columns is read for; those along a window within its own lines.
double Contraction::bytes_of_vector() const {
  double bytes = 0;
  for (const AccessInfo& a : edit_.table().accesses) {
    if (a.store || !a.inside_reduction || a.strides[lane_] == 0) continue;
    double steps = 1;
    for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
      if ((reduction_.own & bit(i)) && std::abs(a.strides[i]) >= edit_.lanes())
        steps *= edit_.extent(i);
    bytes += steps * static_cast<double>(edit_.lanes() * a.node.dtype().bytes());
  }
  return bytes;
}

// Of a vector of columns: lanes that lie apart are loaded one by one, or picked out of as many
// registers as they lie apart.
double Contraction::loads_of_vector() const {
  int64_t most = 1;
  for (const AccessInfo& a : edit_.table().accesses) {
    const int64_t apart =
        a.strides[lane_] == kOpaqueStride ? edit_.lanes() : std::abs(a.strides[lane_]);
    if (a.store || !a.inside_reduction || apart == 0) continue;
    const bool is_picked =
        are_picked(edit_.machine(), apart, edit_.lanes(), a.node.dtype().bytes());
    most = std::max(most, apart == 1 ? 1 : is_picked ? apart : edit_.lanes());
  }
  return static_cast<double>(most);
}

bool Contraction::tile() {
  if (lane_ == edit_.kernel().ranges.size() || (reduction_.own & bit(lane_))) return false;
  const TileCost cost{vectors_max(), bytes_of_vector(),
                      row() ? kBorderRows * share_at_borders(edit_, lane_, row_) : 0,
                      loads_of_vector()};
  RegisterTile best =
      register_tile(edit_, row() ? edit_.extent(row_) : 1, edit_.extent(lane_), cost);
  if (!row())
    best.vectors = std::clamp<int64_t>(edit_.most(lane_) / edit_.lanes(), 1, cost.vectors_max);
  const std::optional<SlidingRows> sliding = sliding_rows_of(best);
  if (sliding) best.rows = sliding->rows;
  if (row() && best.rows > 1) {
    const bool is_whole = best.rows == edit_.const_extent(row_);
    edit_.kind(OptionKind::Upcast,
               is_whole ? edit_.number(row_) : edit_.tile(edit_.number(row_), best.rows));
  }
  edit_.vector_tile(lane_, best.vectors);
  if (sliding) edit_.kind(OptionKind::Unroll, sliding->taps);
  if (row()) {
    const double bytes = static_cast<double>(best.vectors) * bytes_of_vector();
    const int64_t products = best.rows * best.vectors;
    walk_far_columns_once(edit_, {reduction_, outputs_, lane_, row_, products, bytes});
    if (!sliding) unroll_taps_of_tile(products);
    prefetch_next_rows(edit_, lane_, row_, edit_.number(row_));
    return true;
  }
  unroll_window(best.vectors);
  if (const auto rows = rows_at_once())
    edit_.kind(OptionKind::Unroll, edit_.tile(edit_.number(*rows), kRowsAtOnce));
  return true;
}

bool Contraction::run() {
  return fold_lanes() || slide() || walk_rows() || pack_panels() || tile();
}

// Whether a store walks ranges of its own, beside those of the only reduction.
static bool is_apart(const ClosureInfo& c, const ClosureInfo& reduction) {
  return c.store && (c.own & ~reduction.below) != 0;
}

// Whether it is the only reduction, and not all stores walk ranges of their own with its result:
// such are rows.
bool is_contraction(const Seen& seen) {
  if (seen.reductions.size() != 1) return false;
  const ClosureInfo& reduction = *seen.reductions.front();
  return !std::ranges::all_of(seen.table.closures, [&](const ClosureInfo& c) {
    return !c.store || is_apart(c, reduction);
  });
}

bool has_stores_apart(const Seen& seen) {
  return std::ranges::any_of(seen.table.closures, [&](const ClosureInfo& c) {
    return is_apart(c, *seen.reductions.front());
  });
}

std::optional<size_t> lanes_of_panel(const UOp& scattered_operand, const Editor& edit) {
  for (const AccessInfo& a : edit.table().accesses) {
    if (a.store || !(a.node.src(0) == scattered_operand)) continue;
    for (size_t i = 0; i < edit.kernel().ranges.size(); ++i)
      if (a.strides[i] == 1 && !edit.kernel().ranges[i].reduced && edit.most(i) >= edit.lanes())
        return i;
  }
  return std::nullopt;
}

void propose_contraction(const Seen& seen, std::vector<Proposal>& to) {
  std::optional<size_t> next, of_panel;
  bool is_close = false, has_words = false;
  const auto made = [&](bool in_words, std::optional<size_t> lanes) -> std::optional<Proposal> {
    Editor edit(seen.kernel, seen.machine, seen.table);
    Words words;
    if (in_words) words = form_words(edit, seen.reductions.front()->node);
    const auto sum =
        std::ranges::find_if(edit.table().closures, [](const ClosureInfo& c) { return !c.store; });
    Contraction contraction(edit, words, *sum, lanes);
    if (!lanes) next = contraction.next_lanes(), is_close = contraction.is_next_close();
    has_words = words.range >= 0;
    if (!lanes && words.scattered_operand) of_panel = lanes_of_panel(words.scattered_operand, edit);
    contraction.run();
    share_values(edit);
    if (words.is_scattered) return std::nullopt;
    return propose(edit.take(), seen.machine);
  };
  std::optional<Proposal> proposal = made(true, {});
  if (!proposal && of_panel) proposal = made(true, of_panel);
  const bool in_words = proposal.has_value();
  if (!in_words) proposal = made(false, {});
  const double limit = limit_seconds(seen.table, seen.machine);
  // Words that lie apart are gathered in lanes, which the estimate takes for cheaper than it is.
  const bool is_far = !has_words && proposal->cost.seconds > kFarFromLimit * limit;
  std::optional<Proposal> other;
  if (next && (is_close || is_far)) other = made(in_words, next);
  if (other && other->cost.seconds * kOtherGain < proposal->cost.seconds)
    std::swap(proposal, other);
  to.push_back(std::move(*proposal));
  if (other) to.push_back(std::move(*other));
}

}  // namespace tiny
