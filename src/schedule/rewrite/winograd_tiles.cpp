#include "schedule/rewrite/winograd_tiles.h"

#include <array>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/build.h"
#include "shape/shape.h"

namespace tiny {

namespace {

using Values = std::vector<UOp>;

// Numbers in the shape of the values of one transform, each made once.
class Numbers {
 public:
  explicit Numbers(const UOp& like) : like_(like), shape_(shape_of(like)) {}

  UOp times(const UOp& x, double factor) {
    UOp& known = factors_[factor];
    if (!known) known = repeated(like_.graph().constant(like_.dtype(), factor));
    return mul(x, known);
  }

  // Whether the position along an axis is below `end`.
  UOp is_before(size_t axis, int64_t end) {
    UOp& known = conditions_[{axis, end}];
    if (known) return known;
    Shape narrow(shape_.size(), Dim(1));
    narrow[axis] = shape_[axis];
    const UOp iota = make_iota(like_.graph(), shape_[axis], kInt64);
    const UOp position = make_expand(make_reshape(iota, narrow), shape_);
    return known = less(position, repeated(like_.graph().constant_int(kInt64, end)));
  }

 private:
  UOp repeated(const UOp& number) const {
    return make_expand(make_reshape(number, Shape(shape_.size(), Dim(1))), shape_);
  }

  UOp like_;
  Shape shape_;
  std::map<double, UOp> factors_;
  std::map<std::pair<size_t, int64_t>, UOp> conditions_;
};

// The transforms along one axis.  Terms that two results share are one node each; what is scaled is
// added to something, so that the two become one operation.
Values input_points(const Values& d, Numbers& numbers) {
  const auto times = [&](const UOp& x, double factor) { return numbers.times(x, factor); };
  if (d.size() == 4) return {sub(d[0], d[2]), add(d[1], d[2]), sub(d[2], d[1]), sub(d[1], d[3])};
  const UOp even = add(d[4], times(d[2], -4));
  const UOp odd = add(d[3], times(d[1], -4));
  const UOp near = sub(d[4], d[2]);
  const UOp apart = sub(d[3], d[1]);
  return {add(add(d[4], times(d[2], -5)), times(d[0], 4)),
          add(even, odd),
          sub(even, odd),
          add(near, times(apart, 2)),
          add(near, times(apart, -2)),
          add(add(d[5], times(d[3], -5)), times(d[1], 4))};
}

// Without the factors of `filter_scale`, so that all sums but those of multiples are exact to a
// rounding.
Values filter_points(const Values& g, Numbers& numbers, int64_t points) {
  const UOp ends = add(g[0], g[2]);
  if (points == 4) return {g[0], add(ends, g[1]), sub(ends, g[1]), g[2]};
  const UOp far = add(g[0], numbers.times(g[2], 4));
  const UOp middle = numbers.times(g[1], 2);
  return {g[0], add(ends, g[1]), sub(ends, g[1]), add(far, middle), sub(far, middle), g[2]};
}

double filter_scale(int64_t point, int64_t points) {
  constexpr std::array<double, 4> kFour{1, 0.5, 0.5, 1};
  constexpr std::array<double, 6> kSix{1.0 / 4, -1.0 / 6, -1.0 / 6, 1.0 / 24, 1.0 / 24, 1};
  const auto i = static_cast<size_t>(point);
  return points == 4 ? kFour[i] : kSix[i];
}

Values output_values(const Values& m, Numbers& numbers) {
  const auto times = [&](const UOp& x, double factor) { return numbers.times(x, factor); };
  const UOp sum = add(m[1], m[2]);
  const UOp difference = sub(m[1], m[2]);
  if (m.size() == 4) return {add(m[0], sum), sub(difference, m[3])};
  const UOp far = add(m[3], m[4]);
  const UOp apart = sub(m[3], m[4]);
  return {add(add(m[0], sum), far), add(difference, times(apart, 2)), add(sum, times(far, 4)),
          add(add(difference, m[5]), times(apart, 8))};
}

// The value whose number the position along `axis` is: a tree of choices.
UOp chosen(std::span<const UOp> values, size_t axis, Numbers& numbers, int64_t first = 0) {
  if (values.size() == 1) return values.front();
  const size_t half = values.size() / 2;
  const int64_t middle = first + static_cast<int64_t>(half);
  return where(numbers.is_before(axis, middle), chosen(values.first(half), axis, numbers, first),
               chosen(values.subspan(half), axis, numbers, middle));
}

using Along = std::function<Values(const Values&, Numbers&)>;
using Finish = std::function<UOp(const UOp&, Numbers&, int64_t row, int64_t column)>;

// A transform along both axes of a grid of values, rows first; `finish` makes an element of the
// result of one in a row and a column, which are stacked along the axes `row` and `column`.
UOp both_ways(const std::vector<Values>& grid, const Along& along, size_t row, size_t column,
              const Finish& finish = {}) {
  Numbers numbers(grid.front().front());
  std::vector<Values> rows;  // [result][column of the grid]
  for (size_t j = 0; j < grid.front().size(); ++j) {
    Values values;
    for (const Values& line : grid) values.push_back(line[j]);
    const Values results = along(values, numbers);
    rows.resize(results.size());
    for (size_t i = 0; i < results.size(); ++i) rows[i].push_back(results[i]);
  }
  Values stacked;
  for (const Values& line : rows) {
    Values results = along(line, numbers);
    for (size_t j = 0; finish && j < results.size(); ++j)
      results[j] = finish(results[j], numbers, std::ssize(stacked), static_cast<int64_t>(j));
    stacked.push_back(chosen(results, column, numbers));
  }
  return chosen(stacked, row, numbers);
}

// The elements [begin, begin + count) of every axis.
UOp part(const UOp& x, const Ints& begin, const Ints& count) {
  Shape from;
  Shape to;
  for (size_t i = 0; i < begin.size(); ++i) {
    from.emplace_back(begin[i]);
    to.emplace_back(begin[i] + count[i]);
  }
  return make_shrink(x, from, to);
}

UOp viewed(const UOp& x, const Shape& narrow, const Shape& shape) {
  return make_expand(make_reshape(x, narrow), shape);
}

}  // namespace

UOp winograd_input(const UOp& x, WinogradTile tile) {
  const Ints size = const_dims(shape_of(x));
  const int64_t m = tile.outputs;
  const int64_t p = tile.points();
  const int64_t rows = size[1] / m - 1;
  const int64_t columns = size[2] / m - 1;
  invariant(size[1] == m * (rows + 1) && size[2] == m * (columns + 1), "whole tiles and one more");
  const UOp tiles = make_reshape(x, {size[0], rows + 1, m, columns + 1, m, size[3]});
  std::vector<Values> grid(static_cast<size_t>(p));
  for (int64_t i = 0; i < p; ++i)
    for (int64_t j = 0; j < p; ++j) {
      const UOp point =
          part(tiles, {0, i / m, i % m, j / m, j % m, 0}, {size[0], rows, 1, columns, 1, size[3]});
      grid[static_cast<size_t>(i)].push_back(viewed(point, {1, 1, size[0], rows, columns, size[3]},
                                                    {p, p, size[0], rows, columns, size[3]}));
    }
  return both_ways(grid, input_points, 0, 1);
}

UOp winograd_filter(const UOp& w, WinogradTile tile) {
  const Ints size = const_dims(shape_of(w));
  const int64_t p = tile.points();
  std::vector<Values> grid(3);
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 3; ++j) {
      const UOp tap = part(w, {i, j, 0, 0}, {1, 1, size[2], size[3]});
      grid[static_cast<size_t>(i)].push_back(make_expand(tap, {p, p, size[2], size[3]}));
    }
  const auto along = [p](const Values& g, Numbers& numbers) {
    return filter_points(g, numbers, p);
  };
  const auto scaled = [p](const UOp& x, Numbers& numbers, int64_t row, int64_t column) {
    const double scale = filter_scale(row, p) * filter_scale(column, p);
    return scale == 1 ? x : numbers.times(x, scale);
  };
  return both_ways(grid, along, 0, 1, scaled);
}

UOp winograd_product(const UOp& v, const UOp& u) {
  const Shape& tiles = shape_of(v);
  const Shape& filter = shape_of(u);
  const Shape all{tiles[0], tiles[1], tiles[2], tiles[3], tiles[4], filter[2], filter[3]};
  const UOp left = viewed(v, {tiles[0], tiles[1], tiles[2], tiles[3], tiles[4], 1, tiles[5]}, all);
  const UOp right = viewed(u, {filter[0], filter[1], 1, 1, 1, filter[2], filter[3]}, all);
  const UOp sum = make_reduce(mul(left, right), Op::Add, {6});
  return make_reshape(sum, {tiles[0], tiles[1], tiles[2], tiles[3], tiles[4], filter[2]});
}

UOp winograd_output(const UOp& m, WinogradTile tile) {
  const Ints size = const_dims(shape_of(m));
  const int64_t n = tile.outputs;
  std::vector<Values> grid(static_cast<size_t>(tile.points()));
  for (int64_t i = 0; i < tile.points(); ++i)
    for (int64_t j = 0; j < tile.points(); ++j) {
      const UOp point = part(m, {i, j, 0, 0, 0, 0}, {1, 1, size[2], size[3], size[4], size[5]});
      grid[static_cast<size_t>(i)].push_back(viewed(point,
                                                    {size[2], size[3], 1, size[4], 1, size[5]},
                                                    {size[2], size[3], n, size[4], n, size[5]}));
    }
  return make_reshape(both_ways(grid, output_values, 2, 4),
                      {size[2], size[3] * n, size[4] * n, size[5]});
}

}  // namespace tiny
