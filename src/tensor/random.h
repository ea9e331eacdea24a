// Random numbers as functions of keys: the same key gives the same numbers, on every device, at any
// number of threads, inside and outside of programs.  Nothing is hidden; who wants other numbers
// gives another key.
//
// A key has two uint32.  The bits are threefry2x32 with 20 rounds of it (Salmon et al. 2011,
// "Parallel random numbers: as easy as 1, 2, 3") at the numbers 0, 1, ..: those that JAX and
// tinygrad have.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

// The block: two words of the key and two of a counter, uint32 of any shapes that broadcast.
struct ThreefryWords {
  Tensor first;
  Tensor second;
};
ThreefryWords threefry2x32(const ThreefryWords& key, const ThreefryWords& counter);

// A key of two words.
Tensor random_key(const Ref<Context>& context, uint64_t seed);
// `count` new keys, [count, 2], none of which has to do with another or with what `key` gives else.
Tensor split_key(const Tensor& key, int64_t count);

// uint32, of `count` elements, less than 2^32 (of a size that is no number the same come again
// behind as many): element i of the first half is the first word at (i, half + i), of the second
// half the second one, where half = ceil(count / 2).
Tensor random_bits(const Tensor& key, const Dim& count);
// The block at each of `counters`, uint32 [2, ..] of which axis 0 has the two words; so has the
// result.
Tensor random_at(const Tensor& key, const Tensor& counters);
// At least 0, below 1: the upper bits as the fraction of a float.
Tensor random_uniform(const Tensor& key, DType dtype, const Shape& shape);
// Mean 0, variance 1 (Box and Muller 1958): of float32, rounded to `dtype` but for float64, which
// has bits of its own.
Tensor random_normal(const Tensor& key, DType dtype, const Shape& shape);
// From `low` on, below `high`, all as likely as each other but for 2^-32 of it.
Tensor random_integers(const Tensor& key, DType dtype, const Ints& shape, int64_t low,
                       int64_t high);
// 0 .. count-1 in any order, int64.
Tensor random_permutation(const Tensor& key, int64_t count);
// Normal numbers of those from `low` to `high`, by the inverse of the distribution.
Tensor random_truncated_normal(const Tensor& key, DType dtype, const Ints& shape, double low,
                               double high);
// True with the probability that stands in `p`, a float of any shape.
Tensor random_bernoulli(const Tensor& key, const Tensor& p);
// `count` positions along the last axis, each as likely as its weight's share, int64.  Without
// replacement none twice: those whose exponentially distributed time, over the weight, is first.
Tensor random_multinomial(const Tensor& key, const Tensor& weights, int64_t count,
                          bool replacement);
// Each element 0 with probability p, else over 1 - p.
Tensor dropout(const Tensor& key, const Tensor& x, double p);

}  // namespace tiny
