#include "codegen/heuristic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "base/checked.h"
#include "base/error.h"
#include "codegen/access_table.h"
#include "ir/bounds.h"

namespace tiny {

namespace {

constexpr uint64_t bit(size_t i) {
  return uint64_t{1} << i;
}

class Chooser {
 public:
  Chooser(const Kernel& kernel, const Target& target)
      : kernel_(kernel), target_(target), table_(access_table(kernel)), current_(kernel) {}

  std::vector<Option> run() {
    lanes_ = target_.vector_bytes / table_.widest_bytes;
    if (lanes_ < 2 || !vectorises()) lanes_ = 1;
    std::vector<const ClosureInfo*> reductions;
    for (const ClosureInfo& c : table_.closures)
      if (!c.store) reductions.push_back(&c);
    if (reductions.size() == 1)
      contraction(*reductions.front());
    else if (reductions.empty())
      elementwise();
    else
      rows();
    thread();
    return std::move(options_);
  }

 private:
  bool vectorises() const {
    for (const UOp& u : topological(kernel_.roots)) {
      if (u.op() == Op::Check) return false;
      if (!has(u.op(), kElementwise) || u.dtype() == kInt64 || u.src().empty()) continue;
      if (u.op() == Op::Less || u.op() == Op::LessEqual || u.op() == Op::Equal ||
          u.op() == Op::NotEqual) {
        if (u.src(0).dtype() == kInt64) continue;
      }
      if (!target_.vectorises(u.op(), u.src(u.src().size() - 1).dtype())) return false;
      if (u.op() == Op::Cast && !target_.vectorises(u.op(), u.dtype())) return false;
    }
    return true;
  }

  double extent(size_t range) const { return table_.extents[range]; }
  int64_t const_extent(size_t range) const {
    const UOp size = kernel_.ranges[range].range.src(0);
    return size.is_const() ? size.const_int() : 0;
  }
  // The size, a symbolic one at its greatest.
  int64_t most(size_t range) const { return static_cast<int64_t>(extent(range)); }
  int64_t number(size_t range) const { return kernel_.ranges[range].range.int_arg(); }

  // What lanes along `range` cost, over the accesses that a closure's value uses.
  double lane_cost(size_t range, bool reduced) const {
    double cost = table_.opaque & bit(range) ? 1e9 : 0;
    for (const AccessInfo& a : table_.accesses) {
      const int64_t stride = a.strides[range];
      if (stride == 0) {
        if (a.store && !reduced) cost += 1;
        continue;
      }
      // Lanes a few elements apart share cache lines; further apart each needs its own.
      cost += stride == 1 ? 1 : stride == kOpaqueStride ? 64 : std::abs(stride) <= 4 ? 6 : 16;
    }
    const double n = extent(range);
    const double vectors = std::ceil(n / static_cast<double>(lanes_));
    cost *= vectors * static_cast<double>(lanes_) / n;
    return reduced ? cost + 1 : cost;
  }

  // Applies an option now, so that later ones can name what it makes.
  void apply(Option option) {
    current_ = apply_option(current_, option);
    options_.push_back(std::move(option));
  }
  int64_t tile(int64_t range, int64_t size) {
    const int64_t made = current_.next_range_number();
    apply({OptionKind::Tile, range, size, {}, 0});
    return made;
  }
  void kind(OptionKind what, int64_t range) { apply({what, range, 0, {}, 0}); }

  // Lanes over a range, `vectors` of them in registers; what is left of the range stays a loop.
  void vector_tile(size_t range, int64_t vectors) {
    int64_t lanes = lanes_;
    const int64_t n = const_extent(range);
    if (n > 0 && n < lanes) lanes = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
    if (lanes < 2) return;
    if (n > 0) vectors = std::clamp<int64_t>(vectors, 1, ceil_div(n, lanes));
    int64_t inner = number(range);
    if (n != lanes || kernel_.ranges[range].range.src(0).const_int() != lanes)
      inner = tile(inner, lanes * vectors);
    if (vectors > 1) {
      const int64_t lane = tile(inner, lanes);
      kind(OptionKind::Upcast, inner);
      inner = lane;
    }
    kind(OptionKind::Vec, inner);
  }

  void elementwise() {
    if (lanes_ < 2) return;
    const size_t none = kernel_.ranges.size();
    size_t best = none;
    double best_cost = 0;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
      if (const_extent(i) == 1) continue;
      const double cost = lane_cost(i, false);
      if (best == none || cost <= best_cost) best = i, best_cost = cost;
    }
    if (best == none || best_cost > 40) return;
    vector_tile(best, 4);
  }

  struct RegisterTile {
    int64_t rows = 1;
    int64_t vectors = 1;
    double score = 0;
  };

  // Rows and vectors that keep the most accumulators busy for the fewest loads.
  RegisterTile register_tile(double m, double n) const {
    RegisterTile best;
    const auto lanes = static_cast<double>(lanes_);
    for (int64_t vectors = 1; vectors <= 4; ++vectors) {
      if (vectors > 1 && static_cast<double>(vectors - 1) * lanes >= n) break;
      for (int64_t rows = 1; rows * vectors + vectors + 1 <= target_.vector_registers - 1; ++rows) {
        if (static_cast<double>(rows) > m) break;
        const auto r = static_cast<double>(rows);
        const auto v = static_cast<double>(vectors);
        const double use_m = m / (std::ceil(m / r) * r);
        const double use_n = n / (std::ceil(n / (v * lanes)) * v * lanes);
        const double busy = std::min(1.0, r * v / 12);
        const double score = use_m * use_n * busy / (1 + (r + v) / (r * v) / 4);
        if (score > best.score * 1.0001) best = {rows, vectors, score};
      }
    }
    return best;
  }

  // The output range whose steps reuse the vectors that are loaded along `lane_range`.
  size_t row_range(size_t lane_range, uint64_t outputs) const {
    const size_t none = kernel_.ranges.size();
    size_t best = none;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
      if (!(outputs & bit(i)) || i == lane_range || most(i) < 2) continue;
      bool reuse = false;
      for (const AccessInfo& a : table_.accesses)
        if (!a.store && a.strides[lane_range] != 0 && a.strides[i] == 0) reuse = true;
      if (reuse && (best == none || extent(i) > extent(best))) best = i;
    }
    return best;
  }

  void contraction(const ClosureInfo& reduction) {
    if (lanes_ < 2) return;
    uint64_t outputs = 0;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if (!kernel_.ranges[i].reduced) outputs |= bit(i);
    const size_t none = kernel_.ranges.size();
    size_t lane = none;
    double lane_price = 0;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
      const bool reduced = (reduction.own & bit(i)) != 0;
      if (!(outputs & bit(i)) && !reduced) continue;
      const double price = lane_cost(i, reduced);
      if (lane == none || price < lane_price) lane = i, lane_price = price;
    }
    if (lane == none || lane_price > 60) return;
    if (reduction.own & bit(lane)) return reduced_lanes(lane, outputs);
    const size_t row = row_range(lane, outputs);
    const double m = row == none ? 1 : extent(row);
    RegisterTile best = register_tile(m, extent(lane));
    if (row == none) best.vectors = std::clamp<int64_t>(most(lane) / lanes_, 1, 4);
    if (row != none && best.rows > 1) {
      const int64_t inner =
          best.rows == const_extent(row) ? number(row) : tile(number(row), best.rows);
      kind(OptionKind::Upcast, inner);
    }
    vector_tile(lane, best.vectors);
  }

  // Lanes and a few vectors along a reduced range, folded at the end.
  void reduced_lanes(size_t lane, uint64_t outputs) {
    const int64_t vectors = most(lane) >= 4 * lanes_ ? 4 : most(lane) >= 2 * lanes_ ? 2 : 1;
    size_t row = kernel_.ranges.size();
    for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
      if (!(outputs & bit(i)) || most(i) < 4) continue;
      for (const AccessInfo& a : table_.accesses)
        if (!a.store && a.strides[lane] != 0 && a.strides[i] == 0) row = i;
    }
    if (row < kernel_.ranges.size()) kind(OptionKind::Upcast, tile(number(row), 4));
    vector_tile(lane, row < kernel_.ranges.size() ? std::min<int64_t>(vectors, 2) : vectors);
  }

  // Several reductions: each range that is contiguous for what it closes gets lanes.
  void rows() {
    if (lanes_ < 2) return;
    uint64_t taken = 0;
    for (const ClosureInfo& c : table_.closures) {
      size_t best = kernel_.ranges.size();
      double price = 0;
      bool conflict = false;
      for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
        if (!(c.own & bit(i)) || const_extent(i) == 1) continue;
        if (taken & bit(i)) conflict = true;
        const double cost = lane_cost(i, !c.store);
        if (best == kernel_.ranges.size() || cost < price) best = i, price = cost;
      }
      if (conflict || best == kernel_.ranges.size() || price > 30) continue;
      // Nothing may have the lanes of two ranges.
      bool clash = false;
      for (const ClosureInfo& other : table_.closures)
        if ((other.below & bit(best)) && (other.below & taken)) clash = true;
      if (clash) continue;
      taken |= bit(best);
      vector_tile(best, 4);
    }
  }

  void thread() {
    if (target_.cores < 2 || current_.ranges.empty()) return;
    double work = 1;
    for (double e : table_.extents) work *= e;
    if (work < 65536) return;
    // The outermost loop must belong to every store; the largest of the outputs goes first.
    const KernelRange& first = current_.ranges.front();
    if (first.reduced || first.kind != RangeKind::Loop) return;
    if (bounds(first.range.src(0)).hi < 2) return;
    for (const ClosureInfo& c : table_.closures)
      if (c.store && !(c.own & bit(0))) return;
    for (const UOp& root : current_.roots) {
      const std::vector<UOp> below = topological({&root, 1});
      if (std::find(below.begin(), below.end(), first.range) == below.end()) return;
    }
    kind(OptionKind::Thread, first.range.int_arg());
  }

  const Kernel& kernel_;
  const Target& target_;
  AccessTable table_;
  Kernel current_;
  std::vector<Option> options_;
  int64_t lanes_ = 1;
};

}  // namespace

std::vector<Option> choose_options(const Kernel& kernel, const Target& target) {
  return Chooser(kernel, target).run();
}

}  // namespace tiny
