#include "schedule/rewrite/split_reductions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "base/checked.h"
#include "ir/build.h"
#include "ir/fold.h"
#include "schedule/decide.h"
#include "schedule/schedule.h"
#include "shape/shape.h"

namespace tiny {

namespace {

// Fewer steps are not worth a look.
constexpr double kStepsMin = 1024;
// Pieces for each core: enough that one which is late is short.
constexpr int64_t kPiecesPerCore = 8;
// Elements in a row that are one iteration; rows and columns of a product's tile of registers.
constexpr int64_t kRowElements = 64;
constexpr int64_t kTileRows = 16;
constexpr int64_t kTileColumns = 32;
constexpr int64_t kFewRows = 8;  // leave registers for twice the columns
// Of a product that groups of threads share: the sides of their least tile (group_tile.cpp).
constexpr int64_t kGroupTile = 32;
// What starting others to work and waiting for them costs, in launches.
constexpr double kForkLaunches = 8;
// What pieces must save, of the time without.
constexpr double kShareMin = 0.15;
// Nodes below a reduction that are looked at.
constexpr size_t kNodesMax = 256;

class Splitter {
 public:
  Splitter(const UOp& reduce, const Machine& target)
      : reduce_(reduce),
        body_(reduce.src(0)),
        target_(target),
        shape_(const_dims(shape_of(body_))),
        is_reduced_(shape_.size()) {
    for (int64_t axis : reduce.reduce_arg().axes) is_reduced_[static_cast<size_t>(axis)] = true;
    for (size_t i = 0; i < shape_.size(); ++i)
      (is_reduced_[i] ? steps_ : outputs_) *= static_cast<double>(shape_[i]);
  }

  // The reduction in two steps, before its axes some of one element; no node if one step is as
  // good.
  UOp run() const {
    if (outputs_ == 0 || steps_ < kStepsMin) return {};
    const auto cores = static_cast<double>(target_.cores);
    const double busy = busy_cores(static_cast<double>(stored_iterations()));
    if (busy >= cores) return {};
    const double seconds = serial_seconds() * rated_cores();
    const double bytes = outputs_ * static_cast<double>(wanted_pieces()) *
                         static_cast<double>(reduce_.dtype().bytes());
    const double cost = kForkLaunches * target_.launch_seconds + saved_seconds(bytes, target_);
    const double saved = seconds / busy - seconds / cores;
    if (saved < std::max(cost, kShareMin * seconds / busy)) return {};
    return in_pieces(cuts());
  }

 private:
  // How many cores rates are of.
  double rated_cores() const {
    return target_.computes_in_groups() ? static_cast<double>(target_.cores) : 1;
  }

  // How many cores work, on average, on so many iterations.
  double busy_cores(double iterations) const {
    return iterations / std::ceil(iterations / static_cast<double>(target_.cores));
  }

  // How many iterations cores can share, about and at least, if the reduction is left whole.
  int64_t stored_iterations() const {
    int64_t batch = 1;
    int64_t rows = 1;
    int64_t columns = 1;
    bool is_product = false;
    for (size_t i = 0; i < shape_.size(); ++i) {
      if (is_reduced_[i] || shape_[i] == 1) continue;
      const bool left = body_.op() != Op::Mul || varies(body_.src(0), i);
      const bool right = body_.op() != Op::Mul || varies(body_.src(1), i);
      is_product |= left != right;
      (left == right ? batch : left ? rows : columns) *= shape_[i];
    }
    if (is_product && target_.computes_in_groups())
      return batch * ceil_div(rows, kGroupTile) * ceil_div(columns, kGroupTile);
    if (is_product) {
      const int64_t tile = rows < kFewRows ? 2 * kTileColumns : kTileColumns;
      return std::max({batch, columns / tile, columns < tile ? rows / kTileRows : 1});
    }
    int64_t in_row = 1;  // stored elements that lie behind all that is reduced
    for (size_t i = shape_.size(); i-- > 0;) {
      if (is_reduced_[i] && shape_[i] > 1) break;
      in_row *= shape_[i];
    }
    return in_row == 1 ? batch : std::max(batch / in_row, in_row / kRowElements);
  }

  // Whether a factor is more than one value, repeated, along the axis.
  static bool varies(UOp factor, size_t axis) {
    while (!has_memory(factor) && factor.op() == Op::Cast) factor = UOp(factor.src(0));
    return has_memory(factor) || factor.op() != Op::Expand || !shape_of(factor.src(0))[axis].is(1);
  }

  static bool is_read(const UOp& node) {
    return has_memory(node) || node.op() == Op::ReduceAxis || node.op() == Op::Contiguous ||
           node.op() == Op::Concat || node.op() == Op::Scatter || node.op() == Op::After ||
           node.op() == Op::Assign;
  }

  // What one core takes: for arithmetic, or for what is read.
  double serial_seconds() const {
    double weight = 1;
    double bytes = 0;
    std::unordered_set<const Node*> seen;
    std::vector<UOp> stack{body_};
    while (!stack.empty() && seen.size() < kNodesMax) {
      const UOp node = std::move(stack.back());
      stack.pop_back();
      if (!seen.insert(node.node()).second) continue;
      if (is_read(node)) {
        if (all_const(shape_of(node)))
          bytes += std::min(elements_at_most(node), outputs_ * steps_) *
                   static_cast<double>(node.dtype().bytes());
        continue;
      }
      if (has(node.op(), kElementwise)) weight += op_weight(node.op());
      for (const UOp& s : node.src()) stack.push_back(s);
    }
    return std::max(outputs_ * steps_ * weight / target_.fma_rate,
                    bytes / bandwidth_of(bytes, target_));
  }

  // Of groups, which are many for each processor as they are, each is cut into no more than fills
  // all: a piece has a result of its own.
  int64_t wanted_pieces() const {
    const int64_t all = kPiecesPerCore * target_.cores;
    return target_.computes_in_groups() ? ceil_div(all, stored_iterations()) : all;
  }

  // How an axis is cut: into `pieces`, of `length` each; the last may be shorter.
  struct Cut {
    int64_t pieces = 1;
    int64_t length = 1;
  };

  // Outer axes are cut first, so that a piece lies together.
  std::vector<Cut> cuts() const {
    std::vector<Cut> out;
    int64_t wanted = wanted_pieces();
    for (size_t i = 0; i < shape_.size(); ++i) {
      const int64_t n = shape_[i];
      Cut cut{1, n};
      if (is_reduced_[i] && n > 1 && wanted > 2) {
        cut = n <= wanted ? Cut{n, 1} : cut_axis(n, wanted);
        wanted = ceil_div(wanted, cut.pieces);
      }
      out.push_back(cut);
    }
    return out;
  }

  // About so many pieces of one length, preferably of whole rows of lanes; where the axis has no
  // such divisor, the last piece is shorter.
  static Cut cut_axis(int64_t n, int64_t wanted) {
    Cut best;
    double least = std::numeric_limits<double>::infinity();
    for (int64_t pieces = std::max<int64_t>(2, wanted / 2); pieces <= 2 * wanted; ++pieces) {
      if (n % pieces != 0) continue;
      const double ratio = static_cast<double>(pieces) / static_cast<double>(wanted);
      const double away = std::abs(std::log2(ratio)) + (n / pieces % kRowElements == 0 ? 0 : 0.5);
      if (away >= least) continue;
      least = away;
      best = {pieces, n / pieces};
    }
    if (best.pieces > 1) return best;
    const int64_t length = ceil_div(n, wanted);
    return {ceil_div(n, length), length};
  }

  UOp in_pieces(const std::vector<Cut>& cuts) const {
    Shape lacking;  // of the last pieces
    Shape split;
    Ints order;  // pieces first
    Ints inner;
    for (size_t i = 0; i < cuts.size(); ++i) {
      lacking.emplace_back(cuts[i].pieces * cuts[i].length - shape_[i]);
      if (cuts[i].pieces > 1) {
        order.push_back(std::ssize(split));
        split.emplace_back(cuts[i].pieces);
      }
      inner.push_back(std::ssize(split));
      split.emplace_back(cuts[i].length);
    }
    const int64_t outer = std::ssize(order);
    order.insert(order.end(), inner.begin(), inner.end());
    const UOp cut = make_permute(make_reshape(padded(lacking), split), order);
    Ints steps;
    for (int64_t axis : reduce_.reduce_arg().axes) steps.push_back(axis + outer);
    Ints pieces;
    for (int64_t i = 0; i < outer; ++i) pieces.push_back(i);
    const Op op = reduce_.reduce_arg().op;
    const UOp folded = reduce_.graph().make(Op::Contiguous, {make_reduce(cut, op, steps)});
    return make_reduce(folded, op, pieces);
  }

  // The body with more elements at the end of some axes, which change nothing.
  UOp padded(const Shape& lacking) const {
    const Shape none(lacking.size(), Dim(0));
    if (lacking == none) return body_;
    const UOp longer = make_pad(body_, none, lacking);
    const Op op = reduce_.reduce_arg().op;
    const uint64_t identity = identity_bits(op, body_.dtype());
    if (identity == 0) return longer;
    Graph& graph = reduce_.graph();
    const auto everywhere = [&](const UOp& value, const Shape& shape) {
      return make_expand(make_reshape(value, Shape(shape.size(), Dim(1))), shape);
    };
    const UOp inside = make_pad(everywhere(graph.boolean(true), shape_of(body_)), none, lacking);
    const UOp other = graph.constant_bits(body_.dtype(), identity);
    return where(inside, longer, everywhere(other, shape_of(longer)));
  }

  UOp reduce_;
  UOp body_;
  const Machine& target_;
  Ints shape_;
  std::vector<bool> is_reduced_;
  double outputs_ = 1;
  double steps_ = 1;
};

}  // namespace

ChangedGraph split_reductions(std::span<const UOp> roots, const Machine& target) {
  if (target.cores < 2) return unchanged(roots);
  return rebuild_with_origins(roots, has_memory, [&](const UOp& node, const UOp& now) {
    if (has_memory(node) || now.op() != Op::ReduceAxis || !all_const(shape_of(now.src(0))))
      return now;
    const UOp folded = Splitter(now, target).run();
    return folded ? make_reshape(folded, shape_of(node)) : now;  // behind axes of the pieces
  });
}

}  // namespace tiny
