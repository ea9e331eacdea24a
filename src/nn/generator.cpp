#include "nn/generator.h"

#include <array>

#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/random.h"
#include "tensor/value.h"

namespace tiny {

namespace {

constexpr int64_t kWords = 3;  // two of the seed, and the step

Tensor state_of(const Ref<Context>& context, uint64_t seed) {
  const uint32_t words[kWords] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                                  0};
  return from_data(context, kUInt32, {kWords}, words, sizeof words);
}

}  // namespace

Generator::Generator(const Ref<Context>& context, uint64_t seed) : state_(state_of(context, seed)) {
  own_memory(state_, true);
  Tensor* const one[] = {&state_};
  realize(one);
}

Tensor Generator::next() {
  const Tensor before = state_.with(state_.node());
  if (state_.cell()->along().empty()) {
    constexpr std::array<uint32_t, kWords> kStep{0, 0, 1};
    const Tensor step =
        from_data(state_.context_ref(), kUInt32, {kWords}, kStep.data(), sizeof kStep);
    assign_along(state_, before + step, before);
    keys_ = 0;
  }
  const auto word = [&](int64_t i) { return slice_axis(before, 0, i, i + 1); };
  const Tensor step = word(2);
  const ThreefryWords key = threefry2x32({word(0), word(1)}, {step, number_int(step, keys_++)});
  return concat(std::array{key.first, key.second}, 0);
}

}  // namespace tiny
