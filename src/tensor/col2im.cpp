#include "tensor/col2im.h"

#include "base/checked.h"
#include "base/error.h"
#include "engine/host_room.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/window_parts.h"

namespace tiny {

namespace {

// No picture is larger, and products of two such sizes still fit.
constexpr int64_t kSizeMax = int64_t{1} << 31;

// One axis of the picture.
struct Line {
  int64_t size;
  int64_t stride;
  int64_t dilation;
  int64_t before;
};

// [.., kernel, windows, ..] at `axis` summed into [.., size, ..].
Tensor folded_axis(const Tensor& x, int64_t axis, const Line& line) {
  const Ints dims = const_dims(x.shape());
  const auto along = static_cast<size_t>(axis);
  const int64_t kernel = dims[along];
  const int64_t windows = dims[along + 1];
  Ints from, valid;
  HostRoom room(x.context(), checked_mul(line.size, kernel, "col2im"), 2 * sizeof(int64_t));
  for (int64_t p = 0; p < line.size; ++p)
    for (int64_t k = 0; k < kernel; ++k) {
      room.check();
      const int64_t start = p + line.before - k * line.dilation;
      const bool hit = start >= 0 && start % line.stride == 0 && start / line.stride < windows;
      from.push_back(hit ? k * windows + start / line.stride : 0);
      valid.push_back(hit ? 1 : 0);
    }
  Ints joined = dims;
  joined.erase(joined.begin() + axis);
  joined[along] = checked_mul(kernel, windows, "col2im");
  Ints apart = joined;
  apart[along] = line.size;
  apart.insert(apart.begin() + axis + 1, kernel);
  Ints beside(apart.size(), 1);
  beside[along] = line.size;
  beside[along + 1] = kernel;
  const Tensor taken = index_select(reshape(x, to_shape(joined)), from, axis);
  const Tensor mask =
      cast(from_data(x.context_ref(), kInt64, beside, valid.data(), std::ssize(valid) * 8), kBool);
  // More axes than a caller's tensor may have.
  const Tensor spread = x.with(make_reshape(taken.node(), to_shape(apart)));
  return sum_in_dtype(where(mask, spread, number_int(spread, 0)), {axis + 1});
}

}  // namespace

Tensor col2im(const Tensor& x, const Ints& spatial, const Window& window) {
  const size_t axes = spatial.size();
  require(axes > 0 && window.kernel.size() == axes, Status::InvalidArgument, "col2im: sizes ",
          list_text(spatial), " and a kernel ", list_text(window.kernel),
          "; wanted as many numbers in both");
  require(window.padding == Padding::Explicit && window.groups == 1, Status::InvalidArgument,
          "col2im: wanted a window with explicit padding and one group");
  require(x.rank() == 3, Status::Shape, "col2im: columns of shape ", x.shape(),
          "; wanted [batch, channels * kernel, blocks]");
  check_window(window, axes, "col2im");
  for (int64_t n : spatial)
    require(n > 0 && n < kSizeMax, Status::InvalidArgument, "col2im: sizes ", list_text(spatial),
            "; each at least 1, and less than ", kSizeMax);
  const Window w = complete(window, window.kernel, to_shape(spatial), "col2im");
  Ints counts;
  int64_t block = 1, blocks = 1;
  for (size_t i = 0; i < axes; ++i) {
    require(w.before[i] >= 0 && w.after[i] >= 0, Status::InvalidArgument, "col2im: padding ",
            list_text(w.before), " and ", list_text(w.after), "; each at least 0");
    const int64_t padded =
        checked_add(checked_add(spatial[i], w.before[i], "a size"), w.after[i], "a size");
    counts.push_back(window_count(padded, w.kernel[i], w.strides[i], w.dilations[i]).value());
    require(counts.back() > 0, Status::InvalidArgument, "col2im: a kernel ", list_text(w.kernel),
            " does not fit into sizes ", list_text(spatial));
    block = checked_mul(block, w.kernel[i], "a block");
    blocks = checked_mul(blocks, counts[i], "the blocks");
  }
  const Ints dims = const_dims(x.shape());
  require(dims[1] % block == 0 && dims[2] == blocks, Status::Shape, "col2im: columns of shape ",
          x.shape(), "; wanted [batch, a multiple of ", block, ", ", blocks, "]");
  // [N, C, k1, k2, .., l1, l2, ..] to [N, C, k1, l1, k2, l2, ..]
  Ints apart{dims[0], dims[1] / block}, order{0, 1};
  apart.insert(apart.end(), w.kernel.begin(), w.kernel.end());
  apart.insert(apart.end(), counts.begin(), counts.end());
  for (size_t i = 0; i < axes; ++i) {
    order.push_back(static_cast<int64_t>(2 + i));
    order.push_back(static_cast<int64_t>(2 + axes + i));
  }
  Tensor out = x.with(make_permute(make_reshape(x.node(), to_shape(apart)), order));
  for (size_t i = 0; i < axes; ++i)
    out = folded_axis(out, static_cast<int64_t>(i) + 2,
                      {spatial[i], w.strides[i], w.dilations[i], w.before[i]});
  return out;
}

}  // namespace tiny
