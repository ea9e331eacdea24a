// Squares of elements turned in registers.
#pragma once

#include <functional>
#include <vector>

#include "render/x86/select/lane_places.h"

namespace tiny::x86 {

inline constexpr int64_t kPieceBytes = 16;  // within which bytes are unpacked

// Stores the columns of rows, of elements of 4 bytes or of bytes, where `place` of their lane says,
// those of `lanes`.  Rows of bytes are at most as many as a piece has.
void store_columns(Emitter& e, DType dtype, std::vector<VReg> rows, uint64_t lanes,
                   const std::function<Mem(int64_t)>& place);
// Stores few rows of elements of 4 bytes element after element of one row after the other, those of
// `lanes`: each vector that is stored picks its elements out of all rows.
void store_woven(Emitter& e, const LanePlaces& at, const std::vector<VReg>& rows, uint64_t lanes);

}  // namespace tiny::x86
