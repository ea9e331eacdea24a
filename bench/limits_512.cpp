#include "limits_vectors.h"

float fma_512(int64_t steps) {
  return fma_chains<Vector512, kWideChains>(steps);
}

float read_512(const float* from, size_t count) {
  return read_sums<Vector512>(from, count);
}
