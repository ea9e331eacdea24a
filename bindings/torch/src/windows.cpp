#include "windows.h"

#include <memory>

namespace tiny_torch {

namespace {

using Window = std::unique_ptr<tiny_window, void (*)(tiny_window*)>;

Window window_of(const WindowSizes& sizes) {
  tiny_window* made = nullptr;
  const size_t axes = sizes.strides.size();
  check(tiny_window_create(axes, &made));
  Window window(made, tiny_window_release);
  if (!sizes.kernel.empty()) check(tiny_window_set_kernel(made, sizes.kernel.data(), axes));
  check(tiny_window_set_strides(made, sizes.strides.data(), axes));
  if (!sizes.dilations.empty())
    check(tiny_window_set_dilations(made, sizes.dilations.data(), axes));
  check(tiny_window_set_padding(made, sizes.padding.data(), sizes.padding.data(), axes));
  if (!sizes.output_padding.empty())
    check(tiny_window_set_output_padding(made, sizes.output_padding.data(), axes));
  check(tiny_window_set_groups(made, sizes.groups));
  check(tiny_window_set_flags(made, sizes.flags));
  return window;
}

template <class Call>
Value of(const WindowSizes& sizes, const Call& call) {
  const Window window = window_of(sizes);
  tiny_tensor* out = nullptr;
  check(call(window.get(), &out));
  return Value(out);
}

}  // namespace

Sizes for_axes(Sizes given, int64_t axes, int64_t otherwise) {
  if (given.empty()) given = {otherwise};
  if (given.size() == 1) given.resize(static_cast<size_t>(axes), given[0]);
  return given;
}

Value convolution(const Value& x, const Value& weight, const WindowSizes& sizes,
                  bool is_transposed) {
  return of(sizes, [&](const tiny_window* window, tiny_tensor** out) {
    return is_transposed ? tiny_conv_transpose(x.handle(), weight.handle(), nullptr, window, out)
                         : tiny_conv(x.handle(), weight.handle(), nullptr, window, out);
  });
}

Value max_pool(const Value& x, const WindowSizes& sizes) {
  return of(sizes, [&](const tiny_window* window, tiny_tensor** out) {
    return tiny_max_pool(x.handle(), window, out);
  });
}

Value max_pool_places(const Value& x, const WindowSizes& sizes) {
  return of(sizes, [&](const tiny_window* window, tiny_tensor** out) {
    return tiny_max_pool_indices(x.handle(), window, out);
  });
}

Value average_pool(const Value& x, const WindowSizes& sizes) {
  return of(sizes, [&](const tiny_window* window, tiny_tensor** out) {
    return tiny_avg_pool(x.handle(), window, out);
  });
}

}  // namespace tiny_torch
