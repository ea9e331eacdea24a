#include "schedule/lower_winograd.h"

#include <array>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "ir/build.h"

namespace tiny {

namespace {

using Values = std::vector<UOp>;

UOp number_like(const UOp& x, double value) {
  return x.graph().constant(x.dtype(), value);
}

// x * factor + rest, rounded once.
UOp sum(const UOp& rest, const UOp& x, double factor) {
  return fma(x, number_like(x, factor), rest);
}

// The finite points of interpolation, pairs a and -a behind 0; the last of all is infinity.
std::span<const double> finite_points(int64_t points) {
  static constexpr std::array<double, 7> kAll{0, 1, -1, 2, -2, 0.5, -0.5};
  return std::span(kAll).first(static_cast<size_t>(points) - 1);
}

using Polynomial = std::vector<double>;  // by powers

Polynomial times(const Polynomial& p, double zero) {
  Polynomial out(p.size() + 1);
  for (size_t i = 0; i < p.size(); ++i) {
    out[i + 1] += p[i];
    out[i] -= zero * p[i];
  }
  return out;
}

// That has its zeros at the finite points, but for those from `first` on, `count` of them.
Polynomial with_zeros(int64_t points, size_t first, size_t count) {
  const std::span<const double> all = finite_points(points);
  Polynomial out{1};
  for (size_t i = 0; i < all.size(); ++i)
    if (i < first || i >= first + count) out = times(out, all[i]);
  return out;
}

// The sum of x with these factors.  Terms that need no product come first, of high powers; what is
// scaled is added to something, so that the two become one operation.
UOp combined(const Polynomial& factors, const Values& x) {
  UOp out;
  for (const double unit : {1.0, -1.0})
    for (size_t i = factors.size(); i-- > 0;)
      if (factors[i] == unit)
        out = !out ? (unit < 0 ? neg(x[i]) : x[i]) : unit < 0 ? sub(out, x[i]) : add(out, x[i]);
  for (size_t i = factors.size(); i-- > 0;) {
    const double f = factors[i];
    if (f == 0 || std::abs(f) == 1) continue;
    out = out ? sum(out, x[i], f) : mul(x[i], number_like(x[i], f));
  }
  return out;
}

// Where two results are the even powers' sum, and `a` times the odd powers', added and subtracted.
void add_pair(const Polynomial& even, const Polynomial& odd, double a, const Values& x,
              Values& to) {
  const UOp e = combined(even, x), o = combined(odd, x);
  to.push_back(a == 1 ? add(e, o) : sum(e, o, a));
  to.push_back(a == 1 ? sub(e, o) : sum(e, o, -a));
}

// B^T d: by point the polynomial that is zero at all others.  Without the factors of
// `filter_scale`, so that all sums but those of multiples are exact to a rounding.
Values input_points(const Values& d) {
  const auto points = static_cast<int64_t>(d.size());
  const auto padded = [&](Polynomial p) {
    p.resize(d.size());
    return p;
  };
  Values out{combined(padded(with_zeros(points, 0, 1)), d)};
  for (size_t i = 1; i + 1 < d.size(); i += 2) {
    // With neither a nor -a: odd.
    const Polynomial odd = with_zeros(points, i, 2);
    Polynomial even = odd;
    even.insert(even.begin(), 0);
    add_pair(padded(even), padded(odd), finite_points(points)[i], d, out);
  }
  out.push_back(combined(with_zeros(points, 0, 0), d));
  return out;
}

// The polynomial with these coefficients at each point.
Values at_points(const Values& x, int64_t points) {
  Values out{x.front()};
  for (size_t i = 1; i + 1 < static_cast<size_t>(points); i += 2) {
    const double a = finite_points(points)[i];
    Polynomial even(x.size()), odd(x.size());
    double power = 1;  // of a * a
    for (size_t k = 0; k < x.size(); ++k) {
      (k % 2 == 0 ? even : odd)[k] = power;
      if (k % 2 == 1) power *= a * a;
    }
    add_pair(even, odd, a, x, out);
  }
  out.push_back(x.back());
  return out;
}

// The sums of what points give to each of `count` coefficients.
Values of_points(const Values& m, size_t count) {
  const auto points = static_cast<int64_t>(m.size());
  Values sums{m.front()}, differences{m.front()};
  for (size_t i = 1; i + 1 < m.size(); i += 2) {
    sums.push_back(add(m[i], m[i + 1]));
    differences.push_back(sub(m[i], m[i + 1]));
  }
  sums.push_back(m.back());
  differences.push_back(m.back());
  Values out;
  for (size_t k = 0; k < count; ++k) {
    Polynomial factors(sums.size());
    factors.front() = k == 0 ? 1 : 0;
    factors.back() = k + 1 == count ? 1 : 0;
    for (size_t i = 1; i + 1 < sums.size(); ++i)
      factors[i] = std::pow(finite_points(points)[2 * i - 1], static_cast<double>(k));
    out.push_back(combined(factors, k % 2 == 0 ? sums : differences));
  }
  return out;
}

// B d of two tiles side by side, the places of the second: what points give to the coefficients of
// the polynomials of `input_points`, those behind `count` of the tile before.
Values of_tiles(const Values& d, size_t count) {
  const size_t points = d.size() / 2;
  const int64_t of_tile = std::ssize(d) / 2;
  std::vector<Polynomial> each{with_zeros(of_tile, 0, 1)};
  Values x;
  for (size_t i = 1; i + 1 < points; i += 2) {
    const double a = finite_points(of_tile)[i];
    Polynomial odd = with_zeros(of_tile, i, 2);
    each.push_back(odd);
    each.back().insert(each.back().begin(), 0);
    for (double& factor : odd) factor *= a;
    each.push_back(odd);
  }
  each.push_back(with_zeros(of_tile, 0, 0));
  for (const size_t first : {size_t{0}, points}) {
    x.push_back(d[first]);
    for (size_t i = first + 1; i + 1 < first + points; i += 2) {
      x.push_back(add(d[i], d[i + 1]));
      x.push_back(sub(d[i], d[i + 1]));
    }
    x.push_back(d[first + points - 1]);
  }
  Values out;
  for (size_t k = 0; k < count; ++k) {
    Polynomial factors;
    for (const size_t at : {k + count, k})
      for (const Polynomial& p : each) factors.push_back(at < p.size() ? p[at] : 0);
    out.push_back(combined(factors, x));
  }
  return out;
}

// What the polynomial of a point's row of B^T is at the point: G has its inverse.
double filter_scale(size_t point, int64_t points) {
  const std::span<const double> all = finite_points(points);
  double product = 1;
  for (size_t i = 0; point < all.size() && i < all.size(); ++i)
    if (i != point) product *= all[point] - all[i];
  return 1 / product;
}

Values along(const WinogradTransform& transform, const Values& operands) {
  switch (transform.part) {
    case WinogradPart::Input:
      return input_points(operands);
    case WinogradPart::Filter:
    case WinogradPart::Slopes:
      return at_points(operands, transform.tile.points());
    case WinogradPart::Output:
    case WinogradPart::FilterSlopes:
      return of_points(operands, static_cast<size_t>(transform.results()));
    case WinogradPart::InputSlopes:
      return of_tiles(operands, static_cast<size_t>(transform.results()));
  }
  return {};
}

// The value whose number the position is: a tree of choices.
UOp chosen(std::span<const UOp> values, const UOp& position, int64_t first = 0) {
  if (values.size() == 1) return values.front();
  const size_t half = values.size() / 2;
  const int64_t middle = first + static_cast<int64_t>(half);
  const UOp is_before = elementwise(Op::Less, {position, position.graph().integer(middle)});
  return where(is_before, chosen(values.first(half), position, first),
               chosen(values.subspan(half), position, middle));
}

}  // namespace

UOp winograd_value(const WinogradTransform& transform, std::span<const UOp> operands,
                   const UOp& row, const UOp& column) {
  const auto count = static_cast<size_t>(transform.operands());
  invariant(operands.size() == count * count, "a tile has its operands");
  const int64_t points = transform.tile.points();
  const auto scaled = [&](const UOp& x, size_t i, size_t j) {
    const double scale = filter_scale(i, points) * filter_scale(j, points);
    return scale == 1 ? x : mul(x, number_like(x, scale));
  };
  std::vector<Values> rows(static_cast<size_t>(transform.results()));
  for (size_t j = 0; j < count; ++j) {
    Values line;
    for (size_t i = 0; i < count; ++i) {
      const UOp& x = operands[i * count + j];
      line.push_back(transform.part == WinogradPart::FilterSlopes ? scaled(x, i, j) : x);
    }
    const Values results = along(transform, line);
    for (size_t i = 0; i < results.size(); ++i) rows[i].push_back(results[i]);
  }
  Values stacked;
  for (size_t i = 0; i < rows.size(); ++i) {
    Values results = along(transform, rows[i]);
    if (transform.part == WinogradPart::Filter)
      for (size_t j = 0; j < results.size(); ++j) results[j] = scaled(results[j], i, j);
    stacked.push_back(chosen(results, column));
  }
  return chosen(stacked, row);
}

int64_t winograd_ops(const WinogradTransform& transform) {
  // A result along one axis is a sum of about two operations, and each of a tile is chosen.
  return transform.results() *
         (2 * (transform.operands() + transform.results()) + transform.results());
}

}  // namespace tiny
