#include "onnx/import/carried_growth.h"

#include "base/error.h"
#include "tensor/movement.h"

namespace tiny::onnx {

tiny::Dim CarriedGrowth::Part::size(const tiny::Dim& rounds) const {
  return shape[static_cast<size_t>(axis)] + tiny::Dim(by) * rounds;
}

std::optional<CarriedGrowth> CarriedGrowth::of(const Tensors& before, const Tensors& after,
                                               const Tensors& later) {
  CarriedGrowth out;
  bool grows = false;
  for (size_t i = 0; i < before.size(); ++i) {
    const Shape shape = before[i].shape(), next = after[i].shape(), last = later[i].shape();
    Part part{shape, before[i].dtype()};
    if (after[i].dtype() != part.dtype || later[i].dtype() != part.dtype ||
        next.size() != shape.size() || last.size() != shape.size())
      return std::nullopt;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const tiny::Dim by = next[axis] - shape[axis];
      if (by.is(0) && last[axis] == next[axis]) continue;
      if (part.by != 0 || !by.is_const() || by.value() < 0 || !(last[axis] - next[axis] == by))
        return std::nullopt;
      part.axis = static_cast<int64_t>(axis);
      part.by = by.value();
    }
    grows |= part.by > 0;
    out.parts_.push_back(std::move(part));
  }
  if (!grows) return std::nullopt;
  return out;
}

Tensors CarriedGrowth::with_room(const Tensors& before, int64_t rounds) const {
  Tensors out;
  for (size_t i = 0; i < before.size(); ++i) {
    const Part& part = parts_[i];
    Shape none(part.shape.size()), behind = none;
    if (part.by > 0) behind[0] = tiny::Dim(part.by * rounds);
    out.push_back(part.by == 0 ? before[i] : pad(move_axis(before[i], part.axis, 0), none, behind));
  }
  return out;
}

Tensors CarriedGrowth::seen(const Tensors& kept, const tiny::Dim& rounds) const {
  Tensors out;
  for (size_t i = 0; i < kept.size(); ++i) {
    const Part& part = parts_[i];
    out.push_back(part.by == 0
                      ? kept[i]
                      : move_axis(slice_axis(kept[i], 0, 0, part.size(rounds)), 0, part.axis));
  }
  return out;
}

Tensors CarriedGrowth::stored(const Tensors& made, const tiny::Dim& rounds) const {
  Tensors out;
  for (size_t i = 0; i < made.size(); ++i) {
    const Part& part = parts_[i];
    Shape wanted = part.shape;
    if (part.by > 0) wanted[static_cast<size_t>(part.axis)] = part.size(rounds);
    require(made[i].shape() == wanted && made[i].dtype() == part.dtype, Status::Unsupported,
            "a loop whose state is ", made[i].shape(), " after a round; wanted ", wanted);
    out.push_back(part.by == 0 ? made[i] : move_axis(made[i], part.axis, 0));
  }
  return out;
}

int64_t CarriedGrowth::bytes() const {
  int64_t sum = 0;
  for (const Part& part : parts_) {
    Shape shape = part.shape;
    if (part.by == 0) continue;
    shape[static_cast<size_t>(part.axis)] = part.by;
    sum += upper_bound(product(shape)) * static_cast<int64_t>(part.dtype.bytes());
  }
  return sum;
}

}  // namespace tiny::onnx
