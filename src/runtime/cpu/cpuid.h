// What processor this is.  The only place that asks; everything else works from these facts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tiny {

// Instruction sets that generated code may be made for.  Avx2 is with FMA, F16C and BMI2; Avx512 is
// F, DQ, BW, VL and CD besides.  Each needs the operating system to save its registers.
enum class CpuIsa : uint8_t { None, Avx2, Avx512 };

struct CpuFacts {
  std::string brand;
  std::string vendor;  // "GenuineIntel"
  int32_t family = 0;
  int32_t model = 0;
  CpuIsa isa = CpuIsa::None;
  const char* missing = "AVX2";  // what the processor lacks, if `isa` is None
  // Dot products of bytes, in the encoding of `isa`, and with operands of any sign; of bfloat16.
  bool has_byte_dots = false;         // AVX512_VNNI
  bool has_bfloat_dots = false;       // AVX512_BF16
  bool has_byte_tiles = false;        // AMX_INT8, which the operating system lets this process use
  bool has_byte_dots_avx2 = false;    // AVX-VNNI
  bool has_signed_dots_avx2 = false;  // AVX-VNNI-INT8
  int64_t l1_bytes = 32 << 10;        // of one core's data cache
  int64_t l2_bytes = 256 << 10;
  int64_t l3_bytes = 0;  // shared; 0: none
  int cores = 1;         // that this process may use
};

// Both are detected anew at each call.
CpuIsa detect_isa();
CpuFacts cpu_facts();

// The lesser of "auto", "avx512" or "avx2" and what the processor has: a wish never adds anything.
// "none", which only tests wish for, is a processor without AVX2.  Error{InvalidArgument} lists the
// known names.
CpuIsa limit_isa(CpuIsa detected, std::string_view wish);

}  // namespace tiny
