#include "onnx/export/recognize.h"

#include <algorithm>

#include "base/error.h"
#include "onnx/export/export.h"
#include "onnx/export/guess.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "tensor/create.h"

namespace tiny::onnx {

namespace {

// Larger operators first.
constexpr Guess kRules[] = {
    guess_conv,       guess_gemm,    guess_matmul,       guess_max_pool, guess_layer_norm,
    guess_batch_norm, guess_softmax, guess_average_pool, guess_mean,     guess_function,
    guess_gather,     guess_top_k,   guess_lrn,          guess_slope,    guess_hard_sigmoid};

// Whether the operator of the guess takes such elements: the importer takes more than ONNX allows.
bool takes(const std::string& op_type, DType dtype) {
  if (dtype.is_float() || op_type == "Gather" || op_type == "TopK") return true;
  if (op_type == "MatMul" || op_type == "Gemm") return dtype.is_int() && dtype.bits() >= 32;
  if (op_type == "MaxPool") return dtype.is_int() && dtype.bits() == 8;
  // onnxruntime has it of no others.
  return op_type == "Relu" && dtype.is_signed() && (dtype.bits() == 8 || dtype.bits() == 32);
}

// Whether the importer makes this very node of the guess.
bool makes(const Ref<Context>& context, const Recognized& guess, const UOp& node) {
  onnx::Node call;
  call.op_type = guess.op_type;
  call.version = kWrittenOpset;
  const Row* row = find_row("", guess.op_type, kWrittenOpset);
  invariant(row != nullptr, "the importer knows what is exported");
  std::vector<Value> inputs;
  for (const UOp& input : guess.inputs)
    inputs.push_back({input ? Tensor(context, input) : Tensor(), nullptr, nullptr});
  if (!guess.axes.empty())
    inputs.push_back({from_data(context, kInt64, {std::ssize(guess.axes)}, guess.axes.data(),
                                std::ssize(guess.axes) * int64_t{sizeof(int64_t)}),
                      nullptr, nullptr});
  for (size_t i = 0; i < inputs.size(); ++i) call.inputs.push_back(cat("i", i));
  for (size_t i = 0; i <= guess.output; ++i) call.outputs.push_back(cat("o", i));
  call.attributes = guess.attributes;
  try {
    Weights constants;
    const Tensors made = Importer(context, constants).apply(call, std::move(inputs));
    return made[guess.output].node() == node;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

Attribute int_attribute(std::string name, int64_t value) {
  Attribute a;
  a.name = std::move(name);
  a.type = AttributeType::Int;
  a.i = value;
  return a;
}

Attribute ints_attribute(std::string name, Ints values) {
  Attribute a;
  a.name = std::move(name);
  a.type = AttributeType::Ints;
  a.ints = std::move(values);
  return a;
}

Attribute real_attribute(std::string name, float value) {
  Attribute a;
  a.name = std::move(name);
  a.type = AttributeType::Float;
  a.f = value;
  return a;
}

std::vector<UOp> hidden_results(const UOp& node) {
  if (node.op() != Op::Reshape || node.src(0).op() != Op::ReduceAxis) return {};
  const UOp& fold = node.src(0);
  const Ints& axes = fold.reduce_arg().axes;
  Shape left;
  for (size_t i = 0; i < shape_of(fold).size(); ++i)
    if (std::ranges::find(axes, static_cast<int64_t>(i)) == axes.end())
      left.push_back(shape_of(fold)[i]);
  std::vector<UOp> results{make_reshape(fold, left)};
  if (left.size() < 3) return results;
  // A convolution has groups beside its channels.
  left[1] = left[1] * left[2];
  left.erase(left.begin() + 2);
  results.push_back(make_reshape(fold, left));
  return results;
}

std::optional<Recognized> recognize(const Ref<Context>& context, const UOp& node) {
  for (const Guess rule : kRules) {
    Guesses guesses;
    rule(node, guesses);
    for (Recognized& guess : guesses)
      if (std::ranges::find(guess.inputs, node) == guess.inputs.end() &&
          takes(guess.op_type, guess.inputs[0].dtype()) && makes(context, guess, node))
        return std::move(guess);
  }
  return std::nullopt;
}

}  // namespace tiny::onnx
