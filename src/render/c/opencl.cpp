#include "render/c/opencl.h"

#include "render/c/groups.h"

namespace tiny {
namespace {

// A constant of 64 bits ends in one l: two would make 128 bits.
constexpr const char* kBeginning = R"(#pragma OPENCL FP_CONTRACT OFF
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define INLINE static inline
#define fmaf fma
#define fabsf fabs
#define ldexpf ldexp

typedef long i64;
typedef ulong u64;
#if defined(cl_khr_fp64) || defined(__opencl_c_fp64)
typedef double f64;
#endif
)";

constexpr const char* kFunctions = R"(#ifdef POCL_DEVICE_ADDRESS_BITS
/* PoCL 3.1 computes 0 and other numbers for a NaN that it knows when it compiles. */
#define ROUNDED(name, one, function) \
  INLINE one name(one a) { return a != a ? a : function(a); }
ROUNDED(floorf, f32, floor)
ROUNDED(ceilf, f32, ceil)
ROUNDED(truncf, f32, trunc)
ROUNDED(rintf, f32, rint)
ROUNDED(floor_f64, f64, floor)
ROUNDED(ceil_f64, f64, ceil)
ROUNDED(trunc_f64, f64, trunc)
ROUNDED(rint_f64, f64, rint)
#undef floor
#undef ceil
#undef trunc
#undef rint
#define floor floor_f64
#define ceil ceil_f64
#define trunc trunc_f64
#define rint rint_f64
#else
#define floorf floor
#define ceilf ceil
#define truncf trunc
#define rintf rint
#endif

#ifdef DIVIDE_IN_FLOAT64
/* Rounded twice, which is once: float64 has more than twice the digits. */
#define sqrtf(a) ((f32)sqrt((f64)(a)))
INLINE f32 div_f32(f32 a, f32 b) { return (f32)((f64)a / (f64)b); }
#else
#define sqrtf sqrt
INLINE f32 div_f32(f32 a, f32 b) { return a / b; }
#endif

)";

// In 32 bits, whose atomics every device has: the number of the check and one, then, by who wrote
// that, the position.
constexpr const char* kCheck =
    "/* The first check that fails is kept: its number, from 1, and behind it its position. */\n"
    "INLINE void check_b8(__global int *status, b8 holds, int number, i64 position) {\n"
    "  if (!holds && atomic_cmpxchg((volatile __global int *)status, 0, number + 1) == 0)\n"
    "    *(__global i64 *)(status + 2) = position;\n"
    "}";

constexpr c::GroupWords kWords{
    .entry = "__kernel ",
    .grouped = "__kernel __attribute__((reqd_work_group_size($0, $1, $2)))\n",
    .buffer = "__global uchar *buffer$0",
    .numbers = nullptr,
    .tail = "__global int *status",
    .group = "get_group_id(0)",
    .any = "get_global_id(0)",
    .thread = {"get_local_id(0)", "get_local_id(1)", "get_local_id(2)"},
    .shared = "__local uchar $0[$1] __attribute__((aligned(64)));",
    .scratch = "__private uchar $0[$1] __attribute__((aligned(64)));",
};

std::string opening(const LinearProgram& program, bool, int64_t fold_bytes) {
  return c::group_opening(kWords, program, fold_bytes);
}

std::string leaf(const LinearProgram& program, const LinearOp& op) {
  return c::group_leaf(kWords, c::kOpenCl, program, op);
}

}  // namespace

const c::Dialect c::kOpenCl = {
    .beginning = kBeginning,
    .functions = kFunctions,
    .long_suffix = "l",
    .has_infinity = false,
    .is_gnu = false,
    .pointers = {c::Pointer{"__global ", "__global uchar *", "__global uchar *const ", "_global"},
                 c::Pointer{"__local ", "__local uchar *", "__local uchar *const ", "_local"},
                 c::Pointer{"__private ", "__private uchar *", "__private uchar *const ",
                            "_private"}},
    .divide_f32 = "div_f32",
    .check = kCheck,
    .status = "__global int *",
    .status_value = "status",
    .poll = nullptr,
    .prefetch = nullptr,
    .barrier = "barrier(CLK_LOCAL_MEM_FENCE);",
    .opening = opening,
    .leaf = leaf,
};

std::string render_opencl_unit(std::span<const LinearProgram> programs) {
  return c::group_unit(c::kOpenCl, programs);
}

std::vector<Code> render_opencl(std::span<const LinearProgram> programs) {
  const std::string text = render_opencl_unit(programs);
  std::vector<Code> codes;
  for (const LinearProgram& program : programs) {
    Code code;
    code.kind = CodeKind::OpenCl;
    code.name = program.name;
    code.entry = program.name;
    code.text = text;
    if (program.grouped) code.group = program.group;
    codes.push_back(std::move(code));
  }
  return codes;
}

}  // namespace tiny
