// Small arrays of numbers with definitions written out, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/uop.h"
#include "tests/support/tensors.h"

namespace tiny::testing {

struct Array {
  Ints shape;
  std::vector<double> values;

  double at(const Ints& index) const {
    int64_t flat = 0;
    for (size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
    return values[static_cast<size_t>(flat)];
  }
  // The element, or `outside` beyond an end.
  double at_or(const Ints& index, double outside) const {
    for (size_t i = 0; i < shape.size(); ++i)
      if (index[i] < 0 || index[i] >= shape[i]) return outside;
    return at(index);
  }
};

// Calls body(index) for every index of the shape, the last axis fastest.
inline void for_each_index(const Ints& shape, const std::function<void(const Ints&)>& body) {
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  for (int64_t flat = 0; flat < count; ++flat) {
    Ints index(shape.size());
    int64_t rest = flat;
    for (size_t i = shape.size(); i-- > 0; rest /= shape[i]) index[i] = rest % shape[i];
    body(index);
  }
}

// The array whose elements are f(index).
inline Array generate(const Ints& shape, const std::function<double(const Ints&)>& f) {
  Array out{shape, {}};
  for_each_index(shape, [&](const Ints& index) { out.values.push_back(f(index)); });
  return out;
}

// Different numbers, all within 50 / `scale` of `shift`; others for each seed.
inline Array spread_numbers(const Ints& shape, int64_t seed, double scale, double shift = 0) {
  int64_t i = 0;
  return generate(shape, [&](const Ints&) {
    return static_cast<double>((++i * 37 + seed * 53) % 101 - 50) / scale + shift;
  });
}

inline Tensor tensor_of(const Ref<Context>& context, const Array& a) {
  return floats(context, Floats(a.values.begin(), a.values.end()), a.shape);
}

inline void expect_near(const Floats& got, const Array& want, double tolerance) {
  ASSERT_EQ(got.size(), want.values.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want.values[i], tolerance) << "element " << i;
}

// f over the elements of `axes`, for every index of the others (which keep size 1).
inline Array fold(const Array& a, const Ints& axes,
                  const std::function<double(const std::vector<double>&)>& f) {
  Ints shape = a.shape;
  Ints folded;
  for (int64_t axis : axes) {
    folded.push_back(shape[static_cast<size_t>(axis)]);
    shape[static_cast<size_t>(axis)] = 1;
  }
  return generate(shape, [&](const Ints& index) {
    std::vector<double> values;
    for_each_index(folded, [&](const Ints& inner) {
      Ints at = index;
      for (size_t i = 0; i < axes.size(); ++i) at[static_cast<size_t>(axes[i])] = inner[i];
      values.push_back(a.at(at));
    });
    return f(values);
  });
}

}  // namespace tiny::testing
