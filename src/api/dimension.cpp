// Arithmetic on dimensions, and what is known of them.
#include "api/boundary.h"
#include "api/model_handle.h"

using tiny::Dim;
using tiny::lower_bound;
using tiny::require;
using tiny::Status;
using tiny::upper_bound;

namespace {

using Operation = Dim (*)(const Dim& a, const Dim& b);

// What `operation` makes of two dimensions, as a number.
tiny_status calculate(const char* call, tiny_context* context, int64_t a, int64_t b, int64_t* out,
                      Operation operation) noexcept {
  if (!out) return tiny::fail(call, Status::InvalidArgument, "out is NULL");
  *out = 0;
  return tiny::act(call, context, [&] {
    const Dim result = operation(context->marks.dim(a, "a"), context->marks.dim(b, "b"));
    require(lower_bound(result) >= -tiny::kDimMax && upper_bound(result) <= tiny::kDimMax,
            Status::Limit, result, " is from ", lower_bound(result), " to ", upper_bound(result),
            "; at most 2^40 either way is possible");
    *out = context->marks.mark(result);
  });
}

// A divisor.
Dim checked(const Dim& b) {
  require(lower_bound(b) >= 1, Status::InvalidArgument, "b is ", b, "; a divisor is at least 1");
  return b;
}

}  // namespace

extern "C" {

tiny_status tiny_dim_add(tiny_context* context, int64_t a, int64_t b, int64_t* out) {
  return calculate(__func__, context, a, b, out, [](const Dim& x, const Dim& y) { return x + y; });
}

tiny_status tiny_dim_sub(tiny_context* context, int64_t a, int64_t b, int64_t* out) {
  return calculate(__func__, context, a, b, out, [](const Dim& x, const Dim& y) { return x - y; });
}

tiny_status tiny_dim_mul(tiny_context* context, int64_t a, int64_t b, int64_t* out) {
  return calculate(__func__, context, a, b, out, [](const Dim& x, const Dim& y) { return x * y; });
}

tiny_status tiny_dim_floor_div(tiny_context* context, int64_t a, int64_t b, int64_t* out) {
  return calculate(__func__, context, a, b, out,
                   [](const Dim& x, const Dim& y) { return floor_div(x, checked(y)); });
}

tiny_status tiny_dim_floor_mod(tiny_context* context, int64_t a, int64_t b, int64_t* out) {
  return calculate(__func__, context, a, b, out,
                   [](const Dim& x, const Dim& y) { return floor_mod(x, checked(y)); });
}

tiny_status tiny_dim_min(tiny_context* context, int64_t a, int64_t b, int64_t* out) {
  return calculate(__func__, context, a, b, out, tiny::minimum);
}

tiny_status tiny_dim_max(tiny_context* context, int64_t a, int64_t b, int64_t* out) {
  return calculate(__func__, context, a, b, out, tiny::maximum);
}

tiny_status tiny_dim_range(tiny_context* context, int64_t dim, int64_t* min, int64_t* max) {
  if (!min || !max) return tiny::fail(__func__, Status::InvalidArgument, "min or max is NULL");
  *min = *max = 0;
  return tiny::guarded(__func__, [=] {
    const auto known = tiny::required(context, "context").marks.known(dim, "dim");
    *min = known.min;
    *max = known.max;
  });
}

tiny_status tiny_dim_text(tiny_context* context, int64_t dim, tiny_report** out) {
  return tiny::answer(__func__, out, context, "context", [=](const tiny_context& c) {
    return new tiny_report{c.marks.known(dim, "dim").text};
  });
}

}  // extern "C"
