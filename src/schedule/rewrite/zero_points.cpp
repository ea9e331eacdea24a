#include "schedule/rewrite/zero_points.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/build.h"
#include "ir/dot.h"
#include "schedule/rewrite/narrow_operands.h"
#include "schedule/rewrite/product_axes.h"
#include "schedule/schedule.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"

namespace tiny {

namespace {

constexpr int64_t kUsesMin = 8;  // of each element, for corrections to pay

bool is_byte(DType dtype) {
  return dtype == kInt8 || dtype == kUInt8;
}

// Whether it is 0, perhaps negated and repeated.
bool is_zero(const UOp& value) {
  UOp node = value;
  while (has(node.op(), kMovement) || node.op() == Op::Neg) node = UOp(node.src(0));
  return node.is_const_int(0);
}

// A factor: bytes under movement, widened, and what is added to them.
struct Factor {
  std::vector<UOp> moves;  // above the widened value
  std::vector<UOp> inner;  // between that and its bytes
  UOp bytes;
  UOp shift;           // of the factor's shape; none: 0
  UOp unpadded_shift;  // below the movement

  UOp value() const { return moved(moves, moved(inner, bytes)); }
};

bool is_pad(const UOp& move) {
  return move.op() == Op::Pad;
}

// Zeros around shifted bytes are bytes that the shift makes zero, if it is one number: then all
// bytes are shifted.  None if there is no padding, or no such byte.
std::optional<Factor> with_padded_bytes(const Factor& f) {
  const auto first = std::ranges::find_if(f.moves, is_pad);
  if (first == f.moves.end() || !f.shift) return std::nullopt;
  const auto above = std::span(f.moves).first(static_cast<size_t>(first - f.moves.begin()));
  const auto below = std::span(f.moves).subspan(above.size());
  const UOp& shift = f.unpadded_shift;
  const DType dtype = f.bytes.dtype();
  const std::optional<Interval> needed = values_of_bytes(neg(shift));
  const Interval holds = dtype == kInt8 ? Interval{-128, 127} : Interval{0, 255};
  if (!is_uniform(shift) || !needed || needed->lo < holds.lo || needed->hi > holds.hi)
    return std::nullopt;
  const UOp bytes = moved(f.inner, f.bytes);
  const UOp padded = moved(below, bytes);
  const Shape& shape = shape_of(padded);
  const UOp number = first_along(shift, std::vector<bool>(shape_of(shift).size(), true));
  const auto everywhere = [&](const UOp& value) {
    return make_expand(make_reshape(value, Shape(shape.size(), 1)), shape);
  };
  const UOp one = bytes.graph().constant_bits(kBool, 1);
  const UOp inside = moved(
      below, make_expand(make_reshape(one, Shape(shape_of(bytes).size(), 1)), shape_of(bytes)));
  Factor out;
  out.moves.assign(above.begin(), above.end());
  out.bytes = where(inside, padded, everywhere(cast(neg(number), dtype)));
  out.unpadded_shift = everywhere(number);
  out.shift = moved(out.moves, out.unpadded_shift);
  return out;
}

std::optional<Factor> factor_of(const UOp& u) {
  Factor out;
  UOp node = below_movement(u, out.moves);
  UOp shift;
  if (node.op() == Op::Add) {
    for (const size_t side : {size_t{0}, size_t{1}}) {
      std::vector<UOp> inner;
      const UOp widened = below_movement(node.src(side), inner);
      if (widened.op() != Op::Cast || !is_byte(widened.src(0).dtype())) continue;
      out.inner = inner;
      shift = UOp(node.src(1 - side));
      node = widened;
      break;
    }
  }
  if (node.op() != Op::Cast || !is_byte(node.src(0).dtype())) return std::nullopt;
  out.bytes = UOp(node.src(0));
  if (!shift || is_zero(shift)) return out;
  out.unpadded_shift = shift;
  out.shift = moved(out.moves, shift);
  return with_padded_bytes(out).value_or(out);
}

class Rewriter {
 public:
  Rewriter(const UOp& reduce, const Target& target, const std::vector<uint8_t>& varies)
      : reduce_(reduce), target_(target), varies_(varies), axes_(reduce) {}

  // What takes the sum's place; none if it is no such sum or stands well.
  std::optional<UOp> run() {
    if (reduce_.reduce_arg().op != Op::Add || reduce_.src(0).op() != Op::Mul) return std::nullopt;
    if (reduce_.dtype() != kInt32 && reduce_.dtype() != kUInt32) return std::nullopt;
    if (!axes_.steps()) return std::nullopt;
    std::optional<Factor> a = factor_of(reduce_.src(0).src(0));
    std::optional<Factor> b = factor_of(reduce_.src(0).src(1));
    if (!a || !b) return std::nullopt;
    const bool has_dot = target_has(a->bytes.dtype(), b->bytes.dtype());
    if (has_dot && dot_kind_of(reduce_, target_) && !pads(*a) && !pads(*b)) return std::nullopt;
    if (!shifts_fit(*a) || !shifts_fit(*b) || uses(*a, *b) < kUsesMin) return std::nullopt;
    if (!has_dot && !flip_one(*a, *b)) return std::nullopt;
    return corrected(*a, *b);
  }

 private:
  bool target_has(DType a, DType b) const {
    bool swapped = false;
    const auto kind = dot_kind(a, b, reduce_.dtype(), &swapped);
    return kind && target_.has_dot(*kind);
  }

  // Zeros are put around bytes instead of what they are widened to: loads give them for nothing.
  static bool pads(const Factor& f) { return std::ranges::any_of(f.moves, is_pad); }

  bool shifts_fit(const Factor& f) const { return !f.shift || axes_.is_same_at_steps(f.shift); }

  // How often the element that is used the least is used.
  int64_t uses(const Factor& a, const Factor& b) const {
    int64_t of_a = 1, of_b = 1;
    const UOp x = a.value(), y = b.value();
    const Shape& shape = axes_.shape();
    for (size_t i = 0; i < shape.size(); ++i) {
      if (axes_.is_reduced(i)) continue;
      const int64_t n = std::min<int64_t>(upper_bound(shape[i]), 1 << 20);
      if (repeats(x, i)) of_a = std::min<int64_t>(of_a * n, 1 << 20);
      if (repeats(y, i)) of_b = std::min<int64_t>(of_b * n, 1 << 20);
    }
    return is_constant(b.bytes) ? of_a : is_constant(a.bytes) ? of_b : std::min(of_a, of_b);
  }

  bool is_constant(const UOp& u) const { return u.id() < varies_.size() && !varies_[u.id()]; }

  // One operand with the other sign, if that is a constant.
  bool flip_one(Factor& a, Factor& b) const {
    for (Factor* f : {&b, &a}) {
      const Factor& other = f == &b ? a : b;
      const DType flipped = f->bytes.dtype() == kInt8 ? kUInt8 : kInt8;
      if (!is_constant(f->bytes) || !target_has(flipped, other.bytes.dtype())) continue;
      Graph& graph = f->bytes.graph();
      const UOp bits = bitcast(f->bytes, kUInt8);
      const UOp sign = spread(graph.constant_int(kUInt8, 0x80), shape_of(bits));
      const UOp turned = elementwise(Op::Xor, {bits, sign}, kUInt8);
      f->bytes = graph.make(Op::Contiguous, {bitcast(turned, flipped)});
      const int64_t by = flipped == kUInt8 ? -128 : 128;
      const UOp offset = spread(graph.constant_int(reduce_.dtype(), by), axes_.shape());
      f->shift = f->shift ? add(f->shift, offset) : offset;
      return true;
    }
    return false;
  }

  static UOp spread(const UOp& number, const Shape& shape) {
    return make_expand(make_reshape(number, Shape(shape.size(), 1)), shape);
  }

  // The sum of a factor's bytes, for each coordinate that it differs along; stored, since it is
  // read again and again.
  UOp total(const Factor& f) const {
    const UOp bytes = f.value();
    std::vector<bool> same(axes_.shape().size());
    for (size_t i = 0; i < same.size(); ++i) same[i] = !axes_.is_reduced(i) && repeats(bytes, i);
    const UOp wide = cast(first_along(bytes, same), reduce_.dtype());
    const UOp sum = make_reduce(wide, Op::Add, reduce_.reduce_arg().axes);
    return make_expand(sum.graph().make(Op::Contiguous, {sum}), shape_of(reduce_));
  }

  UOp corrected(const Factor& a, const Factor& b) const {
    const DType dtype = reduce_.dtype();
    UOp out = make_reduce(mul(cast(a.value(), dtype), cast(b.value(), dtype)), Op::Add,
                          reduce_.reduce_arg().axes);
    if (a.shift) out = add(out, mul(axes_.at_sum(a.shift), total(b)));
    if (b.shift) out = add(out, mul(axes_.at_sum(b.shift), total(a)));
    if (!a.shift || !b.shift) return out;
    const UOp steps = out.graph().constant_int(dtype, axes_.steps().value());
    const UOp count = spread(steps, shape_of(reduce_));
    return add(out, mul(mul(axes_.at_sum(a.shift), axes_.at_sum(b.shift)), count));
  }

  const UOp reduce_;
  const Target& target_;
  const std::vector<uint8_t>& varies_;
  const ProductAxes axes_;
};

}  // namespace

ChangedGraph rewrite_zero_points(std::span<const UOp> roots, const Target& target,
                                 const std::vector<uint8_t>& varies) {
  if (!(target.dots & kIntegerDots)) return unchanged(roots);
  return rebuild_with_origins(roots, has_memory, [&](const UOp& node, const UOp& now) {
    if (has_memory(node) || now.op() != Op::ReduceAxis) return now;
    return Rewriter(now, target, varies).run().value_or(now);
  });
}

std::optional<UOp> sum_in_words(const UOp& reduce, const Target& target,
                                const std::vector<uint8_t>& varies) {
  if (!(target.dots & kIntegerDots) || !ProductAxes(reduce).steps()) return std::nullopt;
  if (const std::optional<UOp> rewritten = Rewriter(reduce, target, varies).run()) return rewritten;
  return dot_kind_of(reduce, target) ? std::optional(reduce) : std::nullopt;
}

}  // namespace tiny
