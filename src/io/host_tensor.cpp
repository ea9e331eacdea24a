#include "io/host_tensor.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"

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

bool has_odd_bools(const SharedBytes& bytes) {
  const auto view = bytes.view();
  return std::any_of(view.begin(), view.end(), [](std::byte b) { return b > std::byte{1}; });
}

SharedBytes normal_bools(const SharedBytes& bytes) {
  const auto view = bytes.view();
  std::vector<std::byte> normal(view.begin(), view.end());
  for (std::byte& b : normal) b = std::min(b, std::byte{1});
  return SharedBytes::own(std::move(normal));
}

}  // namespace tiny
