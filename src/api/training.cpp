// Gradients, and random numbers.
#include "api/boundary.h"
#include "autograd/gradient.h"
#include "tensor/alias.h"
#include "tensor/promotion.h"
#include "tensor/random.h"

using tiny::numbers;
using tiny::produce;
using tiny::Tensor;

extern "C" {

tiny_status tiny_gradient(tiny_tensor* const* losses, size_t loss_count, tiny_tensor* const* wrt,
                          size_t wrt_count, tiny_tensor* const* upstream, size_t upstream_count,
                          tiny_flags flags, tiny_tensor** gradients, size_t count) {
  return tiny::produce_list(
      __func__, gradients, count, tiny::Operands(losses, loss_count, "losses"), [=] {
        tiny::check_flags(flags, TINY_FLAG_ALLOW_UNUSED);
        const tiny_context& context = tiny::Operands(losses, loss_count, "losses").context();
        const auto check = [&](tiny_tensor* const* tensors, size_t many, const char* name) {
          tiny::require_one_context(tiny::Operands(tensors, many, name).context(), context,
                                    "losses, upstream and wrt of two contexts");
        };
        check(wrt, wrt_count, "wrt");
        if (upstream_count > 0) check(upstream, upstream_count, "upstream");
        tiny::require(upstream_count == 0 || upstream_count == loss_count,
                      tiny::Status::InvalidArgument, upstream_count, " upstreams for ", loss_count,
                      " losses");
        tiny::require(count == wrt_count, tiny::Status::InvalidArgument, "room for ", count,
                      " gradients of ", wrt_count, " tensors");
        return tiny::gradients(
            tiny::values_of(losses, loss_count), tiny::values_of(upstream, upstream_count),
            tiny::values_of(wrt, wrt_count), (flags & TINY_FLAG_ALLOW_UNUSED) != 0);
      });
}

tiny_status tiny_made_of(const tiny_tensor* tensor, tiny_tensor* const* others, size_t other_count,
                         int64_t* positions, size_t capacity, size_t* found) {
  if (!found) return tiny::fail(__func__, tiny::Status::InvalidArgument, "found is NULL");
  *found = 0;
  return tiny::act(__func__, {{tensor, "tensor"}}, [=] {
    tiny::require(positions != nullptr || capacity == 0, tiny::Status::InvalidArgument,
                  "positions is NULL but has room for ", capacity);
    if (other_count > 0)
      tiny::require_one_context(tiny::Operands(others, other_count, "others").context(),
                                *tensor->context, "others are of another context than the tensor");
    const std::vector<int64_t> all =
        tiny::made_of(tensor->value, tiny::values_of(others, other_count));
    for (size_t i = 0; i < all.size() && i < capacity; ++i) positions[i] = all[i];
    *found = all.size();
  });
}

tiny_status tiny_detach(const tiny_tensor* a, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}},
                 [=] { return tiny::weak_like(tiny::detach(a->value), a->value); });
}

tiny_status tiny_clone(const tiny_tensor* a, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] { return tiny::clone(a->value); });
}

tiny_status tiny_recompute(const tiny_tensor* a, tiny_tensor* const* kept, size_t count,
                           tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    if (count == 0) return tiny::recompute(a->value);
    tiny::require_one_context(tiny::Operands(kept, count, "kept").context(), *a->context,
                              "kept is of another context than a");
    return tiny::recompute(a->value, tiny::values_of(kept, count));
  });
}

tiny_status tiny_random_key(tiny_context* context, int64_t seed, tiny_tensor** out) {
  return produce(__func__, out, context,
                 [=] { return tiny::random_key(context->core, static_cast<uint64_t>(seed)); });
}

tiny_status tiny_random_split(const tiny_tensor* key, int64_t count, tiny_tensor** out) {
  return produce(__func__, out, {{key, "key"}}, [=] { return tiny::split_key(key->value, count); });
}

tiny_status tiny_random_bits(const tiny_tensor* key, int64_t count, tiny_tensor** out) {
  return produce(__func__, out, {{key, "key"}},
                 [=] { return tiny::random_bits(key->value, count); });
}

tiny_status tiny_random_at(const tiny_tensor* key, const tiny_tensor* counters, tiny_tensor** out) {
  return produce(__func__, out, {{key, "key"}, {counters, "counters"}},
                 [=] { return tiny::random_at(key->value, counters->value); });
}

tiny_status tiny_random_uniform(const tiny_tensor* key, tiny_dtype dtype, const int64_t* dims,
                                size_t ndim, tiny_tensor** out) {
  return produce(__func__, out, {{key, "key"}}, [=] {
    return tiny::random_uniform(key->value, tiny::dtype_argument(dtype),
                                tiny::to_shape(numbers(dims, ndim, "dims")));
  });
}

tiny_status tiny_random_normal(const tiny_tensor* key, tiny_dtype dtype, const int64_t* dims,
                               size_t ndim, tiny_tensor** out) {
  return produce(__func__, out, {{key, "key"}}, [=] {
    return tiny::random_normal(key->value, tiny::dtype_argument(dtype),
                               tiny::to_shape(numbers(dims, ndim, "dims")));
  });
}

tiny_status tiny_random_integers(const tiny_tensor* key, tiny_dtype dtype, const int64_t* dims,
                                 size_t ndim, int64_t low, int64_t high, tiny_tensor** out) {
  return produce(__func__, out, {{key, "key"}}, [=] {
    return tiny::random_integers(key->value, tiny::dtype_argument(dtype),
                                 numbers(dims, ndim, "dims"), low, high);
  });
}

tiny_status tiny_random_permutation(const tiny_tensor* key, int64_t count, tiny_tensor** out) {
  return produce(__func__, out, {{key, "key"}},
                 [=] { return tiny::random_permutation(key->value, count); });
}

tiny_status tiny_random_bernoulli(const tiny_tensor* key, const tiny_tensor* p, tiny_tensor** out) {
  return produce(__func__, out, {{key, "key"}, {p, "p"}},
                 [=] { return tiny::random_bernoulli(key->value, p->value); });
}

tiny_status tiny_random_truncated_normal(const tiny_tensor* key, tiny_dtype dtype,
                                         const int64_t* dims, size_t ndim, double low, double high,
                                         tiny_tensor** out) {
  return produce(__func__, out, {{key, "key"}}, [=] {
    return tiny::random_truncated_normal(key->value, tiny::dtype_argument(dtype),
                                         numbers(dims, ndim, "dims"), low, high);
  });
}

tiny_status tiny_random_multinomial(const tiny_tensor* key, const tiny_tensor* weights,
                                    int64_t count, int32_t replacement, tiny_tensor** out) {
  return produce(__func__, out, {{key, "key"}, {weights, "weights"}}, [=] {
    return tiny::random_multinomial(key->value, weights->value, count, replacement != 0);
  });
}

tiny_status tiny_dropout(const tiny_tensor* key, const tiny_tensor* x, double p,
                         tiny_tensor** out) {
  return produce(__func__, out, {{key, "key"}, {x, "x"}},
                 [=] { return tiny::dropout(key->value, x->value, p); });
}

}  // extern "C"
