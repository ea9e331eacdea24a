// A model as a part of other graphs: applied to tensors, compiled for Variables, and what its
// outputs are before anything runs.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "onnx/session.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

// Variables that stand for free dimensions while outputs' shapes are inferred: sizes that occur,
// and small enough for products of several not to overflow.
constexpr int64_t kFreeMin = 2;
constexpr int64_t kFreeMax = 4096;

ModelValue::Kind kind_of(const Value& value) {
  using Kind = ModelValue::Kind;
  if (value.sequence || value.columns) return Kind::Sequence;
  if (value.map) return Kind::Map;
  if (value.is_nothing) return Kind::Nothing;
  return value.carried == kTextType ? Kind::Texts : Kind::Tensor;
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

// ---- What is asked before anything runs.

const OutputType* LoadedModel::find_output_type(size_t index, const CustomOps& custom_ops) const {
  return output_types_.find(index, custom_ops.size());
}

const OutputType& LoadedModel::output_type(size_t index, const Ref<Context>& aside) const {
  const size_t operators = aside->custom_ops().size();
  if (!output_types_.find(index, operators)) output_types_.keep(inferred_outputs(aside), operators);
  return *output_types_.find(index, operators);
}

// The inputs' shapes with each free dimension a Variable; none if one has no shape.
std::optional<std::vector<Shape>> LoadedModel::free_shapes(tiny::Graph& graph) const {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < input_count(); ++i) {
    const ValueInfo& info = input(i);
    if (!info.type.has_rank) return std::nullopt;
    Shape& shape = shapes.emplace_back();
    for (size_t k = 0; k < info.type.dims.size(); ++k) {
      const Dim& dim = info.type.dims[k];
      const std::string name = dim.name.empty() ? cat(info.name, ".", k) : dim.name;
      shape.push_back(dim.is_known() ? tiny::Dim(dim.value)
                                     : tiny::Dim(graph.variable(name, kFreeMin, kFreeMax)));
    }
  }
  return shapes;
}

// Empty if that cannot be told without sizes, without elements, or at all.
std::vector<InferredOutput> LoadedModel::inferred_outputs(const Ref<Context>& aside) const {
  const auto shapes = free_shapes(aside->graph());
  if (!shapes) return {};
  try {
    Weights weights;
    Importer importer(aside, weights);
    std::vector<InferredOutput> outputs;
    const std::vector<Decision> none;
    Signature signature = plain_signature(*shapes, {});
    signature.decisions = &none;
    const Imported imported = import(importer, signature);
    if (imported.question) return {};
    for (const Value& value : imported.outputs)
      outputs.push_back({kind_of(value), value.is_plain() ? value.tensor : Tensor()});
    return outputs;
  } catch (const Error& e) {
    // Or about sizes that are none of these Variables' (1): whoever runs it is told.
    const bool is_about_the_model = e.status() == Status::Unsupported ||
                                    e.status() == Status::InvalidModel ||
                                    e.status() == Status::Shape || e.status() == Status::Index;
    if (!is_about_the_model) throw;
    return {};
  }
}

std::vector<UnsupportedNode> LoadedModel::unsupported(const Ref<Context>& aside) const {
  std::vector<UnsupportedNode> found = find_unsupported(model_, aside->custom_ops());
  const auto shapes = free_shapes(aside->graph());
  if (!found.empty() || !shapes) return found;
  const auto may_be_known = [&](size_t i) {
    Ints least;
    for (const tiny::Dim& d : (*shapes)[i]) least.push_back(lower_bound(d));
    return may_be_host(least);
  };
  if (std::ranges::any_of(host_inputs_, may_be_known)) return found;
  Weights weights;
  Importer importer(aside, weights);
  try {
    // What follows a question is told by the run that asks it.
    const std::vector<Decision> none;
    Signature signature = plain_signature(*shapes, {});
    signature.decisions = &none;
    if (import(importer, signature).question) found = importer.unsupported();
  } catch (const FreeDimension&) {
    // A program is made for its number.
  } catch (const Error& e) {
    if (e.status() == Status::Unsupported) found = importer.unsupported();
  }
  return found;
}

std::optional<double> LoadedModel::operations(const Ref<Context>& aside) const {
  for (size_t i = 0; i < input_count(); ++i) {
    const ValueType& type = input(i).type;
    const bool is_fixed = type.kind == ValueType::Kind::Tensor && type.has_rank &&
                          std::all_of(type.dims.begin(), type.dims.end(),
                                      [](const Dim& dim) { return dim.is_known(); });
    if (!is_fixed || is_host_input(i)) return std::nullopt;
  }
  std::vector<Shape> shapes;
  for (const Ints& shape : fixed_shapes()) shapes.push_back(to_shape(shape));
  Weights weights;
  Importer importer(aside, weights);
  const std::vector<Decision> none;
  Signature signature = plain_signature(shapes, {});
  signature.decisions = &none;
  const Imported imported = import(importer, signature);
  if (imported.question) return std::nullopt;
  std::vector<UOp> roots;
  for (const Tensor& output : flat(imported.outputs)) roots.push_back(output.node());
  for (const ComputedVariable& size : imported.sizes) roots.push_back(size.value);
  if (roots.empty()) return 0.0;
  const std::vector<UOp> order = topological(roots);
  std::vector<uint8_t> varies(aside->graph().id_limit());
  double count = 0;
  for (const UOp& u : order) {
    bool v = is_input(u);
    for (const UOp& s : u.src()) v |= varies[s.id()] != 0;
    varies[u.id()] = v ? 1 : 0;
    const bool is_arithmetic =
        has(u.op(), kElementwise) && u.op() != Op::Cast && u.op() != Op::Bitcast;
    if (!v || !(is_arithmetic || u.op() == Op::ReduceAxis)) continue;
    const UOp& counted = u.op() == Op::ReduceAxis ? u.src(0) : u;
    count += static_cast<double>(upper_bound(product(shape_of(counted))));
  }
  return count;
}

// ---- Graphs of the caller's.

Ref<const TensorProgram> LoadedModel::compile_free(const std::vector<Shape>& shapes) {
  check_shapes(shapes);
  Ref<const ModelProgram> program = make_program(plain_signature(shapes, {}), variables_of(shapes));
  check_plain(*program);
  return program;
}

Tensor LoadedModel::checked_input(size_t index, const Tensor& tensor) const {
  const DType dtype = input_dtype(index);
  const std::string& name = input(index).name;
  require(&tensor.context() == context_.get(), Status::InvalidArgument, "input \"", name,
          "\" comes from another context", of_two_devices(tensor.context(), *context_));
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
    given.push_back({input(i).name, {tensor, nullptr, nullptr}, std::nullopt});
  }
  check_shapes(shapes);
  // The numbers that the graph draws are made now: this is one execution, whatever is computed.
  const ExecutionNumber number = executions_->next();
  const Tensor execution = from_data(context_, kUInt32, {4}, &number, sizeof number);
  Importer importer = this->importer();
  importer.set_execution(execution);
  std::vector<Tensor> outputs;
  const Values values = importer.import(model_.graph, given);
  for (size_t i = 0; i < values.size(); ++i) {
    require(values[i].tensor && values[i].carried != kTextType, Status::Unsupported, "output \"",
            output(i).name, "\" is no tensor of numbers: tiny_model_run_values gives it");
    outputs.push_back(values[i].tensor);
  }
  return outputs;
}

}  // namespace tiny::onnx
