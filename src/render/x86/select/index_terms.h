// Terms of index expressions that instructions add by themselves.
#pragma once

#include "render/x86/select/linear_view.h"

namespace tiny::x86 {

inline constexpr LinearId kNoIndex = UINT32_MAX;  // an index that was all constant

// What is left of `index` when constant terms are added to `constant`; kNoIndex if nothing is.
LinearId peel(const LinearView& ops, LinearId index, int64_t& constant);

inline int64_t wrapping_add_product(int64_t a, int64_t b, int64_t c) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) +
                              static_cast<uint64_t>(b) * static_cast<uint64_t>(c));
}

// Whether an instruction multiplies an index by it.
inline bool is_scale(int64_t n) {
  return n == 1 || n == 2 || n == 4 || n == 8;
}

}  // namespace tiny::x86
