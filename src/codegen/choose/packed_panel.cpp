#include "codegen/choose/packed_panel.h"

#include <algorithm>
#include <cstdlib>

#include "base/sort.h"
#include "codegen/choose/fills.h"
#include "codegen/choose/lanes.h"
#include "codegen/choose/panel_order.h"
#include "codegen/linearize/split_reduce.h"
#include "codegen/options/prefetch.h"
#include "ir/whole_rows.h"

namespace tiny {

namespace {

constexpr double kPanelsOfCopy = 16;  // that all rows are multiplied with, before they are copied
constexpr int64_t kPassesMany = 32;   // so many that the first does not matter
constexpr int64_t kProductsOfTurn = 64;  // in registers, of a loop over steps
constexpr double kPartOfRows = 0.5;      // for rows that are copied
constexpr double kPartOfMemory = 3;  // of the last cache: a panel of less is fetched soon enough

}  // namespace

PackedPanel::PackedPanel(Editor& edit, Words& words, const ClosureInfo& reduction,
                         const ContractionTile& chosen)
    : edit_(edit),
      words_(words),
      reduction_(reduction),
      at_(chosen),
      rows_(edit_, words_, reduction_, at_.lane, at_.row),
      choice_(edit_, words_, reduction_, at_, rows_) {
}

// Rows along a window whose steps are walked innermost, and not cut.
void PackedPanel::slide_rows() {
  const size_t taps = reduced_along(panel_.in_place ? panel_.load : nullptr).back();
  if (words_.range >= 0 || (panel_.steps && taps == static_cast<size_t>(panel_.steps_range)))
    return;
  sliding_ = sliding_rows(edit_, at_.lane, at_.row, taps, at_.tile);
  if (sliding_) at_.tile.rows = sliding_->rows;
}

// Such rows are copied for each tile.
void PackedPanel::stage_rows() {
  size_t along = 0;
  const AccessInfo* rows = rows_.colliding(&along);
  if (!rows) return;
  const int64_t steps =
      static_cast<int64_t>(along) == panel_.steps_range ? cuts_.steps : edit_.number(along);
  const UOp param = rows->node.src(0);
  // A line further apart; words stay whole.
  std::vector<int64_t> layout{cuts_.inner_row, steps};
  if (words_.range >= 0) layout.push_back(words_.range);
  const int64_t line = kLineBytes / rows->node.dtype().bytes();
  const UOp stage =
      edit_.new_stage({OptionKind::Stage, cuts_.outer_row, param.int_arg(), layout, line, false});
  fill_with_lanes(edit_, stage);
}

// All rows at once, if the second level holds them beside the panels that each tile of them meets.
void PackedPanel::stage_all_rows() {
  size_t along = 0;
  const AccessInfo* rows = rows_.colliding(&along);
  if (!rows) return;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
    if (i != at_.row && i != along && edit_.number(i) != words_.range && rows->strides[i] != 0)
      return;
  const int64_t bytes = rows->node.dtype().bytes();
  if (rows->elements * static_cast<double>(bytes) >
      static_cast<double>(edit_.machine().l2_bytes) * kPartOfRows)
    return;
  // A line after all rows of a place in their tiles.
  std::vector<int64_t> layout{cuts_.inner_row, edit_.number(at_.row), edit_.number(along)};
  if (words_.range >= 0) layout.push_back(words_.range);
  const int64_t param = rows->node.src(0).int_arg();
  fill_with_lanes(edit_, edit_.new_stage({OptionKind::Stage, nest_.outside, param, layout,
                                          kLineBytes / bytes, false}));
}

// They are laid out side by side for many panels: each tile of them or, where the panels are
// outside, all at once, which each panel reads from the last level at worst; not where each of the
// pieces that cores share would do so again.
void PackedPanel::stage_far_rows() {
  const AccessInfo* strided = rows_.strided();
  const AccessInfo* rows = strided ? strided : rows_.scattered();
  if (!rows || !can_stage(edit_, *rows, at_.row) ||
      (!nest_.has_panels_inside && edit_.machine().cores > 1))
    return;
  const std::vector<KernelRange>& ranges = edit_.kernel().ranges;
  const int64_t columns =
      panel_.are_counted(at_.lane) ? 1 : at_.tile.vectors * edit_.lanes();  // of a panel
  double panels = edit_.extent(panel_.column_range) / static_cast<double>(columns);
  // Without panels inside, the copy is made in the innermost loop around the panels that the rows
  // step with, for all loops inside of that.
  int64_t place = nest_.has_panels_inside ? cuts_.outer_row : -1;
  RangeSet around = 0;
  if (!nest_.has_panels_inside && nest_.outside >= 0)
    for (const int64_t r : nest_.order) {
      const size_t i = edit_.kernel().find_range(r);
      const bool steps = i < ranges.size() && rows->strides[i] != 0;
      if (steps) place = r, around |= bit(i);
      panels = steps || i == ranges.size() ? panels : panels * edit_.extent(i);
      if (r == nest_.outside) break;
    }
  if (panels < (strided ? kReadAgainMin : kPanelsOfCopy)) return;
  std::vector<int64_t> layout;
  auto bytes = static_cast<double>(rows->node.dtype().bytes());
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (rows->strides[i] == 0 || (around & bit(i))) continue;
    bytes *= edit_.extent(i);
    if (i != at_.row && !(reduction_.own & bit(i))) layout.push_back(edit_.number(i));
  }
  if (nest_.has_panels_inside) {
    layout.clear();
  } else {
    if (bytes > static_cast<double>(edit_.machine().l3_bytes) * kPartOfRows) return;
    layout.push_back(cuts_.outer_row);
  }
  for (const int64_t step : nest_.steps) layout.push_back(step);
  layout.push_back(cuts_.inner_row);
  const int64_t param = rows->node.src(0).int_arg();
  fill_with_lanes(edit_, edit_.new_stage({OptionKind::Stage, place, param, layout, 0, false}));
}

// The panel after the one that is read is fetched while passes are made over that: a weight is in
// memory, not in the cache, when its kernel comes.
void PackedPanel::prefetch_panel() {
  const int64_t param = panel_.load->node.src(0).int_arg();
  bool is_inside = nest_.place < 0;
  for (const KernelRange& r : edit_.now().ranges) {
    const int64_t at = r.range.int_arg();
    const bool is_loop = is_inside && r.kind == RangeKind::Loop && !r.reduced;
    is_inside |= at == nest_.place;
    if (!is_loop) continue;
    if (r.range.src(0).is_const() && r.range.src(0).const_int() > kPassesMany) return;
    const Option option{OptionKind::Prefetch, at, param, {}, 0, false};
    if (can_prefetch(edit_.now(), option)) edit_.apply(option);
    return;
  }
  // Without passes: rows beside it are too many streams for a processor to guess them all.
  const Option option{OptionKind::Prefetch, nest_.place, param, {}, 0, false};
  if (nest_.place >= 0 && is_far(*panel_.load) && can_prefetch(edit_.now(), option))
    edit_.apply(option);
}

// Where each panel has rows of its own (a batch of products), those of the next one are fetched
// while this one's are multiplied: short pieces of lines, of which each tile of rows asks again.
void PackedPanel::prefetch_rows() {
  const AccessInfo* rows = rows_.operand();
  const size_t place = edit_.kernel().find_range(nest_.place);
  if (!rows || place == edit_.kernel().ranges.size() || rows->strides[place] == 0) return;
  const Option option{OptionKind::Prefetch, nest_.place, rows->node.src(0).int_arg(), {}, 0, false};
  if (is_far(*rows) && can_prefetch(edit_.now(), option)) edit_.apply(option);
}

// Whether it comes from beyond the last cache, so that it would be waited for.
bool PackedPanel::is_far(const AccessInfo& a) const {
  const double bytes = a.elements * static_cast<double>(a.node.dtype().bytes());
  return bytes * kPartOfMemory > static_cast<double>(edit_.machine().l3_bytes);
}

// Whether blocks of panels that lie in place fall into the same sets of the second level of cache,
// where they would push out each other and all else: they are copied then.
bool PackedPanel::are_panels_colliding() const {
  if (!panel_.steps || panel_.columns == 0) return false;
  const int64_t way = edit_.machine().l2_bytes / kWays;
  const int64_t apart = panel_.load->strides[panel_.column_range] * edit_.table().widest_bytes;
  return apart >= way && apart % way == 0;
}

// While a tile is multiplied with a panel, a part of the rows of the next tile is fetched, and the
// place that the tile's sums are added to: both are far where what is walked between two uses is
// larger than the cache, and neither is walked in an order that a processor guesses.
void PackedPanel::prefetch_tiles(int64_t inside) {
  const auto l2 = static_cast<double>(edit_.machine().l2_bytes);
  for (const AccessInfo& a : edit_.table().accesses) {
    const bool is_row =
        !a.store && a.inside_reduction && a.strides[at_.lane] == 0 && a.strides[at_.row] != 0;
    if (!is_row && !a.store) continue;
    const int64_t bytes = (a.store ? a.node.src(1) : a.node).dtype().bytes();
    // Rows are read again for the next block of columns, sums for the next block of steps.
    const double walked =
        a.store ? edit_.extent(at_.row) * static_cast<double>(panel_.columns) : a.elements;
    const Option option{OptionKind::Prefetch, inside, a.node.src(0).int_arg(), {}, 0, false};
    if (walked * static_cast<double>(bytes) >= l2 && can_prefetch(edit_.now(), option))
      edit_.apply(option);
  }
}

// The reduced range is cut: blocks outside, steps inside; columns into blocks, panels, vectors and
// lanes.
void PackedPanel::cut_ranges() {
  const int64_t width = at_.tile.vectors * edit_.lanes();
  const size_t column_range = panel_.column_range;
  cuts_.blocks = edit_.number(static_cast<size_t>(panel_.steps_range));
  cuts_.steps = panel_.steps ? edit_.tile(cuts_.blocks, panel_.steps) : cuts_.blocks;
  cuts_.column_blocks = edit_.number(column_range);
  const int64_t block = panel_.are_counted(at_.lane) ? panel_.columns / width : panel_.columns;
  const bool has_blocks = panel_.steps && block < edit_.most(column_range);
  cuts_.panels = has_blocks ? edit_.tile(cuts_.column_blocks, block) : cuts_.column_blocks;
  cuts_.vectors = panel_.in_place ? edit_.number(at_.lane) : cuts_.panels;
  if (!panel_.in_place &&
      (edit_.const_extent(at_.lane) == 0 || edit_.const_extent(at_.lane) > width))
    cuts_.vectors = edit_.tile(cuts_.panels, width);
  cuts_.lane = at_.tile.vectors > 1 ? edit_.tile(cuts_.vectors, edit_.lanes()) : cuts_.vectors;
  if (const std::optional<PanelPart> part = choice_.rows_of_cores(panel_)) {
    cuts_.parts = edit_.number(part->range);
    cuts_.in_part = edit_.tile(cuts_.parts, part->size);
  }
  const bool are_parts_rows = cuts_.parts == edit_.number(at_.row);
  cuts_.outer_row = are_parts_rows ? cuts_.in_part : edit_.number(at_.row);
  const bool is_whole = at_.tile.rows == edit_.const_extent(at_.row);
  cuts_.inner_row = is_whole ? cuts_.outer_row : edit_.tile(cuts_.outer_row, at_.tile.rows);
}

// The reduced ranges as the operand's elements lie, the farthest apart outermost.
std::vector<size_t> PackedPanel::reduced_along(const AccessInfo* walked) const {
  std::vector<size_t> reduced;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
    if (reduction_.own & bit(i)) reduced.push_back(i);
  const auto is_opaque = [&](size_t i) { return walked->strides[i] == kOpaqueStride; };
  if (walked && std::ranges::none_of(reduced, is_opaque))
    sort_stable(reduced, std::ranges::greater{},
                [&](size_t i) { return std::abs(walked->strides[i]); });
  return reduced;
}

// What lies in panels is walked as it lies.  A copy has any order: rows are walked as they lie,
// many steps in each line, unless they share what they load over their last steps.
std::vector<size_t> PackedPanel::reduced_ranges() const {
  if (panel_.in_place) return reduced_along(panel_.load);
  return reduced_along(sliding_ ? nullptr : rows_.operand());
}

// Loops over what the panel is one for, its blocks, the panels; then tiles of rows; then the steps.
void PackedPanel::order_loops() {
  const auto add = [&](int64_t r) {
    if (edit_.has_range(r) && std::ranges::count(nest_.order, r) == 0) nest_.order.push_back(r);
  };
  const auto add_free = [&](bool has_panel) {
    for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i) {
      const bool is_own = i == at_.lane || (has_panel ? i == panel_.column_range : i == at_.row);
      if (is_own || (reduction_.own & bit(i)) || edit_.number(i) == words_.range) continue;
      if ((panel_.load->strides[i] != 0) != has_panel) continue;
      add(edit_.number(i) == cuts_.parts ? cuts_.in_part : edit_.number(i));
    }
  };
  const auto last = [&] { return nest_.order.empty() ? -1 : nest_.order.back(); };
  if (cuts_.parts >= 0) add(cuts_.parts);
  add_free(true);
  if (cuts_.panels != cuts_.column_blocks) add(cuts_.column_blocks);
  if (panel_.steps) add(cuts_.blocks);
  nest_.has_panels_inside =
      PanelOrder(edit_, reduction_, at_, rows_, choice_, panel_).are_panels_inside();
  nest_.outside = last();
  const bool has_panels = cuts_.vectors != cuts_.panels;
  if (!nest_.has_panels_inside && has_panels) add(cuts_.panels);
  nest_.place = last();
  add_free(false);
  if (cuts_.inner_row != cuts_.outer_row) add(cuts_.outer_row);
  if (nest_.has_panels_inside && has_panels) {
    add(cuts_.panels);
    if (edit_.has_range(cuts_.panels)) nest_.layout.push_back(cuts_.panels);
  }
  order_steps();
  edit_.apply({OptionKind::Order, -1, 0, nest_.order, 0, false});
}

// The innermost loops, and what a panel of them holds.
void PackedPanel::order_steps() {
  const auto add = [&](std::vector<int64_t>& list, int64_t r) {
    if (edit_.has_range(r) && std::ranges::count(list, r) == 0) list.push_back(r);
  };
  const auto add_both = [&](int64_t r) {
    add(nest_.order, r);
    add(nest_.layout, r);
  };
  for (const size_t i : reduced_ranges()) {
    const bool is_cut = i == static_cast<size_t>(panel_.steps_range);
    nest_.steps.push_back(is_cut ? cuts_.steps : edit_.number(i));
    add_both(nest_.steps.back());
  }
  add(nest_.order, cuts_.inner_row);
  if (cuts_.vectors != cuts_.lane) add_both(cuts_.vectors);
  add_both(cuts_.lane);
  if (words_.range < 0) return;
  add_both(words_.range);
  const bool is_other =
      words_.scattered_operand && !(words_.scattered_operand == panel_.load->node.src(0));
  if (words_.scattered_operand && !is_other) words_.is_scattered = panel_.in_place;
}

// The lanes, and the panel's copy if it is one.
void PackedPanel::fill_panel() {
  const int64_t param = panel_.load->node.src(0).int_arg();
  const Option stage{OptionKind::Stage, nest_.place, param, nest_.layout, 0, false};
  // Lanes that lie apart are read along the steps instead, and stored apart: scratch is near.
  const bool along_steps = panel_.load->strides[at_.lane] != 1;
  if (along_steps) fill_along(edit_, stage);
  edit_.kind(OptionKind::Vec, cuts_.lane);
  if (at_.tile.rows > 1) edit_.kind(OptionKind::Upcast, cuts_.inner_row);
  if (cuts_.vectors != cuts_.lane) edit_.kind(OptionKind::Upcast, cuts_.vectors);
  if (!along_steps && panel_.in_place && !are_panels_colliding()) return;
  if (const UOp value = computed_lanes(edit_, cuts_.lane, {cuts_.inner_row, cuts_.outer_row})) {
    const std::vector<UOp> nodes = topological(edit_.now().roots);
    const int64_t at = std::ranges::find(nodes, value) - nodes.begin();
    edit_.apply({OptionKind::Stage, nest_.place, at, nest_.layout, 0, true});
  } else if (!along_steps && (panel_.is_copied || panel_.in_place)) {
    edit_.apply(stage);
  }
}

// What each tile of rows keeps for all panels.
void PackedPanel::copy_rows() {
  if (cuts_.inner_row == cuts_.outer_row) return;
  // A copy that one panel alone would be multiplied with costs more than what it saves.
  if (!panel_.steps && (rows_.scattered() || rows_.strided())) {
    stage_far_rows();
  } else if (nest_.has_panels_inside) {
    stage_rows();
  } else if (panel_.are_counted(at_.lane) && edit_.extent(panel_.column_range) >= kPanelsOfCopy) {
    stage_all_rows();
  }
  const std::vector<UOp> nodes = topological(edit_.now().roots);
  const auto sum = std::ranges::find_if(nodes, [](const UOp& u) { return u.op() == Op::Reduce; });
  if (sum == nodes.end()) return;
  const std::vector<int64_t> columns{cuts_.vectors, cuts_.lane};
  if (const UOp stage =
          stage_factor(edit_, *sum, columns, nest_.steps, cuts_.outer_row, cuts_.inner_row))
    fill_with_lanes(edit_, stage);
}

bool PackedPanel::run() {
  panel_ = choice_.choose();
  if (!panel_.load) return false;
  if (!at_.is_of_tiles) slide_rows();
  cut_ranges();
  order_loops();
  fill_panel();
  copy_rows();
  if (at_.is_of_tiles) return true;  // which take many steps at once, and find what they read near
  unroll_steps();
  if (panel_.in_place && (panel_.steps || !nest_.has_panels_inside)) prefetch_panel();
  if (panel_.in_place && !nest_.has_panels_inside) prefetch_rows();
  if (panel_.steps && cuts_.inner_row != cuts_.outer_row)
    prefetch_tiles(cuts_.vectors != cuts_.panels ? cuts_.panels : cuts_.outer_row);
  if (!panel_.steps) prefetch_next_rows(edit_, at_.lane, at_.row, cuts_.outer_row);
  prefetch_epilogue(edit_, at_.lane, at_.row, panel_.steps == 0);
  return true;
}

// Some steps of the innermost reduced loop side by side: what a turn of the loop costs beside its
// products (addresses, what is fetched ahead) is shared by more of them, and is not missed where
// another thread has its share of the core.  A panel that few tiles of rows pass over is waited
// for: what is fetched of the next one is better spread over all steps.
void PackedPanel::unroll_steps() {
  const int64_t range = nest_.steps.back();
  if (sliding_) return edit_.kind(OptionKind::Unroll, sliding_->taps);
  // What rows share over steps would have to stay in registers meanwhile.
  if (are_loads_shared(edit_, at_.lane, at_.row, reduced_ranges().back())) return;
  if (panel_.passes <= kReadAgainMin) return;
  const UOp size = edit_.now().ranges[edit_.now().find_range(range)].range.src(0);
  const bool is_cut = range == cuts_.steps && cuts_.steps != cuts_.blocks;
  if (!size.is_const() ||
      (is_cut &&
       edit_.const_extent(static_cast<size_t>(panel_.steps_range)) % size.const_int() != 0))
    return;
  int64_t steps = 1;
  while (2 * steps * at_.tile.rows * at_.tile.vectors <= kProductsOfTurn &&
         size.const_int() % (2 * steps) == 0 && size.const_int() > 2 * steps)
    steps *= 2;
  if (steps == 1) return;
  edit_.kind(OptionKind::Unroll, edit_.tile(range, steps));
}

}  // namespace tiny
