// Loss scalers: handles of src/nn's.
#include "api/boundary.h"
#include "nn/gradients.h"

using tiny::require;
using tiny::Status;

struct tiny_loss_scaler final : tiny::CountedAs<tiny::HandleKind::LossScaler>, tiny::HoldsNodes {
  tiny_loss_scaler(tiny_context& c, double factor, int64_t interval)
      : HoldsNodes(c, tiny::end_handle<tiny_loss_scaler>), core(c.core, factor, interval) {}

  tiny::LossScaler core;
};

namespace {

// A call that makes a tensor with the scaler.
tiny_status produce(const char* call, tiny_loss_scaler* scaler, tiny_tensor** out,
                    tiny::FunctionRef<tiny::Tensor(tiny_loss_scaler&)> body) noexcept {
  if (!out) return tiny::fail(call, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::guarded(call, [&] {
    tiny_loss_scaler& s = tiny::required(scaler, "scaler");
    const tiny::Building building(*s.context);
    *out = tiny::make_handle(*s.context, [&] { return body(s); });
  });
}

}  // namespace

extern "C" {

tiny_status tiny_loss_scaler_create(tiny_context* context, double factor, int64_t interval,
                                    tiny_loss_scaler** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::act(__func__, context, [=] {
    *out = new tiny_loss_scaler(*context, factor, interval);
    context->retain();
  });
}

void tiny_loss_scaler_retain(tiny_loss_scaler* scaler) {
  tiny::retain_owned(scaler);
}

void tiny_loss_scaler_release(tiny_loss_scaler* scaler) {
  if (tiny::is_last_release(scaler)) tiny::release_nodes(scaler);
}

tiny_status tiny_loss_scaler_scale(tiny_loss_scaler* scaler, const tiny_tensor* loss,
                                   tiny_tensor** out) {
  return produce(__func__, scaler, out, [=](tiny_loss_scaler& s) {
    tiny::require_one_context(*tiny::required(loss, "loss").context, *s.context,
                              "loss is of another context than the scaler");
    return s.core.scaled(loss->value);
  });
}

tiny_status tiny_loss_scaler_unscale(tiny_loss_scaler* scaler, tiny_tensor* const* gradients,
                                     size_t count, tiny_tensor** unscaled, size_t unscaled_count) {
  return tiny::produce_list(
      __func__, unscaled, unscaled_count, tiny::Operands(gradients, count, "gradients"), [=] {
        tiny_loss_scaler& s = tiny::required(scaler, "scaler");
        tiny::require_one_context(*gradients[0]->context, *s.context,
                                  "gradients of another context than the scaler");
        require(unscaled_count == count, Status::InvalidArgument, "room for ", unscaled_count,
                " gradients of ", count);
        return s.core.unscale(tiny::values_of(gradients, count)).gradients;
      });
}

tiny_status tiny_loss_scaler_skip(tiny_loss_scaler* scaler, tiny_tensor** out) {
  return produce(__func__, scaler, out, [](tiny_loss_scaler& s) {
    require(static_cast<bool>(s.core.skip()), Status::InvalidArgument,
            "no gradients were unscaled before");
    return s.core.skip();
  });
}

tiny_status tiny_loss_scaler_factor(tiny_loss_scaler* scaler, tiny_tensor** out) {
  return produce(__func__, scaler, out, [](tiny_loss_scaler& s) { return s.core.factor(); });
}

tiny_status tiny_loss_scaler_good_steps(tiny_loss_scaler* scaler, tiny_tensor** out) {
  return produce(__func__, scaler, out, [](tiny_loss_scaler& s) { return s.core.good_steps(); });
}

}  // extern "C"
