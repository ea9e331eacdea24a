// Pictures in files of the formats that stb_image reads (JPEG, PNG, BMP) and PNM, as rows of
// pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ref.h"
#include "runtime/device.h"

namespace tiny::onnx {

enum class PixelFormat : uint8_t { Rgb, Bgr, Grayscale };

struct PictureSize {
  int64_t height = 0;
  int64_t width = 0;
  bool operator==(const PictureSize&) const = default;
};

inline constexpr int64_t kPictureSideMax = 65535;  // a JPEG's, which has 16 bits for it

constexpr int64_t channels_of(PixelFormat format) {
  return format == PixelFormat::Grayscale ? 1 : 3;
}

// What the file says of itself.  Error{Unsupported} for a format that is not had,
// Error{InvalidArgument} for what is no picture.
PictureSize picture_size(std::span<const uint8_t> file);
// height x width x channels bytes.  JPEGs become what libjpeg-turbo makes of them, bit by bit.
// What the decoder takes meanwhile counts in `use` as buffers do, which may be null.
// Error{InvalidArgument} for a file that is broken, that ends early, or that is not of this size.
void decode_picture(std::span<const uint8_t> file, PictureSize size, PixelFormat format,
                    const Ref<MemoryUse>& use, uint8_t* pixels);

}  // namespace tiny::onnx
