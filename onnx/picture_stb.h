// What stb_image reads, behind a function or two.
#pragma once

#include <functional>

#include "onnx/picture.h"

namespace tiny::onnx {

enum class StbFormat : uint8_t { Jpeg, Png, Bmp };

PictureSize stb_size(std::span<const uint8_t> file, StbFormat format);
// Calls `put` with the pixels, three bytes each.
void stb_decode(std::span<const uint8_t> file, StbFormat format, PictureSize size,
                const Ref<MemoryUse>& use, const std::function<void(const uint8_t*)>& put);

}  // namespace tiny::onnx
