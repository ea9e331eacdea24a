// Elements in memory, as their strides say, to row-major memory: without a graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/stop.h"

namespace tiny {

bool is_row_major(std::span<const int64_t> dims, std::span<const int64_t> strides);

// `from` is element (0, 0, ..); `size` the bytes of an element, 1, 2, 4 or 8; strides are in
// elements.  Throws what `stop` (may be null) says.
void copy_elements(std::byte* to, const std::byte* from, size_t size, std::span<const int64_t> dims,
                   std::span<const int64_t> strides, const StopSignal* stop = nullptr);

}  // namespace tiny
