// A model as a part of other graphs: applied to tensors, compiled for Variables, and what its
// outputs are before anything runs.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "onnx/session.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

// Variables that stand for free dimensions while outputs' shapes are inferred: sizes that occur,
// and small enough for products of several not to overflow.
constexpr int64_t kFreeMin = 2;
constexpr int64_t kFreeMax = 4096;

bool is_said(const Dim& dim) {
  return dim.is_known() || !dim.name.empty();
}

// What the file says of an output.
LoadedModel::OutputType declared_type(const ValueInfo& info) {
  LoadedModel::OutputType out;
  if (info.type.kind != ValueType::Kind::Tensor) return out;
  const TensorTypeInfo* type = tensor_type(info.type.elem_type);
  if (type && type->ours != ScalarType::Void) out.dtype = DType(type->ours);
  if (info.type.has_rank) out.dims = info.type.dims;
  return out;
}

bool is_complete(const LoadedModel::OutputType& type) {
  return type.dtype && type.dims && std::ranges::all_of(*type.dims, is_said);
}

// Puts what was inferred where the file says nothing.
void fill(LoadedModel::OutputType& type, const Tensor& inferred) {
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

// The Variables below the dimensions, each once.
std::vector<UOp> variables_of(const std::vector<Shape>& shapes) {
  std::vector<UOp> sizes;
  for (const Shape& shape : shapes)
    for (const tiny::Dim& d : shape)
      if (!d.is_const()) sizes.push_back(d.expression());
  return variables_below(sizes);
}

}  // namespace

// ---- Outputs before anything runs.

bool LoadedModel::declares_output(size_t index) const {
  const ValueInfo& info = output(index);
  return info.type.kind != ValueType::Kind::Tensor ? info.type.kind != ValueType::Kind::None
                                                   : is_complete(declared_type(info));
}

const LoadedModel::OutputType& LoadedModel::output_type(size_t index) {
  if (!declares_output(index) && !outputs_inferred_) {
    infer_outputs();
    outputs_inferred_ = true;
  }
  return output_types_[index];
}

void LoadedModel::declare_outputs() {
  for (size_t i = 0; i < output_count(); ++i) output_types_.push_back(declared_type(output(i)));
}

// The inputs' shapes with each free dimension a Variable; none if one has no shape.
std::vector<Shape> LoadedModel::free_shapes() const {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < input_count(); ++i) {
    const ValueType& type = input(i).type;
    if (!type.has_rank) return {};
    Shape shape;
    for (size_t k = 0; k < type.dims.size(); ++k)
      shape.push_back(type.dims[k].is_known() ? tiny::Dim(type.dims[k].value)
                                              : tiny::Dim(context_->graph().variable(
                                                    dim_name(i, k), kFreeMin, kFreeMax)));
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

// What cannot be told without sizes, without elements, or at all, stays unknown.
void LoadedModel::infer_outputs() {
  const std::vector<Shape> shapes = free_shapes();
  if (shapes.size() != input_count()) return;
  try {
    const Imported imported = import(shapes, {});
    for (size_t i = 0; i < output_count(); ++i) fill(output_types_[i], imported.outputs[i]);
  } catch (const Error& e) {
    const bool is_about_the_model = e.status() == Status::Unsupported ||
                                    e.status() == Status::Shape || e.status() == Status::Index;
    if (!is_about_the_model) throw;
  }
}

// ---- Graphs of the caller's.

Ref<const TensorProgram> LoadedModel::compile_free(const std::vector<Shape>& shapes) {
  check_shapes(shapes);
  return make_program(shapes, variables_of(shapes), {});
}

Tensor LoadedModel::checked_input(size_t index, const Tensor& tensor) const {
  const DType dtype = input_dtype(index);
  const std::string& name = input(index).name;
  require(&tensor.context() == context_.get(), Status::InvalidArgument, "input \"", name,
          "\" comes from another context");
  if (tensor.weak()) return cast(tensor, dtype);  // a number takes the dtype that is wanted
  require(tensor.dtype() == dtype, Status::DType, "input \"", name, "\" is of type ", dtype,
          "; got ", tensor.dtype());
  return tensor;
}

std::vector<Tensor> LoadedModel::apply(const std::vector<Tensor>& inputs) {
  require(inputs.size() == input_count(), Status::InvalidArgument, "the model has ", input_count(),
          " inputs; got ", inputs.size());
  std::vector<Shape> shapes;
  std::vector<ImportInput> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor tensor = checked_input(i, inputs[i]);
    shapes.push_back(tensor.shape());
    given.push_back({input(i).name, tensor, std::nullopt});
  }
  check_shapes(shapes);
  return importer().import(model_.graph, given);
}

}  // namespace tiny::onnx
