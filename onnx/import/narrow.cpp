#include "onnx/import/narrow.h"

#include <algorithm>

#include "base/error.h"
#include "onnx/import/complex.h"
#include "onnx/import/functions.h"
#include "onnx/import/ml.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/narrow.h"
#include "tensor/quantization.h"

namespace tiny::onnx {

namespace {

// Those that hand elements on, whatever they are.
constexpr std::string_view kMovers[] = {"Identity",  "Reshape", "Transpose", "Squeeze",
                                        "Unsqueeze", "Flatten", "Slice",     "Gather",
                                        "Expand",    "Tile",    "Split"};
constexpr std::string_view kTakers[] = {"BitCast", "Cast", "CastLike", "Constant", "Shape", "Size"};
// Of the standard, and before that had these types of com.microsoft.
constexpr std::string_view kQuantizers[] = {"QuantizeLinear", "DequantizeLinear"};
// More of both where the elements are texts: of ai.onnx and of ai.onnx.ml.
constexpr std::string_view kTextMovers[] = {"Compress",        "Concat",    "ConcatFromSequence",
                                            "GatherElements",  "GatherND",  "ReverseSequence",
                                            "ScatterElements", "ScatterND", "SequenceAt",
                                            "StringNormalizer"};
constexpr std::string_view kTextTakers[] = {"Equal",
                                            "If",
                                            "Loop",
                                            "OneHot",
                                            "Optional",
                                            "OptionalGetElement",
                                            "OptionalHasElement",
                                            "RegexFullMatch",
                                            "Scan",
                                            "SequenceConstruct",
                                            "SequenceEmpty",
                                            "SequenceErase",
                                            "SequenceInsert",
                                            "SequenceLength",
                                            "SequenceMap",
                                            "SplitToSequence",
                                            "StringConcat",
                                            "StringSplit",
                                            "TfIdfVectorizer",
                                            "Unique",
                                            "Where"};
constexpr std::string_view kMlTextTakers[] = {"ArrayFeatureExtractor",  "CastMap",
                                              "CategoryMapper",         "DictVectorizer",
                                              "LabelEncoder",           "LinearClassifier",
                                              "OneHotEncoder",          "SVMClassifier",
                                              "TreeEnsembleClassifier", "ZipMap"};

constexpr std::string_view kContributedTextTakers[] = {"Tokenizer"};

bool is_one_of(const Node& node, std::span<const std::string_view> names,
               std::string_view domain = "") {
  return node.domain == domain && std::ranges::find(names, node.op_type) != names.end();
}

bool quantizes(const Node& node) {
  return is_one_of(node, kQuantizers) || is_one_of(node, kQuantizers, kContributed);
}

// The format of a float type; none for integers.
std::optional<Narrow> format_of(int32_t type) {
  constexpr std::pair<int32_t, Narrow> kFormats[] = {
      {17, Narrow::Float8E4M3FN},   {18, Narrow::Float8E4M3FNUZ}, {19, Narrow::Float8E5M2},
      {20, Narrow::Float8E5M2FNUZ}, {23, Narrow::Float4E2M1},     {24, Narrow::Float8E8M0}};
  for (const auto& [number, format] : kFormats)
    if (number == type) return format;
  return std::nullopt;
}

constexpr Named<NarrowRounding> kRoundings[] = {{"up", NarrowRounding::Up},
                                                {"down", NarrowRounding::Down},
                                                {"nearest", NarrowRounding::Nearest}};

bool takes_narrow(const Node& node) {
  return is_one_of(node, kMovers) || is_one_of(node, kTakers) || quantizes(node);
}

bool takes_texts(const Node& node) {
  return (takes_narrow(node) && !quantizes(node)) || is_one_of(node, kTextMovers) ||
         is_one_of(node, kTextTakers) || is_one_of(node, kMlTextTakers, kMl) ||
         is_one_of(node, kContributedTextTakers, kContributed);
}

}  // namespace

bool moves_narrow(const Node& node) {
  return is_one_of(node, kMovers) || is_one_of(node, kTextMovers);
}

int32_t moved_narrow(const Node& node, const Call& call) {
  return is_one_of(node, kMovers) || is_text(call, 0) ? call.carried(0) : 0;
}

bool takes_carried(const Node& node, int32_t type) {
  if (type == kTextType) return takes_texts(node);
  return is_complex(type) ? takes_complex(node) : takes_narrow(node);
}

void require_takes_carried(const Node& node, const std::vector<Value>& inputs) {
  for (const Value& input : inputs)
    require(input.carried == 0 || takes_carried(node, input.carried), Status::Unsupported,
            "the element type ", tensor_type_name(input.carried),
            " is not supported by this operator");
}

int32_t carried_input(const Graph& graph, const std::string& name) {
  for (const ValueInfo& info : graph.inputs) {
    if (info.name != name || info.type.kind != ValueType::Kind::Tensor) continue;
    const TensorTypeInfo* type = tensor_type(info.type.elem_type);
    return type && is_carried(*type) ? type->number : 0;
  }
  return 0;
}

Tensor unpacked(const Tensor& bytes, const TensorData& tensor) {
  const TensorTypeInfo& type = *tensor_type(tensor.type);
  const Tensor all = slice_axis(unpack_bits(bytes, type.bits), 0, 0, tensor.count);
  const Tensor shaped = reshape(all, to_shape(tensor.dims));
  if (carrier_of(type) == kUInt8) return shaped;
  const Tensor sign = number_int(shaped, 1 << (type.bits - 1));
  return cast(bit_xor(shaped, sign), kInt8) - cast(sign, kInt8);
}

Tensor widened(const Tensor& x, int32_t type) {
  const std::optional<Narrow> format = format_of(type);
  return format ? from_narrow(x, *format, kFloat32) : x;
}

Tensor narrow_of_bits(const Tensor& bits, int32_t type) {
  const TensorTypeInfo& info = *tensor_type(type);
  const Tensor wide = cast(bits, kInt32);
  const Tensor low = bit_and(wide, tiny::number_int(wide, (1 << info.bits) - 1));
  if (carrier_of(info) == kUInt8) return cast(low, kUInt8);
  const Tensor sign = tiny::number_int(wide, 1 << (info.bits - 1));
  return cast(bit_xor(low, sign) - sign, kInt8);
}

Tensor narrowed(const Call& c, const Tensor& x, int32_t type) {
  if (const auto format = format_of(type))
    return to_narrow(x, *format, c.flag("saturate", true),
                     named_attr<NarrowRounding>(c, "round_mode", "up", kRoundings));
  return narrow_of_bits(cast(x, kInt32), type);
}

}  // namespace tiny::onnx
