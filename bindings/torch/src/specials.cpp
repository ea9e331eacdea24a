// Rows of special functions.  Each is calculated in float64, by series whose remainders are below
// its precision where they are used, and rounded once: PyTorch's own approximations have other last
// bits.
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>
#include <vector>

#include "pointwise.h"

namespace tiny_torch {

namespace {

using V = Value;
using Given = const Operands&;

constexpr double kPi = std::numbers::pi;
constexpr double kSqrt2 = std::numbers::sqrt2;
constexpr double kPerSqrtPi = std::numbers::inv_sqrtpi;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

V exact(double number) {
  return constant(TINY_FLOAT64, number);
}
V argument(Given o, size_t index = 0) {
  return cast(o[index], TINY_FLOAT64);
}
V size_of(const V& a) {
  return unary(TINY_ABS, a);
}
V is_below(const V& a, double limit) {
  return compare(TINY_LT, a, limit);
}
V is_whole(const V& a) {
  return compare(TINY_EQ, unary(TINY_FLOOR, a), a);
}
// c[0] + x * (c[1] + x * (..)).
V polynomial(std::span<const double> c, const V& x) {
  V sum = exact(c.back());
  for (size_t i = c.size() - 1; i-- > 0;) sum = sum * x + exact(c[i]);
  return sum;
}

// ---- The gamma function and its derivatives -----------------------------------------------------

// Where sums over an argument of at least so much follow from its powers: the argument is raised by
// as many steps before.
constexpr int kSteps = 9;
constexpr double kBernoulli[] = {1.0 / 6,  -1.0 / 30,       1.0 / 42, -1.0 / 30,
                                 5.0 / 66, -691.0 / 2730.0, 7.0 / 6,  -3617.0 / 510};

// Of x or 1 - x, whichever is at least a half; the other follows from it by a reflection.
V upper_half(const V& x) {
  return where(is_below(x, 0.5), 1.0 - x, x);
}

V log_gamma(Given o) {
  const V x = argument(o);
  const V y = upper_half(x);
  const V is_raised = is_below(y, kSteps);
  V product = exact(1);
  for (int i = 0; i < kSteps; ++i) product = product * (y + static_cast<double>(i));
  const V z = where(is_raised, y + static_cast<double>(kSteps), y);
  std::vector<double> c;
  for (size_t i = 0; i < std::size(kBernoulli); ++i) {
    const double n = 2 * static_cast<double>(i + 1);
    c.push_back(kBernoulli[i] / (n * (n - 1)));
  }
  const V sum = (z - 0.5) * unary(TINY_LOG, z) - z + 0.5 * std::log(2 * kPi) +
                polynomial(c, 1.0 / (z * z)) / z;
  const V at_y = sum - unary(TINY_LOG, where(is_raised, product, exact(1)));
  // The sine of what is left of the next whole number, which has all digits of it.
  const V rest = x - unary(TINY_ROUND, x);
  const V sine = size_of(unary(TINY_SIN, rest * kPi));
  const V made = where(is_below(x, 0.5), std::log(kPi) - unary(TINY_LOG, sine) - at_y, at_y);
  const V is_zero = compare(TINY_EQ, (x - 1) * (x - 2), 0);
  return where(compare(TINY_EQ, size_of(x), kInfinity), exact(kInfinity),
               where(is_zero, exact(0), made));
}

V digamma_above(const V& y) {
  V less = exact(0);
  for (int i = 0; i < kSteps; ++i) less = less + 1.0 / (y + static_cast<double>(i));
  const V z = y + static_cast<double>(kSteps);
  std::vector<double> c;
  for (size_t i = 0; i < std::size(kBernoulli); ++i)
    c.push_back(-kBernoulli[i] / (2 * static_cast<double>(i + 1)));
  const V square = 1.0 / (z * z);
  return unary(TINY_LOG, z) - 0.5 / z + polynomial(c, square) * square - less;
}
// The sum of (y + k)^-s over all k from 0 on, s above one.
V power_sum(double s, const V& y) {
  const auto power = [](const V& base, double exponent) {
    return binary(TINY_POW, base, exact(exponent));
  };
  V sum = exact(0);
  for (int i = 0; i < kSteps; ++i) sum = sum + power(y + static_cast<double>(i), -s);
  const V z = y + static_cast<double>(kSteps);
  std::vector<double> c;  // of z^-2, beside z^(-s - 1)
  double rising = s;
  double factorial = 2;
  for (size_t i = 0; i < std::size(kBernoulli); ++i) {
    c.push_back(kBernoulli[i] / factorial * rising);
    const double n = 2 * static_cast<double>(i + 1);
    rising *= (s + n - 1) * (s + n);
    factorial *= (n + 1) * (n + 2);
  }
  const V last = power(z, -s);
  return sum + last * (z / (s - 1) + 0.5 + polynomial(c, 1.0 / (z * z)) / z);
}
// The derivative of order n of cot(pi x), from that cotangent: each order is a polynomial of it.
V derivative_of_cotangent(int64_t n, const V& cotangent) {
  std::vector<double> c = {0, 1};
  for (int64_t k = 0; k < n; ++k) {
    std::vector<double> next(c.size() + 1);
    for (size_t i = 1; i < c.size(); ++i) {
      const double slope = -kPi * static_cast<double>(i) * c[i];
      next[i - 1] += slope;
      next[i + 1] += slope;
    }
    c = std::move(next);
  }
  return polynomial(c, cotangent);
}
V cotangent_of(const V& x) {
  const V angle = (x - unary(TINY_ROUND, x)) * kPi;
  return unary(TINY_COS, angle) / unary(TINY_SIN, angle);
}
V digamma_of(const V& x) {
  const V above = digamma_above(upper_half(x));
  const V made = where(is_below(x, 0.5), above - cotangent_of(x) * kPi, above);
  const V is_pole = logical_and(is_below(x, 0), is_whole(x));
  return where(compare(TINY_EQ, x, 0), -(1.0 / x), where(is_pole, exact(kNan), made));
}
V polygamma(Given o) {  // n, self
  const int64_t n = o.integer(0);
  TORCH_CHECK(n >= 0, "polygamma(n, x) does not support negative n.");
  const V x = argument(o);
  if (n == 0) return digamma_of(x);
  const double sign = n % 2 ? 1 : -1;
  const double order = static_cast<double>(n);
  const V above = power_sum(order + 1, upper_half(x)) * (sign * std::tgamma(order + 1));
  const V made = where(is_below(x, 0.5),
                       derivative_of_cotangent(n, cotangent_of(x)) * -kPi - above * sign, above);
  const V is_pole = logical_and(compare(TINY_LE, x, 0), is_whole(x));
  return where(compare(TINY_EQ, x, kInfinity), exact(0),
               where(is_pole, exact(sign * kInfinity), made));
}

// ---- The error function's complement ------------------------------------------------------------

// From here on the complement is a continued fraction; below, what is left of one has enough
// digits.
constexpr double kFractionFrom = 2.5;
constexpr int kFractionSteps = 40;

// exp(x^2) times the complement at x, from kFractionFrom on.
V scaled_fraction(const V& x) {
  V sum = x;
  for (int k = kFractionSteps; k > 0; --k) sum = x + 0.5 * k / sum;
  return kPerSqrtPi / sum;
}
V complement(const V& x) {
  const V far = scaled_fraction(x) * unary(TINY_EXP, -(x * x));
  return where(is_below(x, kFractionFrom), 1.0 - unary(TINY_ERF, x), far);
}
V scaled_complement(const V& x) {
  const V near = unary(TINY_EXP, x * x) * (1.0 - unary(TINY_ERF, x));
  return where(is_below(x, kFractionFrom), near, scaled_fraction(x));
}
V log_normal(Given o) {
  const V x = argument(o) * (1 / kSqrt2);
  const V below = unary(TINY_LOG, scaled_complement(-x) * 0.5) - x * x;
  return where(is_below(x, -1), below, unary(TINY_LOG1P, complement(x) * -0.5));
}

// An x of at least 0 whose erf(x)^2 is nearly 1 - exp(l): two digits of it.
V begun_inverse(const V& l) {
  constexpr double kShape = 0.147;
  const V half = l * 0.5 + 2 / (kPi * kShape);
  const V root = unary(TINY_SQRT, half * half - l * (1 / kShape));
  return unary(TINY_SQRT, l * (-1 / kShape) / (root + half));
}
// The next of Halley's steps to where a function that has erf's derivative is zero.
V nearer(const V& x, const V& found) {
  const V step = found * unary(TINY_EXP, x * x) * (0.5 / kPerSqrtPi);
  return x - step / (step * x + 1);
}
constexpr int kInverseSteps = 3;

V inverse_of_erf(Given o) {
  const V given = argument(o);
  const V y = size_of(given);
  V x = begun_inverse(unary(TINY_LOG1P, -(y * y)));
  for (int i = 0; i < kInverseSteps; ++i) x = nearer(x, unary(TINY_ERF, x) - y);
  x = where(compare(TINY_LT, y, 1), x,
            where(compare(TINY_EQ, y, 1), exact(kInfinity), exact(kNan)));
  return where(is_below(given, 0), -x, x);
}
V inverse_of_normal(Given o) {
  const V given = argument(o);
  const V p = binary(TINY_MIN, given, 1.0 - given);  // of the tail
  V x = begun_inverse(unary(TINY_LOG, p * 4 * (1.0 - p)));
  for (int i = 0; i < kInverseSteps; ++i) x = nearer(x, p * 2 - complement(x));
  x = where(compare(TINY_GT, p, 0), x * kSqrt2,
            where(compare(TINY_EQ, p, 0), exact(kInfinity), exact(kNan)));
  return where(is_below(given, 0.5), -x, x);
}

// ---- Bessel functions of an imaginary argument --------------------------------------------------

constexpr double kBesselFrom = 20;  // by powers of 1 / x; below, by those of x
constexpr int kBesselSeries = 48;
constexpr int kBesselTail = 25;

// exp(-|x|) times that of order 0 or 1 if `is_scaled`.
template <int order, bool is_scaled>
V bessel(Given o) {
  const V given = argument(o);
  const V x = size_of(given);
  const V quarter = x * x * 0.25;
  V near = exact(1);
  for (int k = kBesselSeries; k > 0; --k) near = near * quarter * (1.0 / (k * (k + order))) + 1;
  if (order == 1) near = near * x * 0.5;
  std::vector<double> c = {1};
  for (int k = 1; k < kBesselTail; ++k)
    c.push_back(c.back() * -(4 * order - (2 * k - 1) * (2 * k - 1)) / (8.0 * k));
  V far = polynomial(c, 1.0 / x) / unary(TINY_SQRT, x * (2 * kPi));
  if (is_scaled) near = near * unary(TINY_EXP, -x);
  // In two factors: the exponential alone is beyond the range sooner.
  const V half = unary(TINY_EXP, x * 0.5);
  if (!is_scaled) far = half * far * half;
  const V made = where(is_below(x, kBesselFrom), near, far);
  return order == 1 ? where(is_below(given, 0), -made, made) : made;
}

// ---- Others -------------------------------------------------------------------------------------

V angle(Given o) {
  const V pi = constant(o.dtype, kPi);
  const V made = where(compare(TINY_LT, o[0], 0), pi, constant(o.dtype, 0));
  return where(compare(TINY_NE, o[0], o[0]), o[0], made);
}
// The next number of the same dtype in the direction of another: the next pattern of bits.
V next_after(Given o) {
  const tiny_dtype bits = o.dtype == TINY_FLOAT64 ? TINY_INT64 : TINY_INT32;
  const double least = o.dtype == TINY_FLOAT64 ? std::numeric_limits<double>::denorm_min()
                                               : std::numeric_limits<float>::denorm_min();
  const V is_up = compare(TINY_GT, o[1], o[0]);
  const V grows = compare(TINY_EQ, is_up, compare(TINY_GT, o[0], 0));
  const V pattern = bitcast(o[0], bits);
  const V one = integer(bits, 1);
  const V next = bitcast(where(grows, pattern + one, pattern - one), o.dtype);
  const V smallest = constant(o.dtype, least);
  const V from_zero = where(is_up, smallest, -smallest);
  const V made = where(compare(TINY_EQ, o[0], 0), from_zero, next);
  const V is_nan = binary(TINY_OR, compare(TINY_NE, o[0], o[0]), compare(TINY_NE, o[1], o[1]));
  return where(is_nan, o[0] + o[1], where(compare(TINY_EQ, o[0], o[1]), o[1], made));
}

constexpr PointwiseRow kSpecials[] = {
    {"lgamma", Types::Float, log_gamma},
    {"digamma", Types::Float, [](Given o) { return digamma_of(argument(o)); }},
    {"polygamma", Types::Float, polygamma},
    {"erfc", Types::Float, [](Given o) { return complement(argument(o)); }},
    {"special_erfcx", Types::Float, [](Given o) { return scaled_complement(argument(o)); }},
    {"special_log_ndtr", Types::Float, log_normal},
    {"erfinv", Types::Float, inverse_of_erf},
    {"special_ndtri", Types::Float, inverse_of_normal},
    {"i0", Types::Float, bessel<0, false>},
    {"special_i0e", Types::Float, bessel<0, true>},
    {"special_i1", Types::Float, bessel<1, false>},
    {"special_i1e", Types::Float, bessel<1, true>},
    {"angle", Types::Float, angle},
};
constexpr PointwiseRow kBits[] = {
    {"nextafter", Types::Same, next_after},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add_pointwise(m, kSpecials, Steps::Several);
  add_pointwise(m, kBits, Steps::One);
}

}  // namespace

}  // namespace tiny_torch
