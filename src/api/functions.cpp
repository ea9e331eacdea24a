// Functions with parameters of their own: joining, positions, networks.
#include "api/boundary.h"
#include "tensor/activation.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/promotion.h"
#include "tensor/scan.h"

using tiny::check_flags;
using tiny::numbers;
using tiny::Operands;
using tiny::produce;
using tiny::Tensor;

namespace {

// The value of an operand that may be NULL.
Tensor optional(const tiny_tensor* tensor) {
  return tensor ? tensor->value : Tensor();
}

}  // namespace

extern "C" {

tiny_status tiny_squeeze(const tiny_tensor* a, const int64_t* axes, size_t naxes,
                         tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    const bool all = naxes == 0 && axes == nullptr;
    return tiny::weak_like(
        all ? tiny::squeeze(a->value) : tiny::squeeze(a->value, numbers(axes, naxes, "axes")),
        a->value);
  });
}

tiny_status tiny_unsqueeze(const tiny_tensor* a, const int64_t* axes, size_t naxes,
                           tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    return tiny::weak_like(tiny::unsqueeze(a->value, numbers(axes, naxes, "axes")), a->value);
  });
}

tiny_status tiny_tile(const tiny_tensor* a, const int64_t* repeats, size_t naxes,
                      tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    return tiny::weak_like(tiny::tile(a->value, a->context->marks.shape(
                                                    numbers(repeats, naxes, "repeats"), "repeats")),
                           a->value);
  });
}

tiny_status tiny_stack(tiny_tensor* const* tensors, size_t count, int64_t axis, tiny_tensor** out) {
  return produce(__func__, out, Operands(tensors, count, "tensors"), [=] {
    const std::vector<Tensor> values = tiny::values_of(tensors, count);
    return tiny::weak_like(tiny::stack(values, axis), tiny::refs_to(values));
  });
}

tiny_status tiny_split(const tiny_tensor* a, int64_t axis, const int64_t* sizes, size_t nsizes,
                       tiny_tensor** parts, size_t count) {
  return tiny::produce_list(__func__, parts, count, {{a, "a"}}, [=] {
    tiny::require(count == nsizes, tiny::Status::InvalidArgument, nsizes, " sizes for ", count,
                  " parts");
    tiny::require(sizes != nullptr || nsizes == 0, tiny::Status::InvalidArgument, "sizes is NULL");
    return tiny::split(a->value, a->context->marks.plain({sizes, sizes + nsizes}, "sizes"), axis);
  });
}

tiny_status tiny_depth_to_space(const tiny_tensor* a, int64_t block, tiny_flags flags,
                                tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    check_flags(flags, TINY_FLAG_COLUMNS_FIRST);
    return tiny::depth_to_space(a->value, block, flags & TINY_FLAG_COLUMNS_FIRST);
  });
}

tiny_status tiny_space_to_depth(const tiny_tensor* a, int64_t block, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] { return tiny::space_to_depth(a->value, block); });
}

tiny_status tiny_gather(const tiny_tensor* a, const tiny_tensor* index, int64_t axis,
                        tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}, {index, "index"}},
                 [=] { return tiny::gather(a->value, index->value, axis); });
}

tiny_status tiny_take_along_axis(const tiny_tensor* a, const tiny_tensor* index, int64_t axis,
                                 tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}, {index, "index"}},
                 [=] { return tiny::take_along_axis(a->value, index->value, axis); });
}

tiny_status tiny_gather_nd(const tiny_tensor* a, const tiny_tensor* index, int64_t batch,
                           tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}, {index, "index"}},
                 [=] { return tiny::gather_nd(a->value, index->value, batch); });
}

tiny_status tiny_one_hot(const tiny_tensor* index, int64_t depth, const tiny_tensor* on,
                         const tiny_tensor* off, int64_t axis, tiny_tensor** out) {
  return produce(__func__, out, {{index, "index"}, {on, "on"}, {off, "off"}}, [=] {
    const tiny::Dim size = index->context->marks.dim(depth, "depth");
    return tiny::one_hot(index->value, size, on->value, off->value, axis);
  });
}

tiny_status tiny_argmax(const tiny_tensor* a, int64_t axis, tiny_flags flags, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    check_flags(flags, TINY_FLAG_KEEPDIMS | TINY_FLAG_LAST);
    return tiny::argmax(a->value, axis, flags & TINY_FLAG_KEEPDIMS, flags & TINY_FLAG_LAST);
  });
}

tiny_status tiny_argmin(const tiny_tensor* a, int64_t axis, tiny_flags flags, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    check_flags(flags, TINY_FLAG_KEEPDIMS | TINY_FLAG_LAST);
    return tiny::argmin(a->value, axis, flags & TINY_FLAG_KEEPDIMS, flags & TINY_FLAG_LAST);
  });
}

tiny_status tiny_cumsum(const tiny_tensor* a, int64_t axis, tiny_flags flags, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    check_flags(flags, TINY_FLAG_EXCLUSIVE | TINY_FLAG_REVERSE);
    return tiny::cumsum(a->value, axis, flags & TINY_FLAG_EXCLUSIVE, flags & TINY_FLAG_REVERSE);
  });
}

tiny_status tiny_triu(const tiny_tensor* a, int64_t diagonal, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] { return tiny::triu(a->value, diagonal); });
}

tiny_status tiny_tril(const tiny_tensor* a, int64_t diagonal, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] { return tiny::tril(a->value, diagonal); });
}

tiny_status tiny_gelu(const tiny_tensor* a, tiny_flags flags, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    check_flags(flags, TINY_FLAG_APPROXIMATE);
    return tiny::gelu(a->value,
                      flags & TINY_FLAG_APPROXIMATE ? tiny::GeluKind::Tanh : tiny::GeluKind::Exact);
  });
}

tiny_status tiny_elu(const tiny_tensor* a, double alpha, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] { return tiny::elu(a->value, alpha); });
}

tiny_status tiny_leaky_relu(const tiny_tensor* a, double slope, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] { return tiny::leaky_relu(a->value, slope); });
}

tiny_status tiny_hard_sigmoid(const tiny_tensor* a, double alpha, double beta, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}},
                 [=] { return tiny::hard_sigmoid(a->value, alpha, beta); });
}

tiny_status tiny_clip(const tiny_tensor* a, const tiny_tensor* low, const tiny_tensor* high,
                      tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}, {low, "low", true}, {high, "high", true}},
                 [=] { return tiny::clip(a->value, optional(low), optional(high)); });
}

tiny_status tiny_softmax(const tiny_tensor* a, int64_t axis, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] { return tiny::softmax(a->value, axis); });
}

tiny_status tiny_log_softmax(const tiny_tensor* a, int64_t axis, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] { return tiny::log_softmax(a->value, axis); });
}

tiny_status tiny_variance(const tiny_tensor* a, const int64_t* axes, size_t naxes,
                          double correction, tiny_flags flags, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    check_flags(flags, TINY_FLAG_KEEPDIMS);
    const bool all = naxes == 0 && axes == nullptr;
    return tiny::variance(a->value,
                          all ? tiny::every_axis(a->value.rank()) : numbers(axes, naxes, "axes"),
                          correction, flags & TINY_FLAG_KEEPDIMS);
  });
}

tiny_status tiny_batch_norm(const tiny_tensor* x, const tiny_tensor* scale, const tiny_tensor* bias,
                            const tiny_tensor* mean, const tiny_tensor* var, double epsilon,
                            tiny_tensor** out) {
  return produce(
      __func__, out,
      {{x, "x"}, {scale, "scale", true}, {bias, "bias", true}, {mean, "mean"}, {var, "var"}}, [=] {
        return tiny::batch_norm(x->value, optional(scale), optional(bias), mean->value, var->value,
                                epsilon);
      });
}

tiny_status tiny_layer_norm(const tiny_tensor* x, const tiny_tensor* scale, const tiny_tensor* bias,
                            int64_t axis, double epsilon, tiny_tensor** out) {
  return produce(__func__, out, {{x, "x"}, {scale, "scale", true}, {bias, "bias", true}}, [=] {
    return tiny::layer_norm(x->value, optional(scale), optional(bias), axis, epsilon);
  });
}

tiny_status tiny_rms_norm(const tiny_tensor* x, const tiny_tensor* scale, int64_t axis,
                          double epsilon, tiny_tensor** out) {
  return produce(__func__, out, {{x, "x"}, {scale, "scale", true}},
                 [=] { return tiny::rms_norm(x->value, optional(scale), axis, epsilon); });
}

tiny_status tiny_group_norm(const tiny_tensor* x, int64_t groups, const tiny_tensor* scale,
                            const tiny_tensor* bias, double epsilon, tiny_tensor** out) {
  return produce(__func__, out, {{x, "x"}, {scale, "scale", true}, {bias, "bias", true}}, [=] {
    return tiny::group_norm(x->value, groups, optional(scale), optional(bias), epsilon);
  });
}

tiny_status tiny_instance_norm(const tiny_tensor* x, const tiny_tensor* scale,
                               const tiny_tensor* bias, double epsilon, tiny_tensor** out) {
  return produce(__func__, out, {{x, "x"}, {scale, "scale", true}, {bias, "bias", true}}, [=] {
    return tiny::instance_norm(x->value, optional(scale), optional(bias), epsilon);
  });
}

tiny_status tiny_lrn(const tiny_tensor* x, int64_t size, double alpha, double beta, double k,
                     tiny_tensor** out) {
  return produce(__func__, out, {{x, "x"}},
                 [=] { return tiny::lrn(x->value, size, alpha, beta, k); });
}

}  // extern "C"
