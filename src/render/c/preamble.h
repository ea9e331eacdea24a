// What every translation unit begins with: types, and what differs among compilers.
#pragma once

namespace tiny::c {

// With gcc's pragma the rounding that docs/semantics.md states needs no flag: products and sums are
// not contracted.  TINY_SCALAR asks for the form without vectors.
inline constexpr const char* kPreamble = R"(#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#pragma GCC diagnostic ignored "-Wpsabi"
#endif
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && !defined(TINY_SCALAR)
#define VECTORS 1
#if defined(__x86_64__)
)"
                                         "#include <immintrin.h>\n"
                                         R"(#endif
#define VECTOR(one, name, lanes) typedef one name __attribute__((vector_size(lanes * sizeof(one))));
#define AT(x, l) (x)[l]
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLES 1
#endif
#define INFIX(name, type, one, as, as_one, lanes, op) \
  INLINE type name(type a, type b) { return (type)((as)a op (as)b); }
#else
#define VECTOR(one, name, lanes) typedef struct { one lane[lanes]; } name;
#define AT(x, l) (x).lane[l]
#define INFIX(name, type, one, as, as_one, lanes, op)                     \
  INLINE type name(type a, type b) {                                      \
    for (int l = 0; l < lanes; ++l)                                       \
      a.lane[l] = (one)((as_one)a.lane[l] op (as_one)b.lane[l]);          \
    return a;                                                             \
  }
#endif
#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline, unused))
#define PREFETCH(p) __builtin_prefetch((const void *)(p), 0, 2)
#define ANYWHERE(one) typedef one anywhere_##one __attribute__((aligned(1), may_alias));
#else
#include <stdatomic.h>
#define INLINE static inline
#define PREFETCH(p) ((void)(p))
#endif

typedef uint8_t b8; /* 0 or 1 */
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef uint16_t h16;  /* the bits of a binary16 */
typedef uint16_t bf16; /* the upper bits of a binary32 */
typedef float f32;
typedef double f64;
typedef uintptr_t address;

struct KernelPoll {
  i32 (*ask)(const struct KernelPoll *poll);
};
struct KernelArgs {
  void *const *buffers;
  const i64 *variables;
  char *scratch;
  i64 begin;
  i64 end;
  i64 worker;
  i64 *status;
  const struct KernelPoll *poll;
};

)";

}  // namespace tiny::c
