// What a function of the library gives, and what its definition says: the cases of
// functions_test.cpp, which stand by kind in the files beside this one.
#pragma once

#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "engine/context.h"
#include "tensor/create.h"
#include "tensor/value.h"
#include "tests/tensor/arrays.h"

namespace tiny::function_cases {

using testing::Array;
using testing::fold;
using testing::generate;

struct Case {
  Tensor got;
  Array want;
  double tolerance = 0;
};

// Eighths between -2 and 2 in an order without a pattern.
inline Array sample(const Ints& shape, uint64_t seed = 1) {
  uint64_t state = seed * 977;
  return generate(shape, [&](const Ints&) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(static_cast<int64_t>((state >> 33) % 33) - 16) / 8;
  });
}

class Maker {
 public:
  explicit Maker(Ref<Context> context) : context_(std::move(context)) {}
  Tensor operator()(const Array& a, DType dtype = kFloat32) const {
    std::vector<std::byte> bytes(a.values.size() * static_cast<size_t>(dtype.bytes()));
    for (size_t i = 0; i < a.values.size(); ++i) {
      const uint64_t bits = bits_of(dtype, a.values[i]);
      std::memcpy(bytes.data() + i * static_cast<size_t>(dtype.bytes()), &bits,
                  static_cast<size_t>(dtype.bytes()));
    }
    return from_data(context_, dtype, a.shape, bytes.data(), std::ssize(bytes));
  }
  Tensor ints(const Array& a) const { return (*this)(a, kInt64); }
  const Ref<Context>& context() const { return context_; }

 private:
  Ref<Context> context_;
};

inline double total(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0);
}
inline double mean_value(const std::vector<double>& v) {
  return total(v) / static_cast<double>(v.size());
}
inline double variance_value(const std::vector<double>& v) {
  const double m = mean_value(v);
  double s = 0;
  for (double x : v) s += (x - m) * (x - m);
  return s / static_cast<double>(v.size());
}

// A row of the table without a case does not link.
#define FUNCTION(name, parameters, meaning) Case case_##name(const Maker& make);
#include "api/functions.def"

// lrn with this power.
Case lrn_with(const Maker& make, double beta);

}  // namespace tiny::function_cases
