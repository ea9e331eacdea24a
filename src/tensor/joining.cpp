#include "tensor/joining.h"

#include "base/checked.h"
#include "base/error.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"

namespace tiny {

Tensor concat(std::span<const Tensor> parts, int64_t axis) {
  require(!parts.empty(), Status::InvalidArgument, "concat of no tensors");
  const std::vector<const Tensor*> operands = refs_to(parts);
  require_one_context(operands);
  const Tensor& first = parts.front();
  const int64_t along = checked_axis(axis, first.rank());
  const DType dtype = common_dtype(operands);
  std::vector<UOp> nodes;
  for (const Tensor& part : parts) {
    bool fits = part.rank() == first.rank();
    for (int64_t i = 0; fits && i < first.rank(); ++i)
      fits = i == along || decide_equal(part.shape()[static_cast<size_t>(i)],
                                        first.shape()[static_cast<size_t>(i)]);
    require(fits, Status::Shape, "concat along axis ", along, " of shapes ", first.shape(), " and ",
            part.shape(), "; wanted the same sizes but along that axis");
    if (!part.shape()[static_cast<size_t>(along)].is(0)) nodes.push_back(as_dtype(part, dtype));
  }
  if (nodes.empty()) nodes.push_back(as_dtype(first, dtype));
  const Tensor joined = first.with(make_concat(nodes, along));
  check_shape(joined.shape(), dtype);
  return joined;
}

Tensor stack(std::span<const Tensor> parts, int64_t axis) {
  require(!parts.empty(), Status::InvalidArgument, "stack of no tensors");
  const int64_t along = checked_axis(axis, parts.front().rank() + 1);
  std::vector<Tensor> rows;
  for (const Tensor& part : parts) rows.push_back(unsqueeze(part, {along}));
  return concat(rows, along);
}

std::vector<Tensor> split(const Tensor& a, const Ints& sizes, int64_t axis) {
  const int64_t along = checked_axis(axis, a.rank());
  const Dim size = a.shape()[static_cast<size_t>(along)];
  int64_t total = 0;
  for (int64_t s : sizes) {
    require(s >= 0, Status::Shape, "split into parts of ", list_text(sizes), "; each at least 0");
    total = checked_add(total, s, "the sum of the parts");
  }
  require(decide_equal(size, total), Status::Shape, "split of ", size, " elements into parts of ",
          list_text(sizes), ", which are ", total);
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (int64_t s : sizes) {
    parts.push_back(slice_axis(a, along, begin, begin + s));
    begin += s;
  }
  return parts;
}

}  // namespace tiny
