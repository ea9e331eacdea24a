#include "onnx/session.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>

#include "base/checked.h"
#include "base/error.h"
#include "engine/realize.h"
#include "onnx/inline.h"
#include "onnx/reader.h"
#include "shape/view.h"
#include "tensor/create.h"
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
  auto keeper = std::make_unique<Keeper>(Keeper{base});
  auto part = make_ref<Storage>(
      Ref<Buffer>(&base->memory()), offset, [](void* user) { delete static_cast<Keeper*>(user); },
      keeper.get());
  keeper.release();
  return part;
}

}  // namespace

// ---- Loading.

namespace {

// The reader's limits, as the context's options have changed them.
Limits limits_of(const Context& context) {
  Limits limits;
  const Flags& flags = context.flags();
  if (flags.node_limit > 0) limits.nodes = flags.node_limit;
  if (flags.depth_limit > 0) limits.subgraph_depth = flags.depth_limit;
  if (flags.file_limit > 0) limits.model_bytes = flags.file_limit;
  return limits;
}

}  // namespace

LoadedModel::LoadedModel(const Ref<Context>& context, const std::string& path)
    : LoadedModel(context, read_model(path, limits_of(*context))) {
}

LoadedModel::LoadedModel(Ref<Context> context, Model model)
    : context_(std::move(context)), model_(std::move(model)) {
  inline_functions(model_, limits_of(*context_));
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

LoadedModel::Imported LoadedModel::import(const std::vector<Ints>& shapes,
                                          const std::vector<std::optional<HostTensor>>& known) {
  Imported out;
  std::vector<ImportInput> inputs;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const DType dtype = input_dtype(i);
    const int64_t count = element_count(shapes[i], "an input");
    check_shape(to_shape(shapes[i]), dtype);
    ModelProgram::Port port{input(i).name, dtype, shapes[i], count * dtype.bytes(), -1};
    Tensor tensor;
    if (count > 0) {
      const UOp node = make_input(*context_, dtype, count);
      port.number = static_cast<int64_t>(out.nodes.size());
      out.nodes.push_back(node);
      tensor = Tensor(context_, make_reshape(node, to_shape(shapes[i])));
    } else {
      tensor = full(context_, dtype, to_shape(shapes[i]), 0);
    }
    inputs.push_back({port.name, tensor, known.empty() ? std::nullopt : known[i]});
    out.inputs.push_back(std::move(port));
  }
  out.outputs = Importer(context_, weights_).import(model_.graph, inputs);
  return out;
}

Ref<const ModelProgram> LoadedModel::make_program(
    const std::vector<Ints>& shapes, const std::vector<std::optional<HostTensor>>& known) {
  const double start = now();
  const Ref<ModelProgram> out = make_ref<ModelProgram>();
  Imported imported = import(shapes, known);
  out->inputs = std::move(imported.inputs);
  const Tensors& results = imported.outputs;
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
  if (!nodes.empty()) out->compiled = compile_program(*context_, nodes, imported.nodes);
  return out;
}

std::optional<double> LoadedModel::operations() {
  if (!find_unsupported(model_).empty()) return std::nullopt;
  for (size_t i = 0; i < input_count(); ++i) {
    const ValueType& type = input(i).type;
    const bool is_fixed = type.kind == ValueType::Kind::Tensor && type.has_rank &&
                          std::all_of(type.dims.begin(), type.dims.end(),
                                      [](const Dim& dim) { return dim.is_known(); });
    if (!is_fixed || is_host_input(i)) return std::nullopt;
  }
  const Imported imported = import(fixed_shapes(), {});
  std::vector<UOp> roots;
  for (const Tensor& output : imported.outputs) roots.push_back(output.node());
  if (roots.empty()) return 0.0;
  const std::vector<UOp> order = topological(roots);
  std::vector<uint8_t> varies(context_->graph().id_limit());
  double count = 0;
  for (const UOp& u : order) {
    bool v = is_input(u);
    for (const UOp& s : u.src()) v |= varies[s.id()] != 0;
    varies[u.id()] = v ? 1 : 0;
    const bool is_arithmetic =
        has(u.op(), kElementwise) && u.op() != Op::Cast && u.op() != Op::Bitcast;
    if (!v || !(is_arithmetic || u.op() == Op::ReduceAxis)) continue;
    const UOp& counted = u.op() == Op::ReduceAxis ? u.src(0) : u;
    count += static_cast<double>(product(shape_of(counted)).value());
  }
  return count;
}

// ---- Running.

ModelRun::ModelRun(Ref<Context> context, Ref<const ModelProgram> program)
    : context_(std::move(context)), program_(std::move(program)), bound_(program_->inputs.size()) {
  outputs_.resize(program_->outputs.size());
  if (program_->compiled.program) run_ = make_ref<Run>(program_->compiled.program);
  renew_outputs();
}

void ModelRun::renew_outputs() {
  if (!run_) return;
  std::map<int64_t, Ref<Storage>> memory;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const ModelProgram::Port& port = program_->outputs[i];
    outputs_[i] = port.captured;
    if (port.number < 0) continue;
    Ref<Storage>& storage = memory[port.number];
    if (!storage) {
      storage = context_->allocate(port.bytes);
      run_->bind_output(port.number, storage);
    }
    outputs_[i] = storage;
  }
}

void ModelRun::let_go() {
  bound_.assign(bound_.size(), false);
  outputs_.assign(outputs_.size(), nullptr);
  if (run_) run_->unbind();
}

void ModelRun::set_input(size_t index, const Tensor& tensor) {
  require(index < bound_.size(), Status::InvalidArgument, "the program has ", bound_.size(),
          " inputs; got index ", index);
  const ModelProgram::Port& port = program_->inputs[index];
  require(tensor.dtype() == port.dtype, Status::DType, "input \"", port.name, "\" is of type ",
          tiny::to_string(port.dtype), "; got ", tiny::to_string(tensor.dtype()));
  require(tensor.shape() == to_shape(port.shape), Status::Shape, "input \"", port.name,
          "\" has the shape ", list_text(port.shape), "; got ", tiny::to_string(tensor.shape()));
  if (port.number >= 0 && run_) run_->bind_input(port.number, storage_for(tensor));
  bound_[index] = true;
}

void ModelRun::read_output(size_t index, void* data) const {
  const ModelProgram::Port& port = program_->outputs[index];
  if (!outputs_[index]) return;
  Device& device = context_->device();
  const Ref<Queue> queue = device.make_queue();
  device.copy_out(queue.get(), data, outputs_[index]->memory(), outputs_[index]->byte_offset(),
                  port.bytes);
  device.wait(queue.get());
}

Tensor ModelRun::take_output(size_t index) {
  const ModelProgram::Port& port = program_->outputs[index];
  require(!port.captured, Status::InvalidArgument, "output ", index,
          " is a tensor that the program writes: use that tensor");
  if (port.number < 0) return full(context_, port.dtype, to_shape(port.shape), 0);
  const Ref<Storage> taken = outputs_[index];
  const Ref<Storage> next = context_->allocate(port.bytes);
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (program_->outputs[i].number == port.number) outputs_[i] = next;
  run_->bind_output(port.number, next);
  taken->claim();
  const UOp buffer =
      make_buffer(context_->graph(), taken, port.dtype, element_count(port.shape, "an output"));
  return Tensor::of_memory(context_, buffer, row_major(to_shape(port.shape)));
}

void ModelRun::set_cancel(Ref<CancelToken> token) {
  if (run_) run_->set_cancel(std::move(token));
}

void ModelRun::set_timed(bool timed) {
  if (run_) run_->set_timed(timed);
}

std::span<const double> ModelRun::seconds() const {
  if (!run_) return {};
  return run_->seconds();
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
  const Ref<const ModelProgram> program = compile(shapes, known);
  Ref<ModelRun> run = std::exchange(idle_, nullptr);
  if (run && &run->program() == program.get())
    run->renew_outputs();
  else
    run = make_ref<ModelRun>(context_, program);
  run->set_cancel(context_->stop().token());
  for (size_t i = 0; i < inputs.size(); ++i) run->set_input(i, inputs[i]);
  run->execute();
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < output_count(); ++i) {
    const ModelProgram::Port& port = run->program().outputs[i];
    if (port.number < 0) {
      outputs.push_back(full(context_, port.dtype, to_shape(port.shape), 0));
      continue;
    }
    const UOp buffer = make_buffer(context_->graph(), run->output(i), port.dtype,
                                   element_count(port.shape, "an output"));
    outputs.emplace_back(context_, make_reshape(buffer, to_shape(port.shape)));
  }
  run->let_go();
  idle_ = std::move(run);
  return outputs;
}

}  // namespace tiny::onnx
