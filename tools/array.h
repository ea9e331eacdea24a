// A tensor's elements in this process's memory: row-major, little-endian, with a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tiny.h"

namespace tiny::cli {

struct Array {
  std::string name;
  tiny_dtype dtype = TINY_FLOAT32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  size_t count() const { return bytes.size() / tiny_dtype_size(dtype); }
  // Element i of the row-major order; exact for every dtype.
  long double at(size_t i) const;
  // Stores a number converted as C does, floats rounded to nearest even, integers wrapped.
  void put(size_t i, double value);
};

// An array of zeros; throws if the shape's size cannot be had.
Array zeros(std::string name, tiny_dtype dtype, std::vector<int64_t> shape);

// The number of elements, or -1 if a dimension is negative or the product overflows.
int64_t element_count(const std::vector<int64_t>& shape);

bool is_float(tiny_dtype dtype);

// The dtype of a name such as "float32", or 0.
tiny_dtype dtype_of(std::string_view name);

// "float32 [1,3,224,224]".
std::string describe(tiny_dtype dtype, const std::vector<int64_t>& shape);
std::string shape_text(const std::vector<int64_t>& shape);

// An array with the elements of `tensor`, computed if needed.
Array read_tensor(const tiny_tensor* tensor, std::string name);

}  // namespace tiny::cli
