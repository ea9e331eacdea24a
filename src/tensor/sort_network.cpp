#include "tensor/sort_network.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny {

namespace {

// Vectors of keys that a kernel exchanges among each other in registers.
constexpr int64_t kRowsMax = 8;

template <typename F>
Keys each(const Keys& keys, F f) {
  Keys out;
  for (const Tensor& key : keys) out.push_back(f(key));
  return out;
}

// The greater to `a`, the lesser to `b`.
void exchange(Keys& a, Keys& b) {
  if (a.size() == 1) {
    const Tensor most = maximum(a[0], b[0]);
    b[0] = minimum(a[0], b[0]);
    a[0] = most;
    return;
  }
  const Tensor less_second = bit_and(equal(a[0], b[0]), less(a[1], b[1]));
  const Tensor is_less = bit_or(less(a[0], b[0]), less_second);
  for (size_t i = 0; i < a.size(); ++i) {
    const Tensor most = where(is_less, b[i], a[i]);
    b[i] = where(is_less, a[i], b[i]);
    a[i] = most;
  }
}

Keys greater_of(Keys a, Keys b) {
  exchange(a, b);
  return a;
}

int64_t rows_max(const Keys& keys) {
  return kRowsMax / std::ssize(keys);
}

// Columns that are sorted: axis 0 counts the elements of one, axis 1 the columns.
int64_t size_along(const Keys& keys, int64_t axis) {
  return keys[0].shape()[static_cast<size_t>(axis)].value();
}

// Axis `axis` as `parts` parts, which are an axis of their own, and the places in one.
Tensor parted(const Tensor& a, int64_t axis, int64_t parts) {
  Shape shape = a.shape();
  const int64_t n = shape[static_cast<size_t>(axis)].value();
  shape[static_cast<size_t>(axis)] = n / parts;
  shape.insert(shape.begin() + axis, Dim(parts));
  return reshape(a, shape);
}

// Part i of `parts` of axis 0.
Keys part(const Keys& keys, int64_t i, int64_t parts) {
  return each(keys, [&](const Tensor& key) {
    const int64_t n = key.shape()[0].value() / parts;
    return slice_axis(key, 0, i * n, (i + 1) * n);
  });
}

// Exchanges rows at distances from `distance` rows down to 1.
void exchange_rows(std::vector<Keys>& rows, size_t distance) {
  for (; distance > 0; distance /= 2)
    for (size_t i = 0; i < rows.size(); ++i)
      if ((i & distance) == 0) exchange(rows[i], rows[i + distance]);
}

Keys joined(const std::vector<Keys>& rows, int64_t axis) {
  Keys out;
  for (size_t i = 0; i < rows[0].size(); ++i) {
    std::vector<Tensor> parts;
    for (const Keys& row : rows) parts.push_back(row[i]);
    out.push_back(concat(parts, axis));
  }
  return out;
}

// Orders the blocks of `block` elements of each column, in which elements rise once and fall once.
Keys ordered_blocks(const Keys& keys, int64_t block) {
  if (block == 1) return keys;
  const int64_t n = size_along(keys, 0);
  const int64_t count = std::min(block, rows_max(keys));
  const Keys blocks =
      each(keys, [&](const Tensor& key) { return parted(parted(key, 0, n / block), 1, count); });
  std::vector<Keys> rows;
  for (int64_t i = 0; i < count; ++i)
    rows.push_back(each(blocks, [&](const Tensor& key) { return slice_axis(key, 1, i, i + 1); }));
  exchange_rows(rows, static_cast<size_t>(count) / 2);
  const Shape shape = keys[0].shape();
  const Keys done = each(joined(rows, 1), [&](const Tensor& key) { return reshape(key, shape); });
  return ordered_blocks(done, block / count);
}

// The first and the second half of the columns, as many in both.
std::pair<Keys, Keys> halves(const Keys& keys) {
  const int64_t columns = size_along(keys, 1);
  const int64_t half = ceil_div(columns, 2);
  const Keys first = each(keys, [&](const Tensor& key) { return slice_axis(key, 1, 0, half); });
  const Keys second = each(keys, [&](const Tensor& key) {
    const Tensor rest = slice_axis(key, 1, half, columns);
    if (columns == 2 * half) return rest;
    const Shape none(static_cast<size_t>(key.rank()), Dim(0));
    Shape one = none;
    one[1] = 1;
    return pad(rest, none, one);
  });
  return {first, second};
}

Keys flipped(const Keys& keys) {
  return each(keys, [](const Tensor& key) { return flip(key, {0}); });
}

// Pairs of columns as one each: of as many elements again, or of the greater ones alone.
Keys merged(const Keys& keys, bool keeps_all) {
  const int64_t n = size_along(keys, 0);
  const auto [first, second] = halves(keys);
  const int64_t count = std::min(keeps_all ? 2 * n : n, rows_max(keys));
  std::vector<Keys> rows;
  if (keeps_all) {
    // What follows the exchange is in the other order in the lower half: it rises once all the
    // same.
    for (int64_t i = 0; i < count / 2; ++i) rows.push_back(part(first, i, count / 2));
    for (int64_t i = count / 2; i-- > 0;) rows.push_back(flipped(part(second, i, count / 2)));
    exchange_rows(rows, static_cast<size_t>(count) / 2);
  } else {
    for (int64_t i = 0; i < count; ++i)
      rows.push_back(
          greater_of(part(first, i, count), flipped(part(second, count - 1 - i, count))));
    exchange_rows(rows, static_cast<size_t>(count) / 2);
  }
  return ordered_blocks(joined(rows, 0), size_along(rows[0], 0));
}

}  // namespace

Keys greatest_keys(const Keys& keys, int64_t k) {
  const int64_t n = size_along(keys, 0);
  Keys columns = each(keys, [](const Tensor& key) { return unsqueeze(key, {0}); });
  const auto wanted = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::min(k, n))));
  while (size_along(columns, 1) > 1) columns = merged(columns, size_along(columns, 0) < wanted);
  return each(columns, [&](const Tensor& key) { return slice_axis(squeeze(key, {1}), 0, 0, k); });
}

}  // namespace tiny
