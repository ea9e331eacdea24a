#include "onnx/export/export.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "base/error.h"
#include "engine/compile.h"
#include "engine/custom_op.h"
#include "engine/realize.h"
#include "onnx/attributes.h"
#include "onnx/export/emitter.h"
#include "onnx/export/recognize.h"
#include "shape/copy_elements.h"

namespace tiny::onnx {

namespace {

using Names = Emitter::Names;

// Keeps the memory of a tensor for the writer.
class StorageBytes final : public BytesOwner {
 public:
  explicit StorageBytes(Ref<Storage> storage) : storage_(std::move(storage)) {}

 private:
  Ref<Storage> storage_;
};

// A node, and what makes it.
struct Plan {
  UOp node;
  std::optional<Recognized> recognized;
  std::vector<UOp> needs;  // to be written before
};

class Exporter {
 public:
  Exporter(const Ref<Context>& context, Model& model)
      : context_(context), model_(model), emitter_(model) {}

  void add_input(const ExportPort& port);
  void add_outputs(const std::vector<ExportPort>& outputs);
  void add_domains();

 private:
  using Loop = const ScanLoop*;

  bool has_memory(const UOp& node) const;
  bool is_weight(const UOp& node) const;
  HostTensor elements_of(const UOp& node) const;
  const Plan& plan(const UOp& node);
  Plan make_plan(const UOp& node);
  std::vector<UOp> needs_of_scan(const UOp& node);
  void write(std::span<const UOp> roots);
  void emit(const Plan& plan);
  void emit_memory(const UOp& node);
  void emit_recognized(const Plan& plan);
  void emit_call(const UOp& node);
  void emit_scan(const UOp& node);
  std::string in_shape(const std::string& name, const Shape& has, const Shape& wants);
  onnx::Graph scan_body(const UOp& node, const std::vector<UOp>& states,
                        const std::vector<UOp>& elements);
  ValueInfo info(const std::string& name, DType dtype, const Shape& shape) const;

  const Ref<Context>& context_;
  Model& model_;
  Emitter emitter_;
  std::unordered_map<const tiny::Node*, UOp> placeholders_;  // inputs by what they are views of
  std::unordered_map<const tiny::Node*, Plan> plans_;
  std::unordered_map<Loop, Names> loops_;
  std::unordered_set<std::string> domains_;
};

// ---- Inputs and outputs.

ValueInfo Exporter::info(const std::string& name, DType dtype, const Shape& shape) const {
  ValueInfo value;
  value.name = name;
  value.type.kind = ValueType::Kind::Tensor;
  value.type.has_rank = true;
  value.type.elem_type = tensor_type_of_dtype(dtype);
  for (const tiny::Dim& d : shape) {
    Dim& dim = value.type.dims.emplace_back();
    if (d.is_const())
      dim.value = d.value();
    else
      dim.name = d.expression().op() == Op::Variable ? d.expression().variable_arg().name
                                                     : expression_text(d.expression());
  }
  return value;
}

void Exporter::add_input(const ExportPort& port) {
  const UOp& node = port.tensor.node();
  UOp base = node;
  while (base.op() == Op::Reshape) base = base.src(0);
  require(is_input(base), Status::InvalidArgument, "input \"", port.name,
          "\" is no placeholder, which tiny_input makes");
  const std::string name = emitter_.fresh(port.name);
  require(name == port.name, Status::InvalidArgument, "two inputs are named \"", port.name, "\"");
  model_.graph.inputs.push_back(info(name, node.dtype(), shape_of(node)));
  emitter_.set_name(node, name);
  placeholders_.emplace(base.node(), node);
  const Shape& shape = shape_of(node);
  for (size_t i = 0; i < shape.size(); ++i)
    if (!shape[i].is_const() && shape[i].expression().op() == Op::Variable)
      emitter_.set_variable(shape[i].expression(), name, static_cast<int64_t>(i));
}

void Exporter::add_outputs(const std::vector<ExportPort>& outputs) {
  std::vector<UOp> roots;
  for (const ExportPort& port : outputs) {
    const std::string name = emitter_.fresh(port.name);
    require(name == port.name, Status::InvalidArgument, "two inputs or outputs are named \"",
            port.name, "\"");
    roots.push_back(port.tensor.node());
  }
  write(roots);
  for (size_t i = 0; i < outputs.size(); ++i) {
    onnx::Node last;
    last.op_type = "Identity";
    last.inputs = {emitter_.name(roots[i])};
    last.outputs = {outputs[i].name};
    model_.graph.nodes.push_back(std::move(last));
    model_.graph.outputs.push_back(info(outputs[i].name, roots[i].dtype(), shape_of(roots[i])));
  }
}

void Exporter::add_domains() {
  model_.opset_imports.push_back({"", emitter_.has_bit_casts() ? kBitCastOpset : kWrittenOpset});
  model_.ir_version = emitter_.has_bit_casts() ? kBitCastIrVersion : kWrittenIrVersion;
  for (const std::string& domain : domains_) model_.opset_imports.push_back({domain, 1});
}

// ---- Memory.

bool Exporter::has_memory(const UOp& node) const {
  const Ref<Storage> storage = storage_of(node);
  return storage && storage->has_memory();
}

// Memory, or a view of it.
bool Exporter::is_weight(const UOp& node) const {
  const bool is_view = node.op() == Op::Reshape || node.op() == Op::AsStrided;
  return has_memory(node) || (is_view && has_memory(node.src(0)) && all_const(shape_of(node)));
}

HostTensor Exporter::elements_of(const UOp& node) const {
  const Ref<Storage> storage = storage_of(node);
  require(has_elements(*storage), Status::Device, "the device keeps no memory of a tensor");
  const std::byte* data = storage->memory().host();
  const Ints shape = const_dims(shape_of(node));
  const int64_t bytes = element_count(shape, "a weight") * node.dtype().bytes();
  const auto size = static_cast<size_t>(bytes);
  if (!data) {
    std::vector<std::byte> copy(size);
    copy_to_host(*storage, copy.data(), bytes);
    return {node.dtype(), shape, SharedBytes::own(std::move(copy))};
  }
  const SharedBytes all(make_ref<StorageBytes>(storage), {data + storage->byte_offset(), size});
  return {node.dtype(), shape, all};
}

// A view of memory is a constant of its own shape.
void Exporter::emit_memory(const UOp& node) {
  UOp base = node;
  const bool is_view = !has_memory(node);
  if (is_view) base = node.src(0);
  HostTensor tensor = elements_of(base);
  if (is_view) {
    tensor.shape = const_dims(shape_of(node));
    if (node.op() == Op::AsStrided) {
      const auto width = static_cast<size_t>(node.dtype().bytes());
      const auto count = static_cast<size_t>(element_count(tensor.shape, "a weight"));
      std::vector<std::byte> copy(count * width);
      const ViewArg& view = node.view_arg();
      if (count > 0)
        copy_elements(copy.data(), tensor.bytes.data() + view.offset * static_cast<int64_t>(width),
                      width, tensor.shape, view.strides);
      tensor.bytes = SharedBytes::own(std::move(copy));
    }
  }
  emitter_.set_name(node, emitter_.memory(std::move(tensor), "weight"));
}

// ---- The order of nodes.

const Plan& Exporter::plan(const UOp& node) {
  const auto known = plans_.find(node.node());
  if (known != plans_.end()) return known->second;
  return plans_.emplace(node.node(), make_plan(node)).first->second;
}

Plan Exporter::make_plan(const UOp& node) {
  Plan made{node, std::nullopt, {}};
  if (is_weight(node)) return made;
  const auto input = placeholders_.find(node.node());
  if (input != placeholders_.end()) {
    made.needs = {input->second};
    return made;
  }
  require(node.op() != Op::Buffer, Status::InvalidArgument,
          "the outputs depend on a placeholder that is none of the inputs");
  require(node.op() != Op::After && node.op() != Op::Assign, Status::Unsupported,
          "the outputs depend on an assignment; a model has none");
  if (node.op() == Op::Scan || node.op() == Op::ScanStep || node.op() == Op::ScanStore) {
    invariant(node.op() == Op::Scan, "a step is written with its scan");
    made.needs = needs_of_scan(node);
    return made;
  }
  made.recognized = recognize(context_, node);
  if (made.recognized) {
    for (const UOp& input : made.recognized->inputs)
      if (input) made.needs.push_back(input);
    return made;
  }
  made.needs = operands_of(node);
  for (const UOp& hidden : hidden_results(node))
    if (!(hidden == node) && recognize(context_, hidden)) {
      made.needs = {hidden};
      break;
    }
  return made;
}

// Without recursion: a graph may be deep.
void Exporter::write(std::span<const UOp> roots) {
  struct Visit {
    const Plan& plan;
    size_t next = 0;
  };
  std::vector<Visit> stack;
  const auto visit = [&](const UOp& node) {
    if (!emitter_.has(node)) stack.push_back({plan(node)});
  };
  for (const UOp& root : roots) {
    visit(root);
    while (!stack.empty()) {
      Visit& top = stack.back();
      if (top.next < top.plan.needs.size()) {
        const UOp need = top.plan.needs[top.next++];
        visit(need);
        continue;
      }
      const Plan& done = top.plan;
      stack.pop_back();
      if (!emitter_.has(done.node)) emit(done);
    }
  }
}

void Exporter::emit(const Plan& plan) {
  const UOp& node = plan.node;
  if (is_weight(node)) return emit_memory(node);
  if (placeholders_.contains(node.node()))
    return emitter_.set_name(
        node, emitter_.node("Reshape", {emitter_.name(plan.needs[0]), emitter_.ints({-1})}));
  if (plan.recognized) return emit_recognized(plan);
  if (node.op() == Op::Call) return emit_call(node);
  if (node.op() == Op::Scan) return emit_scan(node);
  emit_elementary(emitter_, node, plan.needs);
}

void Exporter::emit_recognized(const Plan& plan) {
  const Recognized& made = *plan.recognized;
  Names inputs;
  for (const UOp& input : made.inputs) inputs.push_back(input ? emitter_.name(input) : "");
  if (!made.axes.empty()) inputs.push_back(emitter_.ints(made.axes));
  const Names outputs =
      emitter_.node("", made.op_type, std::move(inputs), made.attributes, made.output + 1);
  emitter_.set_name(plan.node, outputs[made.output]);
}

// ---- Operators of the caller's.

void Exporter::emit_call(const UOp& node) {
  const CallResult& result = call_result(node);
  const HostCall& call = *result.call;
  const auto* custom = static_cast<const CustomCall*>(call.function.get());
  Names inputs;
  for (const HostCall::Value& value : call.inputs)
    inputs.push_back(value.source < 0 ? std::string()
                                      : emitter_.name(node.src(static_cast<size_t>(value.source))));
  std::vector<Attribute> attributes;
  if (!custom->attributes.empty()) attributes = attributes_from_json(custom->attributes);
  for (Attribute& attribute : attributes) attribute.is_bare = false;
  domains_.insert(custom->op->domain());
  const Names outputs = emitter_.node(custom->op->domain(), custom->op->name(), std::move(inputs),
                                      std::move(attributes), call.outputs.size());
  for (const UOp& other : alive_results(node)) {
    const size_t index = call_result(other).index;
    // A result is one row.
    emitter_.set_name(other, emitter_.node("Reshape", {outputs[index], emitter_.ints({-1})}));
  }
}

// ---- Recurrences.

// What depends on the steps of a scan.
class Steps {
 public:
  explicit Steps(const UOp& scan) : loop_(scan_part(scan).loop.get()) {
    for (const UOp& u : topological(scan.src()))
      if (depends(u)) inside_.insert(u.node());
  }
  // Also of a node that the scan itself does not have, a view of one.
  bool contain(const UOp& node) const { return inside_.contains(node.node()) || depends(node); }
  bool is_step(const UOp& node) const {
    return node.op() == Op::ScanStep && scan_part(node).loop.get() == loop_;
  }

 private:
  bool depends(const UOp& node) const {
    return is_step(node) || std::ranges::any_of(node.src(), [&](const UOp& s) {
             return inside_.contains(s.node());
           });
  }

  const ScanLoop* loop_;
  std::unordered_set<const tiny::Node*> inside_;
};

// The states by their numbers, and the elements of the steps.
struct StepInputs {
  std::vector<UOp> states, elements;
};
StepInputs step_inputs(const UOp& scan) {
  const Steps steps(scan);
  StepInputs inputs;
  inputs.states.resize(scan_part(scan).loop->states);
  for (const UOp& u : topological(scan.src())) {
    if (!steps.is_step(u)) continue;
    if (scan_part(u).kind == ScanPart::Kind::State)
      inputs.states[scan_part(u).index] = u;
    else
      inputs.elements.push_back(u);
  }
  return inputs;
}

// What the steps see of the outside: what they go through and begin with, and what is the same in
// all of them.
std::vector<UOp> Exporter::needs_of_scan(const UOp& node) {
  const ScanLoop& loop = *scan_part(node).loop;
  require(!loop.is_counted && !loop.is_branch, Status::Unsupported,
          "loops and branches that a run decides are not written to models");
  const Steps steps(node);
  std::vector<UOp> needs;
  for (const UOp& u : topological(node.src()))
    if (steps.is_step(u)) needs.push_back(u.src(0));
  std::vector<UOp> stack;
  for (const UOp& store : node.src()) stack.push_back(store.src(0));
  std::unordered_set<const tiny::Node*> seen;
  while (!stack.empty()) {
    const UOp u = stack.back();
    stack.pop_back();
    if (steps.is_step(u) || !seen.insert(u.node()).second) continue;
    if (!steps.contain(u)) {
      needs.push_back(u);
      continue;
    }
    const Plan& made = plan(u);
    stack.insert(stack.end(), made.needs.begin(), made.needs.end());
  }
  return needs;
}

// A value in another shape, of the same elements.
std::string Exporter::in_shape(const std::string& name, const Shape& has, const Shape& wants) {
  return has == wants ? name : emitter_.node("Reshape", {name, emitter_.sizes(wants)});
}

Shape with_steps(const ScanLoop& loop, const Shape& step) {
  Shape shape{loop.count};
  shape.insert(shape.end(), step.begin(), step.end());
  return shape;
}

onnx::Graph Exporter::scan_body(const UOp& node, const std::vector<UOp>& states,
                                const std::vector<UOp>& elements) {
  onnx::Graph body;
  body.name = emitter_.fresh("steps");
  emitter_.begin_graph(body);
  for (const std::vector<UOp>* list : {&states, &elements})
    for (const UOp& step : *list) {
      const std::string name = emitter_.fresh(list == &states ? "state" : "element");
      body.inputs.push_back(info(name, step.dtype(), shape_of(step)));
      emitter_.set_name(step, name);
    }
  std::vector<UOp> results;
  for (const UOp& store : node.src()) results.push_back(store.src(0));
  write(results);
  const ScanLoop& loop = *scan_part(node).loop;
  // ONNX has the states first.
  for (size_t i = 0; i < results.size(); ++i) {
    const UOp& value = results[(i + loop.outputs) % results.size()];
    const Shape& shape = i < loop.states ? shape_of(states[i]) : shape_of(value);
    const std::string same = in_shape(emitter_.name(value), shape_of(value), shape);
    const std::string name = emitter_.node("Identity", {same});
    body.outputs.push_back(info(name, value.dtype(), shape));
  }
  emitter_.end_graph();
  return body;
}

void Exporter::emit_scan(const UOp& node) {
  const ScanPart& part = scan_part(node);
  const ScanLoop& loop = *part.loop;
  Names& outputs = loops_[&loop];
  if (outputs.empty()) {
    StepInputs inputs = step_inputs(node);
    // A state that no step looks at is not written: its place is taken by the last step's value.
    for (const UOp& state : inputs.states)
      require(static_cast<bool>(state), Status::Unsupported,
              "a recurrence with a state that no step looks at is not written to models");
    Names names;
    Ints reversed_in, reversed_out;
    for (const UOp& state : inputs.states)
      names.push_back(
          in_shape(emitter_.name(state.src(0)), shape_of(state.src(0)), shape_of(state)));
    for (const UOp& element : inputs.elements) {
      names.push_back(in_shape(emitter_.name(element.src(0)), shape_of(element.src(0)),
                               with_steps(loop, shape_of(element))));
      reversed_in.push_back(scan_part(element).reverse ? 1 : 0);
    }
    for (size_t i = 0; i < loop.outputs; ++i)
      reversed_out.push_back(scan_part(node.src(i)).reverse ? 1 : 0);
    Attribute body;
    body.name = "body";
    body.type = AttributeType::Graph;
    body.graphs.push_back(scan_body(node, inputs.states, inputs.elements));
    std::vector<Attribute> attributes{
        std::move(body), int_attribute("num_scan_inputs", std::ssize(inputs.elements))};
    if (!reversed_in.empty())
      attributes.push_back(ints_attribute("scan_input_directions", reversed_in));
    if (!reversed_out.empty())
      attributes.push_back(ints_attribute("scan_output_directions", reversed_out));
    outputs = emitter_.node("", "Scan", std::move(names), std::move(attributes),
                            loop.states + loop.outputs);
  }
  const bool is_last = part.kind == ScanPart::Kind::Last;
  const UOp& made = node.src(is_last ? loop.outputs + part.index : part.index).src(0);
  Shape has = with_steps(loop, shape_of(made));
  if (is_last) {
    has = shape_of(made);
    for (const UOp& state : step_inputs(node).states)
      if (scan_part(state).index == part.index) has = shape_of(state);
  }
  const std::string& name = outputs[is_last ? part.index : loop.states + part.index];
  emitter_.set_name(node, in_shape(name, has, shape_of(node)));
}

}  // namespace

Model export_model(const Ref<Context>& context, const std::vector<ExportPort>& inputs,
                   const std::vector<ExportPort>& outputs) {
  Model model;
  model.producer_name = "tiny";
  model.graph.name = "graph";
  Exporter exporter(context, model);
  for (const ExportPort& port : inputs) exporter.add_input(port);
  exporter.add_outputs(outputs);
  exporter.add_domains();
  return model;
}

}  // namespace tiny::onnx
