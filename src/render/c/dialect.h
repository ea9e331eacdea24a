// What the dialects of C differ in, as data.  Function and Helpers (function.h, helpers.h) write
// every dialect by such a table; the table of C is in c.cpp, those of OpenCL C, HIP and Metal are
// in opencl.cpp, hip.cpp and metal.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "ir/linear.h"

namespace tiny::c {

// What an address points into; C has one memory, and one type of addresses.
enum class Space : uint8_t { Global, Shared, Thread };
inline constexpr size_t kSpaces = 3;

struct Pointer {
  const char* word;      // that a pointer's type begins with
  const char* type;      // of an address
  const char* constant;  // the same, for one whose value stays: what stands before its name
  const char* suffix;    // of the names of what loads and stores there
};

struct Dialect {
  const char* beginning;    // of a translation unit: types, macros, functions by the names of libm
  const char* functions;    // of one of groups.h: behind its types
  const char* long_suffix;  // of a literal of 64 bits
  bool has_infinity;        // INFINITY; else it is made of its bits, as a NaN is
  // GNU vectors and memcpy: the text for vectors stands beside the one that goes lane by lane, with
  // the processor's instructions.  Else there are structs of lanes, and unions for bits.
  bool is_gnu;
  std::array<Pointer, kSpaces> pointers;
  const char* divide_f32;    // a function of `beginning` for what "/" may not round; null: it does
  const char* check;         // the definition of check_b8 (status, b8, number, position)
  const char* status;        // the type of `status`,
  const char* status_value;  // and what a kernel has
  const char* poll;          // a statement that may leave the kernel; null: nobody asks
  const char* prefetch;      // the name of a function; null: none
  const char* barrier;       // a statement; null: there are no groups
  // "void NAME(..) {" with what the body needs, in lines.  `fold_bytes`: of the memory through
  // which a group's threads fold, as this body holds the values.
  std::string (*opening)(const LinearProgram& program, bool is_part, int64_t fold_bytes);
  // Param, Scratch, Shared, Variable, LaunchArg.
  std::string (*leaf)(const LinearProgram& program, const LinearOp& op);

  const Pointer& pointer(Space space) const { return pointers[static_cast<size_t>(space)]; }
};

extern const Dialect kC;       // C11
extern const Dialect kOpenCl;  // OpenCL C 1.2
extern const Dialect kHip;     // HIP
extern const Dialect kMetal;   // Metal's shading language

// " + 16", " - 16" or nothing.
std::string displaced(int64_t bytes, const Dialect& dialect);
bool is_identifier(const std::string& name);

}  // namespace tiny::c
