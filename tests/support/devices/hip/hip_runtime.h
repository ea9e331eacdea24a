// The words of HIP that kernels use, for tests on machines without its header: in clang's HIP mode
// by the processor's builtins, elsewhere on the host.
#pragma once

#if defined(__HIP__)

#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads) __attribute__((launch_bounds(threads)))
struct Index {
  unsigned x, y, z;
};
static inline __device__ Index thread_index() {
  return {__builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
          __builtin_amdgcn_workitem_id_z()};
}
static inline __device__ Index block_index() {
  return {__builtin_amdgcn_workgroup_id_x(), 0, 0};
}
static inline __device__ Index block_size() {
  return {__builtin_amdgcn_workgroup_size_x(), 1, 1};
}
#define threadIdx thread_index()
#define blockIdx block_index()
#define blockDim block_size()
static inline __device__ void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
  __builtin_amdgcn_s_barrier();
}
static inline __device__ int atomicCAS(int* at, int expected, int value) {
  return __sync_val_compare_and_swap(at, expected, value);
}
#define fmaf __builtin_fmaf
#define fma __builtin_fma
#define fabsf __builtin_fabsf
#define fabs __builtin_fabs
#define sqrtf __builtin_sqrtf
#define sqrt __builtin_sqrt
#define floorf __builtin_floorf
#define floor __builtin_floor
#define ceilf __builtin_ceilf
#define ceil __builtin_ceil
#define truncf __builtin_truncf
#define trunc __builtin_trunc
#define rintf __builtin_rintf
#define rint __builtin_rint
#define ldexpf __builtin_ldexpf
#define ldexp __builtin_ldexp

#else

#include <math.h>

#include "tests/support/devices/host_groups.h"

#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(threads)
#define threadIdx host::thread_of_group
#define blockIdx host::group_of_grid
#define blockDim host::size
static inline void __syncthreads() {
  host::barrier();
}
static inline int atomicCAS(int* at, int expected, int value) {
  const int found = *at;
  if (found == expected) *at = value;
  return found;
}

#endif
