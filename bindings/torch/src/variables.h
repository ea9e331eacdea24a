// Sizes that are variables while a program is recorded.  PyTorch's own code computes with sizes
// that are numbers, so each variable has a stand-in: a number larger than the sizes of networks, of
// which PyTorch's sizes are multiples, products and neighbours.  Where sizes go to the engine they
// become its dimensions, and where they come back they are those numbers again.
//
// A size that was read wrongly would be another dimension with other stand-ins: a graph is recorded
// with two sets of them, and is a program only if both times it is the same graph.  Of several
// dimensions that have a size the second time (half of an even stand-in, rounded up or down), it is
// the one that it was the first time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "value.h"

namespace tiny_torch {

class Recording {
 public:
  // Variables by their least and greatest values.
  Recording(SizesRef least, SizesRef greatest);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // From now on, on this thread, variables have these stand-ins, until end(); sizes that are known
  // to be some dimensions.
  void begin(SizesRef stand_ins, SizesRef sizes, SizesRef dimensions);
  static void end();

  // The dimension that a size is; sizes that no variable has a part in are themselves.
  int64_t dimension(int64_t size);
  // How results lie, in this recording: by each a node, its sizes and its strides.
  const Sizes& results() const { return results_; }
  void set_results(Sizes results) { results_ = std::move(results); }
  // The number that PyTorch has for a dimension.
  int64_t size(int64_t dimension);
  // The input of number `index`, the same one whatever the stand-ins are.
  Value input(size_t index, tiny_dtype dtype, SizesRef sizes);
  // A tensor of these elements, the same one for the same elements.
  Value elements(tiny_dtype dtype, SizesRef sizes, const void* data, size_t bytes);

  // The value, which lives as long as this: numbers of nodes that are gone would be given again.
  const Value& kept(Value value) { return kept_.emplace_back(std::move(value)); }

  std::span<tiny_variable* const> variables() const { return variables_; }
  SizesRef dimensions() const { return dimensions_; }  // of the variables
  SizesRef least() const { return least_; }            // of their values

 private:
  int64_t found(int64_t size);
  int64_t product(int64_t size);
  int64_t product_of_known(int64_t size);
  void know(int64_t size, int64_t dimension);

  std::vector<tiny_variable*> variables_;
  Sizes dimensions_, least_;
  Sizes stand_ins_;
  std::map<int64_t, int64_t> dimension_of_, size_of_;
  Sizes answers_;  // of dimension(), of the first time
  size_t asked_ = 0;
  bool is_first_ = true;
  Sizes results_;
  std::map<size_t, Value> inputs_;
  std::vector<Value> kept_;
  std::map<std::tuple<tiny_dtype, Sizes, std::string>, Value> elements_;
};

// That which this thread is in, or none.
Recording* recording();

}  // namespace tiny_torch
