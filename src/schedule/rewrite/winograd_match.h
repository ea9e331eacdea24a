// Convolutions, and the gradients of their filters, as the indices of a sum's operands show them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/uop.h"

namespace tiny {

// A pair of axes: of the product, and of the input that the product's operand is a view of.
struct AxisPair {
  size_t product = 0;
  size_t input = 0;
};

// An axis of the input that windows slide along.
struct WindowAxis {
  size_t input = 0;
  size_t place = 0;  // axes of the product
  size_t tap = 0;
  int64_t first = 0;  // the input's position of the first tap of the first window; zeros around it
  bool is_flipped = false;  // the last tap comes first
};

// sum over taps and channels of input[place + tap, channel] * other[tap, channel, output], or, for
// a filter's gradient, over places and the batch of input[place + tap, channel] * other[place,
// output].
struct Convolution {
  UOp input;
  UOp other;  // the product's other operand: the filter, or what reached the places
  std::array<WindowAxis, 2> windows;
  int64_t taps = 0;  // along both
  std::vector<AxisPair> batch;
  std::vector<AxisPair> channels;
  std::vector<size_t> outputs;  // axes of the product that the input repeats along
  bool is_gradient = false;     // of the filter
  bool filter_varies = false;   // from run to run
};

// What `reduce`, a sum of products, is of that; none if it is neither.  `is_constant` says by id
// which nodes with memory hold what never changes.  A filter is in memory.
std::optional<Convolution> find_convolution(const UOp& reduce,
                                            const std::vector<uint8_t>& is_constant);

}  // namespace tiny
