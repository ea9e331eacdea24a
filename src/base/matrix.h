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
  std::array<FragmentBit, 3> element{};
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

// clang-format off
inline constexpr MatrixRow kMatrixRows[] = {
    {"m16n8k16_f16", 16, 8, 16, MatrixElement::Half, 2, kPairsA, kPairsB, kResult,
     "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 80, false},
    {"m16n8k16_bf16", 16, 8, 16, MatrixElement::Bfloat, 2, kPairsA, kPairsB, kResult,
     "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 80, false},
    {"m16n8k8_tf32", 16, 8, 8, MatrixElement::Tf32, 1, kSinglesA, kSinglesB, kResult,
     "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 80, true},
};
// clang-format on
inline constexpr int64_t kMatrixRowCount = std::size(kMatrixRows);

using MatrixSet = uint8_t;  // bit i: row i
constexpr MatrixSet matrix_bit(int64_t row) {
  return static_cast<MatrixSet>(1u << row);
}
// The rows that a device of this compute capability has; those that round float32 where allowed.
constexpr MatrixSet matrices_of(int32_t compute, bool may_round_float) {
  MatrixSet set = 0;
  for (int64_t i = 0; i < kMatrixRowCount; ++i)
    if (kMatrixRows[i].compute <= compute && (may_round_float || !kMatrixRows[i].rounds_float))
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

}  // namespace tiny
