#include "schedule/rewrite/narrow_operands.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "schedule/decide.h"
#include "schedule/schedule.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"

namespace tiny {

namespace {

constexpr size_t kStepsMax = 8;        // operations that widen a constant
constexpr double kSmallOperand = 8;    // times smaller than the elements that it is applied to
constexpr double kElementsMin = 1024;  // smaller constants stay in the cache anyhow

constexpr int kSumDepth = 8;  // of operations between an integer and its bytes

std::optional<Interval> values_within(const UOp& integer, int depth) {
  const UOp node = below_movement(integer);
  if (node.op() == Op::Const && node.dtype().is_int())
    return Interval{node.const_int(), node.const_int()};
  if (depth == 0) return std::nullopt;
  if (node.op() == Op::Cast) {
    if (node.src(0).dtype() == kInt8) return Interval{-128, 127};
    if (node.src(0).dtype() == kUInt8) return Interval{0, 255};
    return std::nullopt;
  }
  if (node.op() != Op::Neg && node.op() != Op::Add) return std::nullopt;
  const auto a = values_within(node.src(0), depth - 1);
  if (!a || node.op() == Op::Neg) return a ? std::optional(Interval{-a->hi, -a->lo}) : a;
  const auto b = values_within(node.src(1), depth - 1);
  return b ? std::optional(Interval{a->lo + b->lo, a->hi + b->hi}) : b;
}

// The cast below movement that widens a factor; no node if there is none.
UOp cast_below(const UOp& factor) {
  const UOp node = below_movement(factor);
  return node.op() == Op::Cast ? node : UOp();
}

// How many different elements a value has, as far as movement and functions of one operand show.
double elements_below(const UOp& value) {
  UOp node = below_movement(value);
  while (!has_memory(node) && has(node.op(), kElementwise) && node.src().size() == 1)
    node = below_movement(node.src(0));
  return elements_at_most(node);
}

// Bits of its first operand: by one mask, or shifts for the few numbers of a byte.
bool is_of_bits(const UOp& node) {
  constexpr double kNumbersMax = 8;
  return node.dtype() == kUInt8 && (node.op() == Op::And || node.op() == Op::Shr) &&
         elements_below(node.src(1)) <= kNumbersMax;
}

}  // namespace

std::optional<DotKind> dot_kind_of(const UOp& reduce, const Target& target) {
  if (target.dots == 0 || reduce.op() != Op::ReduceAxis || reduce.reduce_arg().op != Op::Add)
    return std::nullopt;
  const UOp& product = reduce.src(0);
  if (product.op() != Op::Mul) return std::nullopt;
  const UOp a = cast_below(product.src(0));
  const UOp b = cast_below(product.src(1));
  if (!a || !b) return std::nullopt;
  bool swapped = false;
  const auto kind = dot_kind(a.src(0).dtype(), b.src(0).dtype(), reduce.dtype(), &swapped);
  return kind && target.has_dot(*kind) ? kind : std::nullopt;
}

UOp without_cast(const UOp& factor) {
  std::vector<UOp> moves;
  const UOp node = below_movement(factor, moves);
  return moved(moves, UOp(node.src(0)));
}

std::optional<Interval> values_of_bytes(const UOp& integer) {
  return values_within(integer, kSumDepth);
}

bool are_bits_of_memory(const UOp& bytes) {
  UOp node = below_movement(bytes);
  while (!has_memory(node) && is_of_bits(node)) node = below_movement(node.src(0));
  return has_memory(node) && !has_memory(below_movement(bytes));
}

UOp NarrowFactor::over(const UOp& elements) const {
  UOp value = elements;
  for (size_t i = steps_.size(); i-- > 0;) {
    const Step& step = steps_[i];
    std::vector<UOp> src;
    for (size_t s = 0; s < step.node.src().size(); ++s)
      src.push_back(s == step.operand
                        ? value
                        : moved(std::span(moves_).first(step.moves), UOp(step.node.src(s))));
    value = value.graph().make(step.node.op(), std::move(src), step.node.arg(), step.node.dtype());
  }
  return value;
}

// Walks from a factor down to what is widened.
class NarrowFactorFinder {
 public:
  NarrowFactorFinder(const UOp& reduce, const std::vector<uint8_t>& varies)
      : reduce_(reduce), varies_(varies) {}

  std::optional<NarrowFactor> find(const UOp& factor) {
    UOp node = factor;
    while (steps() <= kStepsMax) {
      const size_t before = found_.moves_.size();
      node = below_movement(node, found_.moves_);
      const auto added = std::span(found_.moves_).subspan(before);
      if (std::ranges::any_of(added, pads)) return std::nullopt;
      if (has_memory(node) || !has(node.op(), kElementwise) || !is_constant(node))
        return std::nullopt;
      const std::optional<size_t> operand = large_operand(node);
      if (!operand) return std::nullopt;
      const UOp below(node.src(*operand));
      found_.widening_.push_back(node);
      if (!take_scale(node, *operand))
        found_.steps_.push_back({node, *operand, found_.moves_.size()});
      if (node.op() == Op::Cast && below.dtype().bytes() <= 2 && node.dtype().bytes() >= 4) {
        std::vector<UOp> inner;
        const UOp source = below_movement(below, inner);
        found_.elements_ = moved(found_.moves_, moved(inner, source));
        return std::move(found_);
      }
      node = below;
    }
    return std::nullopt;
  }

  // Of a factor in words, below its cast.
  std::optional<NarrowFactor> find_bits(const UOp& factor) {
    UOp node = below_movement(factor, found_.moves_);
    while (node.op() == Op::Cast ? steps() == 0 : is_of_bits(node)) {
      if (has_memory(node) || !is_constant(node) || steps() == kStepsMax) return std::nullopt;
      found_.widening_.push_back(node);
      found_.steps_.push_back({node, 0, found_.moves_.size()});
      node = below_movement(node.src(0), found_.moves_);
    }
    if (steps() < 2 || std::ranges::any_of(found_.moves_, pads)) return std::nullopt;
    found_.elements_ = moved(found_.moves_, node);
    return std::move(found_);
  }

 private:
  static bool pads(const UOp& move) { return move.op() == Op::Pad; }
  bool is_constant(const UOp& u) const { return u.id() < varies_.size() && !varies_[u.id()]; }
  size_t steps() const { return found_.steps_.size() + found_.scales_.size(); }

  // The one operand that is not small beside the node.
  std::optional<size_t> large_operand(const UOp& node) const {
    std::optional<size_t> found;
    for (size_t i = 0; i < node.src().size(); ++i) {
      if (elements_below(node.src(i)) * kSmallOperand <= elements_at_most(node)) continue;
      if (found) return std::nullopt;
      found = i;
    }
    return found;
  }

  // A product with what is the same for all steps leaves the sum, unless something is added after.
  bool take_scale(const UOp& node, size_t operand) {
    if (node.op() != Op::Mul || !node.dtype().is_float() || !found_.steps_.empty()) return false;
    const UOp scale = moved(found_.moves_, UOp(node.src(1 - operand)));
    for (const int64_t axis : reduce_.reduce_arg().axes)
      if (!is_same_along(scale, static_cast<size_t>(axis))) return false;
    found_.scales_.push_back(scale);
    return true;
  }

  const UOp reduce_;
  const std::vector<uint8_t>& varies_;
  NarrowFactor found_;
};

namespace {

// Seconds that a product takes which reads a constant of so many bytes an element, and so often
// computes what an element becomes.
double seconds(double elements, double bytes, double uses, double operations,
               const Machine& target) {
  const double read = elements * bytes;
  return std::max(read / bandwidth_of(read, target),
                  elements * (uses + operations) / target.fma_rate);
}

bool is_faster_narrow(const UOp& reduce, const UOp& factor, const NarrowFactor& found,
                      const Machine& target) {
  const Shape& shape = shape_of(factor);
  double elements = 1;
  double uses = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto n = static_cast<double>(std::max<int64_t>(upper_bound(shape[i]), 1));
    (repeats(found.elements(), i) ? uses : elements) *= n;
  }
  if (elements < kElementsMin) return false;
  // A tile of rows in registers widens each element once.
  const double tile = std::max(1.0, target.vector_registers / 2.0 - 2);
  const auto widening = static_cast<double>(found.widening().size() - found.scales().size());
  const auto wide = static_cast<double>(reduce.dtype().bytes());
  const auto narrow = static_cast<double>(found.elements().dtype().bytes());
  return seconds(elements, narrow, uses, widening * std::ceil(uses / tile), target) <
         seconds(elements, wide, uses, 0, target);
}

}  // namespace

std::optional<NarrowFactor> narrow_factor(const UOp& reduce, size_t side, const Machine& target,
                                          const std::vector<uint8_t>& varies) {
  if (reduce.op() != Op::ReduceAxis || reduce.reduce_arg().op != Op::Add) return std::nullopt;
  const UOp& product = reduce.src(0);
  if (product.op() != Op::Mul || !product.dtype().is_float() || dot_kind_of(reduce, target))
    return std::nullopt;
  const UOp& factor = product.src(side);
  std::optional<NarrowFactor> found = NarrowFactorFinder(reduce, varies).find(factor);
  if (!found || !is_faster_narrow(reduce, factor, *found, target)) return std::nullopt;
  return found;
}

std::optional<NarrowFactor> bits_factor(const UOp& reduce, size_t side,
                                        const std::vector<uint8_t>& varies) {
  return NarrowFactorFinder(reduce, varies).find_bits(reduce.src(0).src(side));
}

std::vector<uint8_t> widening_nodes(std::span<const UOp> roots, const Machine& target,
                                    const std::vector<uint8_t>& varies) {
  std::vector<uint8_t> flags(roots.front().graph().id_limit());
  for (const UOp& u : topological(roots, has_memory)) {
    if (has_memory(u) || u.op() != Op::ReduceAxis || !varies[u.id()]) continue;
    const bool in_words = dot_kind_of(u, target).has_value();
    for (const size_t side : {size_t{0}, size_t{1}}) {
      if (in_words) flags[cast_below(u.src(0).src(side)).id()] = 1;
      const auto narrow =
          in_words ? bits_factor(u, side, varies) : narrow_factor(u, side, target, varies);
      if (narrow)
        for (const UOp& node : narrow->widening()) flags[node.id()] = 1;
    }
  }
  return flags;
}

}  // namespace tiny
