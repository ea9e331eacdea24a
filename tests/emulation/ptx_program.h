// PTX text, parsed once into records that a machine executes (ptx_machine.h).
//
// Everything is typed as declared: an operand whose register does not fit the instruction's type is
// refused as the assembler refuses it, and so is every directive, instruction and modifier that is
// not known, by name and line.  What has no exact result by PTX's own rules (approximations) is not
// known.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/emulation/ptx_text.h"

namespace tiny::emulation {

enum class Kind : uint8_t { Bits, Unsigned, Signed, Float, Bfloat, Predicate };

struct Type {
  Kind kind = Kind::Bits;
  uint8_t bits = 32;  // of all lanes
  uint8_t lanes = 1;  // 2: f16x2, bf16x2
  bool operator==(const Type&) const = default;
  uint32_t bytes() const { return bits / 8u; }
  bool is_float() const { return kind == Kind::Float || kind == Kind::Bfloat; }
  bool is_integer() const { return kind == Kind::Unsigned || kind == Kind::Signed; }
};

inline constexpr Type kPredicate{Kind::Predicate, 1};
inline constexpr Type kB16{Kind::Bits, 16};
inline constexpr Type kB32{Kind::Bits, 32};
inline constexpr Type kB64{Kind::Bits, 64};
inline constexpr Type kU32{Kind::Unsigned, 32};
inline constexpr Type kU64{Kind::Unsigned, 64};

// The type of a word without its dot; false if it names none.
bool find_type(std::string_view word, Type& type);
std::string to_string(Type type);

enum class Space : uint8_t { Generic, Global, Shared, Local, Param };

struct Thread;
struct Instruction;
// Reads and writes the thread's slots.
using Handler = void (*)(const Instruction& i, uint64_t* slots, Thread& thread);
// The same of threads of a warp that have all come: 32, null for those that are not meant.
using WarpHandler = void (*)(const Instruction& i, Thread* const* lanes);

// What an instruction does to the flow of its thread.
enum class Step : uint8_t { Plain, Branch, End, Trap, Barrier, WarpSync };

struct Instruction {
  Handler run = nullptr;           // of a Plain one
  WarpHandler run_warp = nullptr;  // of a WarpSync, whose members `members` tells
  Step step = Step::Plain;
  bool guard_is_negated = false;
  uint8_t mode = 0;   // what the handler makes of it
  uint8_t bytes = 0;  // of a memory access, a lane
  Space space = Space::Generic;
  uint32_t guard = 0;  // a slot: kTrueSlot without one
  // Slots.  `d` and `d2` are written.
  uint32_t d = 1, d2 = 1, a = 0, b = 0, c = 0;
  uint32_t first = 0;    // of vectors, in Entry::lists
  uint32_t count = 0;    //
  uint32_t members = 0;  // a slot
  uint32_t target = 0;   // of a branch
  uint32_t line = 0;
  int64_t imm = 0;
  uint64_t mask = ~uint64_t{0};  // of the bits that the written register has
};

// Slots that every thread has.
enum : uint32_t { kTrueSlot, kSinkSlot, kSpecialSlots };
enum class Special : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  Laneid,
  Warpid,
  Nwarpid,
  LanemaskEq,
  LanemaskLt,
  LanemaskLe,
  LanemaskGt,
  LanemaskGe,
  Count
};  // NOLINT
constexpr uint32_t slot_of(Special s) {
  return kSpecialSlots + static_cast<uint32_t>(s);
}

struct Parameter {
  std::string name;
  Type type;
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

struct Entry {
  std::string name;
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  std::array<uint32_t, 3> threads_max{};  // .maxntid or .reqntid; 0: not said
  bool threads_are_exact = false;         // .reqntid
  uint32_t shared_bytes = 0;              // static
  uint32_t shared_alignment = 1;          // of what is dynamic, which lies behind it
  uint32_t local_bytes = 0;
  bool has_partial_barriers = false;  // barriers of a part of the group
  uint32_t slots = 0;
  std::vector<std::pair<uint32_t, uint64_t>> constants;  // slot, value
  std::vector<Instruction> code;
  std::vector<uint32_t> lists;
};

struct Module {
  uint32_t version = 0;  // 10 * major + minor
  std::string target;    // "sm_90a"
  std::map<std::string, Entry, std::less<>> entries;
};

// Refused if anything of it is not known.
Module parse_module(std::string_view text);

}  // namespace tiny::emulation
