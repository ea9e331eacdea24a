// The decoder is stb_image.
#include "picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include "failure.h"
#include "files.h"
#include "text.h"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_NO_GIF
#define STBI_NO_PSD
#define STBI_NO_PIC
#define STBI_NO_TGA
#define STBI_MAX_DIMENSIONS (1 << 15)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace tiny::cli {
namespace {

constexpr std::array<std::string_view, 7> kEndings = {".png", ".jpg", ".jpeg", ".bmp",
                                                      ".ppm", ".pgm", ".pnm"};

// The borders of a letterbox, as YOLO's detectors were trained with.
constexpr float kLetterboxGrey = 114;

// How the pictures of a family of networks are made; sizes are for what a model leaves free.
struct Preset {
  std::string_view name;
  Fit fit;
  int64_t side;
  int64_t resize;  // the shorter side before the middle is cut out, where the input has `side`
  std::vector<double> mean, std;  // of floats
};

// torchvision's classifiers with the mean and standard deviation of ImageNet, and YOLO.
const Preset* preset_of(const PictureFlags& flags) {
  static const Preset presets[] = {
      {"imagenet", Fit::Crop, 224, 256, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},
      {"yolo", Fit::Letterbox, 640, 640, {}, {}}};
  for (const Preset& preset : presets)
    if (flags.preset == preset.name) return &preset;
  return nullptr;
}

Fit fit_of(const PictureFlags& flags) {
  const Preset* preset = preset_of(flags);
  return flags.fit.value_or(preset != nullptr ? preset->fit : Fit::Stretch);
}

// Debian's stb_image (2.27) writes behind a JPEG's table that has more than 256 codes; what it
// takes for a marker says onnx/picture_stb.cpp.
bool has_long_table(const std::vector<std::byte>& file) {
  constexpr size_t kLengths = 16;
  constexpr int kCodesMax = 256, kStuffed = 0, kTables = 0xc4, kEnd = 0xd9;
  const auto byte = [&](size_t at) { return at < file.size() ? static_cast<int>(file[at]) : 0; };
  if (byte(0) != 0xff) return false;  // no JPEG
  for (size_t i = 0; i + 3 < file.size();) {
    const int marker = byte(i + 1);
    const bool is_marker = byte(i) == 0xff && marker != 0xff;
    if (is_marker && marker == kEnd) return false;
    if (!is_marker || marker == kStuffed || (marker & 0xf8) == 0xd0 || marker == 0xd8) {
      i += is_marker ? 2 : 1;
      continue;
    }
    const int length = 256 * byte(i + 2) + byte(i + 3);
    int left = marker == kTables ? length - 2 : 0;
    for (size_t at = i + 4; left > 0 && at < file.size();) {
      if (byte(at) >> 4 > 1 || (byte(at) & 15) > 3) break;
      int codes = 0;
      for (size_t k = 1; k <= kLengths; ++k) codes += byte(at + k);
      if (codes > kCodesMax) return true;
      at += 1 + kLengths + static_cast<size_t>(codes);
      left -= 1 + static_cast<int>(kLengths) + codes;
    }
    i += 2 + static_cast<size_t>(length);
  }
  return false;
}

// The bytes of a file for stb_image, which takes zeros, or whatever memory holds, for those that
// are not there: it is given all of them at once, and what it asks for then is behind the end.
struct Source {
  explicit Source(const std::vector<std::byte>& file) {
    stbi__start_mem(&context, reinterpret_cast<const stbi_uc*>(file.data()),
                    static_cast<int>(file.size()));
    context.io = {[](void* source, char* /*data*/, int /*size*/) { return pass_end(source); },
                  [](void* source, int /*size*/) { pass_end(source); },
                  [](void* /*source*/) { return 1; }};
    context.io_user_data = this;
    context.read_from_callbacks = 1;
  }

  static int pass_end(void* source) {
    static_cast<Source*>(source)->is_past_end = true;
    return 0;
  }

  stbi__context context;
  bool is_past_end = false;
};

Pixels decode(const std::string& path, int64_t channels) {
  const std::vector<std::byte> file = read_file(path);
  if (has_long_table(file)) throw file_failure(path, "no picture: a table of more than 256 codes");
  if (file.size() > std::numeric_limits<int>::max())
    throw file_failure(path, "too large a picture");
  int width = 0, height = 0, found = 0;
  Source source(file);
  const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      stbi__load_and_postprocess_8bit(&source.context, &width, &height, &found,
                                      static_cast<int>(channels)),
      stbi_image_free);
  if (source.is_past_end) throw file_failure(path, "no picture: it ends early");
  if (!pixels) throw file_failure(path, std::string("no picture: ") + stbi_failure_reason());
  Pixels out{height, width, channels, {}};
  out.values.assign(pixels.get(), pixels.get() + out.height * out.width * channels);
  return out;
}

// Where a picture goes: a part of it is resized, and laid on the input's canvas.
struct Placement {
  Part part;                              // of the picture
  int64_t resized_height, resized_width;  // of that part
  int64_t height, width;                  // of the canvas
  int64_t top, left;                      // on the canvas; less than 0: so much is cut off
};

// The whole picture so large that it covers the canvas, its shorter side (of those that the canvas
// leaves over, the nearer one) `side` long; the middle is cut out.
Placement crop_resized(const Pixels& in, int64_t height, int64_t width, int64_t side) {
  const bool by_height = in.height * width <= in.width * height;
  const int64_t other = by_height ? side * in.width / in.height : side * in.height / in.width;
  Placement placed{{0, 0, static_cast<double>(in.width), static_cast<double>(in.height)},
                   by_height ? side : other,
                   by_height ? other : side,
                   height,
                   width,
                   0,
                   0};
  // Half a pixel goes to the even side, as torchvision rounds it.
  const auto offset = [](int64_t canvas, int64_t resized) {
    return -static_cast<int64_t>(std::nearbyint(static_cast<double>(resized - canvas) / 2));
  };
  placed.top = offset(height, placed.resized_height);
  placed.left = offset(width, placed.resized_width);
  return placed;
}

Placement letterbox(const Pixels& in, int64_t height, int64_t width) {
  const double h = static_cast<double>(in.height), w = static_cast<double>(in.width);
  const double ratio = std::min(static_cast<double>(height) / h, static_cast<double>(width) / w);
  const auto side = [&](double length) {
    return std::max<int64_t>(1, static_cast<int64_t>(std::nearbyint(length * ratio)));
  };
  Placement placed{{0, 0, w, h}, side(h), side(w), height, width, 0, 0};
  placed.top = (height - placed.resized_height) / 2;
  placed.left = (width - placed.resized_width) / 2;
  return placed;
}

// The middle of the picture, of the canvas's aspect, or all of it.
Part middle(const Pixels& in, int64_t height, int64_t width, Fit fit) {
  const double full_h = static_cast<double>(in.height), full_w = static_cast<double>(in.width);
  if (fit == Fit::Stretch) return {0, 0, full_w, full_h};
  const double aspect = static_cast<double>(width) / static_cast<double>(height);
  const double part_w = std::min(full_w, full_h * aspect);
  const double part_h = std::min(full_h, full_w / aspect);
  return {(full_w - part_w) / 2, (full_h - part_h) / 2, part_w, part_h};
}

Placement place(const Pixels& in, int64_t height, int64_t width, const PictureFlags& flags) {
  const Fit fit = fit_of(flags);
  if (flags.resize && fit != Fit::Crop) throw usage_failure("--resize goes with --fit crop");
  if (fit == Fit::Letterbox) return letterbox(in, height, width);
  const int64_t nearer = in.height * width <= in.width * height ? height : width;
  if (flags.resize && *flags.resize < nearer)
    throw usage_failure("--resize " + std::to_string(*flags.resize) +
                        " is less than the input's side of " + std::to_string(nearer));
  if (flags.resize) return crop_resized(in, height, width, *flags.resize);
  const Preset* preset = preset_of(flags);
  if (fit == Fit::Crop && preset != nullptr)
    return crop_resized(in, height, width, (nearer * preset->resize * 2 / preset->side + 1) / 2);
  return {middle(in, height, width, fit), height, width, height, width, 0, 0};
}

Pixels fitted(const Pixels& in, const Placement& placed, const PictureFlags& flags) {
  Pixels resized =
      resample(in, placed.part, placed.resized_height, placed.resized_width, !flags.preset.empty());
  if (placed.resized_height == placed.height && placed.resized_width == placed.width)
    return resized;
  Pixels out{placed.height, placed.width, in.channels, {}};
  out.values.assign(static_cast<size_t>(out.height * out.width * out.channels), kLetterboxGrey);
  const int64_t x0 = std::max<int64_t>(0, placed.left);
  const int64_t x1 = std::min(out.width, placed.left + resized.width);
  for (int64_t y = std::max<int64_t>(0, placed.top);
       y < std::min(out.height, placed.top + resized.height); ++y) {
    const auto from = resized.values.begin() +
                      ((y - placed.top) * resized.width + x0 - placed.left) * in.channels;
    std::copy(from, from + (x1 - x0) * in.channels,
              out.values.begin() + (y * out.width + x0) * in.channels);
  }
  return out;
}

// (pixel * scale - mean) / std
struct Levels {
  double scale;
  std::vector<double> mean, std;

  double value(double pixel, size_t channel) const {
    const auto of = [&](const std::vector<double>& values) {
      return values[values.size() == 1 ? 0 : channel];
    };
    return (pixel * scale - of(mean)) / of(std);
  }
};

Levels levels_of(const PictureFlags& flags, tiny_dtype dtype, int64_t channels) {
  const Preset* preset = is_float(dtype) ? preset_of(flags) : nullptr;
  const auto chosen = [&](const std::vector<double>& given, const std::vector<double>* usual,
                          double otherwise) {
    const std::vector<double>& list = given.empty() && usual != nullptr ? *usual : given;
    if (list.size() > 1 && list.size() != static_cast<size_t>(channels))
      throw usage_failure("--mean and --std want one number for each of the " +
                          std::to_string(channels) + " channels");
    return list.empty() ? std::vector<double>{otherwise} : list;
  };
  return {flags.scale.value_or(is_float(dtype) ? 1.0 / 255 : 1.0),
          chosen(flags.mean, preset != nullptr ? &preset->mean : nullptr, 0),
          chosen(flags.std, preset != nullptr ? &preset->std : nullptr, 1)};
}

Json numbers_json(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push(value);
  return list;
}

Json steps_of(const Pixels& in, const Placement& placed, const Levels& levels,
              const PictureFlags& flags) {
  const auto size = [](int64_t width, int64_t height) { return Json::integers({width, height}); };
  Json steps = Json::object();
  steps.set("preset", flags.preset.empty() ? Json() : Json(flags.preset));
  steps.set("size", size(in.width, in.height)).set("channels", in.channels);
  Json part = Json::array();
  for (const double edge :
       {placed.part.left, placed.part.top, placed.part.width, placed.part.height})
    part.push(edge);
  steps.set("part", part).set("resized", size(placed.resized_width, placed.resized_height));
  steps.set("placed_at", size(placed.left, placed.top))
      .set("canvas", size(placed.width, placed.height));
  const bool has_border =
      placed.resized_width < placed.width || placed.resized_height < placed.height;
  steps.set("fill", has_border ? Json(static_cast<double>(kLetterboxGrey)) : Json());
  steps.set("scale", levels.scale).set("mean", numbers_json(levels.mean));
  steps.set("std", numbers_json(levels.std));
  return steps.set("layout", flags.channels_last ? "nhwc" : "nchw");
}

std::string list_of(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ", ") + short_text(value);
  return values.size() == 1 ? text : "[" + text + "]";
}

// "(pixel / 255 - [0.485, ..]) / [0.229, ..]", without what changes nothing.
std::string levels_text(const Levels& levels) {
  std::string text = "pixel";
  if (levels.scale != 1)
    text += levels.scale == 1.0 / 255 ? " / 255" : " * " + short_text(levels.scale);
  if (levels.mean != std::vector<double>{0}) text += " - " + list_of(levels.mean);
  if (levels.std == std::vector<double>{1}) return text;
  return (text == "pixel" ? text : "(" + text + ")") + " / " + list_of(levels.std);
}

std::string text_of(const Pixels& in, const Placement& placed, const Levels& levels,
                    const PictureFlags& flags) {
  const auto size = [](int64_t width, int64_t height) {
    return std::to_string(width) + "x" + std::to_string(height);
  };
  constexpr std::string_view kChannels[] = {"", "grey", "", "RGB", "RGBA"};
  std::string text = (flags.preset.empty() ? "" : flags.preset + ": ") + size(in.width, in.height) +
                     " " + std::string(kChannels[in.channels]);
  const Part& part = placed.part;
  if (part.width < static_cast<double>(in.width) || part.height < static_cast<double>(in.height))
    text += ", of it " + short_text(part.width) + "x" + short_text(part.height) + " at " +
            short_text(part.left) + "," + short_text(part.top);
  if (placed.resized_width != in.width || placed.resized_height != in.height)
    text += ", resized to " + size(placed.resized_width, placed.resized_height);
  if (placed.resized_width > placed.width || placed.resized_height > placed.height)
    text += ", cropped to " + size(placed.width, placed.height) + " at " +
            std::to_string(-placed.left) + "," + std::to_string(-placed.top);
  if (placed.resized_width < placed.width || placed.resized_height < placed.height)
    text += ", at " + std::to_string(placed.left) + "," + std::to_string(placed.top) + " of " +
            size(placed.width, placed.height) + " filled with " + short_text(kLetterboxGrey);
  return text + ", " + levels_text(levels) + ", " + (flags.channels_last ? "nhwc" : "nchw");
}

// Which axes of an input are what of pictures.
struct Axes {
  std::optional<size_t> batch, channels;  // one picture; grey
  size_t height, width;
};

Axes axes_of(const std::string& path, tiny_dtype dtype, const std::vector<int64_t>& shape,
             bool channels_last) {
  const size_t rank = shape.size();
  if (rank != 3 && rank != 4)
    throw file_failure(path, "a picture cannot be an input " + describe(dtype, shape));
  const size_t first = rank - 3;
  const auto is_channels = [&](size_t axis) {
    // A model leaves the number of pictures free rather than that of channels.
    return (shape[axis] < 0 && rank == 4) || shape[axis] == 1 || shape[axis] == 3 ||
           shape[axis] == 4;
  };
  const size_t channels = channels_last ? first + 2 : first;
  const size_t height = channels_last ? first : first + 1;
  const std::optional<size_t> batch = rank == 4 ? std::optional<size_t>(0) : std::nullopt;
  if (is_channels(channels)) return {batch, channels, height, height + 1};
  if (rank == 3 && shape[0] < 0) return {0, std::nullopt, 1, 2};
  throw file_failure(
      path, "an input of " + std::to_string(shape[channels]) + " channels is no picture" +
                (is_channels(channels_last ? first : first + 2)
                     ? std::string("; did you mean --layout ") + (channels_last ? "nchw?" : "nhwc?")
                     : ""));
}

}  // namespace

bool is_picture(const std::string& path) {
  return std::find(kEndings.begin(), kEndings.end(), ending(path)) != kEndings.end();
}

size_t pictures_at_once(const std::vector<std::string>& paths, tiny_dtype dtype,
                        const std::vector<int64_t>& shape, const PictureFlags& flags) {
  const Axes axes = axes_of(paths[0], dtype, shape, flags.channels_last);
  if (!axes.batch) return 1;
  const int64_t said = shape[*axes.batch];
  return said < 0 ? paths.size() : static_cast<size_t>(std::max<int64_t>(said, 1));
}

PictureInput load_pictures(const std::vector<std::string>& paths, tiny_dtype dtype,
                           const std::vector<int64_t>& shape, const PictureFlags& flags) {
  const Axes axes = axes_of(paths[0], dtype, shape, flags.channels_last);
  const auto count = static_cast<int64_t>(paths.size());
  const int64_t wanted = !axes.batch ? 1 : shape[*axes.batch] < 0 ? count : shape[*axes.batch];
  if (wanted != count)
    throw file_failure(paths[0],
                       (count == 1 ? "one picture" : std::to_string(count) + " pictures") +
                           " for an input of " + (wanted == 1 ? "one" : std::to_string(wanted)));
  const int64_t channels = !axes.channels              ? 1
                           : shape[*axes.channels] < 0 ? 3
                                                       : shape[*axes.channels];
  const Levels levels = levels_of(flags, dtype, channels);
  std::vector<int64_t> full(shape);
  PictureInput input;
  int64_t at = 0;
  for (const std::string& path : paths) {
    const Pixels whole = decode(path, channels);
    if (input.steps.empty()) {
      const Preset* preset = preset_of(flags);
      const auto side = [&](size_t axis, int64_t own) {
        return shape[axis] >= 0 ? shape[axis] : preset != nullptr ? preset->side : own;
      };
      full[axes.height] = side(axes.height, whole.height);
      full[axes.width] = side(axes.width, whole.width);
      if (axes.channels) full[*axes.channels] = channels;
      if (axes.batch) full[*axes.batch] = count;
      if (full[axes.height] == 0 || full[axes.width] == 0)
        throw file_failure(path, "the input has no pixels");
      input.array = zeros(path, dtype, full);
    }
    const int64_t height = full[axes.height], width = full[axes.width];
    const Placement placed = place(whole, height, width, flags);
    const Pixels pixels = fitted(whole, placed, flags);
    input.steps.push_back(
        {path, steps_of(whole, placed, levels, flags), text_of(whole, placed, levels, flags)});
    for (int64_t pixel = 0; pixel < height * width; ++pixel) {
      for (int64_t channel = 0; channel < channels; ++channel) {
        const double value =
            levels.value(pixels.values[static_cast<size_t>(pixel * channels + channel)],
                         static_cast<size_t>(channel));
        const int64_t index =
            flags.channels_last ? pixel * channels + channel : channel * height * width + pixel;
        input.array.put(static_cast<size_t>(at + index),
                        is_float(dtype) ? value : std::nearbyint(value));
      }
    }
    at += height * width * channels;
  }
  return input;
}

}  // namespace tiny::cli
