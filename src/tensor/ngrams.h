// Sequences of numbers that are counted in longer ones.
#pragma once

#include <span>

#include "tensor/tensor.h"

namespace tiny {

struct Ngram {
  Ints members;
  int64_t column = 0;  // of the result, where it is counted; of several the last
  double weight = 1;   // that what is counted is multiplied by
};

struct NgramOptions {
  int64_t columns = 0;       // of the result; those that no n-gram has are 0
  int64_t most_skipped = 0;  // elements between two members, the same number between all
  bool once = false;         // 1 for an n-gram however often it stands there
};

// How often each n-gram stands in each row of x [rows, elements]: float32 [rows, columns].
Tensor count_ngrams(const Tensor& x, std::span<const Ngram> ngrams, const NgramOptions& options);

}  // namespace tiny
