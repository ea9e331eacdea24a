#include "onnx/import/functions.h"

#include <algorithm>

#include "base/error.h"
#include "tensor/movement.h"

namespace tiny::onnx {

int64_t axis_of(int64_t axis, int64_t rank) {
  require(axis >= -rank && axis < rank, Status::InvalidModel, "axis ", axis, " of a tensor with ",
          rank, " axes");
  return axis < 0 ? axis + rank : axis;
}

Ints axes_of(const Ints& axes, int64_t rank) {
  Ints out;
  for (int64_t axis : axes) {
    const int64_t a = axis_of(axis, rank);
    require(std::find(out.begin(), out.end(), a) == out.end(), Status::InvalidModel, "axis ", axis,
            " stands twice in ", list_text(axes));
    out.push_back(a);
  }
  return out;
}

Tensor aligned(const Call& call, const Tensor& a, const Tensor& b) {
  if (call.version() >= 7) return b;
  if (!call.flag("broadcast", false)) {
    call.check(a.shape() == b.shape(), "shapes ", a.shape(), " and ", b.shape(),
               " differ and the attribute broadcast is not set");
    return b;
  }
  const int64_t axis =
      call.has_attribute("axis") ? axis_of(call.attr("axis"), a.rank()) : a.rank() - b.rank();
  call.check(axis >= 0 && axis + b.rank() <= a.rank(), "an operand of ", b.rank(),
             " axes does not fit at axis ", axis, " of one with ", a.rank());
  Ints shape = dims_of(b);
  shape.resize(static_cast<size_t>(a.rank() - axis), 1);
  return reshape(b, to_shape(shape));
}

}  // namespace tiny::onnx
