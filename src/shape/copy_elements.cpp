#include "shape/copy_elements.h"

#include <algorithm>
#include <cstring>

#include "base/pieces.h"

namespace tiny {

namespace {

// A row of `count` elements that are `stride` apart.
template <size_t size>
void copy_row(std::byte* to, const std::byte* from, int64_t count, int64_t stride) {
  for (int64_t i = 0; i < count; ++i, to += size, from += stride * static_cast<int64_t>(size))
    std::memcpy(to, from, size);
}

void copy_row(std::byte* to, const std::byte* from, size_t size, int64_t count, int64_t stride) {
  if (stride == 1 || count == 1)
    std::memcpy(to, from, static_cast<size_t>(count) * size);
  else if (size == 1)
    copy_row<1>(to, from, count, stride);
  else if (size == 2)
    copy_row<2>(to, from, count, stride);
  else if (size == 4)
    copy_row<4>(to, from, count, stride);
  else
    copy_row<8>(to, from, count, stride);
}

}  // namespace

bool is_row_major(std::span<const int64_t> dims, std::span<const int64_t> strides) {
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0; step *= dims[i])
    if (dims[i] != 1 && strides[i] != step) return false;
  return true;
}

void copy_elements(std::byte* to, const std::byte* from, size_t size, std::span<const int64_t> dims,
                   std::span<const int64_t> strides, const StopSignal* stop) {
  // The last axes whose elements are evenly apart are a row.
  int64_t count = 1;
  int64_t stride = 1;
  size_t axes = dims.size();
  for (; axes > 0; --axes) {
    const int64_t dim = dims[axes - 1];
    if (dim == 0) return;
    if (dim == 1) continue;
    if (count > 1 && strides[axes - 1] != stride * count) break;
    if (count == 1) stride = strides[axes - 1];
    count *= dim;
  }
  int64_t rows = 1;
  for (size_t i = 0; i < axes; ++i) rows *= dims[i];
  const auto width = static_cast<int64_t>(size);
  // Pieces of a long row, or several rows in a piece.
  const int64_t most = std::max(kPieceBytes / width, int64_t{1});
  int64_t until_look = most;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t at = 0;
    int64_t rest = row;
    for (size_t i = axes; i-- > 0; rest /= dims[i]) at += rest % dims[i] * strides[i];
    for (int64_t done = 0; done < count;) {
      const int64_t n = std::min(count - done, until_look);
      copy_row(to, from + (at + done * stride) * width, size, n, stride);
      to += n * width;
      done += n;
      until_look -= n;
      if (until_look > 0) continue;
      if (stop) stop->check();
      until_look = most;
    }
  }
}

}  // namespace tiny
