#include "render/x86/select/squares.h"

#include <algorithm>
#include <cstdlib>

#include "base/sort.h"
#include "ir/picked_lanes.h"
#include "render/x86/select/transpose.h"

namespace tiny::x86 {

namespace {

constexpr int64_t kWordBytes = 4;
constexpr size_t kPendingMax = 128;  // stores that may wait for each other

bool ends_run(Op op) {
  return op == Op::Loop || op == Op::EndLoop || op == Op::If || op == Op::EndIf || op == Op::Check;
}

}  // namespace

// Whether a store may be one row of a square: nothing but its elements decides what is stored.
bool Squares::is_stored_across(const LinearOp& o) const {
  if (o.op != Op::Store || o.bypass) return false;
  const DType value = ops_.source(o, 2).dtype;
  const int64_t lanes = value.lanes;
  const bool fits = value.bytes() == kWordBytes ? lanes == 4 || lanes == 8 || lanes == 16
                                                : value.bytes() == 1 && lanes >= kByteRows;
  return !value.is_bool() && fits && (lanes * value.bytes() < 64 || avx512_) &&
         std::abs(o.aux) > 1 && (o.count == 3 || ops_.constant_mask(o.src[3])) &&
         ops_.source(o, 1).dtype.lanes == 1 && ops_.source(o, 1).op != Op::Accumulator;
}

// Whether the op gives a stored accumulator its next value, or begins to compute that in its
// register: its row must not wait then.
bool Squares::changes(LinearId id, const LinearOp& store) const {
  const LinearOp& o = ops_.op(id);
  const LinearId value = store.src[2];
  return facts_[id].target == value || (o.op == Op::Set && o.src[0] == value);
}

uint64_t Squares::stored_lanes(const LinearOp& o) const {
  return o.count == 3 ? ~uint64_t{0} : *ops_.constant_mask(o.src[3]);
}

// What an address is in: scratch, or a parameter.  Where two parameters are one memory, each
// element is read before it is stored, and no other's place depends on it.
std::pair<Op, int64_t> Squares::memory_of(LinearId address) const {
  while (ops_.op(address).op == Op::Address) address = ops_.op(address).src[0];
  const bool is_scratch = ops_.op(address).op == Op::Scratch;
  return {ops_.op(address).op, is_scratch ? 0 : ops_.op(address).imm};
}

// Whether rows of one kind have an element in common.
bool Squares::meet(const LinearOp& a, const LinearOp& b) const {
  const DType dtype = ops_.source(a, 2).dtype;
  const int64_t apart = std::abs(a.aux) * dtype.bytes();
  const int64_t away = std::abs(a.imm - b.imm);
  return away % apart == 0 && away < apart * dtype.lanes;
}

// Whether the op comes between the rows of a run and what is stored after it.
bool Squares::ends(const std::vector<LinearId>& run, LinearId id) const {
  const LinearOp& o = ops_.op(id);
  const LinearOp& first = ops_.op(run.front());
  if (ends_run(o.op) || run.size() == kPendingMax) return true;
  if (std::ranges::any_of(run, [&](LinearId row) { return changes(id, ops_.op(row)); }))
    return true;
  if (o.op != Op::Store && o.op != Op::Load) return false;
  if (memory_of(o.src[0]) != memory_of(first.src[0])) return false;
  if (o.op == Op::Load) return true;
  const bool continues = is_stored_across(o) && o.src[0] == first.src[0] &&
                         o.src[1] == first.src[1] && o.aux == first.aux &&
                         ops_.source(o, 2).dtype == ops_.source(first, 2).dtype &&
                         stored_lanes(o) == stored_lanes(first);
  return !continues ||
         std::ranges::any_of(run, [&](LinearId row) { return meet(o, ops_.op(row)); });
}

// Stores to one place, between which nothing looks at what they store: a run for each memory, since
// what is stored beside it is nowhere in it.
Squares::Squares(const LinearView& ops, const Facts& facts, bool avx512)
    : ops_(ops), facts_(facts), avx512_(avx512) {
  std::vector<std::vector<LinearId>> runs;
  for (LinearId i = 0, count = ops_.size(); i < count; ++i) {
    const LinearOp& o = ops_.op(i);
    std::erase_if(runs, [&](std::vector<LinearId>& run) {
      if (!ends(run, i)) return false;
      note_squares(std::move(run));
      return true;
    });
    if (!is_stored_across(o)) continue;
    const auto here = std::ranges::find_if(runs, [&](const std::vector<LinearId>& run) {
      return memory_of(ops_.op(run.front()).src[0]) == memory_of(o.src[0]);
    });
    (here == runs.end() ? runs.emplace_back() : *here).push_back(i);
  }
  for (std::vector<LinearId>& run : runs) note_squares(std::move(run));
}

// The squares among stores of one kind that do not meet: rows an element after the other.
void Squares::note_squares(std::vector<LinearId> stores) {
  sort_stable(stores, {}, [&](LinearId id) { return ops_.op(id).imm; });
  const DType dtype = ops_.source(ops_.op(stores.front()), 2).dtype;
  const int64_t step = dtype.bytes();
  const auto most = static_cast<size_t>(step == kWordBytes ? dtype.lanes : kByteRows);
  for (size_t begin = 0; begin < stores.size();) {
    size_t end = begin + 1;
    while (end < stores.size() && end - begin < most &&
           ops_.op(stores[end]).imm == ops_.op(stores[end - 1]).imm + step)
      ++end;
    // Fewer rows are stored sooner lane by lane.
    if (are_turned(static_cast<int64_t>(end - begin), step)) {
      const std::vector<LinearId> rows(stores.begin() + static_cast<std::ptrdiff_t>(begin),
                                       stores.begin() + static_cast<std::ptrdiff_t>(end));
      const LinearId last = *std::ranges::max_element(rows);
      for (LinearId id : rows) squares_[id] = id == last ? rows : std::vector<LinearId>();
    }
    begin = end;
  }
}

bool Squares::are_woven(const LinearOp& row, size_t count) const {
  const DType dtype = ops_.source(row, 2).dtype;
  return avx512_ && dtype.bytes() == kWovenBytes &&
         tiny::are_woven(static_cast<int64_t>(count), dtype.lanes, row.aux);
}

const std::vector<LinearId>* Squares::rows_of(LinearId store) const {
  const auto found = squares_.find(store);
  return found == squares_.end() ? nullptr : &found->second;
}

}  // namespace tiny::x86
