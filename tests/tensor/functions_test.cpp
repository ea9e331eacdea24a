// Every function of the library against its definition, through the oracle and through the engine.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <numbers>
#include <numeric>

#include "base/text.h"
#include "engine/backend.h"
#include "engine/context.h"
#include "nn/initialize.h"
#include "tensor/activation.h"
#include "tensor/alias.h"
#include "tensor/create.h"
#include "tensor/ctc.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/loss.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/random.h"
#include "tensor/reduce.h"
#include "tensor/scan.h"
#include "tensor/value.h"
#include "tensor/window.h"
#include "tests/reference/reference.h"
#include "tests/support/context.h"
#include "tests/tensor/arrays.h"

namespace tiny {
namespace {

using testing::Array;
using testing::fold;
using testing::generate;
using testing::new_context;

struct Case {
  Tensor got;
  Array want;
  double tolerance = 0;
};

// Eighths between -2 and 2 in an order without a pattern.
Array sample(const Ints& shape, uint64_t seed = 1) {
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

using Function = Case (*)(const Maker&);

// ---- Creation and movement

Case case_tensor_from_data(const Maker& make) {
  const Array a = sample({2, 3});
  return {make(a), a};
}

float wrapped_memory[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

Case case_tensor_wrap(const Maker& make) {
  // Backwards along the first axis, every second element of the other.
  return {wrap(make.context(), kFloat32, {3, 2}, {-4, 2}, wrapped_memory + 8, nullptr, nullptr),
          {{3, 2}, {8, 10, 4, 6, 0, 2}}};
}
Case case_scalar_float(const Maker& make) {
  return {Tensor::weak_float(make.context(), 0.5), {{}, {0.5}}};
}
Case case_scalar_int(const Maker& make) {
  return {Tensor::weak_int(make.context(), -3), {{}, {-3}}};
}
Case case_full(const Maker& make) {
  return {full(make.context(), kInt16, {2, 2}, -7), {{2, 2}, {-7, -7, -7, -7}}};
}
Case case_arange(const Maker& make) {
  return {arange(make.context(), kUInt8, 4), {{4}, {0, 1, 2, 3}}};
}
Case case_reshape(const Maker& make) {
  const Array a = sample({2, 6});
  return {reshape(make(a), {3, -1}), {{3, 4}, a.values}};
}
Case case_permute(const Maker& make) {
  const Array a = sample({2, 3, 4});
  return {permute(make(a), {2, 0, -2}),
          generate({4, 2, 3}, [&](const Ints& i) { return a.at({i[1], i[2], i[0]}); })};
}
Case case_expand(const Maker& make) {
  const Array a = sample({3, 1});
  return {expand(make(a), {2, -1, 4}),
          generate({2, 3, 4}, [&](const Ints& i) { return a.at({i[1], 0}); })};
}
Case case_flip(const Maker& make) {
  const Array a = sample({3, 4});
  return {flip(make(a), {-1}),
          generate({3, 4}, [&](const Ints& i) { return a.at({i[0], 3 - i[1]}); })};
}
Case case_pad(const Maker& make) {
  const Array a = sample({3, 4});
  return {pad(make(a), {1, -1}, {2, 1}, -0.5),
          generate({6, 4}, [&](const Ints& i) { return a.at_or({i[0] - 1, i[1] + 1}, -0.5); })};
}
Case case_slice(const Maker& make) {
  const Array a = sample({7, 8});
  return {slice(make(a), {-1, 1}, {INT64_MIN, -1}, {-2, 3}),
          generate({4, 2}, [&](const Ints& i) { return a.at({6 - 2 * i[0], 1 + 3 * i[1]}); })};
}
Case case_as_strided(const Maker& make) {
  const Array a = sample({12});
  return {as_strided(make(a), {3, 4}, {1, 2}, 3),
          generate({3, 4}, [&](const Ints& i) { return a.at({3 + i[0] + 2 * i[1]}); })};
}
Case case_squeeze(const Maker& make) {
  const Array a = sample({1, 3, 1});
  return {squeeze(make(a), {-1}), {{1, 3}, a.values}};
}
Case case_unsqueeze(const Maker& make) {
  const Array a = sample({3, 2});
  return {unsqueeze(make(a), {0, -1}), {{1, 3, 2, 1}, a.values}};
}
Case case_tile(const Maker& make) {
  const Array a = sample({2, 3});
  return {tile(make(a), {2, 3}),
          generate({4, 9}, [&](const Ints& i) { return a.at({i[0] % 2, i[1] % 3}); })};
}
Case case_depth_to_space(const Maker& make) {
  const Array a = sample({1, 8, 2, 3});
  return {depth_to_space(make(a), 2), generate({1, 2, 4, 6}, [&](const Ints& i) {
            return a.at({0, (i[2] % 2 * 2 + i[3] % 2) * 2 + i[1], i[2] / 2, i[3] / 2});
          })};
}
Case case_space_to_depth(const Maker& make) {
  const Array a = sample({1, 2, 4, 6});
  return {space_to_depth(make(a), 2), generate({1, 8, 2, 3}, [&](const Ints& i) {
            // ONNX puts the block before the channels.
            return a.at({0, i[1] % 2, i[2] * 2 + i[1] / 2 / 2, i[3] * 2 + i[1] / 2 % 2});
          })};
}

// ---- Types, choice, joining

Case case_cast(const Maker& make) {
  return {cast(make({{4}, {-1.75, 300.5, 2.5, 0}}), kInt8), {{4}, {-1, 127, 2, 0}}};
}
Case case_bitcast(const Maker& make) {
  return {bitcast(make({{2}, {1, -0.0}}), kInt32), {{2}, {0x3F800000, -2147483648.0}}};
}
Case case_where(const Maker& make) {
  const Array a = sample({2, 3}, 1);
  const Array b = sample({3}, 2);
  return {where(less(make(a), make(b)), make(a), make(b)),
          generate({2, 3}, [&](const Ints& i) { return std::min(a.at(i), b.at({i[1]})); })};
}
Case case_contiguous(const Maker& make) {
  const Array a = sample({2, 3});
  return {contiguous(permute(make(a), {1, 0})),
          generate({3, 2}, [&](const Ints& i) { return a.at({i[1], i[0]}); })};
}
Case case_concat(const Maker& make) {
  const Array a = sample({2, 3}, 1);
  const Array b = sample({2, 2}, 2);
  const Tensor parts[] = {make(a), make(b), make(a)};
  return {concat(parts, -1), generate({2, 8}, [&](const Ints& i) {
            return i[1] < 3 ? a.at(i) : i[1] < 5 ? b.at({i[0], i[1] - 3}) : a.at({i[0], i[1] - 5});
          })};
}
Case case_stack(const Maker& make) {
  const Array a = sample({2, 3}, 1);
  const Array b = sample({2, 3}, 2);
  const Tensor parts[] = {make(a), make(b)};
  return {stack(parts, 1),
          generate({2, 2, 3}, [&](const Ints& i) { return (i[1] ? b : a).at({i[0], i[2]}); })};
}
Case case_split(const Maker& make) {
  const Array a = sample({5, 2});
  const std::vector<Tensor> parts = split(make(a), {2, 0, 3}, 0);
  EXPECT_EQ(to_string(parts[1].shape()), "[0, 2]");
  return {parts[2], generate({3, 2}, [&](const Ints& i) { return a.at({i[0] + 2, i[1]}); })};
}
Case case_matmul(const Maker& make) {
  const Array a = sample({2, 1, 3, 5}, 1);
  const Array b = sample({4, 5, 2}, 2);
  return {matmul(make(a), make(b)), generate({2, 4, 3, 2}, [&](const Ints& i) {
            double s = 0;
            for (int64_t k = 0; k < 5; ++k) s += a.at({i[0], 0, i[2], k}) * b.at({i[1], k, i[3]});
            return s;
          })};
}

// ---- Positions

Case case_gather(const Maker& make) {
  const Array a = sample({4, 5});
  return {gather(make(a), make.ints({{2, 2}, {0, -1, 3, 2}}), 1),
          generate({4, 2, 2}, [&](const Ints& i) {
            const int64_t k[] = {0, 4, 3, 2};
            return a.at({i[0], k[i[1] * 2 + i[2]]});
          })};
}
Case case_take_along_axis(const Maker& make) {
  const Array a = sample({3, 4});
  const Array k{{2, 4}, {0, 2, 1, -1, -3, 0, 2, 1}};
  return {take_along_axis(make(a), make.ints(k), 0), generate({2, 4}, [&](const Ints& i) {
            const auto row = static_cast<int64_t>(k.at(i));
            return a.at({row < 0 ? row + 3 : row, i[1]});
          })};
}
Case case_gather_nd(const Maker& make) {
  const Array a = sample({2, 3, 4});
  const Array k{{2, 2, 1}, {0, -1, 2, 1}};
  return {gather_nd(make(a), make.ints(k), 1), generate({2, 2, 4}, [&](const Ints& i) {
            const auto row = static_cast<int64_t>(k.at({i[0], i[1], 0}));
            return a.at({i[0], row < 0 ? row + 3 : row, i[2]});
          })};
}
Case case_one_hot(const Maker& make) {
  return {one_hot(make.ints({{4}, {0, 2, -1, 7}}), 3, make({{}, {5}}), make({{}, {2}}), 0),
          {{3, 4}, {5, 2, 2, 2, 2, 2, 2, 2, 2, 5, 5, 2}}};
}
Case case_argmax(const Maker& make) {
  return {argmax(make({{3, 3}, {1, 3, 3, -2, NAN, NAN, -5, -5, -5}}), 1, false, false),
          {{3}, {1, 1, 0}}};
}
Case case_argmin(const Maker& make) {
  return {argmin(make({{3, 3}, {1, 1, 3, -2, NAN, NAN, -5, -5, -5}}), 1, true, true),
          {{3, 1}, {1, 2, 2}}};
}
Case case_cumsum(const Maker& make) {
  const Array a = sample({2, 150});
  return {cumsum(make(a), 1, true, true), generate({2, 150}, [&](const Ints& i) {
            double s = 0;
            for (int64_t k = i[1] + 1; k < 150; ++k) s += a.at({i[0], k});
            return s;
          })};
}
Case case_triu(const Maker& make) {
  const Array a = sample({2, 3, 4});
  return {triu(make(a), 1),
          generate({2, 3, 4}, [&](const Ints& i) { return i[2] - i[1] >= 1 ? a.at(i) : 0; })};
}
Case case_tril(const Maker& make) {
  const Array a = sample({4, 3});
  return {tril(make(a), -1),
          generate({4, 3}, [&](const Ints& i) { return i[1] - i[0] <= -1 ? a.at(i) : 0; })};
}

// ---- Activations

Case pointwise(const Maker& make, Tensor (*f)(const Tensor&), double (*want)(double)) {
  const Array a = sample({40});
  return {f(make(a)), generate({40}, [&](const Ints& i) { return want(a.at(i)); }), 2e-6};
}
Case case_gelu(const Maker& make) {
  return pointwise(
      make, [](const Tensor& t) { return gelu(t); },
      [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); });
}
Case case_elu(const Maker& make) {
  return pointwise(
      make, [](const Tensor& t) { return elu(t, 0.5); },
      [](double x) { return x < 0 ? 0.5 * std::expm1(x) : x; });
}
Case case_leaky_relu(const Maker& make) {
  return pointwise(
      make, [](const Tensor& t) { return leaky_relu(t, 0.25); },
      [](double x) { return x < 0 ? 0.25 * x : x; });
}
Case case_hard_sigmoid(const Maker& make) {
  return pointwise(
      make, [](const Tensor& t) { return hard_sigmoid(t, 0.5, 0.25); },
      [](double x) { return std::clamp(0.5 * x + 0.25, 0.0, 1.0); });
}
Case case_clip(const Maker& make) {
  return {clip(make({{4}, {-2, 0.5, 3, NAN}}), make({{}, {-1}}), make({{}, {1}})),
          {{4}, {-1, 0.5, 1, NAN}}};
}

double total(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0);
}
double mean_value(const std::vector<double>& v) {
  return total(v) / static_cast<double>(v.size());
}
double variance_value(const std::vector<double>& v) {
  const double m = mean_value(v);
  double s = 0;
  for (double x : v) s += (x - m) * (x - m);
  return s / static_cast<double>(v.size());
}

Case case_softmax(const Maker& make) {
  const Array a = sample({3, 5});
  const Array sums = fold(a, {1}, [](const std::vector<double>& v) {
    double s = 0;
    for (double x : v) s += std::exp(x);
    return s;
  });
  return {softmax(make(a), 1),
          generate({3, 5}, [&](const Ints& i) { return std::exp(a.at(i)) / sums.at({i[0], 0}); }),
          1e-6};
}
Case case_log_softmax(const Maker& make) {
  const Array a = sample({3, 5});
  const Array sums = fold(a, {0}, [](const std::vector<double>& v) {
    double s = 0;
    for (double x : v) s += std::exp(x);
    return s;
  });
  return {log_softmax(make(a), 0),
          generate({3, 5}, [&](const Ints& i) { return a.at(i) - std::log(sums.at({0, i[1]})); }),
          2e-6};
}
Case case_variance(const Maker& make) {
  const Array a = sample({3, 5});
  return {variance(make(a), {1}, 1, true),
          fold(a, {1}, [](const std::vector<double>& v) { return variance_value(v) * 5 / 4; }),
          1e-6};
}

// ---- Windows

Case case_conv(const Maker& make) {
  // Two groups, uneven padding, strides and dilations.
  const Array x = sample({2, 4, 7, 9}, 1);
  const Array w = sample({6, 2, 3, 2}, 2);
  const Array b = sample({6}, 3);
  Window o{{2, 1}, {1, 3}, {1, 0}, {2, 1}};
  o.groups = 2;
  return {conv(make(x), make(w), make(b), o), generate({2, 6, 4, 7}, [&](const Ints& i) {
            double s = b.at({i[1]});
            testing::for_each_index({2, 3, 2}, [&](const Ints& k) {
              s += w.at({i[1], k[0], k[1], k[2]}) *
                   x.at_or({i[0], i[1] / 3 * 2 + k[0], i[2] * 2 + k[1] - 1, i[3] + k[2] * 3}, 0);
            });
            return s;
          })};
}
Case case_conv_transpose(const Maker& make) {
  const Array x = sample({1, 4, 3, 4}, 1);
  const Array w = sample({4, 2, 3, 2}, 2);
  Window o{{2, 1}, {1, 2}, {1, 0}, {0, 1}};
  o.output_padding = {1, 0};
  o.groups = 2;
  Array want = generate({1, 4, 7, 5}, [](const Ints&) { return 0; });
  testing::for_each_index(x.shape, [&](const Ints& i) {
    testing::for_each_index({2, 3, 2}, [&](const Ints& k) {
      const Ints to{0, i[1] / 2 * 2 + k[0], i[2] * 2 + k[1] - 1, i[3] + k[2] * 2};
      if (to[2] < 0 || to[2] >= 7 || to[3] >= 5) return;
      want.values[static_cast<size_t>((to[1] * 7 + to[2]) * 5 + to[3])] +=
          x.at(i) * w.at({i[1], k[0], k[1], k[2]});
    });
  });
  return {conv_transpose(make(x), make(w), Tensor(), o), want};
}

// Windows of 3 with stride 2 over 6 elements and padding: the fourth is ceil_mode's, half outside.
struct PoolCase {
  Array x = sample({1, 2, 6, 5}, 4);
  Ints kernel{3, 2};
  Window options = make_window(kernel);

  static Window make_window(const Ints& kernel) {
    Window out{{2, 1}, {1, 2}, {1, 0}, {1, 1}};
    out.kernel = kernel;
    out.ceil_mode = true;
    return out;
  }

  Array each(const std::function<double(const std::vector<double>&, int64_t)>& f) const {
    return generate({1, 2, 4, 4}, [&](const Ints& i) {
      std::vector<double> inside;
      int64_t with_padding = 0;
      testing::for_each_index(kernel, [&](const Ints& k) {
        const int64_t r = i[2] * 2 + k[0] - 1;
        const int64_t c = i[3] + k[1] * 2;
        if (r >= 0 && r < 6 && c < 5) inside.push_back(x.at({0, i[1], r, c}));
        with_padding += r < 7 && c < 6;
      });
      return f(inside, with_padding);
    });
  }
};
Case case_max_pool(const Maker& make) {
  const PoolCase p;
  return {max_pool(make(p.x), p.options), p.each([](const std::vector<double>& v, int64_t) {
            return *std::max_element(v.begin(), v.end());
          })};
}
Case case_max_pool_indices(const Maker& make) {
  const PoolCase p;
  return {max_pool_indices(make(p.x), p.options), generate({1, 2, 4, 4}, [&](const Ints& i) {
            double best = -1e9;
            int64_t place = -1;
            testing::for_each_index(p.kernel, [&](const Ints& k) {
              const Ints at{0, i[1], i[2] * 2 + k[0] - 1, i[3] + k[1] * 2};
              if (p.x.at_or(at, -1e9) <= best) return;
              best = p.x.at(at);
              place = at[2] * 5 + at[3];
            });
            return static_cast<double>(place);
          })};
}
Case case_avg_pool(const Maker& make) {
  PoolCase p;
  const Tensor without = avg_pool(make(p.x), p.options);
  const reference::Values checked = reference::evaluate(without.node());
  const Array want = p.each([](const std::vector<double>& v, int64_t) { return mean_value(v); });
  for (size_t i = 0; i < want.values.size(); ++i)
    EXPECT_NEAR(checked.real[i], want.values[i], 1e-6);
  p.options.count_include_pad = true;
  return {avg_pool(make(p.x), p.options), p.each([](const std::vector<double>& v, int64_t n) {
            return total(v) / static_cast<double>(n);
          }),
          1e-6};
}

// ---- Normalisation

Case case_batch_norm(const Maker& make) {
  const Array x = sample({2, 3, 4}, 1);
  const Array scale = sample({3}, 2);
  const Array bias = sample({3}, 3);
  const Array mean = sample({3}, 4);
  const Array var{{3}, {0.5, 2, 1}};
  return {batch_norm(make(x), make(scale), make(bias), make(mean), make(var), 0.25),
          generate(x.shape,
                   [&](const Ints& i) {
                     const Ints c{i[1]};
                     return (x.at(i) - mean.at(c)) / std::sqrt(var.at(c) + 0.25) * scale.at(c) +
                            bias.at(c);
                   }),
          4e-6};
}

Array normalized_over(const Array& x, const Ints& axes, double epsilon) {
  const Array m = fold(x, axes, mean_value);
  const Array v = fold(x, axes, variance_value);
  return generate(x.shape, [&](const Ints& i) {
    Ints at = i;
    for (int64_t axis : axes) at[static_cast<size_t>(axis)] = 0;
    return (x.at(i) - m.at(at)) / std::sqrt(v.at(at) + epsilon);
  });
}

Case case_layer_norm(const Maker& make) {
  const Array x = sample({2, 3, 4}, 1);
  const Array scale = sample({3, 4}, 2);
  const Array bias = sample({4}, 3);
  const Array normal = normalized_over(x, {1, 2}, 0.5);
  return {layer_norm(make(x), make(scale), make(bias), 1, 0.5),
          generate(x.shape,
                   [&](const Ints& i) {
                     return normal.at(i) * scale.at({i[1], i[2]}) + bias.at({i[2]});
                   }),
          4e-6};
}
Case case_rms_norm(const Maker& make) {
  const Array x = sample({3, 4}, 1);
  const Array scale = sample({4}, 2);
  const Array power = fold(x, {1}, [](const std::vector<double>& v) {
    double s = 0;
    for (double e : v) s += e * e;
    return s / static_cast<double>(v.size());
  });
  return {rms_norm(make(x), make(scale), -1, 0.5),
          generate(x.shape,
                   [&](const Ints& i) {
                     return x.at(i) / std::sqrt(power.at({i[0], 0}) + 0.5) * scale.at({i[1]});
                   }),
          4e-6};
}
Case case_group_norm(const Maker& make) {
  const Array x = sample({2, 4, 3}, 1);
  const Array scale = sample({4}, 2);
  const Array bias = sample({4}, 3);
  const Array normal = normalized_over({{2, 2, 6}, x.values}, {2}, 0.5);
  return {group_norm(make(x), 2, make(scale), make(bias), 0.5),
          generate(x.shape,
                   [&](const Ints& i) {
                     return normal.at({i[0], i[1] / 2, i[1] % 2 * 3 + i[2]}) * scale.at({i[1]}) +
                            bias.at({i[1]});
                   }),
          4e-6};
}
Case case_instance_norm(const Maker& make) {
  const Array x = sample({2, 3, 2, 4}, 1);
  const Array scale = sample({3}, 2);
  const Array normal = normalized_over(x, {2, 3}, 0.5);
  return {instance_norm(make(x), make(scale), Tensor(), 0.5),
          generate(x.shape, [&](const Ints& i) { return normal.at(i) * scale.at({i[1]}); }), 4e-6};
}
Case lrn_with(const Maker& make, double beta) {
  const Array x = sample({2, 5, 3}, 1);
  return {lrn(make(x), 4, 0.5, beta, 2),
          generate(x.shape,
                   [=](const Ints& i) {
                     double s = 0;
                     for (int64_t c = i[1] - 1; c <= i[1] + 2; ++c) {
                       const double v = x.at_or({i[0], c, i[2]}, 0);
                       s += v * v;
                     }
                     return x.at(i) / std::pow(2 + 0.5 / 4 * s, beta);
                   }),
          2e-6};
}
Case case_lrn(const Maker& make) {
  return lrn_with(make, 0.75);
}

// ---- Losses

double mean_of(const Array& a) {
  return std::accumulate(a.values.begin(), a.values.end(), 0.0) /
         static_cast<double>(a.values.size());
}
// Element by element of two samples, and their mean.
template <class F>
Array mean_of_pairs(const Array& x, const Array& y, F loss) {
  return {{}, {mean_of(generate(x.shape, [&](const Ints& i) { return loss(x.at(i), y.at(i)); }))}};
}
double log_share(const Array& logits, int64_t row, int64_t of) {
  double total = 0;
  for (int64_t c = 0; c < logits.shape[1]; ++c) total += std::exp(logits.at({row, c}));
  return logits.at({row, of}) - std::log(total);
}

// Classes 2 0 1 2, of which 0 is ignored, with weights and a share for all classes.
Case case_cross_entropy(const Maker& make) {
  const Array x = sample({4, 3}), weight{{3}, {0.5, 2, 1.5}}, target{{4}, {2, 0, 1, 2}};
  constexpr double kShare = 0.25;
  double sharp = 0, flat = 0, weights = 0;
  for (int64_t row = 0; row < 4; ++row) {
    const auto of = static_cast<int64_t>(target.at({row}));
    if (of == 0) continue;
    weights += weight.at({of});
    sharp -= weight.at({of}) * log_share(x, row, of);
    for (int64_t c = 0; c < 3; ++c) flat -= weight.at({c}) * log_share(x, row, c) / 3;
  }
  const LossOptions options{make(weight), 0, LossReduction::Mean};
  return {cross_entropy(make(x), make.ints(target), options, kShare),
          {{}, {((1 - kShare) * sharp + kShare * flat) / weights}},
          1e-6};
}
Case case_nll_loss(const Maker& make) {
  const Array x = sample({4, 3}), target{{4}, {2, 0, 1, 2}};
  return {nll_loss(make(x), make.ints(target), {{}, {}, LossReduction::None}),
          generate({4}, [&](const Ints& i) {
            return -x.at({i[0], static_cast<int64_t>(target.at(i))});
          })};
}
// Of all ways to go through 4 steps, those that leave the labels without repetitions and blanks.
double probability_of(const Array& log_probability, int64_t batch, const Ints& labels,
                      int64_t steps) {
  double total = 0;
  for (int64_t way = 0; way < 81; ++way) {
    Ints spelled;
    double here = 0;
    int64_t rest = way, last = -1;
    bool is_over = false;
    for (int64_t t = 0; t < 4; ++t, rest /= 3) {
      const int64_t label = rest % 3;
      if (t >= steps) {
        is_over |= label != 0;  // one way of those that differ behind the end
        continue;
      }
      here += log_probability.at({t, batch, label});
      if (label != 0 && label != last) spelled.push_back(label);
      last = label;
    }
    if (!is_over && spelled == labels) total += std::exp(here);
  }
  return total;
}
Case case_ctc_loss(const Maker& make) {
  const Array x = sample({4, 3, 3});
  const Array target{{3, 2}, {1, 1, 2, 1, 2, 0}};
  const CtcOptions options{0, LossReduction::None};
  return {ctc_loss(make(x), make.ints(target), make.ints({{3}, {4, 3, 2}}),
                   make.ints({{3}, {2, 2, 1}}), options),
          {{3},
           {-std::log(probability_of(x, 0, {1, 1}, 4)), -std::log(probability_of(x, 1, {2, 1}, 3)),
            -std::log(probability_of(x, 2, {2}, 2))}},
          1e-5};
}
Case case_mse_loss(const Maker& make) {
  const Array x = sample({2, 3}, 1), y = sample({2, 3}, 2);
  return {mse_loss(make(x), make(y), LossReduction::Mean),
          mean_of_pairs(x, y, [](double a, double b) { return (a - b) * (a - b); }), 1e-6};
}
Case case_l1_loss(const Maker& make) {
  const Array x = sample({2, 3}, 1), y = sample({2, 3}, 2);
  return {l1_loss(make(x), make(y), LossReduction::Mean),
          mean_of_pairs(x, y, [](double a, double b) { return std::abs(a - b); }), 1e-6};
}
double smooth_distance(double a, double b, double beta) {
  const double d = std::abs(a - b);
  return d < beta ? d * d / (2 * beta) : d - beta / 2;
}
Case case_smooth_l1_loss(const Maker& make) {
  const Array x = sample({2, 3}, 1), y = sample({2, 3}, 2);
  return {smooth_l1_loss(make(x), make(y), LossReduction::Mean, 0.5),
          mean_of_pairs(x, y, [](double a, double b) { return smooth_distance(a, b, 0.5); }), 1e-6};
}
Case case_huber_loss(const Maker& make) {
  const Array x = sample({2, 3}, 1), y = sample({2, 3}, 2);
  return {huber_loss(make(x), make(y), LossReduction::Mean, 2),
          mean_of_pairs(x, y, [](double a, double b) { return 2 * smooth_distance(a, b, 2); }),
          1e-6};
}
// Shares between 0 and 1, both included.
Array shares(uint64_t seed) {
  Array a = sample({2, 3}, seed);
  for (double& v : a.values) v = (v + 2) / 4;
  a.values[0] = 0;
  a.values[1] = 1;
  return a;
}
Case case_binary_cross_entropy(const Maker& make) {
  const Array p = shares(1), t = shares(2);
  const auto least = [](double x) { return std::max(std::log(x), -100.0); };
  return {binary_cross_entropy(make(p), make(t), LossReduction::Mean),
          mean_of_pairs(p, t,
                        [&](double a, double b) { return -b * least(a) - (1 - b) * least(1 - a); }),
          1e-6};
}
Case case_binary_cross_entropy_with_logits(const Maker& make) {
  Array x = sample({2, 3}, 1);
  x.values[0] = -200;  // far beyond what exp has room for
  x.values[1] = 200;
  const Array t = shares(2), weight{{1}, {3}};
  return {binary_cross_entropy_with_logits(make(x), make(t), LossReduction::Mean, make(weight)),
          mean_of_pairs(x, t,
                        [](double a, double b) {
                          const double yes = std::max(-a, 0.0) + std::log1p(std::exp(-std::abs(a)));
                          return 3 * b * yes + (1 - b) * (a + yes);
                        }),
          1e-6};
}
Case case_kl_div(const Maker& make) {
  const Array x = sample({2, 3}, 1), t = shares(2);
  return {kl_div(make(x), make(t), LossReduction::Mean),
          mean_of_pairs(x, t, [](double a, double b) { return b > 0 ? b * (std::log(b) - a) : 0; }),
          1e-6};
}

// ---- Random numbers

// Threefry2x32 with 20 rounds, a word at a time (Salmon et al. 2011).
std::vector<uint32_t> threefry_bits(uint64_t seed, size_t count) {
  const auto low = static_cast<uint32_t>(seed), high = static_cast<uint32_t>(seed >> 32);
  const uint32_t schedule[] = {low, high, 0x1BD11BDA ^ low ^ high};
  const int rotations[] = {13, 15, 26, 6, 17, 29, 16, 24};
  const size_t half = (count + 1) / 2;
  std::vector<uint32_t> bits(2 * half);
  for (size_t i = 0; i < half; ++i) {
    uint32_t a = static_cast<uint32_t>(i) + low, b = static_cast<uint32_t>(half + i) + high;
    for (uint32_t round = 0; round < 20; ++round) {
      a += b;
      b = std::rotl(b, rotations[round % 8]) ^ a;
      if (round % 4 != 3) continue;
      const uint32_t group = round / 4 + 1;
      a += schedule[group % 3];
      b += schedule[(group + 1) % 3] + group;
    }
    bits[i] = a;
    bits[half + i] = b;
  }
  bits.resize(count);
  return bits;
}

constexpr uint64_t kSeed = 0x123456789abcdef;
Tensor key(const Maker& make) {
  return random_key(make.context(), kSeed);
}
template <class F>
Array of_bits(const Ints& shape, F value) {
  size_t at = 0, count = 1;
  for (const int64_t d : shape) count *= static_cast<size_t>(d);
  const std::vector<uint32_t> bits = threefry_bits(kSeed, count);
  return generate(shape, [&](const Ints&) { return static_cast<double>(value(bits[at++])); });
}
double fraction_of(uint32_t bits) {
  return std::ldexp(bits >> 9, -23);
}

Case case_random_key(const Maker& make) {
  return {key(make), {{2}, {0x89abcdef, 0x1234567}}};
}
Case case_random_bits(const Maker& make) {
  return {random_bits(key(make), 7), of_bits({7}, [](uint32_t b) { return b; })};
}
Case case_random_at(const Maker& make) {
  const Tensor counters = cast(reshape(arange(make.context(), kInt64, 6), {2, 3}), kUInt32);
  return {random_at(key(make), counters), of_bits({2, 3}, [](uint32_t b) { return b; })};
}
Case case_random_split(const Maker& make) {
  return {split_key(key(make), 3), of_bits({3, 2}, [](uint32_t b) { return b; })};
}
Case case_random_uniform(const Maker& make) {
  return {random_uniform(key(make), kFloat32, {2, 3}), of_bits({2, 3}, fraction_of)};
}
Case case_random_normal(const Maker& make) {
  const Array pair = of_bits({2, 5}, fraction_of);
  return {random_normal(key(make), kFloat32, {5}),
          generate({5},
                   [&](const Ints& i) {
                     return std::cos(2 * std::numbers::pi * pair.at({0, i[0]})) *
                            std::sqrt(-2 * std::log1p(-pair.at({1, i[0]})));
                   }),
          1e-6};
}
Case case_random_integers(const Maker& make) {
  return {random_integers(key(make), kInt32, {6}, -3, 9),
          of_bits({6}, [](uint32_t b) { return static_cast<int>(uint64_t{b} * 12 >> 32) - 3; })};
}
Case case_random_permutation(const Maker& make) {
  const std::vector<uint32_t> bits = threefry_bits(kSeed, 10);
  std::vector<double> order(5);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](double at) {
    const size_t i = 2 * static_cast<size_t>(at);
    return (uint64_t{bits[i + 1]} << 32 | bits[i]) >> 1;
  });
  return {random_permutation(key(make), 5), {{5}, order}};
}
Case case_initialize(const Maker& make) {
  return {initialize(key(make), {Initial::Constant, 3}, kFloat32, {2, 2}), {{2, 2}, {3, 3, 3, 3}}};
}
Case case_random_bernoulli(const Maker& make) {
  return {random_bernoulli(key(make), full(make.context(), kFloat32, {2, 4}, 0.5)),
          of_bits({2, 4}, [](uint32_t b) { return fraction_of(b) < 0.5; })};
}
// Where the distribution's values up to each, by the normal one, meet the uniform number.
double normal_at(double share, double low, double high) {
  const auto below = [](double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; };
  const double wanted = below(low) + share * (below(high) - below(low));
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (below(middle) < wanted ? low : high) = middle;
  }
  return low;
}
Case case_random_truncated_normal(const Maker& make) {
  return {random_truncated_normal(key(make), kFloat32, {40}, -1.5, 3),
          of_bits({40}, [](uint32_t b) { return normal_at(fraction_of(b), -1.5, 3); }), 2e-6};
}
// Shares of a line of all weights, one behind the other.
Case case_random_multinomial(const Maker& make) {
  const Array weights{{2, 4}, {0, 2, 1, 5, 0.5, 0, 0, 0.25}};
  const Array u = of_bits({2, 6}, fraction_of);
  return {random_multinomial(key(make), make(weights), 6, true),
          generate({2, 6}, [&](const Ints& i) {
            const int64_t row = i[0];
            double all = 0;
            for (int64_t k = 0; k < 4; ++k) all += weights.at({row, k});
            double rest = u.at(i) * all;
            int64_t place = 0;
            while (rest >= weights.at({row, place})) rest -= weights.at({row, place++});
            return static_cast<double>(place);
          })};
}
Case case_dropout(const Maker& make) {
  const Array x = sample({3, 4}), u = of_bits({3, 4}, fraction_of);
  return {dropout(key(make), make(x), 0.375),
          generate({3, 4}, [&](const Ints& i) { return u.at(i) < 0.625 ? x.at(i) / 0.625 : 0; }),
          1e-6};
}
Case case_detach(const Maker& make) {
  const Array x = sample({3, 4});
  return {detach(make(x)), x};
}
Case case_recompute(const Maker& make) {
  const Array x = sample({3, 4});
  const Tensor a = make(x), kept[] = {a};
  return {recompute(neg(a), kept), generate({3, 4}, [&](const Ints& i) { return -x.at(i); })};
}

const std::map<std::string, Function>& cases() {
  static const auto& all = *new std::map<std::string, Function>{
#define FUNCTION(name, parameters, meaning) {#name, case_##name},
#include "api/functions.def"
  };
  return all;
}

class FunctionTest : public ::testing::TestWithParam<std::string> {};

void expect_definition(const Case& c) {
  ASSERT_EQ(to_string(c.got.shape()), to_string(to_shape(c.want.shape)));
  const reference::Values values = reference::evaluate(c.got.node());
  for (size_t i = 0; i < c.want.values.size(); ++i) {
    const double got =
        values.dtype.is_float() ? values.real[i] : static_cast<double>(values.whole[i]);
    const double want = c.want.values[i];
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << "element " << i;
    } else {
      EXPECT_NEAR(got, want, c.tolerance * std::max(1.0, std::abs(want))) << "element " << i;
    }
  }
}

// A row without a case does not compile.
TEST_P(FunctionTest, HasItsDefinitionsValues) {
  expect_definition(cases().at(GetParam())(Maker(new_context("interp"))));
}

TEST(Functions, LrnTakesAnyPower) {
  const Maker make(new_context("interp"));
  for (const double beta : {0.25, 0.5, 0.6, 1.0, 2.0}) expect_definition(lrn_with(make, beta));
}

TEST_P(FunctionTest, IsComputedAsTheOracleDoes) {
  for (const BackendInfo& backend : known_backends()) {
    // The C compiler takes long; random graphs try it.
    if (!backend.available || (backend.name != "interp" && backend.name != "cpu")) continue;
    std::vector<std::string> isas = backend.isas;
    if (isas.empty()) isas.push_back("auto");
    for (const std::string& isa : isas) {
      const Maker make(new_context(backend.name, isa));
      Case c = cases().at(GetParam())(make);
      const reference::Values want = reference::evaluate(c.got.node());
      std::string bytes(static_cast<size_t>(element_count(c.got) * c.got.dtype().bytes()), '\0');
      read(c.got, bytes.data(), std::ssize(bytes));
      EXPECT_EQ(reference::difference(want, bytes.data()), "") << backend.name << " " << isa;
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, function] : cases()) all.push_back(name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, FunctionTest, ::testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tiny
