#include "render/c/natives.h"

namespace tiny::c {
namespace {

constexpr const char* kAvx512 = "defined(__AVX512F__) && defined(__AVX512DQ__)";
constexpr const char* kAvx = "defined(__AVX__)";
constexpr const char* kAvx2 = "defined(__AVX2__)";
constexpr const char* kF16c = "defined(__F16C__)";
constexpr const char* kSse = "defined(__SSE2__)";

struct ElementwiseRow {
  Op op;
  ScalarType scalar;
  int lanes;
  const char* guard;
  const char* body;
};
constexpr ElementwiseRow kElementwise[] = {
    {Op::Sqrt, ScalarType::Float32, 16, kAvx512, "(f32x16)_mm512_sqrt_ps((__m512)a)"},
    {Op::Sqrt, ScalarType::Float32, 8, kAvx, "(f32x8)_mm256_sqrt_ps((__m256)a)"},
    {Op::Sqrt, ScalarType::Float32, 4, kSse, "(f32x4)_mm_sqrt_ps((__m128)a)"},
    {Op::Sqrt, ScalarType::Float64, 8, kAvx512, "(f64x8)_mm512_sqrt_pd((__m512d)a)"},
    {Op::Sqrt, ScalarType::Float64, 4, kAvx, "(f64x4)_mm256_sqrt_pd((__m256d)a)"},
    {Op::Sqrt, ScalarType::Float64, 2, kSse, "(f64x2)_mm_sqrt_pd((__m128d)a)"},
    {Op::Scale, ScalarType::Float32, 16, kAvx512, "(f32x16)_mm512_scalef_ps((__m512)a, (__m512)b)"},
    {Op::Scale, ScalarType::Float64, 8, kAvx512, "(f64x8)_mm512_scalef_pd((__m512d)a, (__m512d)b)"},
};

// clang does not always make one instruction of such a loop.
constexpr const char* kClang = "defined(__clang__) && __clang_major__ >= 18";
struct ClangRow {
  Op op;
  const char* body;
};
constexpr ClangRow kOfClang[] = {
    {Op::Fma, "__builtin_elementwise_fma(a, b, c)"}, {Op::Sqrt, "__builtin_elementwise_sqrt(a)"},
    {Op::Floor, "__builtin_elementwise_floor(a)"},   {Op::Ceil, "__builtin_elementwise_ceil(a)"},
    {Op::Trunc, "__builtin_elementwise_trunc(a)"},   {Op::Round, "__builtin_elementwise_rint(a)"},
};

struct CastRow {
  ScalarType from;
  ScalarType to;
  int lanes;
  const char* guard;
  const char* body;
};
constexpr CastRow kCasts[] = {
    {ScalarType::Float16, ScalarType::Float32, 16, kAvx512, "_mm512_cvtph_ps((__m256i)a)"},
    {ScalarType::Float16, ScalarType::Float32, 8, kF16c, "_mm256_cvtph_ps((__m128i)a)"},
    {ScalarType::Float32, ScalarType::Float16, 16, kAvx512,
     "_mm512_cvtps_ph((__m512)a, _MM_FROUND_TO_NEAREST_INT)"},
    {ScalarType::Float32, ScalarType::Float16, 8, kF16c,
     "_mm256_cvtps_ph((__m256)a, _MM_FROUND_TO_NEAREST_INT)"},
    {ScalarType::Int8, ScalarType::Int32, 16, kAvx512, "_mm512_cvtepi8_epi32((__m128i)a)"},
    {ScalarType::UInt8, ScalarType::Int32, 16, kAvx512, "_mm512_cvtepu8_epi32((__m128i)a)"},
    {ScalarType::Int32, ScalarType::Int8, 16, kAvx512, "_mm512_cvtepi32_epi8((__m512i)a)"},
    {ScalarType::Int32, ScalarType::UInt8, 16, kAvx512, "_mm512_cvtepi32_epi8((__m512i)a)"},
    // The instruction gives the lowest number for what is outside and for NaN.
    {ScalarType::Float32, ScalarType::Int32, 16, kAvx512,
     "_mm512_mask_mov_epi32(_mm512_maskz_cvttps_epi32(_mm512_cmp_ps_mask((__m512)a, (__m512)a, "
     "_CMP_ORD_Q), (__m512)a), _mm512_cmp_ps_mask((__m512)a, _mm512_set1_ps(0x1p31f), "
     "_CMP_GE_OQ), _mm512_set1_epi32(0x7fffffff))"},
};

struct AccessRow {
  bool is_load;
  int64_t bits;
  int lanes;
  const char* guard;
  const char* body;
};
// The mask's lanes are as wide as the value's, so that the sign bits say which are meant.
constexpr AccessRow kAccesses[] = {
    {true, 32, 16, kAvx512,
     "_mm512_maskz_loadu_epi32(_mm512_movepi32_mask((__m512i)mask), (const void *)p)"},
    {true, 64, 8, kAvx512,
     "_mm512_maskz_loadu_epi64(_mm512_movepi64_mask((__m512i)mask), (const void *)p)"},
    {true, 32, 8, kAvx2, "_mm256_maskload_epi32((const int *)p, (__m256i)mask)"},
    {true, 64, 4, kAvx2, "_mm256_maskload_epi64((const long long *)p, (__m256i)mask)"},
    {true, 32, 4, kAvx2, "_mm_maskload_epi32((const int *)p, (__m128i)mask)"},
    {false, 32, 16, kAvx512,
     "_mm512_mask_storeu_epi32((void *)p, _mm512_movepi32_mask((__m512i)mask), (__m512i)x)"},
    {false, 64, 8, kAvx512,
     "_mm512_mask_storeu_epi64((void *)p, _mm512_movepi64_mask((__m512i)mask), (__m512i)x)"},
    {false, 32, 8, kAvx2, "_mm256_maskstore_epi32((int *)p, (__m256i)mask, (__m256i)x)"},
    {false, 64, 4, kAvx2, "_mm256_maskstore_epi64((long long *)p, (__m256i)mask, (__m256i)x)"},
    {false, 32, 4, kAvx2, "_mm_maskstore_epi32((int *)p, (__m128i)mask, (__m128i)x)"},
};

}  // namespace

Natives native(Op op, DType dtype) {
  Natives out;
  for (const ElementwiseRow& row : kElementwise)
    if (row.op == op && row.scalar == dtype.scalar && row.lanes == dtype.lanes)
      out.push_back({row.guard, row.body});
  for (const ClangRow& row : kOfClang)
    if (row.op == op && dtype.is_float()) out.push_back({kClang, row.body});
  return out;
}

Natives native_dot(DotKind kind, DType sum) {
  if (kind == DotKind::U8S8 && sum.lanes == 16)
    return {Native{"defined(__AVX512VNNI__)",
                   "_mm512_dpbusd_epi32((__m512i)c, (__m512i)a, (__m512i)b)"}};
  if (kind == DotKind::U8S8 && sum.lanes == 8)
    return {Native{"defined(__AVX512VNNI__) && defined(__AVX512VL__)",
                   "_mm256_dpbusd_epi32((__m256i)c, (__m256i)a, (__m256i)b)"}};
  return {};
}

Natives native_cast(DType from, DType to) {
  for (const CastRow& row : kCasts)
    if (row.from == from.scalar && row.to == to.scalar && row.lanes == from.lanes)
      return {Native{row.guard, row.body}};
  return {};
}

Natives native_masked(bool is_load, DType dtype) {
  for (const AccessRow& row : kAccesses)
    if (row.is_load == is_load && row.bits == dtype.bits() && row.lanes == dtype.lanes &&
        !dtype.is_bool())
      return {Native{row.guard, row.body}};
  return {};
}

}  // namespace tiny::c
