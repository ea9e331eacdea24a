#include "render/c/metal.h"

#include "base/error.h"
#include "base/text.h"
#include "render/c/groups.h"

namespace tiny {
namespace {

// Metal Feature Set Tables: entries of a function's table of buffers.
constexpr size_t kBuffersMost = 31;
constexpr size_t kOwnBuffers = 2;  // numbers, status

constexpr const char* kBeginning = R"(#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#define INLINE static inline
#define fmaf fma
#define fabsf fabs
#define ldexpf ldexp
#define floorf floor
#define ceilf ceil
#define truncf trunc
#define rintf rint
#define sqrtf precise::sqrt

typedef long i64;
typedef ulong u64;
)";

// What may fail without a reason is asked again.
constexpr const char* kCheck =
    "/* The first check that fails is kept: its number, from 1, and behind it its position. */\n"
    "INLINE void check_b8(device atomic_int *status, b8 holds, int number, i64 position) {\n"
    "  int found = 0;\n"
    "  if (holds) return;\n"
    "  while (!atomic_compare_exchange_weak_explicit(status, &found, number + 1,\n"
    "                                                memory_order_relaxed, memory_order_relaxed))\n"
    "    if (found != 0) return;\n"
    "  *(device i64 *)(status + 2) = position;\n"
    "}";

constexpr c::GroupWords kWords{
    .entry = "[[kernel]] ",
    .grouped = "[[kernel, max_total_threads_per_threadgroup($3)]]\n",
    .buffer = "device uchar *buffer$0 [[buffer($0)]]",
    .numbers = "constant i64 *numbers [[buffer($0)]]",
    .tail =
        "device atomic_int *status [[buffer($0)]], "
        "uint3 group [[threadgroup_position_in_grid]], "
        "uint3 local [[thread_position_in_threadgroup]], "
        "uint3 grid [[thread_position_in_grid]]",
    .group = "group.x",
    .any = "grid.x",
    .thread = {"local.x", "local.y", "local.z"},
    .shared = "threadgroup uchar $0[$1] __attribute__((aligned(64)));",
    .scratch = "thread uchar $0[$1] __attribute__((aligned(64)));",
};

std::string opening(const LinearProgram& program, bool, int64_t fold_bytes) {
  return c::group_opening(kWords, program, fold_bytes);
}

std::string leaf(const LinearProgram& program, const LinearOp& op) {
  return c::group_leaf(kWords, c::kMetal, program, op);
}

}  // namespace

const c::Dialect c::kMetal = {
    .beginning = kBeginning,
    .functions = "",
    .long_suffix = "l",
    .has_infinity = false,
    .is_gnu = false,
    .pointers = {c::Pointer{"device ", "device uchar *", "device uchar *const ", "_device"},
                 c::Pointer{"threadgroup ", "threadgroup uchar *", "threadgroup uchar *const ",
                            "_threadgroup"},
                 c::Pointer{"thread ", "thread uchar *", "thread uchar *const ", "_thread"}},
    .divide_f32 = nullptr,
    .check = kCheck,
    .status = "device atomic_int *",
    .status_value = "status",
    .poll = nullptr,
    .prefetch = nullptr,
    .barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);",
    .opening = opening,
    .leaf = leaf,
};

std::string render_metal(std::span<const LinearProgram> programs) {
  for (const LinearProgram& program : programs) {
    for (const LinearOp& op : program.ops)
      require(op.dtype.scalar != ScalarType::Float64, Status::Unsupported, "kernel ", program.name,
              " computes with float64, which Metal has not");
    require(program.params.size() + kOwnBuffers <= kBuffersMost, Status::Unsupported, "kernel ",
            program.name, " has ", program.params.size(), " buffers: Metal has at most ",
            kBuffersMost - kOwnBuffers, " beside its numbers and the status");
  }
  return c::group_unit(c::kMetal, programs);
}

}  // namespace tiny
