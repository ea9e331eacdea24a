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

}  // namespace

// In pieces of 16 bytes: rows are unpacked with each other until a register has
// whole columns, of as many bytes as there are rows, in each piece.
void store_byte_columns(Emitter& e, DType dtype, std::vector<VReg> rows, uint64_t lanes,
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
        next[group + 2 * i] = e.rrm(kLow[stage], width, a, b);
        next[group + 2 * i + 1] = e.rrm(kHigh[stage], width, a, b);
      }
    rows = std::move(next);
  }
  const auto columns = kPieceBytes / static_cast<int64_t>(height);  // in a piece
  for (int64_t l = 0; l < dtype.lanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    const int64_t in_piece = l % kPieceBytes;
    VReg column = rows[static_cast<size_t>(in_piece / columns)];
    if (const int64_t piece = l / kPieceBytes; piece > 0)
      column = piece_of(e, column, width, piece);
    if (const int64_t at = in_piece % columns; at > 0)
      column = e.rri(Opcode::vpsrldq, 16, column, at * static_cast<int64_t>(height));
    store_bytes(e, place(l), column, count);
  }
}

std::vector<VReg> transposed(Emitter& e, int64_t width, const std::vector<VReg>& rows) {
  const auto binary_of = [&](Opcode opcode, VReg a, VReg b) { return e.rrm(opcode, width, a, b); };
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
    return e.rrmi(e.avx512() ? Opcode::vshuff32x4 : Opcode::vperm2f128, width, a, b, which);
  };
  for (size_t c = 0; c < 4; ++c) {
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
