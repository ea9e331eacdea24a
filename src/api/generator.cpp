// Sources of keys, and what parameters begin with.
#include "api/generator_handle.h"
#include "api/holder.h"
#include "api/initial.h"

namespace tiny {

namespace {

constexpr Named<Initial> kInitials[] = {
    {TINY_INITIAL_CONSTANT, "TINY_INITIAL_CONSTANT", Initial::Constant},
    {TINY_INITIAL_UNIFORM, "TINY_INITIAL_UNIFORM", Initial::Uniform},
    {TINY_INITIAL_NORMAL, "TINY_INITIAL_NORMAL", Initial::Normal},
    {TINY_INITIAL_TRUNCATED_NORMAL, "TINY_INITIAL_TRUNCATED_NORMAL", Initial::TruncatedNormal},
    {TINY_INITIAL_XAVIER_UNIFORM, "TINY_INITIAL_XAVIER_UNIFORM", Initial::XavierUniform},
    {TINY_INITIAL_XAVIER_NORMAL, "TINY_INITIAL_XAVIER_NORMAL", Initial::XavierNormal},
    {TINY_INITIAL_KAIMING_UNIFORM, "TINY_INITIAL_KAIMING_UNIFORM", Initial::KaimingUniform},
    {TINY_INITIAL_KAIMING_NORMAL, "TINY_INITIAL_KAIMING_NORMAL", Initial::KaimingNormal},
    {TINY_INITIAL_ORTHOGONAL, "TINY_INITIAL_ORTHOGONAL", Initial::Orthogonal},
    {TINY_INITIAL_DIRAC, "TINY_INITIAL_DIRAC", Initial::Dirac},
    {TINY_INITIAL_SPARSE, "TINY_INITIAL_SPARSE", Initial::Sparse},
};

}  // namespace

Initialization initial_argument(tiny_initial initial, double a, double b) {
  return {find(std::span<const Named<Initial>>(kInitials), initial, "initial"), a, b};
}

}  // namespace tiny

extern "C" {

tiny_status tiny_generator_create(tiny_context* context, int64_t seed, tiny_generator** out) {
  return tiny::make_with(__func__, context, out, [=] {
    return tiny::make_ref<tiny::Generator>(context->core, static_cast<uint64_t>(seed));
  });
}

void tiny_generator_retain(tiny_generator* generator) {
  tiny::retain_owned(generator);
}

void tiny_generator_release(tiny_generator* generator) {
  tiny::release_holder(generator);
}

tiny_status tiny_generator_next(tiny_generator* generator, tiny_tensor** out) {
  return tiny::produce_with(__func__, generator, "generator", out,
                            [](tiny_generator& g) { return g.core->next(); });
}

tiny_status tiny_generator_state(tiny_generator* generator, tiny_tensor** out) {
  return tiny::produce_with(__func__, generator, "generator", out,
                            [](tiny_generator& g) { return g.core->state(); });
}

tiny_status tiny_initialize(const tiny_tensor* key, tiny_initial initial, double a, double b,
                            tiny_dtype dtype, const int64_t* dims, size_t ndim, tiny_tensor** out) {
  return tiny::produce(__func__, out, {{key, "key"}}, [=] {
    return tiny::initialize(key->value, tiny::initial_argument(initial, a, b),
                            tiny::dtype_argument(dtype), tiny::numbers(dims, ndim, "dims"));
  });
}

}  // extern "C"
