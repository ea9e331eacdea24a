// Any bytes are a picture or an error, and a picture has the size that its file says.
#include <vector>

#include "base/error.h"
#include "onnx/picture.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tiny;
  using namespace tiny::onnx;
  constexpr int64_t kPixelsMax = 1 << 20;
  const auto use = make_ref<MemoryUse>();
  try {
    const std::span<const uint8_t> file(data, size);
    const PictureSize sides = picture_size(file);
    if (sides.height * sides.width > kPixelsMax) return 0;
    std::vector<uint8_t> pixels(static_cast<size_t>(3 * sides.height * sides.width));
    decode_picture(file, sides, PixelFormat::Rgb, use, pixels.data());
  } catch (const Error& e) {
    if (e.status() == Status::Internal) __builtin_trap();
  }
  if (use->used() != 0) __builtin_trap();
  return 0;
}
