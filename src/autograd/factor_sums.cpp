#include "autograd/factor_sums.h"

#include <algorithm>
#include <array>
#include <cstdint>
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

// Its sums along its own axes; `inner` is the product's shape without the axes that are `gone`.
UOp summed(const Factor& factor, const std::vector<bool>& gone, const Shape& inner) {
  if (factor.summed.empty()) return first_along(factor.value, gone);
  return make_expand(make_reduce(first_along(factor.value, factor.same), Op::Add, factor.summed),
                     inner);
}

}  // namespace

UOp with_factors_summed(const UOp& sum) {
  if (sum.op() != Op::ReduceAxis || sum.src(0).op() != Op::Mul || !all_const(shape_of(sum.src(0))))
    return sum;
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
