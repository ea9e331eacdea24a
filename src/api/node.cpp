// Nodes: the graph behind tensors, looked at and built by the caller.
//
// What a caller builds keeps the laws that the engine's own nodes keep: operands of one dtype, in
// the tensor graph of one shape.  Only src/ir/spec.h knows all laws, and is asked before such a
// node becomes a tensor.
#include "api/node_handle.h"

#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/boundary.h"
#include "api/model_handle.h"
#include "base/json.h"
#include "ir/bounds.h"
#include "ir/spec.h"
#include "rules/symbolic.h"
#include "shape/shape.h"
#include "tensor/value.h"

using tiny::Op;
using tiny::OpInfo;
using tiny::require;
using tiny::Status;
using tiny::UOp;

namespace {

tiny_node* make_node(tiny_context& context, UOp value) {
  auto handle = std::make_unique<tiny_node>(context, std::move(value));
  context.retain();
  return handle.release();
}

// A building call that makes a node; `body` gets the context.
tiny_status give_node(const char* call, tiny_node** out, tiny_context* context,
                      tiny::FunctionRef<UOp(tiny_context&)> body) noexcept {
  if (!out) return tiny::fail(call, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::act(call, context, [&] { *out = make_node(*context, body(*context)); });
}

// The same of a node.
tiny_status give_node_of(const char* call, tiny_node** out, const tiny_node* node,
                         tiny::FunctionRef<UOp(const UOp&)> body) noexcept {
  if (!out) return tiny::fail(call, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::guarded(call, [&] {
    tiny_context& context = *tiny::required(node, "node").context;
    const tiny::Building building(context);
    *out = make_node(context, body(node->value));
  });
}

// A building call that answers a question about a node.
template <class T>
tiny_status ask(const char* call, const tiny_node* node, T* out,
                std::type_identity_t<tiny::FunctionRef<T(const UOp&)>> body) noexcept {
  return tiny::answer(call, out, node, "node", [&](const tiny_node& n) {
    const tiny::Building building(*n.context);
    return body(n.value);
  });
}

std::string title(const UOp& u) {
  const std::string arg = tiny::arg_text(u);
  return tiny::cat(tiny::info(u.op()).name, arg.empty() ? "" : " ", arg);
}

// ---- The op table

constexpr struct {
  tiny::OpTraits trait;
  const char* name;
} kTraits[] = {{tiny::kElementwise, "elementwise"},
               {tiny::kCommutative, "commutative"},
               {tiny::kAssociative, "associative"},
               {tiny::kFloatOperands, "float"},
               {tiny::kIntOperands, "int"},
               {tiny::kLogicOperands, "logic"},
               {tiny::kMovement, "movement"},
               {tiny::kEffect, "effect"},
               {tiny::kTranscendental, "transcendental"}};
constexpr struct {
  tiny::OpStages stage;
  const char* name;
} kStages[] = {
    {tiny::kTensorStage, "tensor"}, {tiny::kKernelStage, "kernel"}, {tiny::kLinearStage, "linear"}};

std::string ops_json() {
  static constexpr const char* kResults[] = {"declared", "first", "last", "bool", "void"};
  tiny::JsonWriter json;
  json.begin_array();
  for (const OpInfo& op : tiny::op_table::kOps) {
    json.begin_object().key("name").text(op.name).key("symbol").text(op.symbol).key("arity");
    op.arity == tiny::kVariadic ? json.null() : json.integer(op.arity);
    json.key("result").text(kResults[static_cast<size_t>(op.result)]);
    json.key("weight").integer(op.weight).key("traits").begin_array();
    for (const auto& [trait, name] : kTraits)
      if (op.traits & trait) json.text(name);
    json.end_array().key("stages").begin_array();
    for (const auto& [stage, name] : kStages)
      if (op.stages & stage) json.text(name);
    json.end_array().end_object();
  }
  return json.end_array().result();
}

Op op_named(const std::string& name) {
  for (size_t i = 0; i < tiny::kOpCount; ++i)
    if (name == tiny::op_table::kOps[i].name) return static_cast<Op>(i);
  tiny::throw_error(Status::InvalidArgument, "no op is named \"", name, "\"; tiny_ops lists them");
}

// ---- Arguments as JSON

void put_ints(tiny::JsonWriter& json, const tiny::Ints& list) {
  json.begin_array();
  for (const int64_t v : list) v == tiny::kSymbolicDim ? json.null() : json.integer(v);
  json.end_array();
}

void put_constant(tiny::JsonWriter& json, const UOp& u) {
  if (u.dtype().is_bool())
    json.boolean(u.const_int() != 0);
  else if (u.dtype().is_unsigned())
    json.raw(std::to_string(u.const_bits()));
  else if (u.dtype().is_int())
    json.integer(u.const_int());
  else
    json.real(tiny::double_of(u.dtype(), u.const_bits()));
}

std::string argument_json(const UOp& u) {
  tiny::JsonWriter json;
  const tiny::Arg& arg = u.arg();
  if (u.is_const()) {
    put_constant(json, u);
  } else if (const auto* number = std::get_if<int64_t>(&arg)) {
    json.integer(*number);
  } else if (const auto* list = std::get_if<tiny::Ints>(&arg)) {
    put_ints(json, *list);
  } else if (const auto* stage = std::get_if<tiny::StageArg>(&arg)) {
    put_ints(json, stage->strides);
  } else if (const auto* v = std::get_if<tiny::VariableArg>(&arg)) {
    json.begin_object().key("name").text(v->name).key("min").integer(v->min);
    json.key("max").integer(v->max).end_object();
  } else if (const auto* r = std::get_if<tiny::ReduceArg>(&arg)) {
    json.begin_object().key("op").text(tiny::info(r->op).name).key("axes");
    put_ints(json, r->axes);
    json.end_object();
  } else if (const auto* view = std::get_if<tiny::ViewArg>(&arg)) {
    json.begin_object().key("shape");
    put_ints(json, view->shape);
    json.key("strides");
    put_ints(json, view->strides);
    json.key("offset").integer(view->offset).end_object();
  } else {
    json.null();
  }
  return json.result();
}

// ---- Laws of what callers build

// The shape of a node of the tensor graph, if it is known to be one.
const tiny::Shape* known_shape(const UOp& u) {
  const bool is_leaf = u.is_const() || u.op() == Op::Variable;
  return is_leaf || u.node()->shape ? &tiny::shape_of(u) : nullptr;
}

std::vector<UOp> sources_of(const tiny_context& context, tiny_node* const* sources, size_t count) {
  std::vector<UOp> found;
  require(sources || count == 0, Status::InvalidArgument, "sources is NULL");
  for (size_t i = 0; i < count; ++i) {
    const tiny_node& source = tiny::required(sources[i], "an element of sources");
    tiny::require_one_context(*source.context, context, "source ", i, " is of another context");
    found.push_back(source.value);
  }
  return found;
}

// What an elementwise op takes: spec.h's law for its operands.
void check_operands(Op op, std::span<const UOp> src, tiny::DType declared) {
  const OpInfo& of = tiny::info(op);
  require(of.traits & tiny::kElementwise, Status::InvalidArgument, "op ", of.name,
          " is not elementwise: it comes from the engine alone");
  require(src.size() == static_cast<size_t>(of.arity), Status::InvalidArgument, "op ", of.name,
          " has ", static_cast<int64_t>(of.arity), " sources, not ", src.size());
  const bool is_declared = of.result == tiny::OpResult::Declared;
  require(is_declared || declared == tiny::kVoid || declared == src.back().dtype() ||
              (of.result == tiny::OpResult::Bool && declared.is_bool()),
          Status::DType, "op ", of.name, " of ", to_string(src.back().dtype()), " is not ",
          to_string(declared));
  require(!is_declared || declared != tiny::kVoid, Status::DType, "op ", of.name,
          " wants the dtype that it makes");
  const size_t first = op == Op::Where ? 1 : 0;
  require(first == 0 || src[0].dtype().is_bool(), Status::DType, "Where wants a bool first, not ",
          to_string(src[0].dtype()));
  const tiny::DType operand = src[first].dtype();
  for (size_t i = first; i < src.size(); ++i)
    require(src[i].dtype() == operand && operand != tiny::kVoid, Status::DType, "op ", of.name,
            " wants operands of one dtype, not ", to_string(operand), " and ",
            to_string(src[i].dtype()));
  const uint16_t kinds =
      of.traits & (tiny::kFloatOperands | tiny::kIntOperands | tiny::kLogicOperands);
  require(kinds == 0 || (kinds & tiny::kFloatOperands && operand.is_float()) ||
              (kinds & tiny::kIntOperands && operand.is_int()) ||
              (kinds & tiny::kLogicOperands && operand.is_bool()),
          Status::DType, "op ", of.name, " does not take ", to_string(operand));
  require(op != Op::Bitcast ||
              (declared.bits() == operand.bits() && !declared.is_bool() && !operand.is_bool()),
          Status::DType, "a Bitcast from ", to_string(operand), " to ", to_string(declared),
          " is none of as many bits");
}

// Operands in the tensor graph have one shape; the node that is made of them has it too.
UOp with_shape(UOp made) {
  const tiny::Shape* common = nullptr;
  for (const UOp& s : made.src()) {
    const tiny::Shape* shape = known_shape(s);
    if (!shape) return made;  // in a kernel: there are none
    require(!common || *common == *shape, Status::Shape, "op ", tiny::info(made.op()).name,
            " wants operands of one shape, not ", to_string(*(common ? common : shape)), " and ",
            to_string(*shape));
    common = shape;
  }
  if (common) tiny::shape_of(made);
  return made;
}

// A source may be replaced by what has its dtype and, in the tensor graph, its shape.
UOp with_sources(const UOp& node, std::span<const UOp> src) {
  const char* name = tiny::info(node.op()).name;
  require(src.size() == node.src().size(), Status::InvalidArgument, name, " here has ",
          node.src().size(), " sources, not ", src.size());
  for (size_t i = 0; i < src.size(); ++i) {
    const UOp& old = node.src(i);
    if (src[i] == old) continue;
    require(src[i].dtype() == old.dtype(), Status::DType, "source ", i, " of ", name, " is ",
            to_string(old.dtype()), ", not ", to_string(src[i].dtype()));
    if (!node.node()->shape) continue;
    const tiny::Shape* shape = known_shape(src[i]);
    require(shape && *shape == tiny::shape_of(old), Status::Shape, "source ", i, " of ", name,
            " has the shape ", to_string(tiny::shape_of(old)), ", not ",
            shape ? to_string(*shape) : std::string("none"));
  }
  const bool is_tensor = static_cast<bool>(node.node()->shape);
  UOp made = node.with_src(src);
  if (is_tensor) tiny::shape_of(made);
  return made;
}

// Error{InvalidArgument} for what rules of scalars cannot be used on.
void check_expression(const UOp& u) {
  for (const UOp& below : tiny::topological({&u, 1}))
    require(tiny::legal_in(below.op(), tiny::kKernelStage), Status::InvalidArgument,
            "an expression of numbers is wanted; this depends on ", title(below),
            ", a node of the tensor graph");
}

// What spec.h finds is a mistake of the caller's here.
void check_tensor(const UOp& u) {
  require(u.dtype() != tiny::kVoid, Status::InvalidArgument, title(u), " has no value");
  try {
    tiny::verify_tensor(u, "tiny_node_tensor");
  } catch (const tiny::Error& e) {
    if (e.status() != Status::Internal) throw;
    tiny::throw_error(Status::InvalidArgument, e.message());
  }
}

constexpr size_t kWrittenNodesMax = 4000;  // a graph holds more expression than anybody reads

// Whether an expression's text has more nodes than that: one that several share stands there for
// each.
bool is_too_long(const UOp& expression) {
  std::unordered_map<const tiny::Node*, size_t> written;
  for (const UOp& u : tiny::topological({&expression, 1})) {
    size_t nodes = 1;
    for (const UOp& s : u.src()) nodes += written.at(s.node());
    if (nodes > kWrittenNodesMax) return true;
    written.emplace(u.node(), nodes);
  }
  return false;
}

}  // namespace

extern "C" {

tiny_status tiny_ops(tiny_report** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::guarded(__func__, [=] { *out = new tiny_report(ops_json()); });
}

tiny_status tiny_tensor_node(const tiny_tensor* tensor, tiny_node** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::guarded(__func__, [=] {
    tiny_context& context = *tiny::required(tensor, "tensor").context;
    const tiny::Building building(context);
    const UOp node = tensor->value.node();
    tiny::shape_of(node);
    *out = make_node(context, node);
  });
}

void tiny_node_retain(tiny_node* node) {
  tiny::retain_owned(node);
}

void tiny_node_release(tiny_node* node) {
  if (tiny::is_last_release(node)) tiny::release_nodes(node);
}

tiny_status tiny_node_context(const tiny_node* node, tiny_context** out) {
  return tiny::answer(__func__, out, node, "node", [](const tiny_node& n) {
    n.context->own();
    return n.context;
  });
}

tiny_status tiny_node_id(const tiny_node* node, int64_t* out) {
  return tiny::answer(__func__, out, node, "node", [](const tiny_node& n) {
    return static_cast<int64_t>(reinterpret_cast<intptr_t>(n.value.node()));
  });
}

tiny_status tiny_node_op(const tiny_node* node, const char** out) {
  return tiny::answer(__func__, out, node, "node",
                      [](const tiny_node& n) { return tiny::info(n.value.op()).name; });
}

tiny_status tiny_node_dtype(const tiny_node* node, tiny_dtype* out) {
  return tiny::answer(__func__, out, node, "node", [](const tiny_node& n) {
    const tiny_dtype number = n.value.dtype().info().number;
    return tiny_dtype_supported(number) ? number : tiny_dtype{0};
  });
}

tiny_status tiny_node_argument(const tiny_node* node, tiny_report** out) {
  return tiny::answer(__func__, out, node, "node",
                      [](const tiny_node& n) { return new tiny_report(argument_json(n.value)); });
}

tiny_status tiny_node_source_count(const tiny_node* node, size_t* out) {
  return tiny::answer(__func__, out, node, "node",
                      [](const tiny_node& n) { return n.value.src().size(); });
}

tiny_status tiny_node_source(const tiny_node* node, size_t index, tiny_node** out) {
  return give_node_of(__func__, out, node, [=](const UOp& u) {
    require(index < u.src().size(), Status::InvalidArgument, title(u), " has ", u.src().size(),
            " sources; there is no source ", index);
    return u.src(index);
  });
}

tiny_status tiny_node_has_shape(const tiny_node* node, int32_t* out) {
  return ask(__func__, node, out, [](const UOp& u) -> int32_t { return known_shape(u) ? 1 : 0; });
}

tiny_status tiny_node_shape(const tiny_node* node, int64_t* dims, size_t capacity, size_t* rank) {
  return tiny::give_number(__func__, rank, "rank is NULL", [=] {
    const tiny_node& n = tiny::required(node, "node");
    require(dims || capacity == 0, Status::InvalidArgument, "dims is NULL");
    const tiny::Building building(*n.context);
    const tiny::Shape* shape = known_shape(n.value);
    require(shape != nullptr, Status::InvalidArgument, title(n.value),
            " is of a kernel, where nothing has a shape");
    for (size_t i = 0; i < std::min(capacity, shape->size()); ++i)
      dims[i] = n.context->marks.mark((*shape)[i]);
    return shape->size();
  });
}

tiny_status tiny_node_in_memory(const tiny_node* node, int32_t* out) {
  return ask(__func__, node, out,
             [](const UOp& u) -> int32_t { return tiny::has_value(u) ? 1 : 0; });
}

tiny_status tiny_node_range(const tiny_node* node, int64_t* min, int64_t* max) {
  if (!min || !max) return tiny::fail(__func__, Status::InvalidArgument, "min or max is NULL");
  *min = *max = 0;
  return tiny::guarded(__func__, [=] {
    const tiny_node& n = tiny::required(node, "node");
    require(n.value.dtype().is_int() || n.value.dtype().is_bool(), Status::DType,
            "integers and bools have bounds, not ", to_string(n.value.dtype()));
    const tiny::Building building(*n.context);
    const tiny::Interval found = tiny::bounds(n.value);
    *min = found.lo;
    *max = found.hi;
  });
}

tiny_status tiny_node_text(const tiny_node* node, tiny_report** out) {
  return ask(__func__, node, out, [](const UOp& u) {
    require(!is_too_long(u), Status::Limit, "an expression that is written with more than ",
            kWrittenNodesMax, " nodes is no text that anybody reads");
    return new tiny_report(tiny::expression_text(u));
  });
}

tiny_status tiny_node_simplify(const tiny_node* node, tiny_node** out) {
  return give_node_of(__func__, out, node, [](const UOp& u) {
    check_expression(u);
    return tiny::simplify_index(u);
  });
}

tiny_status tiny_node_float(tiny_context* context, tiny_dtype dtype, double value,
                            tiny_node** out) {
  return give_node(__func__, out, context, [=](tiny_context& c) {
    const tiny::DType type = tiny::dtype_argument(dtype);
    require(type.is_float(), Status::DType, to_string(type), " is no float");
    return c.core->graph().constant(type, value);
  });
}

tiny_status tiny_node_integer(tiny_context* context, tiny_dtype dtype, int64_t value,
                              tiny_node** out) {
  return give_node(__func__, out, context, [=](tiny_context& c) {
    const tiny::DType type = tiny::dtype_argument(dtype);
    require(type.is_int() || type.is_bool(), Status::DType, to_string(type),
            " is neither an integer nor a bool");
    return c.core->graph().constant_int(type, value);
  });
}

tiny_status tiny_node_variable(tiny_context* context, const char* name, int64_t min, int64_t max,
                               tiny_node** out) {
  return give_node(__func__, out, context, [=](tiny_context& c) {
    const std::string text = &tiny::required(name, "name");
    require(!text.empty(), Status::InvalidArgument, "name is empty");
    require(min <= max, Status::InvalidArgument, "the variable \"", text, "\" from ", min, " to ",
            max, " has no value");
    return c.core->graph().variable(text, min, max);
  });
}

tiny_status tiny_node_make(tiny_context* context, const char* op, tiny_dtype dtype,
                           tiny_node* const* sources, size_t count, tiny_node** out) {
  return give_node(__func__, out, context, [=](tiny_context& c) {
    const Op which = op_named(&tiny::required(op, "op"));
    const std::vector<UOp> src = sources_of(c, sources, count);
    const tiny::DType declared = dtype == 0 ? tiny::kVoid : tiny::dtype_argument(dtype);
    check_operands(which, src, declared);
    return with_shape(c.core->graph().make(which, src, {}, declared));
  });
}

tiny_status tiny_node_with_sources(const tiny_node* node, tiny_node* const* sources, size_t count,
                                   tiny_node** out) {
  return give_node_of(__func__, out, node, [=](const UOp& u) {
    return with_sources(u, sources_of(*node->context, sources, count));
  });
}

tiny_status tiny_node_tensor(const tiny_node* node, tiny_tensor** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::guarded(__func__, [=] {
    tiny_context& context = *tiny::required(node, "node").context;
    const tiny::Building building(context);
    check_tensor(node->value);
    *out = tiny::make_handle(context, [&] { return tiny::Tensor(context.core, node->value); });
  });
}

tiny_status tiny_schedule_store(tiny_tensor* const* tensors, size_t count, size_t kernel,
                                size_t store, tiny_node** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::act(__func__, {tensors, count, "tensors"}, [=] {
    *out = make_node(*tensors[0]->context,
                     tiny::scheduled_store(tiny::values_in(tensors, count), kernel, store));
  });
}

}  // extern "C"
