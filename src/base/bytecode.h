// The bytecode between render/bytecode and runtime/interp: a header, then fixed-size ops.
//
// Values live in a frame, which follows the program's own scratch in the worker's scratch memory.
// An op names its operands and result by byte offset in the frame.  A value of one lane takes 8
// bytes, aligned to 8; of more lanes, the lanes rounded up to a multiple of kBytecodeLaneGroup,
// aligned to 32: ops may compute whole groups, and what stands in the surplus lanes is undefined.
// An op's result does not overlap its operands; a Fold's slot has room for half its source's lanes,
// a Loop's for two int64.  The format is private to one build of the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace tiny {

enum class BytecodeType : uint8_t {
#define BYTECODE_TYPE(name, bytes, storage) name,
#include "base/bytecode.def"
};

enum class BytecodeOp : uint8_t {
#define BYTECODE_OP(name, sources, result, meaning) name,
#include "base/bytecode.def"
};

enum class BytecodeResult : uint8_t { None, Type, To, Bool, Address };

struct BytecodeOpInfo {
  char name[14];  // in place: a pointer is a relocation, larger than the name
  uint8_t sources;
  BytecodeResult result;
};
inline constexpr BytecodeOpInfo kBytecodeOps[] = {
#define BYTECODE_OP(name, sources, result, meaning) {#name, sources, BytecodeResult::result},
#include "base/bytecode.def"
};
inline constexpr uint8_t kBytecodeTypeBytes[] = {
#define BYTECODE_TYPE(name, bytes, storage) bytes,
#include "base/bytecode.def"
};
inline constexpr size_t kBytecodeOpCount = std::size(kBytecodeOps);
inline constexpr size_t kBytecodeTypeCount = std::size(kBytecodeTypeBytes);

constexpr const BytecodeOpInfo& info(BytecodeOp op) {
  return kBytecodeOps[static_cast<size_t>(op)];
}
constexpr int64_t bytes_of(BytecodeType type) {
  return kBytecodeTypeBytes[static_cast<size_t>(type)];
}

inline constexpr int64_t kBytecodeLaneGroup = 8;
inline constexpr int64_t kBytecodeVectorAlignment = 32;

// The bytes that a value takes in the frame.
constexpr int64_t bytecode_slot_bytes(BytecodeType type, int64_t lanes) {
  if (lanes == 1) return 8;
  const int64_t padded = (lanes + kBytecodeLaneGroup - 1) / kBytecodeLaneGroup * kBytecodeLaneGroup;
  const int64_t bytes = padded * bytes_of(type);
  return (bytes + kBytecodeVectorAlignment - 1) / kBytecodeVectorAlignment *
         kBytecodeVectorAlignment;
}

inline constexpr uint32_t kBytecodeMagic = 0x43425954;  // "TYBC"
inline constexpr uint32_t kBytecodeVersion = 5;

struct BytecodeHeader {
  uint32_t magic = kBytecodeMagic;
  uint32_t version = kBytecodeVersion;
  uint32_t ops = 0;
  uint32_t params = 0;
  uint32_t variables = 0;
  uint32_t frame_bytes = 0;
  int64_t program_scratch_bytes = 0;  // a multiple of 64; the frame begins here
  // Of a grouped program, else 0: threads by axis, each with scratch and a frame of its own, one
  // after the other; behind these the group's memory.
  uint32_t group[3] = {};
  uint32_t shared_bytes = 0;  // a multiple of 64
};
static_assert(sizeof(BytecodeHeader) == 48);

struct BytecodeInstruction {
  BytecodeOp op = BytecodeOp::End;
  BytecodeType type = BytecodeType::Int64;
  BytecodeType to = BytecodeType::Int64;  // of Cast
  uint8_t unused = 0;
  uint16_t lanes = 1;
  uint16_t unused_too = 0;
  uint32_t result = 0;  // frame offsets
  uint32_t source[4] = {};
  int32_t aux = 0;
  int64_t imm = 0;
};
static_assert(sizeof(BytecodeInstruction) == 40);

}  // namespace tiny
