#include "io/host_tensor.h"

#include <algorithm>

#include "base/checked.h"

namespace tiny {

int64_t element_count(const Ints& shape, const char* what) {
  int64_t product = 1;
  bool empty = false;
  for (int64_t dim : shape) {
    require(dim >= 0, Status::InvalidModel, what, ": a negative dimension in ", list_text(shape));
    empty = empty || dim == 0;
    product = checked_mul(product, std::max<int64_t>(dim, 1), what);
  }
  return empty ? 0 : product;
}

}  // namespace tiny
