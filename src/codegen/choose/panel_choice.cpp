#include "codegen/choose/panel_choice.h"

#include <algorithm>
#include <cstdlib>

#include "base/checked.h"
#include "codegen/choose/fills.h"
#include "codegen/choose/lanes.h"
#include "codegen/linearize/split_reduce.h"
#include "ir/whole_rows.h"

namespace tiny {

namespace {

constexpr int64_t kReducedWhole = 384;    // of a reduced range in a panel, at most all its steps
constexpr int64_t kStepsApartMin = 64;    // of rows that meet in few sets: fewer are no block
constexpr int64_t kStepsOfPartMin = 16;   // of a panel that is cut to fit
constexpr int64_t kStepsOfPanelMin = 32;  // so many are worth a copy of what lies well
constexpr int64_t kPartsOfCore = 2;       // of the rows, so that none waits long for another

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

}  // namespace

// The one operand that has the lanes and is the same for all rows; null if there is none.
const AccessInfo* PanelChoice::panels_operand() const {
  const AccessInfo* load = nullptr;
  for (const AccessInfo& a : edit_.table().accesses) {
    if (a.store || !a.inside_reduction || a.strides[at_.lane] == 0) continue;
    if (load || a.strides[at_.row] != 0 || !can_stage(edit_, a, at_.lane)) return nullptr;
    load = &a;
  }
  return load;
}

// The operand that has the lanes is copied to a panel if it is read again for many rows and lies in
// another order, or in rows longer than the panel's.
Panel PanelChoice::choose() const {
  const Panel none;
  const int64_t width = at_.tile.vectors * edit_.lanes();
  const AccessInfo* load = panels_operand();
  if (!load) return none;
  size_t column_range = at_.lane;
  // Steps of a word that lie apart are put side by side, however few there are.
  const bool is_scattered =
      words_.scattered_operand && load->node.src(0) == words_.scattered_operand;
  const bool in_place = !is_scattered && edit_.const_extent(at_.lane) == width &&
                        lies_in_panels(edit_, *load, at_.lane, &column_range);
  const bool transposed = load->strides[at_.lane] != 1;
  if (transposed && reuse(edit_, *load, at_.space) < kStagedReuseMin) return none;
  double rows = edit_.extent(at_.row) / static_cast<double>(at_.tile.rows);
  int64_t steps = 1;
  size_t longest = at_.lane;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i) {
    const bool reduced = (reduction_.own & bit(i)) != 0;
    if (!reduced && i != at_.row && load->strides[i] == 0) rows *= edit_.extent(i);
    if (!reduced) continue;
    if (edit_.const_extent(i) == 0 || load->strides[i] == 0) return none;
    steps *= edit_.const_extent(i);
    if (longest == at_.lane || edit_.const_extent(i) > edit_.const_extent(longest)) longest = i;
  }
  if (longest == at_.lane) return none;
  longest = rows_.range_read_again().value_or(longest);
  const bool is_short = edit_.most(at_.lane) <= width || steps < kStepsOfPanelMin;
  const bool is_copied = transposed || is_scattered || (rows > kReadAgainMin && !is_short);
  if (!is_copied && !in_place && !is_walked_again(*load, rows)) return none;
  Panel panel{load, 0, static_cast<int64_t>(longest), 0, in_place, column_range, rows, is_copied};
  // Rows whose steps are far from each other are copied for all panels instead, if these are near.
  const bool is_whole = rows_.strided() && holds_panels(panel);
  if (can_add_into_destination(edit_.kernel()) && (rows >= kReadAgainMin || !is_copied) &&
      !is_whole)
    cut_panel(panel, steps, rows);
  return is_copied || in_place || panel.steps ? panel : none;
}

// Whether columns that lie side by side, but not as panels, come from beyond the second level of
// cache for each of some tiles of rows: blocks of their steps stay there, and are read as they lie.
// So do the rows, of whose lines each tile reads a part (a gradient of weights).  Steps that are
// pages apart come faster in long runs, unless they are read often.
bool PanelChoice::is_walked_again(const AccessInfo& load, double passes) const {
  const AccessInfo* rows = rows_.operand();
  const auto bytes = static_cast<double>(load.node.dtype().bytes());
  if (!rows || rows->strides[at_.row] != 1 || words_.range >= 0 || passes <= 1 ||
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

// Cuts the panel's steps where not all stay near, or the rows' copies would be too long.
void PanelChoice::cut_panel(Panel& panel, int64_t steps, double rows) const {
  const int64_t width = at_.tile.vectors * edit_.lanes();
  const auto longest = static_cast<size_t>(panel.steps_range);
  const int64_t bytes = edit_.table().widest_bytes;
  const int64_t l2_bytes = edit_.machine().l2_bytes, cores = edit_.machine().cores;
  const int64_t others = steps / edit_.const_extent(longest);
  const int64_t room = l2_bytes / 4 * 3 / bytes;
  const int64_t beside = rows_.range_read_again() ? std::abs(rows_.operand()->strides[longest])
                                                  : 0;  // in rows, for each step
  // A panel in place costs no filling: a pass takes all steps of it, unless the rows must be laid
  // out again for every pass.
  const bool in_one_pass = panel.in_place && (rows < kPassesFew || !rows_.colliding(nullptr));
  if (others == 1 && steps > kReducedWhole && !in_one_pass) {
    panel.steps = block_of_steps(steps);
  } else if (const int64_t each = others * width + beside;
             each * edit_.const_extent(longest) > room) {
    panel.steps =
        part_of_steps(edit_.const_extent(longest), room / each, ceil_div(kStepsOfPartMin, others));
  }
  const int64_t most = rows_.steps_apart(longest);
  if (panel.steps > most && most >= kStepsApartMin)
    panel.steps = part_of_steps(edit_.const_extent(longest), most, kStepsOfPartMin);
  if (!panel.steps) return;
  // All columns of a block are filled before the rows are walked; each worker has its own.
  const int64_t block = others * panel.steps;
  const bool are_counted = panel.in_place && panel.column_range != at_.lane;
  const int64_t columns =
      are_counted ? edit_.most(panel.column_range) * width : edit_.most(at_.lane);
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
std::optional<PanelPart> PanelChoice::rows_of_cores(const Panel& panel) const {
  const AccessInfo* rows = rows_.operand();
  const int64_t parts = kPartsOfCore * edit_.machine().cores;
  if (edit_.machine().cores < 2 || panel.in_place || !rows) return std::nullopt;
  double apart = rows->elements;
  for (const AccessInfo& a : edit_.table().accesses)
    if (!a.inside_reduction && a.strides[at_.lane] != 0 && a.strides[at_.row] != 0)
      apart += a.elements;
  const auto bytes = static_cast<double>(edit_.table().widest_bytes);
  const auto l1 = static_cast<double>(edit_.machine().l1_bytes);
  const auto l2 = static_cast<double>(edit_.machine().l2_bytes);
  // One panel, or all outside of rows that are far, are copied for each piece of the rows that
  // cores take: few parts matter where that is no small copy.
  const bool is_one = edit_.most(at_.lane) <= at_.tile.vectors * edit_.lanes();
  if (!panel.steps && (is_one || (rows_.apart() && holds_panels(panel)))) {
    if (panel.load->elements * bytes <= kPartOfFirst * l1) return std::nullopt;
  } else if (apart * bytes <= l2 ||  // what fits in one core's cache gained nothing
             apart <= static_cast<double>(parts) * panel.load->elements) {
    return std::nullopt;
  }
  std::optional<PanelPart> part;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i) {
    if (i == at_.lane || (reduction_.own & bit(i)) || edit_.number(i) == words_.range) continue;
    if (panel.load->strides[i] != 0) return std::nullopt;  // each step has panels of its own
    if (part) continue;
    const int64_t tile = i == at_.row ? at_.tile.rows : 1, extent = edit_.const_extent(i);
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

// Whether the second level of cache holds all panels that the same rows meet.
bool PanelChoice::holds_panels(const Panel& panel) const {
  double bytes = panel.load->elements * static_cast<double>(edit_.table().widest_bytes);
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
    if (i != at_.lane && i != panel.column_range && !(reduction_.own & bit(i)) &&
        panel.load->strides[i] != 0)
      bytes /= edit_.extent(i);  // each has panels of its own
  return bytes <= kPartOfCache * static_cast<double>(edit_.machine().l2_bytes);
}

}  // namespace tiny
