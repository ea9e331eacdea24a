// Pictures in files: the run reads how large they are, makes the memory, and decodes.
#include "onnx/picture.h"

#include <cstring>

#include "base/error.h"
#include "engine/context.h"
#include "engine/custom_op.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "tensor/custom.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

using Value = HostCall::Value;

// A function of a file's bytes, whose errors name the node.
class PictureFunction : public CustomOp {
 public:
  explicit PictureFunction(const Node& node) : CustomOp("", node.op_type), place_(describe(node)) {}
  void run(const RunningCall& call) const final {
    const RunningCall::Value& file = call.inputs[0];
    try {
      read({static_cast<const uint8_t*>(file.data), static_cast<size_t>(file.dims[0])}, call);
    } catch (const Error& e) {
      throw e.at(place_);
    }
  }
  virtual void read(std::span<const uint8_t> file, const RunningCall& call) const = 0;

 private:
  std::string place_;
};

class SizeOfPicture : public PictureFunction {
 public:
  SizeOfPicture(const Node& node, int64_t channels, Ref<MemoryUse> use)
      : PictureFunction(node), channels_(channels), use_(std::move(use)) {}
  std::vector<Value> infer(const std::string&, std::span<const Value>, size_t) const override {
    return {{kInt64, {2}, -1}};
  }
  void read(std::span<const uint8_t> file, const RunningCall& call) const override {
    const PictureSize size = picture_size(file);
    const MemoryRoom room(use_, size.height * size.width * channels_);  // an error names the node
    const int64_t sides[] = {size.height, size.width};
    std::memcpy(call.outputs[0].data, sides, sizeof sides);
  }

 private:
  int64_t channels_;
  Ref<MemoryUse> use_;
};

class Picture : public PictureFunction {
 public:
  Picture(const Node& node, Shape shape, PixelFormat format, Ref<MemoryUse> use)
      : PictureFunction(node), shape_(std::move(shape)), format_(format), use_(std::move(use)) {}
  std::vector<Value> infer(const std::string&, std::span<const Value>, size_t) const override {
    return {{kUInt8, shape_, -1}};
  }
  void read(std::span<const uint8_t> file, const RunningCall& call) const override {
    const RunningCall::Value& out = call.outputs[0];
    decode_picture(file, {out.dims[0], out.dims[1]}, format_, use_,
                   static_cast<uint8_t*>(out.data));
  }

 private:
  Shape shape_;
  PixelFormat format_;
  Ref<MemoryUse> use_;
};

constexpr Named<PixelFormat> kPixelFormats[] = {
    {"RGB", PixelFormat::Rgb}, {"BGR", PixelFormat::Bgr}, {"Grayscale", PixelFormat::Grayscale}};

Tensors import_decoder(Call& c) {
  const Tensor& file = c.in(0);
  c.check(file.rank() == 1 && file.dtype() == kUInt8, "it takes the bytes of a file; got ",
          file.dtype(), " of shape ", file.shape());
  const auto format = named_attr<PixelFormat>(c, "pixel_format", "RGB", kPixelFormats);
  const Ref<MemoryUse> use(&c.context()->device().memory());
  const auto size = make_ref<SizeOfPicture>(c.node(), channels_of(format), use);
  const Tensor sides = call_custom(c.context(), size, "{}", {file}, 1)[0];
  Shape shape;
  for (const int64_t i : {0, 1})
    shape.push_back(
        c.importer().open_size(slice_axis(sides, 0, i, i + 1), c.node(), kPictureSideMax));
  shape.emplace_back(channels_of(format));
  return call_custom(c.context(), make_ref<Picture>(c.node(), shape, format, use), "{}", {file}, 1);
}

// clang-format off
constexpr Row kRows[] = {
    {"ImageDecoder", 20, kNewestOpset, import_decoder},
};
// clang-format on

}  // namespace

std::span<const Row> picture_rows() {
  return kRows;
}

}  // namespace tiny::onnx
