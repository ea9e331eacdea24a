#include "schedule/rewrite/onehot.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/affine.h"
#include "ir/build.h"
#include "rules/symbolic.h"
#include "schedule/schedule.h"
#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

namespace {

// How far a pattern may reach.
constexpr int kStepsMax = 200;

// Whether every element is this number.
bool is_number(UOp node, int64_t value) {
  while (node.op() == Op::Reshape || node.op() == Op::Expand) node = UOp(node.src(0));
  return node.is_const() &&
         double_of(node.dtype(), node.const_bits()) == static_cast<double>(value);
}

// Whether `node` may be 1 where two integers are equal and 0 elsewhere: a quick look without
// indices.
bool looks_like_mask(UOp node) {
  for (int step = 0; step < kStepsMax && !has_memory(node); ++step) {
    const bool chooses =
        node.op() == Op::Where && is_number(node.src(1), 1) && is_number(node.src(2), 0);
    if (!has(node.op(), kMovement) && node.op() != Op::Cast && !chooses) break;
    node = UOp(node.src(0));
  }
  return !has_memory(node) && node.op() == Op::Equal && node.src(0).dtype().is_int();
}

bool looks_like_onehot(const UOp& reduce) {
  const UOp& body = reduce.src(0);
  if (reduce.reduce_arg().op != Op::Add || has_memory(body)) return false;
  if (body.op() == Op::Mul) return looks_like_mask(body.src(0)) || looks_like_mask(body.src(1));
  return body.op() == Op::Where && is_number(body.src(2), 0) && looks_like_mask(body.src(0));
}

// The mask of a product: equal(side, other) seen through movement ops.
struct Mask {
  UOp position;  // the side that counts along the reduced axis, plus `offset`
  UOp index;     // the other side, as a node of the product's shape
  int64_t offset = 0;
};

class Matcher {
 public:
  explicit Matcher(const UOp& reduce)
      : node_(reduce), graph_(reduce.graph()), shape_(shape_of(reduce.src(0))) {
    for (size_t i = 0; i < shape_.size(); ++i)
      ranges_.push_back(graph_.make(Op::Range, {shape_[i].uop(graph_)}, static_cast<int64_t>(i)));
  }

  // The replacement; no node if the pattern is not there.
  UOp run() {
    if (!all_const(shape_)) return {};
    for (const Dim& d : shape_)
      if (d.is(0)) return {};
    const UOp& body = node_.src(0);
    if (body.op() == Op::Mul) {
      for (const size_t side : {size_t{0}, size_t{1}})
        if (UOp out = replaced(body.src(side), body.src(1 - side))) return out;
    }
    if (body.op() == Op::Where && is_number(body.src(2), 0))
      return replaced(body.src(0), body.src(1));
    return {};
  }

 private:
  UOp replaced(const UOp& mask_node, const UOp& data) {
    for (int64_t axis : node_.reduce_arg().axes)
      if (const auto mask = find_mask(mask_node, static_cast<size_t>(axis)))
        return gathered(*mask, data, static_cast<size_t>(axis));
    return {};
  }

  std::optional<Mask> find_mask(const UOp& start, size_t axis) {
    std::vector<UOp> moves;
    std::vector<UOp> index = ranges_;
    UOp node = start;
    for (int step = 0; step < kStepsMax; ++step) {
      if (has_memory(node)) return std::nullopt;
      if (has(node.op(), kMovement)) {
        if (!move(node, index)) return std::nullopt;
        moves.push_back(node);
        node = UOp(node.src(0));
      } else if (node.op() == Op::Cast) {
        node = UOp(node.src(0));
      } else if (node.op() == Op::Where && is_number(node.src(1), 1) && is_number(node.src(2), 0)) {
        node = UOp(node.src(0));
      } else {
        break;
      }
    }
    if (node.op() != Op::Equal || !node.src(0).dtype().is_int()) return std::nullopt;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const auto value = value_at(node.src(side), index, kStepsMax);
      if (!value) continue;
      const auto sum = affine(simplify_(*value));
      if (!sum || sum->terms.size() != 1 || !(sum->terms[0].atom == ranges_[axis]) ||
          sum->terms[0].coefficient != 1)
        continue;
      // The same movement on the other side alone.
      UOp other = node.src(1 - side);
      for (size_t i = moves.size(); i-- > 0;)
        other = graph_.make(moves[i].op(), {other}, moves[i].arg());
      if (depends_on(other)[axis]) continue;
      return Mask{node.src(side), other, sum->constant};
    }
    return std::nullopt;
  }

  // Takes `index` below a movement op; false if padding or memory layout stands in the way.
  bool move(const UOp& node, std::vector<UOp>& index) {
    if (node.op() == Op::AsStrided || node.src().size() != 1) return false;
    std::vector<UOp> conditions;
    index = apply_movement_op(node, index, conditions);
    for (UOp& e : index) e = simplify_(e);
    return conditions.empty();
  }

  // An integer made of iotas and constants, as an expression of the ranges.
  std::optional<UOp> value_at(UOp node, std::vector<UOp> index, int steps) {
    for (; steps > 0; --steps) {
      if (has(node.op(), kMovement)) {
        if (!move(node, index)) return std::nullopt;
        node = UOp(node.src(0));
      } else if (node.op() == Op::Cast && node.src(0).dtype().is_int()) {
        node = UOp(node.src(0));
      } else {
        break;
      }
    }
    if (node.op() == Op::Iota) return index[0];
    if (node.is_const() && node.dtype().is_int()) return graph_.integer(node.const_int());
    if (node.op() != Op::Add || steps <= 0) return std::nullopt;
    const auto a = value_at(node.src(0), index, steps / 2);
    const auto b = value_at(node.src(1), index, steps / 2);
    if (!a || !b) return std::nullopt;
    return add(*a, *b);
  }

  // The axes that the value of `node`, of the product's shape, may depend on.
  std::vector<uint8_t> depends_on(const UOp& node) {
    std::vector<uint8_t> axes(shape_.size());
    struct Visit {
      UOp node;
      std::vector<UOp> index;
    };
    std::vector<Visit> stack{{node, ranges_}};
    for (int step = 0; !stack.empty(); ++step) {
      if (step == kStepsMax) return std::vector<uint8_t>(shape_.size(), 1);
      Visit top = std::move(stack.back());
      stack.pop_back();
      const bool goes_on = !has_memory(top.node);
      if (goes_on && has(top.node.op(), kElementwise)) {
        for (const UOp& s : top.node.src()) stack.push_back({s, top.index});
        continue;
      }
      std::vector<UOp> below = top.index;
      if (goes_on && has(top.node.op(), kMovement) && move(top.node, below)) {
        stack.push_back({top.node.src(0), std::move(below)});
        continue;
      }
      for (const UOp& u : topological(top.index))
        for (size_t i = 0; i < ranges_.size(); ++i)
          if (u == ranges_[i]) axes[i] = 1;
    }
    return axes;
  }

  // `node` with the axes that are not marked cut to their first element.
  UOp cut(const UOp& node, const std::vector<uint8_t>& kept) {
    Shape end = shape_;
    for (size_t i = 0; i < end.size(); ++i)
      if (!kept[i]) end[i] = 1;
    return make_shrink(node, Shape(end.size(), Dim(0)), end);
  }

  UOp number_like(const UOp& node, int64_t value) {
    const UOp one = make_reshape(graph_.constant_int(node.dtype(), value),
                                 Shape(shape_of(node).size(), Dim(1)));
    return make_expand(one, shape_of(node));
  }

  // Every axis in one of four groups; data is [shared.. axis, its own..], the index [shared.., its
  // own..].
  struct Groups {
    Ints shared, of_index, of_data, none;
  };

  int64_t size_of(const Ints& axes) const {
    int64_t n = 1;
    for (int64_t a : axes) n *= shape_[static_cast<size_t>(a)].value();
    return n;
  }

  static UOp arranged(const UOp& node, std::initializer_list<Ints> groups, const Ints& shape) {
    Ints order;
    for (const Ints& group : groups) order.insert(order.end(), group.begin(), group.end());
    return make_reshape(make_permute(node, order), to_shape(shape));
  }

  UOp gathered(const Mask& mask, const UOp& data, size_t axis) {
    std::vector<uint8_t> by_index = depends_on(mask.index);
    std::vector<uint8_t> by_data = depends_on(data);
    by_data[axis] = 1;
    Groups g;
    for (size_t i = 0; i < shape_.size(); ++i) {
      if (i == axis) continue;
      const auto a = static_cast<int64_t>(i);
      (by_index[i] && by_data[i] ? g.shared
       : by_index[i]             ? g.of_index
       : by_data[i]              ? g.of_data
                                 : g.none)
          .push_back(a);
    }
    const int64_t n = shape_[axis].value();
    const Ints own{static_cast<int64_t>(axis)};
    const int64_t rows = size_of(g.shared);
    const UOp table = arranged(cut(data, by_data), {g.shared, own, g.of_data, g.of_index, g.none},
                               {rows * n, size_of(g.of_data)});
    // As it is compared where no number can be too large: longer ones would have fewer lanes.
    const bool is_short = mask.index.dtype() == kInt32 && mask.offset == 0 && n <= INT32_MAX;
    const UOp exact = cast(cut(mask.index, by_index), is_short ? kInt32 : kInt64);
    const UOp wanted = add(exact, number_like(exact, -mask.offset));
    const UOp inside = logical_and(less_equal(number_like(wanted, 0), wanted),
                                   less(wanted, number_like(wanted, n)));
    // Clamped, so that the read is known to be in bounds.
    const UOp safe = maximum(minimum(wanted, number_like(wanted, n - 1)), number_like(wanted, 0));
    UOp index = arranged(cast(safe, kInt64), {g.shared, g.of_index, own, g.of_data, g.none},
                         {rows, size_of(g.of_index)});
    if (!g.shared.empty()) {
      const UOp row = make_reshape(make_iota(graph_, rows, kInt64), {rows, 1});
      const UOp first = mul(make_expand(row, shape_of(index)), number_like(index, n));
      index = add(first, index);
    }
    const UOp values = make_gather(table, index, 0);  // [shared, of index, of data]
    return placed(values, inside, g, axis);
  }

  // The gathered values in the reduction's order of axes, 0 where the index is outside.
  UOp placed(const UOp& values, const UOp& inside, const Groups& g, size_t axis) {
    Ints order;
    for (const Ints* group : {&g.shared, &g.of_index, &g.of_data})
      order.insert(order.end(), group->begin(), group->end());
    Ints sizes;
    for (int64_t a : order) sizes.push_back(shape_[static_cast<size_t>(a)].value());
    for (int64_t a : g.none) order.push_back(a);
    order.push_back(static_cast<int64_t>(axis));
    sizes.resize(order.size(), 1);
    Ints back(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    const UOp in_place = make_permute(make_reshape(values, to_shape(sizes)), back);
    const UOp chosen =
        where(make_expand(inside, shape_of(in_place)), in_place, number_like(in_place, 0));
    Shape full = shape_;
    full[axis] = 1;
    Ints rest;
    for (int64_t a : node_.reduce_arg().axes)
      if (a != static_cast<int64_t>(axis)) rest.push_back(a);
    return make_reduce(make_expand(chosen, full), Op::Add, rest);
  }

  UOp node_;
  Graph& graph_;
  Shape shape_;
  std::vector<UOp> ranges_;
  IndexSimplifier simplify_;
};

}  // namespace

ChangedGraph onehot_to_gather(std::span<const UOp> roots) {
  const auto matches = [](const UOp& u) {
    return u.op() == Op::ReduceAxis && !has_memory(u) && looks_like_onehot(u);
  };
  if (std::ranges::none_of(topological(roots, has_memory), matches)) return unchanged(roots);
  return rebuild_with_origins(roots, has_memory, [&](const UOp& node, const UOp& now) {
    if (has_memory(node) || !matches(now)) return now;
    const UOp read = Matcher(now).run();
    return read ? read : now;
  });
}

}  // namespace tiny
