// Operators of the caller's: their description, and the calls of its functions.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/boundary.h"
#include "api/model_handle.h"
#include "engine/custom_op.h"

using tiny::guarded;
using tiny::HostCall;
using tiny::require;
using tiny::Status;

namespace {

using Callback = tiny_status (*)(void* user, tiny_custom_call* call);

// The caller's data, given back when no operator has it any more.
class UserData : public tiny::RefCounted {
 public:
  UserData(void* data, void (*deleter)(void*)) : data_(data), deleter_(deleter) {}
  void* get() const { return data_; }

 protected:
  ~UserData() override {
    if (deleter_) deleter_(data_);
  }

 private:
  void* data_;
  void (*deleter_)(void*);
};

}  // namespace

struct tiny_custom_op : tiny::CountedAs<tiny::HandleKind::CustomOp> {
  std::string domain;
  std::string name;
  tiny::Ref<UserData> user;
  Callback infer = nullptr;
  Callback run = nullptr;
  Callback gradient = nullptr;
};

// Lent to a function for the length of its call.
struct tiny_custom_call {
  struct Value {
    tiny_dtype dtype = 0;
    tiny::Ints dims;
    void* data = nullptr;
  };
  const std::string* attributes = nullptr;
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  bool infers = false;  // then outputs are set, and nothing has memory
  std::string message;
};

namespace {

tiny_dtype number_of(tiny::DType dtype) {
  return dtype == tiny::kVoid ? 0 : dtype.info().number;
}

// What a function that failed leaves behind.
void require_ok(tiny_status status, const tiny_custom_call& call, const char* what) {
  if (status == TINY_OK) return;
  const bool is_known = status > 0 && status <= TINY_ERROR_INTERNAL;
  tiny::throw_error(
      is_known ? static_cast<Status>(status) : Status::InvalidArgument,
      call.message.empty() ? tiny::cat(what, " returned the status ", status) : call.message);
}

// Calls a function of the caller's with what runs.
void run_callback(const tiny::CustomOp& op, void* user, Callback function, const char* what,
                  const tiny::RunningCall& running) {
  tiny_custom_call call;
  call.attributes = &running.attributes;
  for (const auto& [from, to] :
       {std::pair(running.inputs, &call.inputs), std::pair(running.outputs, &call.outputs)})
    for (const tiny::RunningCall::Value& value : from)
      to->push_back({number_of(value.dtype), {value.dims.begin(), value.dims.end()}, value.data});
  try {
    require_ok(function(user, &call), call, what);
  } catch (const tiny::Error& e) {
    throw e.at(to_string(op));
  }
}

// The gradient of an operator: its outputs are as those inputs of the operator that are floats.
class CallersGradient : public tiny::CustomOp {
 public:
  CallersGradient(const tiny::CustomOp& op, tiny::Ref<UserData> user, Callback run)
      : CustomOp(op.domain(), op.name() + "'s gradient"), user_(std::move(user)), run_(run) {}

  std::vector<HostCall::Value> infer(const std::string&, std::span<const HostCall::Value> inputs,
                                     size_t outputs) const override {
    std::vector<HostCall::Value> out;
    for (const HostCall::Value& input : inputs)
      if (input.dtype.is_float() && out.size() < outputs)
        out.push_back({input.dtype, input.shape, -1});
    return out;
  }
  void run(const tiny::RunningCall& running) const override {
    run_callback(*this, user_->get(), run_, "its gradient function", running);
  }

 private:
  tiny::Ref<UserData> user_;
  Callback run_;
};

// A description as a context knows it.
class CallersOp : public tiny::CustomOp {
 public:
  explicit CallersOp(const tiny_custom_op& op)
      : CustomOp(op.domain, op.name),
        user_(op.user),
        infer_(op.infer),
        run_(op.run),
        gradient_(op.gradient) {}

  std::vector<HostCall::Value> infer(const std::string& attributes,
                                     std::span<const HostCall::Value> inputs,
                                     size_t outputs) const override {
    // Numbers that stand for dimensions are of this call: graphs of any context ask.
    tiny::DimensionMarks marks(tiny::DimensionMarks::next_context());
    tiny_custom_call call;
    call.attributes = &attributes;
    call.infers = true;
    for (const HostCall::Value& input : inputs) {
      tiny_custom_call::Value& value = call.inputs.emplace_back();
      value.dtype = number_of(input.dtype);
      for (const tiny::Dim& d : input.shape) value.dims.push_back(marks.mark(d));
    }
    call.outputs.resize(outputs);
    require_ok(infer_(user_->get(), &call), call, "its infer function");
    std::vector<HostCall::Value> out;
    for (size_t i = 0; i < outputs; ++i) {
      const tiny_custom_call::Value& value = call.outputs[i];
      require(value.dtype != 0, Status::InvalidArgument,
              "its infer function sets no dtype of output ", i);
      out.push_back({tiny::dtype_argument(value.dtype), marks.shape(value.dims, "dims"), -1});
    }
    return out;
  }

  void run(const tiny::RunningCall& running) const override {
    run_callback(*this, user_->get(), run_, "its run function", running);
  }
  tiny::Ref<const CustomOp> gradient() const override {
    if (!gradient_) return {};
    return tiny::make_ref<CallersGradient>(*this, user_, gradient_);
  }

 private:
  tiny::Ref<UserData> user_;
  Callback infer_;
  Callback run_;
  Callback gradient_;
};

const tiny_custom_call::Value* value_at(const std::vector<tiny_custom_call::Value>& values,
                                        size_t index) {
  return index < values.size() ? &values[index] : nullptr;
}

}  // namespace

extern "C" {

tiny_status tiny_custom_op_create(const char* domain, const char* name, void* user,
                                  void (*deleter)(void* user), tiny_custom_op** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [=] {
    const std::string of = &tiny::required(domain, "domain");
    const std::string called = &tiny::required(name, "name");
    require(!of.empty() && !called.empty(), Status::InvalidArgument, "the operator \"", of, "\".\"",
            called, "\" has no domain or no name");
    bool is_librarys = of == "ai.onnx";
    for (int64_t opset = tiny_supported_opset(); opset > 0 && !is_librarys; --opset)
      is_librarys = tiny_op_supported(domain, name, opset) != 0;
    require(!is_librarys, Status::InvalidArgument, "the operator ", called, " of the domain ", of,
            " is the library's");
    auto op = std::make_unique<tiny_custom_op>();
    op->domain = of;
    op->name = called;
    op->user = tiny::make_ref<UserData>(user, deleter);  // from here on nothing fails
    *out = op.release();
  });
}

void tiny_custom_op_retain(tiny_custom_op* op) {
  tiny::retain_owned(op);
}

void tiny_custom_op_release(tiny_custom_op* op) {
  if (tiny::is_last_release(op)) delete op;
}

tiny_status tiny_custom_op_set_infer(tiny_custom_op* op,
                                     tiny_status (*infer)(void* user, tiny_custom_call* call)) {
  return guarded(__func__, [=] { tiny::required(op, "op").infer = infer; });
}

tiny_status tiny_custom_op_set_run(tiny_custom_op* op,
                                   tiny_status (*run)(void* user, tiny_custom_call* call)) {
  return guarded(__func__, [=] { tiny::required(op, "op").run = run; });
}

tiny_status tiny_custom_op_set_gradient(tiny_custom_op* op,
                                        tiny_status (*gradient)(void* user,
                                                                tiny_custom_call* call)) {
  return guarded(__func__, [=] { tiny::required(op, "op").gradient = gradient; });
}

tiny_status tiny_context_add_custom_op(tiny_context* context, const tiny_custom_op* op) {
  return tiny::act(__func__, context, [=] {
    const tiny_custom_op& o = tiny::required(op, "op");
    require(o.infer && o.run, Status::InvalidArgument, "the operator ", o.domain, ".", o.name,
            " needs an infer and a run function");
    context->core->custom_ops().add(tiny::make_ref<CallersOp>(o));
  });
}

const char* tiny_custom_call_attributes(const tiny_custom_call* call) {
  return call ? call->attributes->c_str() : nullptr;
}

size_t tiny_custom_call_input_count(const tiny_custom_call* call) {
  return call ? call->inputs.size() : 0;
}

tiny_dtype tiny_custom_call_input_dtype(const tiny_custom_call* call, size_t index) {
  const auto* value = call ? value_at(call->inputs, index) : nullptr;
  return value ? value->dtype : 0;
}

const int64_t* tiny_custom_call_input_shape(const tiny_custom_call* call, size_t index,
                                            size_t* rank) {
  const auto* value = call ? value_at(call->inputs, index) : nullptr;
  if (rank) *rank = value ? value->dims.size() : 0;
  return value ? value->dims.data() : nullptr;
}

const void* tiny_custom_call_input_data(const tiny_custom_call* call, size_t index) {
  const auto* value = call ? value_at(call->inputs, index) : nullptr;
  return value ? value->data : nullptr;
}

size_t tiny_custom_call_output_count(const tiny_custom_call* call) {
  return call ? call->outputs.size() : 0;
}

tiny_dtype tiny_custom_call_output_dtype(const tiny_custom_call* call, size_t index) {
  const auto* value = call ? value_at(call->outputs, index) : nullptr;
  return value ? value->dtype : 0;
}

const int64_t* tiny_custom_call_output_shape(const tiny_custom_call* call, size_t index,
                                             size_t* rank) {
  const auto* value = call ? value_at(call->outputs, index) : nullptr;
  if (rank) *rank = value ? value->dims.size() : 0;
  return value ? value->dims.data() : nullptr;
}

void* tiny_custom_call_output_data(tiny_custom_call* call, size_t index) {
  const auto* value = call ? value_at(call->outputs, index) : nullptr;
  return value ? value->data : nullptr;
}

tiny_status tiny_custom_call_set_output(tiny_custom_call* call, size_t index, tiny_dtype dtype,
                                        const int64_t* dims, size_t ndim) {
  return guarded(__func__, [=] {
    tiny_custom_call& c = tiny::required(call, "call");
    require(c.infers, Status::InvalidArgument, "outputs are set by the infer function alone");
    require(index < c.outputs.size(), Status::InvalidArgument, "the call has ", c.outputs.size(),
            " outputs; got index ", index);
    require(ndim <= TINY_RANK_MAX, Status::Shape, "output ", index, " has ", ndim,
            " dimensions; at most ", TINY_RANK_MAX, " are possible");
    c.outputs[index].dims = tiny::numbers(dims, ndim, "dims");
    c.outputs[index].dtype = tiny::dtype_argument(dtype).info().number;
  });
}

void tiny_custom_call_set_error(tiny_custom_call* call, const char* message) {
  guarded(__func__,
          [=] { tiny::required(call, "call").message = &tiny::required(message, "message"); });
}

}  // extern "C"
