#include "tensor/padding.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "engine/host_room.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"

namespace tiny {

namespace {

// No memory holds more, and sums of a few of them still fit.
constexpr int64_t kPadMax = int64_t{1} << 48;

// The element that stands at position `at`, which may be outside 0 .. n-1.
int64_t source_of(PadMode mode, int64_t at, int64_t n) {
  if (mode == PadMode::Edge) return std::clamp<int64_t>(at, 0, n - 1);
  if (mode == PadMode::Wrap) return floor_mod(at, n);
  if (n == 1) return 0;
  const int64_t period = 2 * (n - 1);
  const int64_t place = floor_mod(at, period);
  return place < n ? place : period - place;
}

Tensor pad_constant(const Tensor& a, const Ints& before, const Ints& after, const Tensor& value) {
  const auto grown = [&](const Tensor& t) { return pad(t, to_shape(before), to_shape(after)); };
  const Tensor padded = grown(a);
  if (!value) return padded;
  const Tensor fill = cast(reshape(value, {}), a.dtype());
  // Zeros are what is there; -0.0 is a value like any other.
  if (fill.node().is_const() && fill.node().const_bits() == 0) return padded;
  return where(grown(full(a.context_ref(), kBool, a.shape(), 1)), padded, fill);
}

}  // namespace

Tensor pad(const Tensor& a, const Ints& before, const Ints& after, PadMode mode,
           const Tensor& value) {
  const auto rank = static_cast<size_t>(a.rank());
  require(before.size() == rank && after.size() == rank, Status::Shape, "pads ", list_text(before),
          " and ", list_text(after), " of shape ", a.shape(), ": name every axis");
  for (size_t i = 0; i < rank; ++i)
    for (int64_t more : {before[i], after[i]})
      require(more > -kPadMax && more < kPadMax, Status::Limit, "a pad of ", more,
              " elements; wanted fewer than ", kPadMax);
  if (mode == PadMode::Constant) return pad_constant(a, before, after, value);
  Tensor out = a;
  for (size_t i = 0; i < rank; ++i) {
    if (before[i] == 0 && after[i] == 0) continue;
    const int64_t n = a.shape()[i].value();
    require(n > 0, Status::Shape, "axis ", i, " of shape ", a.shape(),
            " has no elements to pad it with");
    require(before[i] + n + after[i] >= 0, Status::Shape, "pads ", list_text(before), " and ",
            list_text(after), " take away more than shape ", a.shape(), " has");
    // What is taken away is not there to be repeated.
    const int64_t cut = std::max<int64_t>(-before[i], 0);
    const int64_t kept = n - cut - std::max<int64_t>(-after[i], 0);
    const int64_t begin = -std::max<int64_t>(before[i], 0), end = before[i] + n + after[i] + begin;
    require(kept > 0 || begin == end, Status::Shape, "pads ", list_text(before), " and ",
            list_text(after), " of shape ", a.shape(), " leave nothing of axis ", i, " to repeat");
    Ints from;
    HostRoom room(a.context(), end - begin, sizeof(int64_t));
    for (int64_t at = begin; at < end; ++at) {
      room.check();
      from.push_back(cut + source_of(mode, at, kept));
    }
    out = index_select(out, from, static_cast<int64_t>(i));
  }
  return out;
}

Tensor center_crop_pad(const Tensor& a, const Ints& axes, const Ints& sizes) {
  const Ints named = checked_axes(axes, a.rank());
  require(sizes.size() == named.size(), Status::InvalidArgument, "center_crop_pad: ", sizes.size(),
          " sizes for ", named.size(), " axes");
  Ints before(static_cast<size_t>(a.rank())), after(static_cast<size_t>(a.rank()));
  for (size_t i = 0; i < named.size(); ++i) {
    const auto axis = static_cast<size_t>(named[i]);
    require(sizes[i] >= 0, Status::InvalidArgument, "center_crop_pad: a size is ", sizes[i],
            "; wanted at least 0");
    const int64_t more = checked_add(sizes[i], -a.shape()[axis].value(), "a size");
    before[axis] = more / 2;
    after[axis] = more - before[axis];
  }
  return pad(a, to_shape(before), to_shape(after));
}

}  // namespace tiny
