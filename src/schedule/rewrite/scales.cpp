#include "schedule/rewrite/scales.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/build.h"
#include "schedule/rewrite/narrow_operands.h"
#include "schedule/rewrite/product_axes.h"
#include "schedule/rewrite/zero_points.h"
#include "schedule/schedule.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"

namespace tiny {

namespace {

constexpr int kScalesMax = 8;  // of one factor

int64_t magnitude(const Interval& s) {
  return std::max(-s.lo, s.hi);
}

// A factor: an integer of the factor's shape, and what it is multiplied with as a float.
struct Scaled {
  UOp integer;
  std::vector<UOp> scales;
};

class Rewriter {
 public:
  Rewriter(const UOp& reduce, const Machine& target, const std::vector<uint8_t>& varies)
      : reduce_(reduce), target_(target), varies_(varies), axes_(reduce) {}

  // What takes the sum's place; none if it stays.
  std::optional<UOp> run() {
    if (reduce_.reduce_arg().op != Op::Add || reduce_.dtype() != kFloat32) return std::nullopt;
    if (reduce_.src(0).op() != Op::Mul) return std::nullopt;
    if (auto sum = in_words()) return sum;
    return of_narrow_constant();
  }

 private:
  std::optional<UOp> in_words() const {
    const UOp& product = reduce_.src(0);
    const std::optional<Scaled> a = scaled(product.src(0));
    const std::optional<Scaled> b = a ? scaled(product.src(1)) : std::nullopt;
    if (!b) return std::nullopt;
    const std::optional<Interval> x = values_of_bytes(a->integer);
    const std::optional<Interval> y = values_of_bytes(b->integer);
    if (!x || !y || !fits(*x, *y)) return std::nullopt;
    const UOp sum = sum_of(mul(a->integer, b->integer));
    const std::optional<UOp> words = sum_in_words(sum, target_, varies_);
    if (!words) return std::nullopt;
    const UOp out = cast(*words, kFloat32);
    return times(times(out, a->scales), b->scales);
  }

  // Whether no partial sum leaves 32 bits.
  bool fits(const Interval& x, const Interval& y) const {
    const std::optional<int64_t> steps = axes_.steps();
    return steps && magnitude(x) * magnitude(y) <= INT32_MAX / std::max<int64_t>(*steps, 1);
  }

  std::optional<UOp> of_narrow_constant() const {
    std::vector<UOp> src(reduce_.src(0).src().begin(), reduce_.src(0).src().end());
    for (const size_t side : {size_t{1}, size_t{0}}) {
      const auto narrow = narrow_factor(reduce_, side, target_, varies_);
      if (!narrow) continue;
      src[side] = narrow->over(narrow->elements());
      if (src[side] == reduce_.src(0).src(side)) return std::nullopt;
      const UOp product = reduce_.graph().make(Op::Mul, std::move(src));
      return times(sum_of(product), narrow->scales());
    }
    return std::nullopt;
  }

  // Scales stand above the cast of an integer.
  std::optional<Scaled> scaled(const UOp& factor) const {
    Scaled out;
    std::vector<UOp> moves;
    UOp node = below_movement(factor, moves);
    while (node.op() == Op::Mul) {
      // The integer is the operand with more elements of its own.
      const size_t side = is_widened(node.src(0)) ? 0 : is_widened(node.src(1)) ? 1 : 2;
      if (side == 2) return std::nullopt;
      const std::optional<UOp> scale = at_steps(moves, node.src(1 - side));
      if (!scale) return std::nullopt;
      out.scales.push_back(*scale);
      node = below_movement(node.src(side), moves);
    }
    if (node.op() != Op::Cast || node.dtype() != kFloat32) return std::nullopt;
    const UOp integer(node.src(0));
    if (integer.dtype() != kInt32 && integer.dtype().bytes() != 1) return std::nullopt;
    out.integer = moved(moves, cast(integer, kInt32));
    return out;
  }

  // Whether the value is the float of an integer, perhaps scaled.
  static bool is_widened(const UOp& value) {
    UOp node = below_movement(value);
    for (int depth = 0; depth < kScalesMax && node.op() == Op::Mul; ++depth)
      node = below_movement(node.src(below_movement(node.src(0)).op() == Op::Const ? 1 : 0));
    return node.op() == Op::Cast && node.src(0).dtype().is_int();
  }

  // A scale under movement, of the sum's shape, if it is the same for all steps.  One number is the
  // same around padding too, where the integers are zero.
  std::optional<UOp> at_steps(const std::vector<UOp>& moves, const UOp& scale) const {
    const UOp base = below_movement(scale);
    if (product(shape_of(base)).is(1)) {
      const UOp one = make_reshape(base, Shape(axes_.shape().size(), 1));
      return make_expand(one, shape_of(reduce_));
    }
    const UOp all = moved(moves, scale);
    return axes_.is_same_at_steps(all) ? std::optional(axes_.at_sum(all)) : std::nullopt;
  }

  UOp sum_of(const UOp& product) const {
    return make_reduce(product, Op::Add, reduce_.reduce_arg().axes);
  }

  UOp times(UOp sum, const std::vector<UOp>& scales) const {
    for (const UOp& scale : scales) {
      sum = mul(sum, shape_of(scale) == shape_of(sum) ? scale : axes_.at_sum(scale));
    }
    return sum;
  }

  const UOp reduce_;
  const Machine& target_;
  const std::vector<uint8_t>& varies_;
  const ProductAxes axes_;
};

}  // namespace

ChangedGraph rewrite_scales(std::span<const UOp> roots, const Machine& target,
                            const std::vector<uint8_t>& varies) {
  return rebuild_with_origins(roots, has_memory, [&](const UOp& node, const UOp& now) {
    if (has_memory(node) || now.op() != Op::ReduceAxis || !varies[node.id()]) return now;
    return Rewriter(now, target, varies).run().value_or(now);
  });
}

}  // namespace tiny
