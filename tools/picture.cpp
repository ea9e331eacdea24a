// Pictures as tensors.  The decoder is stb_image; resizing is a triangle filter, widened when it
// shrinks, so that no pixel is left out: what most networks were trained with.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "failure.h"
#include "files.h"

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

constexpr std::array<std::string_view, 8> kEndings = {".png", ".jpg", ".jpeg", ".bmp",
                                                      ".ppm", ".pgm", ".pnm",  ""};

struct Pixels {
  int64_t height, width, channels;
  std::vector<float> values;  // height x width x channels, 0..255
};

Pixels decode(const std::string& path, int64_t channels) {
  const std::vector<std::byte> file = read_file(path);
  if (file.size() > std::numeric_limits<int>::max())
    throw file_failure(path, "too large a picture");
  int width = 0, height = 0, found = 0;
  const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(file.data()),
                            static_cast<int>(file.size()), &width, &height, &found,
                            static_cast<int>(channels)),
      stbi_image_free);
  if (!pixels) throw file_failure(path, std::string("no picture: ") + stbi_failure_reason());
  Pixels out{height, width, channels, {}};
  out.values.assign(pixels.get(), pixels.get() + out.height * out.width * channels);
  return out;
}

// One axis resized: `outer` lines of `from` points, `inner` values each, read from [first, last).
std::vector<float> resize_axis(const std::vector<float>& in, int64_t outer, int64_t from,
                               int64_t inner, double first, double last, int64_t to) {
  std::vector<float> out(static_cast<size_t>(outer * to * inner));
  const double step = (last - first) / static_cast<double>(to), reach = std::max(step, 1.0);
  for (int64_t i = 0; i < to; ++i) {
    const double centre = first + (static_cast<double>(i) + 0.5) * step;
    const auto low = std::max<int64_t>(0, static_cast<int64_t>(centre - reach + 0.5));
    const auto high = std::min<int64_t>(from, static_cast<int64_t>(centre + reach + 0.5));
    std::vector<double> weights;
    double total = 0;
    for (int64_t j = low; j < high; ++j) {
      const double distance = std::fabs(static_cast<double>(j) + 0.5 - centre) / reach;
      total += weights.emplace_back(std::max(0.0, 1 - distance));
    }
    for (int64_t line = 0; line < outer; ++line) {
      for (int64_t k = 0; k < inner; ++k) {
        double sum = 0;
        for (int64_t j = low; j < high; ++j)
          sum += weights[static_cast<size_t>(j - low)] *
                 in[static_cast<size_t>((line * from + j) * inner + k)];
        out[static_cast<size_t>((line * to + i) * inner + k)] = static_cast<float>(sum / total);
      }
    }
  }
  return out;
}

Pixels resize(const Pixels& in, int64_t height, int64_t width, bool crop) {
  if (height == in.height && width == in.width) return in;
  // The part of the picture that is shown.
  double full_h = static_cast<double>(in.height), full_w = static_cast<double>(in.width);
  double part_h = full_h, part_w = full_w;
  if (crop) {
    const double aspect = static_cast<double>(width) / static_cast<double>(height);
    part_w = std::min(full_w, full_h * aspect);
    part_h = std::min(full_h, full_w / aspect);
  }
  const double top = (full_h - part_h) / 2, left = (full_w - part_w) / 2;
  Pixels out{height, width, in.channels, {}};
  const auto rows =
      resize_axis(in.values, in.height, in.width, in.channels, left, left + part_w, width);
  out.values = resize_axis(rows, 1, in.height, width * in.channels, top, top + part_h, height);
  return out;
}

double channel_value(const std::vector<double>& values, int64_t channel, double otherwise) {
  if (values.empty()) return otherwise;
  return values[values.size() == 1 ? 0 : static_cast<size_t>(channel)];
}

}  // namespace

bool is_picture(const std::string& path) {
  const std::string end = ending(path);
  return !end.empty() && std::find(kEndings.begin(), kEndings.end(), end) != kEndings.end();
}

Array load_picture(const std::string& path, tiny_dtype dtype, const std::vector<int64_t>& shape,
                   const PictureFlags& flags) {
  const size_t rank = shape.size();
  if (rank != 3 && rank != 4)
    throw file_failure(path, "a picture cannot be an input " + describe(dtype, shape));
  if (rank == 4 && shape[0] > 1)
    throw file_failure(path, "one picture for an input of " + std::to_string(shape[0]));
  const size_t at = rank - 3, c = flags.channels_last ? at + 2 : at,
               h = flags.channels_last ? at : at + 1;
  const int64_t channels = shape[c] < 0 ? 3 : shape[c];
  if (channels != 1 && channels != 3 && channels != 4)
    throw file_failure(path, "an input of " + std::to_string(channels) + " channels is no picture");
  for (const auto* list : {&flags.mean, &flags.std})
    if (list->size() > 1 && list->size() != static_cast<size_t>(channels))
      throw usage_failure("--mean and --std want one number for each of the " +
                          std::to_string(channels) + " channels");
  const Pixels whole = decode(path, channels);
  const int64_t height = shape[h] < 0 ? whole.height : shape[h];
  const int64_t width = shape[h + 1] < 0 ? whole.width : shape[h + 1];
  if (height == 0 || width == 0) throw file_failure(path, "the input has no pixels");
  const Pixels pixels = resize(whole, height, width, flags.crop);

  std::vector<int64_t> full(rank, 1);
  full[c] = channels;
  full[h] = height;
  full[h + 1] = width;
  Array array = zeros(path, dtype, full);
  const double scale = flags.scale.value_or(is_float(dtype) ? 1.0 / 255 : 1.0);
  for (int64_t pixel = 0; pixel < height * width; ++pixel) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      const double raw = pixels.values[static_cast<size_t>(pixel * channels + channel)];
      const double value = (raw * scale - channel_value(flags.mean, channel, 0)) /
                           channel_value(flags.std, channel, 1);
      const int64_t index =
          flags.channels_last ? pixel * channels + channel : channel * height * width + pixel;
      array.put(static_cast<size_t>(index), is_float(dtype) ? value : std::nearbyint(value));
    }
  }
  return array;
}

}  // namespace tiny::cli
