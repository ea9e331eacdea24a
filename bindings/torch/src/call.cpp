#include "call.h"

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>

#include <algorithm>
#include <numeric>

#include "fallback.h"

namespace tiny_torch {

namespace {

bool is_brought(const c10::Argument& argument) {
  return argument.kwarg_only() && argument.alias_info() && argument.alias_info()->isWrite();
}

// What a caller brought for a result shares no element with itself, nor some with an argument.
void refuse_overlaps(const c10::FunctionSchema& schema, const c10::IValue* given) {
  const auto& arguments = schema.arguments();
  size_t k = arguments.size();
  while (k > 0 && is_brought(arguments[k - 1])) {
    --k;
    const at::Tensor& out = given[k].toTensor();
    at::assert_no_internal_overlap(out);
    for (size_t i = 0; i < k; ++i) {
      if (given[i].isTensor() && given[i].toTensor().defined() && !is_brought(arguments[i])) {
        at::assert_no_partial_overlap(out, given[i].toTensor());
      } else if (given[i].isTensorList()) {
        for (const at::Tensor& one : given[i].toTensorVector()) at::assert_no_overlap(out, one);
      }
    }
  }
}

class RowKernel final : public c10::OperatorKernel {
 public:
  explicit RowKernel(void (*compute)(Call&)) : compute_(compute) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
    const size_t count = op.schema().arguments().size();
    if (meets_complex(*stack, count)) return fall_back(op, stack);
    if (count && is_brought(op.schema().arguments().back()))
      refuse_overlaps(op.schema(), &*(stack->end() - static_cast<int64_t>(count)));
    Call call(op.schema(), *stack);
    compute_(call);
    call.finish();
  }

 private:
  void (*compute_)(Call&);
};

}  // namespace

Call::Call(const c10::FunctionSchema& schema, torch::jit::Stack& stack)
    : schema_(schema),
      stack_(stack),
      first_(stack.size() - schema.arguments().size()),
      results_(schema.returns().size()) {
  // What is written and given back; running statistics are written, and no result.
  size_t argument_index = 0;
  const auto& arguments = schema.arguments();
  for (size_t k = 0; k < results_.size(); ++k) {
    const auto* const alias = schema.returns()[k].alias_info();
    if (!alias || !alias->isWrite()) continue;
    while (!arguments[argument_index].alias_info() ||
           !arguments[argument_index].alias_info()->isWrite())
      ++argument_index;
    results_[k] = tensor(argument_index++);
  }
}

bool Call::has(size_t index) const {
  const c10::IValue& given = argument(index);
  return !given.isNone() && !(given.isTensor() && !given.toTensor().defined());
}

Value Call::value(size_t index) const {
  const at::Tensor& given = tensor(index);
  if (given.is_privateuseone()) return read(given);
  TORCH_CHECK(given.is_cpu() && given.dim() == 0, schema_.name(),
              ": Expected all tensors to be on the same device, but found at least two devices, "
              "tiny:0 and ",
              given.device(), "!");
  return value_of_number(given.item(), dtype_of(given.scalar_type()));
}

Value Call::operand(size_t index) const {
  const at::Tensor& given = tensor(index);
  return given.is_privateuseone() ? read_operand(given) : value(index);
}

std::vector<Value> Call::values(size_t index) const {
  std::vector<Value> values;
  for (const at::Tensor& tensor : argument(index).toTensorVector()) values.push_back(read(tensor));
  return values;
}

std::optional<at::Generator> Call::generator(size_t index) const {
  if (argument(index).isNone()) return std::nullopt;
  return argument(index).toGenerator();
}

void Call::give(size_t index, const Value& value, at::MemoryFormat format) {
  at::Tensor& result = results_[index];
  if (!result.defined()) {
    result = tensor_of(value, format);
    return;
  }
  const Sizes shape = value.shape();
  if (result.sizes() != at::IntArrayRef(shape)) at::native::resize_output(result, shape);
  write(result, value);
}

void Call::give(size_t index, at::Tensor tensor) {
  results_[index] = std::move(tensor);
}

void Call::give_later(size_t index, at::IntArrayRef sizes, at::ScalarType type,
                      std::function<Value()> make, at::MemoryFormat format) {
  at::Tensor& result = results_[index];
  if (!result.defined()) result = empty_tensor(sizes, type, format);
  if (result.sizes() != sizes || result.scalar_type() != type) return give(index, make());
  write_later(result, std::move(make));
}

void Call::finish() {
  torch::jit::drop(stack_, schema_.arguments().size());
  for (at::Tensor& result : results_) stack_.emplace_back(std::move(result));
}

void add_rows(torch::Library& library, std::span<const Row> rows) {
  for (const Row& row : rows)
    library.impl(row.name, torch::CppFunction::makeFromBoxedFunctor(
                               std::make_unique<RowKernel>(row.compute)));
}

Value value_of_number(const at::Scalar& given, tiny_dtype dtype) {
  if (given.isUnsigned() && dtype < TINY_FLOAT16) {  // more than a signed one can be
    const uint64_t value = given.toUInt64();
    return cast(from_data(TINY_UINT64, {}, &value, sizeof value), dtype);
  }
  if (given.isIntegral(true) && !given.isUnsigned()) {
    const int64_t value = given.toLong();
    return dtype >= TINY_FLOAT16 ? number(dtype, static_cast<double>(value))
                                 : integer(dtype, value);
  }
  return number(dtype, given.toDouble());
}

at::Tensor empty_tensor(at::IntArrayRef sizes, at::ScalarType type, at::MemoryFormat format) {
  constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);
  return at::detail::empty_generic(sizes, allocator(), kKeys, type, format);
}

at::Tensor tensor_of(const Value& value, at::MemoryFormat format) {
  const Sizes shape = value.shape();
  at::Tensor made = empty_tensor(shape, scalar_type_of(value.dtype()), format);
  write(made, value);
  return made;
}

Sizes axes_of(const c10::IValue& given, int64_t rank) {
  Sizes axes;
  if (given.isInt()) axes = {given.toInt()};
  if (given.isIntList()) axes = given.toIntVector();
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), int64_t{0});
    return axes;
  }
  for (int64_t& axis : axes) axis = at::maybe_wrap_dim(axis, rank);
  if (rank == 0) return {};
  std::sort(axes.begin(), axes.end());
  for (size_t i = 1; i < axes.size(); ++i)
    TORCH_CHECK(axes[i] != axes[i - 1], "dim ", axes[i],
                " appears multiple times in the list of dims");
  return axes;
}

tiny_dtype wide(tiny_dtype dtype) {
  return dtype == TINY_FLOAT16 || dtype == TINY_BFLOAT16 ? TINY_FLOAT32 : dtype;
}

}  // namespace tiny_torch
