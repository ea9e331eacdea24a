#include "engine/kernel_key.h"

#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "ir/node_map.h"
#include "schedule/scans.h"
#include "schedule/schedule.h"
#include "shape/shape.h"

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
  if (const auto* s = std::get_if<StageArg>(&arg)) {
    write_ints(out, s->strides);
    out.number(s->is_shared).number(s->swizzle);
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

// Of the nodes in their order.  A key is often of a small part of a large graph.
class Numbers {
 public:
  explicit Numbers(std::span<const UOp> order) { by_node_.reserve(order.size()); }

  void add(const UOp& node) {
    by_node_.emplace(node.node(), static_cast<uint32_t>(by_node_.size()));
  }
  // UINT32_MAX if it has none.
  uint32_t of(const UOp& node) const {
    const uint32_t* number = by_node_.find(node.node());
    return number ? *number : UINT32_MAX;
  }

 private:
  NodeTable<uint32_t> by_node_;
};

// Scans have numbers in the order of the nodes.
class ScanNumbers {
 public:
  void write(ByteWriter& out, const ScanPart& part) {
    const auto [at, added] = numbers_.try_emplace(part.loop.get(), numbers_.size());
    out.number(uint64_t{at->second}).number(part.kind).number(uint64_t{part.index});
    if (added) {
      const ScanLoop& loop = *part.loop;
      out.text(to_string(loop.count)).number(uint64_t{loop.outputs}).number(uint64_t{loop.states});
      out.number(loop.is_counted).number(loop.asks).number(loop.is_branch);
      if (loop.induction_variable)
        out.text(loop.induction_variable.variable_arg().name).text(to_string(loop.first));
    }
    out.number(part.reverse).text(to_string(part.shape));
  }

 private:
  std::unordered_map<const ScanLoop*, size_t> numbers_;
};

// A node whose sources have numbers.
void write_node(ByteWriter& out, const UOp& node, const Numbers& numbers,
                ScanNumbers* scans = nullptr) {
  out.number(node.op());
  write_dtype(out, node.dtype());
  if (scans && is_of_scan(node))
    scans->write(out, scan_part(node));
  else if (node.op() == Op::Alias)  // a number that tells it from others says nothing of it
    out.number(node.ints().front());
  else if (node.op() != Op::Call)  // a call has no name in a key
    write_arg(out, node.arg());
  out.number(static_cast<uint32_t>(node.src().size()));
  for (const UOp& s : node.src()) out.number(numbers.of(s));
}

void write_list(ByteWriter& out, std::span<const UOp> list, const Numbers& numbers) {
  out.number(uint64_t{list.size()});
  for (const UOp& u : list) out.number(numbers.of(u));
}

}  // namespace

namespace {

// Which nodes do the same one's work, so that plans that name their kernels fit the graph: nothing
// where there are no names.
void write_origins(ByteWriter& out, GraphKey& key) {
  std::unordered_map<Origin, uint64_t> numbers;
  uint64_t hash[] = {0, 1};
  for (const UOp& u : key.order) {
    const Origin origin = u.node()->origin;
    uint64_t number = 0;
    if (is_named(origin) && !u.src().empty() && !has_memory(u)) {
      number = numbers.try_emplace(origin, numbers.size() + 1).first->second;
      if (number > key.origins.size()) key.origins.push_back(origin);
    }
    for (uint64_t& h : hash) h = hash_mix(h, number);
  }
  if (!key.origins.empty()) out.number(hash[0]).number(hash[1]);
}

}  // namespace

GraphKey graph_key(std::span<const UOp> roots, std::span<const UOp> inputs,
                   std::span<const UOp> variables) {
  GraphKey key;
  key.order = topological(roots, has_memory);
  ByteWriter out;
  Numbers numbers(key.order);
  ScanNumbers scans;
  for (const UOp& u : key.order) {
    const bool is_leaf = has_memory(u);
    out.number(is_leaf);
    if (is_leaf) {
      key.leaves.push_back(u);
      out.number(u.op() == Op::Buffer);
      write_dtype(out, u.dtype());
      out.text(to_string(shape_of(u)));
    } else {
      key.has_writes |= u.op() == Op::After || u.op() == Op::Assign;
      key.has_calls |= u.op() == Op::Call;
      write_node(out, u, numbers, &scans);
    }
    numbers.add(u);
  }
  write_list(out, roots, numbers);
  write_list(out, inputs, numbers);
  for (const UOp& v : variables) write_arg(out, v.arg());
  write_origins(out, key);
  key.bytes = out.result();
  return key;
}

std::string kernel_key(const Kernel& kernel) {
  ByteWriter out;
  std::vector<UOp> roots = kernel.roots;
  for (const KernelRange& r : kernel.ranges) roots.push_back(r.range);
  roots.insert(roots.end(), kernel.facts.begin(), kernel.facts.end());
  roots.insert(roots.end(), kernel.variables.begin(), kernel.variables.end());
  const std::vector<UOp> order = topological(roots);
  Numbers numbers(order);
  out.text(kernel.name).number(uint64_t{order.size()});
  for (const UOp& u : order) {
    write_node(out, u, numbers);
    numbers.add(u);
  }
  write_list(out, kernel.roots, numbers);
  write_list(out, kernel.facts, numbers);
  write_list(out, kernel.variables, numbers);
  out.number(uint64_t{kernel.ranges.size()});
  for (const KernelRange& r : kernel.ranges)
    out.number(numbers.of(r.range)).number(r.kind).number(r.reduced).number(r.overlaps);
  out.number(uint64_t{kernel.params.size()});
  for (const KernelParam& p : kernel.params) {
    write_dtype(out, p.element);
    out.number(p.read).number(p.written).number(p.bypass);
  }
  return out.result();
}

namespace {

void write_group_rates(ByteWriter& out, const GroupRates& rates) {
  const auto& [threads, groups, registers, shared_bytes, clock, issued, shared_words, matrix_rate,
               wide_matrix_rate, memory_seconds, barrier_seconds] = rates;
  out.number(threads).number(groups).number(registers).number(shared_bytes).number(clock);
  out.number(issued)
      .number(shared_words)
      .number(matrix_rate)
      .number(wide_matrix_rate)
      .number(memory_seconds)
      .number(barrier_seconds);
}

}  // namespace

std::string machine_key(const Machine& machine) {
  // Names every field: one that is added does not compile until it is written too.
  const auto& [name, isa, vector_bytes, vector_registers, dots, tiles, l1_bytes, l2_bytes, l3_bytes,
               cores, most, scales, group, arena, without_vectors] =
      static_cast<const Target&>(machine);
  const auto& [launch_seconds, serial_launch_seconds, l2_bandwidth, l3_bandwidth, memory_bandwidth,
               fma_rate, unit_bytes, issued, move_cycles, gather_cycles, bypass_bytes, of_groups] =
      static_cast<const Rates&>(machine);
  ByteWriter out;
  out.text(name)
      .number(isa)
      .number(vector_bytes)
      .number(vector_registers)
      .number(dots)
      .number(tiles);
  out.number(l1_bytes).number(l2_bytes).number(l3_bytes).number(cores);
  out.number(launch_seconds)
      .number(serial_launch_seconds)
      .number(l2_bandwidth)
      .number(l3_bandwidth)
      .number(memory_bandwidth);
  const auto& [inputs, ops, linear_ops] = most;
  out.number(fma_rate)
      .number(unit_bytes)
      .number(issued)
      .number(move_cycles)
      .number(gather_cycles)
      .number(inputs)
      .number(ops)
      .number(linear_ops);
  const auto& [threads, shared_bytes, warp, access_bytes, banks, private_bytes, argument_alignment,
               matrices] = group;
  out.number(bypass_bytes).number(scales).number(threads).number(shared_bytes);
  out.number(warp)
      .number(access_bytes)
      .number(banks)
      .number(private_bytes)
      .number(argument_alignment)
      .number(matrices);
  write_group_rates(out, of_groups);
  const auto& [alignment, page_bytes, margin] = arena;
  out.number(alignment).number(page_bytes).number(margin);
  for (const ScalarTypes types : without_vectors) out.number(types);
  return out.result();
}

}  // namespace tiny
