#include "onnx/import/call.h"

#include <algorithm>

#include "base/error.h"
#include "base/json_reader.h"
#include "onnx/import/host_value.h"
#include "onnx/import/import.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"

namespace tiny::onnx {

const Ref<Context>& Call::context() const {
  return importer_.context();
}

const Tensor& Call::in(size_t i) const {
  require(has(i), Status::InvalidModel, "input ", i, " is left out");
  require(static_cast<bool>(inputs_[i].tensor), Status::InvalidModel, "input ", i, " is a ",
          inputs_[i].sequence ? "sequence" : "map", ", not a tensor");
  return inputs_[i].tensor;
}

const Tensors& Call::sequence(size_t i) const {
  require(is_sequence(i), Status::InvalidModel, "input ", i, " is no sequence");
  return *inputs_[i].sequence;
}

void Call::set_sequence(size_t i, Tensors tensors) {
  Value value;
  value.sequence = std::make_shared<const Tensors>(std::move(tensors));
  for (const Value& input : inputs_)
    if (value.carried == 0) value.carried = input.carried;
  set_value(i, std::move(value));
}

void Call::set_value(size_t i, Value value) {
  made_.resize(std::max(made_.size(), i + 1));
  made_[i] = std::move(value);
}

void Call::set_carried(size_t i, int32_t type) {
  made_.resize(std::max(made_.size(), i + 1));
  made_[i].carried = type;
}

Tensors Call::all(size_t least) const {
  require(inputs_.size() >= least, Status::InvalidModel, "it has ", inputs_.size(),
          " inputs and needs ", least);
  Tensors out;
  for (size_t i = 0; i < inputs_.size(); ++i) out.push_back(in(i));
  return out;
}

void Call::refuse_outputs(size_t first) const {
  for (size_t i = first; i < outputs(); ++i)
    require(!wants(i), Status::Unsupported, "its output ", i, " is not supported");
}

bool Call::known(size_t i) const {
  return has(i) && (inputs_[i].known || is_known(in(i)));
}

Tensor places(const Call& call, size_t i) {
  const Tensor& guard = call.importer().guard();
  const Tensor& given = call.in(i);
  return guard && !call.known(i) ? where(guard, given, tiny::number_int(given, 0)) : given;
}

HostTensor Call::value(size_t i) const {
  in(i);
  if (inputs_[i].known) return *inputs_[i].known;
  return importer_.host_value_of(inputs_[i].tensor,
                                 cat("input ", i, " (\"", node_.inputs[i], "\")"));
}

Ints Call::ints(size_t i) const {
  return integers_of(value(i));
}
std::vector<double> Call::reals(size_t i) const {
  return reals_of(value(i));
}

Shape Call::sizes(size_t i, const FoundSize& found) const {
  in(i);
  if (inputs_[i].known) return to_shape(integers_of(*inputs_[i].known));
  const auto open = [&](size_t, const Tensor& count) { return importer_.open_size(count, node_); };
  return importer_.host_sizes_of(inputs_[i].tensor,
                                 cat("input ", i, " (\"", node_.inputs[i], "\")"),
                                 found ? found : FoundSize(open));
}

int64_t Call::integer(size_t i) const {
  const Ints all = ints(i);
  require(all.size() == 1, Status::InvalidModel, "input ", i, " has ", all.size(),
          " elements and must have one");
  return all[0];
}

tiny::Dim Call::size(size_t i) const {
  const Shape all = sizes(i);
  require(all.size() == 1, Status::InvalidModel, "input ", i, " has ", all.size(),
          " elements and must have one");
  return all[0];
}

double Call::real(size_t i) const {
  const std::vector<double> all = reals(i);
  require(all.size() == 1, Status::InvalidModel, "input ", i, " has ", all.size(),
          " elements and must have one");
  return all[0];
}

int64_t Call::number_of(const Tensor& tensor, const char* what) const {
  const Ints all = integers_of(importer_.host_value_of(tensor, what));
  require(all.size() == 1, Status::InvalidModel, what, " has ", all.size(),
          " elements and must have one");
  return all[0];
}

namespace {

// What has no type stands for what is asked for, as far as it can.
bool stands_for(const Attribute& a, AttributeType type) {
  if (a.type == type || !a.is_bare) return a.type == type;
  if (a.type == AttributeType::Strings && type == AttributeType::Floats)
    return std::ranges::all_of(a.strings,
                               [](const std::string& s) { return not_finite(s).has_value(); });
  const bool is_list = type == AttributeType::Floats || type == AttributeType::Strings;
  if (is_list && a.type == AttributeType::Ints && a.ints.empty()) return true;
  return (type == AttributeType::Float && a.type == AttributeType::Int) ||
         (type == AttributeType::Floats && a.type == AttributeType::Ints);
}

}  // namespace

void Call::ask(std::string_view name) const {
  if (importer_.is_alone() && std::ranges::find(asked_, name) == asked_.end())
    asked_.emplace_back(name);
}

const std::vector<Attribute>& Call::attributes() const {
  for (const Attribute& a : node_.attributes) ask(a.name);
  return node_.attributes;
}

const Attribute* Call::any_attribute(const char* name) const {
  ask(name);
  return node_.attribute(name);
}

void Call::require_asked() const {
  for (const Attribute& a : node_.attributes)
    require(!a.is_bare || std::ranges::find(asked_, a.name) != asked_.end(),
            Status::InvalidArgument, "the attribute \"", a.name,
            "\" has no meaning here; those that are looked at are ",
            asked_.empty() ? std::string("none") : join(asked_, ", "));
}

const Attribute* Call::attribute(const char* name, AttributeType type) const {
  const Attribute* a = any_attribute(name);
  if (a)
    require(stands_for(*a, type), Status::InvalidModel, "its attribute \"", name, "\" is of type ",
            to_string(a->type), " and must be ", to_string(type));
  return a;
}

int64_t Call::attr(const char* name, int64_t fallback) const {
  const Attribute* a = attribute(name, AttributeType::Int);
  return a ? a->i : fallback;
}

int64_t Call::attr(const char* name) const {
  const Attribute* a = attribute(name, AttributeType::Int);
  require(a != nullptr, Status::InvalidModel, "the attribute \"", name, "\" is missing");
  return a->i;
}

float Call::real_attr(const char* name, float fallback) const {
  const Attribute* text = any_attribute(name);
  if (text && text->is_bare && text->type == AttributeType::String)
    if (const auto value = not_finite(text->s)) return static_cast<float>(*value);
  const Attribute* a = attribute(name, AttributeType::Float);
  return a ? a->f : fallback;
}

std::string Call::text_attr(const char* name, const std::string& fallback) const {
  const Attribute* a = attribute(name, AttributeType::String);
  return a ? a->s : fallback;
}

std::optional<Ints> Call::ints_attr(const char* name) const {
  const Attribute* a = attribute(name, AttributeType::Ints);
  return a ? std::optional<Ints>(a->ints) : std::nullopt;
}

Ints Call::ints_attr(const char* name, const Ints& fallback) const {
  return ints_attr(name).value_or(fallback);
}

std::vector<float> Call::floats_attr(const char* name) const {
  const Attribute* a = attribute(name, AttributeType::Floats);
  return a ? a->floats : std::vector<float>();
}

std::optional<std::vector<std::string>> Call::strings_attr(const char* name) const {
  const Attribute* a = attribute(name, AttributeType::Strings);
  return a ? std::optional(a->strings) : std::nullopt;
}

const Graph& Call::graph_attr(const char* name) const {
  if (const Attribute* bare = any_attribute(name); !bare && importer_.is_alone())
    unsupported("its attribute \"", name, "\" is a graph, which only a model can hold");
  const Attribute* a = attribute(name, AttributeType::Graph);
  require(a != nullptr, Status::InvalidModel, "the attribute \"", name, "\" is missing");
  return a->graphs.front();
}

const TensorData& Call::tensor_attr(const char* name) const {
  const Attribute* a = attribute(name, AttributeType::Tensor);
  require(a != nullptr, Status::InvalidModel, "the attribute \"", name, "\" is missing");
  return a->tensors.front();
}

DType Call::dtype_attr(const char* name, DType fallback) const {
  if (const Attribute* text = any_attribute(name);
      text && text->is_bare && text->type == AttributeType::String) {
    const std::optional<DType> dtype = dtype_named(text->s);
    require(dtype.has_value(), Status::InvalidModel, "its attribute \"", name,
            "\" names no dtype: \"", text->s, '"');
    return *dtype;
  }
  if (!has_attribute(name)) return fallback;
  const int64_t type = type_attr(name, 0);
  const TensorTypeInfo* info = tensor_type(type);
  if (info && is_carried(*info))
    unsupported("the attribute \"", name, "\" has the element type ", info->name,
                ", which is not supported here");
  return dtype_of_tensor_type(type, "the attribute", name);
}

int64_t Call::type_attr(const char* name, int64_t fallback) const {
  const Attribute* a = any_attribute(name);
  if (a && a->is_bare && a->type == AttributeType::String)
    return tensor_type_of_dtype(dtype_attr(name, kVoid));
  a = attribute(name, AttributeType::Int);
  return a ? a->i : fallback;
}

DType Call::dtype_attr(const char* name) const {
  require(has_attribute(name), Status::InvalidModel, "the attribute \"", name, "\" is missing");
  return dtype_attr(name, kVoid);
}

Tensor Call::constant(const HostTensor& tensor) const {
  return importer_.constant(tensor).tensor;
}

Tensor Call::constant(const TensorData& data) const {
  if (is_carried(*tensor_type(data.type)))
    unsupported("the element type ", tensor_type_name(data.type), " is not supported here");
  return constant(to_host_tensor(data));
}

Tensor Call::constant_of(const TensorData& data) {
  const Value made = importer_.constant(data);
  set_carried(0, made.carried);
  return made.tensor;
}

Tensor Call::constant(const Ints& values) const {
  std::vector<std::byte> bytes(values.size() * sizeof(int64_t));
  std::copy_n(reinterpret_cast<const std::byte*>(values.data()), bytes.size(), bytes.begin());
  return constant(HostTensor{
      kInt64, {static_cast<int64_t>(values.size())}, SharedBytes::own(std::move(bytes))});
}

Tensor Call::constant(const Shape& sizes) const {
  if (all_const(sizes)) return constant(const_dims(sizes));
  Tensors parts;
  for (const tiny::Dim& size : sizes) parts.push_back(size_tensor(context(), size));
  return stack(parts, 0);
}

Tensors Call::subgraph(const Graph& graph, const Tensors& inputs) const {
  Values values;
  for (const Tensor& input : inputs) values.push_back({input, nullptr, nullptr});
  Tensors out;
  for (const Value& made : importer_.subgraph(graph, values)) {
    require(made.is_plain(), Status::Unsupported, "its graph makes what is no tensor");
    out.push_back(made.tensor);
  }
  return out;
}

Tensors give(Call& call, const Values& values) {
  Tensors out;
  for (size_t i = 0; i < values.size(); ++i) {
    out.push_back(values[i].tensor);
    if (!values[i].is_plain()) call.set_value(i, values[i]);
  }
  return out;
}

// ---- Values and the tensors that they are made of.

Tensors flat(const Values& values) {
  Tensors out;
  for (const Value& value : values) {
    if (value.tensor) out.push_back(value.tensor);
    if (value.sequence) out.insert(out.end(), value.sequence->begin(), value.sequence->end());
    if (!value.map) continue;
    const Tensors parts = flat(*value.map);
    out.insert(out.end(), parts.begin(), parts.end());
  }
  return out;
}

namespace {

Value formed(const Value& like, std::span<const Tensor>& tensors) {
  Value value = like;
  value.known = nullptr;
  const auto take = [&] {
    const Tensor first = tensors.front();
    tensors = tensors.subspan(1);
    return first;
  };
  if (like.tensor) value.tensor = take();
  if (like.sequence) {
    Tensors elements;
    for (size_t i = 0; i < like.sequence->size(); ++i) elements.push_back(take());
    value.sequence = std::make_shared<const Tensors>(std::move(elements));
  }
  if (like.map) {
    Values parts;
    for (const Value& part : *like.map) parts.push_back(formed(part, tensors));
    value.map = std::make_shared<const Values>(std::move(parts));
  }
  return value;
}

}  // namespace

Values formed(const Values& like, const Tensors& tensors) {
  std::span<const Tensor> left = tensors;
  Values out;
  for (const Value& value : like) out.push_back(formed(value, left));
  invariant(left.empty(), "values of a form take all tensors");
  return out;
}

bool are_alike(const Values& a, const Values& b) {
  return std::ranges::equal(a, b, [](const Value& x, const Value& y) {
    const auto count = [](const Value& v) { return v.sequence ? std::ssize(*v.sequence) : -1; };
    const bool has_map = static_cast<bool>(x.map);
    return static_cast<bool>(x.tensor) == static_cast<bool>(y.tensor) && x.carried == y.carried &&
           count(x) == count(y) && has_map == static_cast<bool>(y.map) && !x.columns &&
           !y.columns && (!has_map || are_alike(*x.map, *y.map));
  });
}

bool Call::is_known(const Tensor& tensor) const {
  return !importer_.is_decided_by_data(tensor);
}

Ints dims_of(const Tensor& tensor) {
  return const_dims(tensor.shape());
}

int64_t dim_of(const Tensor& tensor, int64_t axis) {
  return size_of(tensor, axis).value();
}

tiny::Dim size_of(const Tensor& tensor, int64_t axis) {
  const int64_t rank = tensor.rank();
  require(axis >= -rank && axis < rank, Status::InvalidModel, "an operand with ", rank,
          " axes has no axis ", axis);
  return tensor.shape()[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
}

}  // namespace tiny::onnx
