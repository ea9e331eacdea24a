// How the C renderer spells types and constants.
//
// A scalar is i8 .. u64, f32, f64, b8 (0 or 1), or the bits of a half: h16 (binary16), bf16.  A
// vector is its name and lanes, f32x16: a GNU vector, or a struct of lanes where C has none.  A
// vector of bools is a mask, signed integers that are 0 or -1: i32x16 where lanes of 32 bits are
// compared, so that it chooses among such lanes without being widened; i8x16 in memory.  The lanes
// of a vector that is not a power of two are padded, its name is not.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "ir/dtype.h"
#include "ir/op.h"
#include "render/c/dialect.h"

namespace tiny::c {

// "f32", "f32x16", "m8x16", "address".
std::string type_name(DType dtype);

// "add", "trunc_div".
std::string word_of(Op op);
// C's operator for it; null if it has none.
const char* symbol_of(Op op);

// The lanes that the vector type has: the next power of two.
int64_t padded_lanes(DType dtype);

// The integers without a sign that are as wide.
DType unsigned_of(DType dtype);
// The mask that a comparison of such lanes gives, and that chooses among them.
DType mask_of(DType dtype);

// A constant of one lane as an expression with exactly these bits: "1.5f", "(-7)", "0x3c00".
std::string literal(const Dialect& dialect, DType dtype, uint64_t bits);

// `pattern` with $0 .. $9 replaced by the values.
std::string fill(std::string_view pattern, std::initializer_list<std::string_view> values);

}  // namespace tiny::c
