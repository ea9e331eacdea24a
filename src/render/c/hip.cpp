#include "render/c/hip.h"

#include "render/c/groups.h"

namespace tiny {
namespace {

// `long` has 32 bits on one of the systems, and what the header calls `ushort` is its own.
constexpr const char* kBeginning = R"(#if !defined(__HIPCC_RTC__)
#include <hip/hip_runtime.h>
#endif
#if defined(__clang__)
#pragma clang fp contract(off)
#endif
#define INLINE static inline __device__

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef long long i64;
typedef unsigned long long u64;
typedef double f64;
)";

constexpr const char* kCheck =
    "/* The first check that fails is kept: its number, from 1, and behind it its position. */\n"
    "INLINE void check_b8(int *status, b8 holds, int number, i64 position) {\n"
    "  if (!holds && atomicCAS(status, 0, number + 1) == 0)\n"
    "    *(i64 *)(status + 2) = position;\n"
    "}";

constexpr c::GroupWords kWords{
    .entry = "extern \"C\" __global__ ",
    .grouped = "extern \"C\" __global__ __launch_bounds__($3)\n",
    .buffer = "uchar *buffer$0",
    .numbers = nullptr,
    .tail = "int *status",
    .group = "blockIdx.x",
    .any = "blockIdx.x * blockDim.x + threadIdx.x",
    .thread = {"threadIdx.x", "threadIdx.y", "threadIdx.z"},
    .shared = "__shared__ __attribute__((aligned(64))) uchar $0[$1];",
    .scratch = "__attribute__((aligned(64))) uchar $0[$1];",
};

std::string opening(const LinearProgram& program, bool, int64_t fold_bytes) {
  return c::group_opening(kWords, program, fold_bytes);
}

std::string leaf(const LinearProgram& program, const LinearOp& op) {
  return c::group_leaf(kWords, c::kHip, program, op);
}

// The compiler finds out what an address points into.
constexpr c::Pointer kAnywhere{"", "uchar *", "uchar *const ", ""};

}  // namespace

const c::Dialect c::kHip = {
    .beginning = kBeginning,
    .functions = "",
    .long_suffix = "ll",
    .has_infinity = false,
    .is_gnu = false,
    .pointers = {kAnywhere, kAnywhere, kAnywhere},
    .divide_f32 = nullptr,
    .check = kCheck,
    .status = "int *",
    .status_value = "status",
    .poll = nullptr,
    .prefetch = nullptr,
    .barrier = "__syncthreads();",
    .opening = opening,
    .leaf = leaf,
};

std::string render_hip(std::span<const LinearProgram> programs) {
  return c::group_unit(c::kHip, programs);
}

}  // namespace tiny
