// Products that a target multiplies and adds in groups: a word of 32 bits holds `dot_steps`
// neighbouring steps of a sum, and one instruction multiplies the words of two operands step by
// step and adds the products to an accumulator (docs/semantics.md, "Dot products").
#pragma once

#include <cstdint>
#include <optional>

#include "ir/uop.h"

namespace tiny {

// The element types of the first and second operand.
enum class DotKind : uint8_t { U8U8, U8S8, S8S8, Bf16 };
inline constexpr int kDotKinds = 4;
inline constexpr int64_t kWordBytes = 4;

using DotSet = uint8_t;  // bit k: kind k
constexpr DotSet dot_bit(DotKind kind) {
  return static_cast<DotSet>(1u << static_cast<unsigned>(kind));
}
inline constexpr DotSet kIntegerDots =
    dot_bit(DotKind::U8U8) | dot_bit(DotKind::U8S8) | dot_bit(DotKind::S8S8);
inline constexpr DotSet kAllDots = kIntegerDots | dot_bit(DotKind::Bf16);

// Steps in a word.
constexpr int64_t dot_steps(DotKind kind) {
  return kind == DotKind::Bf16 ? 2 : 4;
}
const char* to_string(DotKind kind);

// A sum of products: which kind it is, and its narrow operands in the kind's order.
struct DotProduct {
  DotKind kind = DotKind::U8U8;
  UOp a;
  UOp b;
};

// The kind for operands of these types and a sum of that; none if there is none.  `swapped` tells
// that the operands stand in the other order.
std::optional<DotKind> dot_kind(DType a, DType b, DType sum, bool* swapped);

// Of a Reduce that adds products of two values that are widened just before; else none.
std::optional<DotProduct> dot_product(const UOp& reduce);

// Bytes that are bits of others, (bytes >> shift) & mask, so that those of a word are those bits of
// the word: none comes from the byte beside.
struct ByteBits {
  UOp bytes;
  UOp shift;  // an int32; no node: none
  uint8_t mask = 0;
};
// Of decomposed bytes; none of others.
std::optional<ByteBits> byte_bits(const UOp& value);
// What an operand is read from: it, or what it is bits of.
UOp read_by_words(const UOp& operand);

}  // namespace tiny
