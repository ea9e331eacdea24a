#include "render/c/opencl.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "render/c/function.h"
#include "render/c/types.h"

namespace tiny {
namespace {

// Addresses are typed pointers here, and `address` is what is added to one.  A constant of 64 bits
// ends in one l: two would make 128 bits.
constexpr const char* kBeginning = R"(#pragma OPENCL FP_CONTRACT OFF
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define INLINE static inline
#define VECTOR(one, name, lanes) typedef struct { one lane[lanes]; } name;
#define AT(x, l) (x).lane[l]
#define INFIX(name, type, one, as, as_one, lanes, op)                     \
  INLINE type name(type a, type b) {                                      \
    for (int l = 0; l < lanes; ++l)                                       \
      a.lane[l] = (one)((as_one)a.lane[l] op (as_one)b.lane[l]);          \
    return a;                                                             \
  }
#if defined(__clang__) || defined(__GNUC__)
#define ANYWHERE(one) typedef one anywhere_##one __attribute__((may_alias));
#else
#define ANYWHERE(one) typedef one anywhere_##one;
#endif
#define fmaf fma
#define fabsf fabs
#define ldexpf ldexp

typedef uchar b8; /* 0 or 1 */
typedef char i8;
typedef short i16;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef ushort h16;  /* the bits of a binary16 */
typedef ushort bf16; /* the upper bits of a binary32 */
typedef float f32;
#if defined(cl_khr_fp64) || defined(__opencl_c_fp64)
typedef double f64;
#endif
typedef long address;

#ifdef POCL_DEVICE_ADDRESS_BITS
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

std::string area(const char* space, const char* name, int64_t bytes) {
  if (bytes == 0) return "";
  return cat("  ", space, " uchar ", name, "[", bytes, "] __attribute__((aligned(64)));\n");
}

std::string opening(const LinearProgram& program, bool, int64_t fold_bytes) {
  const std::array<int64_t, 3>& group = program.group;
  std::string out = cat("/* ", program.name,
                        program.grouped    ? ", a group for each number from begin to end */\n"
                        : program.threaded ? ", an item for each number from begin to end */\n"
                                           : " */\n",
                        "__kernel ");
  if (program.grouped)
    out += cat("__attribute__((reqd_work_group_size(", group[0], ", ", group[1], ", ", group[2],
               ")))\n");
  out += cat("void ", program.name, "(");
  for (size_t i = 0; i < program.params.size(); ++i)
    out += cat("__global uchar *buffer", i, ", i64 start", i, ", ");
  for (size_t i = 0; i < program.variables.size(); ++i) out += cat("i64 n_", i, ", ");
  out += "i64 begin, i64 end, __global int *status) {\n";
  if (program.grouped) {
    out += "  const i64 piece = begin + (i64)get_group_id(0);\n";
  } else {
    out += "  const i64 piece = begin + (i64)get_global_id(0);\n  if (piece >= end) return;\n";
  }
  if (fold_bytes > 0)
    out += cat("  const int thread = (int)(get_local_id(0) + ", group[0], " * (get_local_id(1) + ",
               group[1], " * get_local_id(2)));\n");
  return out + area("__local", "shared", program.shared_bytes) +
         area("__local", "folds", fold_bytes) + area("__private", "scratch", program.scratch_bytes);
}

std::string leaf(const LinearProgram& program, const LinearOp& op) {
  switch (op.op) {
    case Op::Param:
      return cat("buffer", op.imm, " + start", op.imm);
    case Op::Scratch:
      return cat("scratch", c::displaced(op.imm, c::kOpenCl));
    case Op::Shared:
      return cat("shared", c::displaced(op.imm, c::kOpenCl));
    case Op::Variable: {
      const std::string& label = program.variables[static_cast<size_t>(op.imm)].name;
      return cat("n_", op.imm, c::is_identifier(label) ? cat(" /* ", label, " */") : "");
    }
    default:
      return op.imm >= 3   ? cat("(i64)get_local_id(", op.imm - 3, ")")
             : op.imm == 0 ? "piece"
             : op.imm == 1 ? "piece + 1"
                           : "0";
  }
}

}  // namespace

const c::Dialect c::kOpenCl = {
    .beginning = kBeginning,
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
  c::Helpers helpers(c::kOpenCl);
  std::string functions;
  std::set<std::string> names;
  for (const LinearProgram& program : programs) {
    invariant(names.insert(program.name).second,
              "kernels of one translation unit have their own names");
    functions += "\n" + c::function_text(program, helpers, false);
  }
  for (const std::string& name : names)
    invariant(!helpers.defines(name), "kernels have other names than what they call");
  return cat("/* Kernels made by tiny. */\n", kBeginning, helpers.text(), functions);
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
