// Panels of a contraction's operands: in scratch where they are read often and do not lie as they
// are read, or in place; how tiles of rows pass over them, and what is fetched meanwhile.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/checked.h"
#include "codegen/choose/chooser.h"
#include "codegen/linearize/split_reduce.h"
#include "codegen/options/prefetch.h"
#include "ir/affine.h"

namespace tiny {

namespace {

constexpr double kReadAgainMin = 4;     // before a panel that lies well enough is copied
constexpr double kPanelsOfCopy = 16;    // that all rows are multiplied with, before they are copied
constexpr double kPassesFew = 8;        // over a panel, by tiles of rows
constexpr int64_t kPassesMany = 32;     // so many that the first does not matter
constexpr int64_t kReducedWhole = 384;  // of a reduced range in a panel, at most all its steps
constexpr int64_t kProductsOfTurn = 64;  // in registers, of a loop over steps
constexpr int64_t kWays = 16;            // lines of a set of the second level of cache
constexpr int64_t kRowsOfShare = 8;      // of a tile whose panels come from the second level
constexpr double kApartSeconds = 20e-6;  // that lie between the moments when cores begin a kernel

// About kReducedBlock steps: as many in each block if they can be, so that no block needs guards.
int64_t block_of_steps(int64_t steps) {
  for (int64_t away = 0; away <= kReducedBlock / 4; away += 2)
    for (const int64_t block : {kReducedBlock + away, kReducedBlock - away})
      if (steps % block == 0) return block;
  return kReducedBlock;
}

// At most `most` of `panels` in a block: as many in each, or nearly so.
int64_t block_of_panels(int64_t panels, int64_t most) {
  for (int64_t block = most; 3 * block > 2 * most; --block)
    if (panels % block == 0) return block;
  return ceil_div(panels, ceil_div(panels, most));
}

}  // namespace

// Whether the columns of a register tile lie side by side, one step of the reduction after the
// other; `panels` is the range whose steps are such panels, or `lane` if there is one.
bool Chooser::lies_in_panels(const AccessInfo& load, size_t lane, size_t* panels) const {
  const int64_t width = const_extent(lane);
  if (load.strides[lane] != 1 || width % lanes_ != 0 || width > kVectorsMax * lanes_) return false;
  int64_t nearest = INT64_MAX;
  int64_t farthest = 0;
  *panels = lane;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
    const int64_t stride = load.strides[i];
    if (i == lane || stride == 0) continue;
    if (const_extent(i) == 0 || stride == kOpaqueStride) return false;
    if (kernel_.ranges[i].reduced) {
      nearest = std::min(nearest, stride);
      farthest = std::max(farthest, stride * const_extent(i));
    }
  }
  for (size_t i = 0; i < kernel_.ranges.size(); ++i)
    if (i != lane && !kernel_.ranges[i].reduced && load.strides[i] == farthest) *panels = i;
  return nearest == width;
}

// The operand that has the lanes is copied to a panel if it is read again for many rows and lies in
// another order, or in rows longer than the panel's.
Chooser::Panel Chooser::choose_panel(const ClosureInfo& reduction, size_t lane, size_t row,
                                     const RegisterTile& tile) const {
  Panel none;
  const int64_t width = tile.vectors * lanes_;
  const AccessInfo* load = nullptr;
  for (const AccessInfo& a : table_.accesses) {
    if (a.store || !a.inside_reduction || a.strides[lane] == 0) continue;
    if (load || a.strides[row] != 0 || !can_stage(a, lane)) return none;
    load = &a;
  }
  if (!load) return none;
  size_t column_range = lane;
  const bool in_place = const_extent(lane) == width && lies_in_panels(*load, lane, &column_range);
  const bool transposed = load->strides[lane] != 1;
  if (transposed && reuse(*load) < kStagedReuseMin) return none;
  double rows = extent(row) / static_cast<double>(tile.rows);
  int64_t steps = 1;
  size_t longest = lane;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
    const bool reduced = (reduction.own & bit(i)) != 0;
    if (!reduced && i != row && load->strides[i] == 0) rows *= extent(i);
    if (!reduced) continue;
    if (const_extent(i) == 0 || load->strides[i] == 0) return none;
    steps *= const_extent(i);
    if (longest == lane || const_extent(i) > const_extent(longest)) longest = i;
  }
  if (longest == lane) return none;
  const bool lies_well = !transposed && (rows < kReadAgainMin || most(lane) <= width || steps < 32);
  if (lies_well && !in_place) return none;
  Panel panel{load, 0, static_cast<int64_t>(longest), 0, in_place, column_range, rows};
  const int64_t bytes = table_.widest_bytes;
  const int64_t others = steps / const_extent(longest);
  const int64_t room = target_.l2_bytes / 4 * 3 / bytes;
  if (!can_add_into_destination(kernel_) || rows < kReadAgainMin) return panel;
  // A panel in place costs no filling: a pass takes all steps of it, unless the rows must be laid
  // out again for every pass.
  const bool in_one_pass =
      in_place && (rows < kPassesFew || !colliding_rows(reduction, lane, row, nullptr));
  if (others == 1 && steps > kReducedWhole && !in_one_pass) {
    panel.steps = block_of_steps(steps);
  } else if (steps * width > room) {
    panel.steps = std::max<int64_t>(room / (others * width) / 16 * 16, 16);
    if (panel.steps >= const_extent(longest)) panel.steps = 0;
  }
  if (panel.steps) {
    // All columns of a block are filled before the rows are walked; each worker has its own.
    const int64_t block = others * panel.steps;
    const int64_t columns =
        in_place && column_range != lane ? most(column_range) * width : most(lane);
    const int64_t each = ceil_div(columns, int64_t{2} * target_.cores);
    const int64_t fit = target_.l2_bytes / 2 / bytes / block;
    const int64_t wanted = target_.cores > 1 ? std::min(fit, each) : fit;
    panel.columns =
        block_of_panels(ceil_div(columns, width), std::max<int64_t>(ceil_div(wanted, width), 1)) *
        width;
  }
  return panel;
}

// Lanes for the fill of a stage, along the innermost of its ranges that are no steps of a word.
void Chooser::fill_with_lanes(const UOp& stage) {
  size_t at = stage.src().size() - 1;
  if (current_.ranges[current_.position(stage.src(at))].kind == RangeKind::Dot) --at;
  const UOp& range = stage.src(at);
  const int64_t copy = range.int_arg();
  const bool is_one_vector = range.src(0).is_const_int(lanes_);
  kind(OptionKind::Vec, is_one_vector ? copy : tile(copy, lanes_));
}

// A factor that is computed for each row and step of one reduced range, but is the same for all
// columns.
std::optional<Chooser::Factor> Chooser::computed_factor(const UOp& reduce,
                                                        const std::vector<int64_t>& columns,
                                                        const std::vector<int64_t>& steps,
                                                        int64_t row) {
  const UOp product = reduce.src(0);
  if (product.op() != Op::Mul) return std::nullopt;
  for (const UOp& factor : product.src()) {
    const bool is_computed = has(factor.op(), kElementwise) || factor.op() == Op::Reduce;
    if (!is_computed || factor.op() == Op::Cast) continue;
    std::vector<int64_t> below;
    for (const UOp& u : topological({&factor, 1}))
      if (u.op() == Op::Range) below.push_back(u.int_arg());
    const auto depends = [&](int64_t range) { return std::ranges::count(below, range) > 0; };
    std::vector<int64_t> walked;
    std::ranges::copy_if(steps, std::back_inserter(walked), depends);
    if (std::ranges::any_of(columns, depends) || walked.size() != 1 || !depends(row)) continue;
    return Factor{factor, walked[0]};
  }
  return std::nullopt;
}

// The factor with the lanes, if it is computed of what is read, for all rows alike: a panel of what
// is read would have it computed anew for each tile of rows.
UOp Chooser::computed_lanes(int64_t lane, const std::vector<int64_t>& rows) const {
  const std::vector<UOp> nodes = topological(current_.roots);
  const auto sum = std::ranges::find_if(nodes, [](const UOp& u) { return u.op() == Op::Reduce; });
  if (sum == nodes.end() || sum->src(0).op() != Op::Mul) return {};
  for (const UOp& factor : sum->src(0).src()) {
    if (!has(factor.op(), kElementwise) || factor.op() == Op::Cast) continue;
    const std::vector<UOp> below = topological({&factor, 1});
    const auto depends = [&](int64_t range) {
      return std::ranges::any_of(
          below, [&](const UOp& u) { return u.op() == Op::Range && u.int_arg() == range; });
    };
    if (depends(lane) && std::ranges::none_of(rows, depends)) return factor;
  }
  return {};
}

// Whether a tile of rows is multiplied with all panels before the next: what is computed for it is
// computed once then, and the panels stay near enough.
bool Chooser::are_rows_first(const ClosureInfo& reduction, size_t lane, size_t row,
                             const RegisterTile& tile, const Panel& panel) const {
  if (!panel.in_place || panel.steps) return false;
  if (extent(row) < kPassesFew * static_cast<double>(tile.rows)) return false;
  const double bytes = panel.load->elements * static_cast<double>(table_.widest_bytes);
  if (bytes > 2 * static_cast<double>(target_.l2_bytes)) return false;
  std::vector<int64_t> steps;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i)
    if (reduction.own & bit(i)) steps.push_back(number(i));
  const std::vector<int64_t> columns{number(lane), number(panel.column_range)};
  return computed_factor(reduction.node, columns, steps, number(row)).has_value();
}

// Where the panels are few, cores share them unevenly, and the last wait for each other.  Tiles of
// rows are more, and are multiplied with panel after panel as fast if all of these stay in the
// second level of cache; but then each core reads all panels, and nothing is done meanwhile.
bool Chooser::are_rows_shared(const ClosureInfo& reduction, size_t lane, size_t row,
                              const RegisterTile& tile, const Panel& panel) const {
  if (target_.cores < 2 || tile.rows < kRowsOfShare || !panel.in_place || panel.steps ||
      panel.column_range == lane)
    return false;
  const double bytes = panel.load->elements * static_cast<double>(table_.widest_bytes);
  if (bytes > 0.75 * static_cast<double>(target_.l2_bytes)) return false;
  double products = 1, outermost = std::ceil(extent(row) / static_cast<double>(tile.rows));
  bool is_first = true;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
    products *= extent(i);
    if (i == lane || i == row || i == panel.column_range || (reduction.own & bit(i))) continue;
    if (panel.load->strides[i] != 0) return false;
    if (std::exchange(is_first, false)) outermost = extent(i);
  }
  const double seconds = products / target_.fma_rate, cores = target_.cores;
  const auto idle = [&](double shares) {
    return seconds * (std::ceil(shares / cores) / shares - 1 / cores) +
           std::min(kApartSeconds, seconds / shares) / cores;
  };
  const double again = bytes * cores / target_.memory_bandwidth;
  return idle(extent(panel.column_range)) > idle(outermost) + again;
}

// Such a factor is computed once per row tile, with lanes along the steps.
void Chooser::stage_factor(const UOp& reduce, const std::vector<int64_t>& columns,
                           const std::vector<int64_t>& steps, int64_t outer_row,
                           int64_t inner_row) {
  const std::vector<UOp> order = topological(current_.roots);
  const std::optional<Factor> factor = computed_factor(reduce, columns, steps, inner_row);
  if (!factor) return;
  const int64_t number = std::ranges::find(order, factor->value) - order.begin();
  const UOp stage =
      new_stage({OptionKind::Stage, outer_row, number, {inner_row, factor->walked}, 16, true});
  row_tile_.inner < 0 ? fill_with_lanes(stage) : fill_rows(stage);
}

// The operand that is broadcast, if its rows fall on each other in the cache; `along` is the range
// whose steps lie side by side in them.
const AccessInfo* Chooser::colliding_rows(const ClosureInfo& reduction, size_t lane, size_t row,
                                          size_t* along) const {
  for (const AccessInfo& a : table_.accesses) {
    if (a.store || !a.inside_reduction || a.strides[lane] != 0 || a.strides[row] == 0) continue;
    if (!can_stage(a, row) || (a.strides[row] * table_.widest_bytes) % kPageBytes != 0) continue;
    for (size_t i = kernel_.ranges.size(); i-- > 0;) {
      if (!(reduction.own & bit(i)) || a.strides[i] != 1 || const_extent(i) < kReducedBlock)
        continue;
      if (along) *along = i;
      return &a;
    }
  }
  return nullptr;
}

void Chooser::stage_rows(const ClosureInfo& reduction, size_t lane, size_t row, int64_t outer_row,
                         int64_t inner_row) {
  size_t along = 0;
  const AccessInfo* rows = colliding_rows(reduction, lane, row, &along);
  if (!rows) return;
  const int64_t steps = static_cast<int64_t>(along) == cut_range_ ? cut_ : number(along);
  const UOp param = rows->node.src(0);
  // A line further apart; words stay whole.
  std::vector<int64_t> layout{inner_row, steps};
  if (word_ >= 0) layout.push_back(word_);
  const int64_t line = 64 / rows->node.dtype().bytes();
  const UOp stage = new_stage({OptionKind::Stage, outer_row, param.int_arg(), layout, line, false});
  fill_with_lanes(stage);
}

// All rows at once, if the second level holds them beside the panels that each tile of them meets.
void Chooser::stage_all_rows(const ClosureInfo& reduction, size_t lane, size_t row, int64_t place,
                             int64_t inner_row) {
  size_t along = 0;
  const AccessInfo* rows = colliding_rows(reduction, lane, row, &along);
  if (!rows) return;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i)
    if (i != row && i != along && number(i) != word_ && rows->strides[i] != 0) return;
  const int64_t bytes = rows->node.dtype().bytes();
  if (rows->elements * static_cast<double>(bytes) > static_cast<double>(target_.l2_bytes) / 2)
    return;
  // A line after all rows of a place in their tiles.
  std::vector<int64_t> layout{inner_row, number(row), number(along)};
  if (word_ >= 0) layout.push_back(word_);
  const int64_t param = rows->node.src(0).int_arg();
  fill_with_lanes(new_stage({OptionKind::Stage, place, param, layout, kLineBytes / bytes, false}));
}

// The number of the range of a stage that steps through it one by one, if it is as long as a vector
// of lanes that turn; -1 if it is not.
int64_t Chooser::place_across(const UOp& stage) const {
  if (table_.widest_bytes != 4) return -1;
  const Ints strides = stage.ints();
  for (size_t i = 0; i < strides.size(); ++i) {
    const UOp& r = stage.src(1 + i);
    if (strides[i] == 1 && r.op() == Op::Range && r.src(0).is_const_int(lanes_)) return r.int_arg();
  }
  return -1;
}

// A stage whose fill has lanes along the range that steps through its buffer one by one, and as
// many of them side by side, so that a square of elements turns in registers.
void Chooser::fill_along(const Option& stage) {
  apply(stage);
  for (const UOp& u : topological(current_.roots)) {
    if (u.op() != Op::Stage || u.src(0).op() != Op::Load) continue;
    if (u.src(0).src(0).int_arg() != stage.amount) continue;
    const UOp& load = u.src(0);
    const ViewArg& view = load.view_arg();
    for (size_t i = 0; i < view.shape.size(); ++i) {
      const auto sum = affine(load.src(1 + i));
      if (view.strides[i] != 1 || !sum) continue;
      for (const UOp& r : u.src().subspan(1)) {
        if (sum->coefficient(r) != 1 || !r.src(0).is_const() || r.src(0).const_int() < lanes_)
          continue;
        const int64_t inner =
            r.src(0).const_int() == lanes_ ? r.int_arg() : tile(r.int_arg(), lanes_);
        const int64_t across = place_across(u);
        kind(OptionKind::Vec, inner);
        if (across >= 0 && across != inner) kind(OptionKind::Upcast, across);
        return;
      }
    }
  }
}

// The panel after the one that is read is fetched while passes are made over that: a weight is in
// memory, not in the cache, when its kernel comes.
void Chooser::prefetch_panel(const Panel& panel, int64_t place) {
  const int64_t param = panel.load->node.src(0).int_arg();
  bool is_inside = place < 0;
  for (const KernelRange& r : current_.ranges) {
    const int64_t at = r.range.int_arg();
    const bool is_loop = is_inside && r.kind == RangeKind::Loop && !r.reduced;
    is_inside |= at == place;
    if (!is_loop) continue;
    if (r.range.src(0).is_const() && r.range.src(0).const_int() > kPassesMany) return;
    const Option option{OptionKind::Prefetch, at, param, {}, 0, false};
    if (can_prefetch(current_, option)) apply(option);
    return;
  }
  // Without passes: rows beside it are too many streams for a processor to guess them all.
  const auto bytes = static_cast<double>(panel.load->node.dtype().bytes());
  const Option option{OptionKind::Prefetch, place, param, {}, 0, false};
  if (place >= 0 && panel.load->elements * bytes * 3 > static_cast<double>(target_.l3_bytes) &&
      can_prefetch(current_, option))
    apply(option);
}

// Whether blocks of panels that lie in place fall into the same sets of the second level of cache,
// where they would push out each other and all else: they are copied then.
bool Chooser::are_panels_colliding(const Panel& panel) const {
  if (!panel.steps || panel.columns == 0) return false;
  const int64_t way = target_.l2_bytes / kWays;
  const int64_t apart = panel.load->strides[panel.column_range] * table_.widest_bytes;
  return apart >= way && apart % way == 0;
}

// While a tile is multiplied with a panel, a part of the rows of the next tile is fetched, and the
// place that the tile's sums are added to: both are far where what is walked between two uses is
// larger than the cache, and neither is walked in an order that a processor guesses.
void Chooser::prefetch_tiles(size_t lane, size_t row, const Panel& panel, int64_t inside) {
  const auto l2 = static_cast<double>(target_.l2_bytes);
  for (const AccessInfo& a : table_.accesses) {
    const bool is_row =
        !a.store && a.inside_reduction && a.strides[lane] == 0 && a.strides[row] != 0;
    if (!is_row && !a.store) continue;
    const int64_t bytes = (a.store ? a.node.src(1) : a.node).dtype().bytes();
    // Rows are read again for the next block of columns, sums for the next block of steps.
    const double walked = a.store ? extent(row) * static_cast<double>(panel.columns) : a.elements;
    const Option option{OptionKind::Prefetch, inside, a.node.src(0).int_arg(), {}, 0, false};
    if (walked * static_cast<double>(bytes) >= l2 && can_prefetch(current_, option)) apply(option);
  }
}

void Chooser::staged_contraction(const ClosureInfo& reduction, size_t lane, size_t row,
                                 const RegisterTile& best, const Panel& panel) {
  const int64_t width = best.vectors * lanes_;
  const auto cut_range = static_cast<size_t>(panel.steps_range);
  // The reduced range that is cut: blocks outside, steps inside.
  const int64_t blocks = number(cut_range);
  cut_ = blocks;
  cut_range_ = panel.steps_range;
  if (panel.steps) cut_ = tile(blocks, panel.steps);
  // Columns: blocks, panels, vectors, lanes.
  const size_t column_range = panel.column_range;
  const int64_t column_blocks = number(column_range);
  const bool counts_panels = panel.in_place && column_range != lane;
  const int64_t block = counts_panels ? panel.columns / width : panel.columns;
  int64_t panels = column_blocks;
  if (panel.steps && block < most(column_range)) panels = tile(column_blocks, block);
  int64_t vectors = panel.in_place ? number(lane) : panels;
  if (!panel.in_place && (const_extent(lane) == 0 || const_extent(lane) > width))
    vectors = tile(panels, width);
  const int64_t lane_number = best.vectors > 1 ? tile(vectors, lanes_) : vectors;
  int64_t inner_row = number(row);
  if (best.rows != const_extent(row)) inner_row = tile(inner_row, best.rows);
  const int64_t outer_row = number(row);

  std::vector<int64_t> order;
  std::vector<int64_t> layout;
  const auto add = [&](std::vector<int64_t>& list, int64_t r) {
    if (has_range(r) && std::find(list.begin(), list.end(), r) == list.end()) list.push_back(r);
  };
  for (size_t i = 0; i < kernel_.ranges.size(); ++i)
    if (i != lane && i != column_range && !(reduction.own & bit(i)) && panel.load->strides[i] != 0)
      add(order, number(i));
  if (panels != column_blocks) add(order, column_blocks);
  if (panel.steps) add(order, blocks);
  const bool panels_inside = panel.steps != 0 ||
                             are_rows_first(reduction, lane, row, best, panel) ||
                             are_rows_shared(reduction, lane, row, best, panel);
  const int64_t outside = order.empty() ? -1 : order.back();
  if (!panels_inside && vectors != panels) add(order, panels);
  const int64_t place = order.empty() ? -1 : order.back();
  for (size_t i = 0; i < kernel_.ranges.size(); ++i)
    if (i != lane && i != row && !(reduction.own & bit(i)) && panel.load->strides[i] == 0 &&
        number(i) != word_)
      add(order, number(i));
  if (inner_row != outer_row) add(order, outer_row);
  if (panels_inside && vectors != panels) {
    add(order, panels);
    add(layout, panels);
  }
  // What lies in panels is walked as it lies.
  std::vector<size_t> reduced;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i)
    if (reduction.own & bit(i)) reduced.push_back(i);
  if (panel.in_place)
    std::stable_sort(reduced.begin(), reduced.end(), [&](size_t a, size_t b) {
      return panel.load->strides[a] > panel.load->strides[b];
    });
  for (size_t i : reduced) {
    const int64_t r = i == cut_range ? cut_ : number(i);
    add(order, r);
    add(layout, r);
  }
  add(order, inner_row);
  if (vectors != lane_number) add(order, vectors);
  if (vectors != lane_number) add(layout, vectors);
  add(order, lane_number);
  add(layout, lane_number);
  if (word_ >= 0) {
    add(order, word_);
    add(layout, word_);
    const bool is_other = scattered_operand_ && !(scattered_operand_ == panel.load->node.src(0));
    if (scattered_operand_ && !is_other) scattered_ = panel.in_place;
  }
  apply({OptionKind::Order, -1, 0, order, 0, false});
  const Option stage{OptionKind::Stage, place, panel.load->node.src(0).int_arg(), layout, 0, false};
  // Lanes that lie apart are read along the steps instead, and stored apart: scratch is near.
  const bool along_steps = panel.load->strides[lane] != 1;
  if (along_steps) fill_along(stage);
  kind(OptionKind::Vec, lane_number);
  if (best.rows > 1) kind(OptionKind::Upcast, inner_row);
  if (vectors != lane_number) kind(OptionKind::Upcast, vectors);
  const bool is_staged = along_steps || !panel.in_place || are_panels_colliding(panel);
  const UOp value = is_staged ? computed_lanes(lane_number, {inner_row, outer_row}) : UOp();
  if (value) {
    const std::vector<UOp> nodes = topological(current_.roots);
    const int64_t at = std::ranges::find(nodes, value) - nodes.begin();
    apply({OptionKind::Stage, place, at, layout, 0, true});
  } else if (is_staged && !along_steps) {
    apply(stage);
  }
  std::vector<int64_t> steps;
  for (size_t i : reduced) steps.push_back(i == cut_range ? cut_ : number(i));
  if (inner_row != outer_row) {
    // A copy that one panel alone would be multiplied with costs more than what it saves.
    if (panels_inside) {
      stage_rows(reduction, lane, row, outer_row, inner_row);
    } else if (counts_panels && extent(column_range) >= kPanelsOfCopy) {
      stage_all_rows(reduction, lane, row, outside, inner_row);
    }
    const std::vector<UOp> nodes = topological(current_.roots);
    const auto sum = std::ranges::find_if(nodes, [](const UOp& u) { return u.op() == Op::Reduce; });
    if (sum != nodes.end()) stage_factor(*sum, {vectors, lane_number}, steps, outer_row, inner_row);
  }
  unroll_steps(steps.back(), best, panel);
  if (panel.in_place && (panel.steps || !panels_inside)) prefetch_panel(panel, place);
  if (panel.steps && inner_row != outer_row)
    prefetch_tiles(lane, row, panel, vectors != panels ? panels : outer_row);
}

// Some steps of the innermost reduced loop side by side: what a turn of the loop costs beside its
// products (addresses, what is fetched ahead) is shared by more of them, and is not missed where
// another thread has its share of the core.  A panel that few tiles of rows pass over is waited
// for: what is fetched of the next one is better spread over all steps.
void Chooser::unroll_steps(int64_t range, const RegisterTile& tile, const Panel& panel) {
  if (panel.passes <= kReadAgainMin) return;
  const UOp size = current_.ranges[current_.find_range(range)].range.src(0);
  const bool is_cut = range == cut_ && cut_ != number(static_cast<size_t>(cut_range_));
  if (!size.is_const() ||
      (is_cut && const_extent(static_cast<size_t>(cut_range_)) % size.const_int() != 0))
    return;
  int64_t steps = 1;
  while (2 * steps * tile.rows * tile.vectors <= kProductsOfTurn &&
         size.const_int() % (2 * steps) == 0 && size.const_int() > 2 * steps)
    steps *= 2;
  if (steps == 1) return;
  const int64_t inner = this->tile(range, steps);
  kind(OptionKind::Unroll, inner);
}

}  // namespace tiny
