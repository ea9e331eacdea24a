#include "render/c/c.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "render/c/function.h"
#include "render/c/preamble.h"

namespace tiny {
namespace {

std::string opening(const LinearProgram& program, bool is_part, int64_t) {
  return cat("/* ", program.name, program.threaded ? ", from begin to end */\n" : " */\n",
             is_part ? "static " : "", "void ", program.name, "(const struct KernelArgs *args) {\n",
             "  (void)args;\n");
}

std::string leaf(const LinearProgram& program, const LinearOp& op) {
  switch (op.op) {
    case Op::Param:
      return cat("(address)args->buffers[", op.imm, "]");
    case Op::Scratch:
      return cat("(address)args->scratch", c::displaced(op.imm, c::kC));
    case Op::Variable: {
      const std::string& label = program.variables[static_cast<size_t>(op.imm)].name;
      return cat("args->variables[", op.imm, "]",
                 c::is_identifier(label) ? cat(" /* ", label, " */") : "");
    }
    default:
      return op.imm == 0 ? "args->begin" : op.imm == 1 ? "args->end" : "args->worker";
  }
}

constexpr const char* kCheck =
    "/* The first check that fails is kept: its number and position in one word. */\n"
    "INLINE void check_b8(i64 *status, b8 holds, u64 number, i64 position) {\n"
    "  i64 none = 0, failed = (i64)((number + 1) << 47 | ((u64)position & ((1ull << 47) - "
    "1)));\n"
    "  if (holds) return;\n"
    "#if defined(__GNUC__)\n"
    "  __atomic_compare_exchange_n(status, &none, failed, 0, __ATOMIC_RELAXED, "
    "__ATOMIC_RELAXED);\n"
    "#else\n"
    "  atomic_compare_exchange_strong((_Atomic i64 *)status, &none, failed);\n"
    "#endif\n"
    "}";

constexpr c::Pointer kAnywhere{"", "address ", "const address ", ""};

}  // namespace

const c::Dialect c::kC = {
    .beginning = kPreamble,
    .functions = "",
    .long_suffix = "ll",
    .has_infinity = true,
    .is_gnu = true,
    .pointers = {kAnywhere, kAnywhere, kAnywhere},
    .divide_f32 = nullptr,
    .check = kCheck,
    .status = "i64 *",
    .status_value = "args->status",
    .poll = "if (args->poll->ask(args->poll)) return;",
    .prefetch = "PREFETCH",
    .barrier = nullptr,
    .opening = opening,
    .leaf = leaf,
};

bool has_c_renderer() {
  return true;
}

CUnit render_c_parts(std::span<const LinearProgram> programs, bool is_part) {
  c::Helpers helpers(c::kC);
  std::string functions = c::functions_text(programs, helpers, is_part);
  return {c::kPreamble + helpers.text(), std::move(functions)};
}

std::string render_c_unit(std::span<const LinearProgram> programs) {
  for (const LinearProgram& program : programs)
    require(!program.grouped, Status::Unsupported, "kernel ", program.name,
            " is of groups of threads, which C has not");
  const CUnit unit = render_c_parts(programs, false);
  return cat("/* Kernels made by tiny. */\n", unit.beginning, unit.functions);
}

Code render_c(const LinearProgram& program) {
  return {CodeKind::C,          program.name, program.name, {}, render_c_unit({&program, 1}),
          program.scratch_bytes};
}

}  // namespace tiny
