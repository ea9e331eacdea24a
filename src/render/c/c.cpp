#include "render/c/c.h"

#include <set>

#include "base/error.h"
#include "base/look_often.h"
#include "base/text.h"
#include "render/c/helpers.h"
#include "render/c/types.h"

namespace tiny {
namespace {

constexpr const char* kPreamble = R"(/* Kernels made by tiny, for gcc and clang.  Compile with
   -O2 -ffp-contract=off -fno-math-errno -fwrapv -fno-strict-aliasing and link with -lm. */
#define INLINE static inline __attribute__((always_inline))
typedef __UINT8_TYPE__ b8; /* 0 or 1 */
typedef __INT8_TYPE__ i8;
typedef __INT16_TYPE__ i16;
typedef __INT32_TYPE__ i32;
typedef __INT64_TYPE__ i64;
typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;
typedef __UINT16_TYPE__ h16;  /* the bits of a binary16 */
typedef __UINT16_TYPE__ bf16; /* the upper bits of a binary32 */
typedef float f32;
typedef double f64;
typedef __UINTPTR_TYPE__ address;

struct KernelPoll {
  i32 (*ask)(const struct KernelPoll *poll);
};
struct KernelArgs {
  void *const *buffers;
  const i64 *variables;
  char *scratch;
  i64 begin;
  i64 end;
  i64 worker;
  i64 *status;
  const struct KernelPoll *poll;
};

)";

bool is_identifier(const std::string& name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (char ch : name) {
    const bool letter = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
    if (!letter && !(ch >= '0' && ch <= '9')) return false;
  }
  return true;
}

// " + 16", " - 16" or nothing.
std::string displaced(int64_t bytes) {
  if (bytes == 0) return "";
  if (bytes == INT64_MIN) return " + (-9223372036854775807ll - 1)";
  return bytes > 0 ? cat(" + ", bytes) : cat(" - ", -bytes);
}

// The body of one function.
class Function {
 public:
  Function(const LinearProgram& program, c::Helpers& helpers)
      : program_(program), helpers_(helpers), names_(program.ops.size()) {}

  std::string text() {
    invariant(is_identifier(program_.name), "a kernel's name is an identifier of C");
    body_ = cat("/* ", program_.name, program_.threaded ? ", from begin to end */\n" : " */\n",
                "void ", program_.name, "(const struct KernelArgs *args) {\n");
    for (LinearId at = 0; at < program_.ops.size(); ++at) {
      look_often(program_.stop, at);
      statement(at);
    }
    return body_ + "}\n";
  }

 private:
  const LinearOp& source(const LinearOp& op, size_t i) const { return program_.ops[op.src[i]]; }
  const std::string& name(const LinearOp& op, size_t i) const { return names_[op.src[i]]; }

  void line(const std::string& text) { body_ += std::string(2 * depth_, ' ') + text + "\n"; }

  void define(LinearId at, const char* prefix, const std::string& expression) {
    names_[at] = cat(prefix, at);
    line(cat("const ", helpers_.type(program_.ops[at].dtype), " ", names_[at], " = ", expression,
             ";"));
  }
  std::string call(const std::string& function, const LinearOp& op) const {
    std::string arguments;
    for (size_t i = 0; i < op.count; ++i) arguments += cat(i ? ", " : "", name(op, i));
    return cat(function, "(", arguments, ")");
  }

  void statement(LinearId at) {
    const LinearOp& op = program_.ops[at];
    switch (op.op) {
      case Op::Loop:
        return loop(at, op);
      case Op::If:
        line(cat("if (", name(op, 0), ") {"));
        ++depth_;
        return;
      case Op::EndLoop:
      case Op::EndIf:
        --depth_;
        return line("}");
      case Op::Accumulator:
        names_[at] = cat("acc", at);
        return line(cat(helpers_.type(op.dtype), " ", names_[at], " = ", name(op, 0), ";"));
      case Op::Set:
        return line(cat(name(op, 0), " = ", name(op, 1), ";"));
      case Op::Store:
        return store(op);
      case Op::Prefetch:
        return line(cat("__builtin_prefetch((const void*)(", name(op, 0), " + ", name(op, 1), " * ",
                        op.aux, displaced(op.imm), "), 0, 2);"));
      case Op::Poll:
        return line("if (args->poll->ask(args->poll)) return;");
      case Op::Check:
        return line(cat(helpers_.check(source(op, 0).dtype), "(args->status, ", name(op, 0), ", ",
                        op.aux, ", ", name(op, 1), ");"));
      default:
        return value(at, op);
    }
  }

  // Both ends are read once, on entry: an accumulator may change in the loop.
  void loop(LinearId at, const LinearOp& op) {
    std::string end = name(op, 1);
    if (source(op, 1).op == Op::Accumulator) {
      line(cat("const i64 end", at, " = ", end, ";"));
      end = cat("end", at);
    }
    const std::string& i = names_[at] = cat("k", at);  // i64 is a type
    const std::string step =
        op.imm == 1 ? cat("++", i) : cat(i, " += ", op.imm, op.imm > INT32_MAX ? "ll" : "");
    line(cat("for (i64 ", i, " = ", name(op, 0), "; ", i, " < ", end, "; ", step, ") {"));
    ++depth_;
  }

  void value(LinearId at, const LinearOp& op) {
    switch (op.op) {
      case Op::Const:
        if (op.dtype.lanes > 1) return define(at, "v", helpers_.constant(op.dtype, bits(op)));
        names_[at] = helpers_.constant(op.dtype, bits(op));
        return;
      case Op::Param:
        return define(at, "p", cat("(address)args->buffers[", op.imm, "]"));
      case Op::Scratch:
        return define(at, "s", cat("(address)args->scratch", displaced(op.imm)));
      case Op::Variable: {
        const std::string& label = program_.variables[static_cast<size_t>(op.imm)].name;
        define(at, "n",
               cat("args->variables[", op.imm, "]",
                   is_identifier(label) ? cat(" /* ", label, " */") : ""));
        return;
      }
      case Op::LaunchArg:
        return define(at, "n",
                      op.imm == 0   ? "args->begin"
                      : op.imm == 1 ? "args->end"
                                    : "args->worker");
      case Op::Address:
        return define(at, "p", cat(name(op, 0), " + ", name(op, 1), " * ", multiplier(op.imm)));
      default:
        return define(at, "v", expression(op));
    }
  }

  static uint64_t bits(const LinearOp& op) { return static_cast<uint64_t>(op.imm); }

  // A factor of an int64, which a plain constant of 32 bits may be.
  static std::string multiplier(int64_t value) {
    if (value >= 0 && value <= INT32_MAX) return std::to_string(value);
    return c::literal(kInt64, static_cast<uint64_t>(value));
  }

  std::string expression(const LinearOp& op) {
    const DType from = op.count > 0 ? source(op, 0).dtype : op.dtype;
    switch (op.op) {
      case Op::Load:
        return load(op);
      case Op::Broadcast:
        return cat(helpers_.splat(op.dtype), "(", op.dtype.is_bool() ? "-" : "", name(op, 0), ")");
      case Op::Ramp:
        return ramp(op);
      case Op::LaneRange:
        return call(helpers_.lane_range(op.dtype), op);
      case Op::Fold:
        return call(helpers_.fold(static_cast<Op>(op.aux), from), op);
      case Op::Dot:
        return call(helpers_.dot(static_cast<DotKind>(op.aux), op.dtype), op);
      case Op::Where:
        if (op.dtype.lanes == 1) return cat(name(op, 0), " ? ", name(op, 1), " : ", name(op, 2));
        return call(helpers_.where(op.dtype), op);
      case Op::Cast:
        return call(helpers_.cast(from, op.dtype), op);
      case Op::Bitcast:
        return call(helpers_.bitcast(from, op.dtype), op);
      default:
        return helpers_.arithmetic(op.op, from, name(op, 0), op.count > 1 ? name(op, 1) : "",
                                   op.count > 2 ? name(op, 2) : "");
    }
  }

  std::string ramp(const LinearOp& op) {
    const DType lane = op.dtype.element();
    if (op.dtype.lanes == 1) return name(op, 0);
    return cat(helpers_.ramp(op.dtype), "(", name(op, 0), ", ",
               c::literal(lane, bits_of_int(lane, op.imm)), ")");
  }

  // Where lane 0 is, or, with an index for each lane, what the indices are relative to.
  std::string place(const LinearOp& op, DType dtype) const {
    if (source(op, 1).dtype.lanes > 1) return cat(name(op, 0), displaced(op.imm));
    if (source(op, 1).op == Op::Const) {
      const auto index = static_cast<uint64_t>(source(op, 1).imm);
      return cat(
          name(op, 0),
          displaced(static_cast<int64_t>(index * static_cast<uint64_t>(dtype.bytes()) + bits(op))));
    }
    const std::string scale = dtype.bytes() == 1 ? "" : cat(" * ", dtype.bytes());
    return cat(name(op, 0), " + ", name(op, 1), scale, displaced(op.imm));
  }

  // ", stride" and ", mask", where the access has them.
  std::string tail(const LinearOp& op, DType dtype, bool strided, size_t mask_at) const {
    const bool masked = op.count > mask_at;
    std::string out;
    if (source(op, 1).dtype.lanes > 1)
      out += cat(", ", name(op, 1));
    else if (strided || masked)
      out += cat(", ", op.aux * dtype.bytes());
    return masked ? cat(out, ", ", name(op, mask_at)) : out;
  }

  std::string load(const LinearOp& op) {
    const bool masked = op.count > 2, strided = op.dtype.lanes > 1 && op.aux != 1;
    const bool lane_index = source(op, 1).dtype.lanes > 1;
    const std::string function =
        lane_index ? helpers_.gather(op.dtype, masked) : helpers_.load(op.dtype, strided, masked);
    return cat(function, "(", place(op, op.dtype), tail(op, op.dtype, strided, 2), ")");
  }
  void store(const LinearOp& op) {
    const DType dtype = source(op, 2).dtype;
    const bool masked = op.count > 3, strided = dtype.lanes > 1 && op.aux != 1;
    const bool lane_index = source(op, 1).dtype.lanes > 1;
    const std::string function =
        lane_index ? helpers_.scatter(dtype, masked) : helpers_.store(dtype, strided, masked);
    line(
        cat(function, "(", place(op, dtype), ", ", name(op, 2), tail(op, dtype, strided, 3), ");"));
  }

  const LinearProgram& program_;
  c::Helpers& helpers_;
  std::vector<std::string> names_;
  std::string body_;
  size_t depth_ = 1;
};

}  // namespace

std::string render_c_unit(std::span<const LinearProgram> programs) {
  c::Helpers helpers;
  std::string functions;
  std::set<std::string> names;
  for (const LinearProgram& program : programs) {
    invariant(names.insert(program.name).second,
              "kernels of one translation unit have their own names");
    functions += "\n" + Function(program, helpers).text();
  }
  for (const std::string& name : names)
    invariant(!helpers.defines(name), "kernels have other names than what they call");
  return kPreamble + helpers.text() + functions;
}

Rendered render_c(const LinearProgram& program) {
  return {RenderedKind::C,      program.name, program.name, {}, render_c_unit({&program, 1}),
          program.scratch_bytes};
}

}  // namespace tiny
