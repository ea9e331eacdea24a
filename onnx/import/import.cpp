#include "onnx/import/import.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "onnx/attributes.h"
#include "onnx/import/complex.h"
#include "onnx/import/host_value.h"
#include "onnx/import/narrow.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/custom.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/random.h"

namespace tiny::onnx {

namespace {

constexpr const char* kIncompleteGraph = "its graph holds or needs what is not supported";

std::string origin_name(const Node& node) {
  if (!node.name.empty()) return node.name;
  const std::string label = label_of(node);
  return label.empty() ? node.op_type : cat(node.op_type, ":", label);
}

// The operators' names of this domain that may have been meant.
std::string suggestion(const Node& node) {
  std::vector<std::string> names;
  for (std::span<const Row> table : tables())
    for (const Row& row : table)
      if (node.domain == row.domain) names.emplace_back(row.op_type);
  return did_you_mean(node.op_type, names);
}

// The graph's own one after the other, then those of the graphs in it; `places` are where each
// graph's begin.
void list_names(const Graph& graph, const std::string& outer, std::vector<std::string>& names,
                GraphOrigins& places) {
  places[&graph] = static_cast<Origin>(names.size());
  for (const Node& node : graph.nodes) names.push_back(outer + origin_name(node));
  for (const Node& node : graph.nodes)
    for (const Attribute& attribute : node.attributes)
      for (const Graph& inner : attribute.graphs)
        list_names(inner, cat(outer, origin_name(node), "/"), names, places);
}

}  // namespace

GraphOrigins add_origins(Origins& origins, const Graph& graph) {
  GraphOrigins places;
  std::vector<std::string> names;
  list_names(graph, "", names, places);
  const Origin first = origins.add(std::move(names));
  if (first == kNobody) return {};
  for (auto& [inner, place] : places) place += first;
  return places;
}

Tensor Importer::text_table() {
  require(static_cast<bool>(text_.table), Status::Unsupported,
          "a function of texts, which only a run of a whole model has");
  text_.is_asked = true;
  return text_.table;
}

namespace {

// A number of 64 bits as two words of 32, the lower first.
Tensor words_of(const Tensor& number) {
  const Tensor wide = bitcast(cast(reshape(number, {1}), kInt64), kUInt64);
  const Tensor high = shift_right(wide, tiny::number_int(wide, 32));
  const Tensor low = bit_and(wide, tiny::number_int(wide, UINT32_MAX));
  return cast(concat(std::vector{low, high}, 0), kUInt32);
}

}  // namespace

// Each step of the way is a block of threefry at what it is about: the key of one execution is the
// outside's of all its rounds.
Tensor Importer::random_key(std::optional<double> seed) {
  ++draws_.count;
  const Tensor execution = draws_.execution ? draws_.execution : full(context_, kUInt32, {4}, 0);
  Tensor key = slice_axis(execution, 0, 0, 2);
  if (seed) {
    key = tiny::random_key(context_, std::bit_cast<uint64_t>(*seed));
  } else {
    const auto place = static_cast<uint64_t>(draws_.count);
    key = random_at(key, words_of(full_bits(context_, kInt64, {}, place)));
  }
  key = random_at(key, slice_axis(execution, 0, 2, 4));
  for (const Tensor& round : draws_.rounds) key = random_at(key, words_of(round));
  return contiguous(key);
}

void Importer::in_round(const Tensor& number, const std::function<void()>& make) {
  const size_t depth = draws_.rounds.size();
  draws_.rounds.push_back(number);
  make();
  draws_.rounds.resize(depth);
}

const Value* Importer::find(std::string_view name) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    Scope& scope = scopes_[i];
    if (const auto at = scope.values.find(name); at != scope.values.end()) return &at->second;
    if (const auto at = scope.initializers.find(name); at != scope.initializers.end())
      return &scope.values.emplace(name, constant(*at->second)).first->second;
  }
  return nullptr;
}

bool Importer::is_missing(std::string_view name) const {
  return std::any_of(scopes_.begin(), scopes_.end(),
                     [&](const Scope& scope) { return scope.missing.contains(name); });
}

void Importer::enter(const Graph& graph) {
  Scope& scope = scopes_.emplace_back();
  for (const TensorData& tensor : graph.initializers) scope.initializers[tensor.name] = &tensor;
}

void Importer::note(const Node& node, const std::vector<Value>& inputs, const std::string& reason) {
  std::vector<std::string> dtypes;
  for (const Value& input : inputs)
    dtypes.push_back(input.carried != 0 ? tensor_type_name(input.carried)
                     : input.tensor     ? tiny::to_string(input.tensor.dtype())
                                        : "?");
  unsupported_.push_back(
      {label_of(node), node.domain, node.op_type, node.version, std::move(dtypes), reason});
  for (const std::string& output : node.outputs) scopes_.back().missing[output] = "";
}

Value Importer::folded(const Tensor& tensor, bool inputs_known) {
  const TensorShape shape = tensor.shape();
  check_shape(shape, tensor.dtype());
  if (inputs_known && all_const(shape) && product(shape).value() <= kFoldedMax)
    if (auto value = host_value(tensor.node(), kFoldedMax * 4)) return constant(*value);
  return {tensor, nullptr, nullptr};
}

// By the operator's row, or by the context's own operator of this name.
Tensors Importer::results(const Node& node, Call& call) {
  const Row* row = find_row(node.domain, node.op_type, node.version);
  if (!row) {
    const Ref<const CustomOp> op = context_->custom_ops().find(node.domain, node.op_type);
    Tensors inputs;
    for (size_t i = 0; i < call.inputs(); ++i)
      inputs.push_back(call.has(i) ? call.in(i) : Tensor());
    call.attributes();
    return call_custom(context_, op, attributes_to_json(node), inputs, node.outputs.size());
  }
  if (row->import) return is_of_parts(node, call) ? by_parts(call, row->import) : row->import(call);
  require(call.inputs() == 1, Status::InvalidModel, "it has ", call.inputs(),
          " inputs and takes one");
  return {row->unary(call.in(0))};
}

void Importer::call(const Node& node, std::vector<Value> inputs) {
  context_->stop().check();
  const bool known = std::all_of(inputs.begin(), inputs.end(),
                                 [](const Value& v) { return !v.tensor || v.known; });
  require_takes_carried(node, inputs);
  Call call(*this, node, std::move(inputs));
  const Tensors results = this->results(node, call);
  call.require_asked();
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!call.wants(i)) continue;
    const Value made = call.made(i);
    if (made.sequence || made.map || made.is_nothing) {
      scopes_.back().values.insert_or_assign(node.outputs[i], made);
      continue;
    }
    require(i < results.size() && results[i], Status::Unsupported, "its output ", i,
            " is not supported");
    Value value = folded(results[i], known);
    value.carried =
        made.carried == 0 && moves_narrow(node) ? moved_narrow(node, call) : made.carried;
    value.columns = made.columns;
    scopes_.back().values.insert_or_assign(node.outputs[i], std::move(value));
  }
}

namespace {

// A node asks until it was imported, also where an error ends it.
class AskingScope {
 public:
  AskingScope(Questions& questions, const Node& node)
      : questions_(questions), outer_(questions.set_asking({&node, 0})) {}
  AskingScope(const AskingScope&) = delete;
  AskingScope& operator=(const AskingScope&) = delete;
  ~AskingScope() { questions_.set_asking(outer_); }

 private:
  Questions& questions_;
  Questions::Asking outer_;
};

}  // namespace

void Importer::node(const Node& node) {
  const AskingScope asking(questions_, node);
  std::vector<Value> inputs;
  try {
    const bool has_row = is_known(context_->custom_ops(), node);
    bool ready = true;
    for (const std::string& name : node.inputs) {
      if (name.empty() || is_missing(name)) {
        ready = ready && name.empty();
        inputs.emplace_back();
        continue;
      }
      const Value* value = find(name);
      // Names were checked when the model was read; an outer value may still be out of reach.
      require(value != nullptr, Status::InvalidModel, "value \"", name, "\" is not defined");
      inputs.push_back(*value);
    }
    if (!has_row) throw_error(Status::Unsupported, missing_row(node));
    if (!ready) {
      for (const std::string& output : node.outputs) scopes_.back().missing[output] = "";
      return;
    }
    while (!inputs.empty() && !inputs.back().is_given()) inputs.pop_back();
    call(node, inputs);
  } catch (const FreeDimension& e) {
    if (!are_computed(e.variables())) throw;
    for (const std::string& variable : e.variables()) ask_size(variable);
    note(node, inputs, cat(e.message(), ", a size that input data decides"));
  } catch (const Error& e) {
    // Shapes that sizes make too large which nothing bounds are no fault of the model.
    const bool is_of_open = e.status() == Status::Shape &&
                            std::ranges::any_of(sizes_.computed, &ComputedVariable::is_open);
    if (e.status() != Status::Unsupported && !is_of_open)
      throw e.at(describe(node)).in_node(label_of(node));
    if (is_of_open)
      for (const ComputedVariable& size : sizes_.computed)
        if (size.is_open) ask_size(size.variable.variable_arg().name);
    note(node, inputs, e.message());
  }
}

Tensors Importer::apply(const Node& node, std::vector<Value> inputs) {
  if (!is_known(context_->custom_ops(), node))
    throw_error(Status::Unsupported, missing_row(node) + suggestion(node));
  is_alone_ = true;
  scopes_.emplace_back();
  while (!inputs.empty() && !inputs.back().is_given()) inputs.pop_back();
  call(node, std::move(inputs));
  Tensors outputs;
  for (const std::string& name : node.outputs) {
    const Value& value = scopes_.back().values.at(name);
    require(static_cast<bool>(value.tensor) && value.carried != kTextType, Status::Unsupported,
            name, " is ", value.tensor ? "of texts" : "a sequence or an optional value",
            "; only tensors of numbers are supported");
    outputs.push_back(value.tensor);
  }
  return outputs;
}

void Importer::nodes(const Graph& graph, size_t first) {
  // What is in a graph without origins of its own does the work of who has it.
  const bool has_origins = origins_ && origins_->contains(&graph);
  const Origin own = has_origins ? origins_->at(&graph) : context_->graph().origin();
  for (size_t i = first; i < graph.nodes.size(); ++i) {
    const OriginScope scope(context_->graph(), has_origins ? own + static_cast<Origin>(i) : own);
    const Mark before = mark();
    try {
      node(graph.nodes[i]);
    } catch (const Forked& forked) {
      go_back(before);
      return fork(graph, i, forked);
    }
  }
}

// Of a graph whose nodes have been imported; none if one of them is not supported, of which `noted`
// had been before.
std::optional<Values> Importer::outputs_of(const Graph& graph, size_t noted) {
  if (unsupported_.size() != noted) return std::nullopt;
  Values outputs;
  for (const ValueInfo& output : graph.outputs) {
    if (is_missing(output.name)) return std::nullopt;
    const Value* value = find(output.name);
    require(value != nullptr, Status::InvalidModel, "nothing makes the output \"", output.name,
            "\"");
    outputs.push_back(*value);
  }
  return outputs;
}

Values Importer::import(const Graph& graph, const std::vector<ImportInput>& inputs) {
  enter(graph);
  for (const ImportInput& input : inputs) {
    Value value = input.known ? constant(*input.known) : input.value;
    if (value.carried == 0) value.carried = carried_input(graph, input.name);
    scopes_.back().values.insert_or_assign(input.name, std::move(value));
  }
  nodes(graph);
  Values outputs;
  if (unsupported_.empty())
    for (const ValueInfo& output : graph.outputs) {
      const Value* value = find(output.name);
      require(value != nullptr, Status::InvalidModel, "nothing makes the output \"", output.name,
              "\"");
      outputs.push_back(*value);
    }
  scopes_.pop_back();
  if (!unsupported_.empty()) throw_unsupported(unsupported_);
  return outputs;
}

Values Importer::subgraph(const Graph& graph, const Values& inputs) {
  require(inputs.size() == graph.inputs.size(), Status::InvalidModel, "its graph takes ",
          graph.inputs.size(), " inputs and gets ", inputs.size());
  enter(graph);
  scopes_.back().is_repeated = !graph.inputs.empty();  // a branch takes none
  for (size_t i = 0; i < inputs.size(); ++i) {
    Value value = inputs[i];
    if (const Tensor& tensor = inputs[i].tensor) {
      const Value known = folded(tensor, !dependence(tensor).on_data());
      value.tensor = known.tensor;
      value.known = known.known;
    }
    scopes_.back().values.insert_or_assign(graph.inputs[i].name, std::move(value));
  }
  const size_t before = unsupported_.size();
  nodes(graph);
  std::optional<Values> outputs = outputs_of(graph, before);
  scopes_.pop_back();
  require(outputs.has_value(), Status::Unsupported, kIncompleteGraph);
  return std::move(*outputs);
}

Importer::Mark Importer::mark() const {
  return {scopes_.size(),         unsupported_.size(), draws_.rounds.size(),
          sizes_.computed.size(), follows_.size(),     guard_};
}

void Importer::go_back(const Mark& mark) {
  const auto cut = [](auto& list, size_t size) {
    list.erase(list.begin() + static_cast<ptrdiff_t>(size), list.end());
  };
  cut(scopes_, mark.scopes);
  cut(unsupported_, mark.noted);
  cut(draws_.rounds, mark.rounds);
  cut(sizes_.computed, mark.sizes);
  cut(follows_, mark.follows);
  guard_ = mark.guard;
}

bool Importer::attempt(const std::function<void()>& make, std::string& failure) {
  const Mark before = mark();
  try {
    make();
    return true;
  } catch (const FreeDimension&) {
    throw;
  } catch (const Error& e) {
    const Status s = e.status();
    const bool is_of_graph = s == Status::Unsupported || s == Status::Shape || s == Status::DType ||
                             s == Status::InvalidModel || s == Status::InvalidArgument;
    if (!is_of_graph) throw;
    const size_t noted = before.noted;
    failure = unsupported_.size() > noted
                  ? cat(unsupported_[noted].op_type, " \"", unsupported_[noted].node,
                        "\": ", unsupported_[noted].reason)
                  : e.message();
  }
  go_back(before);
  return false;
}

bool Importer::attempt_if(const Tensor& condition, const std::function<void()>& make,
                          std::string& failure) {
  const Tensor outer = guard_;
  return attempt(
      [&] {
        guard_ = outer ? bit_and(outer, condition) : condition;
        make();
        guard_ = outer;
      },
      failure);
}

}  // namespace tiny::onnx
