// Integer arithmetic that fails with a status instead of wrapping: sizes, strides and offsets come
// from callers and from untrusted files.
#pragma once

#include <cstdint>
#include <limits>

#include "base/error.h"

namespace tiny {

// a * b, or Error{Limit} that names `what`.
inline int64_t checked_mul(int64_t a, int64_t b, const char* what) {
  int64_t r = 0;
  require(!__builtin_mul_overflow(a, b, &r), Status::Limit, what, " overflows: ", a, " * ", b);
  return r;
}

// a + b, or Error{Limit} that names `what`.
inline int64_t checked_add(int64_t a, int64_t b, const char* what) {
  int64_t r = 0;
  require(!__builtin_add_overflow(a, b, &r), Status::Limit, what, " overflows: ", a, " + ", b);
  return r;
}

// floor(a / b) and a - b * floor(a / b); b must not be 0, and not -1 for the lowest a.
constexpr int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q - ((a % b != 0 && ((a < 0) != (b < 0))) ? 1 : 0);
}
constexpr int64_t floor_mod(int64_t a, int64_t b) {
  int64_t m = a % b;
  return m + ((m != 0 && ((m < 0) != (b < 0))) ? b : 0);
}
constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return -floor_div(-a, b);
}
// The least multiple of `b` > 0 that is not below `a`.
constexpr int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}

}  // namespace tiny
