// Vectors that are stored with their lanes apart, several side by side: the rows of a square of
// elements that is stored across.  Its columns are made in registers and stored whole.
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "ir/picked_lanes.h"
#include "render/x86/selector.h"

namespace tiny::x86 {

namespace {

constexpr int64_t kWordBytes = 4;
constexpr int64_t kPieceBytes = 16;  // within which bytes are unpacked
constexpr size_t kPendingMax = 128;  // stores that may wait for each other
// vshuff32x4, of two lanes each of both sources: the lower halves, the upper halves, the even
// lanes, the odd lanes.
constexpr int64_t kLower = 0x44, kUpper = 0xEE, kEven = 0x88, kOdd = 0xDD;

bool ends_run(Op op) {
  return op == Op::Loop || op == Op::EndLoop || op == Op::If || op == Op::EndIf || op == Op::Check;
}

}  // namespace

// Whether a store may be one row of a square: nothing but its elements decides what is stored.
bool Selector::is_stored_across(const LinearOp& o) const {
  if (o.op != Op::Store || o.bypass) return false;
  const DType value = source(o, 2).dtype;
  const int64_t lanes = value.lanes;
  const bool fits = value.bytes() == kWordBytes ? lanes == 4 || lanes == 8 || lanes == 16
                                                : value.bytes() == 1 && lanes >= kPieceBytes;
  return !value.is_bool() && fits && (lanes * value.bytes() < 64 || avx512_) &&
         std::abs(o.aux) > 1 && (o.count == 3 || constant_mask(o.src[3])) &&
         source(o, 1).dtype.lanes == 1 && source(o, 1).op != Op::Accumulator &&
         source(o, 2).op != Op::Accumulator;
}

// The lanes that a store has.
uint64_t Selector::stored_lanes(const LinearOp& o) const {
  return o.count == 3 ? ~uint64_t{0} : *constant_mask(o.src[3]);
}

// What an address is in: scratch, or a parameter.  Where two parameters are one memory, each
// element is read before it is stored, and no other's place depends on it.
std::pair<Op, int64_t> Selector::memory_of(LinearId address) const {
  while (op(address).op == Op::Address) address = op(address).src[0];
  const bool is_scratch = op(address).op == Op::Scratch;
  return {op(address).op, is_scratch ? 0 : op(address).imm};
}

// Whether rows of one kind have an element in common.
bool Selector::meet(const LinearOp& a, const LinearOp& b) const {
  const DType dtype = source(a, 2).dtype;
  const int64_t apart = std::abs(a.aux) * dtype.bytes();
  const int64_t away = std::abs(a.imm - b.imm);
  return away % apart == 0 && away < apart * dtype.lanes;
}

// Stores to one place, between which nothing looks at what they store.
void Selector::find_squares() {
  std::vector<LinearId> run;
  const auto end = [&] {
    note_squares(std::move(run));
    run.clear();
  };
  for (LinearId i = 0; i < program_.ops.size(); ++i) {
    const LinearOp& o = op(i);
    if (!run.empty()) {
      const LinearOp& first = op(run.front());
      const bool looks = o.op == Op::Load && memory_of(o.src[0]) == memory_of(first.src[0]);
      const bool continues =
          o.op != Op::Store ||
          (is_stored_across(o) && o.src[0] == first.src[0] && o.src[1] == first.src[1] &&
           o.aux == first.aux && source(o, 2).dtype == source(first, 2).dtype &&
           stored_lanes(o) == stored_lanes(first));
      const auto meets = [&](LinearId row) { return meet(o, op(row)); };
      if (ends_run(o.op) || looks || !continues || run.size() == kPendingMax ||
          (o.op == Op::Store && std::ranges::any_of(run, meets)))
        end();
    }
    if (is_stored_across(o)) run.push_back(i);
  }
  end();
}

// The squares among stores of one kind that do not meet: rows an element after the other.
void Selector::note_squares(std::vector<LinearId> stores) {
  if (stores.empty()) return;
  std::ranges::sort(stores, {}, [&](LinearId id) { return op(id).imm; });
  const DType dtype = source(op(stores.front()), 2).dtype;
  const int64_t step = dtype.bytes();
  const auto most = static_cast<size_t>(step == kWordBytes ? dtype.lanes : kPieceBytes);
  for (size_t begin = 0; begin < stores.size();) {
    size_t end = begin + 1;
    while (end < stores.size() && end - begin < most &&
           op(stores[end]).imm == op(stores[end - 1]).imm + step)
      ++end;
    // Fewer rows are stored sooner lane by lane, unless their columns follow each other.
    if (2 * (end - begin) >= most || are_woven(op(stores[begin]), end - begin)) {
      const std::vector<LinearId> rows(stores.begin() + static_cast<std::ptrdiff_t>(begin),
                                       stores.begin() + static_cast<std::ptrdiff_t>(end));
      const LinearId last = *std::ranges::max_element(rows);
      for (LinearId id : rows) squares_[id] = id == last ? rows : std::vector<LinearId>();
    }
    begin = end;
  }
}

// Whether the columns of so few rows lie side by side, so that they are stored as whole vectors.
bool Selector::are_woven(const LinearOp& row, size_t count) const {
  const DType dtype = source(row, 2).dtype;
  return avx512_ && dtype.bytes() == kWovenBytes &&
         tiny::are_woven(static_cast<int64_t>(count), dtype.lanes, row.aux);
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
  const Mem mem = address(first.src[0], first.src[1], dtype.bytes(), first.imm);
  const uint64_t lanes = stored_lanes(first);
  const auto place = [&](int64_t lane) { return lane_address(first, dtype, mem, lane); };
  if (dtype.bytes() == 1) return store_byte_columns(dtype, std::move(rows), lanes, place);
  if (are_woven(first, rows.size())) return store_woven(first, rows, mem);
  const auto count = std::ssize(rows);
  rows.resize(dtype.lanes, rows.back());
  const std::vector<VReg> columns = transposed(width_of(dtype), rows);
  for (int64_t l = 0; l < dtype.lanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    const VReg column = columns[static_cast<size_t>(l)];
    if (count == dtype.lanes)
      store_plain(dtype, place(l), column);
    else
      store_masked(dtype, place(l), column,
                   make_constant_mask((uint64_t{1} << count) - 1, dtype.lanes, dtype.bytes()));
  }
}

// Element after element of one row after the other: each vector that is stored picks its elements
// out of all rows.
void Selector::store_woven(const LinearOp& first, const std::vector<VReg>& rows, const Mem& mem) {
  const DType dtype = source(first, 2).dtype;
  const int64_t width = width_of(dtype), count = std::ssize(rows), n = dtype.lanes;
  const uint64_t lanes = stored_lanes(first);
  for (int64_t v = 0; v < count; ++v) {
    uint64_t stored = 0;
    for (int64_t i = 0; i < n; ++i) stored |= (lanes >> ((v * n + i) / count) & 1) << i;
    if (stored == 0) continue;
    const VReg picked = move(RegClass::Vec, width, rows[0]);
    for (int64_t row = 1; row < count; ++row) {
      std::vector<std::byte> numbers(static_cast<size_t>(width), std::byte{0});
      for (int64_t i = 0; i < n; ++i) {
        const int64_t lane = (v * n + i) / count, of = (v * n + i) % count;
        // Of the row, of the first one, or picked before.
        const int64_t from = of == row ? n + lane : row == 1 && of == 0 ? lane : i;
        numbers[static_cast<size_t>(i * kWovenBytes)] = static_cast<std::byte>(from);
      }
      const VReg index = pool_reg(pool_bytes(std::move(numbers)), width);
      emit(Opcode::VPermute2, width, picked, kNoReg, index, rows[static_cast<size_t>(row)]).width2 =
          static_cast<uint8_t>(kWordBytes);
    }
    const Mem here = offset_by(mem, v * width);
    if (std::popcount(stored) == n)
      store_plain(dtype, here, picked);
    else
      store_masked(dtype, here, picked, make_constant_mask(stored, n, kWovenBytes));
  }
}

// The same of bytes, in pieces of 16 bytes: rows are unpacked with each other until a register has
// whole columns, of as many bytes as there are rows, in each piece.
void Selector::store_byte_columns(DType dtype, std::vector<VReg> rows, uint64_t lanes,
                                  const std::function<Mem(int64_t)>& place) {
  static constexpr Opcode kLow[] = {Opcode::vpunpcklbw, Opcode::vpunpcklwd, Opcode::vpunpckldq,
                                    Opcode::vpunpcklqdq};
  static constexpr Opcode kHigh[] = {Opcode::vpunpckhbw, Opcode::vpunpckhwd, Opcode::vpunpckhdq,
                                     Opcode::vpunpckhqdq};
  const int64_t width = width_of(dtype);
  const auto count = std::ssize(rows);
  const size_t height = std::bit_ceil(rows.size());
  rows.resize(height, rows.back());
  for (size_t stage = 0; size_t{1} << stage < height; ++stage) {
    // Groups of rows that are made of the same ones: their halves meet.
    std::vector<VReg> next(height);
    const size_t parts = size_t{1} << stage;  // registers of a group
    for (size_t group = 0; group < height; group += 2 * parts)
      for (size_t i = 0; i < parts; ++i) {
        const VReg a = rows[group + i], b = rows[group + parts + i];
        next[group + 2 * i] = rrm(kLow[stage], width, a, b);
        next[group + 2 * i + 1] = rrm(kHigh[stage], width, a, b);
      }
    rows = std::move(next);
  }
  const auto columns = kPieceBytes / static_cast<int64_t>(height);  // in a piece
  for (int64_t l = 0; l < dtype.lanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    const int64_t in_piece = l % kPieceBytes;
    VReg column = rows[static_cast<size_t>(in_piece / columns)];
    if (const int64_t piece = l / kPieceBytes; piece > 0) column = piece_of(column, width, piece);
    if (const int64_t at = in_piece % columns; at > 0)
      column = rri(Opcode::vpsrldq, 16, column, at * static_cast<int64_t>(height));
    store_bytes(place(l), column, count);
  }
}

// The first bytes of a register, at most 16.
void Selector::store_bytes(const Mem& mem, VReg value, int64_t count) {
  const DType bytes = kUInt8.with_lanes(kPieceBytes);
  if (count == kPieceBytes) return store_plain(bytes, mem, value);
  if (avx512_ && !std::has_single_bit(static_cast<uint64_t>(count)))
    return store_masked(bytes, mem, value,
                        make_constant_mask((uint64_t{1} << count) - 1, kPieceBytes, 1));
  for (int64_t at = 0, size = kPieceBytes / 2; at < count; size /= 2) {
    if (count - at < size) continue;
    const Mem here = offset_by(mem, at);
    if (at == 0 && size >= 4)
      emit(Opcode::VStore, size, kNoReg, value).mem = here;
    else
      emit(Opcode::IStore, size, kNoReg, lane_bits(value, 16, size, at / size)).mem = here;
    at += size;
  }
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
