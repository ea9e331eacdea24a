// How the C renderer spells types and constants.
//
// A scalar is i8 .. u64, f32, f64, b8 (0 or 1), or the bits of a half: h16 (binary16), bf16.  A
// vector is its name and lanes, f32x16, a GNU vector; a vector of bools is a mask, m8x16, whose
// lanes are 0 or -1.  The lanes of a vector that is not a power of two are padded, its name is not.
#pragma once

#include <cstdint>
#include <string>

#include "ir/dtype.h"

namespace tiny::c {

// "f32", "f32x16", "m8x16", "address".
std::string type_name(DType dtype);

// The lanes that the vector type has: the next power of two.
int64_t padded_lanes(DType dtype);

// A constant of one lane as an expression with exactly these bits: "1.5f", "(-7)", "0x3c00".
std::string literal(DType dtype, uint64_t bits);

// `pattern` with $0 .. $9 replaced by the values.
std::string fill(std::string_view pattern, std::initializer_list<std::string> values);

}  // namespace tiny::c
