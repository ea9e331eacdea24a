#include "render/ptx/groups.h"

#include <algorithm>
#include <bit>

#include "base/text.h"
#include "render/ptx/arithmetic.h"

namespace tiny::ptx {
namespace {

// Steps of one exchange through shared memory: each thread reads 2^3 values.
constexpr size_t kStepsOfExchange = 3;

constexpr const char* kAxisNames[] = {"x", "y", "z"};

// What is shuffled and exchanged: bools as words.
DType exchanged_as(DType dtype) {
  return dtype.is_bool() ? kUInt32 : dtype;
}

int64_t exchanged_bytes(DType dtype) {
  return file_of(dtype) == File::Double ? 8 : 4;
}

// Whether it gives the same bits when its operands change places; NaN's have no particular ones.
bool is_symmetric(Op op, DType dtype) {
  return !dtype.is_float() || (op != Op::Max && op != Op::Min);
}

Operand position(Writer& out, size_t axis) {
  const Operand result = out.fresh(File::Word);
  out.line(cat("mov.u32 ", Writer::text(result, "u32"), ", %tid.", kAxisNames[axis]));
  return result;
}

}  // namespace

std::array<int64_t, 3> block_of(const LinearProgram& program) {
  if (program.group[2] <= kAxis2Max) return program.group;
  return {program.group_threads(), 1, 1};
}

Operand coordinate(Writer& out, const LinearProgram& program, size_t axis) {
  if (block_of(program) == program.group) return position(out, axis);
  Operand at = position(out, 0);
  for (size_t before = 0; before < axis; ++before)
    if (const auto size = static_cast<uint32_t>(program.group[before]); size > 1)
      at = out.make("div", "u32", {at, word(size)});
  if (axis == 2) return at;
  return out.make("rem", "u32", {at, word(static_cast<uint32_t>(program.group[axis]))});
}

std::vector<GroupFolds::Step> GroupFolds::steps_of(const LinearProgram& program, uint32_t axes) {
  std::vector<Step> steps;
  int64_t apart = 1;
  for (size_t axis = 0; axis < 3; apart *= program.group[axis++]) {
    if (!(axes >> axis & 1)) continue;
    for (int64_t half = program.group[axis] / 2; half > 0; half /= 2) {
      const bool is_bit = std::has_single_bit(static_cast<uint64_t>(apart));
      steps.push_back({axis, static_cast<uint32_t>(half), static_cast<uint32_t>(half * apart),
                       is_bit && half * apart < kWarp});
    }
  }
  return steps;
}

int64_t fold_bytes(const LinearProgram& program) {
  int64_t bytes = 0;
  for (const LinearOp& op : program.ops) {
    if (op.op != Op::GroupFold) continue;
    const auto steps = GroupFolds::steps_of(program, static_cast<uint32_t>(op.imm));
    if (!std::ranges::all_of(steps, [](const auto& step) { return step.in_warp; }))
      bytes = std::max(bytes, program.group_threads() * exchanged_bytes(op.dtype));
  }
  return bytes;
}

Operand GroupFolds::fold(Op op, DType dtype, uint32_t axes, const Operand& own) {
  const std::vector<Step> steps = steps_of(program_, axes);
  const DType as = exchanged_as(dtype);
  Operand value = out_.fixed(own);
  if (dtype.is_bool()) value = out_.choose_bits("b32", own, word(1), word(0));
  // Bools are words of 0 and 1, of which "or" is the greater and "and" the lesser.
  if (dtype.is_bool() && op == Op::Add) op = Op::Or;
  if (dtype.is_bool() && op == Op::Mul) op = Op::And;
  for (size_t i = 0; i < steps.size();) {
    if (steps[i].in_warp) {
      value = shuffled(op, as, steps[i++], value);
      continue;
    }
    size_t count = 1;
    while (i + count < steps.size() && count < kStepsOfExchange && !steps[i + count].in_warp)
      ++count;
    value = exchanged(op, as, &steps[i], count, value);
    i += count;
  }
  return dtype.is_bool() ? out_.compare("ne", "u32", {value, word(0)}) : value;
}

// The number of this thread in its group.
Operand GroupFolds::thread() {
  if (block_of(program_)[0] == program_.group_threads()) return position(out_, 0);
  Operand result = word(0);
  for (size_t axis = 3; axis-- > 0;) {
    const auto size = static_cast<uint32_t>(program_.group[axis]);
    if (size == 1) continue;
    const Operand own = coordinate(out_, program_, axis);
    result = result.is_constant ? own : out_.make("mad.lo", "u32", {result, word(size), own});
  }
  return out_.in_register(result);
}

Operand GroupFolds::is_high(const Step& step) {
  const Operand bit =
      out_.make("and", "b32", {coordinate(out_, program_, step.axis), word(step.bit)});
  return out_.compare("ne", "u32", {bit, word(0)});
}

Operand GroupFolds::combine(Op op, DType dtype, const Operand& low, const Operand& high) {
  return arithmetic(out_, op, dtype, low, high, high);
}

// Of a warp that is not full, those that there are take part.
Operand GroupFolds::shuffle_word(uint32_t apart, const Operand& own) {
  const auto threads = static_cast<uint32_t>(program_.group_threads());
  const uint32_t rest = threads % kWarp;
  Operand mask = word(0xFFFFFFFFu);
  if (threads < kWarp) {
    mask = word((1u << threads) - 1);
  } else if (rest != 0) {
    const Operand is_last = out_.compare("ge", "u32", {thread(), word(threads - rest)});
    mask = out_.choose_bits("b32", is_last, word((1u << rest) - 1), mask);
  }
  return out_.make("shfl.sync.bfly", "b32", {own, word(apart), word(kWarp - 1), mask});
}

Operand GroupFolds::shuffled(Op op, DType dtype, const Step& step, const Operand& own) {
  const auto pair = [&](const Operand& low, const Operand& high) {
    return cat("{", Writer::text(low, "b32"), ", ", Writer::text(high, "b32"), "}");
  };
  Operand other;
  if (exchanged_bytes(dtype) == 4) {
    other = shuffle_word(step.apart, out_.in_register(own));
  } else {
    const Operand low = out_.fresh(File::Word), high = out_.fresh(File::Word);
    out_.line(cat("mov.b64 ", pair(low, high), ", ", Writer::text(out_.in_register(own), "b64")));
    const Operand other_low = shuffle_word(step.apart, low);
    const Operand other_high = shuffle_word(step.apart, high);
    other = out_.fresh(File::Double);
    out_.line(cat("mov.b64 ", Writer::text(other, "b64"), ", ", pair(other_low, other_high)));
  }
  if (is_symmetric(op, dtype)) return combine(op, dtype, own, other);
  const Operand high = is_high(step);
  return combine(op, dtype, out_.choose(dtype, high, other, own),
                 out_.choose(dtype, high, own, other));
}

// The values of 2^count threads, whose coordinates have all values of the steps' bits: the first
// step combines the first half of them with the second.
Operand GroupFolds::exchanged(Op op, DType dtype, const Step* steps, size_t count,
                              const Operand& own) {
  const int64_t bytes = exchanged_bytes(dtype);
  const std::string_view type = bits_type(dtype);
  const auto place = [&](const Operand& index) {
    const Operand result = out_.fresh(File::Double);
    out_.into(result, "mad.wide", "u32", {index, word(static_cast<uint32_t>(bytes)), shared_});
    return result;
  };
  const Operand self = thread();
  out_.line("bar.sync 0");  // whoever still reads what was there before has done so
  out_.line(cat("st.shared.", type, " [", Writer::text(place(self), "u64"), "], ",
                Writer::text(out_.in_register(own), type)));
  out_.line("bar.sync 0");
  Operand first = self;  // the thread whose bits are all 0
  for (size_t i = 0; i < count; ++i) {
    const Operand lower = out_.make("sub", "u32", {first, word(steps[i].apart)});
    first = out_.choose_bits("b32", is_high(steps[i]), lower, first);
  }
  const std::string base = Writer::text(place(first), "u64");
  Value values;
  for (size_t of = 0; of < size_t{1} << count; ++of) {
    int64_t distance = 0;
    for (size_t i = 0; i < count; ++i)
      if (of >> (count - 1 - i) & 1) distance += steps[i].apart * bytes;
    values.push_back(out_.fresh(file_of(dtype)));
    out_.line(cat("ld.shared.", type, " ", Writer::text(values.back(), type), ", [", base,
                  distance > 0 ? cat("+", distance) : "", "]"));
  }
  for (size_t half = values.size() / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i) values[i] = combine(op, dtype, values[i], values[i + half]);
  return values[0];
}

}  // namespace tiny::ptx
