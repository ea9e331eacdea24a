#include "onnx/session.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "base/checked.h"
#include "base/error.h"
#include "engine/realize.h"
#include "onnx/inline.h"
#include "onnx/reader.h"
#include "shape/view.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/value.h"

namespace tiny::onnx {

namespace {

// Programs kept per model.
constexpr size_t kProgramsMax = 16;
// What may be a host input.
constexpr int64_t kHostElementsMax = 64;
constexpr size_t kHostRankMax = 1;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string dims_text(const std::vector<Dim>& dims) {
  ValueType type;
  type.kind = ValueType::Kind::Tensor;
  type.has_rank = true;
  type.dims = dims;
  const std::string text = to_string(type);
  return text.substr(text.find('['));
}

size_t index_of(const std::vector<std::string>& names, const std::string& name, const char* what) {
  const auto at = std::find(names.begin(), names.end(), name);
  require(at != names.end(), Status::InvalidArgument, "the model has no ", what, " \"", name,
          "\"; it has ", join(names, ", "));
  return static_cast<size_t>(at - names.begin());
}

bool may_be_host(const Ints& shape) {
  return shape.size() <= kHostRankMax && element_count(shape, "an input") <= kHostElementsMax;
}

// A row-major memory block that holds the tensor's elements, computed now if need be.
Ref<Storage> storage_for(Tensor tensor) {
  const int64_t bytes = element_count(tensor) * tensor.dtype().bytes();
  Tensor* one[] = {&tensor};
  realize(one);
  auto stored = as_view(tensor.node());
  if (!stored || !is_row_major(View{stored->view.shape, stored->view.strides, 0})) {
    tensor = contiguous(tensor);
    realize(one);
    stored = as_view(tensor.node());
  }
  if (!stored) {  // a constant
    std::vector<std::byte> data(static_cast<size_t>(bytes));
    read(tensor, data.data(), bytes);
    return tensor.context().from_host(data.data(), bytes);
  }
  const Ref<Storage> base = storage_of(stored->base);
  const int64_t offset = base->byte_offset() + stored->view.offset.value() * tensor.dtype().bytes();
  if (offset == base->byte_offset()) return base;
  struct Keeper {
    Ref<Storage> base;
  };
  return make_ref<Storage>(
      Ref<Buffer>(&base->memory()), offset, [](void* user) { delete static_cast<Keeper*>(user); },
      new Keeper{base});
}

}  // namespace

// ---- Loading.

LoadedModel::LoadedModel(Ref<Context> context, const std::string& path)
    : LoadedModel(std::move(context), read_model(path)) {
}

LoadedModel::LoadedModel(Ref<Context> context, Model model)
    : context_(std::move(context)), model_(std::move(model)) {
  inline_functions(model_);
  index_inputs();
}

void LoadedModel::index_inputs() {
  std::set<std::string_view> initialized;
  for (const TensorData& tensor : model_.graph.initializers) initialized.insert(tensor.name);
  for (size_t i = 0; i < model_.graph.inputs.size(); ++i)
    if (!initialized.contains(model_.graph.inputs[i].name)) inputs_.push_back(i);
  const std::vector<size_t> positions = host_input_candidates(model_, inputs_);
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (std::find(positions.begin(), positions.end(), inputs_[i]) != positions.end())
      host_inputs_.push_back(i);
}

size_t LoadedModel::input_index(const std::string& name) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < input_count(); ++i) names.push_back(input(i).name);
  return index_of(names, name, "input");
}

size_t LoadedModel::output_index(const std::string& name) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < output_count(); ++i) names.push_back(output(i).name);
  return index_of(names, name, "output");
}

DType LoadedModel::input_dtype(size_t index) const {
  const ValueInfo& info = input(index);
  const std::string what = cat("input \"", info.name, "\"");
  require(info.type.kind == ValueType::Kind::Tensor, Status::Unsupported, what, " is of type ",
          to_string(info.type), "; only tensors are supported");
  return dtype_of_tensor_type(info.type.elem_type, what);
}

bool LoadedModel::is_host_input(size_t index) const {
  return std::find(host_inputs_.begin(), host_inputs_.end(), index) != host_inputs_.end();
}

// ---- Compiling.

std::vector<Ints> LoadedModel::fixed_shapes() const {
  std::vector<Ints> shapes;
  for (size_t i = 0; i < input_count(); ++i) {
    const ValueInfo& info = input(i);
    require(info.type.has_rank, Status::InvalidArgument, "input \"", info.name,
            "\" has no shape in the model; give one");
    Ints shape;
    for (const Dim& dim : info.type.dims) {
      require(dim.is_known(), Status::InvalidArgument, "input \"", info.name, "\" has the shape ",
              dims_text(info.type.dims), " with a free dimension; give the dimensions");
      shape.push_back(dim.value);
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

void LoadedModel::check_shapes(const std::vector<Ints>& shapes) const {
  require(shapes.size() == input_count(), Status::InvalidArgument, "the model has ", input_count(),
          " inputs; got ", shapes.size());
  struct Bound {
    int64_t value;
    std::string place;
  };
  std::map<std::string, Bound> bound;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const ValueInfo& info = input(i);
    element_count(shapes[i], info.name.c_str());
    if (!info.type.has_rank) continue;
    const std::vector<Dim>& dims = info.type.dims;
    require(dims.size() == shapes[i].size(), Status::Shape, "input \"", info.name,
            "\" has the shape ", dims_text(dims), "; got ", list_text(shapes[i]));
    for (size_t k = 0; k < dims.size(); ++k) {
      const int64_t got = shapes[i][k];
      require(!dims[k].is_known() || dims[k].value == got, Status::Shape, "input \"", info.name,
              "\" has the shape ", dims_text(dims), "; got ", list_text(shapes[i]), ": dimension ",
              k, " must be ", dims[k].value);
      if (dims[k].is_known() || dims[k].name.empty()) continue;
      const auto [at, is_new] = bound.try_emplace(
          dims[k].name, Bound{got, cat("dimension ", k, " of input \"", info.name, "\"")});
      require(is_new || at->second.value == got, Status::Shape, "the dimension \"", dims[k].name,
              "\" is ", at->second.value, " in ", at->second.place, " and ", got, " in dimension ",
              k, " of input \"", info.name, "\"");
    }
  }
}

Ref<const ModelProgram> LoadedModel::compile(const std::vector<Ints>& shapes,
                                             const std::vector<std::optional<HostTensor>>& known) {
  check_shapes(shapes);
  Key key{shapes, {}};
  for (const auto& tensor : known)
    key.known.push_back(tensor ? cat("=", tensor->bytes.text()) : std::string());
  for (auto at = programs_.begin(); at != programs_.end(); ++at)
    if (at->first == key) {
      programs_.splice(programs_.begin(), programs_, at);
      return at->second;
    }
  Ref<const ModelProgram> program = make_program(shapes, known);
  programs_.emplace_front(std::move(key), program);
  if (programs_.size() > kProgramsMax) programs_.pop_back();
  return program;
}

Ref<const ModelProgram> LoadedModel::make_program(
    const std::vector<Ints>& shapes, const std::vector<std::optional<HostTensor>>& known) {
  const double start = now();
  const Ref<ModelProgram> out = make_ref<ModelProgram>();
  std::vector<ImportInput> inputs;
  std::vector<UOp> input_nodes;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const DType dtype = input_dtype(i);
    const int64_t count = element_count(shapes[i], "an input");
    check_shape(to_shape(shapes[i]), dtype);
    ModelProgram::Port port{input(i).name, dtype, shapes[i], count * dtype.bytes(), -1};
    Tensor tensor;
    if (count > 0) {
      const UOp node = make_input(*context_, dtype, count);
      port.number = static_cast<int64_t>(input_nodes.size());
      input_nodes.push_back(node);
      tensor = Tensor(context_, make_reshape(node, to_shape(shapes[i])));
    } else {
      const UOp zero = context_->graph().constant_int(dtype, 0);
      tensor = Tensor(context_, broadcast_to(zero, to_shape(shapes[i])));
    }
    inputs.push_back({port.name, tensor, known.empty() ? std::nullopt : known[i]});
    out->inputs.push_back(std::move(port));
  }
  const Tensors results = Importer(context_, weights_).import(model_.graph, inputs);
  // Outputs that are the same value share its memory.
  std::vector<UOp> nodes;
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor& t = results[i];
    ModelProgram::Port port{output(i).name, t.dtype(), dims_of(t), 0, -1};
    port.bytes = element_count(t) * t.dtype().bytes();
    if (port.bytes > 0) {
      const auto at = std::find(nodes.begin(), nodes.end(), t.node());
      port.number = at - nodes.begin();
      if (at == nodes.end()) nodes.push_back(t.node());
    }
    out->outputs.push_back(std::move(port));
  }
  out->import_seconds = now() - start;
  if (!nodes.empty()) out->compiled = compile_program(*context_, nodes, input_nodes);
  return out;
}

// ---- Running.

ModelRun::ModelRun(Ref<Context> context, Ref<const ModelProgram> program)
    : program_(std::move(program)), bound_(program_->inputs.size()) {
  outputs_.resize(program_->outputs.size());
  if (!program_->compiled.program) return;
  run_ = make_ref<Run>(program_->compiled.program);
  std::map<int64_t, Ref<Storage>> memory;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const ModelProgram::Port& port = program_->outputs[i];
    if (port.number < 0) continue;
    Ref<Storage>& storage = memory[port.number];
    if (!storage) {
      storage = context->allocate(port.bytes);
      run_->bind_output(port.number, storage);
    }
    outputs_[i] = storage;
  }
}

void ModelRun::bind_input(size_t index, const Ref<Storage>& storage) {
  const int64_t number = program_->inputs[index].number;
  if (number >= 0 && run_) run_->bind_input(number, storage);
  bound_[index] = true;
}

void ModelRun::execute() {
  std::vector<std::string> missing;
  for (size_t i = 0; i < bound_.size(); ++i)
    if (!bound_[i]) missing.push_back(cat('"', program_->inputs[i].name, '"'));
  require(missing.empty(), Status::InvalidArgument,
          "inputs that were not set: ", join(missing, ", "));
  if (run_) run_->execute();
}

std::vector<Tensor> LoadedModel::run(const std::vector<Tensor>& inputs) {
  require(inputs.size() == input_count(), Status::InvalidArgument, "the model has ", input_count(),
          " inputs; got ", inputs.size());
  std::vector<Ints> shapes;
  std::vector<std::optional<HostTensor>> known(host_inputs_.empty() ? 0 : inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DType dtype = input_dtype(i);
    require(inputs[i].dtype() == dtype, Status::DType, "input \"", input(i).name, "\" is of type ",
            tiny::to_string(dtype), "; got ", tiny::to_string(inputs[i].dtype()));
    require(&inputs[i].context() == context_.get(), Status::InvalidArgument, "input \"",
            input(i).name, "\" comes from another context");
    shapes.push_back(dims_of(inputs[i]));
    if (!is_host_input(i) || !may_be_host(shapes[i])) continue;
    Tensor tensor = inputs[i];
    std::vector<std::byte> bytes(static_cast<size_t>(element_count(tensor) * dtype.bytes()));
    read(tensor, bytes.data(), static_cast<int64_t>(bytes.size()));
    known[i] = HostTensor{dtype, shapes[i], SharedBytes::own(std::move(bytes))};
  }
  const Ref<ModelRun> run = make_ref<ModelRun>(context_, compile(shapes, known));
  for (size_t i = 0; i < inputs.size(); ++i)
    run->bind_input(i, element_count(inputs[i]) > 0 ? storage_for(inputs[i]) : Ref<Storage>());
  run->execute();
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < output_count(); ++i) {
    const ModelProgram::Port& port = run->program().outputs[i];
    if (port.number < 0) {
      const UOp zero = context_->graph().constant_int(port.dtype, 0);
      outputs.emplace_back(context_, broadcast_to(zero, to_shape(port.shape)));
      continue;
    }
    const UOp buffer = make_buffer(context_->graph(), run->output(i), port.dtype,
                                   element_count(port.shape, "an output"));
    outputs.emplace_back(context_, make_reshape(buffer, to_shape(port.shape)));
  }
  return outputs;
}

}  // namespace tiny::onnx
