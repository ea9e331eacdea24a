// Products of small matrices that the 32 threads of a warp form together, as data: D = A B + C, of
// which each thread has a few elements of A, B, C and D in its registers.
//
// Which elements a thread has is a fragment's map: each bit of its lane (its number in the warp),
// and each bit of an element's number in the thread, adds a weight to one of the coordinates m, n,
// k. NVIDIA, PTX ISA, "Warp-level matrix multiply-accumulate instructions", draws the maps.
//
// All rows have this in common, and codegen relies on it: with lane = kLaneColumns * g + t, a
// thread has of D the rows g and g + kLaneRows, and in each two columns from 2 t on.  Its operands
// are words of 32 bits, each of `steps` neighbouring steps k: word w of A has row g + kLaneRows *
// (w % 2), word w of B column g, and their steps begin at steps * (t + kLaneColumns * h) with h = w
// / 2 of A, w of B.
//
// Rows of several warps have their operands in memory that the group shares, in
// lines of 128 bytes whose pieces of 16 are swizzled (NVIDIA, PTX ISA, "Asynchronous Warpgroup
// Level Matrix Shared Memory Layout"): a line has kLineElements steps of a row or column, or where
// the operand is turned so many rows or columns of a step.  Warp w of such four has the rows from m
// * w on; their sums are there once the threads have waited for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tiny {

inline constexpr int64_t kWarpThreads = 32;
inline constexpr int64_t kLaneColumns = 4;  // t
inline constexpr int64_t kLaneRows = 8;     // g
inline constexpr int64_t kLaneBits = 5;

// What a word of an operand holds.
enum class MatrixElement : uint8_t { Half, Bfloat, Tf32 };

struct FragmentBit {
  char axis = 0;  // 'm', 'n', 'k'; 0: the bit does not exist
  uint8_t weight = 0;
};
struct Fragment {
  int64_t elements = 0;  // of a thread
  std::array<FragmentBit, kLaneBits> lane{};
  std::array<FragmentBit, 7> element{};
};

struct MatrixRow {
  const char* name;  // in options
  int64_t m, n, k;
  MatrixElement element;
  int64_t steps;  // of a word
  Fragment a, b, c;
  const char* ptx;    // the instruction
  int32_t compute;    // of the devices that have it: major * 10 + minor, at least
  bool rounds_float;  // its operands are float32, of which it keeps 10 bits of the mantissa
  int32_t compute_most = INT32_MAX;  // of the devices that have it
  int64_t warps = 1;                 // that form it together, each m rows of it

  constexpr bool shares_operands() const { return warps > 1; }
};

inline constexpr std::array<FragmentBit, kLaneBits> kResultLanes{
    {{'n', 2}, {'n', 4}, {'m', 1}, {'m', 2}, {'m', 4}}};
inline constexpr std::array<FragmentBit, kLaneBits> kPairsOfRows{
    {{'k', 2}, {'k', 4}, {'m', 1}, {'m', 2}, {'m', 4}}};
inline constexpr std::array<FragmentBit, kLaneBits> kPairsOfColumns{
    {{'k', 2}, {'k', 4}, {'n', 1}, {'n', 2}, {'n', 4}}};
inline constexpr Fragment kResult{4, kResultLanes, {{{'n', 1}, {'m', 8}}}};
inline constexpr Fragment kPairsA{8, kPairsOfRows, {{{'k', 1}, {'m', 8}, {'k', 8}}}};
inline constexpr Fragment kPairsB{4, kPairsOfColumns, {{{'k', 1}, {'k', 8}}}};
inline constexpr Fragment kSinglesA{
    4, {{{'k', 1}, {'k', 2}, {'m', 1}, {'m', 2}, {'m', 4}}}, {{{'m', 8}, {'k', 4}}}};
inline constexpr Fragment kSinglesB{
    2, {{{'k', 1}, {'k', 2}, {'n', 1}, {'n', 2}, {'n', 4}}}, {{{'k', 4}}}};
constexpr Fragment wide_result(int64_t columns) {
  return {columns / 2,
          kResultLanes,
          {{{'n', 1}, {'m', 8}, {'n', 8}, {'n', 16}, {'n', 32}, {'n', 64}, {'n', 128}}}};
}
constexpr MatrixRow wide_row(const char* name, int64_t columns, MatrixElement element,
                             const char* ptx) {
  constexpr int32_t kHopper = 90;  // and no later device
  return {name, 16,      columns, 16,      element, 2, {}, {}, wide_result(columns),
          ptx,  kHopper, false,   kHopper, 4};
}

// clang-format off
inline constexpr MatrixRow kMatrixRows[] = {
    {"m16n8k16_f16", 16, 8, 16, MatrixElement::Half, 2, kPairsA, kPairsB, kResult,
     "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 80, false},
    {"m16n8k16_bf16", 16, 8, 16, MatrixElement::Bfloat, 2, kPairsA, kPairsB, kResult,
     "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 80, false},
    {"m16n8k8_tf32", 16, 8, 8, MatrixElement::Tf32, 1, kSinglesA, kSinglesB, kResult,
     "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 80, true},
    wide_row("m64n64k16_f16", 64, MatrixElement::Half,
             "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"),
    wide_row("m64n128k16_f16", 128, MatrixElement::Half,
             "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"),
    wide_row("m64n256k16_f16", 256, MatrixElement::Half,
             "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"),
    wide_row("m64n64k16_bf16", 64, MatrixElement::Bfloat,
             "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16"),
    wide_row("m64n128k16_bf16", 128, MatrixElement::Bfloat,
             "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"),
    wide_row("m64n256k16_bf16", 256, MatrixElement::Bfloat,
             "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"),
};
// clang-format on
inline constexpr int64_t kMatrixRowCount = std::size(kMatrixRows);

using MatrixSet = uint16_t;  // bit i: row i
constexpr MatrixSet matrix_bit(int64_t row) {
  return static_cast<MatrixSet>(1u << row);
}
// Whether a device of this compute capability has the row.
constexpr bool has_compute(const MatrixRow& row, int32_t compute) {
  return row.compute <= compute && compute <= row.compute_most;
}
// The rows that a device of this compute capability has; those that round float32 where allowed.
constexpr MatrixSet matrices_of(int32_t compute, bool may_round_float) {
  MatrixSet set = 0;
  for (int64_t i = 0; i < kMatrixRowCount; ++i)
    if (has_compute(kMatrixRows[i], compute) && (may_round_float || !kMatrixRows[i].rounds_float))
      set |= matrix_bit(i);
  return set;
}
constexpr bool has_matrix_row(int64_t row) {
  return row >= 0 && row < kMatrixRowCount;
}
// The number of the row with this name; -1: none.
constexpr int64_t find_matrix_row(std::string_view name) {
  for (int64_t i = 0; i < kMatrixRowCount; ++i)
    if (name == kMatrixRows[i].name) return i;
  return -1;
}
// Words of 32 bits that a thread has of an operand.
constexpr int64_t words_of(const MatrixRow& row, const Fragment& operand) {
  return operand.elements / row.steps;
}

struct MatrixPlace {
  int64_t m = 0, n = 0, k = 0;
};
// Where a thread's element lies.
constexpr MatrixPlace place_in(const Fragment& fragment, int64_t lane, int64_t element) {
  MatrixPlace place;
  const auto add = [&](const FragmentBit& bit) {
    (bit.axis == 'm' ? place.m : bit.axis == 'n' ? place.n : place.k) += bit.weight;
  };
  for (size_t i = 0; i < fragment.lane.size(); ++i)
    if (lane >> i & 1) add(fragment.lane[i]);
  for (size_t i = 0; i < fragment.element.size(); ++i)
    if (element >> i & 1) add(fragment.element[i]);
  return place;
}

// How an operand lies that a group shares.
inline constexpr int64_t kMatrixLine = 128;
inline constexpr int64_t kLineElements = 64;                          // of 16 bits
inline constexpr int64_t kLinesOfBlock = 8;                           // whose pieces change places
inline constexpr int64_t kMatrixBlock = kMatrixLine * kLinesOfBlock;  // begins at a multiple of it
// What a group shares has so many rooms where a step leaves its products under way in the next one:
// one they read, one that is read next, and one that is filled.
inline constexpr int64_t kRoomsOfProducts = 3;
// Of Mma's imm: which operand is turned.
inline constexpr int64_t kTurnedA = 1;
inline constexpr int64_t kTurnedB = 2;

// Where the element of a row or column and a step lies, of an operand that begins at `begin` were
// its pieces not swizzled.
constexpr int64_t place_in_lines(int64_t begin, int64_t side, int64_t step, bool is_turned) {
  const int64_t line = is_turned ? step : side, along = is_turned ? side : step;
  const int64_t flat = begin + line * kMatrixLine + along * (kMatrixLine / kLineElements);
  return flat ^ (flat / kMatrixLine % kLinesOfBlock) << 4;  // pieces of 16 bytes
}

}  // namespace tiny
