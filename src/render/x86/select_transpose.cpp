// Vectors that are stored with their lanes apart, as many as they have lanes and side by side: a
// square of elements is stored across.  Its columns are made in registers and stored whole.
#include <algorithm>
#include <cstdlib>

#include "render/x86/selector.h"

namespace tiny::x86 {

namespace {

constexpr int64_t kElementBytes = 4;
// vshuff32x4, of two lanes each of both sources: the lower halves, the upper halves, the even
// lanes, the odd lanes.
constexpr int64_t kLower = 0x44, kUpper = 0xEE, kEven = 0x88, kOdd = 0xDD;

bool ends_run(Op op) {
  return op == Op::Loop || op == Op::EndLoop || op == Op::If || op == Op::EndIf || op == Op::Check;
}

}  // namespace

// Whether a store may be one row of a square: nothing but its elements decides what is stored.
bool Selector::is_stored_across(const LinearOp& o) const {
  if (o.op != Op::Store || o.count != 3 || o.bypass) return false;
  const DType value = source(o, 2).dtype;
  const int64_t lanes = value.lanes;
  return !value.is_bool() && value.bytes() == kElementBytes &&
         (lanes == 4 || lanes == 8 || (lanes == 16 && avx512_)) && std::abs(o.aux) >= lanes &&
         source(o, 1).dtype.lanes == 1 && source(o, 1).op != Op::Accumulator &&
         source(o, 2).op != Op::Accumulator;
}

// What an address is in: scratch and parameters never meet.
Op Selector::memory_of(LinearId address) const {
  while (op(address).op == Op::Address) address = op(address).src[0];
  return op(address).op;
}

// Runs of such stores to one place, an element after the other, between which nothing looks at what
// they store.
void Selector::find_squares() {
  std::vector<LinearId> run;
  for (LinearId i = 0; i < program_.ops.size(); ++i) {
    const LinearOp& o = op(i);
    if (ends_run(o.op)) run.clear();
    if (run.empty() && !is_stored_across(o)) continue;
    if (o.op == Op::Load && memory_of(o.src[0]) == memory_of(op(run.front()).src[0])) run.clear();
    if (o.op != Op::Store) continue;
    const bool fits = is_stored_across(o);
    const auto continues = [&](const LinearOp& first) {
      return o.src[0] == first.src[0] && o.src[1] == first.src[1] && o.aux == first.aux &&
             source(o, 2).dtype == source(first, 2).dtype;
    };
    if (!fits || (!run.empty() && !continues(op(run.front())))) run.clear();
    if (!fits) continue;
    run.push_back(i);
    if (std::ssize(run) < source(o, 2).dtype.lanes) continue;
    note_square(run);
    run.clear();
  }
}

void Selector::note_square(std::vector<LinearId> stores) {
  const LinearId last = stores.back();
  std::ranges::sort(stores, {}, [&](LinearId id) { return op(id).imm; });
  for (size_t j = 0; j < stores.size(); ++j)
    if (op(stores[j]).imm != op(stores[0]).imm + static_cast<int64_t>(j) * kElementBytes) return;
  for (LinearId id : stores) squares_[id] = id == last ? stores : std::vector<LinearId>();
}

// A row waits for the last one, with which all are stored.
void Selector::store_across(LinearId id) {
  use(op(id).src[2]);
  const std::vector<LinearId>& stores = squares_.at(id);
  if (stores.empty()) return;
  std::vector<VReg> rows;
  for (LinearId row : stores) rows.push_back(use(op(row).src[2]));
  const LinearOp& first = op(stores[0]);
  const DType dtype = source(first, 2).dtype;
  const Mem mem = address(first.src[0], first.src[1], kElementBytes, first.imm);
  const std::vector<VReg> columns = transposed(width_of(dtype), rows);
  for (int64_t l = 0; l < dtype.lanes; ++l)
    store_plain(dtype, lane_address(first, dtype, mem, l), columns[static_cast<size_t>(l)]);
}

// The columns of a square of elements, from its rows.
std::vector<VReg> Selector::transposed(int64_t width, const std::vector<VReg>& rows) {
  const auto binary_of = [&](Opcode opcode, VReg a, VReg b) { return rrm(opcode, width, a, b); };
  // In every group of four rows and piece of 16 bytes: four columns.
  std::vector<VReg> four;
  for (size_t g = 0; g < rows.size(); g += 4) {
    const VReg low01 = binary_of(Opcode::vpunpckldq, rows[g], rows[g + 1]);
    const VReg high01 = binary_of(Opcode::vpunpckhdq, rows[g], rows[g + 1]);
    const VReg low23 = binary_of(Opcode::vpunpckldq, rows[g + 2], rows[g + 3]);
    const VReg high23 = binary_of(Opcode::vpunpckhdq, rows[g + 2], rows[g + 3]);
    four.push_back(binary_of(Opcode::vpunpcklqdq, low01, low23));
    four.push_back(binary_of(Opcode::vpunpckhqdq, low01, low23));
    four.push_back(binary_of(Opcode::vpunpcklqdq, high01, high23));
    four.push_back(binary_of(Opcode::vpunpckhqdq, high01, high23));
  }
  if (rows.size() == 4) return four;
  std::vector<VReg> columns(rows.size());
  const auto pieces = [&](VReg a, VReg b, int64_t which) {
    return rrmi(avx512_ ? Opcode::vshuff32x4 : Opcode::vperm2f128, width, a, b, which);
  };
  for (size_t c = 0; c < 4; ++c) {
    if (rows.size() == 8) {
      columns[c] = pieces(four[c], four[4 + c], avx512_ ? 0 : 0x20);
      columns[4 + c] = pieces(four[c], four[4 + c], avx512_ ? 3 : 0x31);
      continue;
    }
    const VReg low01 = pieces(four[c], four[4 + c], kLower);
    const VReg low23 = pieces(four[8 + c], four[12 + c], kLower);
    columns[c] = pieces(low01, low23, kEven);
    columns[4 + c] = pieces(low01, low23, kOdd);
    const VReg high01 = pieces(four[c], four[4 + c], kUpper);
    const VReg high23 = pieces(four[8 + c], four[12 + c], kUpper);
    columns[8 + c] = pieces(high01, high23, kEven);
    columns[12 + c] = pieces(high01, high23, kOdd);
  }
  return columns;
}

}  // namespace tiny::x86
