// What other libraries offer for a row: oneDNN's and OpenBLAS's calls on the same data.
#pragma once

#include "measure.h"

namespace tiny::bench {

enum class Elements { kFloat32, kBfloat16, kInt8 };  // kInt8: unsigned by signed, sums of 32 bits

// Row-major C[m,n] = A[m,k] * B[k,n].  The values of narrower elements are exact in theirs.
struct Gemm {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool is_constant = false;  // B may be prepared beforehand
  Elements elements = Elements::kFloat32;
  std::vector<float> a = {};
  std::vector<float> b = {};
};

// NC.. input and OI.. weights of one or two spatial axes, the same stride and padding in each.
// With `pointwise` filters of size 1 behind it, a second convolution reads the first one's output.
struct Convolution {
  std::string name;
  int64_t channels = 0;
  std::vector<int64_t> size;  // of the input's spatial axes
  int64_t filters = 0;
  int64_t kernel = 0;
  int64_t stride = 1;
  int64_t groups = 1;
  int64_t pointwise = 0;
  std::vector<float> x = {};
  std::vector<float> weight = {};
  std::vector<float> pointwise_weight = {};

  int64_t padding() const { return kernel / 2; }
  std::vector<int64_t> out_size() const;
};

enum class Bandwidth { kChain, kSoftmax, kLayerNorm };

// One pass over a matrix: relu(x*2+0.5)-1, or over each row softmax or layer normalization.
struct Pass {
  Bandwidth kind = Bandwidth::kChain;
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<float> x = {};
  std::vector<float> scale = {};
  std::vector<float> shift = {};
};
constexpr float kFactor = 2;
constexpr float kBefore = 0.5F;
constexpr float kAfter = -1;
constexpr float kEpsilon = 1e-5F;

// The calls that take A and B as they are; and oneDNN with B prepared, which counts as a peer where
// B is constant.
std::vector<Contender> gemm_peers(const Gemm& gemm);
// oneDNN with the formats that it likes best, which input and weights have beforehand.  Results
// are channels last.
std::vector<Contender> convolution_peers(const Convolution& conv);
std::vector<Contender> pass_peers(const Pass& pass);

// The libraries' names, versions and settings, one line each.
std::vector<std::string> peer_settings();

}  // namespace tiny::bench
