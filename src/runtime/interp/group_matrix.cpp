// Products of matrices of a warp's threads, element by element in the order of their steps.
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "base/half.h"
#include "runtime/interp/group.h"

namespace tiny::interp {

namespace {

constexpr size_t kSideMax = 16;                        // of m, n and k
using Sides = std::array<float, kSideMax * kSideMax>;  // rows or columns, each with its steps

uint32_t word_at(const std::byte* from, int64_t word) {
  uint32_t bits = 0;
  std::memcpy(&bits, from + word * int64_t{sizeof bits}, sizeof bits);
  return bits;
}

float value_of(MatrixElement element, uint16_t half) {
  return element == MatrixElement::Half ? float_from_half(half) : float_from_bfloat(half);
}

float element_of(const MatrixRow& row, const std::byte* words, int64_t element) {
  const uint32_t word = word_at(words, element / row.steps);
  if (row.element == MatrixElement::Tf32) return std::bit_cast<float>(word);
  return value_of(row.element, static_cast<uint16_t>(word >> (element % row.steps * 16)));
}

// Rows or columns from `first` on of an operand in shared memory, each with its steps.
std::vector<float> sides_of(const MatrixRow& row, const std::byte* shared, int64_t begin,
                            int64_t first, int64_t count, bool is_turned) {
  std::vector<float> values;
  for (int64_t side = first; side < first + count; ++side)
    for (int64_t k = 0; k < row.k; ++k) {
      uint16_t half = 0;
      std::memcpy(&half, shared + place_in_lines(begin, side, k, is_turned), sizeof half);
      values.push_back(value_of(row.element, half));
    }
  return values;
}

// Each thread's elements of the sum, of the rows of A and the columns of B that the warp has.
void add_products(const MatrixRow& row, const Step& step, WarpFrames frames,
                  std::span<const float> a, std::span<const float> b) {
  for (int64_t lane = 0; lane < kWarpThreads; ++lane) {
    std::byte* frame = frames[static_cast<size_t>(lane)];
    for (int64_t e = 0; e < row.c.elements; ++e) {
      const MatrixPlace at = place_in(row.c, lane, e);
      auto sum = std::bit_cast<float>(word_at(frame + step.c, e));
      for (int64_t k = 0; k < row.k; ++k)
        sum = std::fma(a[static_cast<size_t>(at.m * row.k + k)],
                       b[static_cast<size_t>(at.n * row.k + k)], sum);
      std::memcpy(frame + step.result + e * int64_t{sizeof sum}, &sum, sizeof sum);
    }
  }
}

}  // namespace

void multiply_matrices(const MatrixRow& row, const Step& step, WarpFrames frames) {
  Sides a{}, b{};
  for (int64_t lane = 0; lane < kWarpThreads; ++lane) {
    const std::byte* frame = frames[static_cast<size_t>(lane)];
    for (int64_t e = 0; e < row.a.elements; ++e) {
      const MatrixPlace at = place_in(row.a, lane, e);
      a[static_cast<size_t>(at.m * row.k + at.k)] = element_of(row, frame + step.a, e);
    }
    for (int64_t e = 0; e < row.b.elements; ++e) {
      const MatrixPlace at = place_in(row.b, lane, e);
      b[static_cast<size_t>(at.n * row.k + at.k)] = element_of(row, frame + step.b, e);
    }
  }
  add_products(row, step, frames, a, b);
}

void multiply_shared(const MatrixRow& row, const Step& step, WarpFrames frames,
                     const std::byte* shared, int64_t warp) {
  // All threads have the same addresses.
  const auto begin_of = [&](uint32_t source) {
    uint64_t address = 0;
    std::memcpy(&address, frames[0] + source, sizeof address);
    return static_cast<int64_t>(address - reinterpret_cast<uint64_t>(shared));
  };
  add_products(
      row, step, frames,
      sides_of(row, shared, begin_of(step.a), warp * row.m, row.m, (step.imm & kTurnedA) != 0),
      sides_of(row, shared, begin_of(step.b), 0, row.n, (step.imm & kTurnedB) != 0));
}

void load_matrices(const Step& step, WarpFrames frames) {
  constexpr size_t kRows = 8;
  using Row = std::array<uint16_t, kRows>;
  std::array<std::array<Row, kRows>, 4> matrices{};
  for (size_t of = 0; of < static_cast<size_t>(step.lanes); ++of)
    for (size_t r = 0; r < kRows; ++r) {
      uint64_t address = 0;
      std::memcpy(&address, frames[of * kRows + r] + step.a, sizeof address);
      std::memcpy(&matrices[of][r],
                  reinterpret_cast<const std::byte*>(address + static_cast<uint64_t>(step.imm)),
                  sizeof(Row));
    }
  for (size_t lane = 0; lane < frames.size(); ++lane) {
    const size_t g = lane / kLaneColumns, t = lane % kLaneColumns;
    for (size_t of = 0; of < static_cast<size_t>(step.lanes); ++of) {
      const auto& rows = matrices[of];
      const std::array<uint16_t, 2> word = step.aux != 0
                                               ? std::array{rows[2 * t][g], rows[2 * t + 1][g]}
                                               : std::array{rows[g][2 * t], rows[g][2 * t + 1]};
      std::memcpy(frames[lane] + step.result + of * sizeof word, word.data(), sizeof word);
    }
  }
}

}  // namespace tiny::interp
