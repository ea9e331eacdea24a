#include "onnx/output_types.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace tiny::onnx {

namespace {

bool is_said(const Dim& dim) {
  return dim.is_known() || !dim.name.empty();
}

OutputType declared_type(const ValueInfo& info) {
  OutputType out;
  if (info.type.kind != ValueType::Kind::Tensor) return out;
  const TensorTypeInfo* type = tensor_type(info.type.elem_type);
  if (type && carrier_of(*type) != kVoid) out.dtype = carrier_of(*type);
  if (info.type.has_rank) out.dims = info.type.dims;
  return out;
}

bool is_complete(const ValueInfo& info, const OutputType& type) {
  using Kind = ValueType::Kind;
  if (info.type.kind != Kind::Tensor) return info.type.kind != Kind::None;
  return type.dtype && type.dims && std::ranges::all_of(*type.dims, is_said);
}

// Puts what was inferred where the file says nothing.
void fill(OutputType& type, const Tensor& inferred) {
  if (!type.dtype) type.dtype = inferred.dtype();
  const Shape& shape = inferred.shape();
  if (!type.dims) type.dims.emplace(shape.size());
  if (type.dims->size() != shape.size()) return;  // the file's word stands
  for (size_t i = 0; i < shape.size(); ++i) {
    Dim& dim = (*type.dims)[i];
    if (is_said(dim)) continue;
    if (shape[i].is_const())
      dim.value = shape[i].value();
    else
      dim.name = to_string(shape[i]);
  }
}

}  // namespace

OutputTypes::~OutputTypes() {
  for (const Inferred* at = last_.load(); at;) delete std::exchange(at, at->before);
}

void OutputTypes::declare(const std::vector<ValueInfo>& outputs) {
  for (const ValueInfo& info : outputs) {
    declared_.push_back(declared_type(info));
    complete_.push_back(is_complete(info, declared_.back()));
  }
}

const OutputType* OutputTypes::find(size_t index, size_t operators) const {
  if (complete_[index]) return &declared_[index];
  for (const Inferred* at = last_.load(std::memory_order_acquire); at; at = at->before)
    if (at->operators == operators) return &at->types[index];
  return nullptr;
}

void OutputTypes::keep(const std::vector<InferredOutput>& outputs, size_t operators) {
  auto made = std::make_unique<Inferred>(declared_, operators, nullptr);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (complete_[i]) continue;
    made->types[i].kind = outputs[i].kind;
    if (outputs[i].tensor) fill(made->types[i], outputs[i].tensor);
  }
  made->before = last_.load(std::memory_order_relaxed);
  while (!last_.compare_exchange_weak(made->before, made.get(), std::memory_order_acq_rel)) {
  }
  made.release();
}

}  // namespace tiny::onnx
