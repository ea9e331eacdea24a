// Windows that move over their input with the output, channel by channel (a depthwise convolution,
// a pool): outputs next to each other along a window's axis share what they load, so that a tile
// of them is computed at once, the window's steps side by side.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <unordered_set>

#include "codegen/choose/chooser.h"

namespace tiny {

namespace {

constexpr double kWindowMax = 9;        // steps of a window that are unrolled
constexpr double kTapsMax = 128;        // of the steps, those along one axis
constexpr int64_t kWindowRowsMax = 14;  // outputs of a tile
constexpr double kStreamsMax = 12;      // lines of a set of the first level of cache
constexpr int64_t kTapsBeside = 12;     // registers for what is not a tile's values
constexpr double kGainMin = 1.1;
constexpr double kFarLoad = 1.5;  // a load from the second level of cache, in those from the first

}  // namespace

// Of a load with lanes along `lane`, in those of whole lines: vectors that a step of the reduction
// moves by less than a vector begin anywhere, and cross a line the more often the longer they are.
double Chooser::load_price(const AccessInfo& load, const ClosureInfo& reduction,
                           size_t lane) const {
  if (load.strides[lane] != 1) return 1;
  for (size_t k = 0; k < load.strides.size(); ++k)
    if ((reduction.own & bit(k)) && load.strides[k] % lanes_ != 0)
      return 1 + static_cast<double>(target_.vector_bytes) / kLineBytes;
  return 1;
}

// How the loads of the reduction see a tile of outputs along the range at `along`; none where they
// share nothing, or where lanes read the same: a tile of columns is better then.
std::optional<Chooser::WindowLoads> Chooser::window_loads(const AccessTable& table,
                                                          const ClosureInfo& reduction, size_t lane,
                                                          size_t along) const {
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
    load.price = load_price(a, reduction, lane);
    for (size_t k = 0; k < current_.ranges.size(); ++k) {
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

// The outputs of a tile that share the most loads and whose values stay in registers; 1 if that
// gains little.  What a tile reads is read again by the next one beside it, after so many bytes of
// each row.
int64_t Chooser::window_rows(const WindowLoads& seen, double size, double steps, double beside,
                             double walked_bytes) const {
  int64_t best = 1;
  double best_score = 0;
  for (int64_t rows = 1; rows <= kWindowRowsMax && static_cast<double>(rows) <= size; ++rows) {
    const auto n = static_cast<double>(rows);
    if (rows > 1 && n + (n - 1) * beside + 4 > static_cast<double>(target_.vector_registers)) break;
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
    if (walked * walked_bytes > static_cast<double>(target_.l1_bytes)) loaded *= kFarLoad;
    const double score = 1 / (1 + loaded / (steps * size));
    if (rows == 1 || score > best_score * (best == 1 ? kGainMin : 1.0001))
      best = rows, best_score = score;
  }
  return best;
}

// `walked`: elements along the lanes before the next tile.  Along the outermost of the ranges that
// has one: what neighbours along it read again has left the
// first level of cache when they come later.
std::optional<Chooser::WindowTile> Chooser::window_tile(const UOp& reduce, int64_t lane,
                                                        RangeSet among, double walked) const {
  const AccessTable table = access_table(current_);
  const auto closure =
      std::ranges::find_if(table.closures, [&](const ClosureInfo& c) { return c.node == reduce; });
  if (closure == table.closures.end()) return std::nullopt;
  double steps = 1;
  for (size_t k = 0; k < current_.ranges.size(); ++k)
    if (closure->own & bit(k)) {
      if (!current_.ranges[k].range.src(0).is_const()) return std::nullopt;
      steps *= table.extents[k];
    }
  const bool unrolls_all = steps <= kWindowMax;
  for (size_t i = 0; i < current_.ranges.size(); ++i) {
    const KernelRange& r = current_.ranges[i];
    if (!(closure->below & ~closure->own & among & bit(i))) continue;
    if (r.range.int_arg() == lane) continue;
    if (r.reduced || r.kind != RangeKind::Loop || !r.range.src(0).is_const()) continue;
    const auto seen = window_loads(table, *closure, current_.find_range(lane), i);
    if (!seen) continue;
    const double beside = unrolls_all ? steps / table.extents[seen->window] : 1;
    const double bytes = walked * static_cast<double>(table.widest_bytes);
    const int64_t rows = window_rows(*seen, table.extents[i], steps, beside, bytes);
    if (rows == 1) continue;
    double loads = 0;
    for (const WindowLoad& load : seen->loads)
      loads += load.price * load.elements(static_cast<double>(rows));
    return WindowTile{r.range.int_arg(), rows, current_.ranges[seen->window].range.int_arg(),
                      unrolls_all, loads / (steps * static_cast<double>(rows))};
  }
  return std::nullopt;
}

// The number of the range that the tile's outputs are.
int64_t Chooser::window_tile_range(const WindowTile& window) {
  const UOp size = current_.ranges[current_.find_range(window.range)].range.src(0);
  return size.is_const_int(window.rows) ? window.range : tile(window.range, window.rows);
}

// Whether all that one vector of lanes is made of and stores stays in the first level, so that the
// windows of a small picture may be walked for one vector after the other.  Lanes that follow each
// other instead have loads wait for stores a page or so away, which they are taken for.
bool Chooser::stays_near_by_lanes(size_t lane) const {
  double lines = 0;
  int64_t apart = kPageBytes;
  for (const AccessInfo& a : table_.accesses) {
    if (a.strides[lane] != 1) return false;
    const int64_t bytes = (a.store ? a.node.src(1) : a.node).dtype().bytes();
    double places = 1;
    double steps = 1;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
      if (i == lane || a.strides[i] == 0) continue;
      if (a.strides[i] == kOpaqueStride) return false;
      apart = std::gcd(apart, std::abs(a.strides[i]) * bytes);
      (kernel_.ranges[i].reduced ? steps : places) *= extent(i);
    }
    lines += std::max(places, steps);
  }
  const int64_t sets = kPageBytes / std::max(apart, kLineBytes);
  const int64_t ways = target_.l1_bytes / kPageBytes;
  return lines <= static_cast<double>(sets * ways);
}

void Chooser::unroll_taps(const WindowTile& window, const UOp& reduce) {
  for (const UOp& r : reduce.src().subspan(1))
    if (is_loop(r.int_arg()) && (window.unrolls_all || r.int_arg() == window.taps))
      kind(OptionKind::Unroll, r.int_arg());
}

// Outputs side by side, and the steps of the window that they share.
void Chooser::apply_window(const WindowTile& window, const UOp& reduce) {
  kind(OptionKind::Upcast, window_tile_range(window));
  unroll_taps(window, reduce);
}

// The same of a stage that holds such sums for a tile of rows.
bool Chooser::fill_window(const UOp& stage, const UOp& reduce) {
  if (stage.src().size() < 3) return false;
  const int64_t column = stage.src(stage.src().size() - 1).int_arg();
  const UOp& row = stage.src(stage.src().size() - 2);
  const auto window =
      window_tile(reduce, column, bit(current_.position(row)), static_cast<double>(lanes_));
  if (!window) return false;
  const Columns columns = cut_columns(column, 1);
  if (columns.lane < 0) return false;
  const int64_t inner = window_tile_range(*window);
  // Columns before other rows of the stage, whose windows lie on the same elements.
  std::vector<int64_t> order;
  if (inner != window->range) order.push_back(window->range);
  if (columns.tiles >= 0) order.push_back(columns.tiles);
  for (const UOp& r : stage.src().subspan(1, stage.src().size() - 3)) order.push_back(r.int_arg());
  for (const UOp& r : reduce.src().subspan(1))
    if (r.int_arg() != window->taps) order.push_back(r.int_arg());
  order.insert(order.end(), {window->taps, inner, columns.lane});
  apply({OptionKind::Order, -1, 0, order, 0, false});
  give_lanes(columns);
  kind(OptionKind::Upcast, inner);
  unroll_taps(*window, reduce);
  // Other rows too, if their values and a row of taps stay in registers.
  int64_t values = window->rows;
  for (const UOp& r : stage.src().subspan(1, stage.src().size() - 3)) {
    const KernelRange& other = current_.ranges[current_.find_range(r.int_arg())];
    const int64_t size = r.src(0).is_const() ? r.src(0).const_int() : 0;
    if (!window->unrolls_all || size < 2 || other.kind != RangeKind::Loop) continue;
    if (values * size + kTapsBeside > target_.vector_registers) continue;
    kind(OptionKind::Upcast, r.int_arg());
    values *= size;
  }
  return true;
}

}  // namespace tiny
