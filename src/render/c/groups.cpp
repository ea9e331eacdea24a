#include "render/c/groups.h"

#include <set>

#include "base/error.h"
#include "base/text.h"
#include "render/c/function.h"
#include "render/c/types.h"

namespace tiny::c {
namespace {

// The names of the numbers that a kernel is given, in their order.
std::vector<std::string> numbers_of(const LinearProgram& program) {
  std::vector<std::string> names;
  for (size_t i = 0; i < program.params.size(); ++i) names.push_back(cat("start", i));
  for (size_t i = 0; i < program.variables.size(); ++i) names.push_back(cat("n_", i));
  names.emplace_back("begin");
  names.emplace_back("end");
  return names;
}

std::string parameters_of(const GroupWords& words, const LinearProgram& program) {
  const std::vector<std::string> numbers = numbers_of(program);
  const size_t buffers = program.params.size();
  std::string out;
  for (size_t i = 0; i < buffers; ++i)
    out += cat(fill(words.buffer, {std::to_string(i)}), ", ",
               words.numbers ? "" : cat("i64 ", numbers[i], ", "));
  if (words.numbers) return cat(out, fill(words.numbers, {std::to_string(buffers)}), ", ");
  for (size_t i = buffers; i < numbers.size(); ++i) out += cat("i64 ", numbers[i], ", ");
  return out;
}

std::string area(const char* pattern, const char* name, int64_t bytes) {
  return bytes == 0 ? "" : cat("  ", fill(pattern, {name, std::to_string(bytes)}), "\n");
}

}  // namespace

const char* const kStructsOfLanes =
    R"(#define VECTOR(one, name, lanes) typedef struct { one lane[lanes]; } name;
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

typedef uchar b8; /* 0 or 1 */
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ushort h16;  /* the bits of a binary16 */
typedef ushort bf16; /* the upper bits of a binary32 */
typedef float f32;
typedef i64 address; /* what is added to one: addresses are pointers */

)";

std::string group_opening(const GroupWords& words, const LinearProgram& program,
                          int64_t fold_bytes) {
  const std::array<int64_t, 3>& group = program.group;
  std::string out = cat("/* ", program.name,
                        program.grouped    ? ", a group for each number from begin to end */\n"
                        : program.threaded ? ", a thread for each number from begin to end */\n"
                                           : " */\n");
  out += program.grouped ? fill(words.grouped,
                                {std::to_string(group[0]), std::to_string(group[1]),
                                 std::to_string(group[2]), std::to_string(program.group_threads())})
                         : words.entry;
  const size_t behind = program.params.size() + (words.numbers ? 1 : 0);
  out += cat("void ", program.name, "(", parameters_of(words, program),
             fill(words.tail, {std::to_string(behind), std::to_string(behind + 1)}), ") {\n");
  if (words.numbers) {
    const std::vector<std::string> names = numbers_of(program);
    for (size_t i = 0; i < names.size(); ++i)
      out += cat("  const i64 ", names[i], " = numbers[", i, "];\n");
  }
  out += cat("  const i64 piece = begin + (i64)", program.grouped ? words.group : words.any, ";\n");
  if (!program.grouped) out += "  if (piece >= end) return;\n";
  if (fold_bytes > 0)
    out += cat("  const int self = (int)(", words.thread[0], " + ", group[0], " * (",
               words.thread[1], " + ", group[1], " * ", words.thread[2], "));\n");
  return out + area(words.shared, "shared", program.shared_bytes) +
         area(words.shared, "folds", fold_bytes) +
         area(words.scratch, "scratch", program.scratch_bytes);
}

std::string group_leaf(const GroupWords& words, const Dialect& dialect,
                       const LinearProgram& program, const LinearOp& op) {
  switch (op.op) {
    case Op::Param:
      return cat("buffer", op.imm, " + start", op.imm);
    case Op::Scratch:
      return cat("scratch", displaced(op.imm, dialect));
    case Op::Shared:
      return cat("shared", displaced(op.imm, dialect));
    case Op::Variable: {
      const std::string& label = program.variables[static_cast<size_t>(op.imm)].name;
      return cat("n_", op.imm, is_identifier(label) ? cat(" /* ", label, " */") : "");
    }
    default:
      return op.imm >= 3   ? cat("(i64)", words.thread[static_cast<size_t>(op.imm) - 3])
             : op.imm == 0 ? "piece"
             : op.imm == 1 ? "piece + 1"
                           : "0";
  }
}

std::string group_unit(const Dialect& dialect, std::span<const LinearProgram> programs) {
  Helpers helpers(dialect);
  std::string functions;
  std::set<std::string> names;
  for (const LinearProgram& program : programs) {
    invariant(names.insert(program.name).second,
              "kernels of one translation unit have their own names");
    functions += "\n" + function_text(program, helpers, false);
  }
  for (const std::string& name : names)
    invariant(!helpers.defines(name), "kernels have other names than what they call");
  return cat("/* Kernels made by tiny. */\n", dialect.beginning, kStructsOfLanes, dialect.functions,
             helpers.text(), functions);
}

}  // namespace tiny::c
