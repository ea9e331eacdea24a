// Rows that fill tensors: with a number, by a mask, with what depends on places, with random
// numbers.
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty_like.h>

#include <cmath>
#include <numbers>

#include "call.h"
#include "checks.h"
#include "computed.h"
#include "generator.h"

namespace tiny_torch {

namespace {

using V = Value;

Sizes sizes_of(const at::Tensor& tensor) {
  return {tensor.sizes().begin(), tensor.sizes().end()};
}
tiny_dtype dtype_of_tensor(const at::Tensor& tensor) {
  return dtype_of(tensor.scalar_type());
}

V number_for(const Call& c, size_t target, size_t number) {
  return value_of_number(c.argument(number).toScalar(), dtype_of_tensor(c.tensor(target)));
}
void fill(Call& c) {
  write(c.tensor(0), number_for(c, 0, 1));
}
void fill_by_tensor(Call& c) {
  TORCH_CHECK(c.tensor(1).dim() == 0,
              "fill_ only supports 0-dimension value tensor but got tensor with ",
              c.tensor(1).dim(), " dimensions.");
  write(c.tensor(0), c.value(1));
}
void zero(Call& c) {
  write(c.tensor(0), constant(dtype_of_tensor(c.tensor(0)), 0));
}

void masked_fill(Call& c, const V& value) {  // self, mask, value
  TORCH_CHECK(c.tensor(1).scalar_type() == at::kBool,
              "masked_fill_ only supports boolean masks, but got mask with dtype ",
              c.tensor(1).scalar_type());
  warn_of_repeats(c.tensor(0), "masked_fill_");
  at::assert_no_partial_overlap(c.tensor(0), c.tensor(1));
  const V self = c.value(0);
  write(c.tensor(0), where(c.value(1), cast(value, self.dtype()), self));
}
void masked_fill_number(Call& c) {
  masked_fill(c, number_for(c, 0, 2));
}
void masked_fill_tensor(Call& c) {
  TORCH_CHECK(c.tensor(2).dim() == 0,
              "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              c.tensor(2).dim(), " dimension(s).");
  masked_fill(c, c.value(2));
}

// first, first + step, ..: of whole numbers exact, of others as float64 where PyTorch has float32
// steps.
V steps(tiny_dtype dtype, int64_t count, const at::Scalar& first, const at::Scalar& step) {
  if (first.isIntegral(true) && step.isIntegral(true)) {
    const V place = arange(TINY_INT64, count);
    return cast(place * integer(TINY_INT64, step.toLong()) + integer(TINY_INT64, first.toLong()),
                dtype);
  }
  const V place = arange(TINY_FLOAT64, count);
  return cast(
      place * constant(TINY_FLOAT64, step.toDouble()) + constant(TINY_FLOAT64, first.toDouble()),
      dtype);
}
void range(Call& c) {  // start, end, step
  const at::Scalar first = c.argument(0).toScalar();
  const at::Scalar step = c.argument(2).toScalar();
  const at::Tensor& out = c.target(0);
  TORCH_CHECK(step.toDouble() != 0, "step must be nonzero");
  const double length = first.isIntegral(true) && step.isIntegral(true)
                            ? std::ceil((c.real(1) - static_cast<double>(first.toLong())) /
                                        static_cast<double>(step.toLong()))
                            : std::ceil((c.real(1) - first.toDouble()) / step.toDouble());
  TORCH_CHECK(length >= 0, "upper bound and lower bound inconsistent with step sign");
  const auto count = static_cast<int64_t>(length);
  if (count == 0) return c.give(0, full(dtype_of_tensor(out), {&count, 1}, 0));
  c.give(0, steps(dtype_of_tensor(out), count, first, step));
}
void linspace(Call& c) {  // start, end, steps
  const int64_t count = c.integer(2);
  TORCH_CHECK(count >= 0, "number of steps must be non-negative");
  const tiny_dtype dtype = dtype_of_tensor(c.target(0));
  const double first = c.real(0);
  const double last = c.real(1);
  if (count == 0) return c.give(0, full(dtype, {&count, 1}, 0));
  const double step = count > 1 ? (last - first) / static_cast<double>(count - 1) : 0;
  const V place = arange(TINY_FLOAT64, count);
  const V up = place * constant(TINY_FLOAT64, step) + constant(TINY_FLOAT64, first);
  const V down = constant(TINY_FLOAT64, last) -
                 (static_cast<double>(count - 1) - place) * constant(TINY_FLOAT64, step);
  const int64_t half = count / 2;
  const V made =
      where(compare(TINY_LT, place, static_cast<double>(half)), up, count > 1 ? down : up);
  c.give(0, cast(made, dtype));
}
void eye(Call& c) {  // n, m
  const int64_t rows = c.integer(0);
  const int64_t columns = c.argument(1).isInt() ? c.integer(1) : rows;
  TORCH_CHECK(rows >= 0, "n must be greater or equal to 0, got ", rows);
  TORCH_CHECK(columns >= 0, "m must be greater or equal to 0, got ", columns);
  const V equal = compare(TINY_EQ, unsqueeze(arange(TINY_INT64, rows), 1),
                          unsqueeze(arange(TINY_INT64, columns), 0));
  c.give(0, cast(equal, dtype_of_tensor(c.target(0))));
}
template <bool is_upper>
void triangle(Call& c) {  // self, diagonal
  const V a = c.value(0);
  tiny_tensor* out = nullptr;
  check(is_upper ? tiny_triu(a.handle(), c.integer(1), &out)
                 : tiny_tril(a.handle(), c.integer(1), &out));
  c.give(0, V(out));
}

// ---- Random numbers -----------------------------------------------------------------------------

V uniform(const Call& c, size_t generator, const Sizes& sizes, tiny_dtype dtype) {
  const V key = next_key(c.generator(generator));
  tiny_tensor* out = nullptr;
  check(tiny_random_uniform(key.handle(), dtype, sizes.data(), sizes.size(), &out));
  return V(out);
}
V normal(const Call& c, size_t generator, const Sizes& sizes, tiny_dtype dtype) {
  const V key = next_key(c.generator(generator));
  tiny_tensor* out = nullptr;
  check(tiny_random_normal(key.handle(), dtype, sizes.data(), sizes.size(), &out));
  return V(out);
}
tiny_dtype drawn(const at::Tensor& tensor) {
  return wide(dtype_of_tensor(tensor));
}
// Of at least 0 and below 1, in float32 at least.
V uniform_for(const Call& c, size_t generator) {
  const at::Tensor& self = c.tensor(0);
  TORCH_CHECK(self.is_floating_point(), "tiny: random floats are for tensors of floats, got ",
              self.scalar_type());
  return uniform(c, generator, sizes_of(self), drawn(self));
}
// What is drawn becomes the tensor.
void put_drawn(const at::Tensor& self, const V& drawn) {
  at::assert_no_internal_overlap(self);
  write_new(self, drawn);
}
void fill_uniform(Call& c) {  // self, from, to, generator
  const double low = c.real(1);
  const double high = c.real(2);
  TORCH_CHECK(low <= high, "uniform_ expects to return a [from, to) range, but found from=", low,
              " > to=", high);
  const V unit = uniform_for(c, 3);
  put_drawn(c.tensor(0), unit * number(unit.dtype(), high - low) + number(unit.dtype(), low));
}
void fill_normal(Call& c) {  // self, mean, std, generator
  const at::Tensor& self = c.tensor(0);
  TORCH_CHECK(c.real(2) >= 0, "normal expects std >= 0.0, but found std ", c.real(2));
  const V unit = normal(c, 3, sizes_of(self), drawn(self));
  put_drawn(self, unit * number(unit.dtype(), c.real(2)) + number(unit.dtype(), c.real(1)));
}
void fill_exponential(Call& c) {  // self, lambd, generator
  TORCH_CHECK(c.real(1) > 0, "exponential_ expects lambda > 0.0, but found lambda=", c.real(1));
  const V unit = uniform_for(c, 2);
  put_drawn(c.tensor(0), -unary(TINY_LOG1P, -unit) / number(unit.dtype(), c.real(1)));
}
void fill_cauchy(Call& c) {  // self, median, sigma, generator
  TORCH_CHECK(c.real(2) > 0, "cauchy_ expects sigma > 0.0, but found sigma=", c.real(2));
  const V unit = uniform_for(c, 3);
  const V angle = (unit - 0.5) * std::numbers::pi;
  put_drawn(c.tensor(0), unary(TINY_SIN, angle) / unary(TINY_COS, angle) * c.real(2) + c.real(1));
}
void fill_log_normal(Call& c) {  // self, mean, std, generator
  TORCH_CHECK(c.real(2) > 0, "log_normal_ expects std > 0.0, but found std=", c.real(2));
  const at::Tensor& self = c.tensor(0);
  const V unit = normal(c, 3, sizes_of(self), drawn(self));
  put_drawn(self, unary(TINY_EXP, unit * c.real(2) + c.real(1)));
}
void fill_geometric(Call& c) {  // self, p, generator
  TORCH_CHECK(c.real(1) > 0 && c.real(1) < 1,
              "geometric_ expects p to be in (0, 1), but got p=", c.real(1));
  const V unit = uniform(c, 2, sizes_of(c.tensor(0)), TINY_FLOAT32);
  put_drawn(c.tensor(0),
            unary(TINY_FLOOR, unary(TINY_LOG1P, -unit) / std::log1p(-c.real(1))) + 1.0);
}
void fill_integers(Call& c, size_t generator, int64_t low, int64_t high) {
  const at::Tensor& self = c.tensor(0);
  TORCH_CHECK(low < high, "random_ expects 'from' to be less than 'to', but got from=", low,
              " >= to=", high);
  const V key = next_key(c.generator(generator));
  const Sizes sizes = sizes_of(self);
  tiny_tensor* out = nullptr;
  check(
      tiny_random_integers(key.handle(), TINY_INT64, sizes.data(), sizes.size(), low, high, &out));
  put_drawn(self, V(out));
}
// The whole numbers that a dtype has one after the other.
int64_t whole_end(at::ScalarType type) {
  switch (type) {
    case at::kBool:
      return 2;
    case at::kByte:
      return 256;
    case at::kChar:
      return 128;
    case at::kShort:
      return 32768;
    case at::kInt:
      return int64_t{1} << 31;
    case at::kHalf:
      return (1 << 11) + 1;
    case at::kBFloat16:
      return (1 << 8) + 1;
    case at::kFloat:
      return (1 << 24) + 1;
    case at::kDouble:
      return (int64_t{1} << 53) + 1;
    default:
      return INT64_MAX;
  }
}
void fill_random(Call& c) {
  fill_integers(c, 1, 0, whole_end(c.tensor(0).scalar_type()));
}
void fill_random_to(Call& c) {
  fill_integers(c, 2, 0, c.integer(1));
}
void fill_random_from(Call& c) {  // self, from, to, generator
  fill_integers(c, 3, c.integer(1), c.has(2) ? c.integer(2) : whole_end(c.tensor(0).scalar_type()));
}
void fill_bernoulli(Call& c) {  // self, p, generator
  TORCH_CHECK(c.real(1) >= 0 && c.real(1) <= 1,
              "bernoulli_ expects p to be in [0, 1], but got p=", c.real(1));
  put_drawn(c.tensor(0), compare(TINY_LT, uniform(c, 2, sizes_of(c.tensor(0)), TINY_FLOAT32),
                                 number(TINY_FLOAT32, c.real(1))));
}
void check_chances(const at::Tensor& p) {
  TORCH_CHECK(may_be_within(p, 0, 1), "bernoulli expects all probabilities to be in [0, 1]");
}
void fill_bernoulli_by_tensor(Call& c) {
  check_chances(c.tensor(1));
  const V p = c.value(1);
  put_drawn(c.tensor(0), compare(TINY_LT, uniform(c, 2, sizes_of(c.tensor(0)), wide(p.dtype())),
                                 cast(p, wide(p.dtype()))));
}
void bernoulli(Call& c) {  // self, generator
  check_chances(c.tensor(0));
  const V p = c.value(0);
  const tiny_dtype dtype = wide(p.dtype());
  c.give(0, cast(compare(TINY_LT, uniform(c, 1, p.shape(), dtype), cast(p, dtype)), p.dtype()));
}
void permutation(Call& c) {  // n, generator
  tiny_tensor* out = nullptr;
  const int64_t count = c.integer(0);
  TORCH_CHECK(count >= 0, "n must be non-negative, got", count);
  if (count == 0) return c.give(0, full(TINY_INT64, {&count, 1}, 0));
  check(tiny_random_permutation(next_key(c.generator(1)).handle(), count, &out));
  c.give(0, V(out));
}
void check_probabilities(const at::Tensor& self) {
  if (self.numel() > kCheckedElementsMax || !is_computed(self)) return;
  std::vector<float> memory(static_cast<size_t>(self.numel()));
  if (memory.empty()) return;
  read(cast(read(self), TINY_FLOAT32), memory.data(), memory.size() * sizeof(float));
  const auto row = static_cast<size_t>(self.size(-1));
  for (size_t begin = 0; begin < memory.size(); begin += row) {
    float total = 0;
    for (size_t i = begin; i < begin + row; ++i) {
      TORCH_CHECK(std::isfinite(memory[i]) && memory[i] >= 0,
                  "probability tensor contains either `inf`, `nan` or element < 0");
      total += memory[i];
    }
    TORCH_CHECK(total > 0, "invalid multinomial distribution (sum of probabilities <= 0)");
  }
}
void multinomial(Call& c) {  // self, num_samples, replacement, generator
  const at::Tensor& self = c.tensor(0);
  const int64_t count = c.integer(1);
  constexpr int64_t kCategoriesMax = int64_t{1} << 24;  // PyTorch's
  TORCH_CHECK(
      at::isFloatingType(self.scalar_type()),
      "multinomial only supports floating-point dtypes for input, got: ", self.scalar_type());
  TORCH_CHECK(!c.target(0).defined() || c.target(0).scalar_type() == at::kLong,
              "multinomial expects Long tensor out, got: ", c.target(0).scalar_type());
  TORCH_CHECK(count > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(self.dim() == 1 || self.dim() == 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(c.flag(2) || count <= self.size(-1),
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  TORCH_CHECK(self.size(-1) <= kCategoriesMax, "number of categories cannot exceed 2^24");
  check_probabilities(self);
  const V weights = c.value(0);
  tiny_tensor* out = nullptr;
  check(tiny_random_multinomial(next_key(c.generator(3)).handle(),
                                cast(weights, wide(weights.dtype())).handle(), c.integer(1),
                                c.flag(2) ? 1 : 0, &out));
  c.give(0, V(out));
}
// A result that lies as `self` does.
void give_like(Call& c, size_t index, const at::Tensor& self, const V& value) {
  if (self.is_contiguous()) return c.give(index, value);
  const at::Tensor made = at::empty_like(self, self.options().dtype(scalar_type_of(value.dtype())));
  write(made, value);
  c.give(index, made);
}
void dropout(Call& c) {  // self, p, train
  const V a = c.value(0);
  const double p = c.real(1);
  const bool is_training = !c.has(2) || c.flag(2);
  if (!is_training || p == 0) {
    give_like(c, 0, c.tensor(0), a);
    give_like(c, 1, c.tensor(0), full(TINY_BOOL, a.shape(), 1));
    return;
  }
  const V key = next_key(std::nullopt);
  tiny_tensor* out = nullptr;
  const Sizes sizes = a.shape();
  check(tiny_random_uniform(key.handle(), TINY_FLOAT32, sizes.data(), sizes.size(), &out));
  const V kept = compare(TINY_GE, V(out), number(TINY_FLOAT32, p));
  const V scale = number(a.dtype(), p == 1 ? 0 : 1 / (1 - p));
  give_like(c, 0, c.tensor(0), cast(kept, a.dtype()) * a * scale);
  give_like(c, 1, c.tensor(0), kept);
}
void dropout_backward(Call& c) {  // grad, mask, scale
  const V grad = c.value(0);
  give_like(c, 0, c.tensor(0),
            grad * cast(c.value(1), grad.dtype()) * number(grad.dtype(), c.real(2)));
}
void check_deviations(const at::Tensor& deviations) {
  TORCH_CHECK(may_be_within(deviations, 0, INFINITY), "normal expects all elements of std >= 0.0");
}
// normal() of tensors of means and deviations.
void normal_of(Call& c, const V& mean, const V& deviation, size_t generator) {
  const V shape = mean + deviation;
  const tiny_dtype dtype = wide(shape.dtype());
  const V unit = normal(c, generator, shape.shape(), dtype);
  c.give(0, cast(unit * cast(deviation, dtype) + cast(mean, dtype), shape.dtype()));
}

constexpr Row kFills[] = {
    {"fill_.Scalar", fill},
    {"fill_.Tensor", fill_by_tensor},
    {"zero_", zero},
    {"masked_fill_.Scalar", masked_fill_number},
    {"masked_fill_.Tensor", masked_fill_tensor},
    {"arange.start_out", range},
    {"linspace.out", linspace},
    {"eye.out", eye},
    {"eye.m_out", eye},
    {"triu.out", triangle<true>},
    {"tril.out", triangle<false>},
};

constexpr Row kRandom[] = {
    {"uniform_", fill_uniform},
    {"normal_", fill_normal},
    {"exponential_", fill_exponential},
    {"cauchy_", fill_cauchy},
    {"log_normal_", fill_log_normal},
    {"geometric_", fill_geometric},
    {"random_", fill_random},
    {"random_.to", fill_random_to},
    {"random_.from", fill_random_from},
    {"bernoulli_.float", fill_bernoulli},
    {"bernoulli_.Tensor", fill_bernoulli_by_tensor},
    {"bernoulli", bernoulli},
    {"bernoulli.out", bernoulli},
    {"randperm.generator_out", permutation},
    {"multinomial", multinomial},
    {"multinomial.out", multinomial},
    {"native_dropout", dropout},
    {"native_dropout_backward", dropout_backward},
    {"normal.Tensor_float",
     [](Call& c) {
       const V mean = c.value(0);
       normal_of(c, mean, constant(mean.dtype(), c.real(1)), 2);
     }},
    {"normal.float_Tensor",
     [](Call& c) {
       check_deviations(c.tensor(1));
       const V spread = c.value(1);
       normal_of(c, constant(spread.dtype(), c.real(0)), spread, 2);
     }},
    {"normal.Tensor_Tensor",
     [](Call& c) {
       check_deviations(c.tensor(1));
       normal_of(c, c.value(0), c.value(1), 2);
     }},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add_rows(m, kFills);
  add_rows(m, kRandom);
}

}  // namespace

bool may_be_within(const at::Tensor& tensor, double least, double greatest) {
  if (tensor.numel() > kCheckedElementsMax || !tensor.is_privateuseone() || !is_computed(tensor))
    return true;
  std::vector<double> memory(static_cast<size_t>(tensor.numel()));
  if (memory.empty()) return true;
  read(cast(read_operand(tensor), TINY_FLOAT64), memory.data(), memory.size() * sizeof(double));
  return std::all_of(memory.begin(), memory.end(),
                     [&](double x) { return !(x < least) && !(x > greatest); });
}

}  // namespace tiny_torch
