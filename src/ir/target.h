// What a target can do, as data.  Codegen asks the target, never "is it this CPU".
#pragma once

#include <cstdint>
#include <string>

#include "ir/dtype.h"
#include "ir/op.h"

namespace tiny {

enum class Isa : uint8_t { Generic, Avx2, Avx512 };

struct Target {
  std::string name = "generic";  // part of every cache key
  Isa isa = Isa::Generic;
  int32_t vector_bytes = 4;  // of the widest register; 4: no vectors
  int32_t vector_registers = 16;
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 1 << 20;
  int64_t l3_bytes = 8 << 20;
  int32_t cores = 1;
  double launch_seconds = 1e-6;  // the cost model's constants (docs/ARCHITECTURE.md)
  double l2_bandwidth = 250e9;   // bytes a second
  double l3_bandwidth = 116e9;
  double memory_bandwidth = 42e9;
  double fma_rate = 132e9;  // scalar multiply-adds a second, of all lanes of one core
  int32_t tiles_min = 8;    // iterations that a joined kernel must keep
  int32_t inputs_max = 24;
  int32_t ops_max = 512;
  int32_t linear_ops_max = 4000;
  // A kernel that stores more than this in one buffer does so past the caches; 0: none does.
  int64_t bypass_bytes = 0;
  bool scales = false;  // has instructions for Scale

  // Whether `op` on operands of `dtype` exists for vectors; without it codegen keeps one lane.
  bool vectorises(Op op, DType dtype) const;
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
