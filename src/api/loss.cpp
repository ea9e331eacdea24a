// Losses, and what is done with gradients before a step.
#include "tensor/loss.h"

#include "api/boundary.h"
#include "nn/gradients.h"
#include "tensor/ctc.h"

using tiny::produce;
using tiny::require;
using tiny::Status;

namespace {

tiny::LossReduction reduction_argument(tiny_reduction reduction) {
  switch (reduction) {
    case TINY_REDUCTION_MEAN:
      return tiny::LossReduction::Mean;
    case TINY_REDUCTION_SUM:
      return tiny::LossReduction::Sum;
    case TINY_REDUCTION_NONE:
      return tiny::LossReduction::None;
    default:
      break;
  }
  tiny::throw_error(Status::InvalidArgument, "reduction is ", reduction,
                    "; wanted one of tiny_reduction");
}

tiny::Tensor value_or_none(const tiny_tensor* tensor) {
  return tensor ? tensor->value : tiny::Tensor();
}

using LossFunction =
    tiny::FunctionRef<tiny::Tensor(const tiny::Tensor&, const tiny::Tensor&, tiny::LossReduction)>;

// A loss of two tensors: `body` gets their values and the reduction.
tiny_status loss_of(const char* call, tiny_tensor** out, const tiny_tensor* x,
                    const tiny_tensor* target, tiny_reduction reduction,
                    LossFunction body) noexcept {
  return produce(call, out, {{x, "x"}, {target, "target"}},
                 [&] { return body(x->value, target->value, reduction_argument(reduction)); });
}

}  // namespace

extern "C" {

tiny_status tiny_cross_entropy(const tiny_tensor* logits, const tiny_tensor* target,
                               const tiny_tensor* weight, int64_t ignore_index,
                               double label_smoothing, tiny_reduction reduction,
                               tiny_tensor** out) {
  return produce(
      __func__, out, {{logits, "logits"}, {target, "target"}, {weight, "weight", true}}, [=] {
        tiny::LossOptions options{value_or_none(weight), {}, reduction_argument(reduction)};
        if (!target->value.dtype().is_float()) options.ignore_index = ignore_index;
        return tiny::cross_entropy(logits->value, target->value, options, label_smoothing);
      });
}

tiny_status tiny_nll_loss(const tiny_tensor* log_probability, const tiny_tensor* target,
                          const tiny_tensor* weight, int64_t ignore_index, tiny_reduction reduction,
                          tiny_tensor** out) {
  return produce(
      __func__, out,
      {{log_probability, "log_probability"}, {target, "target"}, {weight, "weight", true}}, [=] {
        return tiny::nll_loss(log_probability->value, target->value,
                              {value_or_none(weight), ignore_index, reduction_argument(reduction)});
      });
}

tiny_status tiny_ctc_loss(const tiny_tensor* log_probability, const tiny_tensor* target,
                          const tiny_tensor* input_lengths, const tiny_tensor* target_lengths,
                          int64_t blank, tiny_reduction reduction, tiny_flags flags,
                          tiny_tensor** out) {
  return produce(
      __func__, out,
      {{log_probability, "log_probability"},
       {target, "target"},
       {input_lengths, "input_lengths"},
       {target_lengths, "target_lengths"}},
      [=] {
        tiny::check_flags(flags, TINY_FLAG_ZERO_INFINITY);
        return tiny::ctc_loss(
            log_probability->value, target->value, input_lengths->value, target_lengths->value,
            {blank, reduction_argument(reduction), (flags & TINY_FLAG_ZERO_INFINITY) != 0});
      });
}

tiny_status tiny_mse_loss(const tiny_tensor* x, const tiny_tensor* target, tiny_reduction reduction,
                          tiny_tensor** out) {
  return loss_of(__func__, out, x, target, reduction, tiny::mse_loss);
}

tiny_status tiny_l1_loss(const tiny_tensor* x, const tiny_tensor* target, tiny_reduction reduction,
                         tiny_tensor** out) {
  return loss_of(__func__, out, x, target, reduction, tiny::l1_loss);
}

tiny_status tiny_smooth_l1_loss(const tiny_tensor* x, const tiny_tensor* target, double beta,
                                tiny_reduction reduction, tiny_tensor** out) {
  return loss_of(__func__, out, x, target, reduction, [=](const auto& a, const auto& b, auto r) {
    return tiny::smooth_l1_loss(a, b, r, beta);
  });
}

tiny_status tiny_huber_loss(const tiny_tensor* x, const tiny_tensor* target, double delta,
                            tiny_reduction reduction, tiny_tensor** out) {
  return loss_of(__func__, out, x, target, reduction, [=](const auto& a, const auto& b, auto r) {
    return tiny::huber_loss(a, b, r, delta);
  });
}

tiny_status tiny_binary_cross_entropy(const tiny_tensor* p, const tiny_tensor* target,
                                      tiny_reduction reduction, tiny_tensor** out) {
  return produce(__func__, out, {{p, "p"}, {target, "target"}}, [=] {
    return tiny::binary_cross_entropy(p->value, target->value, reduction_argument(reduction));
  });
}

tiny_status tiny_binary_cross_entropy_with_logits(const tiny_tensor* x, const tiny_tensor* target,
                                                  const tiny_tensor* positive_weight,
                                                  tiny_reduction reduction, tiny_tensor** out) {
  return produce(__func__, out,
                 {{x, "x"}, {target, "target"}, {positive_weight, "positive_weight", true}}, [=] {
                   return tiny::binary_cross_entropy_with_logits(x->value, target->value,
                                                                 reduction_argument(reduction),
                                                                 value_or_none(positive_weight));
                 });
}

tiny_status tiny_kl_div(const tiny_tensor* x, const tiny_tensor* target, int32_t log_target,
                        tiny_reduction reduction, tiny_tensor** out) {
  return loss_of(__func__, out, x, target, reduction, [=](const auto& a, const auto& b, auto r) {
    return tiny::kl_div(a, b, r, log_target != 0);
  });
}

tiny_status tiny_gradient_norm(tiny_tensor* const* gradients, size_t count, tiny_tensor** out) {
  return produce(__func__, out, tiny::Operands(gradients, count, "gradients"),
                 [=] { return tiny::gradient_norm(tiny::values_of(gradients, count)); });
}

tiny_status tiny_clip_by_norm(tiny_tensor* const* gradients, size_t count, const tiny_tensor* norm,
                              double most, tiny_tensor** clipped, size_t clipped_count) {
  return tiny::produce_list(__func__, clipped, clipped_count,
                            tiny::Operands(gradients, count, "gradients"), [=] {
                              require(clipped_count == count, Status::InvalidArgument, "room for ",
                                      clipped_count, " of ", count, " gradients");
                              return tiny::clip_by_norm(tiny::values_of(gradients, count),
                                                        tiny::required(norm, "norm").value, most);
                            });
}

}  // extern "C"
