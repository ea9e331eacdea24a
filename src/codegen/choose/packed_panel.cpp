#include "codegen/choose/packed_panel.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "base/sort.h"
#include "codegen/choose/fills.h"
#include "codegen/choose/lanes.h"
#include "codegen/linearize/split_reduce.h"
#include "codegen/options/prefetch.h"
#include "ir/whole_rows.h"

namespace tiny {

namespace {

constexpr double kReadAgainMin = 4;     // before a panel that lies well enough is copied
constexpr double kPanelsOfCopy = 16;    // that all rows are multiplied with, before they are copied
constexpr double kPassesFew = 8;        // over a panel, by tiles of rows
constexpr int64_t kPassesMany = 32;     // so many that the first does not matter
constexpr int64_t kReducedWhole = 384;  // of a reduced range in a panel, at most all its steps
constexpr int64_t kProductsOfTurn = 64;  // in registers, of a loop over steps
constexpr int64_t kWays = 16;            // lines of a set of the second level of cache
constexpr int64_t kPartOfWays = 4;       // the share of them for rows that meet in few sets,
constexpr int64_t kStepsApartMin = 64;   // if so many steps of these are left
constexpr int64_t kRowsOfShare = 8;      // of a tile whose panels come from the second level
constexpr double kApartSeconds = 20e-6;  // that lie between the moments when cores begin a kernel
// Bytes from one load to the next below which a processor fetches the one after (Intel 64 and IA-32
// Architectures Optimization Reference Manual, "Data Prefetching to L1 Data Cache").  On an Emerald
// Rapids, 2026-11-30, rows of 512 floats are not: 512 x 256 x 256 takes 0.77 of the time with the
// panels inside, rows of 256 as long.
constexpr int64_t kStrideFetched = 2048;
constexpr int64_t kStepsOfPartMin = 16;  // of a panel that is cut to fit
constexpr double kReadsOfRows = 2;       // of each element, by tiles of rows far from each other
constexpr int64_t kPartsOfCore = 2;      // of the rows, so that none waits long for another

// About kReducedBlock steps: as many in each block if they can be, so that no block needs guards.
int64_t block_of_steps(int64_t steps) {
  for (int64_t away = 0; away <= kReducedBlock / 4; away += 2)
    for (const int64_t block : {kReducedBlock + away, kReducedBlock - away})
      if (steps % block == 0) return block;
  return kReducedBlock;
}

// About `most` of so many steps, and `least`, in parts of one size if they can be, so that none
// needs guards.  0: all.
int64_t part_of_steps(int64_t steps, int64_t most, int64_t least) {
  most = std::max(most, least);
  if (most >= steps) return 0;
  for (int64_t part = most; 2 * part > most; --part)
    if (steps % part == 0) return part;
  return most / least * least;
}

// At most `most` of `panels` in a block: as many in each, or nearly so.
int64_t block_of_panels(int64_t panels, int64_t most) {
  for (int64_t block = most; 3 * block > 2 * most; --block)
    if (panels % block == 0) return block;
  return ceil_div(panels, ceil_div(panels, most));
}

constexpr double kPartOfPanels = 0.75;    // of the second level of cache, for all of them
constexpr double kPartOfFirst = 0.5;      // of the first level, for all panels of one tile of rows
constexpr double kPartOfRows = 0.5;       // for rows that are copied
constexpr int64_t kStepsOfPanelMin = 32;  // so many are worth a copy of what lies well
constexpr double kPartOfMemory = 3;  // of the last cache: a panel of less is fetched soon enough

}  // namespace

PackedPanel::PackedPanel(Editor& edit, Words& words, const ClosureInfo& reduction,
                         const ContractionTile& chosen)
    : edit_(edit),
      words_(words),
      reduction_(reduction),
      lane_(chosen.lane),
      row_(chosen.row),
      space_(chosen.space),
      tile_(chosen.tile) {
}

// The one operand that has the lanes and is the same for all rows; null if there is none.
const AccessInfo* PackedPanel::operand() const {
  const AccessInfo* load = nullptr;
  for (const AccessInfo& a : edit_.table().accesses) {
    if (a.store || !a.inside_reduction || a.strides[lane_] == 0) continue;
    if (load || a.strides[row_] != 0 || !can_stage(edit_, a, lane_)) return nullptr;
    load = &a;
  }
  return load;
}

// The operand that has the lanes is copied to a panel if it is read again for many rows and lies in
// another order, or in rows longer than the panel's.
PackedPanel::Panel PackedPanel::choose_panel() const {
  const Panel none;
  const int64_t width = tile_.vectors * edit_.lanes();
  const AccessInfo* load = operand();
  if (!load) return none;
  size_t column_range = lane_;
  // Steps of a word that lie apart are put side by side, however few there are.
  const bool is_scattered =
      words_.scattered_operand && load->node.src(0) == words_.scattered_operand;
  const bool in_place = !is_scattered && edit_.const_extent(lane_) == width &&
                        lies_in_panels(edit_, *load, lane_, &column_range);
  const bool transposed = load->strides[lane_] != 1;
  if (transposed && reuse(edit_, *load, space_) < kStagedReuseMin) return none;
  double rows = edit_.extent(row_) / static_cast<double>(tile_.rows);
  int64_t steps = 1;
  size_t longest = lane_;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i) {
    const bool reduced = (reduction_.own & bit(i)) != 0;
    if (!reduced && i != row_ && load->strides[i] == 0) rows *= edit_.extent(i);
    if (!reduced) continue;
    if (edit_.const_extent(i) == 0 || load->strides[i] == 0) return none;
    steps *= edit_.const_extent(i);
    if (longest == lane_ || edit_.const_extent(i) > edit_.const_extent(longest)) longest = i;
  }
  if (longest == lane_) return none;
  longest = range_read_again().value_or(longest);
  const bool is_short = edit_.most(lane_) <= width || steps < kStepsOfPanelMin;
  const bool is_copied = transposed || is_scattered || (rows > kReadAgainMin && !is_short);
  if (!is_copied && !in_place && !is_walked_again(*load, rows)) return none;
  Panel panel{load, 0, static_cast<int64_t>(longest), 0, in_place, column_range, rows, is_copied};
  // Rows whose steps are far from each other are copied for all panels instead, if these are near.
  const bool is_whole = strided_rows() && holds_panels(panel);
  if (can_add_into_destination(edit_.kernel()) && (rows >= kReadAgainMin || !is_copied) &&
      !is_whole)
    cut_panel(panel, steps, rows);
  return is_copied || in_place || panel.steps ? panel : none;
}

// Whether columns that lie side by side, but not as panels, come from beyond the second level of
// cache for each of some tiles of rows: blocks of their steps stay there, and are read as they lie.
// So do the rows, of whose lines each tile reads a part (a gradient of weights).  Steps that are
// pages apart come faster in long runs, unless they are read often.
bool PackedPanel::is_walked_again(const AccessInfo& load, double passes) const {
  const AccessInfo* rows = rows_operand();
  const auto bytes = static_cast<double>(load.node.dtype().bytes());
  if (!rows || rows->strides[row_] != 1 || words_.range >= 0 || passes <= 1 ||
      load.elements * bytes <= static_cast<double>(edit_.machine().l2_bytes))
    return false;
  int64_t nearest = INT64_MAX, apart = INT64_MAX;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i) {
    if (!(reduction_.own & bit(i))) continue;
    nearest = std::min(nearest, std::abs(load.strides[i]));
    apart = std::min(apart, std::abs(rows->strides[i]));
  }
  const bool is_near = nearest < kPageBytes / load.node.dtype().bytes();
  return apart >= edit_.lanes() && (is_near || passes >= kReadAgainMin);
}

// Rows along a window whose steps are walked innermost, and not cut.
void PackedPanel::slide_rows() {
  const size_t taps = reduced_along(panel_.in_place ? panel_.load : nullptr).back();
  if (words_.range >= 0 || (panel_.steps && taps == static_cast<size_t>(panel_.steps_range)))
    return;
  sliding_ = sliding_rows(edit_, lane_, row_, taps, tile_);
  if (sliding_) tile_.rows = sliding_->rows;
}

// Cuts the panel's steps where not all stay near, or the rows' copies would be too long.
void PackedPanel::cut_panel(Panel& panel, int64_t steps, double rows) const {
  const int64_t width = tile_.vectors * edit_.lanes();
  const auto longest = static_cast<size_t>(panel.steps_range);
  const int64_t bytes = edit_.table().widest_bytes;
  const int64_t l2_bytes = edit_.machine().l2_bytes, cores = edit_.machine().cores;
  const int64_t others = steps / edit_.const_extent(longest);
  const int64_t room = l2_bytes / 4 * 3 / bytes;
  const int64_t beside = range_read_again() ? std::abs(rows_operand()->strides[longest])
                                            : 0;  // in rows, for each step
  // A panel in place costs no filling: a pass takes all steps of it, unless the rows must be laid
  // out again for every pass.
  const bool in_one_pass = panel.in_place && (rows < kPassesFew || !colliding_rows(nullptr));
  if (others == 1 && steps > kReducedWhole && !in_one_pass) {
    panel.steps = block_of_steps(steps);
  } else if (const int64_t each = others * width + beside;
             each * edit_.const_extent(longest) > room) {
    panel.steps =
        part_of_steps(edit_.const_extent(longest), room / each, ceil_div(kStepsOfPartMin, others));
  }
  const int64_t most = steps_apart(longest);
  if (panel.steps > most && most >= kStepsApartMin)
    panel.steps = part_of_steps(edit_.const_extent(longest), most, kStepsOfPartMin);
  if (!panel.steps) return;
  // All columns of a block are filled before the rows are walked; each worker has its own.
  const int64_t block = others * panel.steps;
  const bool are_counted = panel.in_place && panel.column_range != lane_;
  const int64_t columns = are_counted ? edit_.most(panel.column_range) * width : edit_.most(lane_);
  const int64_t fit = std::min(l2_bytes / 2 / bytes, room - beside * panel.steps) / block;
  const bool are_columns_shared = cores > 1 && !rows_of_cores(panel);
  const int64_t wanted = are_columns_shared ? std::min(fit, ceil_div(columns, 2 * cores)) : fit;
  panel.columns =
      block_of_panels(ceil_div(columns, width), std::max<int64_t>(ceil_div(wanted, width), 1)) *
      width;
}

// Where cores share the columns, each reads all rows, and the lines of its results are parts of
// rows that others write too: from another core's cache a line comes at a third of the last level's
// rate (Zen 5, 2026-11-30: 41 of 130 GB/s).  They share the rows instead where what all of them
// have is more than a copy of the panels for each part.
std::optional<PackedPanel::Part> PackedPanel::rows_of_cores(const Panel& panel) const {
  const AccessInfo* rows = rows_operand();
  const int64_t parts = kPartsOfCore * edit_.machine().cores;
  if (edit_.machine().cores < 2 || panel.in_place || !rows) return std::nullopt;
  double apart = rows->elements;
  for (const AccessInfo& a : edit_.table().accesses)
    if (!a.inside_reduction && a.strides[lane_] != 0 && a.strides[row_] != 0) apart += a.elements;
  const auto bytes = static_cast<double>(edit_.table().widest_bytes);
  const auto l1 = static_cast<double>(edit_.machine().l1_bytes);
  const auto l2 = static_cast<double>(edit_.machine().l2_bytes);
  // One panel, or all outside of rows that are far, are copied for each piece of the rows that
  // cores take: few parts matter where that is no small copy.
  const bool is_one = edit_.most(lane_) <= tile_.vectors * edit_.lanes();
  if (!panel.steps && (is_one || (apart_rows() && holds_panels(panel)))) {
    if (panel.load->elements * bytes <= kPartOfFirst * l1) return std::nullopt;
  } else if (apart * bytes <= l2 ||  // what fits in one core's cache gained nothing
             apart <= static_cast<double>(parts) * panel.load->elements) {
    return std::nullopt;
  }
  std::optional<Part> part;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i) {
    if (i == lane_ || (reduction_.own & bit(i)) || edit_.number(i) == words_.range) continue;
    if (panel.load->strides[i] != 0) return std::nullopt;  // each step has panels of its own
    if (part) continue;
    const int64_t tile = i == row_ ? tile_.rows : 1, extent = edit_.const_extent(i);
    // The last part is shorter: of as many parts as leave no core more than others, the most.
    int64_t least = extent;
    for (int64_t of_core = kPartsOfCore; of_core > 0; --of_core) {
      const int64_t count = of_core * edit_.machine().cores;
      const int64_t size = ceil_div(extent, count * tile) * tile;
      if (size * (count - 1) >= extent || size * of_core >= least) continue;
      least = size * of_core;
      part = {i, size};
    }
  }
  return part;
}

// The range of steps that are farthest apart in the rows (pictures of a batch), where each tile of
// rows reads lines of all steps that other tiles read again (a filter's gradient, for each of its
// taps).
std::optional<size_t> PackedPanel::range_read_again() const {
  const AccessInfo* rows = rows_operand();
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
int64_t PackedPanel::steps_apart(size_t range) const {
  const AccessInfo* rows = strided_rows();
  if (!rows) return INT64_MAX;
  const int64_t way = edit_.machine().l2_bytes / kWays;
  const int64_t stride = rows->strides[range] * rows->node.dtype().bytes();
  return way / std::gcd(stride, way) * (kWays / kPartOfWays);
}

// Whether a tile of rows is multiplied with all panels before the next: what is computed for it is
// computed once then, and the panels stay near enough.
bool PackedPanel::are_rows_first() const {
  if (!panel_.in_place || panel_.steps) return false;
  if (edit_.extent(row_) < kPassesFew * static_cast<double>(tile_.rows)) return false;
  const double bytes = panel_.load->elements * static_cast<double>(edit_.table().widest_bytes);
  if (bytes > 2 * static_cast<double>(edit_.machine().l2_bytes)) return false;
  std::vector<int64_t> steps;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
    if (reduction_.own & bit(i)) steps.push_back(edit_.number(i));
  const std::vector<int64_t> columns{edit_.number(lane_), edit_.number(panel_.column_range)};
  return computed_factor(reduction_.node, columns, steps, edit_.number(row_)).has_value();
}

// Where the panels are few, cores share them unevenly, and the last wait for each other.  Tiles of
// rows are more, and are multiplied with panel after panel as fast if all of these stay in the
// second level of cache; but then each core reads all panels, and nothing is done meanwhile.
bool PackedPanel::are_rows_shared() const {
  if (edit_.machine().cores < 2 || tile_.rows < kRowsOfShare || !panel_.in_place || panel_.steps ||
      panel_.column_range == lane_)
    return false;
  const double bytes = panel_.load->elements * static_cast<double>(edit_.table().widest_bytes);
  if (bytes > kPartOfPanels * static_cast<double>(edit_.machine().l2_bytes)) return false;
  double products = 1, outermost = std::ceil(edit_.extent(row_) / static_cast<double>(tile_.rows));
  bool is_first = true;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i) {
    products *= edit_.extent(i);
    if (i == lane_ || i == row_ || i == panel_.column_range || (reduction_.own & bit(i))) continue;
    if (panel_.load->strides[i] != 0) return false;
    if (std::exchange(is_first, false)) outermost = edit_.extent(i);
  }
  const double seconds = products / edit_.machine().fma_rate, cores = edit_.machine().cores;
  const auto idle = [&](double shares) {
    return seconds * (std::ceil(shares / cores) / shares - 1 / cores) +
           std::min(kApartSeconds, seconds / shares) / cores;
  };
  const double again = bytes * cores / edit_.machine().memory_bandwidth;
  return idle(edit_.extent(panel_.column_range)) > idle(outermost) + again;
}

// Rows that no cache holds (a batch of pictures) would come from memory for each panel: they come
// once where all panels stay in the second level of cache.
bool PackedPanel::are_rows_in_memory() const {
  if (!panel_.in_place || panel_.steps || tile_.rows < kRowsOfShare) return false;
  const auto bytes = static_cast<double>(edit_.table().widest_bytes);
  if (panel_.load->elements * bytes > kPartOfPanels * static_cast<double>(edit_.machine().l2_bytes))
    return false;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
    if (i != lane_ && i != panel_.column_range && !(reduction_.own & bit(i)) &&
        panel_.load->strides[i] != 0)
      return false;  // each has panels of its own
  return std::ranges::any_of(edit_.table().accesses, [&](const AccessInfo& a) {
    return !a.store && a.inside_reduction && a.strides[lane_] == 0 && a.strides[row_] != 0 &&
           a.strides[panel_.column_range] == 0 &&
           a.elements * bytes > static_cast<double>(edit_.machine().l3_bytes);
  });
}

// A result that no near cache holds is stored line after line where a tile of rows is multiplied
// with all panels in turn, and not again and again in short pieces; panels that the first level of
// cache holds cost nothing meanwhile.
bool PackedPanel::is_result_streamed() const {
  if (!panel_.in_place || panel_.steps || panel_.column_range == lane_) return false;
  const auto bytes = static_cast<double>(edit_.table().widest_bytes);
  if (panel_.load->elements * bytes > kPartOfFirst * static_cast<double>(edit_.machine().l1_bytes))
    return false;
  return std::ranges::any_of(edit_.table().accesses, [&](const AccessInfo& a) {
    return a.store && a.elements * bytes > static_cast<double>(edit_.machine().l2_bytes);
  });
}

// The operand that is broadcast, if its rows fall on each other in the cache; `along` is the range
// whose steps lie side by side in them.
const AccessInfo* PackedPanel::colliding_rows(size_t* along) const {
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

// Such rows are copied for each tile.
void PackedPanel::stage_rows() {
  size_t along = 0;
  const AccessInfo* rows = colliding_rows(&along);
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
  const AccessInfo* rows = colliding_rows(&along);
  if (!rows) return;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
    if (i != row_ && i != along && edit_.number(i) != words_.range && rows->strides[i] != 0) return;
  const int64_t bytes = rows->node.dtype().bytes();
  if (rows->elements * static_cast<double>(bytes) >
      static_cast<double>(edit_.machine().l2_bytes) * kPartOfRows)
    return;
  // A line after all rows of a place in their tiles.
  std::vector<int64_t> layout{cuts_.inner_row, edit_.number(row_), edit_.number(along)};
  if (words_.range >= 0) layout.push_back(words_.range);
  const int64_t param = rows->node.src(0).int_arg();
  fill_with_lanes(edit_, edit_.new_stage({OptionKind::Stage, nest_.outside, param, layout,
                                          kLineBytes / bytes, false}));
}

// Rows of which a step reads elements apart (a convolution's strides), and all steps together no
// more than half of their lines' elements: each step's lines are far from the last's.
const AccessInfo* PackedPanel::scattered_rows() const {
  const AccessInfo* rows = rows_operand();
  if (!rows || words_.range >= 0) return nullptr;
  const int64_t apart = std::abs(rows->strides[row_]);
  if (apart < 2 || apart * rows->node.dtype().bytes() >= kLineBytes) return nullptr;
  double between = 1;  // that are read of the elements from one row to the next
  for (size_t i = 0; i < rows->strides.size(); ++i) {
    if (rows->strides[i] == kOpaqueStride) return nullptr;
    const bool is_near = rows->strides[i] != 0 && std::abs(rows->strides[i]) <= apart;
    if ((reduction_.own & bit(i)) && is_near) between *= edit_.extent(i);
  }
  return 2 * between <= static_cast<double>(apart) ? rows : nullptr;
}

// Rows that lie side by side while each step is far from the last (a gradient of weights sums over
// rows of both operands), beyond the first level of cache: no processor fetches such ahead.
const AccessInfo* PackedPanel::apart_rows() const {
  const AccessInfo* rows = rows_operand();
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
const AccessInfo* PackedPanel::strided_rows() const {
  const AccessInfo* rows = apart_rows();
  const auto l2 = static_cast<double>(edit_.machine().l2_bytes);
  const bool is_held =
      rows && rows->elements * static_cast<double>(rows->node.dtype().bytes()) <= l2;
  return is_held ? nullptr : rows;
}

// A tile of rows that are far meets all panels, if the second level of cache holds these: what is
// read again from there is the panels, which a processor fetches ahead.
bool PackedPanel::are_rows_far() const {
  if (panel_.steps || cuts_.inner_row == cuts_.outer_row) return false;
  const bool are_scattered = panel_.in_place && counts_panels() && scattered_rows();
  return (are_scattered || apart_rows()) && holds_panels(panel_);
}

// Whether the second level of cache holds all panels that the same rows meet.
bool PackedPanel::holds_panels(const Panel& panel) const {
  double bytes = panel.load->elements * static_cast<double>(edit_.table().widest_bytes);
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
    if (i != lane_ && i != panel.column_range && !(reduction_.own & bit(i)) &&
        panel.load->strides[i] != 0)
      bytes /= edit_.extent(i);  // each has panels of its own
  return bytes <= kPartOfCache * static_cast<double>(edit_.machine().l2_bytes);
}

// They are laid out side by side for many panels: each tile of them or, where the panels are
// outside, all at once, which each panel reads from the last level at worst; not where each of the
// pieces that cores share would do so again.
void PackedPanel::stage_far_rows() {
  const AccessInfo* strided = strided_rows();
  const AccessInfo* rows = strided ? strided : scattered_rows();
  if (!rows || !can_stage(edit_, *rows, row_) ||
      (!nest_.has_panels_inside && edit_.machine().cores > 1))
    return;
  const std::vector<KernelRange>& ranges = edit_.kernel().ranges;
  const int64_t columns = counts_panels() ? 1 : tile_.vectors * edit_.lanes();  // of a panel
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
    if (i != row_ && !(reduction_.own & bit(i))) layout.push_back(edit_.number(i));
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
  const AccessInfo* rows = rows_operand();
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
        !a.store && a.inside_reduction && a.strides[lane_] == 0 && a.strides[row_] != 0;
    if (!is_row && !a.store) continue;
    const int64_t bytes = (a.store ? a.node.src(1) : a.node).dtype().bytes();
    // Rows are read again for the next block of columns, sums for the next block of steps.
    const double walked =
        a.store ? edit_.extent(row_) * static_cast<double>(panel_.columns) : a.elements;
    const Option option{OptionKind::Prefetch, inside, a.node.src(0).int_arg(), {}, 0, false};
    if (walked * static_cast<double>(bytes) >= l2 && can_prefetch(edit_.now(), option))
      edit_.apply(option);
  }
}

// The reduced range is cut: blocks outside, steps inside; columns into blocks, panels, vectors and
// lanes.
void PackedPanel::cut_ranges() {
  const int64_t width = tile_.vectors * edit_.lanes();
  const size_t column_range = panel_.column_range;
  cuts_.blocks = edit_.number(static_cast<size_t>(panel_.steps_range));
  cuts_.steps = panel_.steps ? edit_.tile(cuts_.blocks, panel_.steps) : cuts_.blocks;
  cuts_.column_blocks = edit_.number(column_range);
  const int64_t block = counts_panels() ? panel_.columns / width : panel_.columns;
  const bool has_blocks = panel_.steps && block < edit_.most(column_range);
  cuts_.panels = has_blocks ? edit_.tile(cuts_.column_blocks, block) : cuts_.column_blocks;
  cuts_.vectors = panel_.in_place ? edit_.number(lane_) : cuts_.panels;
  if (!panel_.in_place && (edit_.const_extent(lane_) == 0 || edit_.const_extent(lane_) > width))
    cuts_.vectors = edit_.tile(cuts_.panels, width);
  cuts_.lane = tile_.vectors > 1 ? edit_.tile(cuts_.vectors, edit_.lanes()) : cuts_.vectors;
  if (const std::optional<Part> part = rows_of_cores(panel_)) {
    cuts_.parts = edit_.number(part->range);
    cuts_.in_part = edit_.tile(cuts_.parts, part->size);
  }
  const bool are_parts_rows = cuts_.parts == edit_.number(row_);
  cuts_.outer_row = are_parts_rows ? cuts_.in_part : edit_.number(row_);
  const bool is_whole = tile_.rows == edit_.const_extent(row_);
  cuts_.inner_row = is_whole ? cuts_.outer_row : edit_.tile(cuts_.outer_row, tile_.rows);
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
  return reduced_along(sliding_ ? nullptr : rows_operand());
}

// Loops over what the panel is one for, its blocks, the panels; then tiles of rows; then the steps.
void PackedPanel::order_loops() {
  const auto add = [&](int64_t r) {
    if (edit_.has_range(r) && std::ranges::count(nest_.order, r) == 0) nest_.order.push_back(r);
  };
  const auto add_free = [&](bool has_panel) {
    for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i) {
      const bool is_own = i == lane_ || (has_panel ? i == panel_.column_range : i == row_);
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
  nest_.has_panels_inside = panel_.steps != 0 || are_rows_first() || are_rows_shared() ||
                            are_rows_in_memory() || is_result_streamed() || are_rows_far();
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
  const bool along_steps = panel_.load->strides[lane_] != 1;
  if (along_steps) fill_along(edit_, stage);
  edit_.kind(OptionKind::Vec, cuts_.lane);
  if (tile_.rows > 1) edit_.kind(OptionKind::Upcast, cuts_.inner_row);
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
  if (!panel_.steps && (scattered_rows() || strided_rows())) {
    stage_far_rows();
  } else if (nest_.has_panels_inside) {
    stage_rows();
  } else if (counts_panels() && edit_.extent(panel_.column_range) >= kPanelsOfCopy) {
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
  panel_ = choose_panel();
  if (!panel_.load) return false;
  slide_rows();
  cut_ranges();
  order_loops();
  fill_panel();
  copy_rows();
  unroll_steps();
  if (panel_.in_place && (panel_.steps || !nest_.has_panels_inside)) prefetch_panel();
  if (panel_.in_place && !nest_.has_panels_inside) prefetch_rows();
  if (panel_.steps && cuts_.inner_row != cuts_.outer_row)
    prefetch_tiles(cuts_.vectors != cuts_.panels ? cuts_.panels : cuts_.outer_row);
  if (!panel_.steps) prefetch_next_rows(edit_, lane_, row_, cuts_.outer_row);
  prefetch_epilogue(edit_, lane_, row_, panel_.steps == 0);
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
  if (are_loads_shared(edit_, lane_, row_, reduced_ranges().back())) return;
  if (panel_.passes <= kReadAgainMin) return;
  const UOp size = edit_.now().ranges[edit_.now().find_range(range)].range.src(0);
  const bool is_cut = range == cuts_.steps && cuts_.steps != cuts_.blocks;
  if (!size.is_const() ||
      (is_cut &&
       edit_.const_extent(static_cast<size_t>(panel_.steps_range)) % size.const_int() != 0))
    return;
  int64_t steps = 1;
  while (2 * steps * tile_.rows * tile_.vectors <= kProductsOfTurn &&
         size.const_int() % (2 * steps) == 0 && size.const_int() > 2 * steps)
    steps *= 2;
  if (steps == 1) return;
  edit_.kind(OptionKind::Unroll, edit_.tile(range, steps));
}

}  // namespace tiny
