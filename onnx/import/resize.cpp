// Resize: every axis by itself, each output element a weighted sum of input elements that the host
// chooses when the model is compiled.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/host_room.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

struct Settings {
  std::string mode;
  std::string coordinates;
  std::string nearest;
  double cubic = -0.75;
  bool antialias = false;
  bool exclude_outside = false;
  double outside_value = 0;
};

// How one axis changes.
struct Axis {
  int64_t from = 0;
  int64_t to = 0;
  double scale = 1;
  double begin = 0;  // of the region of interest, as a share of the axis
  double end = 1;
};

// Where output element i lies among the input elements.
double place(const Axis& a, const Settings& s, int64_t i) {
  const auto at = static_cast<double>(i);
  const auto n = static_cast<double>(a.from);
  const double size = n * a.scale;  // of the output, before rounding
  if (s.coordinates == "asymmetric") return at / a.scale;
  if (s.coordinates == "align_corners") return size == 1 ? 0 : at * (n - 1) / (size - 1);
  if (s.coordinates == "tf_crop_and_resize") {
    const double span = (a.end - a.begin) * (n - 1);
    return a.begin * (n - 1) + (size == 1 ? span / 2 : at * span / (size - 1));
  }
  if (s.coordinates == "pytorch_half_pixel" && size == 1) return -0.5;
  const double half = (at + 0.5) / a.scale - 0.5;
  // Centred, where rounding the size moved the end.
  if (s.coordinates == "half_pixel_symmetric")
    return half + n / 2 * (1 - static_cast<double>(a.to) / size);
  return half;
}

int64_t nearest(double x, const std::string& mode) {
  if (mode == "floor") return static_cast<int64_t>(std::floor(x));
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(x));
  if (mode == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  return static_cast<int64_t>(std::ceil(x - 0.5));
}

// The weight of an element at this distance.
double kernel(double distance, const Settings& s) {
  const double x = std::fabs(distance);
  if (s.mode == "linear") return std::max(0.0, 1 - x);
  const double a = s.cubic;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// Input elements and their weights for every output element, `width` for each.
struct Taps {
  int64_t width = 0;
  Ints index;
  std::vector<double> weight;
  Ints outside;  // 1 where the output element lies outside of the input
};

Taps taps_of(Context& context, const Axis& a, const Settings& s) {
  // Smoothing widens the kernel by as much as the picture shrinks.
  const double zoom = s.antialias ? std::min(a.scale, 1.0) : 1.0;
  const double reach = (s.mode == "linear" ? 1 : 2) / zoom;
  Taps t;
  t.width = s.mode == "nearest" ? 1 : 2 * static_cast<int64_t>(std::ceil(reach));
  HostRoom room(context, a.to, checked_mul(t.width, sizeof(int64_t) + sizeof(double), "taps") + 8);
  for (int64_t i = 0; i < a.to; ++i) {
    room.check();
    const double x = place(a, s, i);
    t.outside.push_back(s.coordinates == "tf_crop_and_resize" &&
                        (x < 0 || x > static_cast<double>(a.from - 1)));
    const auto clamped = [&](int64_t at) { return std::clamp<int64_t>(at, 0, a.from - 1); };
    if (s.mode == "nearest") {
      t.index.push_back(clamped(nearest(x, s.nearest)));
      t.weight.push_back(1);
      continue;
    }
    const int64_t first = static_cast<int64_t>(std::floor(x)) - t.width / 2 + 1;
    double total = 0;
    for (int64_t k = 0; k < t.width; ++k) {
      room.check();
      const int64_t at = first + k;
      const bool counts = !s.exclude_outside || (at >= 0 && at < a.from);
      const double w = counts ? kernel((static_cast<double>(at) - x) * zoom, s) : 0;
      t.index.push_back(clamped(at));
      t.weight.push_back(w);
      total += w;
    }
    if ((s.antialias || s.exclude_outside) && total != 0)
      for (size_t k = t.weight.size() - static_cast<size_t>(t.width); k < t.weight.size(); ++k)
        t.weight[k] /= total;
  }
  return t;
}

Tensor resized_axis(const Tensor& x, int64_t axis, const Axis& a, const Settings& s) {
  const Ref<Context>& context = x.context_ref();
  const Taps t = taps_of(*context, a, s);
  Ints shape(static_cast<size_t>(x.rank()), 1);
  shape[static_cast<size_t>(axis)] = a.to;
  Tensor out = take(x, t.index, axis);
  if (s.mode != "nearest") {
    // [.., to, width, ..] times the weights, summed over the width.
    Ints apart = dims_of(x);
    apart[static_cast<size_t>(axis)] = a.to;
    apart.insert(apart.begin() + axis + 1, t.width);
    Ints beside(apart.size(), 1);
    beside[static_cast<size_t>(axis)] = a.to;
    beside[static_cast<size_t>(axis) + 1] = t.width;
    const Tensor weights = cast(from_data(context, kFloat64, beside, t.weight.data(),
                                          static_cast<int64_t>(t.weight.size() * sizeof(double))),
                                x.dtype());
    const Tensor spread = out.with(make_reshape(out.node(), to_shape(apart)));
    out = sum(spread * weights, {axis + 1}, false);
  }
  if (std::find(t.outside.begin(), t.outside.end(), 1) == t.outside.end()) return out;
  const Tensor outside = from_data(context, kInt64, shape, t.outside.data(),
                                   static_cast<int64_t>(t.outside.size() * sizeof(int64_t)));
  return where(cast(outside, kBool), number(out, s.outside_value), out);
}

Tensor resized(const Call& c, const Tensor& x, const std::vector<Axis>& axes, const Settings& s) {
  const bool moves_only = s.mode == "nearest" && s.outside_value == 0;
  Tensor out =
      moves_only || (x.dtype().is_float() && x.dtype().bits() >= 32) ? x : cast(x, kFloat32);
  for (size_t i = 0; i < axes.size(); ++i) {
    const Axis& a = axes[i];
    if (a.scale == 1 && a.from == a.to && a.begin == 0 && a.end == 1) continue;
    c.check(a.from > 0, "an axis without elements cannot be resized");
    out = resized_axis(out, static_cast<int64_t>(i), a, s);
  }
  return cast(out, x.dtype());
}

int64_t checked_size(const Call& c, double size) {
  c.check(size >= 0 && size < 0x1p31, "an axis of ", size, " elements");
  return static_cast<int64_t>(size);
}

// The axes that scales or sizes speak of, changed; `policy` keeps the proportions.
std::vector<Axis> axes_from(const Call& c, const Tensor& x, const std::vector<double>& scales,
                            const Ints& sizes, const std::vector<double>& roi,
                            const std::string& policy) {
  Ints named(static_cast<size_t>(x.rank()));
  for (size_t i = 0; i < named.size(); ++i) named[i] = static_cast<int64_t>(i);
  named = axes_of(c.ints_attr("axes", named), x.rank());
  std::vector<Axis> axes;
  for (int64_t n : dims_of(x)) axes.push_back({n, n, 1, 0, 1});
  const size_t count = scales.empty() ? sizes.size() : scales.size();
  c.check(count == named.size(), count, " scales or sizes for ", named.size(), " axes");
  c.check(roi.empty() || roi.size() == 2 * named.size(), "roi has ", roi.size(), " elements");
  for (size_t i = 0; i < named.size(); ++i) {
    Axis& a = axes[static_cast<size_t>(named[i])];
    const auto n = static_cast<double>(a.from);
    a.scale = scales.empty() ? static_cast<double>(sizes[i]) / n : scales[i];
    c.check(a.scale > 0 || a.from == 0 || !scales.empty() || sizes[i] == 0, "a scale is ", a.scale);
    a.to = scales.empty() ? checked_size(c, static_cast<double>(sizes[i]))
                          : checked_size(c, std::floor(n * a.scale));
    if (roi.empty()) continue;
    a.begin = roi[i];
    a.end = roi[named.size() + i];
  }
  if (policy == "stretch" || !scales.empty()) return axes;
  double common = axes[static_cast<size_t>(named[0])].scale;
  for (int64_t i : named) {
    const double scale = axes[static_cast<size_t>(i)].scale;
    common = policy == "not_larger" ? std::min(common, scale) : std::max(common, scale);
  }
  for (int64_t i : named) {
    Axis& a = axes[static_cast<size_t>(i)];
    a.scale = common;
    a.to = checked_size(c, std::floor(common * static_cast<double>(a.from) + 0.5));
  }
  return axes;
}

// Version 10: asymmetric coordinates, the element below.
Tensors import_resize_10(Call& c) {
  Settings s;
  s.mode = c.text_attr("mode", "nearest");
  c.check(s.mode == "nearest" || s.mode == "linear", "the attribute mode is \"", s.mode, "\"");
  s.coordinates = "asymmetric";
  s.nearest = "floor";
  return {resized(c, c.in(0), axes_from(c, c.in(0), c.reals(1), {}, {}, "stretch"), s)};
}

Tensors import_resize(Call& c) {
  Settings s;
  s.mode = c.text_attr("mode", "nearest");
  s.coordinates = c.text_attr("coordinate_transformation_mode", "half_pixel");
  s.nearest = c.text_attr("nearest_mode", "round_prefer_floor");
  s.cubic = c.real_attr("cubic_coeff_a", -0.75f);
  s.antialias = c.flag("antialias", false) && s.mode != "nearest";
  s.exclude_outside = c.flag("exclude_outside", false);
  s.outside_value = c.real_attr("extrapolation_value", 0.0f);
  const auto one_of = [&](const std::string& text, std::initializer_list<const char*> known) {
    c.check(std::find(known.begin(), known.end(), text) != known.end(), "an attribute is \"", text,
            "\"");
  };
  one_of(s.mode, {"nearest", "linear", "cubic"});
  one_of(s.coordinates,
         {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
          "tf_crop_and_resize", "tf_half_pixel_for_nn"});
  if (s.coordinates == "tf_half_pixel_for_nn")
    c.unsupported("the coordinates tf_half_pixel_for_nn are not supported");
  one_of(s.nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  const std::string policy = c.text_attr("keep_aspect_ratio_policy", "stretch");
  one_of(policy, {"stretch", "not_larger", "not_smaller"});
  // Scales may be there but empty.
  const std::vector<double> scales = c.has(2) ? c.reals(2) : std::vector<double>();
  const Ints sizes = c.has(3) ? c.ints(3) : Ints();
  c.check(scales.empty() != sizes.empty(), "it needs either scales or sizes");
  const bool crops = s.coordinates == "tf_crop_and_resize";
  const std::vector<double> roi = crops && c.has(1) ? c.reals(1) : std::vector<double>();
  return {resized(c, c.in(0), axes_from(c, c.in(0), scales, sizes, roi, policy), s)};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"Resize", 10, 10,   import_resize_10, operand(1)},
    {"Resize", 11, kNow, import_resize,    operand(1) | operand(2) | operand(3)},
};
// clang-format on

}  // namespace

std::span<const Row> resize_rows() {
  return kRows;
}

}  // namespace tiny::onnx
