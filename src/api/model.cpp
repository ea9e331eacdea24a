// Models: loaded, looked at, compiled, run.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "api/boundary.h"
#include "api/loaded_model.h"
#include "base/pieces.h"
#include "onnx/import/table.h"
#include "onnx/info.h"
#include "onnx/operator.h"

using tiny::guarded;
using tiny::require;
using tiny::Status;
using tiny::onnx::LoadedModel;
using tiny::onnx::OutputType;
using tiny::onnx::ValueInfo;

namespace {

// A call about a model that answers with one value; needs no context, since a model does not
// change.
template <class T>
tiny_status ask(const char* call, const tiny_model* model, T* out, T otherwise,
                std::type_identity_t<tiny::FunctionRef<T(const LoadedModel&)>> body) noexcept {
  if (!out) return tiny::fail(call, Status::InvalidArgument, "out is NULL");
  *out = otherwise;
  return guarded(call, [&] { *out = body(*tiny::required(model, "model").value); });
}

size_t checked_index(size_t index, size_t count, const char* what) {
  require(index < count, Status::InvalidArgument, "the model has ", count, " ", what,
          "; got index ", index);
  return index;
}

const ValueInfo& input_at(const LoadedModel& model, size_t index) {
  return model.input(checked_index(index, model.input_count(), "inputs"));
}

// What is known of an output, which is inferred where the file does not say it.
const OutputType& type_of_output(const tiny_model& model, size_t index) {
  const LoadedModel& m = *model.value;
  checked_index(index, m.output_count(), "outputs");
  if (const auto* known = m.find_output_type(index, model.context->core->custom_ops()))
    return *known;
  const tiny::Beside beside(*model.context);
  return m.output_type(index, beside.own_context());
}

const std::vector<tiny::onnx::Dim>& known_dims(const ValueInfo& info, const OutputType& type) {
  require(type.dims.has_value(), Status::Unsupported, "the shape of output \"", info.name,
          "\" is not known before the model runs");
  return *type.dims;
}

size_t write_dims(const std::vector<tiny::onnx::Dim>& shape, int64_t* dims, size_t capacity) {
  require(dims != nullptr || capacity == 0, Status::InvalidArgument,
          "dims is NULL but has room for ", capacity);
  for (size_t i = 0; i < shape.size() && i < capacity; ++i)
    dims[i] = shape[i].is_known() ? shape[i].value : TINY_DIM_FREE;
  return shape.size();
}

const char* name_of_dim(const std::string& port, const std::vector<tiny::onnx::Dim>& shape,
                        size_t axis) {
  require(axis < shape.size(), Status::InvalidArgument, '"', port, "\" has ", shape.size(),
          " axes; got axis ", axis);
  return shape[axis].name.c_str();
}

tiny_kind kind_of(tiny::onnx::ModelValue::Kind kind) {
  constexpr tiny_kind kKinds[] = {TINY_KIND_TENSOR, TINY_KIND_TEXTS, TINY_KIND_SEQUENCE,
                                  TINY_KIND_MAP, TINY_KIND_OPTIONAL};
  return kKinds[static_cast<size_t>(kind)];
}

tiny_kind kind_of(const tiny::onnx::ValueType& type) {
  using Kind = tiny::onnx::ValueType::Kind;
  switch (type.kind) {
    case Kind::Sequence:
      return TINY_KIND_SEQUENCE;
    case Kind::Optional:
      return TINY_KIND_OPTIONAL;
    case Kind::Map:
      return TINY_KIND_MAP;
    case Kind::SparseTensor:
      return TINY_KIND_SPARSE_TENSOR;
    case Kind::None:  // whatever an operator makes, which is a tensor
    case Kind::Tensor:
      return type.elem_type == tiny::onnx::kTextType ? TINY_KIND_TEXTS : TINY_KIND_TENSOR;
  }
  return TINY_KIND_TENSOR;
}

const std::vector<tiny::onnx::Dim>& dims_at(const LoadedModel& model, size_t index) {
  const ValueInfo& info = input_at(model, index);
  require(info.type.has_rank, Status::Unsupported, "input \"", info.name,
          "\" has no shape in the model");
  return info.type.dims;
}

// The dimensions of all inputs, one after the other.
std::vector<tiny::Ints> split_dims(const LoadedModel& model, const int64_t* dims, size_t count) {
  size_t wanted = 0;
  for (size_t i = 0; i < model.input_count(); ++i) wanted += dims_at(model, i).size();
  require(count == wanted, Status::InvalidArgument, "the model's inputs have ", wanted,
          " dimensions in all; got ", count);
  std::vector<tiny::Ints> shapes;
  for (size_t i = 0; i < model.input_count(); ++i) {
    const size_t rank = dims_at(model, i).size();
    shapes.emplace_back(dims, dims + rank);
    dims += rank;
  }
  return shapes;
}

// The inputs and outputs of a call that makes a model's outputs of its inputs.
struct Ports {
  tiny_tensor* const* inputs;
  size_t input_count;
  tiny_tensor** outputs;
  size_t output_count;

  // The context that all are of.
  tiny_context& check(const tiny_model* model) const {
    if (outputs)
      for (size_t i = 0; i < output_count; ++i) outputs[i] = nullptr;
    const tiny_model& m = tiny::required(model, "model");
    const size_t wanted = m.value->output_count();
    require(outputs != nullptr || output_count == 0, Status::InvalidArgument, "out is NULL");
    require(output_count == wanted, Status::InvalidArgument, "the model has ", wanted,
            " outputs; there is room for ", output_count);
    require(inputs != nullptr || input_count == 0, Status::InvalidArgument, "inputs is NULL");
    if (input_count > 0)
      tiny::require_one_context(tiny::Operands(inputs, input_count, "inputs").context(), *m.context,
                                "inputs come from another context than the model");
    return *m.context;
  }
  // Within a Building.
  std::vector<tiny::Tensor> values() const { return tiny::values_of(inputs, input_count); }
};

}  // namespace

extern "C" {

int64_t tiny_supported_opset(void) {
  return tiny::onnx::kNewestOpset;
}

int32_t tiny_op_supported(const char* domain, const char* op, int64_t opset) {
  bool known = false;
  guarded(__func__, [&] {
    known = tiny::onnx::is_operator(domain ? domain : "", &tiny::required(op, "op"), opset);
  });
  return known ? 1 : 0;
}

tiny_status tiny_op(tiny_context* context, const char* domain, const char* op, int64_t opset,
                    tiny_tensor* const* inputs, size_t input_count, const char* attributes,
                    tiny_tensor** outputs, size_t output_count) {
  return tiny::produce_list(__func__, outputs, output_count, context, [=] {
    tiny::onnx::OperatorCall call;
    call.domain = domain ? domain : "";
    call.op = &tiny::required(op, "op");
    call.opset = opset;
    call.attributes = attributes ? attributes : "";
    call.outputs = output_count;
    require(inputs != nullptr || input_count == 0, Status::InvalidArgument, "inputs is NULL");
    for (size_t i = 0; i < input_count; ++i) {
      if (inputs[i])
        tiny::require_one_context(*tiny::required(inputs[i], "an element of inputs").context,
                                  *context, "inputs[", i, "] comes from another context");
      call.inputs.push_back(inputs[i] ? inputs[i]->value : tiny::Tensor());
    }
    return tiny::onnx::apply_operator(context->core, call);
  });
}

tiny_status tiny_model_load(tiny_context* context, const char* path, tiny_model** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [=] {
    tiny_context& owner = tiny::required(context, "context");
    const char* file = &tiny::required(path, "path");
    const tiny::Building building(owner);
    *out = new tiny_model(owner, tiny::make_ref<LoadedModel>(owner.core, file));
  });
}

tiny_status tiny_model_load_memory(tiny_context* context, const void* data, size_t bytes,
                                   const char* folder, tiny_model** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [=] {
    tiny_context& owner = tiny::required(context, "context");
    require(data != nullptr || bytes == 0, Status::InvalidArgument, "data is NULL");
    const tiny::Building building(owner);
    tiny::Context& core = *owner.core;
    const auto copy = tiny::make_ref<tiny::NewBytes>(
        tiny::Ref<tiny::MemoryUse>(&core.device().memory()), tiny::signed_bytes(bytes));
    tiny::for_each_piece_of(tiny::signed_bytes(bytes), 1, &core.stop(), [&](int64_t at, int64_t n) {
      std::memcpy(copy->data() + at, static_cast<const std::byte*>(data) + at,
                  static_cast<size_t>(n));
    });
    *out =
        new tiny_model(owner, tiny::make_ref<LoadedModel>(owner.core, tiny::NewBytes::shared(copy),
                                                          folder ? folder : ""));
  });
}

void tiny_model_retain(tiny_model* model) {
  tiny::retain_owned(model);
}

void tiny_model_release(tiny_model* model) {
  tiny::release_owned(model);
}

tiny_status tiny_model_info(const tiny_model* model, tiny_report** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [=] {
    const tiny_model& m = tiny::required(model, "model");
    const tiny::Beside beside(*m.context);
    const tiny::Ref<tiny::Context> aside = beside.own_context();
    const std::vector<tiny::onnx::UnsupportedNode> unsupported = m.value->unsupported(aside);
    std::optional<double> operations;
    if (unsupported.empty()) operations = m.value->operations(aside);
    *out = new tiny_report(
        tiny::onnx::info_json(m.value->model(), unsupported, operations, aside->custom_ops()));
  });
}

tiny_status tiny_model_header(const tiny_model* model, tiny_report** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [=] {
    const tiny_model& m = tiny::required(model, "model");
    *out = new tiny_report(tiny::onnx::header_json(m.value->model()));
  });
}

tiny_status tiny_model_input_count(const tiny_model* model, size_t* out) {
  return ask(__func__, model, out, size_t{0}, [](const LoadedModel& m) { return m.input_count(); });
}

tiny_status tiny_model_output_count(const tiny_model* model, size_t* out) {
  return ask(__func__, model, out, size_t{0},
             [](const LoadedModel& m) { return m.output_count(); });
}

tiny_status tiny_model_input_name(const tiny_model* model, size_t index, const char** out) {
  return ask<const char*>(__func__, model, out, nullptr,
                          [=](const LoadedModel& m) { return input_at(m, index).name.c_str(); });
}

tiny_status tiny_model_output_name(const tiny_model* model, size_t index, const char** out) {
  return ask<const char*>(__func__, model, out, nullptr, [=](const LoadedModel& m) {
    return m.output(checked_index(index, m.output_count(), "outputs")).name.c_str();
  });
}

tiny_status tiny_model_input_index(const tiny_model* model, const char* name, size_t* out) {
  return ask(__func__, model, out, size_t{0},
             [=](const LoadedModel& m) { return m.input_index(&tiny::required(name, "name")); });
}

tiny_status tiny_model_output_index(const tiny_model* model, const char* name, size_t* out) {
  return ask(__func__, model, out, size_t{0},
             [=](const LoadedModel& m) { return m.output_index(&tiny::required(name, "name")); });
}

tiny_status tiny_model_input_kind(const tiny_model* model, size_t index, tiny_kind* out) {
  return ask(__func__, model, out, tiny_kind{0},
             [=](const LoadedModel& m) { return kind_of(input_at(m, index).type); });
}

tiny_status tiny_model_output_kind(const tiny_model* model, size_t index, tiny_kind* out) {
  return tiny::answer(__func__, out, model, "model", [=](const tiny_model& m) {
    const size_t place = checked_index(index, m.value->output_count(), "outputs");
    const tiny::onnx::ValueType& type = m.value->output(place).type;
    using Kind = tiny::onnx::ValueType::Kind;
    const bool is_said = type.kind != Kind::None && (type.kind != Kind::Tensor || type.elem_type);
    return is_said ? kind_of(type) : kind_of(type_of_output(m, place).kind);
  });
}

tiny_status tiny_model_input_dtype(const tiny_model* model, size_t index, tiny_dtype* out) {
  return ask(__func__, model, out, tiny_dtype{0}, [=](const LoadedModel& m) {
    return m.input_dtype(checked_index(index, m.input_count(), "inputs")).info().number;
  });
}

tiny_status tiny_model_input_shape(const tiny_model* model, size_t index, int64_t* dims,
                                   size_t capacity, size_t* rank) {
  return ask(__func__, model, rank, size_t{0},
             [=](const LoadedModel& m) { return write_dims(dims_at(m, index), dims, capacity); });
}

tiny_status tiny_model_input_dim_name(const tiny_model* model, size_t index, size_t axis,
                                      const char** out) {
  return ask<const char*>(__func__, model, out, nullptr, [=](const LoadedModel& m) {
    return name_of_dim(input_at(m, index).name, dims_at(m, index), axis);
  });
}

tiny_status tiny_model_output_dtype(const tiny_model* model, size_t index, tiny_dtype* out) {
  return tiny::answer(__func__, out, model, "model", [=](const tiny_model& m) {
    const OutputType& type = type_of_output(m, index);
    require(type.dtype.has_value(), Status::Unsupported, "the dtype of output \"",
            m.value->output(index).name, "\" is not known before the model runs");
    return type.dtype->info().number;
  });
}

tiny_status tiny_model_output_shape(const tiny_model* model, size_t index, int64_t* dims,
                                    size_t capacity, size_t* rank) {
  return tiny::answer(__func__, rank, model, "model", [=](const tiny_model& m) {
    const OutputType& type = type_of_output(m, index);
    return write_dims(known_dims(m.value->output(index), type), dims, capacity);
  });
}

tiny_status tiny_model_output_dim_name(const tiny_model* model, size_t index, size_t axis,
                                       const char** out) {
  return tiny::answer(__func__, out, model, "model", [=](const tiny_model& m) {
    const OutputType& type = type_of_output(m, index);
    const ValueInfo& info = m.value->output(index);
    return name_of_dim(info.name, known_dims(info, type), axis);
  });
}

tiny_status tiny_model_metadata_count(const tiny_model* model, size_t* out) {
  return ask(__func__, model, out, size_t{0},
             [](const LoadedModel& m) { return m.metadata().size(); });
}

tiny_status tiny_model_metadata_key(const tiny_model* model, size_t index, const char** out) {
  return ask<const char*>(__func__, model, out, nullptr, [=](const LoadedModel& m) {
    return m.metadata()[checked_index(index, m.metadata().size(), "texts")].first.c_str();
  });
}

tiny_status tiny_model_metadata_value(const tiny_model* model, size_t index, const char** out) {
  return ask<const char*>(__func__, model, out, nullptr, [=](const LoadedModel& m) {
    return m.metadata()[checked_index(index, m.metadata().size(), "texts")].second.c_str();
  });
}

tiny_status tiny_model_metadata(const tiny_model* model, const char* key, const char** out) {
  return ask<const char*>(__func__, model, out, nullptr, [=](const LoadedModel& m) -> const char* {
    const std::string_view wanted = &tiny::required(key, "key");
    for (const auto& [name, text] : m.metadata())
      if (name == wanted) return text.c_str();
    return nullptr;
  });
}

tiny_status tiny_model_compile(tiny_model* model, const int64_t* dims, size_t count,
                               tiny_program** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [=] {
    tiny_model& m = tiny::required(model, "model");
    const tiny::Building building(*m.context);
    require(dims != nullptr || count == 0, Status::InvalidArgument, "dims is NULL but has ", count,
            " values");
    if (!dims) {
      *out = new tiny_program(*m.context, m.value->compile(m.value->fixed_shapes()));
      return;
    }
    const std::vector<tiny::Ints> numbers = split_dims(*m.value, dims, count);
    const tiny::Shape all = m.context->marks.shape({dims, dims + count}, "dims");
    std::vector<tiny::Shape> shapes;
    for (auto at = all.begin(); const tiny::Ints& part : numbers) {
      shapes.emplace_back(at, at + std::ssize(part));
      at += std::ssize(part);
    }
    const bool is_fixed = std::ranges::all_of(shapes, tiny::all_const);
    *out = new tiny_program(*m.context,
                            is_fixed ? m.value->compile(numbers) : m.value->compile_free(shapes));
  });
}

tiny_status tiny_model_run(tiny_model* model, tiny_tensor* const* inputs, size_t input_count,
                           tiny_tensor** outputs, size_t output_count) {
  return guarded(__func__, [=] {
    const tiny::StopSignal::Since since = tiny::StopSignal::Clock::now();
    const Ports ports{inputs, input_count, outputs, output_count};
    tiny_context& context = ports.check(model);
    std::vector<tiny::Cell::Pin> pins;
    tiny::Ref<tiny::TensorRun> run;
    {
      const tiny::Building building(context, since);
      run = model->value->begin_run(ports.values());
      for (size_t i = 0; i < input_count; ++i) pins.emplace_back(*inputs[i]->value.cell());
    }
    {
      const tiny::Inside inside(&context);
      run->execute(since);
    }
    pins.clear();
    context.enter_again(since);
    const tiny::Building building(context, since, std::adopt_lock);
    tiny::give_handles(context, model->value->end_run(std::move(run)), outputs);
  });
}

tiny_status tiny_model_set_seed(tiny_model* model, int64_t seed) {
  return guarded(__func__, [=] {
    tiny::required(model, "model").value->set_seed(static_cast<uint64_t>(seed));
  });
}

tiny_status tiny_model_apply(tiny_model* model, tiny_tensor* const* inputs, size_t input_count,
                             tiny_tensor** outputs, size_t output_count) {
  return guarded(__func__, [=] {
    const Ports ports{inputs, input_count, outputs, output_count};
    tiny_context& context = ports.check(model);
    const tiny::Building building(context);
    tiny::give_handles(context, model->value->apply(ports.values()), outputs);
  });
}

}  // extern "C"
