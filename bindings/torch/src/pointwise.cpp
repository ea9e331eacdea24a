#include "pointwise.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ScalarOps.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/result_type.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "call.h"
#include "fallback.h"

namespace tiny_torch {

namespace {

using Tensors = c10::SmallVector<at::Tensor, 4>;
using c10::Argument;
using c10::FunctionSchema;

bool is_written(const Argument& argument) {
  return argument.alias_info() && argument.alias_info()->isWrite();
}

bool is_tensor(const Argument& argument) {
  return argument.type()->isSubtypeOf(*c10::OptionalType::ofTensor());
}

// Numbers by these names are operands: they take part in promotion as numbers do.
bool is_number_operand(const Argument& argument) {
  constexpr std::string_view kNames[] = {"self", "other", "exponent", "min", "max", "from_"};
  const std::string text = argument.type()->str();
  return text.starts_with("Scalar") &&
         std::find(std::begin(kNames), std::end(kNames), argument.name()) != std::end(kNames);
}

// One form of an operator: where its operands, parameters and result are among the arguments.
class PointwiseKernel final : public c10::OperatorKernel {
 public:
  PointwiseKernel(const PointwiseRow& row, const FunctionSchema& schema, Steps steps)
      : row_(row), steps_(steps), count_(schema.arguments().size()) {
    for (size_t i = 0; i < count_; ++i) {
      const Argument& argument = schema.arguments()[i];
      if (is_written(argument)) target_ = static_cast<int64_t>(i);
      if (is_written(argument) && argument.kwarg_only()) continue;
      if (is_tensor(argument) || is_number_operand(argument)) {
        operands_.push_back(i);
      } else {
        parameters_.push_back(i);
      }
    }
  }

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
    if (meets_complex(*stack, count_)) return fall_back(op, stack);
    const c10::IValue* const arguments = &*(stack->end() - static_cast<int64_t>(count_));
    at::Tensor result = compute(arguments);
    torch::jit::drop(*stack, count_);
    stack->emplace_back(std::move(result));
  }

 private:
  at::Tensor compute(const c10::IValue* arguments) const {
    Operands operands;
    for (const size_t index : parameters_) operands.parameters.push_back(&arguments[index]);
    Tensors tensors;
    for (const size_t index : operands_) tensors.push_back(operand(arguments[index]));
    if (row_.refuse) row_.refuse({tensors.data(), tensors.size()}, operands);
    at::Tensor result = target_ < 0 ? at::Tensor() : arguments[target_].toTensor();
    Types types = row_.types;
    if (types == Types::Division) types = operands.has(0) ? Types::Same : Types::Float;
    const std::optional<at::ScalarType> same = prepare_alike(types, tensors, result);
    const at::ScalarType common = same ? *same : prepare(types, tensors, result);
    if (types != Types::Own) operands.dtype = dtype_of(common);
    if (steps_ == Steps::Several) operands.dtype = wide(operands.dtype);
    for (size_t i = 0; i < tensors.size(); ++i)
      operands.x.push_back(as_operand(tensors[i], types, i, operands.dtype));
    if (types == Types::Own && !tensors.empty()) operands.dtype = operands.x[0].dtype();
    put(result, row_.compute(operands), operands, tensors);
    return result;
  }

  // What came back as it went in is another tensor's value, too.
  static void put(const at::Tensor& result, const Value& value, const Operands& operands,
                  const Tensors& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i)
      if (operands[i].handle() == value.handle() && tensors[i].is_privateuseone())
        return write(result, read(tensors[i]));
    write_new(result, value);
  }

  static at::Tensor operand(const c10::IValue& given) {
    if (given.isTensor()) return given.toTensor();
    if (given.isNone()) return {};
    return at::native::wrapped_scalar_tensor(given.toScalar());
  }

  // Without holes, and with the only strides that say so.
  static bool lies_plainly(const at::Tensor& tensor) {
    const at::IntArrayRef sizes = tensor.sizes();
    return tensor.dim() > 0 && tensor.is_non_overlapping_and_dense() &&
           std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size > 1; });
  }

  // Most often there is nothing to decide: tensors of one dtype, which lie alike without holes, and
  // numbers that do not change the dtype.
  static std::optional<at::ScalarType> prepare_alike(Types types, const Tensors& tensors,
                                                     at::Tensor& result) {
    if (types != Types::Same && types != Types::Float) return std::nullopt;
    const at::Tensor* first = nullptr;
    for (const at::Tensor& tensor : tensors) {
      if (!tensor.defined()) return std::nullopt;
      if (is_number(tensor)) continue;
      if (!first) first = &tensor;
      if (!tensor.is_privateuseone() || tensor.scalar_type() != first->scalar_type() ||
          tensor.sizes() != first->sizes() || tensor.strides() != first->strides())
        return std::nullopt;
    }
    if (!first || !first->is_floating_point() || !lies_plainly(*first)) return std::nullopt;
    if (!result.defined()) {
      constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);
      result = at::detail::empty_strided_generic(first->sizes(), first->strides(), allocator(),
                                                 kKeys, first->scalar_type());
      return first->scalar_type();
    }
    // In place: the first operand itself, and no other part of its storage.
    if (!result.is_same(*first)) return std::nullopt;
    for (const at::Tensor& tensor : tensors)
      if (!tensor.is_same(result) && tensor.is_alias_of(result)) return std::nullopt;
    return result.scalar_type();
  }

  // Decides the result's sizes, strides and dtype, and makes it unless it is there.
  static at::ScalarType prepare(Types types, const Tensors& tensors, at::Tensor& result) {
    at::TensorIteratorConfig config;
    config.allow_cpu_scalars(true).add_output(result).check_all_same_dtype(false);
    const bool is_bool = types == Types::Compare || types == Types::Own;
    // TensorIterator takes one number; of more than one the common dtype is found before.
    const bool has_numbers = std::count_if(tensors.begin(), tensors.end(), is_number) > 1;
    for (const at::Tensor& tensor : tensors)
      if (tensor.defined() && !(has_numbers && is_number(tensor))) config.add_const_input(tensor);
    at::ScalarType common = at::kBool;
    const bool is_decided = types == Types::Condition || has_numbers;
    if (types == Types::Condition) common = at::result_type(tensors[1], tensors[2]);
    if (has_numbers) common = promoted(tensors);
    if (is_decided && result.defined()) check_cast(common, result);
    if (!result.defined() && (is_bool || is_decided))
      config.declare_static_dtype(is_bool ? at::kBool : common);
    if (!is_decided && types != Types::Own) {
      config.promote_inputs_to_common_dtype(true);
      if (!is_bool) config.cast_common_dtype_to_outputs(true).enforce_safe_casting_to_output(true);
      if (types == Types::Float) config.promote_integer_inputs_to_float(true);
    }
    at::TensorIterator iterator = config.build();
    result = iterator.output(0);
    return is_decided || types == Types::Own ? common : iterator.common_dtype();
  }

  static bool is_number(const at::Tensor& tensor) {
    return tensor.defined() && tensor.is_cpu() && tensor.dim() == 0;
  }
  static at::ScalarType promoted(const Tensors& tensors) {
    at::native::ResultTypeState state;
    for (const at::Tensor& tensor : tensors)
      if (tensor.defined()) state = at::native::update_result_type_state(tensor, state);
    return at::native::result_type(state);
  }
  static void check_cast(at::ScalarType common, const at::Tensor& result) {
    TORCH_CHECK(at::canCast(common, result.scalar_type()), "result type ", common,
                " can't be cast to the desired output type ", result.scalar_type());
  }

  static Value as_operand(const at::Tensor& tensor, Types types, size_t index, tiny_dtype common) {
    if (!tensor.defined()) return {};
    const bool keeps = types == Types::Own || (types == Types::Condition && index == 0);
    if (tensor.is_privateuseone())
      return keeps ? read_operand(tensor) : cast(read_operand(tensor), common);
    return value_of_number(tensor.item(), keeps ? dtype_of(tensor.scalar_type()) : common);
  }

  const PointwiseRow& row_;
  Steps steps_;
  size_t count_;
  int64_t target_ = -1;
  std::vector<size_t> operands_, parameters_;
};

const std::multimap<std::string, c10::OperatorName>& names_known() {
  static const auto& known = *[] {
    auto* const made = new std::multimap<std::string, c10::OperatorName>;
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames())
      made->emplace(name.name, name);
    return made;
  }();
  return known;
}

// The types of the arguments, results that a caller brings left out.
std::string signature(const FunctionSchema& schema) {
  std::string text;
  for (const Argument& argument : schema.arguments())
    if (!(is_written(argument) && argument.kwarg_only()))
      text += argument.name() + ":" + argument.type()->str() + ";";
  return text;
}

}  // namespace

Value Operands::number(size_t parameter) const {
  return value_of_number(parameters[parameter]->toScalar(), dtype);
}

void add_pointwise(torch::Library& library, std::span<const PointwiseRow> rows, Steps steps) {
  const auto& known = names_known();
  for (const PointwiseRow& row : rows) {
    const std::string name = std::string("aten::") + row.name;
    const std::string base = name.substr(0, name.find('.'));
    const std::string overload = base == name ? "" : name.substr(base.size() + 1);
    const auto functional =
        c10::Dispatcher::singleton().findSchemaOrThrow(base.c_str(), overload.c_str());
    const std::string wanted = signature(functional.schema());
    for (const std::string& form : {base, base + "_"}) {
      const auto [begin, end] = known.equal_range(form);
      for (auto it = begin; it != end; ++it) {
        const auto op = c10::Dispatcher::singleton().findSchema(it->second);
        // What PyTorch makes of other operators has its gradient through them.
        if (!op || signature(op->schema()) != wanted || op->schema().returns().size() != 1 ||
            op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd))
          continue;
        library.impl(c10::toString(it->second).c_str() + std::string_view("aten::").size(),
                     torch::CppFunction::makeFromBoxedFunctor(
                         std::make_unique<PointwiseKernel>(row, op->schema(), steps)));
      }
    }
  }
}

}  // namespace tiny_torch
