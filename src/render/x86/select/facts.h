// What is known of each linear op before selection.
//
// reads: the linear program.
#pragma once

#include <vector>

#include "render/x86/select/linear_view.h"

namespace tiny::x86 {

inline constexpr LinearId kNoTarget = UINT32_MAX;

struct OpFacts {
  uint32_t uses = 0;
  uint32_t epoch = 0;           // changes at every store, set and block boundary
  uint32_t block = 0;           // changes at every block boundary
  LinearId user = 0;            // the last one
  LinearId target = kNoTarget;  // the accumulator that the value is computed in
  uint8_t lane = 0;             // AVX2 masks: the lane that users want
};

using Facts = std::vector<OpFacts>;

Facts find_facts(const LinearView& ops, bool avx512);

}  // namespace tiny::x86
