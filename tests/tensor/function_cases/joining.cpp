// Definitions of types, choices, joining, positions.
#include <algorithm>

#include "base/text.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/scan.h"
#include "tests/tensor/function_cases/case.h"

namespace tiny::function_cases {

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

}  // namespace tiny::function_cases
