#include "schedule/lower_winograd.h"

#include <array>
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

// The transforms along one axis.  Terms that two results share are one node each; what is scaled is
// added to something, so that the two become one operation.
Values input_points(const Values& d) {
  if (d.size() == 4) return {sub(d[0], d[2]), add(d[1], d[2]), sub(d[2], d[1]), sub(d[1], d[3])};
  const UOp even = sum(d[4], d[2], -4);
  const UOp odd = sum(d[3], d[1], -4);
  const UOp near = sub(d[4], d[2]);
  const UOp apart = sub(d[3], d[1]);
  return {sum(sum(d[4], d[2], -5), d[0], 4),
          add(even, odd),
          sub(even, odd),
          sum(near, apart, 2),
          sum(near, apart, -2),
          sum(sum(d[5], d[3], -5), d[1], 4)};
}

// Without the factors of `filter_scale`, so that all sums but those of multiples are exact to a
// rounding.
Values filter_points(const Values& g, int64_t points) {
  const UOp ends = add(g[0], g[2]);
  if (points == 4) return {g[0], add(ends, g[1]), sub(ends, g[1]), g[2]};
  const UOp far = sum(g[0], g[2], 4);
  const UOp middle = mul(g[1], number_like(g[1], 2));
  return {g[0], add(ends, g[1]), sub(ends, g[1]), sum(far, g[1], 2), sub(far, middle), g[2]};
}

double filter_scale(size_t point, int64_t points) {
  constexpr std::array<double, 4> kFour{1, 0.5, 0.5, 1};
  constexpr std::array<double, 6> kSix{1.0 / 4, -1.0 / 6, -1.0 / 6, 1.0 / 24, 1.0 / 24, 1};
  return points == 4 ? kFour[point] : kSix[point];
}

Values output_values(const Values& m) {
  const UOp both = add(m[1], m[2]);
  const UOp difference = sub(m[1], m[2]);
  if (m.size() == 4) return {add(m[0], both), sub(difference, m[3])};
  const UOp far = add(m[3], m[4]);
  const UOp apart = sub(m[3], m[4]);
  return {add(add(m[0], both), far), sum(difference, apart, 2), sum(both, far, 4),
          sum(add(difference, m[5]), apart, 8)};
}

Values along(const WinogradTransform& transform, const Values& operands) {
  switch (transform.part) {
    case WinogradPart::Input:
      return input_points(operands);
    case WinogradPart::Filter:
      return filter_points(operands, transform.tile.points());
    case WinogradPart::Output:
      return output_values(operands);
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
  std::vector<Values> rows(static_cast<size_t>(transform.results()));
  for (size_t j = 0; j < count; ++j) {
    Values line;
    for (size_t i = 0; i < count; ++i) line.push_back(operands[i * count + j]);
    const Values results = along(transform, line);
    for (size_t i = 0; i < results.size(); ++i) rows[i].push_back(results[i]);
  }
  const int64_t points = transform.tile.points();
  Values stacked;
  for (size_t i = 0; i < rows.size(); ++i) {
    Values results = along(transform, rows[i]);
    for (size_t j = 0; transform.part == WinogradPart::Filter && j < results.size(); ++j)
      if (const double scale = filter_scale(i, points) * filter_scale(j, points); scale != 1)
        results[j] = mul(results[j], number_like(results[j], scale));
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
