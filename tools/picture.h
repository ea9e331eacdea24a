// Pictures as tensors: decoded, fitted to the input's size, scaled, normalised and laid out, each
// step told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "array.h"
#include "json.h"

namespace tiny::cli {

enum class Fit {
  Stretch,    // both sides to the input's, whatever the aspect
  Crop,       // the aspect is kept, and the middle is cut out
  Letterbox,  // the aspect is kept, and the borders are filled
};

// How a picture becomes a tensor: (pixel * scale - mean) / std per channel.
struct PictureFlags {
  std::string preset;      // "", "imagenet" or "yolo": what holds where a field below says nothing
  std::optional<Fit> fit;  // Stretch
  bool channels_last = false;
  std::optional<int64_t> resize;  // the shorter side before the middle is cut out
  std::optional<double> scale;    // 1/255; 1 for integers
  std::vector<double> mean;       // per channel, or one for all; 0
  std::vector<double> std;        // the same; 1
};

// How a picture became a part of an input.
struct PictureSteps {
  std::string path;
  Json json;         // what was done, for the report
  std::string text;  // the same for people
};

struct PictureInput {
  Array array;
  std::vector<PictureSteps> steps;  // of each picture
};

bool is_picture(const std::string& path);
// How many of the pictures such an input takes at once, one at least: all, unless it says how many.
size_t pictures_at_once(const std::vector<std::string>& paths, tiny_dtype dtype,
                        const std::vector<int64_t>& shape, const PictureFlags& flags);
// Pictures, at least one, as a batch for an input of this dtype and shape: [N,C,H,W], [C,H,W] of
// one picture, or [N,H,W] of grey ones.  -1: as many as there are; the preset's size, or the first
// picture's own.
PictureInput load_pictures(const std::vector<std::string>& paths, tiny_dtype dtype,
                           const std::vector<int64_t>& shape, const PictureFlags& flags);

struct Pixels {
  int64_t height, width, channels;
  std::vector<float> values;  // height x width x channels, 0..255
};

// The part [left, left + part_w) x [top, top + part_h) of a picture in another size: a triangle
// filter, widened when it shrinks, so that no pixel is left out.  With `whole_levels` each axis is
// rounded to the levels 0, 1, .. 255 by weights of 22 bits, as Pillow does, bit for bit.
struct Part {
  double left, top, width, height;
};
Pixels resample(const Pixels& in, const Part& part, int64_t height, int64_t width,
                bool whole_levels);

}  // namespace tiny::cli
