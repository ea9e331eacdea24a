#include "autograd/factor_sums.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/build.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"

namespace tiny {

namespace {

// How many times fewer steps are worth one more value in memory.
constexpr double kFewer = 4;

// One factor, as the sum sees it.
struct Factor {
  UOp value;
  std::vector<bool> same;  // the axes along which all its elements are one
  Ints summed;             // the reduced axes of its own, along which the other is the same
};

double elements_but(const Shape& shape, const std::vector<bool>& left_out) {
  double count = 1;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!left_out[i]) count *= static_cast<double>(shape[i].value());
  return count;
}

// Where what a movement moves has these axes of its result; none if it does more than to turn, to
// repeat and to leave out axes.
std::optional<std::vector<size_t>> places_below(const UOp& movement, std::vector<size_t> places) {
  const Op op = movement.op();
  if (op != Op::Permute && op != Op::Reshape && op != Op::Expand && op != Op::Shrink)
    return std::nullopt;
  for (size_t& place : places) {
    const std::optional<size_t> below = axis_below(movement, place);
    if (!below) return std::nullopt;
    place = *below;
  }
  return places;
}

// The value's sum along the axes, of its elements as they lie below movement: sums of the same rows
// are one node then, whichever way the rows came (a bias' gradient, and the sum of a product with
// the same rows).
UOp sum_along(const UOp& value, const Ints& axes) {
  const Shape& shape = shape_of(value);
  std::vector<size_t> long_axes;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!shape[i].is(1)) long_axes.push_back(i);
  UOp lying = value;
  std::vector<size_t> places = long_axes;
  // Each axis whole, and no other.
  const auto is_all = [&](const UOp& node, const std::vector<size_t>& at) {
    const Shape& from = shape_of(node);
    for (size_t k = 0; k < at.size(); ++k)
      if (!(from[at[k]] == shape[long_axes[k]])) return false;
    return product(from) == product(shape);
  };
  UOp node = value;
  for (auto below = places_below(node, places); below; below = places_below(node, *below)) {
    node = UOp(node.src(0));
    if (!is_all(node, *below)) continue;
    lying = node;
    places = *below;
  }
  if (lying == value || product(shape).is(0)) return make_reduce(value, Op::Add, axes);
  Shape dense;
  Ints dense_at;
  for (const Dim& n : shape_of(lying)) {
    dense_at.push_back(std::ssize(dense));
    if (!n.is(1)) dense.push_back(n);
  }
  Ints order, summed;
  Shape sums = shape;
  for (size_t k = 0; k < long_axes.size(); ++k) {
    order.push_back(dense_at[places[k]]);
    if (std::ranges::find(axes, static_cast<int64_t>(long_axes[k])) == axes.end()) continue;
    summed.push_back(order.back());
    sums[long_axes[k]] = 1;
  }
  const UOp sum = make_reduce(make_reshape(lying, dense), Op::Add, summed);
  return make_reshape(make_permute(sum, order), sums);
}

// Its sums along its own axes; `inner` is the product's shape without the axes that are `gone`.
UOp summed(const Factor& factor, const std::vector<bool>& gone, const Shape& inner) {
  if (factor.summed.empty()) return first_along(factor.value, gone);
  return make_expand(sum_along(first_along(factor.value, factor.same), factor.summed), inner);
}

}  // namespace

UOp with_factors_summed(const UOp& sum) {
  if (sum.op() != Op::ReduceAxis || !all_const(shape_of(sum.src(0)))) return sum;
  if (sum.src(0).op() != Op::Mul) return sum_along(sum.src(0), sum.reduce_arg().axes);
  const UOp& product = sum.src(0);
  const Shape& shape = shape_of(product);
  std::array<Factor, 2> factors;
  for (size_t k = 0; k < 2; ++k) {
    factors[k].value = product.src(k);
    for (size_t i = 0; i < shape.size(); ++i)
      factors[k].same.push_back(is_same_along(product.src(k), i));
  }
  Shape inner = shape;
  std::vector<bool> gone(shape.size());
  for (const int64_t axis : sum.reduce_arg().axes) {
    const auto i = static_cast<size_t>(axis);
    if (shape[i].is(1) || factors[0].same[i] == factors[1].same[i]) continue;
    factors[factors[0].same[i] ? 1 : 0].summed.push_back(axis);
    inner[i] = 1;
    gone[i] = true;
  }
  double steps = elements_but(shape, gone);
  for (const Factor& f : factors)
    if (!f.summed.empty()) steps += elements_but(shape, f.same);
  if (steps * kFewer > elements_but(shape, std::vector<bool>(shape.size()))) return sum;
  const UOp product_of_sums = mul(summed(factors[0], gone, inner), summed(factors[1], gone, inner));
  return make_reduce(product_of_sums, Op::Add, sum.reduce_arg().axes);
}

}  // namespace tiny
