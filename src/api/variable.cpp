// Variables: dimensions that runs bind.
#include "api/boundary.h"
#include "api/model_handle.h"

using tiny::require;
using tiny::Status;

namespace {

// Sizes of tensors and what is computed of them must not overflow.
constexpr int64_t kVariableMax = int64_t{1} << 40;

template <class T>
tiny_status ask(const char* call, const tiny_variable* variable, T* out,
                std::type_identity_t<tiny::FunctionRef<T(const tiny_variable&)>> body) noexcept {
  if (!out) return tiny::fail(call, Status::InvalidArgument, "out is NULL");
  *out = T();
  return tiny::guarded(call, [&] { *out = body(tiny::required(variable, "variable")); });
}

}  // namespace

extern "C" {

tiny_status tiny_variable_create(tiny_context* context, const char* name, int64_t min, int64_t max,
                                 tiny_variable** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::act(__func__, context, [=] {
    const std::string text = &tiny::required(name, "name");
    require(!text.empty(), Status::InvalidArgument, "name is empty");
    require(min >= 0 && min < max && max <= kVariableMax, Status::InvalidArgument,
            "the variable \"", text, "\" from ", min, " to ", max,
            "; 0 <= min < max <= ", kVariableMax, " is wanted");
    const tiny::Dim dim(context->core->graph().variable(text, min, max));
    *out = new tiny_variable(*context, text, min, max, context->marks.mark(dim));
  });
}

void tiny_variable_retain(tiny_variable* variable) {
  tiny::retain_owned(variable);
}

void tiny_variable_release(tiny_variable* variable) {
  tiny::release_owned(variable);
}

tiny_status tiny_variable_name(const tiny_variable* variable, const char** out) {
  return ask(__func__, variable, out, [](const tiny_variable& v) { return v.name.c_str(); });
}

tiny_status tiny_variable_range(const tiny_variable* variable, int64_t* min, int64_t* max) {
  if (!min || !max) return tiny::fail(__func__, Status::InvalidArgument, "min or max is NULL");
  *min = *max = 0;
  return tiny::guarded(__func__, [=] {
    const tiny_variable& v = tiny::required(variable, "variable");
    *min = v.min;
    *max = v.max;
  });
}

tiny_status tiny_variable_dim(const tiny_variable* variable, int64_t* out) {
  return ask(__func__, variable, out, [](const tiny_variable& v) { return v.mark; });
}

}  // extern "C"
