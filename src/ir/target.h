// What a target can do, as data.  Codegen asks the target, never "is it this CPU".  What things
// take on it stands in cost/machine.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/matrix.h"
#include "ir/dot.h"
#include "ir/dtype.h"
#include "ir/op.h"

namespace tiny {

// The instructions that x86's renderer may use; codegen asks for operations instead.
enum class Isa : uint8_t { Generic, Avx2, Avx512 };

// A set of element types, a bit each.
using ScalarTypes = uint32_t;
inline constexpr ScalarTypes kAllScalars = 0xFFFFFFFF;
static_assert(std::size(kScalars) <= 32);
constexpr ScalarTypes scalar_bit(ScalarType s) {
  return ScalarTypes{1} << static_cast<int>(s);
}

// For each op, the element types whose vectors it has no instruction for.
using WithoutVectors = std::array<ScalarTypes, kOpCount>;
// Integer division has one nowhere.
constexpr WithoutVectors without_vector_divisions() {
  WithoutVectors out{};
  for (const Op op : {Op::FloorDiv, Op::FloorMod, Op::TruncDiv, Op::TruncMod})
    out[static_cast<size_t>(op)] = kAllScalars;
  return out;
}

// How values that are in memory at the same time lie there.
struct ArenaLayout {
  int64_t alignment = 64;
  // Where loads wait for stores whose addresses differ by whole pages, large values begin well
  // apart in these; 0: anywhere.
  int64_t page_bytes = 4096;
  // Vectors that are masked out are read from before and behind a value, by a row of a picture or
  // so: a processor takes hundreds of cycles for each where no memory is.  So far there is some.
  int64_t margin = 64 << 10;
};

// The most that a kernel may have.
struct KernelLimits {
  int32_t inputs = 24;  // of a joined one
  int32_t ops = 512;
  int32_t linear_ops = 4000;
};

// Threads that share memory and meet at barriers.
struct GroupLimits {
  int32_t threads = 1;       // 1: there are no groups
  int64_t shared_bytes = 0;  // of that memory
  // Threads side by side that take their steps together; 0: kernels are chosen for threads that
  // walk vectors alone, though groups can run.
  int32_t warp = 0;
  int32_t access_bytes = 0;  // of one thread at the most, at a multiple of their number
  int32_t banks = 0;         // words of 32 bits side by side in shared memory that a step may reach
  int64_t private_bytes = 0;  // of memory of a thread's own at the most
  // At a multiple of which the memory of every argument begins, where the device sees to it: it
  // copies what is bound elsewhere.
  int64_t argument_alignment = 1;
  MatrixSet matrices = 0;  // products that warps form together
};

struct Target {
  std::string name = "generic";  // part of every cache key
  Isa isa = Isa::Generic;
  int32_t vector_bytes = 4;  // of the widest register; 4: no vectors
  int32_t vector_registers = 16;
  DotSet dots = 0;              // products that it multiplies and adds in groups,
  DotSet tiles = 0;             // and those that a matrix unit does (ir/tile_products.h)
  int64_t l1_bytes = 32 << 10;  // caches: of one core's data,
  int64_t l2_bytes = 1 << 20;   //
  int64_t l3_bytes = 8 << 20;   // and of all cores
  int32_t cores = 1;            // threads that share a kernel
  KernelLimits most;
  bool scales = false;  // has instructions for Scale
  GroupLimits group;
  ArenaLayout arena;
  WithoutVectors without_vectors = without_vector_divisions();

  // Whether `op` on operands of `dtype` exists for vectors; without it codegen keeps one lane.
  // Small integers are stored and converted as vectors but computed as int32
  // (rules/decompositions).
  bool vectorises(Op op, DType dtype) const {
    return vector_bytes > 8 &&
           (without_vectors[static_cast<size_t>(op)] & scalar_bit(dtype.scalar)) == 0;
  }
  // Whether whole quotients are those of float64, which has vectors (rules/integer_quotient.h).
  bool divides_in_floats() const {
    return vectorises(Op::Div, kFloat64) && !vectorises(Op::TruncDiv, kInt32) &&
           !computes_in_groups();
  }
  // Whether kernels are chosen for groups of threads.
  bool computes_in_groups() const { return group.warp > 0; }
  bool has_dot(DotKind kind) const { return (dots & dot_bit(kind)) != 0; }
  bool has_tiles(DotKind kind) const { return (tiles & dot_bit(kind)) != 0; }
  bool has_matrices(int64_t row) const { return (group.matrices & matrix_bit(row)) != 0; }
  // Lanes of a full register of `dtype`; at least 1.
  int64_t lanes(DType dtype) const {
    return vector_bytes / dtype.bytes() > 0 ? vector_bytes / dtype.bytes() : 1;
  }
};

// The targets that tests force, and the interpreter's and C's own.
Target generic_target(int64_t vector_bytes = 4);
Target avx2_target();
Target avx512_target();

}  // namespace tiny
