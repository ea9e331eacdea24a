#include "shape/view.h"

#include <algorithm>
#include <cstdlib>

#include "base/checked.h"
#include "base/error.h"
#include "ir/build.h"

namespace tiny {

View row_major(const Shape& shape) {
  return {shape, row_major_strides(shape), 0};
}

bool is_row_major(const View& view) {
  if (!view.offset.is(0)) return false;
  Dim expected = 1;
  for (size_t i = view.shape.size(); i-- > 0;) {
    if (view.shape[i].is(1)) continue;
    if (!(view.strides[i] == expected)) return false;
    expected = expected * view.shape[i];
  }
  return true;
}

namespace {

// Moves `i` and `o`, the ends of what is left of the axes `from` and `to`, over the fewest axes of
// equal size on both sides, at least one; false if no such groups are seen.
bool take_group(const Shape& from, const Shape& to, size_t& i, size_t& o) {
  Dim have = i > 0 ? from[--i] : Dim(1);
  Dim want = o > 0 ? to[--o] : Dim(1);
  while (!(have == want)) {
    // The side that divides the other one grows; of numbers, the smaller one.
    const bool numbers = have.is_const() && want.is_const();
    const bool smaller =
        numbers ? have.value() < want.value() : divide_exactly(want, have).has_value();
    if (smaller ? i == 0 : o == 0 || (!numbers && !divide_exactly(have, want))) return false;
    if (smaller)
      have = have * from[--i];
    else
      want = want * to[--o];
  }
  return true;
}

// Axes that are one run of memory merge; what is left must be cut at the new shape's borders.
std::optional<View> reshape_view(const View& view, const Shape& shape) {
  if (is_row_major(view)) return row_major(shape);
  const Shape& from = view.shape;
  const Shape& to = shape;
  const auto is_empty = [](const Dim& d) { return d.is(0); };
  if (std::any_of(from.begin(), from.end(), is_empty))
    return View{shape, row_major_strides(shape), view.offset};
  View out{shape, Shape(shape.size(), Dim(0)), view.offset};
  size_t i = from.size();
  size_t o = to.size();
  // From the innermost axis outwards: take groups of equal size on both sides.
  while (i > 0 || o > 0) {
    const size_t i_end = i;
    const size_t o_end = o;
    if (!take_group(from, to, i, o)) return std::nullopt;
    // The source axes [i, i_end) must be one run: stride of each = stride * size of the next.
    Dim inner = 0;
    bool any = false;
    Dim expected = 0;
    for (size_t a = i_end; a-- > i;) {
      if (from[a].is(1)) continue;
      if (any && !(view.strides[a] == expected)) return std::nullopt;
      if (!any) inner = view.strides[a];
      any = true;
      expected = view.strides[a] * view.shape[a];
    }
    Dim stride = inner;
    for (size_t a = o_end; a-- > o;) {
      out.strides[a] = to[a].is(1) ? Dim(0) : stride;
      stride = stride * shape[a];
    }
  }
  return out;
}

}  // namespace

std::optional<View> move_view(const View& view, Op op, const Shape& p) {
  const size_t rank = view.shape.size();
  View out = view;
  switch (op) {
    case Op::Reshape:
      return reshape_view(view, p);
    case Op::Expand:
      for (size_t i = 0; i < rank; ++i) {
        if (!(p[i] == view.shape[i])) out.strides[i] = 0;
        out.shape[i] = p[i];
      }
      return out;
    case Op::Permute:
      for (size_t i = 0; i < rank; ++i) {
        out.shape[i] = view.shape[static_cast<size_t>(p[i].value())];
        out.strides[i] = view.strides[static_cast<size_t>(p[i].value())];
      }
      return out;
    case Op::Shrink:
      for (size_t i = 0; i < rank; ++i) {
        out.offset = out.offset + p[i] * view.strides[i];
        out.shape[i] = p[rank + i] - p[i];
      }
      return out;
    case Op::Flip:
      for (const Dim& axis : p) {
        const auto i = static_cast<size_t>(axis.value());
        if (view.shape[i].is(0)) continue;
        out.offset = out.offset + (view.shape[i] - 1) * view.strides[i];
        out.strides[i] = view.strides[i] * -1;
      }
      return out;
    case Op::Unfold: {
      const size_t n = p.size() / 4;
      const auto first = static_cast<size_t>(p[0].value());
      const auto behind = static_cast<ptrdiff_t>(first + n);
      out.shape.insert(out.shape.begin() + behind, n, Dim(0));
      out.strides.insert(out.strides.begin() + behind, n, Dim(0));
      for (size_t i = 0; i < n; ++i) {
        const Dim* w = &p[1 + 4 * i];
        const Dim& step = view.strides[first + i];
        out.shape[first + i] = w[0];
        out.strides[first + i] = step * w[2];
        out.shape[first + n + i] = w[1];
        out.strides[first + n + i] = step * w[3];
      }
      return out;
    }
    case Op::Alias:
      return out;
    default:
      return std::nullopt;
  }
}

std::optional<StoredView> as_view(const UOp& node, const std::vector<uint8_t>& stored,
                                  const Layouts& layouts, std::span<const Node* const> except,
                                  const UOp** lowest) {
  const auto none_from = [&](const UOp& u) {
    if (lowest) *lowest = &u;
    return std::nullopt;
  };
  const auto is_stored = [&](const UOp& u) {
    return u.op() == Op::Buffer || u.op() == Op::After ||
           (u.id() < stored.size() && stored[u.id()] && !std::ranges::count(except, u.node()));
  };
  std::vector<const UOp*> chain;
  std::vector<UOp> before;
  const UOp* base = &node;
  while (!is_stored(*base)) {
    if (!has(base->op(), kMovement) || base->op() == Op::Pad) return none_from(*base);
    chain.push_back(base);
    append_read_before(*base, before);
    base = &base->src(0);
  }
  const auto layout = layouts.find(base->node());
  View view = layout == layouts.end() ? row_major(shape_of(*base)) : layout->second;
  for (size_t i = chain.size(); i-- > 0;) {
    const UOp& move = *chain[i];
    if (move.op() == Op::AsStrided) {
      if (!is_row_major(View{view.shape, view.strides, 0})) return none_from(move);
      const ViewArg& arg = move.view_arg();
      view = View{to_shape(arg.shape), to_shape(arg.strides), view.offset + arg.offset};
      continue;
    }
    auto moved = move_view(view, move.op(), movement_dims(move));
    if (!moved) return none_from(move);
    view = std::move(*moved);
  }
  return StoredView{*base, std::move(view), std::move(before)};
}

void append_read_before(const UOp& node, std::vector<UOp>& before) {
  if (node.op() == Op::Alias && alias_kind(node) == AliasKind::Later)
    before.insert(before.end(), node.src().begin() + 1, node.src().end());
}

bool is_nested(const View& view) {
  std::vector<size_t> axes;
  for (size_t i = 0; i < view.shape.size(); ++i)
    if (view.shape[i].value() > 1) axes.push_back(i);
  const auto step = [&](size_t axis) { return std::abs(view.strides[axis].value()); };
  std::sort(axes.begin(), axes.end(), [&](size_t a, size_t b) { return step(a) < step(b); });
  int64_t reach = 0;
  for (size_t axis : axes) {
    if (step(axis) <= reach) return false;
    reach += (view.shape[axis].value() - 1) * step(axis);
  }
  return true;
}

std::pair<int64_t, int64_t> extent(const View& view) {
  int64_t first = view.offset.value();
  int64_t last = first;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    const int64_t n = view.shape[i].value();
    if (n == 0) return {0, -1};
    const int64_t span = checked_mul(n - 1, view.strides[i].value(), "a view's extent");
    (span < 0 ? first : last) = checked_add(span < 0 ? first : last, span, "a view's extent");
  }
  return {first, last};
}

namespace {

// The index of an element among `from`, given its index among `to`: equal positions in row-major
// order.  Equal trailing and leading axes keep their own index, and so does every group of axes of
// equal size, so that indices stay affine where they can.
std::vector<UOp> reshape_index(const Shape& from, const Shape& to, const std::vector<UOp>& index,
                               Graph& graph) {
  std::vector<UOp> out(from.size());
  size_t i = from.size();
  size_t o = to.size();
  while (i > 0 || o > 0) {
    const size_t i_end = i;
    const size_t o_end = o;
    // Sizes that cannot be compared: all that is left is one group.
    if (!take_group(from, to, i, o)) i = o = 0;
    if (i_end - i == 1 && o_end - o == 1) {
      out[i] = index[o];
      continue;
    }
    UOp flat = graph.integer(0);
    Dim stride = 1;
    for (size_t a = o_end; a-- > o;) {
      flat = add(flat, mul(index[a], stride.uop(graph)));
      stride = stride * to[a];
    }
    UOp rest = flat;
    for (size_t a = i_end; a-- > i;) {
      if (from[a].is(1)) {
        out[a] = graph.integer(0);
        continue;
      }
      bool outermost = true;
      for (size_t b = i; b < a; ++b) outermost = outermost && from[b].is(1);
      // The outermost axis takes what is left, not its remainder: an index out of range stays so.
      out[a] = outermost ? rest : floor_mod(rest, from[a].uop(graph));
      if (!outermost) rest = floor_div(rest, from[a].uop(graph));
    }
  }
  return out;
}

// The index of an element of a value of this shape, given the index of a view of its row-major
// elements.
std::vector<UOp> strided_index(const Shape& from, const ViewArg& view,
                               const std::vector<UOp>& index, Graph& graph) {
  UOp at = graph.integer(view.offset);
  for (size_t i = 0; i < index.size(); ++i)
    at = add(at, mul(index[i], graph.integer(view.strides[i])));
  return reshape_index(from, {product(from)}, {at}, graph);
}

}  // namespace

std::vector<UOp> apply_movement_op(const UOp& node, const std::vector<UOp>& index,
                                   std::vector<UOp>& conditions) {
  Graph& graph = node.graph();
  const Shape& from = shape_of(node.src(0));
  if (node.op() == Op::Reshape) return reshape_index(from, shape_of(node), index, graph);
  if (node.op() == Op::AsStrided) return strided_index(from, node.view_arg(), index, graph);
  const Shape p = movement_dims(node);
  std::vector<UOp> out = index;
  switch (node.op()) {
    case Op::Expand:
      for (size_t i = 0; i < from.size(); ++i)
        if (!(from[i] == p[i])) out[i] = graph.integer(0);
      return out;
    case Op::Permute:
      for (size_t i = 0; i < p.size(); ++i) out[static_cast<size_t>(p[i].value())] = index[i];
      return out;
    case Op::Flip:
      for (const Dim& axis : p) {
        const auto i = static_cast<size_t>(axis.value());
        out[i] = add((from[i] - 1).uop(graph), mul(index[i], graph.integer(-1)));
      }
      return out;
    case Op::Shrink:
      for (size_t i = 0; i < from.size(); ++i) out[i] = add(index[i], p[i].uop(graph));
      return out;
    case Op::Pad:
      for (size_t i = 0; i < from.size(); ++i) {
        const Dim& before = p[i];
        const Dim& after = p[from.size() + i];
        if (before.is(0) && after.is(0)) continue;
        out[i] = add(index[i], (before * -1).uop(graph));
        if (!before.is(0)) conditions.push_back(less_equal(graph.integer(0), out[i]));
        if (!after.is(0)) conditions.push_back(less(out[i], from[i].uop(graph)));
      }
      return out;
    case Op::Unfold: {
      const size_t n = p.size() / 4;
      const auto first = static_cast<size_t>(p[0].value());
      const auto behind = out.begin() + static_cast<ptrdiff_t>(first + n);
      out.erase(behind, behind + static_cast<ptrdiff_t>(n));
      for (size_t i = 0; i < n; ++i) {
        const Dim* w = &p[1 + 4 * i];
        out[first + i] =
            add(mul(index[first + i], w[2].uop(graph)), mul(index[first + n + i], w[3].uop(graph)));
      }
      return out;
    }
    case Op::Alias:
      return out;
    default:
      invariant(false, "the node is a movement op with an index map");
  }
  return out;
}

}  // namespace tiny
