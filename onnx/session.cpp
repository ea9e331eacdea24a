#include "onnx/session.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>

#include "base/checked.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/kept_blocks.h"
#include "base/text.h"
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
// Sizes of more than so many of the latest runs get a program of their own.
constexpr int64_t kRepeatsMax = 4;
// What may be a host input.
constexpr int64_t kHostElementsMax = 64;
constexpr size_t kHostRankMax = 1;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The dimensions of an input as a part of a message.
struct Declared {
  const std::vector<Dim>& dims;
};

std::string to_string(const Declared& declared) {
  ValueType type;
  type.kind = ValueType::Kind::Tensor;
  type.has_rank = true;
  type.dims = declared.dims;
  const std::string text = to_string(type);
  return text.substr(text.find('['));
}

size_t index_of(const std::vector<std::string>& names, const std::string& name, const char* what) {
  const auto at = std::find(names.begin(), names.end(), name);
  require(at != names.end(), Status::InvalidArgument, "the model has no ", what, " \"", name,
          "\"; it has ", join(names, ", "));
  return static_cast<size_t>(at - names.begin());
}

}  // namespace

bool may_be_host(const Ints& shape) {
  return shape.size() <= kHostRankMax && element_count(shape, "an input") <= kHostElementsMax;
}

namespace {

// Arguments, and what was found out of others, as a key of programs.
std::vector<std::string> texts_of(const std::vector<std::optional<HostTensor>>& known,
                                  const std::vector<Decision>* decisions) {
  std::vector<std::string> texts;
  for (const auto& tensor : known)
    texts.push_back(tensor ? cat("=", tensor->bytes.text()) : std::string());
  if (decisions)
    for (const Decision& d : *decisions) texts.push_back(cat("?", d.answer.bytes.text()));
  return texts;
}

// ---- Loading.

// The reader's limits, as the context's options have changed them.
Limits limits_of(Context& context) {
  Limits limits;
  const Flags& flags = context.flags();
  if (flags.node_limit > 0) limits.nodes = flags.node_limit;
  if (flags.depth_limit > 0) limits.subgraph_depth = flags.depth_limit;
  if (flags.file_limit > 0) limits.model_bytes = flags.file_limit;
  limits.stop = &context.stop();
  return limits;
}

FileAccess file_access(Context& context) {
  return {context.flags().map_files == 0, Ref<MemoryUse>(&context.device().memory()),
          &context.stop()};
}

}  // namespace

LoadedModel::LoadedModel(const Ref<Context>& context, const std::string& path)
    : LoadedModel(context, read_model(path, limits_of(*context), file_access(*context))) {
}

LoadedModel::LoadedModel(const Ref<Context>& context, const SharedBytes& bytes,
                         const std::string& folder)
    : LoadedModel(context, parse_model(bytes, folder, limits_of(*context), file_access(*context))) {
}

LoadedModel::LoadedModel(Ref<Context> context, Model model)
    : context_(std::move(context)), model_(std::move(model)) {
  inline_functions(model_, limits_of(*context_));
  index_inputs();
  output_types_.declare(model_.graph.outputs);
  list_metadata();
}

void LoadedModel::list_metadata() {
  const std::pair<const char*, std::string> fields[] = {
      {"producer_name", model_.producer_name},
      {"producer_version", model_.producer_version},
      {"domain", model_.domain},
      {"doc_string", model_.doc_string},
      {"graph_name", model_.graph.name},
      {"model_version", model_.model_version == 0 ? "" : std::to_string(model_.model_version)}};
  for (const auto& [key, text] : fields)
    if (!text.empty()) metadata_.emplace_back(key, text);
  metadata_.insert(metadata_.end(), model_.metadata.begin(), model_.metadata.end());
}

namespace {

// The shapes of tensors that carry what is declared.
void declare_carriers(ValueType& type) {
  for (ValueType& element : type.element) declare_carriers(element);
  if (type.kind == ValueType::Kind::Tensor && type.has_rank)
    for (const int64_t size : carrier_dims(type.elem_type, {})) type.dims.push_back({size, ""});
}

}  // namespace

void LoadedModel::index_inputs() {
  for (ValueInfo& info : model_.graph.inputs) declare_carriers(info.type);
  for (ValueInfo& info : model_.graph.outputs) declare_carriers(info.type);
  std::set<std::string_view> initialized;
  for (const TensorData& tensor : model_.graph.initializers) initialized.insert(tensor.name);
  for (size_t i = 0; i < model_.graph.inputs.size(); ++i)
    if (!initialized.contains(model_.graph.inputs[i].name)) inputs_.push_back(i);
  const std::vector<size_t> positions = host_input_candidates(model_, inputs_);
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (std::find(positions.begin(), positions.end(), inputs_[i]) != positions.end())
      host_inputs_.push_back(i);
  std::vector<ValueInfo> infos;
  for (size_t i = 0; i < inputs_.size(); ++i) infos.push_back(input(i));
  free_ = FreeSizes(std::move(infos));
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
  require(info.type.kind == ValueType::Kind::Tensor, Status::Unsupported, "input \"", info.name,
          "\" is of type ", info.type, "; only tensors are supported");
  return dtype_of_tensor_type(info.type.elem_type, "input", info.name);
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
              Declared{info.type.dims}, " with a free dimension; give the dimensions");
      shape.push_back(dim.value);
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

void LoadedModel::check_shapes(const std::vector<Ints>& shapes) const {
  std::vector<Shape> all;
  for (const Ints& shape : shapes) all.push_back(to_shape(shape));
  check_shapes(all);
}

void LoadedModel::check_shapes(const std::vector<Shape>& shapes) const {
  require(shapes.size() == input_count(), Status::InvalidArgument, "the model has ", input_count(),
          " inputs; got ", shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    const ValueInfo& info = input(i);
    check_shape(shapes[i], input_dtype(i));
    if (!info.type.has_rank) continue;
    const std::vector<Dim>& dims = info.type.dims;
    require(dims.size() == shapes[i].size(), Status::Shape, "input \"", info.name,
            "\" has the shape ", Declared{dims}, "; got ", shapes[i]);
    for (size_t k = 0; k < dims.size(); ++k) {
      const tiny::Dim& got = shapes[i][k];
      require(!dims[k].is_known() || got.is(dims[k].value), Status::Shape, "input \"", info.name,
              "\" has the shape ", Declared{dims}, "; got ", shapes[i], ": dimension ", k,
              " must be ", dims[k].value);
    }
  }
}

namespace {

// Whether a program for the shapes `made`, some of whose dimensions are variables (kFree), serves
// these.
bool serves(const TensorProgram& program, const std::vector<Ints>& made,
            const std::vector<Ints>& shapes) {
  constexpr int64_t kFree = FreeSizes::kFree;
  Ints values(program.variables.size(), kFree);
  std::vector<std::pair<const SizeExpression*, int64_t>> formulas;  // and what they must be
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i].size() != shapes[i].size()) return false;
    for (size_t k = 0; k < made[i].size(); ++k) {
      if (made[i][k] == shapes[i][k]) continue;
      if (made[i][k] != kFree) return false;
      const SizeExpression& size = program.inputs[i].sizes[k];
      const auto multiple = size.multiple();
      if (!multiple) {
        formulas.emplace_back(&size, shapes[i][k]);
        continue;
      }
      const auto [variable, factor] = *multiple;
      const ProgramVariable& v = program.variables[variable];
      const int64_t value = shapes[i][k] / factor;
      const int64_t before = std::exchange(values[variable], value);
      if (before != kFree && before != value) return false;
      if (value * factor != shapes[i][k] || value < v.min || value > v.max) return false;
    }
  }
  return std::ranges::all_of(formulas,
                             [&](const auto& of) { return of.first->value(values) == of.second; });
}

}  // namespace

// A program for these sizes: one of its own, or (`shared`) one whose variables reach them.
Ref<const ModelProgram> LoadedModel::find_program(const Key& wanted, bool shared, bool may_ask) {
  const auto fits = [&](const Key& key, const ModelProgram& program) {
    if (may_ask ? program.is_guessed : program.question.has_value()) return false;
    if (program.variables.empty() || !shared) return key == wanted;
    return key.known == wanted.known && serves(program, key.shapes, wanted.shapes);
  };
  for (auto at = programs_.begin(); at != programs_.end(); ++at)
    if (fits(at->first, *at->second)) {
      programs_.splice(programs_.begin(), programs_, at);
      return at->second;
    }
  return {};
}

// Whether it is another one than that of the run before.
bool LoadedModel::Latest::add(const Key& key) {
  const bool is_new = runs_ == 0 || key != key_;
  if (is_new) {
    key_ = key;
    hash_ = 0;
    for (const Ints& shape : key.shapes)
      for (const int64_t size : shape) hash_ = hash_mix(hash_, static_cast<uint64_t>(size));
    for (const std::string& text : key.known) hash_ = hash_bytes(text, hash_);
  }
  hashes_[runs_++ % hashes_.size()] = hash_;
  return is_new;
}

int64_t LoadedModel::Latest::repeats() const {
  const size_t count = std::min(runs_, hashes_.size());
  return std::count(hashes_.begin(), hashes_.begin() + static_cast<int64_t>(count), hash_);
}

void LoadedModel::keep(Key key, const Ref<const ModelProgram>& program) {
  programs_.emplace_front(std::move(key), program);
  if (programs_.size() > kProgramsMax) programs_.pop_back();
}

Ref<const TensorProgram> LoadedModel::compile(const std::vector<Ints>& shapes, const Known& known) {
  Ref<const ModelProgram> program = exact_program(shapes, known, nullptr);
  check_plain(*program);
  return program;
}

Ref<const ModelProgram> LoadedModel::exact_program(const std::vector<Ints>& shapes,
                                                   const Known& known,
                                                   const std::vector<Decision>* decisions) {
  check_shapes(shapes);
  Key key{shapes, texts_of(known, decisions)};
  if (Ref<const ModelProgram> found = find_program(key, false, decisions)) return found;
  std::vector<Shape> sizes;
  for (const Ints& shape : shapes) sizes.push_back(to_shape(shape));
  Signature signature = plain_signature(sizes, known);
  signature.decisions = decisions;
  Ref<const ModelProgram> program = make_program(signature, {});
  keep(std::move(key), program);
  return program;
}

// That tensors are all that goes in and comes out.
void LoadedModel::check_plain(const ModelProgram& program) const {
  for (size_t i = 0; i < program.forms.size(); ++i)
    require(program.forms[i].kind == ModelValue::Kind::Tensor, Status::Unsupported, "output \"",
            output(i).name, "\" is no tensor of numbers: tiny_model_run_values gives it");
  require(!program.looks_into_texts, Status::Unsupported,
          "the model has functions of texts: tiny_model_run_values runs it");
}

// The program for a run: one of these very sizes if there is one or if they come again and again.
Ref<const ModelProgram> LoadedModel::program_for(const std::vector<Ints>& shapes,
                                                 const Known& known,
                                                 const std::vector<Decision>& decisions) {
  Key key{shapes, texts_of(known, &decisions)};
  // What a run finds out is no part of what comes again and again.
  if (decisions.empty() && latest_.add(key)) {
    check_shapes(shapes);
    free_.learn(shapes);
    hosts_.learn(known);
  }
  if (Ref<const ModelProgram> found = find_program(key, false, true)) return found;
  if (latest_.repeats() > kRepeatsMax) return exact_program(shapes, known, &decisions);
  if (Ref<const ModelProgram> found = find_program(key, true, true)) return found;
  if (Known told = known; decisions.empty() && hosts_.forget(told))
    if (Ref<const ModelProgram> finding = finding_program(shapes, told)) return finding;
  std::optional<FreeSizes::Choice> failed;
  if (auto made = symbolic_program(shapes, known, decisions, failed)) return made;
  Ref<const ModelProgram> program = exact_program(shapes, known, &decisions);
  if (failed) free_.make_numbers(*failed);
  return program;
}

// Whether another program would not do either.
bool LoadedModel::is_final(const Error& e) const {
  return e.status() == Status::OutOfMemory || e.status() == Status::Cancelled ||
         (e.status() == Status::Internal && context_->flags().spec != 0);
}

// Null if no dimension can be a variable; `failed` is then the choice with which something went
// wrong.
Ref<const ModelProgram> LoadedModel::symbolic_program(const std::vector<Ints>& shapes,
                                                      const Known& known,
                                                      const std::vector<Decision>& decisions,
                                                      std::optional<FreeSizes::Choice>& failed) {
  std::vector<bool> is_known;
  for (const auto& elements : known) is_known.push_back(elements.has_value());
  while (true) {
    const FreeSizes::Choice choice = free_.choose(context_->graph(), shapes, is_known);
    if (choice.variables.empty()) return {};
    try {
      Signature signature = plain_signature(choice.shapes, known);
      signature.decisions = &decisions;
      Ref<const ModelProgram> program = make_program(signature, choice.variables);
      keep({choice.key, texts_of(known, &decisions)}, program);
      return program;
    } catch (const FreeDimension& e) {
      const FreeSizes::Answer answer = free_.decide(e, choice, shapes);
      if (answer == FreeSizes::Answer::None) throw;
      if (answer == FreeSizes::Answer::Later) return {};
    } catch (const Error& e) {
      if (is_final(e)) throw;
      if (choice.has_relations) {
        free_.drop_relations();
        continue;
      }
      // What is wrong is said, if it is, in the numbers that the caller knows.
      failed = choice;
      return {};
    }
  }
}

// One that is told these elements and finds the others in its runs; null if there is none that asks
// nothing.
Ref<const ModelProgram> LoadedModel::finding_program(const std::vector<Ints>& shapes,
                                                     const Known& told) {
  const std::vector<Decision> none;
  try {
    Ref<const ModelProgram> program = find_program({shapes, texts_of(told, &none)}, true, true);
    std::optional<FreeSizes::Choice> failed;
    if (!program) program = symbolic_program(shapes, told, none, failed);
    if (!program) program = exact_program(shapes, told, &none);
    if (!program->question) return program;
  } catch (const Error& e) {
    if (is_final(e)) throw;
  }
  hosts_.tell_all();
  return {};
}

std::vector<Ref<const TensorProgram>> LoadedModel::programs() const {
  std::vector<Ref<const TensorProgram>> out;
  for (const auto& [key, program] : programs_) out.emplace_back(program);
  return out;
}

Importer LoadedModel::importer() {
  if (origins_.empty()) origins_ = add_origins(context_->graph().origins(), model_.graph);
  return Importer(context_, weights_, &origins_);
}

// One tensor for each input.
LoadedModel::Signature LoadedModel::plain_signature(const std::vector<Shape>& shapes,
                                                    const Known& known) const {
  Signature out;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const DType dtype = input_dtype(i);
    out.leaves.push_back(
        {input(i).name, dtype, shapes[i], known.empty() ? std::nullopt : known[i]});
    out.inputs.push_back({ModelValue::Kind::Tensor, 0, i, nullptr, {}});
  }
  return out;
}

namespace {

// The value of this form of the leaves' tensors.
Value value_of(const ValueForm& form, const Tensors& leaves) {
  using Kind = ModelValue::Kind;
  Value value;
  value.carried = form.type;
  value.is_nothing = form.kind == Kind::Nothing;
  if (form.kind == Kind::Tensor || form.kind == Kind::Texts) value.tensor = leaves[form.leaf];
  Values parts;
  for (const ValueForm& part : form.parts) parts.push_back(value_of(part, leaves));
  if (form.kind == Kind::Sequence) value.sequence = std::make_shared<const Tensors>(flat(parts));
  if (form.kind == Kind::Map) value.map = std::make_shared<const Values>(std::move(parts));
  return value;
}

// The form of a value that a graph makes; its tensors go behind those that are there.
ValueForm form_of(const Value& value, Tensors& leaves, const std::string& name) {
  using Kind = ModelValue::Kind;
  require(!value.map, Status::Unsupported, "the output \"", name, "\" is a map");
  ValueForm form{Kind::Nothing, value.carried, leaves.size(), value.columns, {}};
  if (value.tensor) {
    const bool is_text = value.carried == kTextType;
    form.kind = is_text ? Kind::Texts : Kind::Tensor;
    leaves.push_back(value.tensor);
  } else if (value.sequence) {
    form.kind = Kind::Sequence;
    for (const Tensor& t : *value.sequence)
      form.parts.push_back(form_of({t, nullptr, nullptr, value.carried}, leaves, name));
  }
  return form;
}

}  // namespace

LoadedModel::Imported LoadedModel::import(Importer& importer, const Signature& signature) const {
  const Ref<Context>& context = importer.context();
  Imported out;
  Tensors leaves;
  for (const Leaf& leaf : signature.leaves) {
    check_shape(leaf.shape, leaf.dtype);
    const tiny::Dim count = product(leaf.shape);
    int64_t number = -1;
    if (!count.is(0)) {
      const UOp node = make_input(*context, leaf.dtype, count);
      number = static_cast<int64_t>(out.nodes.size());
      out.nodes.push_back(node);
      leaves.emplace_back(context, make_reshape(node, leaf.shape));
    } else {
      leaves.push_back(full(context, leaf.dtype, leaf.shape, 0));
    }
    out.numbers.push_back(number);
  }
  std::vector<ImportInput> inputs;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    const ValueForm& form = signature.inputs[i];
    const bool is_tensor = form.kind == ModelValue::Kind::Tensor;
    inputs.push_back({input(i).name, value_of(form, leaves),
                      is_tensor ? signature.leaves[form.leaf].known : std::nullopt});
  }
  importer.allow_computed_sizes();
  // Inputs that runs give themselves, where anything asks for them.
  const UOp table = make_input(*context, kInt64, 1);
  importer.set_text_table(Tensor(context, table));
  const UOp execution = make_input(*context, kUInt32, 4);
  importer.set_execution(Tensor(context, execution));
  importer.set_decisions(signature.decisions);
  try {
    out.outputs = importer.import(model_.graph, inputs);
  } catch (const Undecided& undecided) {
    out.question = undecided.question;
    out.outputs = {{undecided.value}};
  }
  out.is_guessed = importer.has_guessed();
  const auto add = [&](bool is_asked, const UOp& node) {
    if (!is_asked) return int64_t{-1};
    out.nodes.push_back(node);
    return std::ssize(out.nodes) - 1;
  };
  out.text_table = add(importer.asks_texts(), table);
  out.execution = add(importer.has_drawn(), execution);
  out.texts = importer.shared_texts();
  out.sizes = importer.computed_sizes();
  return out;
}

Ref<const ModelProgram> LoadedModel::make_program(const Signature& signature,
                                                  const std::vector<UOp>& free) {
  KeptBlocks kept;
  const KeptBlocks::Scope scope(kept);
  const double start = now();
  const Ref<ModelProgram> out = make_ref<ModelProgram>();
  Importer fresh = importer();
  const Imported imported = import(fresh, signature);
  std::vector<UOp> variables = free;
  std::vector<ComputedVariable> computed;
  for (const ComputedVariable& size : imported.sizes) {
    variables.push_back(size.variable);
    if (size.value) computed.push_back(size);
  }
  for (size_t i = 0; i < signature.leaves.size(); ++i) {
    const Leaf& leaf = signature.leaves[i];
    out->inputs.push_back(make_port(leaf.name, leaf.dtype, leaf.shape, variables));
    out->inputs.back().number = imported.numbers[i];
  }
  out->looks_into_texts = imported.text_table >= 0;
  if (out->looks_into_texts) {
    out->inputs.push_back(make_port("texts", kInt64, {1}, variables));
    out->inputs.back().number = imported.text_table;
  }
  out->question = imported.question;
  out->is_guessed = imported.is_guessed;
  out->texts = imported.texts;
  // Outputs that are the same value share its memory.
  std::vector<UOp> nodes;
  for (size_t i = 0; i < imported.outputs.size(); ++i) {
    const std::string whole = imported.question ? "question" : output(i).name;
    Tensors leaves;
    const size_t first = out->outputs.size();
    const auto shift = [&](ValueForm& form, const auto& again) -> void {
      form.leaf += first;
      for (ValueForm& part : form.parts) again(part, again);
    };
    ValueForm& form = out->forms.emplace_back(form_of(imported.outputs[i], leaves, whole));
    shift(form, shift);
    for (size_t k = 0; k < leaves.size(); ++k) {
      const Tensor& t = leaves[k];
      const std::string name = form.parts.empty() ? whole : cat(whole, "[", k, "]");
      TensorProgram::Port port = make_port(name, t.dtype(), t.shape(), variables);
      if (port.bytes > 0) {
        const auto at = std::find(nodes.begin(), nodes.end(), t.node());
        port.number = at - nodes.begin();
        if (at == nodes.end()) nodes.push_back(t.node());
      }
      out->outputs.push_back(std::move(port));
    }
  }
  for (const UOp& v : variables) {
    const VariableArg& arg = v.variable_arg();
    const bool is_computed = static_cast<size_t>(&v - variables.data()) >= free.size();
    out->variables.push_back({arg.name, arg.min, arg.max, is_computed});
  }
  out->execution = imported.execution;
  out->executions = imported.question ? make_ref<ExecutionCount>() : executions_;
  out->import_seconds = now() - start;
  if (!nodes.empty() || !computed.empty())
    out->compiled = compile_program(*context_, nodes, imported.nodes, variables, {}, computed);
  return out;
}

// ---- Running.

std::vector<Tensor> LoadedModel::run(const std::vector<Tensor>& inputs) {
  Ref<TensorRun> run = begin_run(inputs);
  run->execute(context_->stop());
  return end_run(std::move(run));
}

// Null if there is none; then a run of another program makes room for the new one.
Ref<TensorRun> LoadedModel::take_idle(const ModelProgram& program) {
  std::vector<Ref<TensorRun>>& idle = program.question ? idle_.asking : idle_.whole;
  const auto at = std::ranges::find_if(
      idle, [&](const Ref<TensorRun>& run) { return &run->program() == &program; });
  if (at == idle.end()) {
    if (!idle.empty() && (!program.question || idle.size() == kProgramsMax))
      idle.erase(idle.begin());
    return {};
  }
  Ref<TensorRun> run = std::move(*at);
  idle.erase(at);
  return run;
}

void LoadedModel::keep_idle(const ModelProgram& program, Ref<TensorRun> run) {
  run->let_go();
  (program.question ? idle_.asking : idle_.whole).push_back(std::move(run));
}

Ref<TensorRun> LoadedModel::begin_run(const std::vector<Tensor>& inputs) {
  require(inputs.size() == input_count(), Status::InvalidArgument, "the model has ", input_count(),
          " inputs; got ", inputs.size());
  std::vector<Ints> shapes;
  std::vector<std::optional<HostTensor>> known(host_inputs_.empty() ? 0 : inputs.size());
  for (size_t i = dtypes_.size(); i < inputs.size(); ++i) dtypes_.push_back(input_dtype(i));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DType dtype = dtypes_[i];
    require(inputs[i].dtype() == dtype, Status::DType, "input \"", input(i).name, "\" is of type ",
            dtype, "; got ", inputs[i].dtype());
    require(&inputs[i].context() == context_.get(), Status::InvalidArgument, "input \"",
            input(i).name, "\" comes from another context",
            of_two_devices(inputs[i].context(), *context_));
    shapes.push_back(dims_of(inputs[i]));
    if (!is_host_input(i) || !may_be_host(shapes[i])) continue;
    Tensor tensor = inputs[i];
    std::vector<std::byte> bytes(static_cast<size_t>(element_count(tensor) * dtype.bytes()));
    read(tensor, bytes.data(), static_cast<int64_t>(bytes.size()));
    known[i] = HostTensor{dtype, shapes[i], SharedBytes::own(std::move(bytes))};
  }
  std::vector<Decision> decisions;
  while (true) {
    const Ref<const ModelProgram> program = program_for(shapes, known, decisions);
    check_plain(*program);
    Ref<TensorRun> run = take_idle(*program);
    if (!run) run = make_ref<TensorRun>(context_, program);
    run->set_cancel(context_->stop().token());
    for (size_t i = 0; i < inputs.size(); ++i) run->set_input(i, inputs[i]);
    if (!program->question) return run;
    decisions.push_back(answer(*program, *run));
    keep_idle(*program, std::move(run));
  }
}

// What a run finds out before it can have a program.  Random numbers are those that the program
// draws.
Decision LoadedModel::answer(const ModelProgram& program, TensorRun& run) const {
  program.executions->begin(executions_->upcoming());
  run.execute(context_->stop());
  const TensorProgram::Port& port = run.output_ports().at(0);
  std::vector<std::byte> bytes(
      static_cast<size_t>(element_count(port.shape, "what decides a shape") * port.dtype.bytes()));
  if (!bytes.empty()) run.read_output(0, bytes.data());
  return {*program.question, {port.dtype, port.shape, SharedBytes::own(std::move(bytes))}};
}

std::vector<Tensor> LoadedModel::outputs_of(const TensorRun& run) const {
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < run.output_ports().size(); ++i) {
    const TensorProgram::Port& port = run.output_ports()[i];
    if (port.number < 0) {
      outputs.push_back(full(context_, port.dtype, to_shape(port.shape), 0));
      continue;
    }
    const UOp buffer = make_buffer(context_->graph(), run.output(i), port.dtype,
                                   element_count(port.shape, "an output"));
    outputs.emplace_back(context_, make_reshape(buffer, to_shape(port.shape)));
  }
  return outputs;
}

std::vector<Tensor> LoadedModel::end_run(Ref<TensorRun> run) {
  std::vector<Tensor> outputs = outputs_of(*run);
  run->let_go();
  idle_.whole.push_back(std::move(run));
  return outputs;
}

}  // namespace tiny::onnx
