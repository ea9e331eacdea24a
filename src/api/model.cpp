// Models: loaded, looked at, compiled, run.
#include "api/boundary.h"
#include "api/loaded_model.h"
#include "onnx/import/table.h"
#include "onnx/info.h"

using tiny::guarded;
using tiny::require;
using tiny::Status;
using tiny::onnx::LoadedModel;

namespace {

// A call about a model that answers with one value; needs no context, since a model does not
// change.
template <class T, class Body>
tiny_status ask(const char* call, const tiny_model* model, T* out, T otherwise,
                Body body) noexcept {
  if (!out) return tiny::fail(call, Status::InvalidArgument, "out is NULL");
  *out = otherwise;
  return guarded(call, [&] { *out = body(*tiny::required(model, "model").value); });
}

size_t checked_index(size_t index, size_t count, const char* what) {
  require(index < count, Status::InvalidArgument, "the model has ", count, " ", what,
          "; got index ", index);
  return index;
}

const tiny::onnx::ValueInfo& input_at(const LoadedModel& model, size_t index) {
  return model.input(checked_index(index, model.input_count(), "inputs"));
}

const std::vector<tiny::onnx::Dim>& dims_at(const LoadedModel& model, size_t index) {
  const tiny::onnx::ValueInfo& info = input_at(model, index);
  require(info.type.has_rank, Status::Unsupported, "input \"", info.name,
          "\" has no shape in the model");
  return info.type.dims;
}

// The dimensions of all inputs, one after the other.
std::vector<tiny::Ints> split_dims(const LoadedModel& model, const int64_t* dims, size_t count) {
  if (!dims) {
    require(count == 0, Status::InvalidArgument, "dims is NULL but has ", count, " values");
    return model.fixed_shapes();
  }
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

tiny_status tiny_model_load(tiny_context* context, const char* path, tiny_model** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [&] {
    tiny_context& owner = tiny::required(context, "context");
    const char* file = &tiny::required(path, "path");
    const tiny::Building building(owner);
    *out = new tiny_model(owner, tiny::make_ref<LoadedModel>(owner.core, file));
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
  return guarded(__func__, [&] {
    const tiny_model& m = tiny::required(model, "model");
    const tiny::Building building(*m.context);
    *out = new tiny_report(tiny::onnx::info_json(m.value->model(), m.value->operations()));
  });
}

tiny_status tiny_model_header(const tiny_model* model, tiny_report** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [&] {
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
                          [&](const LoadedModel& m) { return input_at(m, index).name.c_str(); });
}

tiny_status tiny_model_output_name(const tiny_model* model, size_t index, const char** out) {
  return ask<const char*>(__func__, model, out, nullptr, [&](const LoadedModel& m) {
    return m.output(checked_index(index, m.output_count(), "outputs")).name.c_str();
  });
}

tiny_status tiny_model_input_index(const tiny_model* model, const char* name, size_t* out) {
  return ask(__func__, model, out, size_t{0},
             [&](const LoadedModel& m) { return m.input_index(&tiny::required(name, "name")); });
}

tiny_status tiny_model_output_index(const tiny_model* model, const char* name, size_t* out) {
  return ask(__func__, model, out, size_t{0},
             [&](const LoadedModel& m) { return m.output_index(&tiny::required(name, "name")); });
}

tiny_status tiny_model_input_dtype(const tiny_model* model, size_t index, tiny_dtype* out) {
  return ask(__func__, model, out, tiny_dtype{0}, [&](const LoadedModel& m) {
    return m.input_dtype(checked_index(index, m.input_count(), "inputs")).info().number;
  });
}

tiny_status tiny_model_input_shape(const tiny_model* model, size_t index, int64_t* dims,
                                   size_t capacity, size_t* rank) {
  return ask(__func__, model, rank, size_t{0}, [&](const LoadedModel& m) {
    require(dims != nullptr || capacity == 0, Status::InvalidArgument,
            "dims is NULL but has room for ", capacity);
    const std::vector<tiny::onnx::Dim>& shape = dims_at(m, index);
    for (size_t i = 0; i < shape.size() && i < capacity; ++i)
      dims[i] = shape[i].is_known() ? shape[i].value : -1;
    return shape.size();
  });
}

tiny_status tiny_model_input_dim_name(const tiny_model* model, size_t index, size_t axis,
                                      const char** out) {
  return ask<const char*>(__func__, model, out, nullptr, [&](const LoadedModel& m) {
    const std::vector<tiny::onnx::Dim>& shape = dims_at(m, index);
    require(axis < shape.size(), Status::InvalidArgument, "input \"", input_at(m, index).name,
            "\" has ", shape.size(), " axes; got axis ", axis);
    return shape[axis].name.c_str();
  });
}

tiny_status tiny_model_compile(tiny_model* model, const int64_t* dims, size_t count,
                               tiny_program** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [&] {
    tiny_model& m = tiny::required(model, "model");
    const tiny::Building building(*m.context);
    *out = new tiny_program(*m.context, m.value->compile(split_dims(*m.value, dims, count)));
  });
}

tiny_status tiny_model_run(tiny_model* model, tiny_tensor* const* inputs, size_t input_count,
                           tiny_tensor** outputs, size_t output_count) {
  if (outputs)
    for (size_t i = 0; i < output_count; ++i) outputs[i] = nullptr;
  const tiny_status known = guarded(__func__, [&] { tiny::required(model, "model"); });
  if (known != TINY_OK) return known;
  if (!outputs && output_count == 0 && model->value->output_count() == 0) return TINY_OK;
  return tiny::produce_list(__func__, outputs, output_count, model->context, [&] {
    const LoadedModel& m = *model->value;
    require(output_count == m.output_count(), Status::InvalidArgument, "the model has ",
            m.output_count(), " outputs; there is room for ", output_count);
    require(inputs != nullptr || input_count == 0, Status::InvalidArgument, "inputs is NULL");
    std::vector<tiny::Tensor> values;
    if (input_count > 0)
      require(&tiny::Operands(inputs, input_count, "inputs").context() == model->context,
              Status::InvalidArgument, "inputs come from another context than the model");
    for (size_t i = 0; i < input_count; ++i) values.push_back(inputs[i]->value);
    return model->value->run(values);
  });
}

}  // extern "C"
