#include "codegen/choose/group_editor.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.h"
#include "codegen/options/stage.h"
#include "ir/bounds.h"

namespace tiny {

namespace {

// Values of one node that a thread keeps in registers: of some two hundred that it may have, most
// are left to operands and indices.
constexpr int64_t kCopiesMax = 128;

}  // namespace

Option tile_option(int64_t range, int64_t size) {
  return {OptionKind::Tile, range, size, {}, 0, false};
}
Option kind_option(OptionKind what, int64_t range) {
  return {what, range, 0, {}, 0, false};
}
Option local_option(int64_t range, uint8_t axis) {
  return {OptionKind::Local, range, axis, {}, 0, false};
}

bool GroupEditor::add(std::span<const Option> options) {
  OptimisedKernel next = made_;
  try {
    for (const Option& option : options) {
      next.kernel = apply_option(next.kernel, option);
      next.options.push_back(option);
    }
  } catch (const Error& e) {
    if (e.status() != Status::InvalidArgument) throw;
    return false;
  }
  made_ = std::move(next);
  return true;
}

int64_t GroupEditor::size(int64_t range) const {
  const size_t at = now().find_range(range);
  if (at == now().ranges.size()) return 0;
  const UOp size = now().ranges[at].range.src(0);
  return size.is_const() ? size.const_int() : 0;
}

bool GroupEditor::is_loop(int64_t range) const {
  const size_t at = now().find_range(range);
  return at < now().ranges.size() && now().ranges[at].kind == RangeKind::Loop;
}

bool GroupEditor::deal(int64_t range, uint8_t axis, int64_t threads, int64_t lanes) {
  if (threads * lanes == 1) return true;
  std::vector<Option> options;
  int64_t next = now().next_range_number();
  int64_t inner = range;
  if (size(range) != threads * lanes) {
    options.push_back(tile_option(range, threads * lanes));
    inner = next++;
  }
  int64_t lane = inner;
  if (threads > 1 && lanes > 1) {
    options.push_back(tile_option(inner, lanes));
    lane = next;
  }
  if (lanes > 1) options.push_back(kind_option(OptionKind::Vec, lane));
  if (threads > 1) options.push_back(local_option(inner, axis));
  return add(options);
}

void GroupEditor::launch(std::span<const int64_t> ranges) {
  const AccessTable table = access_table(now());
  const RangeSet stored = stored_ranges(table) & ~ordered_ranges(now());
  std::vector<int64_t> launched;
  std::vector<int64_t> others;
  for (size_t i = 0; i < now().ranges.size(); ++i) {
    const KernelRange& r = now().ranges[i];
    const int64_t number = r.range.int_arg();
    const bool can = r.kind == RangeKind::Loop && !r.reduced && (stored & bit(i)) != 0 &&
                     std::ranges::find(ranges, number) != ranges.end();
    (can ? launched : others).push_back(number);
  }
  if (launched.empty()) return;
  std::vector<Option> options;
  std::vector<int64_t> order = launched;
  order.insert(order.end(), others.begin(), others.end());
  const bool is_in_order = std::ranges::equal(order, now().ranges, {}, {},
                                              [](const auto& r) { return r.range.int_arg(); });
  if (!is_in_order) options.push_back({OptionKind::Order, -1, 0, order, 0, false});
  for (const int64_t r : launched) options.push_back(kind_option(OptionKind::Thread, r));
  add(options);
}

int64_t GroupEditor::place() const {
  const size_t count = thread_ranges(now());
  return count == 0 ? -1 : now().ranges[count - 1].range.int_arg();
}

std::vector<int64_t> GroupEditor::share(int64_t param, int64_t place, std::vector<int64_t> layout,
                                        int64_t padding) {
  const size_t before = now().ranges.size();
  Option option{OptionKind::Stage, place, param, std::move(layout), padding, false};
  option.is_shared = true;
  std::vector<int64_t> made;
  if (!add(option)) return made;
  for (size_t i = before; i < now().ranges.size(); ++i)
    made.push_back(now().ranges[i].range.int_arg());
  return made;
}

std::vector<double> bytes_beside(const AccessTable& table) {
  std::vector<double> bytes(table.extents.size());
  for (const AccessInfo& a : table.accesses) {
    if (a.node.op() == Op::Index) continue;
    const DType dtype = a.store ? a.node.src(1).dtype() : a.node.dtype();
    for (size_t i = 0; i < bytes.size(); ++i)
      if (a.strides[i] == 1) bytes[i] += a.elements * static_cast<double>(dtype.bytes());
  }
  return bytes;
}

int64_t lanes_beside(const Kernel& kernel, const AccessTable& table, size_t range,
                     const Machine& machine) {
  if ((table.opaque & bit(range)) || !vectorises(kernel, machine)) return 1;
  int64_t widest = 1;
  bool is_beside = false;
  for (const AccessInfo& a : table.accesses) {
    if (a.strides[range] == 0) continue;
    if (a.strides[range] != 1) return 1;
    const DType dtype = a.store ? a.node.src(1).dtype() : a.node.dtype();
    widest = std::max(widest, dtype.bytes());
    is_beside = true;
  }
  if (!is_beside) return 1;
  int64_t lanes = std::max<int64_t>(machine.group.access_bytes / widest, 1);
  const auto divides = [&](int64_t step) { return step != kOpaqueStride && step % lanes == 0; };
  for (const AccessInfo& a : table.accesses) {
    if (a.strides[range] == 0) continue;
    for (size_t i = 0; i < a.strides.size(); ++i)
      while (lanes > 1 && i != range && !divides(a.strides[i])) lanes /= 2;
    if (a.node.op() == Op::Index) continue;
    const int64_t offset = a.node.view_arg().offset;
    while (lanes > 1 && (offset == kSymbolicDim || !divides(offset))) lanes /= 2;
  }
  return lanes;
}

RangeSet stored_ranges(const AccessTable& table) {
  RangeSet all = ~RangeSet{0};
  for (const ClosureInfo& c : table.closures)
    if (c.store) all &= c.own;
  return all;
}

bool fits_group(const Kernel& kernel, const Target& target) {
  std::array<int64_t, kGroupAxes> group{1, 1, 1};
  RangeSet repeated = 0;
  for (size_t i = 0; i < kernel.ranges.size(); ++i) {
    const KernelRange& r = kernel.ranges[i];
    if (r.kind == RangeKind::Local) group[r.axis] = r.range.src(0).const_int();
    if (r.kind == RangeKind::Upcast || r.kind == RangeKind::Unroll || r.kind == RangeKind::Vec)
      repeated |= bit(i);
  }
  if (group[0] * group[1] * group[2] > target.group.threads) return false;
  if (group_bytes(kernel) > target.group.shared_bytes) return false;
  if (staged_bytes(kernel) - shared_bytes(kernel) > target.group.private_bytes) return false;
  FreeRanges free;
  add_free_ranges(kernel, kernel.roots, free);
  const RangeSet columns = shared_columns(kernel);
  for (const UOp& u : topological(kernel.roots)) {
    // No value of a thread's own.
    if (u.op() == Op::MatrixTerm || (free.at(u.node()) & columns)) continue;
    int64_t copies = 1;
    for (RangeSet left = free.at(u.node()) & repeated; left; left &= left - 1)
      copies *= kernel.ranges[static_cast<size_t>(std::countr_zero(left))].range.src(0).const_int();
    if (copies > kCopiesMax) return false;
  }
  return true;
}

}  // namespace tiny
