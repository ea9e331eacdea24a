#include "onnx/import/complex.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"
#include "io/tensor_pb.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

// What an operator does with complex numbers.
enum class Treatment : uint8_t {
  Whole,  // hands pairs on, or knows them
  Parts,  // does the same with both parts
  Sizes,  // asks for the shape alone
  Truth,  // asks which are not zero
};

struct Taker {
  std::string_view op_type;
  Treatment treatment;
};

// clang-format off
constexpr Taker kTakers[] = {
    {"BitCast",            Treatment::Whole},
    {"CenterCropPad",      Treatment::Parts},
    {"Col2Im",             Treatment::Parts},
    {"Compress",           Treatment::Parts},
    {"Concat",             Treatment::Parts},
    {"ConcatFromSequence", Treatment::Parts},
    {"Constant",           Treatment::Whole},
    {"DepthToSpace",       Treatment::Parts},
    {"Expand",             Treatment::Parts},
    {"Flatten",            Treatment::Parts},
    {"Gather",             Treatment::Parts},
    {"GatherElements",     Treatment::Parts},
    {"GatherND",           Treatment::Parts},
    {"GridSample",         Treatment::Parts},
    {"Identity",           Treatment::Whole},
    {"If",                 Treatment::Whole},
    {"Loop",               Treatment::Whole},
    {"NonZero",            Treatment::Truth},
    {"OneHot",             Treatment::Parts},
    {"Optional",           Treatment::Whole},
    {"OptionalGetElement", Treatment::Whole},
    {"OptionalHasElement", Treatment::Whole},
    {"Pad",                Treatment::Parts},
    {"RandomNormalLike",   Treatment::Sizes},
    {"RandomUniformLike",  Treatment::Sizes},
    {"Reshape",            Treatment::Parts},
    {"Resize",             Treatment::Parts},
    {"ReverseSequence",    Treatment::Parts},
    {"Scan",               Treatment::Whole},
    {"Scatter",            Treatment::Parts},
    {"ScatterElements",    Treatment::Parts},
    {"ScatterND",          Treatment::Parts},
    {"SequenceAt",         Treatment::Whole},
    {"SequenceConstruct",  Treatment::Whole},
    {"SequenceEmpty",      Treatment::Whole},
    {"SequenceErase",      Treatment::Whole},
    {"SequenceInsert",     Treatment::Whole},
    {"SequenceLength",     Treatment::Whole},
    {"SequenceMap",        Treatment::Whole},
    {"Shape",              Treatment::Sizes},
    {"Size",               Treatment::Sizes},
    {"Slice",              Treatment::Parts},
    {"SpaceToDepth",       Treatment::Parts},
    {"Split",              Treatment::Parts},
    {"SplitToSequence",    Treatment::Parts},
    {"Squeeze",            Treatment::Parts},
    {"TensorScatter",      Treatment::Parts},
    {"Tile",               Treatment::Parts},
    {"Transpose",          Treatment::Parts},
    {"Trilu",              Treatment::Parts},
    {"Unsqueeze",          Treatment::Parts},
    {"Upsample",           Treatment::Parts},
    {"Where",              Treatment::Parts},
};
// clang-format on

const Taker* taker(const Node& node) {
  if (!node.domain.empty()) return nullptr;
  const auto* found = std::ranges::find(kTakers, node.op_type, &Taker::op_type);
  return found == std::end(kTakers) ? nullptr : found;
}

// The type of the first complex input; 0 where there is none.
int32_t complex_type(const Call& call) {
  for (size_t i = 0; i < call.inputs(); ++i)
    if (is_complex(call.carried(i))) return call.carried(i);
  return 0;
}

Tensor part_of(const Tensor& pairs, int64_t part) {
  return squeeze(slice_axis(pairs, -1, part, part + 1), {-1});
}

// The inputs with one part of those that are complex.
Values inputs_of(const Call& call, int64_t part) {
  Values inputs;
  for (size_t i = 0; i < call.inputs(); ++i) {
    Value& input = inputs.emplace_back(call.input(i));
    if (!is_complex(input.carried)) continue;
    input.carried = 0;
    input.known = nullptr;
    if (input.tensor) input.tensor = part_of(input.tensor, part);
    if (!input.sequence) continue;
    Tensors parts;
    for (const Tensor& pairs : *input.sequence) parts.push_back(part_of(pairs, part));
    input.sequence = std::make_shared<const Tensors>(std::move(parts));
  }
  return inputs;
}

Tensor joined(const Tensor& real, const Tensor& imaginary) {
  return stack(std::vector{real, imaginary}, -1);
}

Tensors joined(const Tensors& real, const Tensors& imaginary) {
  Tensors pairs;
  for (size_t i = 0; i < real.size(); ++i) pairs.push_back(joined(real[i], imaginary[i]));
  return pairs;
}

// Which of the elements are not zero, instead of them.
Tensors of_truth(Call& call, ImportFunction import) {
  const auto is_some = [&](int64_t part) {
    return not_equal(part_of(call.in(0), part), number_int(call, 0));
  };
  Call of_bools(call.importer(), call.node(), {{bit_or(is_some(0), is_some(1))}});
  return import(of_bools);
}

}  // namespace

bool takes_complex(const Node& node) {
  return taker(node) != nullptr;
}

bool is_of_parts(const Node& node, const Call& call) {
  const Taker* of = taker(node);
  return of && of->treatment != Treatment::Whole && complex_type(call) != 0;
}

Tensors by_parts(Call& call, ImportFunction import) {
  const int32_t type = complex_type(call);
  const Treatment treatment = taker(call.node())->treatment;
  if (treatment == Treatment::Truth) return of_truth(call, import);
  Call of_real(call.importer(), call.node(), inputs_of(call, 0));
  const Tensors real = import(of_real);
  if (treatment == Treatment::Sizes) return real;
  const std::string reduction = call.text_attr("reduction", "none");
  call.check(reduction == "none" || reduction == "add", "reduction \"", reduction,
             "\" of complex numbers");
  Call of_imaginary(call.importer(), call.node(), inputs_of(call, 1));
  const Tensors imaginary = import(of_imaginary);
  for (size_t i = 0; i < call.outputs(); ++i) {
    const Value a = of_real.made(i), b = of_imaginary.made(i);
    if (a.sequence) call.set_sequence(i, joined(*a.sequence, *b.sequence));
    if (!a.sequence) call.set_carried(i, type);
  }
  return joined(real, imaginary);
}

int64_t carrier_axis(int64_t axis, int32_t type) {
  return is_complex(type) && axis < 0 ? axis - 1 : axis;
}

Tensor bits_of_complex(const Tensor& pairs) {
  const auto word = [&](int64_t part) {
    return cast(bitcast(part_of(pairs, part), kUInt32), kUInt64);
  };
  const Tensor high = word(1);
  return bit_or(word(0), shift_left(high, tiny::number_int(high, 32)));
}

Tensor complex_of_bits(const Tensor& bits) {
  const Tensor whole = bitcast(bits, kUInt64);
  const Tensor high = shift_right(whole, tiny::number_int(whole, 32));
  const auto part = [](const Tensor& word) { return bitcast(cast(word, kUInt32), kFloat32); };
  return joined(part(bit_and(whole, tiny::number_int(whole, UINT32_MAX))), part(high));
}

}  // namespace tiny::onnx
