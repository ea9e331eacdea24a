#include "onnx/import/import.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "engine/host_room.h"
#include "engine/realize.h"
#include "ir/build.h"
#include "onnx/attributes.h"
#include "onnx/import/host_value.h"
#include "onnx/import/narrow.h"
#include "onnx/import/table.h"
#include "schedule/schedule.h"
#include "tensor/create.h"
#include "tensor/custom.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/random.h"

namespace tiny::onnx {

namespace {

// Results of at most this many elements are computed on the host.
constexpr int64_t kFoldedMax = 1024;
// What is computed for a shape operand that is known only now.
constexpr int64_t kHostMax = int64_t{1} << 20;
// What inputs decide is asked for programs: so many elements, so many times for one.  Each answer
// is a part of a program's key, and costs an import and a run.
constexpr int64_t kAskedElementsMax = 1024;
constexpr size_t kQuestionsMax = 64;
// Constants of at most this many bytes are copied.
constexpr int64_t kCopiedMax = 16384;

// The first of two or more integers that count up one by one; none if they do not.
std::optional<int64_t> counted_from(const HostTensor& tensor, int64_t count) {
  if (tensor.dtype != kInt32 && tensor.dtype != kInt64) return std::nullopt;
  const auto size = static_cast<size_t>(tensor.dtype.bytes());
  int64_t first = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, tensor.bytes.data() + static_cast<size_t>(i) * size, size);
    const int64_t value = int_of(tensor.dtype, bits);
    if (i == 0) first = value;
    if (value < INT32_MIN || value > INT32_MAX || value - i != first) return std::nullopt;
  }
  if (count < 2) return std::nullopt;
  return first;
}

constexpr const char* kIncompleteGraph = "its graph holds or needs what is not supported";

std::string label_of(const Node& node) {
  if (!node.name.empty()) return node.name;
  for (const std::string& output : node.outputs)
    if (!output.empty()) return output;
  return "";
}

std::string origin_name(const Node& node) {
  if (!node.name.empty()) return node.name;
  const std::string label = label_of(node);
  return label.empty() ? node.op_type : cat(node.op_type, ":", label);
}

// Whether the library has the operator, or the context was given it.
bool is_known(const CustomOps& custom_ops, const Node& node) {
  return find_row(node.domain, node.op_type, node.version) ||
         custom_ops.find(node.domain, node.op_type);
}

std::string missing_row(const Node& node) {
  const std::string versions = supported_versions(node.domain, node.op_type);
  if (versions.empty()) return "the operator is not supported";
  return cat("version ", node.version, " of the operator set is not supported (versions ", versions,
             " are)");
}

// The operators' names of this domain that may have been meant.
std::string suggestion(const Node& node) {
  std::vector<std::string> names;
  for (std::span<const Row> table : tables())
    for (const Row& row : table)
      if (node.domain == row.domain) names.emplace_back(row.op_type);
  return did_you_mean(node.op_type, names);
}

constexpr uintptr_t kVectorBytes = 64;
// Bytes of what kernels read again and again, vectors across cache lines and all, if it stays where
// it is; larger weights are laid out anew or read once a run.
constexpr int64_t kReadAgainMax = 64 << 10;

// The bits of a tensor whose elements all have the same.
std::optional<uint64_t> uniform_bits(const HostTensor& tensor) {
  constexpr int64_t kMostLookedAt = 4096;
  const int64_t count = element_count(tensor.shape, "a constant");
  if (count == 0 || count > kMostLookedAt) return std::nullopt;
  const auto width = static_cast<size_t>(tensor.dtype.bytes());
  for (int64_t i = 1; i < count; ++i)
    if (std::memcmp(tensor.bytes.data(), tensor.bytes.data() + static_cast<size_t>(i) * width,
                    width) != 0)
      return std::nullopt;
  uint64_t bits = 0;
  std::memcpy(&bits, tensor.bytes.data(), width);
  return bits;
}

void drop_bytes(void* user) {
  delete static_cast<SharedBytes*>(user);
}
void unload_bytes(void* user) {
  static_cast<SharedBytes*>(user)->unload();
}

// The bytes where they are, for as long as the storage, or a copy where the device cannot see them.
Ref<Storage> wrapped(Context& context, const SharedBytes& bytes) {
  if (!context.device().sees_host()) return context.from_host(bytes.data(), bytes.size());
  auto keeper = std::make_unique<SharedBytes>(bytes);
  // Kernels only read captured memory, so a read-only mapping serves.
  Ref<Buffer> memory = context.device().wrap(const_cast<std::byte*>(bytes.data()), bytes.size());
  Ref<Storage> storage = make_ref<Storage>(std::move(memory), 0, drop_bytes, keeper.get());
  keeper.release();
  if (bytes.can_unload()) storage->set_unload(unload_bytes);
  return storage;
}

// A copy of the bytes in memory of the device, from which shapes may be computed: where it keeps
// none, in memory that it is shown.
Ref<Storage> copied(Context& context, const SharedBytes& bytes) {
  Ref<Storage> storage = context.from_host(bytes.data(), bytes.size());
  if (has_elements(*storage)) return storage;
  return wrapped(context, SharedBytes::own({bytes.view().begin(), bytes.view().end()}));
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

Ref<Storage> Weights::storage(Context& context, const HostTensor& tensor) {
  Ref<Storage>& known = storages_[tensor.bytes.data()];
  if (known) return known;
  const auto address = std::bit_cast<uintptr_t>(tensor.bytes.data());
  const bool in_place = address % kVectorBytes == 0 || tensor.bytes.size() > kReadAgainMax;
  known = in_place ? wrapped(context, tensor.bytes) : copied(context, tensor.bytes);
  return known;
}

Value Importer::constant(const HostTensor& tensor) {
  Value value;
  value.known = std::make_shared<const HostTensor>(tensor);
  const Shape shape = to_shape(tensor.shape);
  check_shape(shape, tensor.dtype);
  if (const auto bits = uniform_bits(tensor)) {
    value.tensor = full_bits(context_, tensor.dtype, shape, *bits);
    return value;
  }
  const int64_t count = element_count(tensor.shape, "a constant");
  if (count == 0) {
    value.tensor = full_bits(context_, tensor.dtype, shape, 0);
    return value;
  }
  if (const auto first = counted_from(tensor, count)) {
    // Positions, not data: what selects by them can be read instead of summed.
    UOp positions = make_iota(context_->graph(), count, tensor.dtype);
    if (*first != 0) {
      const UOp start = context_->graph().constant_int(tensor.dtype, *first);
      positions = add(positions, make_expand(make_reshape(start, {1}), {count}));
    }
    value.tensor = Tensor(context_, make_reshape(positions, shape));
    return value;
  }
  // Small ones are copied: what is folded on the way must not stay with the model.
  const Ref<Storage> storage = tensor.bytes.size() <= kCopiedMax
                                   ? copied(*context_, tensor.bytes)
                                   : weights_.storage(*context_, tensor);
  storage->set_constant();
  const UOp buffer = make_buffer(context_->graph(), storage, tensor.dtype, count);
  value.tensor = Tensor(context_, make_reshape(buffer, shape));
  return value;
}

Tensor Importer::text_table() {
  require(static_cast<bool>(text_.table), Status::Unsupported,
          "a function of texts, which only a run of a whole model has");
  text_.is_asked = true;
  return text_.table;
}

Value Importer::constant(const TensorData& tensor) {
  const TensorTypeInfo& type = *tensor_type(tensor.type);
  if (tensor.type == kTextType) {
    std::vector<int64_t> numbers;
    for (const std::string& text : tensor.strings) numbers.push_back(texts().number_of(text));
    const auto* bytes = reinterpret_cast<const std::byte*>(numbers.data());
    Value value = constant(HostTensor{
        kInt64, tensor.dims, SharedBytes::own({bytes, bytes + numbers.size() * sizeof(int64_t)})});
    value.narrow = kTextType;
    return value;
  }
  if (!is_narrow(type)) return constant(to_host_tensor(tensor));
  Value value;
  if (type.bits < 8 && tensor.count > kFoldedMax)
    value.tensor =
        unpacked(constant(HostTensor{kUInt8, {tensor.bytes.size()}, tensor.bytes}).tensor, tensor);
  else
    value = constant(to_host_tensor(tensor));
  value.narrow = tensor.type;
  return value;
}

Shape Importer::host_sizes_of(const Tensor& tensor, const std::string& what,
                              const FoundSize& found) {
  const Dependence& on = dependence(tensor);
  if ((on.on_variable || on.on_input) && tensor.dtype().is_int())
    if (const Tensor wide = cast(tensor, kInt64);
        const auto elements = host_expressions(wide.node(), kFoldedMax)) {
      const Tensor flat = flatten(wide);
      Shape sizes;
      for (size_t i = 0; i < elements->size(); ++i) {
        const UOp& e = (*elements)[i];
        const auto place = static_cast<int64_t>(i);
        sizes.push_back(e ? tiny::Dim(e) : found(i, slice_axis(flat, 0, place, place + 1)));
      }
      return sizes;
    }
  return to_shape(integers_of(host_value_of(tensor, what)));
}

HostTensor Importer::host_value_of(const Tensor& tensor, const std::string& what) {
  const Dependence& on = dependence(tensor);
  if (!on.on_data() && !on.on_variable)
    if (auto value = host_value(tensor.node(), kHostMax)) return std::move(*value);
  if (!on.on_data() && on.on_variable) {
    const auto elements = host_expressions(tensor.node(), kFoldedMax);
    if (elements)
      if (auto value = numbers_of(*elements, tensor)) return std::move(*value);
    throw_free({&tensor.node(), 1}, what);
  }
  if (on.on_data()) {
    auto answer = decided(tensor);
    require(answer.has_value(), Status::Unsupported, what,
            " decides a shape and depends on input data");
    return std::move(*answer);
  }
  const Ints shape = dims_of(tensor);
  const int64_t count = element_count(shape, "a shape operand");
  const HostRoom room(*context_, count, tensor.dtype().bytes());
  std::vector<std::byte> bytes(static_cast<size_t>(count * tensor.dtype().bytes()));
  read(*context_, tensor.node(), bytes.data(), static_cast<int64_t>(bytes.size()));
  return HostTensor{tensor.dtype(), shape, SharedBytes::own(std::move(bytes))};
}

const HostTensor* Importer::find_decision(const Question& question) const {
  if (!questions_.decisions) return nullptr;
  const auto at = std::ranges::find(*questions_.decisions, question, &Decision::question);
  return at == questions_.decisions->end() ? nullptr : &at->answer;
}

// A question is known again by its node and place when the graph is imported with its answer: what
// is imported several times, or is not before a loop's round, cannot be told apart.
bool Importer::may_ask(const Tensor& tensor) {
  const bool is_askable = questions_.now.node &&
                          std::ranges::none_of(scopes_, &Scope::is_repeated) &&
                          dependence(tensor).on_steps.empty() && all_const(tensor.shape()) &&
                          product(tensor.shape()).value() <= kAskedElementsMax;
  questions_.has_guessed = questions_.has_guessed || (is_askable && !questions_.decisions);
  return is_askable && questions_.decisions && questions_.decisions->size() < kQuestionsMax;
}

std::optional<HostTensor> Importer::decided(const Tensor& tensor) {
  const Question question{questions_.now.node, questions_.now.questions++};
  if (const HostTensor* answer = find_decision(question)) {
    require(answer->dtype == tensor.dtype() && answer->shape == dims_of(tensor), Status::Internal,
            "the answer to another question");
    return *answer;
  }
  if (!may_ask(tensor)) return std::nullopt;
  // Behind a branch that is not taken values are any.
  const Tensor value = guard_ ? where(guard_, tensor, tiny::number_int(tensor, 0)) : tensor;
  throw Undecided{question, contiguous(value)};
}

// Asks for a size that runs compute; returns if it cannot be asked.
void Importer::ask_size(std::string_view variable) {
  const auto at = std::ranges::find(questions_.sizes, variable, &AskedSize::variable);
  const ComputedVariable* size = find_computed(variable);
  if (at == questions_.sizes.end() || !size || !at->question.node) return;
  const Tensor value(context_, size->value);
  if (may_ask(value)) throw Undecided{at->question, value};
}

// The number of elements that `count` (int64, one element) will say, at most `most`.
tiny::Dim Importer::computed_size(const Tensor& count, const tiny::Dim& most, const Node& node,
                                  int64_t least) {
  // Behind a branch that is not taken there are none.
  return add_size(count, {guard_ ? 0 : least, upper_bound(most)}, is_open(most), node);
}

tiny::Dim Importer::open_size(const Tensor& count, const Node& node, int64_t most) {
  return add_size(count, {0, most}, true, node);
}

tiny::Dim Importer::common_size(const tiny::Dim& a, const tiny::Dim& b, const Node& node) {
  if ((a - b).is_const() || (!is_computed(a) && !is_computed(b))) {
    require(decide_equal(a, b), Status::InvalidModel, "sizes of ", a, " and ", b,
            ", which must be the same");
    return a;
  }
  const Tensor one = size_tensor(context_, a), other = size_tensor(context_, b);
  const Tensor both = where(equal(one, other), one, tiny::number_int(one, -1));
  return computed_size(both, upper_bound(a) < upper_bound(b) ? a : b, node);
}

tiny::Dim Importer::add_size(const Tensor& count, Interval range, bool is_open, const Node& node) {
  const Dependence& on = dependence(count);
  if (!on.on_data() && !on.on_variable) return integers_of(host_value_of(count, "its count")).at(0);
  require(has_computed_sizes_, Status::Unsupported, "input data decides the size of its result");
  require(on.on_steps.empty(), Status::Unsupported,
          "data decides the size of its result, in a loop");
  const Question question{questions_.now.node, questions_.now.questions++};
  if (const HostTensor* answer = find_decision(question)) return integers_of(*answer).at(0);
  // Computed whether or not the branch around is: behind one that is not taken values are any.
  const Tensor none = full(context_, kInt64, {}, 0);
  const UOp value =
      contiguous(guard_ ? where(guard_, reshape(count, Shape()), none) : count).node();
  if (is_open) range.hi = std::min(range.hi, kOpenSizeMax);
  for (const ComputedVariable& known : computed_sizes_)
    if (known.value == value && known.is_open == is_open &&
        known.variable.variable_arg().min == range.lo &&
        known.variable.variable_arg().max == range.hi)
      return tiny::Dim(known.variable);
  const std::string name = cat('#', node.name.empty() ? node.op_type : node.name);
  std::string unused = name;
  for (size_t number = computed_sizes_.size(); find_computed(unused); ++number)
    unused = cat(name, '\'', number);
  const UOp variable = context_->graph().variable(unused, range.lo, range.hi);
  computed_sizes_.push_back({variable, value, is_open});
  const bool is_in_body = std::ranges::any_of(scopes_, &Scope::is_repeated);
  questions_.sizes.push_back({unused, is_in_body ? Question() : question});
  return tiny::Dim(variable);
}

namespace {

std::vector<std::string> names_in(const tiny::Dim& size) {
  std::vector<std::string> names;
  if (size.is_const()) return names;
  for (const UOp& u : topological({&size.expression(), 1}))
    if (u.op() == Op::Variable) names.push_back(u.variable_arg().name);
  return names;
}

}  // namespace

bool Importer::is_computed(const tiny::Dim& size) const {
  return are_computed(names_in(size));
}

bool Importer::is_open(const tiny::Dim& size) const {
  return std::ranges::any_of(names_in(size), [&](const std::string& name) {
    const ComputedVariable* found = find_computed(name);
    return found && found->is_open;
  });
}

void Importer::require_found(const Shape& sizes) const {
  for (const tiny::Dim& size : sizes)
    if (!is_computed(size)) size.value();
}

const ComputedVariable* Importer::find_computed(std::string_view variable) const {
  const auto at = std::ranges::find_if(computed_sizes_, [&](const ComputedVariable& c) {
    return c.variable.variable_arg().name == variable;
  });
  return at == computed_sizes_.end() ? nullptr : &*at;
}

bool Importer::are_computed(const std::vector<std::string>& variables) const {
  return !variables.empty() && std::ranges::all_of(variables, [&](const std::string& name) {
    return find_computed(name);
  });
}

bool Importer::is_decided_by_data(const Tensor& tensor) {
  const Dependence& on = dependence(tensor);
  if (on.on_data()) return true;
  if (computed_sizes_.empty() || !on.on_variable) return false;
  return std::ranges::any_of(topological({&tensor.node(), 1}, has_memory), [&](const UOp& u) {
    return u.op() == Op::Variable && find_computed(u.variable_arg().name);
  });
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
    dtypes.push_back(input.narrow != 0 ? tensor_type_name(input.narrow)
                     : input.tensor    ? tiny::to_string(input.tensor.dtype())
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
  if (row->import) return row->import(call);
  require(call.inputs() == 1, Status::InvalidModel, "it has ", call.inputs(),
          " inputs and takes one");
  return {row->unary(call.in(0))};
}

void Importer::call(const Node& node, std::vector<Value> inputs) {
  context_->stop().check();
  const bool known = std::all_of(inputs.begin(), inputs.end(),
                                 [](const Value& v) { return !v.tensor || v.known; });
  require_takes_narrow(node, inputs);
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
    value.narrow = moves_narrow(node) ? moved_narrow(node, call) : made.narrow;
    value.columns = made.columns;
    scopes_.back().values.insert_or_assign(node.outputs[i], std::move(value));
  }
}

namespace {

// Gives a value back what it was, also where an error ends it.
template <class T>
class Restored {
 public:
  Restored(T& value, T before) : value_(value), before_(std::move(before)) {}
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;
  ~Restored() { value_ = before_; }

 private:
  T& value_;
  T before_;
};

}  // namespace

void Importer::node(const Node& node) {
  const Asking outer = std::exchange(questions_.now, {&node, 0});
  const Restored restored(questions_.now, outer);
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
    if (!has_row) throw Error(Status::Unsupported, missing_row(node));
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
                            std::ranges::any_of(computed_sizes_, &ComputedVariable::is_open);
    if (e.status() != Status::Unsupported && !is_of_open)
      throw e.at(describe(node)).in_node(label_of(node));
    if (is_of_open)
      for (const ComputedVariable& size : computed_sizes_)
        if (size.is_open) ask_size(size.variable.variable_arg().name);
    note(node, inputs, e.message());
  }
}

Tensors Importer::apply(const Node& node, std::vector<Value> inputs) {
  if (!is_known(context_->custom_ops(), node))
    throw Error(Status::Unsupported, missing_row(node) + suggestion(node));
  is_alone_ = true;
  scopes_.emplace_back();
  while (!inputs.empty() && !inputs.back().is_given()) inputs.pop_back();
  call(node, std::move(inputs));
  Tensors outputs;
  for (const std::string& name : node.outputs) {
    const Value& value = scopes_.back().values.at(name);
    require(static_cast<bool>(value.tensor) && value.narrow != kTextType, Status::Unsupported, name,
            " is ", value.tensor ? "of texts" : "a sequence or an optional value",
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
    if (value.narrow == 0) value.narrow = narrow_input(graph, input.name);
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
          computed_sizes_.size(), follows_.size(),     guard_};
}

void Importer::go_back(const Mark& mark) {
  const auto cut = [](auto& list, size_t size) {
    list.erase(list.begin() + static_cast<ptrdiff_t>(size), list.end());
  };
  cut(scopes_, mark.scopes);
  cut(unsupported_, mark.noted);
  cut(draws_.rounds, mark.rounds);
  cut(computed_sizes_, mark.sizes);
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

namespace {

// Element types by name, as the file declares them.
using Types = std::map<std::string_view, int32_t>;

void declare(const Graph& graph, Types& types) {
  for (const auto* list : {&graph.inputs, &graph.value_infos, &graph.outputs})
    for (const ValueInfo& info : *list) types[info.name] = info.type.elem_type;
  for (const TensorData& tensor : graph.initializers) types[tensor.name] = tensor.type;
}

// Whether the type is a narrow one, or that of texts, and the operator is one of those that take
// them.
bool takes(const Node& node, int32_t type) {
  if (type == kTextType) return takes_texts(node);
  const TensorTypeInfo* info = tensor_type(type);
  return info && is_narrow(*info) && takes_narrow(node);
}

bool is_ours(int32_t type) {
  const TensorTypeInfo* info = tensor_type(type);
  return info && info->ours != ScalarType::Void;
}

void look_at(const Graph& graph, Types types, const CustomOps& custom_ops,
             std::vector<UnsupportedNode>& out) {
  declare(graph, types);
  for (const Node& node : graph.nodes) {
    std::vector<std::string> dtypes;
    std::string reason;
    if (!is_known(custom_ops, node)) reason = missing_row(node);
    for (const auto* names : {&node.inputs, &node.outputs})
      for (const std::string& name : *names) {
        const auto at = types.find(name);
        const int32_t type = at == types.end() ? 0 : at->second;
        if (names == &node.inputs && !name.empty())
          dtypes.push_back(type == 0       ? "?"
                           : is_ours(type) ? tiny::to_string(DType(tensor_type(type)->ours))
                                           : tensor_type_name(type));
        if (reason.empty() && type != 0 && !is_ours(type) && !takes(node, type))
          reason = cat("the element type ", tensor_type_name(type), " is not supported");
      }
    if (!reason.empty())
      out.push_back(
          {label_of(node), node.domain, node.op_type, node.version, std::move(dtypes), reason});
    for (const Attribute& attribute : node.attributes)
      for (const Graph& inner : attribute.graphs) look_at(inner, types, custom_ops, out);
  }
}

bool any_of_them(const std::vector<std::string>& wanted, const std::set<std::string_view>& names) {
  return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& name) {
    return !name.empty() && names.contains(name);
  });
}

// Adds the names whose elements must be known so that the nodes can be imported.
void demand(const Graph& graph, std::set<std::string_view>& names) {
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    for (const Attribute& attribute : node.attributes)
      for (const Graph& inner : attribute.graphs) {
        for (const ValueInfo& output : inner.outputs)
          if (any_of_them(node.outputs, names)) names.insert(output.name);
        demand(inner, names);
        for (const ValueInfo& input : inner.inputs)
          if (names.contains(input.name)) names.insert(node.inputs.begin(), node.inputs.end());
      }
    const Row* row = find_row(node.domain, node.op_type, node.version);
    if (!row) continue;
    const bool of_shape = node.op_type == "Shape" || node.op_type == "Size";
    const bool wanted = !of_shape && any_of_them(node.outputs, names);
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (wanted || (k < 32 && ((row->host_operands >> k) & 1) != 0)) names.insert(node.inputs[k]);
  }
}

}  // namespace

std::vector<UnsupportedNode> find_unsupported(const Model& model, const CustomOps& custom_ops) {
  std::vector<UnsupportedNode> out;
  look_at(model.graph, {}, custom_ops, out);
  return out;
}

void throw_unsupported(const std::vector<UnsupportedNode>& nodes) {
  std::vector<std::string> lines;
  for (const UnsupportedNode& n : nodes)
    lines.push_back(cat(n.domain, n.domain.empty() ? "" : ".", n.op_type, "-", n.version, "(",
                        join(n.dtypes, ", "), ") at \"", n.node, "\": ", n.reason));
  throw Error(Status::Unsupported, cat(nodes.size(), nodes.size() == 1 ? " node is" : " nodes are",
                                       " not supported: ", join(lines, "; ")))
      .in_node(nodes.front().node);
}

std::vector<size_t> host_input_candidates(const Model& model, const std::vector<size_t>& inputs) {
  std::set<std::string_view> names;
  demand(model.graph, names);
  std::vector<size_t> out;
  for (size_t i : inputs)
    if (names.contains(model.graph.inputs[i].name)) out.push_back(i);
  return out;
}

}  // namespace tiny::onnx
