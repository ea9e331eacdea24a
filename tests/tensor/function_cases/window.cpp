// Definitions of windows.
#include <algorithm>

#include "tensor/window.h"
#include "tests/reference/reference.h"
#include "tests/tensor/function_cases/case.h"

namespace tiny::function_cases {

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
namespace {

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

}  // namespace

Case case_windows(const Maker& make) {
  Window window{{2, 1}, {1, 2}, {1, 0}, {1, 1}};
  window.kernel = {3, 2};
  const Array x = sample({1, 2, 6, 5}, 4);
  return {windows(make(x), window), generate({1, 2, 3, 4, 3, 2}, [&](const Ints& i) {
            return x.at_or({0, i[1], i[2] * 2 + i[4] - 1, i[3] + i[5] * 2}, 0);
          })};
}
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

}  // namespace tiny::function_cases
