#include "limits_vectors.h"

float fma_256(int64_t steps) {
  return fma_chains<Vector256, kNarrowChains>(steps);
}

float read_256(const float* from, size_t count) {
  return read_sums<Vector256>(from, count);
}
