#include "codegen/choose/editor.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "ir/bounds.h"

namespace tiny {

Editor::Editor(const Kernel& kernel, const Machine& machine, AccessTable table)
    : kernel_(kernel), machine_(machine), table_(std::move(table)), now_(kernel) {
  lanes_ = machine.vector_bytes / table_.widest_bytes;
  if (lanes_ < 2 || !vectorises(kernel, machine)) lanes_ = 1;
}

int64_t Editor::const_extent(size_t range) const {
  const UOp size = kernel_.ranges[range].range.src(0);
  return size.is_const() ? size.const_int() : 0;
}

bool Editor::has_range(int64_t number) const {
  return now_.find_range(number) < now_.ranges.size();
}

bool Editor::is_loop(int64_t number) const {
  const size_t at = now_.find_range(number);
  return at < now_.ranges.size() && now_.ranges[at].kind == RangeKind::Loop;
}

// The size of a range as it is now, a symbolic one at its greatest.
int64_t Editor::most_of(int64_t range) const {
  return bounds(range_now(range).range.src(0)).hi;
}

void Editor::apply(Option option) {
  now_ = apply_option(now_, option);
  options_.push_back(std::move(option));
}

UOp Editor::find_new_stage(Option option) {
  const std::vector<UOp> before = topological(now_.roots);
  apply(std::move(option));
  for (const UOp& u : topological(now_.roots))
    if (u.op() == Op::Stage && std::ranges::find(before, u) == before.end()) return u;
  return {};
}

UOp Editor::new_stage(Option option) {
  UOp stage = find_new_stage(std::move(option));
  invariant(bool(stage), "a stage option makes a stage");
  return stage;
}

int64_t Editor::tile(int64_t range, int64_t size) {
  const int64_t made = now_.next_range_number();
  apply({OptionKind::Tile, range, size, {}, 0, false});
  return made;
}

// Lanes over a range, `vectors` of them in registers; what is left of the range stays a loop.
void Editor::vector_tile(size_t range, int64_t vectors, int64_t most) {
  int64_t lanes = std::min({lanes_, most, table_.lanes_along(range, machine_.vector_bytes)});
  const int64_t n = const_extent(range);
  if (n > 0 && n < lanes) lanes = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
  if (lanes < 2) return;
  if (n > 0) vectors = std::clamp<int64_t>(vectors, 1, ceil_div(n, lanes));
  int64_t inner = number(range);
  if (n != lanes || kernel_.ranges[range].range.src(0).const_int() != lanes)
    inner = tile(inner, lanes * vectors);
  if (vectors > 1) {
    const int64_t lane = tile(inner, lanes);
    kind(OptionKind::Upcast, inner);
    inner = lane;
  }
  kind(OptionKind::Vec, inner);
}

// The range right inside of what is left of another as a loop.
void Editor::put_inside(int64_t range, int64_t loop) {
  std::vector<int64_t> order;
  for (const KernelRange& r : now_.ranges) {
    const int64_t n = r.range.int_arg();
    if (n == range) continue;
    order.push_back(n);
    if (n == loop && r.kind == RangeKind::Loop) order.push_back(range);
  }
  if (order.size() == now_.ranges.size()) apply({OptionKind::Order, -1, 0, order, 0, false});
}

// The range outside of all others.
void Editor::put_first(int64_t range) {
  std::vector<int64_t> order{range};
  for (const KernelRange& r : now_.ranges)
    if (r.range.int_arg() != range) order.push_back(r.range.int_arg());
  apply({OptionKind::Order, -1, 0, order, 0, false});
}

void Editor::restart() {
  kernel_ = now_;
  table_ = access_table(kernel_);
}

void Editor::forget_range(size_t range) {
  for (ClosureInfo& c : table_.closures) {
    c.own &= ~bit(range);
    c.below &= ~bit(range);
  }
  table_.extents[range] = 1;
}

}  // namespace tiny
