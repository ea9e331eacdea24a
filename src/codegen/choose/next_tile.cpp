#include "codegen/choose/next_tile.h"

#include <cmath>
#include <map>

#include "codegen/options/prefetch.h"
#include "cost/footprint.h"

namespace tiny {

namespace {

bool is_of_memory(const AccessInfo& a) {
  return a.store || a.node.op() == Op::Load;
}

// Of the second level of cache, for what is fetched: less is there.  Best of four on an Emerald
// Rapids, 2026-12-01: results of 0.38 of it (256 to 64 channels of 56 x 56) 0.78 to 0.63 ms, of
// 0.86 (products of a Winograd form of 128 to 64 channels) 0.74 to 0.69.
constexpr double kPartMin = 0.25;

double bytes_of(const AccessInfo& a) {
  return a.elements * static_cast<double>((a.store ? a.node.src(1) : a.node).dtype().bytes());
}

void prefetch(Editor& edit, const AccessInfo& a, int64_t loop) {
  if (!is_of_memory(a) || bytes_of(a) < kPartMin * static_cast<double>(edit.machine().l2_bytes))
    return;
  const Option option{OptionKind::Prefetch, loop, a.node.src(0).int_arg(), {}, 0, false};
  if (can_prefetch(edit.now(), option)) edit.apply(option);
}

// Whether the second level of cache has all that rows read and write: the kernel before left it
// there, and it stays for the next panel.
bool are_rows_near(const Editor& edit, size_t row) {
  std::map<int64_t, double> bytes;
  for (const AccessInfo& a : edit.table().accesses)
    if (is_of_memory(a) && a.strides[row] != 0) bytes[a.node.src(0).int_arg()] = bytes_of(a);
  double all = 0;
  for (const auto& [param, of_param] : bytes) all += of_param;
  return all < static_cast<double>(edit.machine().l2_bytes);
}

}  // namespace

const AccessInfo* rows_operand(const Editor& edit, size_t lane, size_t row) {
  for (const AccessInfo& a : edit.table().accesses)
    if (!a.store && a.inside_reduction && a.strides[lane] == 0 && a.strides[row] != 0) return &a;
  return nullptr;
}

void prefetch_next_rows(Editor& edit, size_t lane, size_t row, int64_t loop) {
  const AccessInfo* rows = rows_operand(edit, lane, row);
  if (!rows || !edit.is_loop(loop) || are_rows_near(edit, row)) return;
  // Rows side by side in the same lines are there with this tile's, or with the line beside them.
  const auto apart = std::abs(static_cast<double>(rows->strides[row]));
  if (apart * static_cast<double>(rows->node.dtype().bytes()) >= kLine) prefetch(edit, *rows, loop);
}

void prefetch_epilogue(Editor& edit, size_t lane, size_t row, bool stores) {
  if (are_rows_near(edit, row)) return;
  const auto bypassed = static_cast<double>(edit.machine().bypass_bytes);
  int64_t of_tiles = -1;  // the innermost loop outside of the sum
  for (const KernelRange& r : edit.now().ranges) {
    if (r.reduced) break;
    if (r.kind == RangeKind::Loop) of_tiles = r.range.int_arg();
  }
  for (const AccessInfo& a : edit.table().accesses) {
    if (a.inside_reduction || a.strides[lane] == 0 || a.strides[row] == 0) continue;
    const bool passes_caches = bypassed > 0 && bytes_of(a) > bypassed;
    if (!a.store || (stores && !passes_caches)) prefetch(edit, a, of_tiles);
  }
}

}  // namespace tiny
