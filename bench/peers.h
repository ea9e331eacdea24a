// What other libraries offer for a row: oneDNN's and OpenBLAS's calls on the same data.
#pragma once

#include "measure.h"

namespace tiny::bench {

// Row-major C[m,n] = A[m,k] * B[k,n].
struct Gemm {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  std::vector<float> a;
  std::vector<float> b;
};

// NCHW input, OIHW weights, the same stride and padding in both directions.
struct Convolution {
  int64_t channels = 0;
  int64_t size = 0;  // height and width of the input
  int64_t filters = 0;
  int64_t kernel = 0;
  int64_t stride = 1;
  int64_t padding = 0;
  std::vector<float> x;
  std::vector<float> weight;

  int64_t out_size() const { return (size + 2 * padding - kernel) / stride + 1; }
};

// OpenBLAS's and oneDNN's calls that take A and B as they are, and oneDNN with B prepared.
std::vector<Contender> gemm_peers(const Gemm& gemm);
// oneDNN with the formats that it likes best, which input and weights have beforehand.
std::vector<Contender> convolution_peers(const Convolution& conv);
// oneDNN's softmax over the last of two axes.
std::vector<Contender> softmax_peers(int64_t rows, int64_t columns, const std::vector<float>& x);

// The libraries' names, versions and settings, one line each.
std::vector<std::string> peer_settings();

}  // namespace tiny::bench
