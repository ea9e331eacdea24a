#include "engine/stored.h"

#include <algorithm>

#include "base/bytes.h"

namespace tiny {

namespace {

template <class T, class Write>
void write_all(ByteWriter& out, const std::vector<T>& list, Write write) {
  out.number(static_cast<uint32_t>(list.size()));
  for (const T& item : list) write(item);
}

// Stops at the first item that is not there.
template <class T, class Read>
std::vector<T> read_all(ByteReader& in, Read read) {
  std::vector<T> list;
  for (auto n = in.number<uint32_t>(); n > 0 && in.good(); --n) list.push_back(read());
  return list;
}

bool read_bool(ByteReader& in) {
  return in.number<uint8_t>() != 0;
}

std::vector<uint32_t> read_numbers(ByteReader& in) {
  return read_all<uint32_t>(in, [&] { return in.number<uint32_t>(); });
}

void write_slot(ByteWriter& out, const Slot& slot) {
  out.number(slot.kind).number(slot.number).number(slot.arena_offset).number(slot.bytes);
  slot.size.write(out);
  out.number(slot.first).number(slot.last).number(slot.is_written);
  if (slot.kind != SlotKind::Moving) return;
  const Motion& motion = slot.motion;
  out.number(motion.base).number(motion.first).number(motion.loop);
  motion.stride.write(out);
  out.number(motion.before).number(motion.after_last).number(motion.alternates);
  out.number(motion.reverse);
}

Slot read_slot(ByteReader& in) {
  Slot slot;
  slot.kind = in.number<SlotKind>();
  slot.number = in.number<int64_t>();
  slot.arena_offset = in.number<int64_t>();
  slot.bytes = in.number<int64_t>();
  slot.size = SizeExpression::read(in);
  slot.first = in.number<int64_t>();
  slot.last = in.number<int64_t>();
  slot.is_written = read_bool(in);
  if (slot.kind != SlotKind::Moving) return slot;
  Motion& motion = slot.motion;
  motion.base = in.number<uint32_t>();
  motion.first = in.number<uint32_t>();
  motion.loop = in.number<uint32_t>();
  motion.stride = SizeExpression::read(in);
  motion.before = read_bool(in);
  motion.after_last = read_bool(in);
  motion.alternates = read_bool(in);
  motion.reverse = read_bool(in);
  return slot;
}

bool is_sound(const Motion& motion, const Plan& plan) {
  const auto stays = [&](uint32_t slot) {
    return slot < plan.slots.size() && plan.slots[slot].kind != SlotKind::Moving;
  };
  return stays(motion.base) && (motion.before ? stays(motion.first) : true) &&
         (motion.first == Motion::kNone || stays(motion.first)) &&
         motion.loop < plan.loops.size() && motion.stride.variables_used() <= plan.variables.size();
}

// Loops stand in the order of their entries, those inside of a counted one behind it.
bool are_sound(std::span<const TapeLoop> loops, const Plan& plan) {
  uint32_t end = 0;
  size_t around = plan.tape.size();  // where the loop ends that this one is inside of
  for (const TapeLoop& loop : loops) {
    if (loop.first >= around) around = plan.tape.size();
    if (loop.first < end || loop.end <= loop.first || loop.end > around) return false;
    if (loop.beside && (end == 0 || loop.first != end || loop.is_counted())) return false;
    if (loop.count.variables_used() > plan.variables.size()) return false;
    for (const uint32_t slot : {loop.counted, loop.again}) {
      if (slot == kNoSlot) continue;
      if (slot >= plan.slots.size() || plan.slots[slot].kind == SlotKind::Moving) return false;
    }
    const int64_t size = loop.is_counted() ? kInt64.bytes() : 0;
    if (loop.is_counted() && plan.slots[loop.counted].bytes < size) return false;
    if (loop.again != kNoSlot && !loop.is_counted()) return false;
    if (loop.induction_variable != kNoSlot &&
        (!loop.is_counted() || loop.induction_variable >= plan.variables.size()))
      return false;
    if (loop.from.variables_used() > plan.variables.size()) return false;
    if (loop.is_counted() && around != plan.tape.size()) return false;
    if (loop.is_counted())
      around = loop.end;
    else
      end = loop.end;
  }
  return true;
}

// Whether every number of the plan names something.
bool is_sound(const StoredPlan& stored, size_t nodes, size_t leaves) {
  const Plan& plan = stored.cached.plan;
  const auto below = [](auto value, size_t limit) {
    return value >= 0 && static_cast<size_t>(value) < limit;
  };
  for (const Slot& slot : plan.slots) {
    const size_t limit = slot.kind == SlotKind::Captured ? leaves
                         : slot.kind == SlotKind::Input  ? static_cast<size_t>(plan.inputs)
                         : slot.kind == SlotKind::Output ? static_cast<size_t>(plan.outputs)
                                                         : 1;
    if (slot.kind > SlotKind::Moving || !below(slot.number, limit)) return false;
    if (slot.size.variables_used() > plan.variables.size()) return false;
    if (slot.kind == SlotKind::Moving && !is_sound(slot.motion, plan)) return false;
  }
  if (!are_sound(plan.loops, plan)) return false;
  for (const TapeEntry& entry : plan.tape) {
    for (uint32_t slot : entry.slots)
      if (!below(slot, plan.slots.size())) return false;
    for (uint32_t variable : entry.variables)
      if (!below(variable, plan.variables.size())) return false;
  }
  return std::ranges::all_of(stored.cached.outputs, [&](uint32_t at) { return below(at, nodes); });
}

}  // namespace

std::string encode_kernel(const StoredKernel& kernel) {
  const Code& code = kernel.code;
  const KernelInfo& info = kernel.info;
  ByteWriter out;
  out.number(code.kind).text(code.name).text(code.entry);
  out.text({reinterpret_cast<const char*>(code.bytes.data()), code.bytes.size()});
  out.number(code.scratch_bytes).number(code.shared_bytes);
  for (const int64_t threads : code.group) out.number(threads);
  kernel.threads_extent.write(out);
  out.text(info.name).text(info.options).number(info.linear_ops);
  out.number(info.operations).number(info.bytes);
  out.number(info.of_sizes.has_value());
  if (info.of_sizes) {
    info.of_sizes->operations.write(out);
    info.of_sizes->bytes.write(out);
  }
  out.number(info.interpreted).number(info.scalar).number(info.checks);
  write_all(out, info.params, [&](const KernelParam& param) {
    out.number(param.element.scalar).number(param.element.lanes);
    out.number(param.read).number(param.written);
  });
  return out.result();
}

std::optional<StoredKernel> decode_kernel(std::string_view bytes) {
  ByteReader in(bytes);
  StoredKernel kernel;
  kernel.code.kind = in.number<CodeKind>();
  kernel.code.name = in.text();
  kernel.code.entry = in.text();
  const std::string_view code = in.text();
  const auto* first = reinterpret_cast<const std::byte*>(code.data());
  kernel.code.bytes.assign(first, first + code.size());
  kernel.code.scratch_bytes = in.number<int64_t>();
  kernel.code.shared_bytes = in.number<int64_t>();
  for (int64_t& threads : kernel.code.group) threads = in.number<int64_t>();
  kernel.threads_extent = SizeExpression::read(in);
  kernel.info.name = in.text();
  kernel.info.options = in.text();
  kernel.info.linear_ops = in.number<int64_t>();
  kernel.info.operations = in.number<double>();
  kernel.info.bytes = in.number<double>();
  if (read_bool(in)) {
    KernelInfo::OfSizes& of = kernel.info.of_sizes.emplace();
    of.operations = SizeExpression::read(in);
    of.bytes = SizeExpression::read(in);
  }
  kernel.info.interpreted = read_bool(in);
  kernel.info.scalar = read_bool(in);
  kernel.info.checks = read_bool(in);
  kernel.info.params = read_all<KernelParam>(in, [&] {
    KernelParam param;
    param.element.scalar = in.number<decltype(param.element.scalar)>();
    param.element.lanes = in.number<decltype(param.element.lanes)>();
    param.read = read_bool(in);
    param.written = read_bool(in);
    return param;
  });
  if (!in.at_end() || is_text(kernel.code.kind)) return std::nullopt;
  return kernel;
}

std::string encode_plan(const CachedPlan& cached) {
  const Plan& plan = cached.plan;
  ByteWriter out;
  write_all(out, plan.slots, [&](const Slot& slot) { write_slot(out, slot); });
  write_all(out, plan.tape, [&](const TapeEntry& entry) {
    out.text(entry.info.file);
    write_all(out, entry.slots, [&](uint32_t slot) { out.number(slot); });
    write_all(out, entry.variables, [&](uint32_t variable) { out.number(variable); });
    write_all(out, entry.computes, [&](uint32_t name) { out.number(name); });
  });
  write_all(out, plan.loops, [&](const TapeLoop& loop) {
    out.number(loop.first).number(loop.end).number(loop.beside);
    out.number(loop.counted).number(loop.again).number(loop.induction_variable);
    loop.count.write(out);
    loop.from.write(out);
  });
  write_all(out, plan.variables, [&](const ProgramVariable& variable) {
    out.text(variable.name).number(variable.min).number(variable.max);
  });
  out.number(plan.arena_bytes).number(plan.live_bytes_max).number(plan.inputs);
  out.number(plan.outputs).number(plan.is_exclusive);
  write_all(out, cached.outputs, [&](uint32_t position) { out.number(position); });
  return out.result();
}

std::optional<StoredPlan> decode_plan(std::string_view bytes, size_t nodes, size_t leaves) {
  ByteReader in(bytes);
  StoredPlan stored;
  Plan& plan = stored.cached.plan;
  plan.slots = read_all<Slot>(in, [&] { return read_slot(in); });
  plan.tape = read_all<TapeEntry>(in, [&] {
    TapeEntry entry;
    stored.kernels.emplace_back(in.text());
    entry.slots = read_numbers(in);
    entry.variables = read_numbers(in);
    entry.computes = read_numbers(in);
    return entry;
  });
  plan.loops = read_all<TapeLoop>(in, [&] {
    TapeLoop loop;
    loop.first = in.number<uint32_t>();
    loop.end = in.number<uint32_t>();
    loop.beside = read_bool(in);
    loop.counted = in.number<uint32_t>();
    loop.again = in.number<uint32_t>();
    loop.induction_variable = in.number<uint32_t>();
    loop.count = SizeExpression::read(in);
    loop.from = SizeExpression::read(in);
    return loop;
  });
  plan.variables = read_all<ProgramVariable>(in, [&] {
    ProgramVariable variable;
    variable.name = in.text();
    variable.min = in.number<int64_t>();
    variable.max = in.number<int64_t>();
    return variable;
  });
  plan.arena_bytes = in.number<int64_t>();
  plan.live_bytes_max = in.number<int64_t>();
  plan.inputs = in.number<int64_t>();
  plan.outputs = in.number<int64_t>();
  plan.is_exclusive = read_bool(in);
  stored.cached.outputs = read_numbers(in);
  if (!in.at_end() || !is_sound(stored, nodes, leaves)) return std::nullopt;
  return stored;
}

}  // namespace tiny
