#include "schedule/rewrite/winograd_match.h"

#include <algorithm>
#include <utility>

#include "ir/affine.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "rules/symbolic.h"
#include "schedule/schedule.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"
#include "shape/winograd.h"

namespace tiny {

namespace {

// How far movement is followed.
constexpr int kStepsMax = 64;

bool has_tiles_of(const Dim& taps) {
  return std::ranges::any_of(kWinogradTiles,
                             [&](const WinogradTile& tile) { return taps.is(tile.taps); });
}

// What movement alone makes the operand of, if that is in memory; none if it is computed.
std::optional<UOp> stored_filter(UOp node) {
  for (int step = 0; step < kStepsMax && !has_memory(node) && node.op() != Op::After; ++step) {
    if (node.op() == Op::Contiguous) return node;
    if (!has(node.op(), kMovement)) return std::nullopt;
    node = UOp(node.src(0));
  }
  return node;
}

class Matcher {
 public:
  Matcher(const UOp& reduce, bool is_gradient)
      : product_(reduce.src(0)), shape_(shape_of(product_)), is_gradient_(is_gradient) {
    is_reduced_.resize(shape_.size());
    for (int64_t axis : reduce.reduce_arg().axes) is_reduced_[static_cast<size_t>(axis)] = true;
  }

  // Whether sizes alone allow it.
  bool is_possible() const {
    if (!(product_.dtype() == kFloat32)) return false;
    int count = 0;
    for (size_t i = 0; i < shape_.size(); ++i) {
      // A run may say what is outside of a filter: its places, and how many pictures there are.
      if (!shape_[i].is_const() && (is_inner(i) || is_gradient_)) return false;
      if (lower_bound(shape_[i]) <= 0) return false;
      count += is_inner(i) && has_tiles_of(shape_[i]) ? 1 : 0;
    }
    return count >= 2;
  }

  // Follows the movement of an operand down to the last value of which it is windows.
  std::optional<Convolution> match(size_t side) {
    const UOp data = product_.src(side), other = product_.src(1 - side);
    Graph& graph = data.graph();
    std::vector<UOp> index, conditions;
    for (size_t i = 0; i < shape_.size(); ++i) {
      ranges_.push_back(graph.make(Op::Range, {shape_[i].uop(graph)}, static_cast<int64_t>(i)));
      index.push_back(shape_[i].is(1) ? graph.integer(0) : ranges_[i]);
    }
    std::optional<Convolution> found;
    UOp node = data;
    for (int step = 0; step < kStepsMax; ++step) {
      if (auto here = match_input(node, index); here && is_zero_around(node, index, conditions))
        found = std::move(here);
      if (has_memory(node) || !has(node.op(), kMovement) || node.op() == Op::AsStrided ||
          (node.op() == Op::Alias && node.src().size() != 1))
        break;
      std::vector<UOp> more;
      index = apply_movement_op(node, index, more);
      for (UOp& e : index) e = simplify_(e);
      for (const UOp& c : more) conditions.push_back(simplify_(c));
      node = UOp(node.src(0));
    }
    ranges_.clear();
    if (!found || !matches(other, *found)) return std::nullopt;
    found->other = other;
    found->is_gradient = is_gradient_;
    return found;
  }

 private:
  // Of a filter: its taps and its channels, which a convolution sums over.
  bool is_inner(size_t axis) const { return is_reduced_[axis] != is_gradient_; }

  std::optional<size_t> axis_of(const UOp& atom) const {
    const auto at = std::ranges::find(ranges_, atom);
    if (at == ranges_.end()) return std::nullopt;
    return static_cast<size_t>(at - ranges_.begin());
  }

  // The roles of the input's axes, if every index is a range, or a place and a tap.
  std::optional<Convolution> match_input(const UOp& input, const std::vector<UOp>& index) const {
    const Shape& shape = shape_of(input);
    Convolution out;
    size_t windows = 0;
    std::vector<bool> used(shape_.size());
    const auto take = [&](size_t axis) {
      const bool fresh = !used[axis];
      used[axis] = true;
      return fresh;
    };
    for (size_t i = 0; i < index.size(); ++i) {
      const auto sum = affine(index[i]);
      if (!sum) return std::nullopt;
      if (shape[i].is(1) && sum->terms.empty()) continue;
      std::vector<std::pair<size_t, int64_t>> terms;  // axes and their coefficients
      for (const AffineTerm& term : sum->terms) {
        const auto axis = axis_of(term.atom);
        if (!axis || !take(*axis)) return std::nullopt;
        terms.emplace_back(*axis, term.coefficient);
      }
      if (terms.size() == 1 && terms[0].second == 1 && sum->constant == 0 &&
          shape[i] == shape_[terms[0].first]) {
        const size_t axis = terms[0].first;
        (is_inner(axis) ? out.channels : out.batch).push_back({axis, i});
        continue;
      }
      if (terms.size() != 2 || windows == 2) return std::nullopt;
      if (is_inner(terms[0].first)) std::swap(terms[0], terms[1]);
      const auto [place, along] = terms[0];
      const auto [tap, step] = terms[1];
      if (is_inner(place) || !is_inner(tap) || along != 1 || (step != 1 && step != -1))
        return std::nullopt;
      const int64_t taps = shape_[tap].value();
      if (!has_tiles_of(taps) || (windows > 0 && taps != out.taps)) return std::nullopt;
      out.taps = taps;
      const int64_t before = step < 0 ? taps - 1 : 0;
      out.windows[windows++] = {i, place, tap, sum->constant - before, step < 0};
    }
    if (windows != 2) return std::nullopt;
    for (size_t i = 0; i < shape_.size(); ++i) {
      if (used[i] || shape_[i].is(1)) continue;
      if (is_reduced_[i]) return std::nullopt;
      out.outputs.push_back(i);
    }
    out.input = input;
    return out;
  }

  // Whether what lies above is the input wherever that has such an element, and zero where not.
  bool is_zero_around(const UOp& input, const std::vector<UOp>& index,
                      const std::vector<UOp>& conditions) {
    if (conditions.empty()) return true;
    Graph& graph = input.graph();
    std::vector<UOp> inside;  // not negative there
    for (size_t i = 0; i < index.size(); ++i) {
      inside.push_back(index[i]);
      const UOp last = (shape_of(input)[i] - 1).uop(graph);
      inside.push_back(simplify_(sub(last, index[i])));
    }
    return std::ranges::all_of(conditions, [&](const UOp& c) {
      if (c.is_const()) return c.const_bits() != 0;
      if (c.op() != Op::Less && c.op() != Op::LessEqual) return false;
      return prove_nonnegative(simplify_(slack_of(c)), inside);
    });
  }

  // The same filter serves all places and all of the batch; of a gradient, what reached a place
  // goes to all taps and channels.
  bool matches(const UOp& other, const Convolution& c) const {
    for (const WindowAxis& w : c.windows)
      if (!repeats(other, is_gradient_ ? w.tap : w.place)) return false;
    return std::ranges::all_of(is_gradient_ ? c.channels : c.batch,
                               [&](const AxisPair& a) { return repeats(other, a.product); });
  }

  UOp product_;
  Shape shape_;
  bool is_gradient_;
  std::vector<bool> is_reduced_;
  std::vector<UOp> ranges_;
  IndexSimplifier simplify_;
};

}  // namespace

std::optional<Convolution> find_convolution(const UOp& reduce,
                                            const std::vector<uint8_t>& is_constant) {
  for (const bool is_gradient : {false, true}) {
    Matcher matcher(reduce, is_gradient);
    if (!matcher.is_possible()) continue;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const std::optional<UOp> stored = stored_filter(reduce.src(0).src(1 - side));
      if (!is_gradient && !stored) continue;
      auto found = matcher.match(side);
      if (!found) continue;
      found->filter_varies =
          !is_gradient && !(stored->id() < is_constant.size() && is_constant[stored->id()]);
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace tiny
