// Squares of elements turned in registers.
#pragma once

#include <functional>
#include <vector>

#include "render/x86/select/lane_places.h"

namespace tiny::x86 {

inline constexpr int64_t kPieceBytes = 16;  // within which bytes are unpacked

// The columns of a square of elements of 4 bytes, from its rows.
std::vector<VReg> transposed(Emitter& e, int64_t width, const std::vector<VReg>& rows);
// Stores the columns of rows of bytes where `place` of their lane says, those of `lanes`.
void store_byte_columns(Emitter& e, DType dtype, std::vector<VReg> rows, uint64_t lanes,
                        const std::function<Mem(int64_t)>& place);
// Stores few rows of elements of 4 bytes element after element of one row after the other, those of
// `lanes`: each vector that is stored picks its elements out of all rows.
void store_woven(Emitter& e, const LanePlaces& at, const std::vector<VReg>& rows, uint64_t lanes);

}  // namespace tiny::x86
