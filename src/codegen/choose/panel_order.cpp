#include "codegen/choose/panel_order.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "codegen/choose/fills.h"

namespace tiny {

namespace {

constexpr int64_t kRowsOfShare = 8;      // of a tile whose panels come from the second level
constexpr double kApartSeconds = 20e-6;  // that lie between the moments when cores begin a kernel
constexpr double kPartOfPanels = 0.75;   // of the second level of cache, for all of them

}  // namespace

// Whether a tile of rows is multiplied with all panels before the next: what is computed for it is
// computed once then, and the panels stay near enough.
bool PanelOrder::are_rows_first() const {
  if (!panel_.in_place || panel_.steps) return false;
  if (edit_.extent(at_.row) < kPassesFew * static_cast<double>(at_.tile.rows)) return false;
  const double bytes = panel_.load->elements * static_cast<double>(edit_.table().widest_bytes);
  if (bytes > 2 * static_cast<double>(edit_.machine().l2_bytes)) return false;
  std::vector<int64_t> steps;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
    if (reduction_.own & bit(i)) steps.push_back(edit_.number(i));
  const std::vector<int64_t> columns{edit_.number(at_.lane), edit_.number(panel_.column_range)};
  return computed_factor(reduction_.node, columns, steps, edit_.number(at_.row)).has_value();
}

// Where the panels are few, cores share them unevenly, and the last wait for each other.  Tiles of
// rows are more, and are multiplied with panel after panel as fast if all of these stay in the
// second level of cache; but then each core reads all panels, and nothing is done meanwhile.
bool PanelOrder::are_rows_shared() const {
  if (edit_.machine().cores < 2 || at_.tile.rows < kRowsOfShare || !panel_.in_place ||
      panel_.steps || panel_.column_range == at_.lane)
    return false;
  const double bytes = panel_.load->elements * static_cast<double>(edit_.table().widest_bytes);
  if (bytes > kPartOfPanels * static_cast<double>(edit_.machine().l2_bytes)) return false;
  double products = 1,
         outermost = std::ceil(edit_.extent(at_.row) / static_cast<double>(at_.tile.rows));
  bool is_first = true;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i) {
    products *= edit_.extent(i);
    if (i == at_.lane || i == at_.row || i == panel_.column_range || (reduction_.own & bit(i)))
      continue;
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
bool PanelOrder::are_rows_in_memory() const {
  if (!panel_.in_place || panel_.steps || at_.tile.rows < kRowsOfShare) return false;
  const auto bytes = static_cast<double>(edit_.table().widest_bytes);
  if (panel_.load->elements * bytes > kPartOfPanels * static_cast<double>(edit_.machine().l2_bytes))
    return false;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
    if (i != at_.lane && i != panel_.column_range && !(reduction_.own & bit(i)) &&
        panel_.load->strides[i] != 0)
      return false;  // each has panels of its own
  return std::ranges::any_of(edit_.table().accesses, [&](const AccessInfo& a) {
    return !a.store && a.inside_reduction && a.strides[at_.lane] == 0 && a.strides[at_.row] != 0 &&
           a.strides[panel_.column_range] == 0 &&
           a.elements * bytes > static_cast<double>(edit_.machine().l3_bytes);
  });
}

// A result that no near cache holds is stored line after line where a tile of rows is multiplied
// with all panels in turn, and not again and again in short pieces; panels that the first level of
// cache holds cost nothing meanwhile.
bool PanelOrder::is_result_streamed() const {
  if (!panel_.in_place || panel_.steps || panel_.column_range == at_.lane) return false;
  const auto bytes = static_cast<double>(edit_.table().widest_bytes);
  if (panel_.load->elements * bytes > kPartOfFirst * static_cast<double>(edit_.machine().l1_bytes))
    return false;
  return std::ranges::any_of(edit_.table().accesses, [&](const AccessInfo& a) {
    return a.store && a.elements * bytes > static_cast<double>(edit_.machine().l2_bytes);
  });
}

// A tile of rows that are far meets all panels, if the second level of cache holds these: what is
// read again from there is the panels, which a processor fetches ahead.
bool PanelOrder::are_rows_far() const {
  if (panel_.steps || at_.tile.rows == edit_.const_extent(at_.row)) return false;
  const bool are_scattered = panel_.are_counted(at_.lane) && rows_.scattered();
  return (are_scattered || rows_.apart()) && choice_.holds_panels(panel_);
}

}  // namespace tiny
