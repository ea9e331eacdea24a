// What the processor can do at most; rows are held against these in the same rounds.
//
// Plain functions in C's convention, so that the rows of bench_kernels and, through
// libbench_limits.so, those of the Python parts have the same bounds.
#pragma once

#include <cstddef>

extern "C" {
// Fused multiply-additions in registers, on `threads` threads at once, with vectors of 512 bits if
// `is_wide` and of 256 otherwise; at least `flops` in all.  Returns how many it did.
double bench_fma(double flops, int threads, int is_wide);
// 1 if the processor has vectors of 512 bits.
int bench_is_wide(void);
// A copy by stores that pass the caches.
void bench_copy_streaming(void* to, const void* from, size_t bytes);
// Reads all of it and does one addition per vector.
float bench_read(const void* from, size_t bytes);
// The same by `threads` at once, a part each, so many times.
void bench_read_by(const void* from, size_t bytes, int threads, int times);
}
