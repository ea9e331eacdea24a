#include "onnx/value_file.h"

#include <utility>

#include "base/error.h"
#include "io/tensor_pb.h"
#include "io/wire.h"
#include "onnx/import/call.h"
#include "tensor/create.h"
#include "tensor/joining.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

using Kind = ModelValue::Kind;

class Reader {
 public:
  Reader(const Ref<Context>& context, TensorSource source)
      : context_(context), source_(std::move(source)) {}

  ModelValue tensor(WireReader& reader) const {
    const TensorData data = read_tensor(reader, source_);
    ModelValue value;
    value.kind = data.type == kTextType ? Kind::Texts : Kind::Tensor;
    if (value.kind == Kind::Texts) {
      value.shape = data.dims;
      value.texts = data.strings;
    } else {
      value.tensor = tensor_of(to_host_tensor(data));
    }
    return value;
  }

  ModelValue sequence(WireReader& reader) const {
    namespace f = field::SequenceProto;
    ModelValue value;
    value.kind = Kind::Sequence;
    while (reader.next()) {
      const size_t at = value.elements.size();
      if (reader.field() == f::tensor_values) {
        WireReader inner = reader.message(ProtoMessage::TensorProto, at);
        value.elements.push_back(tensor(inner));
      } else if (reader.field() == f::map_values) {
        WireReader inner = reader.message(ProtoMessage::MapProto, at);
        value.elements.push_back(map(inner));
      }
    }
    return value;
  }

  ModelValue optional(WireReader& reader) const {
    namespace f = field::OptionalProto;
    ModelValue value;
    while (reader.next()) {
      if (reader.field() == f::tensor_value) {
        WireReader inner = reader.message(ProtoMessage::TensorProto);
        value = tensor(inner);
      } else if (reader.field() == f::sequence_value) {
        WireReader inner = reader.message(ProtoMessage::SequenceProto);
        value = sequence(inner);
      } else if (reader.field() == f::map_value) {
        WireReader inner = reader.message(ProtoMessage::MapProto);
        value = map(inner);
      }
    }
    return value;
  }

  // Its values are one sequence, of which each is a tensor of one element.
  ModelValue map(WireReader& reader) const {
    namespace f = field::MapProto;
    ModelValue value, keys, values;
    Ints numbers;
    value.kind = Kind::Map;
    while (reader.next()) {
      if (reader.field() == f::keys) {
        reader.append_integers(numbers, kKeysMax);
      } else if (reader.field() == f::string_keys) {
        keys.texts.push_back(reader.text());
      } else if (reader.field() == f::values) {
        WireReader inner = reader.message(ProtoMessage::SequenceProto);
        values = sequence(inner);
      }
    }
    const bool are_texts = numbers.empty() && !keys.texts.empty();
    keys.kind = are_texts ? Kind::Texts : Kind::Tensor;
    if (are_texts)
      keys.shape = {std::ssize(keys.texts)};
    else
      keys.tensor = from_data(context_, kInt64, {std::ssize(numbers)}, numbers.data(),
                              std::ssize(numbers) * static_cast<int64_t>(sizeof(int64_t)));
    reader.check(values.elements.size() == (are_texts ? keys.texts.size() : numbers.size()),
                 "a map of ", keys.texts.size() + numbers.size(), " keys and ",
                 values.elements.size(), " values");
    value.elements = {std::move(keys), joined(reader, values)};
    return value;
  }

  // The whole file as one message.
  template <auto kPart>
  ModelValue read(const SharedBytes& bytes, ProtoMessage message, Budget& budget) const {
    WireReader reader(bytes.text(), message, budget);
    return (this->*kPart)(reader);
  }

 private:
  static constexpr int64_t kKeysMax = int64_t{1} << 24;

  Tensor tensor_of(const HostTensor& host) const {
    return from_data(context_, host.dtype, host.shape, host.bytes.data(), host.bytes.size());
  }

  // Values of one element each as one row of them.
  ModelValue joined(const WireReader& reader, const ModelValue& sequence) const {
    ModelValue out;
    Tensors parts;
    for (const ModelValue& one : sequence.elements) {
      if (one.kind == Kind::Texts)
        out.texts.insert(out.texts.end(), one.texts.begin(), one.texts.end());
      else
        parts.push_back(reshape(one.tensor, {1}));
    }
    reader.check(parts.empty() || out.texts.empty(), "a map of texts and numbers");
    out.kind = parts.empty() ? Kind::Texts : Kind::Tensor;
    out.shape = {std::ssize(out.texts)};
    if (!parts.empty()) out.tensor = concat(parts, 0);
    return out;
  }

  const Ref<Context>& context_;
  TensorSource source_;
};

}  // namespace

ModelValue read_value(const Ref<Context>& context, const std::string& path, FileValue kind) {
  const Limits limits;
  const SharedBytes bytes =
      open_file(path, {true, Ref<MemoryUse>(&context->device().memory()), &context->stop()},
                limits.model_bytes);
  const Reader values(context, {bytes.owner(), nullptr});
  Budget budget{.limits = limits};
  try {
    switch (kind) {
      case FileValue::Tensor:
        return values.read<&Reader::tensor>(bytes, ProtoMessage::TensorProto, budget);
      case FileValue::Sequence:
        return values.read<&Reader::sequence>(bytes, ProtoMessage::SequenceProto, budget);
      case FileValue::Optional:
        return values.read<&Reader::optional>(bytes, ProtoMessage::OptionalProto, budget);
      case FileValue::Map:
        break;
    }
    return values.read<&Reader::map>(bytes, ProtoMessage::MapProto, budget);
  } catch (const Error& e) {
    throw e.at(path).in_file(path);
  }
}

}  // namespace tiny::onnx
