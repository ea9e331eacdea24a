// The ranges of a product of two large sides, as groups of threads make tiles of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/choose/strategies.h"

namespace tiny {

// By position: a column lies side by side in the result; rows are of what columns are not.
struct GroupProduct {
  size_t column = 0, row = 0, step = 0;
  std::vector<int64_t> params;  // that it reads, each along the steps
};

// Of a kernel with one sum; none if that is no such product.
std::optional<GroupProduct> find_group_product(const Seen& seen);

}  // namespace tiny
