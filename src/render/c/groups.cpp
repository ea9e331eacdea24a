#include "render/c/groups.h"

#include "base/text.h"
#include "render/c/function.h"
#include "render/c/types.h"

namespace tiny::c {
namespace {

// What is written of each number that a kernel is given, in their order: $0 is its name, $1 its
// place.
std::string of_numbers(const char* pattern, const LinearProgram& program, const GroupWords& words) {
  std::string out;
  size_t place = 0;
  const auto write = [&](const std::string& name) {
    out += fill(pattern, {name, std::to_string(place++)});
  };
  // Where numbers are parameters, each buffer has its own beside it.
  for (size_t i = 0; words.numbers && i < program.params.size(); ++i) write(cat("start", i));
  for (size_t i = 0; i < program.variables.size(); ++i) write(cat("n_", i));
  write("begin");
  write("end");
  return out;
}

std::string parameters_of(const GroupWords& words, const LinearProgram& program) {
  const std::string count = std::to_string(program.params.size());
  std::string out;
  for (size_t i = 0; i < program.params.size(); ++i) {
    const std::string number = std::to_string(i);
    out += fill(words.buffer, {number});
    out += words.numbers ? ", " : fill(", i64 start$0, ", {number});
  }
  out +=
      words.numbers ? fill(words.numbers, {count}) + ", " : of_numbers("i64 $0, ", program, words);
  return out + fill(words.tail, {std::to_string(program.params.size() + 1)});
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
  const bool is_grouped = program.grouped;
  const std::string x = std::to_string(program.group[0]), y = std::to_string(program.group[1]),
                    z = std::to_string(program.group[2]);
  const char* what = is_grouped         ? ", a group for each number from begin to end"
                     : program.threaded ? ", a thread for each number from begin to end"
                                        : "";
  const std::string all = std::to_string(program.group_threads());
  return fill(
             "/* $0$1 */\n"
             "$2void $0($3) {\n"
             "$4  const i64 piece = begin + (i64)$5;\n"
             "$6$7",
             {program.name, what, is_grouped ? fill(words.grouped, {x, y, z, all}) : words.entry,
              parameters_of(words, program),
              words.numbers ? of_numbers("  const i64 $0 = numbers[$1];\n", program, words) : "",
              is_grouped ? words.group : words.any,
              is_grouped ? "" : "  if (piece >= end) return;\n",
              fold_bytes == 0 ? ""
                              : fill("  const int self = (int)($0 + $3 * ($1 + $4 * $2));\n",
                                     {words.thread[0], words.thread[1], words.thread[2], x, y})}) +
         area(words.shared, "shared", program.shared_bytes) +
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
  const std::string functions = functions_text(programs, helpers, false);
  return fill("/* Kernels made by tiny. */\n$0$1$2$3$4",
              {dialect.beginning, kStructsOfLanes, dialect.functions, helpers.text(), functions});
}

}  // namespace tiny::c
