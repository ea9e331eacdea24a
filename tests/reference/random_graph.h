// Random tensor graphs: short programs over a pool of tensors, the same for the same seed.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace tiny::testing {

struct GraphOptions {
  int64_t steps = 8;
  bool transcendentals = false;
  bool narrow_floats = true;  // float16 and bfloat16
  int64_t elements_max = 600;
  uint64_t data_seed = 0;  // other elements for a graph of the same structure
};

// Makes graphs in one context.  The same seed gives the same graph in every context.
class RandomGraph {
 public:
  RandomGraph(Ref<Context> context, uint64_t seed, GraphOptions options);
  ~RandomGraph();

  // Steps the pool and returns the last few tensors made.
  std::vector<Tensor> make();
  // What was done, one step a line.
  const std::string& story() const { return story_; }

 private:
  int64_t below(int64_t n);  // 0 .. n-1
  bool chance(int64_t percent) { return below(100) < percent; }
  Tensor pick();
  DType any_dtype();
  Ints any_shape();
  Tensor leaf();
  int64_t element_below(int64_t n);  // 0 .. n-1, by the data's seed
  Tensor data(DType dtype, const Ints& shape);
  Tensor wrapped(DType dtype);
  Tensor step();
  Tensor move(const Tensor& a);
  Tensor cut(const Tensor& a);
  Tensor regroup(const Tensor& a);
  Tensor unary(const Tensor& a);
  Tensor binary(const Tensor& a);
  Tensor reduce(const Tensor& a);
  Tensor gather(const Tensor& a);
  Tensor scatter(const Tensor& a);
  Tensor join(const Tensor& a);
  Tensor like(const Tensor& a);
  Tensor network(const Tensor& a);
  Tensor window(const Tensor& a);
  void note(const std::string& line, const Tensor& made);

  Ref<Context> context_;
  std::mt19937_64 random_;
  std::mt19937_64 elements_;
  GraphOptions options_;
  std::vector<Tensor> pool_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;  // of wrapped tensors
  std::string what_;
  std::string story_;
};

}  // namespace tiny::testing
