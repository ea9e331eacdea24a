#include "nn/initialize.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/random.h"
#include "tensor/reduce.h"
#include "tensor/top_k.h"

namespace tiny {

namespace {

// Of the gradients' variance: inputs and outputs of one element, taps of a convolution counted.
struct Fans {
  double in = 0;
  double out = 0;
};

Fans fans_of(const Ints& shape) {
  require(shape.size() >= 2, Status::Shape, "values by fans for the shape ", to_shape(shape),
          "; wanted at least 2 axes");
  const double taps = std::accumulate(shape.begin() + 2, shape.end(), 1.0, std::multiplies<>());
  return {static_cast<double>(shape[1]) * taps, static_cast<double>(shape[0]) * taps};
}

double xavier_deviation(const Ints& shape, double gain) {
  const Fans fans = fans_of(shape);
  return gain * std::sqrt(2 / (fans.in + fans.out));
}

double kaiming_deviation(const Ints& shape, double slope, double by_outputs) {
  require(by_outputs == 0 || by_outputs == 1, Status::InvalidArgument, "b of Kaiming's values is ",
          by_outputs, "; wanted 0 (by the inputs) or 1 (by the outputs)");
  const Fans fans = fans_of(shape);
  return std::sqrt(2 / (1 + slope * slope) / (by_outputs != 0 ? fans.out : fans.in));
}

Tensor uniform(const Tensor& key, DType dtype, const Ints& shape, double low, double high) {
  require(low <= high, Status::InvalidArgument, "uniform values from ", low, " to ", high);
  const Tensor u = random_uniform(key, dtype, to_shape(shape));
  return u * number(u, high - low) + number(u, low);
}

// Of this deviation, around 0.
Tensor uniform_of(const Tensor& key, DType dtype, const Ints& shape, double deviation) {
  const double limit = std::sqrt(3.0) * deviation;
  return uniform(key, dtype, shape, -limit, limit);
}

Tensor normal(const Tensor& key, DType dtype, const Ints& shape, double mean, double deviation) {
  require(deviation >= 0, Status::InvalidArgument, "a deviation of ", deviation);
  const Tensor n = random_normal(key, dtype, to_shape(shape));
  return n * number(n, deviation) + number(n, mean);
}

Tensor truncated_normal(const Tensor& key, DType dtype, const Ints& shape, double mean,
                        double deviation) {
  constexpr double kLimit = 2;  // deviations
  const Tensor n = random_truncated_normal(key, dtype, shape, -kLimit, kLimit);
  return n * number(n, deviation) + number(n, mean);
}

// The orthogonal factor of a normal matrix' polar decomposition, which is uniform among them, by
// Newton and Schulz' iteration (Higham 2008, "Functions of matrices", section 8.3): singular values
// s become s (3 - s^2) / 2, small ones half as large again in each step.
Tensor orthogonal(const Tensor& key, DType dtype, const Ints& shape, double gain) {
  require(shape.size() >= 2, Status::Shape, "orthogonal values of shape ", to_shape(shape),
          "; wanted at least 2 axes");
  constexpr int kSteps = 48;  // from 1e-7 of the greatest, float32's rounding
  const int64_t rows = shape[0];
  const int64_t columns =
      std::accumulate(shape.begin() + 1, shape.end(), int64_t{1}, std::multiplies<>());
  Tensor x = random_normal(key, kFloat32, {std::min(rows, columns), std::max(rows, columns)});
  x = contiguous(x / sqrt(sum(square(x), {0, 1})));
  for (int i = 0; i < kSteps; ++i) {
    const Tensor square = matmul(x, transpose(x, 0, 1));
    x = contiguous(x * number(x, 1.5) - matmul(square, x) * number(x, 0.5));
  }
  if (rows > columns) x = transpose(x, 0, 1);
  return cast(reshape(x * number(x, gain), to_shape(shape)), dtype);
}

Tensor dirac(const Tensor& key, DType dtype, const Ints& shape, double groups) {
  require(shape.size() >= 3, Status::Shape, "a Dirac's values of shape ", to_shape(shape),
          "; wanted at least 3 axes");
  const auto count = static_cast<int64_t>(groups);
  require(groups >= 1 && static_cast<double>(count) == groups && shape[0] % count == 0,
          Status::InvalidArgument, shape[0], " channels in ", groups, " groups");
  const Ref<Context>& context = key.context_ref();
  const auto rank = static_cast<int64_t>(shape.size());
  const Tensor out = positions(context, kInt64, shape[0], 0, rank);
  const Tensor channel = floor_mod(out, number_int(out, shape[0] / count));
  Tensor is_one = equal(channel, positions(context, kInt64, shape[1], 1, rank));
  for (int64_t axis = 2; axis < rank; ++axis) {
    const int64_t size = shape[static_cast<size_t>(axis)];
    const Tensor at = positions(context, kInt64, size, axis, rank);
    is_one = bit_and(is_one, equal(at, number_int(at, size / 2)));
  }
  return cast(is_one, dtype);
}

Tensor sparse(const Tensor& key, DType dtype, const Ints& shape, double share, double deviation) {
  require(shape.size() == 2, Status::Shape, "sparse values of shape ", to_shape(shape),
          "; wanted 2 axes");
  require(share >= 0 && share <= 1, Status::InvalidArgument, "a share of ", share,
          " zeros; wanted 0 to 1");
  const Tensor keys = split_key(key, 2);
  const auto key_at = [&](int64_t i) { return reshape(slice_axis(keys, 0, i, i + 1), {2}); };
  const auto zeros = static_cast<int64_t>(std::ceil(share * static_cast<double>(shape[0])));
  const Tensor values = normal(key_at(0), dtype, shape, 0, deviation);
  if (zeros == 0 || shape[0] == 0 || shape[1] == 0) return values;
  // The greatest of random numbers: `zeros` of each column.
  const Tensor order = random_uniform(key_at(1), kFloat32, to_shape(shape));
  const TopK top = top_k(order, zeros, 0, true);
  const Tensor least = slice_axis(top.values, 0, zeros - 1, zeros);
  return where(less(order, least), values, number(values, 0));
}

}  // namespace

Tensor initialize(const Tensor& key, const Initialization& how, DType dtype, const Ints& shape) {
  require(dtype.is_float(), Status::DType, "initial values of ", dtype, "; wanted floats");
  check_shape(to_shape(shape), dtype);
  switch (how.kind) {
    case Initial::Constant:
      return full(key.context_ref(), dtype, to_shape(shape), how.a);
    case Initial::Uniform:
      return uniform(key, dtype, shape, how.a, how.b);
    case Initial::Normal:
      return normal(key, dtype, shape, how.a, how.b);
    case Initial::TruncatedNormal:
      return truncated_normal(key, dtype, shape, how.a, how.b);
    case Initial::XavierUniform:
      return uniform_of(key, dtype, shape, xavier_deviation(shape, how.a));
    case Initial::XavierNormal:
      return normal(key, dtype, shape, 0, xavier_deviation(shape, how.a));
    case Initial::KaimingUniform:
      return uniform_of(key, dtype, shape, kaiming_deviation(shape, how.a, how.b));
    case Initial::KaimingNormal:
      return normal(key, dtype, shape, 0, kaiming_deviation(shape, how.a, how.b));
    case Initial::Orthogonal:
      return orthogonal(key, dtype, shape, how.a);
    case Initial::Dirac:
      return dirac(key, dtype, shape, how.a);
    case Initial::Sparse:
      return sparse(key, dtype, shape, how.a, how.b);
  }
  throw_error(Status::InvalidArgument, "unknown initial values");
}

}  // namespace tiny
