#include "render/x86/select/transpose.h"

#include <bit>
#include <utility>

#include "ir/picked_lanes.h"
#include "render/x86/select/lane_places.h"
#include "render/x86/select/lanes.h"
#include "render/x86/select/masks.h"
#include "render/x86/select/stores.h"

namespace tiny::x86 {

namespace {

constexpr int64_t kWordBytes = 4;

// vshuff32x4, of two lanes each of both sources: the lower halves, the upper halves, the even
// lanes, the odd lanes.
constexpr int64_t kLower = 0x44, kUpper = 0xEE, kEven = 0x88, kOdd = 0xDD;

// The first bytes of a register, at most 16.
void store_bytes(Emitter& e, const Mem& mem, VReg value, int64_t count) {
  const DType bytes = kUInt8.with_lanes(kPieceBytes);
  if (count == kPieceBytes) return store_plain(e, bytes, mem, value);
  if (e.avx512() && !std::has_single_bit(static_cast<uint64_t>(count)))
    return store_masked(e, bytes, mem, value,
                        make_constant_mask(e, (uint64_t{1} << count) - 1, kPieceBytes, 1));
  for (int64_t at = 0, size = kPieceBytes / 2; at < count; size /= 2) {
    if (count - at < size) continue;
    const Mem here = offset_by(e, mem, at);
    store_lane(e, here, value, size, at / size);
    at += size;
  }
}

// Of rows, at most as many as a piece has elements: unpacked with each other until a register has
// whole columns in each piece.
std::vector<VReg> unpacked(Emitter& e, int64_t width, int64_t size, std::vector<VReg> rows) {
  static constexpr Opcode kLow[] = {Opcode::vpunpcklbw, Opcode::vpunpcklwd, Opcode::vpunpckldq,
                                    Opcode::vpunpcklqdq};
  static constexpr Opcode kHigh[] = {Opcode::vpunpckhbw, Opcode::vpunpckhwd, Opcode::vpunpckhdq,
                                     Opcode::vpunpckhqdq};
  const auto first = static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(size)));
  for (size_t parts = 1, stage = first; parts < rows.size(); parts *= 2, ++stage) {
    // Groups of rows that are made of the same ones, of so many registers: their halves meet.
    std::vector<VReg> next(rows.size());
    for (size_t group = 0; group < rows.size(); group += 2 * parts)
      for (size_t i = 0; i < parts; ++i) {
        const VReg a = rows[group + i], b = rows[group + parts + i];
        next[group + 2 * i] = e.rrm(kLow[stage], width, a, b);
        next[group + 2 * i + 1] = e.rrm(kHigh[stage], width, a, b);
      }
    rows = std::move(next);
  }
  return rows;
}

// The columns of rows of words, as long as eight or sixteen rows, in the lower part of registers.
std::vector<VReg> columns_of_words(Emitter& e, int64_t width, const std::vector<VReg>& rows) {
  std::vector<VReg> four;  // in every group of four rows and piece of 16 bytes: four columns
  for (auto group = rows.begin(); group != rows.end(); group += 4)
    for (VReg column : unpacked(e, width, kWordBytes, {group, group + 4})) four.push_back(column);
  const auto pieces = [&](VReg a, VReg b, int64_t which) {
    return e.rrmi(e.avx512() ? Opcode::vshuff32x4 : Opcode::vperm2f128, width, a, b, which);
  };
  const auto lanes = static_cast<size_t>(width / kWordBytes);
  std::vector<VReg> columns(lanes);
  // Two columns of eight rows, of whose pieces one is the other's next.
  const auto half_columns = [&](VReg a, VReg b, int64_t piece) {
    std::vector<std::byte> numbers(static_cast<size_t>(width), std::byte{0});
    for (int64_t i = 0; i < 8; ++i)
      numbers[static_cast<size_t>(8 * i)] =
          static_cast<std::byte>(2 * piece + i / 4 * 2 + i % 2 + (i / 2 % 2 ? 8 : 0));
    const VReg both = e.move(RegClass::Vec, width, a);
    const VReg index = e.pool_reg(e.pool_bytes(std::move(numbers)), width);
    e.emit(Opcode::VPermute2, width, both, kNoReg, index, b).width2 = 8;
    return both;
  };
  for (size_t c = 0; c < 4; ++c) {
    if (rows.size() < lanes) {
      for (const size_t piece : {size_t{0}, size_t{2}}) {
        columns[4 * piece + c] = half_columns(four[c], four[4 + c], static_cast<int64_t>(piece));
        columns[4 * piece + 4 + c] = upper_half(e, kFloat32.with_lanes(16), columns[4 * piece + c]);
      }
      continue;
    }
    if (rows.size() == 8) {
      columns[c] = pieces(four[c], four[4 + c], e.avx512() ? 0 : 0x20);
      columns[4 + c] = pieces(four[c], four[4 + c], e.avx512() ? 3 : 0x31);
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

// The columns of at most as many rows as a piece has elements.
void store_in_pieces(Emitter& e, DType dtype, const std::vector<VReg>& rows, int64_t count,
                     uint64_t lanes, const std::function<Mem(int64_t)>& place) {
  const int64_t width = width_of(dtype), size = dtype.bytes();
  const std::vector<VReg> unpacked_rows = unpacked(e, width, size, rows);
  const int64_t in_all = kPieceBytes / size;  // elements of a piece
  const int64_t columns = in_all / std::ssize(rows);
  for (int64_t l = 0; l < dtype.lanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    const int64_t in_piece = l % in_all;
    VReg column = unpacked_rows[static_cast<size_t>(in_piece / columns)];
    if (const int64_t piece = l / in_all; piece > 0) column = piece_of(e, column, width, piece);
    if (const int64_t at = in_piece % columns; at > 0)
      column = e.rri(Opcode::vpsrldq, 16, column, at * std::ssize(rows) * size);
    store_bytes(e, place(l), column, count * size);
  }
}

}  // namespace

void store_columns(Emitter& e, DType dtype, std::vector<VReg> rows, uint64_t lanes,
                   const std::function<Mem(int64_t)>& place) {
  const auto count = std::ssize(rows);
  rows.resize(std::bit_ceil(rows.size()), rows.back());
  const int64_t height = std::ssize(rows);
  if (height * dtype.bytes() <= kPieceBytes)
    return store_in_pieces(e, dtype, rows, count, lanes, place);
  const std::vector<VReg> columns = columns_of_words(e, width_of(dtype), rows);
  const DType column = dtype.with_lanes(height);
  for (int64_t l = 0; l < dtype.lanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    const VReg value = columns[static_cast<size_t>(l)];
    if (count == height)
      store_plain(e, column, place(l), value);
    else
      store_masked(e, column, place(l), value,
                   make_constant_mask(e, (uint64_t{1} << count) - 1, height, dtype.bytes()));
  }
}

void store_woven(Emitter& e, const LanePlaces& at, const std::vector<VReg>& rows, uint64_t lanes) {
  const DType dtype = at.dtype;
  const int64_t width = width_of(dtype), count = std::ssize(rows), n = dtype.lanes;
  for (int64_t v = 0; v < count; ++v) {
    uint64_t stored = 0;
    for (int64_t i = 0; i < n; ++i) stored |= (lanes >> ((v * n + i) / count) & 1) << i;
    if (stored == 0) continue;
    const VReg picked = e.move(RegClass::Vec, width, rows[0]);
    for (int64_t row = 1; row < count; ++row) {
      std::vector<std::byte> numbers(static_cast<size_t>(width), std::byte{0});
      for (int64_t i = 0; i < n; ++i) {
        const int64_t lane = (v * n + i) / count, of = (v * n + i) % count;
        // Of the row, of the first one, or picked before.
        const int64_t from = of == row ? n + lane : row == 1 && of == 0 ? lane : i;
        numbers[static_cast<size_t>(i * kWovenBytes)] = static_cast<std::byte>(from);
      }
      const VReg index = e.pool_reg(e.pool_bytes(std::move(numbers)), width);
      e.emit(Opcode::VPermute2, width, picked, kNoReg, index, rows[static_cast<size_t>(row)])
          .width2 = static_cast<uint8_t>(kWovenBytes);
    }
    const Mem here = offset_by(e, at.mem, v * width);
    if (std::popcount(stored) == n)
      store_plain(e, dtype, here, picked);
    else
      store_masked(e, dtype, here, picked, make_constant_mask(e, stored, n, kWovenBytes));
  }
}

}  // namespace tiny::x86
