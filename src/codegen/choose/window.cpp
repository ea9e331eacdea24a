#include "codegen/choose/window.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <unordered_set>
#include <vector>

#include "ir/whole_rows.h"

namespace tiny {

namespace {

constexpr double kWindowMax = 9;        // steps of a window that are unrolled
constexpr double kTapsMax = 128;        // of the steps, those along one axis
constexpr int64_t kWindowRowsMax = 14;  // outputs of a tile
constexpr double kStreamsMax = 12;      // lines of a set of the first level of cache
constexpr double kGainMin = 1.1;
// Of sums whose tiles are turned: steps for each lane, and outputs of a tile.  On a Zen 5,
// 2026-11-30, tiles of 16 lanes and 9 to 49 steps take 0.8 of rows below each other, stored lane by
// lane; of 8 lanes 0.9 with 25 steps, 1.1 with 49, and pairs up to 1.2.
constexpr double kSquareSteps = 4;
constexpr int64_t kSquareRowsMin = 4;
constexpr double kFarLoad = 1.5;  // a load from the second level of cache, in those from the first

// One load of a window's sum as a tile of outputs along the window's axis sees it.
struct WindowLoad {
  double steps = 1;    // of the reduction, at which it has different elements
  bool moves = false;  // with the outputs
  double taps = 0;     // steps along the axis; 0: outputs share nothing
  double stride = 1;   // outputs are so many steps apart
  double places = 1;   // in a page, where steps along the axis begin
  double price = 1;    // of a load, in those of whole lines

  // Different elements that so many outputs read.
  double elements(double rows) const {
    if (!moves) return steps;
    return taps == 0 ? steps * rows : steps / taps * ((rows - 1) * stride + taps);
  }
};

struct WindowLoads {
  std::vector<WindowLoad> loads;
  size_t window = 0;           // the position of the window's range along the axis
  bool are_colliding = false;  // outputs read from the same sets of the cache
};

// How the loads of the reduction see a tile of outputs along the range at `along`; none where they
// share nothing, or where lanes read the same: a tile of columns is better then.
std::optional<WindowLoads> window_loads(const Editor& edit, const AccessTable& table,
                                        const ClosureInfo& reduction, size_t lane, size_t along) {
  std::unordered_set<const Node*> below;
  for (const UOp& u : topological({&reduction.node, 1})) below.insert(u.node());
  WindowLoads out;
  for (const AccessInfo& a : table.accesses) {
    if (a.store || !below.contains(a.node.node())) continue;
    const int64_t moves = a.strides[along];
    if (moves == kOpaqueStride || a.strides[lane] == kOpaqueStride) return std::nullopt;
    if (moves != 0 && a.strides[lane] == 0) return std::nullopt;
    WindowLoad load;
    load.moves = moves != 0;
    load.price = load_price(edit, a, reduction, lane);
    for (size_t k = 0; k < edit.now().ranges.size(); ++k) {
      if (!(reduction.own & bit(k)) || a.strides[k] == 0) continue;
      if (a.strides[k] == kOpaqueStride) return std::nullopt;
      load.steps *= table.extents[k];
      if (!load.moves || load.taps > 0 || moves % a.strides[k] != 0) continue;
      const auto stride = static_cast<double>(std::abs(moves / a.strides[k]));
      if (stride >= table.extents[k] || table.extents[k] > kTapsMax) continue;
      load.taps = table.extents[k];
      load.stride = stride;
      out.window = k;
    }
    const int64_t bytes = moves * a.node.dtype().bytes();
    out.are_colliding |= bytes != 0 && bytes % kPageBytes == 0;
    if (load.taps > 0) {
      const int64_t pitch = std::abs(moves) / static_cast<int64_t>(load.stride);
      const int64_t places = kPageBytes / std::gcd(pitch * a.node.dtype().bytes(), kPageBytes);
      load.places = static_cast<double>(places);
    }
    out.loads.push_back(load);
  }
  const auto shares = [](const WindowLoad& load) { return load.taps > 0; };
  if (std::ranges::none_of(out.loads, shares)) return std::nullopt;
  return out;
}

// Whether registers hold the sums of so many outputs, and what waits for them of steps beside.
bool has_room_for(const Editor& edit, int64_t rows, double beside) {
  const auto n = static_cast<double>(rows);
  return rows == 1 ||
         n + (n - 1) * beside + 4 <= static_cast<double>(edit.machine().vector_registers);
}

// The outputs of a tile that share the most loads and whose values stay in registers; 1 if that
// gains little.  What a tile reads is read again by the next one beside it, after so many bytes of
// each row.
int64_t window_rows(const Editor& edit, const WindowLoads& seen, double size, double steps,
                    double beside, double walked_bytes) {
  int64_t best = 1;
  double best_score = 0;
  for (int64_t rows = 1; rows <= kWindowRowsMax && static_cast<double>(rows) <= size; ++rows) {
    const auto n = static_cast<double>(rows);
    if (!has_room_for(edit, rows, beside)) break;
    // The last tile has what is left.
    const double tiles = std::floor(size / n);
    const double rest = size - tiles * n;
    double loaded = 0;
    double walked = n;
    double streams = n;
    for (const WindowLoad& load : seen.loads) {
      loaded += tiles * load.elements(n) + (rest > 0 ? load.elements(rest) : 0);
      if (load.moves) walked += load.elements(n);
      if (load.taps > 0) streams += load.elements(n) * load.taps / load.steps / load.places;
    }
    if (rows > 1 && seen.are_colliding && streams > kStreamsMax) break;
    if (walked * walked_bytes > static_cast<double>(edit.machine().l1_bytes)) loaded *= kFarLoad;
    const double score = 1 / (1 + loaded / (steps * size));
    if (rows == 1 || score > best_score * (best == 1 ? kGainMin : 1.0001))
      best = rows, best_score = score;
  }
  return best;
}

// Whether steps along a range lie side by side in what is stored, and a vector's lanes apart: they
// are turned in registers then, and stored as vectors instead of lane by lane.
bool is_stored_across(const Editor& edit, const AccessTable& table, size_t lane, size_t range) {
  const auto lanes = static_cast<double>(edit.lanes());
  if (table.extents[lane] < lanes || 2 * table.extents[range] < lanes) return false;
  return std::ranges::any_of(table.accesses, [&](const AccessInfo& a) {
    return a.store && a.strides[range] == 1 && a.strides[lane] != kOpaqueStride &&
           std::abs(a.strides[lane]) > 1;
  });
}

// The outputs of a tile that are turned: as many as fill a square, if registers hold them; 1 where
// these are too few, or sums so long that it matters little how they are stored.
int64_t rows_of_square(const Editor& edit, double steps, double beside) {
  if (steps > kSquareSteps * static_cast<double>(edit.lanes())) return 1;
  int64_t rows = edit.lanes();
  while (!has_room_for(edit, rows, beside)) rows /= 2;
  return rows < kSquareRowsMin ? 1 : rows;
}

}  // namespace

double load_price(const Editor& edit, const AccessInfo& load, const ClosureInfo& reduction,
                  size_t lane) {
  if (load.strides[lane] != 1) return 1;
  for (size_t k = 0; k < load.strides.size(); ++k)
    if ((reduction.own & bit(k)) && load.strides[k] % edit.lanes() != 0)
      return 1 + static_cast<double>(edit.machine().vector_bytes) / kLineBytes;
  return 1;
}

std::optional<WindowTile> window_tile(const Editor& edit, const UOp& reduce, int64_t lane,
                                      RangeSet among, double walked) {
  const AccessTable table = access_table(edit.now());
  const auto closure =
      std::ranges::find_if(table.closures, [&](const ClosureInfo& c) { return c.node == reduce; });
  if (closure == table.closures.end()) return std::nullopt;
  double steps = 1;
  for (size_t k = 0; k < edit.now().ranges.size(); ++k)
    if (closure->own & bit(k)) {
      if (!edit.now().ranges[k].range.src(0).is_const()) return std::nullopt;
      steps *= table.extents[k];
    }
  const bool unrolls_all = steps <= kWindowMax;
  std::optional<WindowTile> found;
  for (size_t i = 0; i < edit.now().ranges.size(); ++i) {
    const KernelRange& r = edit.now().ranges[i];
    if (!(closure->below & ~closure->own & among & bit(i))) continue;
    if (r.range.int_arg() == lane) continue;
    if (r.reduced || r.kind != RangeKind::Loop || !r.range.src(0).is_const()) continue;
    const size_t lanes = edit.now().find_range(lane);
    const bool is_square = is_stored_across(edit, table, lanes, i);
    if (found && !is_square) continue;
    const auto seen = window_loads(edit, table, *closure, lanes, i);
    if (!seen) continue;
    const double beside = unrolls_all ? steps / table.extents[seen->window] : 1;
    const double bytes = walked * static_cast<double>(table.widest_bytes);
    int64_t rows = is_square ? rows_of_square(edit, steps, beside) : 1;
    if (rows == 1 && !found)
      rows = window_rows(edit, *seen, table.extents[i], steps, beside, bytes);
    if (rows == 1) continue;
    double loads = 0;
    for (const WindowLoad& load : seen->loads)
      loads += load.price * load.elements(static_cast<double>(rows));
    found = {r.range.int_arg(), rows, edit.now().ranges[seen->window].range.int_arg(), unrolls_all,
             loads / (steps * static_cast<double>(rows))};
  }
  return found;
}

int64_t window_tile_range(Editor& edit, const WindowTile& window) {
  const UOp size = edit.now().ranges[edit.now().find_range(window.range)].range.src(0);
  return size.is_const_int(window.rows) ? window.range : edit.tile(window.range, window.rows);
}

bool stays_near_by_lanes(const Editor& edit, size_t lane) {
  double lines = 0;
  int64_t apart = kPageBytes;
  for (const AccessInfo& a : edit.table().accesses) {
    if (a.strides[lane] != 1) return false;
    const int64_t bytes = (a.store ? a.node.src(1) : a.node).dtype().bytes();
    double places = 1;
    double steps = 1;
    for (size_t i = 0; i < edit.kernel().ranges.size(); ++i) {
      if (i == lane || a.strides[i] == 0) continue;
      if (a.strides[i] == kOpaqueStride) return false;
      apart = std::gcd(apart, std::abs(a.strides[i]) * bytes);
      (edit.kernel().ranges[i].reduced ? steps : places) *= edit.extent(i);
    }
    lines += std::max(places, steps);
  }
  const int64_t sets = kPageBytes / std::max(apart, kLineBytes);
  const int64_t ways = edit.machine().l1_bytes / kPageBytes;
  return lines <= static_cast<double>(sets * ways);
}

void unroll_taps(Editor& edit, const WindowTile& window, const UOp& reduce) {
  for (const UOp& r : reduce.src().subspan(1))
    if (edit.is_loop(r.int_arg()) && (window.unrolls_all || r.int_arg() == window.taps))
      edit.kind(OptionKind::Unroll, r.int_arg());
}

}  // namespace tiny
