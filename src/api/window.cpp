// Windows, and the calls that take one.
#include "tensor/window.h"

#include "api/boundary.h"
#include "api/window_handle.h"

using tiny::find;
using tiny::produce;
using tiny::require;
using tiny::Status;
using tiny::Tensor;

namespace {

constexpr size_t kSpatialMax = TINY_RANK_MAX - 2;

constexpr tiny::Named<tiny::Padding> kPaddings[] = {
    {TINY_PADDING_EXPLICIT, "TINY_PADDING_EXPLICIT", tiny::Padding::Explicit},
    {TINY_PADDING_SAME_UPPER, "TINY_PADDING_SAME_UPPER", tiny::Padding::SameUpper},
    {TINY_PADDING_SAME_LOWER, "TINY_PADDING_SAME_LOWER", tiny::Padding::SameLower},
    {TINY_PADDING_VALID, "TINY_PADDING_VALID", tiny::Padding::Valid},
};
constexpr tiny::Named<tiny::Layout> kLayouts[] = {
    {TINY_LAYOUT_CHANNELS_FIRST, "TINY_LAYOUT_CHANNELS_FIRST", tiny::Layout::ChannelsFirst},
    {TINY_LAYOUT_CHANNELS_LAST, "TINY_LAYOUT_CHANNELS_LAST", tiny::Layout::ChannelsLast},
};

// `change` makes the window another one, unless that could not be.
template <class Change>
tiny_status set(const char* call, tiny_window* window, Change change) noexcept {
  return tiny::guarded(call, [&] {
    tiny_window& w = tiny::required(window, "window");
    const std::lock_guard lock(w.mutex);
    tiny::Window next = w.value;
    change(next);
    tiny::check_window(next, w.spatial, "window");
    w.value = std::move(next);
  });
}

// A list for one of the window's.
tiny::Ints list(const tiny_window* window, const int64_t* values, size_t count, const char* name) {
  require(values != nullptr, Status::InvalidArgument, name, " is NULL");
  require(window->spatial == count, Status::Shape, name, " has ", count, " values for a window of ",
          window->spatial, " spatial axes");
  return tiny::numbers(values, count, name);
}

tiny::Window of_convolution(const tiny_window* window, const Tensor& x) {
  if (!window) return {};
  tiny::required(window, "window");
  require(x.rank() == static_cast<int64_t>(window->spatial) + 2, Status::Shape, "x of shape ",
          x.shape(), " with a window of ", window->spatial, " spatial axes");
  return window->read();
}

tiny::Window of_pool(const tiny_window* window) {
  return tiny::required(window, "window").read();
}

Tensor optional(const tiny_tensor* tensor) {
  return tensor ? tensor->value : Tensor();
}

}  // namespace

extern "C" {

tiny_status tiny_window_create(size_t nspatial, tiny_window** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::guarded(__func__, [=] {
    require(nspatial >= 1 && nspatial <= kSpatialMax, Status::InvalidArgument, "nspatial is ",
            nspatial, "; 1 to ", kSpatialMax, " is wanted");
    *out = new tiny_window(nspatial);
  });
}

void tiny_window_retain(tiny_window* window) {
  tiny::retain_owned(window);
}

void tiny_window_release(tiny_window* window) {
  if (tiny::is_last_release(window)) delete window;
}

tiny_status tiny_window_set_kernel(tiny_window* window, const int64_t* kernel, size_t nspatial) {
  return set(__func__, window,
             [=](tiny::Window& w) { w.kernel = list(window, kernel, nspatial, "kernel"); });
}

tiny_status tiny_window_set_strides(tiny_window* window, const int64_t* strides, size_t nspatial) {
  return set(__func__, window,
             [=](tiny::Window& w) { w.strides = list(window, strides, nspatial, "strides"); });
}

tiny_status tiny_window_set_dilations(tiny_window* window, const int64_t* dilations,
                                      size_t nspatial) {
  return set(__func__, window, [=](tiny::Window& w) {
    w.dilations = list(window, dilations, nspatial, "dilations");
  });
}

tiny_status tiny_window_set_padding(tiny_window* window, const int64_t* before,
                                    const int64_t* after, size_t nspatial) {
  return set(__func__, window, [=](tiny::Window& w) {
    w.before = list(window, before, nspatial, "before");
    w.after = list(window, after, nspatial, "after");
    w.padding = tiny::Padding::Explicit;
  });
}

tiny_status tiny_window_set_auto_padding(tiny_window* window, tiny_padding padding) {
  return set(__func__, window, [=](tiny::Window& w) {
    w.padding = find<tiny::Padding>(kPaddings, padding, "padding");
    w.before = w.after = {};
  });
}

tiny_status tiny_window_set_output_padding(tiny_window* window, const int64_t* output_padding,
                                           size_t nspatial) {
  return set(__func__, window, [=](tiny::Window& w) {
    w.output_padding = list(window, output_padding, nspatial, "output_padding");
  });
}

tiny_status tiny_window_set_groups(tiny_window* window, int64_t groups) {
  return set(__func__, window, [=](tiny::Window& w) { w.groups = groups; });
}

tiny_status tiny_window_set_layout(tiny_window* window, tiny_layout layout) {
  return set(__func__, window,
             [=](tiny::Window& w) { w.layout = find<tiny::Layout>(kLayouts, layout, "layout"); });
}

tiny_status tiny_window_set_flags(tiny_window* window, tiny_flags flags) {
  return set(__func__, window, [=](tiny::Window& w) {
    tiny::check_flags(flags, TINY_FLAG_CEIL_MODE | TINY_FLAG_COUNT_INCLUDE_PAD);
    w.ceil_mode = flags & TINY_FLAG_CEIL_MODE;
    w.count_include_pad = flags & TINY_FLAG_COUNT_INCLUDE_PAD;
  });
}

tiny_status tiny_conv(const tiny_tensor* x, const tiny_tensor* weight, const tiny_tensor* bias,
                      const tiny_window* window, tiny_tensor** out) {
  return produce(__func__, out, {{x, "x"}, {weight, "weight"}, {bias, "bias", true}}, [=] {
    return tiny::conv(x->value, weight->value, optional(bias), of_convolution(window, x->value));
  });
}

tiny_status tiny_conv_transpose(const tiny_tensor* x, const tiny_tensor* weight,
                                const tiny_tensor* bias, const tiny_window* window,
                                tiny_tensor** out) {
  return produce(__func__, out, {{x, "x"}, {weight, "weight"}, {bias, "bias", true}}, [=] {
    return tiny::conv_transpose(x->value, weight->value, optional(bias),
                                of_convolution(window, x->value));
  });
}

tiny_status tiny_windows(const tiny_tensor* x, const tiny_window* window, tiny_tensor** out) {
  return produce(__func__, out, {{x, "x"}},
                 [=] { return tiny::windows(x->value, of_pool(window)); });
}

tiny_status tiny_max_pool(const tiny_tensor* x, const tiny_window* window, tiny_tensor** out) {
  return produce(__func__, out, {{x, "x"}},
                 [=] { return tiny::max_pool(x->value, of_pool(window)); });
}

tiny_status tiny_max_pool_indices(const tiny_tensor* x, const tiny_window* window,
                                  tiny_tensor** out) {
  return produce(__func__, out, {{x, "x"}},
                 [=] { return tiny::max_pool_indices(x->value, of_pool(window)); });
}

tiny_status tiny_avg_pool(const tiny_tensor* x, const tiny_window* window, tiny_tensor** out) {
  return produce(__func__, out, {{x, "x"}},
                 [=] { return tiny::avg_pool(x->value, of_pool(window)); });
}

}  // extern "C"
