#include "engine/kernel_key.h"

#include <unordered_map>

#include "base/bytes.h"
#include "base/error.h"

namespace tiny {

namespace {

void write_ints(ByteWriter& out, const Ints& values) {
  out.number(uint64_t{values.size()});
  for (int64_t v : values) out.number(v);
}

void write_arg(ByteWriter& out, const Arg& arg) {
  out.number(static_cast<uint8_t>(arg.index()));
  invariant(!std::holds_alternative<Ref<RefCounted>>(arg), "a kernel names no memory");
  if (const auto* i = std::get_if<int64_t>(&arg)) out.number(*i);
  if (const auto* c = std::get_if<ConstArg>(&arg)) out.number(c->bits);
  if (const auto* v = std::get_if<Ints>(&arg)) write_ints(out, *v);
  if (const auto* v = std::get_if<VariableArg>(&arg))
    out.text(v->name).number(v->min).number(v->max);
  if (const auto* r = std::get_if<ReduceArg>(&arg)) {
    out.number(r->op);
    write_ints(out, r->axes);
  }
  if (const auto* v = std::get_if<ViewArg>(&arg)) {
    write_ints(out, v->shape);
    write_ints(out, v->strides);
    out.number(v->offset);
  }
}

void write_dtype(ByteWriter& out, DType dtype) {
  out.number(dtype.scalar).number(dtype.lanes);
}

}  // namespace

std::string kernel_key(const Kernel& kernel) {
  ByteWriter out;
  std::vector<UOp> roots = kernel.roots;
  for (const KernelRange& r : kernel.ranges) roots.push_back(r.range);
  roots.insert(roots.end(), kernel.facts.begin(), kernel.facts.end());
  roots.insert(roots.end(), kernel.variables.begin(), kernel.variables.end());
  const std::vector<UOp> order = topological(roots);
  std::unordered_map<const Node*, uint32_t> number;
  out.text(kernel.name).number(uint64_t{order.size()});
  for (const UOp& u : order) {
    number.emplace(u.node(), static_cast<uint32_t>(number.size()));
    out.number(u.op());
    write_dtype(out, u.dtype());
    write_arg(out, u.arg());
    out.number(static_cast<uint32_t>(u.src().size()));
    for (const UOp& s : u.src()) out.number(number.at(s.node()));
  }
  const auto write_list = [&](const std::vector<UOp>& list) {
    out.number(uint64_t{list.size()});
    for (const UOp& u : list) out.number(number.at(u.node()));
  };
  write_list(kernel.roots);
  write_list(kernel.facts);
  write_list(kernel.variables);
  out.number(uint64_t{kernel.ranges.size()});
  for (const KernelRange& r : kernel.ranges)
    out.number(number.at(r.range.node())).number(r.kind).number(r.reduced);
  out.number(uint64_t{kernel.params.size()});
  for (const KernelParam& p : kernel.params) {
    write_dtype(out, p.element);
    out.number(p.read).number(p.written);
  }
  return out.result();
}

std::string target_key(const Target& target) {
  // Names every field: one that is added does not compile until it is written too.
  const auto& [name, isa, vector_bytes, vector_registers, l1_bytes, l2_bytes, l3_bytes, cores,
               launch_seconds, l2_bandwidth, l3_bandwidth, memory_bandwidth, fma_rate, tiles_min,
               inputs_max, ops_max, linear_ops_max] = target;
  ByteWriter out;
  out.text(name).number(isa).number(vector_bytes).number(vector_registers);
  out.number(l1_bytes).number(l2_bytes).number(l3_bytes).number(cores);
  out.number(launch_seconds).number(l2_bandwidth).number(l3_bandwidth).number(memory_bandwidth);
  out.number(fma_rate).number(tiles_min).number(inputs_max).number(ops_max).number(linear_ops_max);
  return out.result();
}

}  // namespace tiny
