// Values of models: texts, lists, maps, and nothing.
#include "api/value_handle.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "api/boundary.h"
#include "api/loaded_model.h"
#include "base/checked.h"
#include "onnx/value_file.h"

using tiny::guarded;
using tiny::require;
using tiny::Status;
using tiny::onnx::ModelValue;

tiny_value::~tiny_value() {
  tiny::release_handle(tensor);
  for (tiny_value* element : elements) tiny_value_release(element);
}

namespace {

constexpr int kDepthMax = 64;  // of lists in lists: they end within each other

// An end that gives back what the constructor took of the context.
struct EndOfNew {
  void operator()(tiny_value* value) const { tiny_value_release(value); }
};
using Owned = std::unique_ptr<tiny_value, EndOfNew>;

Owned make_value(tiny_context& context, tiny_kind kind) {
  return Owned(new tiny_value(context, kind));
}

// A call that makes a value, by `body`.
tiny_status make(const char* call, tiny_value** out, tiny::FunctionRef<Owned()> body) noexcept {
  if (!out) return tiny::fail(call, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(call, [&] { *out = body().release(); });
}

void add_element(tiny_value& to, tiny_value& element, const char* name) {
  require(element.context == to.context, Status::InvalidArgument, name,
          " comes from another context");
  to.depth = std::max(to.depth, element.depth + 1);
  require(to.depth < kDepthMax, Status::Limit, "values in values, more than ", kDepthMax, " deep");
  element.add_owner();
  to.elements.push_back(&element);
}

const tiny_value& of_kind(const tiny_value* value, tiny_kind kind, const char* what) {
  const tiny_value& v = tiny::required(value, "value");
  require(v.kind == kind, Status::InvalidArgument, "value is no ", what);
  return v;
}

// The handle of what a model made; within a Building.
Owned handle_of(tiny_context& context, const ModelValue& value) {
  using Kind = ModelValue::Kind;
  constexpr tiny_kind kKinds[] = {TINY_KIND_TENSOR, TINY_KIND_TEXTS, TINY_KIND_SEQUENCE,
                                  TINY_KIND_MAP, TINY_KIND_OPTIONAL};
  Owned made = make_value(context, kKinds[static_cast<size_t>(value.kind)]);
  if (value.kind == Kind::Tensor)
    made->tensor = tiny::make_handle(context, [&] { return value.tensor; });
  made->shape = value.shape;
  made->texts = value.texts;
  for (const ModelValue& element : value.elements) {
    const Owned one = handle_of(context, element);
    add_element(*made, *one, "an element");
  }
  return made;
}

// What a handle stands for; within a Building.
ModelValue value_of(const tiny_value& handle) {
  using Kind = ModelValue::Kind;
  ModelValue value;
  value.kind = handle.kind == TINY_KIND_TENSOR     ? Kind::Tensor
               : handle.kind == TINY_KIND_TEXTS    ? Kind::Texts
               : handle.kind == TINY_KIND_SEQUENCE ? Kind::Sequence
               : handle.kind == TINY_KIND_MAP      ? Kind::Map
                                                   : Kind::Nothing;
  if (handle.tensor) value.tensor = handle.tensor->value;
  value.shape = handle.shape;
  value.texts = handle.texts;
  for (const tiny_value* element : handle.elements) value.elements.push_back(value_of(*element));
  return value;
}

// Nothing writes to them while a run reads.
void pin_tensors(const tiny_value& handle, std::vector<tiny::Cell::Pin>& pins) {
  if (handle.tensor) pins.emplace_back(*handle.tensor->value.cell());
  for (const tiny_value* element : handle.elements) pin_tensors(*element, pins);
}

// How many keys or values there are.
int64_t length_of(const tiny_value& value, const char* name) {
  const bool is_text = value.kind == TINY_KIND_TEXTS;
  require(is_text || value.kind == TINY_KIND_TENSOR, Status::InvalidArgument, name,
          " is neither texts nor a tensor");
  const size_t rank = is_text ? value.shape.size() : value.tensor->rank;
  require(rank == 1 && (is_text || value.tensor->is_fixed), Status::Shape, name, " has ", rank,
          " axes; wanted one");
  return is_text ? value.shape[0] : value.tensor->dims[0];
}

}  // namespace

extern "C" {

tiny_status tiny_value_from_tensor(tiny_tensor* tensor, tiny_value** out) {
  return make(__func__, out, [=] {
    tiny_tensor& t = tiny::required(tensor, "tensor");
    Owned made = make_value(*t.context, TINY_KIND_TENSOR);
    t.add_owner();
    made->tensor = &t;
    return made;
  });
}

tiny_status tiny_value_texts(tiny_context* context, const int64_t* dims, size_t ndim,
                             const void* data, size_t bytes, const int64_t* lengths, size_t count,
                             tiny_value** out) {
  return make(__func__, out, [=] {
    Owned made = make_value(tiny::required(context, "context"), TINY_KIND_TEXTS);
    made->shape = tiny::numbers(dims, ndim, "dims");
    int64_t elements = 1;
    for (const int64_t d : made->shape) {
      require(d >= 0, Status::Shape, "dims has a size of ", d);
      elements = tiny::checked_mul(elements, d, "a shape");
    }
    require(elements == tiny::signed_bytes(count), Status::Shape, "dims ask for ", elements,
            " texts, there are ", count, " lengths");
    require(lengths != nullptr || count == 0, Status::InvalidArgument, "lengths is NULL");
    require(data != nullptr || bytes == 0, Status::InvalidArgument, "data is NULL but has ", bytes,
            " bytes");
    const char* at = static_cast<const char*>(data);
    size_t left = bytes;
    for (size_t i = 0; i < count; ++i) {
      require(lengths[i] >= 0 && static_cast<uint64_t>(lengths[i]) <= left, Status::Shape,
              "lengths[", i, "] is ", lengths[i], " where data has ", left, " bytes more");
      made->texts.emplace_back(at, static_cast<size_t>(lengths[i]));
      at += lengths[i];
      left -= static_cast<size_t>(lengths[i]);
    }
    require(left == 0, Status::Shape, "data has ", left, " bytes behind the last text");
    return made;
  });
}

tiny_status tiny_value_sequence(tiny_context* context, tiny_value* const* elements, size_t count,
                                tiny_value** out) {
  return make(__func__, out, [=] {
    Owned made = make_value(tiny::required(context, "context"), TINY_KIND_SEQUENCE);
    require(elements != nullptr || count == 0, Status::InvalidArgument, "elements is NULL");
    for (size_t i = 0; i < count; ++i)
      add_element(*made, tiny::required(elements[i], "an element of elements"), "an element");
    return made;
  });
}

tiny_status tiny_value_map(tiny_value* keys, tiny_value* values, tiny_value** out) {
  return make(__func__, out, [=] {
    tiny_value& k = tiny::required(keys, "keys");
    tiny_value& v = tiny::required(values, "values");
    require(length_of(k, "keys") == length_of(v, "values"), Status::Shape,
            "there are not as many keys as values");
    require(!k.tensor || k.tensor->dtype == tiny::kInt64, Status::DType,
            "keys are texts or integers of 64 bits");
    Owned made = make_value(*k.context, TINY_KIND_MAP);
    add_element(*made, k, "keys");
    add_element(*made, v, "values");
    return made;
  });
}

tiny_status tiny_value_nothing(tiny_context* context, tiny_value** out) {
  return make(__func__, out,
              [=] { return make_value(tiny::required(context, "context"), TINY_KIND_OPTIONAL); });
}

tiny_status tiny_value_load(tiny_context* context, const char* path, tiny_kind kind,
                            tiny_value** out) {
  return make(__func__, out, [=] {
    tiny_context& owner = tiny::required(context, "context");
    const char* file = &tiny::required(path, "path");
    using tiny::onnx::FileValue;
    require(kind >= TINY_KIND_TENSOR && kind <= TINY_KIND_TEXTS && kind != TINY_KIND_SPARSE_TENSOR,
            Status::InvalidArgument, "values of kind ", kind, " are not read");
    const FileValue what = kind == TINY_KIND_SEQUENCE   ? FileValue::Sequence
                           : kind == TINY_KIND_OPTIONAL ? FileValue::Optional
                           : kind == TINY_KIND_MAP      ? FileValue::Map
                                                        : FileValue::Tensor;
    const tiny::Building building(owner);
    return handle_of(owner, tiny::onnx::read_value(owner.core, file, what));
  });
}

void tiny_value_retain(tiny_value* value) {
  tiny::retain_owned(value);
}

void tiny_value_release(tiny_value* value) {
  tiny::release_owned(value);
}

tiny_status tiny_value_kind(const tiny_value* value, tiny_kind* out) {
  return tiny::answer(__func__, out, value, "value", [](const tiny_value& v) { return v.kind; });
}

tiny_status tiny_value_count(const tiny_value* value, size_t* out) {
  return tiny::answer(__func__, out, value, "value",
                      [](const tiny_value& v) { return v.elements.size(); });
}

tiny_status tiny_value_element(const tiny_value* value, size_t index, tiny_value** out) {
  return make(__func__, out, [=] {
    const tiny_value& v = tiny::required(value, "value");
    require(index < v.elements.size(), Status::InvalidArgument, "the value has ", v.elements.size(),
            " elements; got index ", index);
    v.elements[index]->add_owner();
    return Owned(v.elements[index]);
  });
}

tiny_status tiny_value_tensor(const tiny_value* value, tiny_tensor** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [=] {
    tiny_tensor* const tensor = of_kind(value, TINY_KIND_TENSOR, "tensor of numbers").tensor;
    tensor->add_owner();
    *out = tensor;
  });
}

tiny_status tiny_value_shape(const tiny_value* value, int64_t* dims, size_t capacity,
                             size_t* rank) {
  return tiny::answer(__func__, rank, value, "value", [=](const tiny_value&) {
    const auto& shape = of_kind(value, TINY_KIND_TEXTS, "tensor of texts").shape;
    require(dims != nullptr || capacity == 0, Status::InvalidArgument,
            "dims is NULL but has room for ", capacity);
    std::copy_n(shape.begin(), std::min(shape.size(), capacity), dims);
    return shape.size();
  });
}

tiny_status tiny_value_text_lengths(const tiny_value* value, int64_t* lengths, size_t capacity,
                                    size_t* count) {
  return tiny::answer(__func__, count, value, "value", [=](const tiny_value&) {
    const auto& texts = of_kind(value, TINY_KIND_TEXTS, "tensor of texts").texts;
    require(lengths != nullptr || capacity == 0, Status::InvalidArgument,
            "lengths is NULL but has room for ", capacity);
    for (size_t i = 0; i < std::min(texts.size(), capacity); ++i)
      lengths[i] = static_cast<int64_t>(texts[i].size());
    return texts.size();
  });
}

tiny_status tiny_value_read_texts(const tiny_value* value, void* data, size_t bytes) {
  return guarded(__func__, [=] {
    const auto& texts = of_kind(value, TINY_KIND_TEXTS, "tensor of texts").texts;
    size_t all = 0;
    for (const std::string& text : texts) all += text.size();
    require(bytes == all, Status::Shape, "the texts have ", all, " bytes; got ", bytes);
    require(data != nullptr || bytes == 0, Status::InvalidArgument, "data is NULL");
    char* to = static_cast<char*>(data);
    for (const std::string& text : texts) to = std::copy(text.begin(), text.end(), to);
  });
}

tiny_status tiny_model_run_values(tiny_model* model, tiny_value* const* inputs, size_t input_count,
                                  tiny_value** outputs, size_t output_count) {
  return guarded(__func__, [=] {
    const tiny::StopSignal::Since since = tiny::StopSignal::Clock::now();
    for (size_t i = 0; outputs && i < output_count; ++i) outputs[i] = nullptr;
    tiny_model& m = tiny::required(model, "model");
    tiny_context& context = *m.context;
    require(outputs != nullptr || output_count == 0, Status::InvalidArgument, "out is NULL");
    require(output_count == m.value->output_count(), Status::InvalidArgument, "the model has ",
            m.value->output_count(), " outputs; there is room for ", output_count);
    require(inputs != nullptr || input_count == 0, Status::InvalidArgument, "inputs is NULL");
    for (size_t i = 0; i < input_count; ++i)
      require(tiny::required(inputs[i], "an element of inputs").context == &context,
              Status::InvalidArgument, "inputs[", i, "] comes from another context");
    tiny::onnx::LoadedModel::ValuesRun run;
    std::vector<tiny::Cell::Pin> pins;
    {
      const tiny::Building building(context, since);
      std::vector<ModelValue> values;
      for (size_t i = 0; i < input_count; ++i) {
        values.push_back(value_of(*inputs[i]));
        pin_tensors(*inputs[i], pins);
      }
      run = m.value->begin_values(values);
    }
    {
      const tiny::Inside inside(&context);
      run.run->execute(since);
    }
    pins.clear();
    context.enter_again(since);
    const tiny::Building building(context, since, std::adopt_lock);
    std::vector<Owned> made;
    for (const ModelValue& value : m.value->end_values(std::move(run)))
      made.push_back(handle_of(context, value));
    for (size_t i = 0; i < made.size(); ++i) outputs[i] = made[i].release();
  });
}

}  // extern "C"
