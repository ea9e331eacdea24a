#include "aot/tape.h"

#include <algorithm>

#include "aot/memory.h"
#include "base/error.h"
#include "base/text.h"
#include "engine/plan.h"
#include "ir/op.h"

namespace tiny::aot {
namespace {

// What a kernel must have to do before the caller's threads share it: about ten microseconds of a
// core, some times what it takes to wake the others.  A core is taken to do so many operations, and
// to move so many bytes, in each of its cycles.
constexpr int64_t kSharedFromCycles = 30'000;
constexpr int64_t kOperationsPerCycle = 16;
constexpr int64_t kBytesPerCycle = 8;

const char* symbol_of(Op op) {
  switch (op) {
    case Op::Add:
      return "+";
    case Op::Sub:
      return "-";
    case Op::Mul:
      return "*";
    case Op::Less:
      return "<";
    case Op::LessEqual:
      return "<=";
    case Op::Equal:
      return "==";
    case Op::NotEqual:
      return "!=";
    default:
      return nullptr;
  }
}

std::string operation_text(Op op, const std::string* operand) {
  if (const char* symbol = symbol_of(op))
    return cat("(", operand[0], " ", symbol, " ", operand[1], ")");
  switch (op) {
    case Op::Neg:
      return cat("(-", operand[0], ")");
    case Op::Max:
      return cat("size_max(", operand[0], ", ", operand[1], ")");
    case Op::Min:
      return cat("size_min(", operand[0], ", ", operand[1], ")");
    case Op::FloorDiv:
      return cat("size_div(", operand[0], ", ", operand[1], ")");
    case Op::FloorMod:
      return cat("size_mod(", operand[0], ", ", operand[1], ")");
    case Op::Where:
      return cat("(", operand[0], " ? ", operand[1], " : ", operand[2], ")");
    default:
      throw_error(Status::Unsupported, "a size with ", info(op).name, " has no form in C");
  }
}

std::string number_text(int64_t number) {
  return number >= INT32_MIN + 1 && number <= INT32_MAX ? std::to_string(number)
                                                        : cat("INT64_C(", number, ")");
}

// The same size of the program's variables, of one of a kernel's.
std::string kernel_size_text(const SizeExpression& size, const TapeEntry& entry) {
  if (size.is_const()) return number_text(size.value({}));
  std::string text = size_text(size, "kernel");
  for (size_t k = entry.variables.size(); k-- > 0;) {
    const std::string from = cat("kernel[", k, "]"), to = cat("n[", entry.variables[k], "]");
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace

std::string size_text(const SizeExpression& size, const std::string& variable) {
  if (size.is_const()) return number_text(size.value({}));
  std::vector<std::string> stack;
  for (const SizeExpression::Step& step : size.steps()) {
    if (step.op == Op::Const) {
      stack.push_back(number_text(step.number));
    } else if (step.op == Op::Variable) {
      stack.push_back(cat(variable, "[", step.number, "]"));
    } else {
      const auto arity = static_cast<size_t>(info(step.op).arity);
      const std::string text = operation_text(step.op, &stack[stack.size() - arity]);
      stack.resize(stack.size() - arity);
      stack.push_back(text);
    }
  }
  return stack.at(0);
}

void TapeWriter::line(const std::string& text) {
  text_ += std::string(2 * depth_, ' ') + text + "\n";
}

// Where a slot lies that does not move; nothing for one in the arena of a program with variables.
std::string TapeWriter::place_of(uint32_t at) const {
  const Slot& slot = plan_.slots[at];
  switch (slot.kind) {
    case SlotKind::Captured: {
      const CapturedMemory::Place& place = captured_.places[at];
      return cat(place.is_state ? "state + " : "weights + ", place.offset);
    }
    case SlotKind::Input:
      return inputs_[static_cast<size_t>(slot.number)];
    case SlotKind::Output:
      return outputs_[static_cast<size_t>(slot.number)];
    case SlotKind::Arena:
      return cat("arena + ", plan_.variables.empty() ? std::to_string(slot.arena_offset)
                                                     : cat("offset[", at, "]"));
    case SlotKind::Moving:
      return "0";
  }
  return "0";
}

// offset[slot] for the variables' values.
std::string TapeWriter::offsets() const {
  std::string text;
  const int64_t up = kAlignment - 1;
  for (const ArenaSlot& at : order_arena(plan_)) {
    std::string place = "0";
    for (const uint32_t below : at.below) {
      const std::string end =
          cat("offset[", below, "] + ((", size_text(plan_.slots[below].size, "n"), " + ", up,
              ") & ~(i64)", up, ")");
      place = place == "0" ? end : cat("size_max(", place, ", ", end, ")");
    }
    text += cat("  offset[", at.slot, "] = ", place, ";\n");
  }
  return text;
}

std::string TapeWriter::arena_size() const {
  if (plan_.variables.empty()) return cat("  size = ", number_text(plan_.arena_bytes), ";\n");
  std::string text = offsets();
  for (uint32_t i = 0; i < plan_.slots.size(); ++i)
    if (plan_.slots[i].kind == SlotKind::Arena)
      text += cat("  size = size_max(size, offset[", i, "] + ", size_text(plan_.slots[i].size, "n"),
                  ");\n");
  return text;
}

TapeText TapeWriter::write() {
  TapeText out;
  if (!plan_.variables.empty()) out.slots = offsets();
  for (uint32_t i = 0; i < plan_.slots.size(); ++i)
    if (plan_.slots[i].kind != SlotKind::Moving)
      out.slots += cat("  s[", i, "] = ", place_of(i), ";\n");
  for (uint32_t i = 0; i < plan_.loops.size(); ++i)
    if (!plan_.loops[i].is_counted()) write_moving(i, "0", size_text(plan_.loops[i].count, "n"));
  write_entries(0, static_cast<uint32_t>(plan_.tape.size()), 0, plan_.loops.size());
  out.launches = text_;
  return out;
}

// Moves what moves in the loop to its part of this step.
void TapeWriter::write_moving(uint32_t loop, const std::string& step, const std::string& count) {
  for (uint32_t i = 0; i < plan_.slots.size(); ++i) {
    const Slot& slot = plan_.slots[i];
    if (slot.kind != SlotKind::Moving || slot.motion.loop != loop) continue;
    const Motion& motion = slot.motion;
    std::string part = motion.after_last ? count : step;
    if (motion.before || motion.after_last) part += " - 1";
    line(cat("s[", i, "] = part_of(s[", motion.base, "], ",
             motion.first == Motion::kNone ? std::string("0") : cat("s[", motion.first, "]"), ", ",
             size_text(motion.stride, "n"), ", ", part, ", ", count, ", ",
             motion.alternates ? "ALTERNATES"
             : motion.reverse  ? "REVERSE"
                               : "FORWARD",
             ");"));
  }
}

// Entries [first, end), with the loops among these.
void TapeWriter::write_entries(uint32_t first, uint32_t end, size_t loop, size_t loops_end) {
  uint32_t entry = first;
  while (loop < loops_end) {
    const uint32_t begin = plan_.loops[loop].first;
    for (; entry < begin; ++entry) write_launch(entry);
    size_t next = loop + 1;
    if (plan_.loops[loop].is_counted()) {
      while (next < loops_end && plan_.loops[next].first < plan_.loops[loop].end) ++next;
      write_counted(loop, next);
      entry = plan_.loops[loop].end;
    } else {
      next = write_group(loop, loops_end);
      entry = plan_.loops[next - 1].end;
    }
    loop = next;
  }
  for (; entry < end; ++entry) write_launch(entry);
}

// A segment whose steps the run counts.
void TapeWriter::write_counted(size_t loop, size_t loops_end) {
  const TapeLoop& of = plan_.loops[loop];
  const auto number = static_cast<uint32_t>(loop);
  line("{");
  ++depth_;
  line(cat("const i64 most = count_at(s[", of.counted, "]);"));
  line("i64 step = 0;");
  line("for (u8 again = 1; again && step < most && run->status == 0; ++step) {");
  ++depth_;
  write_moving(number, "step", "step");
  write_entries(of.first, of.end, loop + 1, loops_end);
  if (of.again != kNoSlot) line(cat("again = *(const u8 *)s[", of.again, "];"));
  --depth_;
  line("}");
  write_moving(number, "step", "step");
  --depth_;
  line("}");
}

// Segments that are executed step by step together; returns the loop behind them.
size_t TapeWriter::write_group(size_t loop, size_t loops_end) {
  size_t end = loop + 1;
  while (end < loops_end && plan_.loops[end].beside) ++end;
  const std::string count = size_text(plan_.loops[loop].count, "n");
  line(cat("for (i64 step = 0; step < ", count, "; ++step) {"));
  ++depth_;
  for (size_t i = loop; i < end; ++i) write_moving(static_cast<uint32_t>(i), "step", count);
  for (uint32_t entry = plan_.loops[loop].first; entry < plan_.loops[end - 1].end; ++entry)
    write_launch(entry);
  --depth_;
  line("}");
  for (size_t i = loop; i < end; ++i) write_moving(static_cast<uint32_t>(i), "0", count);
  return end;
}

void TapeWriter::write_launch(uint32_t at) {
  const TapeEntry& entry = plan_.tape[at];
  const TapeKernel& kernel = kernels_[at];
  std::string buffers, variables;
  for (const uint32_t slot : entry.slots)
    buffers += cat(buffers.empty() ? "" : ", ", "s[", slot, "]");
  for (const uint32_t v : entry.variables)
    variables += cat(variables.empty() ? "" : ", ", "n[", v, "]");
  const bool is_whole = entry.threads_extent.is_const() && entry.threads_extent.value({}) == 0;
  const std::string extent = is_whole ? "1" : kernel_size_text(entry.threads_extent, entry);
  std::string shared = "0";
  if (kernel.is_threaded && !is_whole) {
    const KernelInfo& of = entry.info;
    if (of.of_sizes)
      shared = cat(kernel_size_text(of.of_sizes->operations, entry), " / ", kOperationsPerCycle,
                   " + ", kernel_size_text(of.of_sizes->bytes, entry), " / ", kBytesPerCycle,
                   " >= ", kSharedFromCycles);
    else
      shared = of.operations / static_cast<double>(kOperationsPerCycle) +
                           of.bytes / static_cast<double>(kBytesPerCycle) >=
                       static_cast<double>(kSharedFromCycles)
                   ? "1"
                   : "0";
  }
  line("{");
  ++depth_;
  line(cat("void *const b[] = {", buffers, "};"));
  if (!variables.empty()) line(cat("const i64 v[] = {", variables, "};"));
  line(cat("launch(run, ", kernel.function, ", b, ", variables.empty() ? "0" : "v", ", ", extent,
           ", ", shared, ");"));
  --depth_;
  line("}");
}

}  // namespace tiny::aot
