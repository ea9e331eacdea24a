#include "schedule/rewrite/pack_constants.h"

#include <algorithm>
#include <optional>

#include "base/checked.h"
#include "ir/build.h"
#include "ir/whole_rows.h"
#include "schedule/rewrite/narrow_operands.h"
#include "schedule/scans.h"
#include "schedule/schedule.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

namespace {

// Smaller constants stay in the cache, however they lie.
constexpr int64_t kElementsMin = 1024;
// Of so many vectors of columns another is a small part.
constexpr int64_t kVectorsMany = 12;
constexpr int64_t kFewRows = 3;
// A vector of more than that part of a whole one's lanes is filled well enough.
constexpr int64_t kVectorParts = 4;
// Of steps that are widened or make words, fewer are summed up before lanes along them pay: folding
// a block's lanes for each of its sums takes longer than its products (weights of few bits).
constexpr int64_t kVectorsOfSteps = 8;
// Sums at once: each waits four cycles for itself, and two are begun in one.
constexpr int64_t kSumsBeside = 8;

// `value`, which is movement over the copy `base`, over what that is a copy of; none where movement
// needs the memory.
std::optional<UOp> without_copy(const UOp& value, const UOp& base) {
  std::vector<UOp> moves;
  for (UOp node = value; !(node == base); node = UOp(node.src(0))) {
    if (!has(node.op(), kMovement) || node.op() == Op::AsStrided) return std::nullopt;
    moves.push_back(node);
  }
  UOp now = base.src(0);
  for (auto move = moves.rbegin(); move != moves.rend(); ++move) {
    std::vector<UOp> src(move->src().begin(), move->src().end());
    src[0] = now;
    now = now.graph().make(move->op(), std::move(src), move->arg(), move->dtype());
  }
  return now;
}

// Whether the elements along an axis of an operand lie side by side, or may.
bool is_innermost(const UOp& operand, size_t axis, const std::vector<uint8_t>& is_stored) {
  UOp node = operand;
  std::optional<size_t> at = axis;
  while (!has_memory(node) && has(node.op(), kMovement)) {
    if (at)
      if (const auto lies = as_view(node, is_stored)) return lies->view.strides[*at].is(1);
    if (at) at = axis_below(node, *at);
    node = UOp(node.src(0));
  }
  return !has_memory(node);
}

// Whether an axis of an operand is one of a window that slides over what lies below.
bool is_of_window(const UOp& operand, size_t axis) {
  UOp node = operand;
  std::optional<size_t> at = axis;
  for (; at && !has_memory(node) && has(node.op(), kMovement); node = UOp(node.src(0)))
    at = axis_below(node, *at);
  return !at;
}

// A loop of fewer steps reads what they share hardly more often than a copy does.
constexpr int64_t kLoopStepsMin = 4;

// How a constant is read.
struct Uses {
  double beside = 0;     // bytes of all constants
  bool in_scan = false;  // in each step of one
  bool often = false;    // in many: what they share of memory is worth a copy in each run
};

// One operand of a contraction.
class Operand {
 public:
  // `word`: steps that lie side by side, as many as a word holds; 1 where each stands alone.
  // `lane_bytes`: of a step, or a word of them, as it is multiplied.  `uses`: how it is read.
  Operand(const UOp& value, const Ints& reduced, const Machine& target, int64_t word,
          int64_t lane_bytes, const Uses& uses)
      : value_(value),
        target_(target),
        word_(word),
        lane_bytes_(lane_bytes),
        uses_(uses),
        is_reduced_(shape_of(value).size()) {
    for (int64_t axis : reduced) is_reduced_[static_cast<size_t>(axis)] = true;
  }

  // The operand made of a packed constant; none if it is no constant or would gain nothing.
  std::optional<UOp> packed(const UOp& other, const std::vector<uint8_t>& is_constant) {
    const auto stored = as_view(value_, is_constant);
    if (!stored || !stored->view.offset.is_const()) return std::nullopt;
    const UOp& base = stored->base;
    const bool is_fixed = base.id() < is_constant.size() && is_constant[base.id()];
    if (!is_fixed && (!uses_.often || !has_memory(base))) return std::nullopt;
    if (!find_axes(stored->view, other)) return std::nullopt;
    // Columns that lie side by side are read as they lie as fast as a copy of them.
    if (!is_fixed && !contiguous_steps_) return std::nullopt;
    if (columns_axis_ == kNone || steps_ < 2) return std::nullopt;
    if (elements_ < (is_shared_ ? kElementsMin : lanes() * lanes())) return std::nullopt;
    // Lanes run along the steps.  What follows is then computed element by element: where the
    // product comes many times, panels are read as often.
    const bool fill_lanes =
        value_.dtype().bytes() == lane_bytes_ || steps_ >= kVectorsOfSteps * word_ * lanes();
    if (rows_ == 1 && contiguous_steps_ && fill_lanes && !uses_.in_scan) return std::nullopt;
    if (comes_as_it_lies(stored->view)) return std::nullopt;
    return pack(*stored, other, is_constant);
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  // False where something that matters is no number.
  bool find_axes(const View& view, const UOp& other) {
    int64_t columns = 0;
    std::optional<size_t> few;
    for (size_t i = 0; i < view.shape.size(); ++i) {
      if (view.shape[i].is(1)) continue;
      if (view.strides[i].is(0)) {
        if (!is_reduced_[i]) rows_ *= upper_bound(view.shape[i]);
        continue;
      }
      if (!view.shape[i].is_const() || !view.strides[i].is_const()) return false;
      const int64_t size = view.shape[i].value();
      const int64_t stride = view.strides[i].value();
      elements_ *= size;
      kept_.push_back(i);
      if (is_reduced_[i]) {
        steps_ *= size;
        contiguous_steps_ |= stride == 1;
        continue;
      }
      // Columns share what the other operand has; else (depthwise) it has elements for each.
      const bool shared = repeats(other, i);
      if (shared && size < lanes() && size > lanes() / kVectorParts) few = i;
      if (size < lanes() || (is_shared_ && !shared)) continue;
      if (size > columns || (shared && !is_shared_)) {
        columns = size;
        columns_axis_ = i;
        is_shared_ = shared;
      }
    }
    // A part of a vector's lanes that share a load take less than lanes that each have their own
    // (groups of channels), and words than elements whose steps lie apart.
    if (few && (columns > 0 ? !is_shared_ : word_ > 1)) {
      columns_axis_ = *few;
      is_shared_ = true;
    }
    return true;
  }

  int64_t lanes() const { return target_.vector_bytes / lane_bytes_; }

  // Whether its rows of memory come from the last cache, read once, faster than panels would.
  bool comes_as_it_lies(const View& view) const {
    if (rows_ != 1 || !is_shared_ || word_ > 1 || kept_.size() != 2) return false;
    const size_t steps_axis = kept_[kept_[0] == columns_axis_ ? 1 : 0];
    const int64_t bytes = value_.dtype().bytes();
    const int64_t columns = view.shape[columns_axis_].value();
    return comes_in_whole_rows(target_) && bytes == lane_bytes_ &&
           view.strides[columns_axis_].is(1) && can_walk_whole_rows(steps_, columns) &&
           view.strides[steps_axis].value() * bytes >= kPageBytes &&
           columns * lane_bytes_ <= target_.l1_bytes / 2 && elements_ * bytes > target_.l2_bytes &&
           uses_.beside <= static_cast<double>(target_.l3_bytes);
  }

  // Columns side by side: two vectors where they fill all blocks, else three or one, else all.
  // Where they are many, the last block is filled up with zeros, so that no load needs a mask, nor
  // the sums of a few rows wait for each other.  What is read so fast that two would gets four.
  int64_t block(int64_t columns) const {
    if (!is_shared_) return columns;
    const bool is_narrow = value_.dtype().bytes() * word_ < lane_bytes_;
    for (const int64_t vectors : {4, 2, 3, 1}) {
      if (vectors == 4 && (!is_narrow || rows_ > kFewRows)) continue;
      const bool is_padded =
          vectors == 1 && rows_ < kSumsBeside && columns >= kVectorsMany * lanes();
      if (columns % (vectors * lanes()) == 0 && !is_padded) return vectors * lanes();
    }
    return columns >= kVectorsMany * lanes() ? 2 * lanes() : columns;
  }

  std::optional<UOp> pack(const StoredView& stored, const UOp& other,
                          const std::vector<uint8_t>& is_constant) const {
    const Shape& shape = shape_of(value_);
    // The elements without the axes that repeat; then with the columns split into blocks.
    ViewArg elements{{}, {}, stored.view.offset.value()};
    Shape narrow(shape.size(), 1);
    Shape kept;
    Shape filled;  // with whole blocks
    Shape split;
    std::vector<size_t> outer;
    std::vector<size_t> steps;
    std::vector<size_t> steps_axes;
    size_t blocks_at = 0;
    for (size_t i : kept_) {
      const int64_t size = shape[i].value();
      elements.shape.push_back(size);
      elements.strides.push_back(stored.view.strides[i].value());
      narrow[i] = size;
      kept.push_back(size);
      filled.push_back(i == columns_axis_ ? round_up(size, block(size)) : size);
      if (i == columns_axis_) {
        blocks_at = split.size();
        split.push_back(ceil_div(size, block(size)));
        split.push_back(block(size));
        continue;
      }
      (is_reduced_[i] ? steps : outer).push_back(split.size());
      if (is_reduced_[i]) steps_axes.push_back(i);
      split.push_back(size);
    }
    // The longest axis of the reduction is the one that the other operand has innermost, if that is
    // computed (schedule/layout.h) or lies so; the last of those that are as long (of a patch).
    const auto size = [&](size_t i) { return split[i].value(); };
    auto longest = steps.begin();
    const auto axis = [&](auto i) { return steps_axes[static_cast<size_t>(i - steps.begin())]; };
    // Words of a window's steps would reach beyond the border: others come first that fill one.
    const auto length = [&](auto i) {
      const bool fills = word_ > 1 && size(*i) >= word_ && !is_of_window(other, axis(i));
      return std::pair(fills, size(*i));
    };
    for (auto i = steps.begin(); i != steps.end(); ++i)
      if (length(i) >= length(longest)) longest = i;
    if (longest != steps.end() && is_innermost(other, axis(longest), is_constant))
      std::rotate(longest, longest + 1, steps.end());
    size_t word_at = split.size();
    if (word_ > 1) {
      if (steps.empty()) return std::nullopt;
      // The last word is filled up with zeros.
      const size_t in_words = steps.back();
      word_at = in_words + 1;
      filled[in_words - (in_words > blocks_at ? 1 : 0)] = round_up(size(in_words), word_);
      split[in_words] = ceil_div(size(in_words), word_);
      split.insert(split.begin() + static_cast<int64_t>(word_at), word_);
      const auto make_room = [word_at](size_t& i) { i += i >= word_at ? 1 : 0; };
      std::ranges::for_each(outer, make_room);
      std::ranges::for_each(steps, make_room);
      make_room(blocks_at);
    }
    Ints order;
    for (size_t i : outer) order.push_back(static_cast<int64_t>(i));
    order.push_back(static_cast<int64_t>(blocks_at));
    for (size_t i : steps) order.push_back(static_cast<int64_t>(i));
    order.push_back(static_cast<int64_t>(blocks_at + 1));
    if (word_ > 1) order.push_back(static_cast<int64_t>(word_at));
    Graph& graph = value_.graph();
    const Shape none(kept.size(), Dim(0));
    Shape rest = none;
    for (size_t i = 0; i < kept.size(); ++i) rest[i] = filled[i].value() - kept[i].value();
    const auto in_blocks = [&](const UOp& x) {
      const UOp all = filled == kept ? x : make_pad(make_reshape(x, kept), none, rest);
      return make_permute(make_reshape(all, split), order);
    };
    const UOp given = graph.make(Op::AsStrided, {stored.base}, std::move(elements));
    const UOp ordered = in_blocks(given);
    if (const auto lies = as_view(ordered, is_constant);
        lies && lies->view.offset.is(0) && is_row_major(lies->view))
      return std::nullopt;
    // What is computed, and would be stored for this alone, is computed in the new order.
    const bool is_copy = !has_memory(stored.base) && stored.base.op() == Op::Contiguous;
    const UOp once = value_.op() == Op::Expand ? UOp(value_.src(0)) : value_;
    const auto whole = is_copy ? without_copy(once, stored.base) : std::nullopt;
    const UOp constant = graph.make(
        Op::Contiguous,
        {whole ? in_blocks(make_shrink(*whole, Shape(shape.size(), Dim(0)), narrow)) : ordered});
    Ints back(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    const UOp all = make_reshape(make_permute(constant, back), filled);
    const UOp columns = filled == kept ? all : make_shrink(all, none, kept);
    return make_expand(make_reshape(columns, narrow), shape);
  }

  const UOp value_;
  const Machine& target_;
  const int64_t word_;
  const int64_t lane_bytes_;
  const Uses uses_;
  std::vector<bool> is_reduced_;
  std::vector<size_t> kept_;  // axes along which elements differ
  size_t columns_axis_ = kNone;
  int64_t elements_ = 1;
  int64_t rows_ = 1;   // how often each element is read
  int64_t steps_ = 1;  // of the reduction
  bool contiguous_steps_ = false;
  bool is_shared_ = false;  // every column reads the same elements of the other operand
};

// What is packed of a product's factor, and how the factor is made of that.
struct Packable {
  UOp elements;
  std::optional<NarrowFactor> narrow;
  bool in_words = false;

  UOp over(const UOp& packed, DType dtype) const {
    return narrow ? narrow->over(packed) : in_words ? cast(packed, dtype) : packed;
  }
};

Packable packable(const UOp& reduce, size_t side, bool in_words, const Machine& target,
                  const std::vector<uint8_t>& varies) {
  const UOp& factor = reduce.src(0).src(side);
  if (in_words) {
    auto bits = bits_factor(reduce, side, varies);
    const UOp bytes = bits ? bits->elements() : without_cast(factor);
    return {bytes, std::move(bits), true};
  }
  auto narrow = narrow_factor(reduce, side, target, varies);
  if (narrow && narrow->scales().empty()) {
    const UOp elements = narrow->elements();
    return {elements, std::move(narrow), false};
  }
  return {factor, std::nullopt, false};
}

// A contraction's product of operands, one of them packed if it is a constant.
std::optional<UOp> packed_product(const UOp& reduce, const Machine& target,
                                  const std::vector<uint8_t>& is_constant,
                                  const std::vector<uint8_t>& varies, const Uses& uses) {
  const UOp& product = reduce.src(0);
  const Ints& axes = reduce.reduce_arg().axes;
  const std::optional<DotKind> kind = dot_kind_of(reduce, target);
  if (product.op() != Op::Mul || (!product.dtype().is_float() && !kind)) return std::nullopt;
  const int64_t word = kind ? dot_steps(*kind) : 1;
  for (const size_t side : {size_t{1}, size_t{0}}) {
    const UOp& factor = product.src(1 - side);
    const UOp other = kind ? without_cast(factor) : UOp(factor);
    const Packable value = packable(reduce, side, kind.has_value(), target, varies);
    Operand operand(value.elements, axes, target, word, product.dtype().bytes(), uses);
    const auto packed = operand.packed(other, is_constant);
    if (!packed) continue;
    std::vector<UOp> src{product.src(0), product.src(1)};
    src[side] = value.over(*packed, product.dtype());
    return product.graph().make(Op::Mul, std::move(src));
  }
  return std::nullopt;
}

bool does_vary(const UOp& u, const std::vector<uint8_t>& varies) {
  return u.id() < varies.size() && varies[u.id()];
}

// Whether a value is the product of two that are computed, with elementwise work on it: its lanes
// run along its last axis.
bool is_product_of_inputs(UOp u, const std::vector<uint8_t>& varies) {
  while (!has_memory(u)) {
    if (u.op() == Op::ReduceAxis) {
      const UOp& product = u.src(0);
      return u.reduce_arg().op == Op::Add && product.op() == Op::Mul &&
             does_vary(product.src(0), varies) && does_vary(product.src(1), varies);
    }
    if (!has(u.op(), kElementwise) && u.op() != Op::Reshape) return false;
    const auto next =
        std::ranges::find_if(u.src(), [&](const UOp& s) { return does_vary(s, varies); });
    if (next == u.src().end()) return false;
    u = UOp(*next);
  }
  return false;
}

// A constant that such a product meets and that lies in another order, in the product's; none if it
// is no constant, or small.
std::optional<UOp> in_order(const UOp& value, const std::vector<uint8_t>& is_constant) {
  const auto stored = as_view(value, is_constant);
  if (!stored || stored->base.id() >= is_constant.size() || !is_constant[stored->base.id()] ||
      !stored->view.offset.is_const() || !all_const(stored->view.shape))
    return std::nullopt;
  const View& view = stored->view;
  ViewArg elements{{}, {}, view.offset.value()};
  Shape narrow(view.shape.size(), 1);
  int64_t count = 1;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (!view.strides[i].is_const()) return std::nullopt;
    if (view.shape[i].is(1) || view.strides[i].is(0)) continue;
    narrow[i] = view.shape[i];
    count *= view.shape[i].value();
    elements.shape.push_back(view.shape[i].value());
    elements.strides.push_back(view.strides[i].value());
  }
  if (count < kElementsMin || view.strides.back().is(0) || view.strides.back().is(1))
    return std::nullopt;
  Graph& graph = value.graph();
  const UOp given = graph.make(Op::AsStrided, {stored->base}, std::move(elements));
  const UOp ordered = graph.make(Op::Contiguous, {given});
  return make_expand(make_reshape(ordered, narrow), view.shape);
}

// Elementwise work on a product, with constants in the product's order; `before` is the same as it
// was given.
UOp with_constants_in_order(const UOp& before, const UOp& now,
                            const std::vector<uint8_t>& is_constant,
                            const std::vector<uint8_t>& varies) {
  std::vector<UOp> src(now.src().begin(), now.src().end());
  bool changed = false;
  for (size_t i = 0; i < src.size(); ++i) {
    if (does_vary(before.src(i), varies)) continue;
    if (const auto ordered = in_order(src[i], is_constant)) {
      src[i] = *ordered;
      changed = true;
    }
  }
  // Asked last: it walks far down, and few nodes have such a constant.
  if (!changed || std::ranges::none_of(
                      before.src(), [&](const UOp& s) { return is_product_of_inputs(s, varies); }))
    return now;
  return now.graph().make(now.op(), std::move(src), now.arg(), now.dtype());
}

// Of all constants that the graph reads: whether they stay in a cache from one run to the next.
double bytes_of_constants(std::span<const UOp> roots, const std::vector<uint8_t>& is_constant) {
  double bytes = 0;
  for (const UOp& u : topological(roots, has_memory)) {
    if (!has_memory(u) || u.id() >= is_constant.size() || !is_constant[u.id()]) continue;
    bytes += static_cast<double>(u.dtype().bytes()) * elements_at_most(u);
  }
  return bytes;
}

}  // namespace

ChangedGraph pack_constants(std::span<const UOp> roots, const Machine& target,
                            const std::vector<uint8_t>& is_constant,
                            const std::vector<uint8_t>& varies) {
  Uses uses{bytes_of_constants(roots, is_constant)};
  const ScanBodies bodies(topological(roots, has_memory), roots);
  return rebuild_with_origins(roots, has_memory, [&](const UOp& node, const UOp& now) {
    if (has_memory(node)) return now;
    if (has(now.op(), kElementwise) && now.src().size() > 1)
      return with_constants_in_order(node, now, is_constant, varies);
    if (now.op() != Op::ReduceAxis || now.reduce_arg().op != Op::Add) return now;
    const ScanLoop* body = bodies.of(node);
    uses.in_scan = body && !body->is_branch;
    uses.often = uses.in_scan && upper_bound(body->count) >= kLoopStepsMin;
    const auto product = packed_product(now, target, is_constant, varies, uses);
    return product ? make_reduce(*product, Op::Add, now.reduce_arg().axes) : now;
  });
}

}  // namespace tiny
