#include "io/host_tensor.h"

#include <algorithm>

#include "base/checked.h"
#include "base/pieces.h"
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

bool has_odd_bools(const SharedBytes& bytes, const StopSignal* stop) {
  bool is_found = false;
  for_each_piece_of(bytes.size(), 1, stop, [&](int64_t at, int64_t size) {
    const SharedBytes piece = bytes.part(at, size);
    is_found =
        is_found || std::ranges::any_of(piece.view(), [](std::byte b) { return b > std::byte{1}; });
  });
  return is_found;
}

SharedBytes normal_bools(const SharedBytes& bytes, const StopSignal* stop) {
  std::vector<std::byte> normal;
  normal.reserve(bytes.view().size());
  for_each_piece_of(bytes.size(), 1, stop, [&](int64_t at, int64_t size) {
    const SharedBytes piece = bytes.part(at, size);
    for (const std::byte b : piece.view()) normal.push_back(std::min(b, std::byte{1}));
  });
  return SharedBytes::own(std::move(normal));
}

}  // namespace tiny
