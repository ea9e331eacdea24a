// Definitions of creation and movement.
#include "tensor/movement.h"
#include "tensor/create.h"
#include "tensor/indexing.h"
#include "tensor/strides.h"
#include "tests/tensor/function_cases/case.h"

namespace tiny::function_cases {

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
Case case_empty_strided(const Maker& make) {
  // Memory by its strides, as the function's meaning says; written here, so that it has a value.
  const Array a = sample({2, 3});
  Tensor made = empty_strided(make.context(), kFloat32, {2, 3}, {-1, 4});
  assign(made, make(a));
  return {made, a};
}
Case case_apply_movement_op(const Maker& make) {
  const Array a = sample({5, 7});
  return {apply_movement_op(make(a), {Movement::Stride, {-2, 3}}),
          generate({3, 3}, [&](const Ints& i) { return a.at({4 - 2 * i[0], 3 * i[1]}); })};
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

}  // namespace tiny::function_cases
