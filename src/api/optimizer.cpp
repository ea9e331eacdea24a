// Optimisers: handles of src/nn's.
#include "nn/optimizer.h"

#include "api/holder.h"

using tiny::require;
using tiny::Status;

struct tiny_optimizer final : tiny::CountedAs<tiny::HandleKind::Optimizer>, tiny::HoldsNodes {
  tiny_optimizer(tiny_context& c, tiny::OptimizerKind kind)
      : HoldsNodes(c, tiny::end_handle<tiny_optimizer>), core(c.core, kind) {}

  tiny::Optimizer core;
};

namespace {

// A call that works with the optimiser, in its context.
tiny_status with(const char* call, const tiny_optimizer* optimizer,
                 tiny::FunctionRef<void(tiny::Optimizer&)> body) noexcept {
  return tiny::with(call, optimizer, "optimizer", [&](tiny_optimizer& o) { body(o.core); });
}

// One that makes a tensor.
tiny_status produce(const char* call, const tiny_optimizer* optimizer, tiny_tensor** out,
                    tiny::FunctionRef<tiny::Tensor(tiny::Optimizer&)> body) noexcept {
  return tiny::produce_with(call, optimizer, "optimizer", out,
                            [&](tiny_optimizer& o) { return body(o.core); });
}

// The values of handles in the optimiser's context; no tensor for NULL where that is allowed.
std::vector<tiny::Tensor> values(const tiny_optimizer& optimizer, tiny_tensor* const* tensors,
                                 size_t count, const char* name, bool may_be_null) {
  require(tensors || count == 0, Status::InvalidArgument, name, " is NULL");
  std::vector<tiny::Tensor> all;
  for (size_t i = 0; i < count; ++i) {
    if (!tensors[i] && may_be_null) {
      all.emplace_back();
      continue;
    }
    const std::string place = tiny::cat(name, "[", i, "]");
    const tiny_tensor& tensor = tiny::required(tensors[i], place.c_str());
    tiny::require_one_context(*tensor.context, *optimizer.context, place,
                              " is of another context than the optimiser");
    all.push_back(tensor.value);
  }
  return all;
}

size_t group_number(int64_t group) {
  require(group >= 0, Status::InvalidArgument, "group ", group);
  return static_cast<size_t>(group);
}

const tiny::Optimizer::State& state_at(tiny::Optimizer& optimizer, size_t index) {
  const auto& all = optimizer.state();
  require(index < all.size(), Status::InvalidArgument, "state ", index, " of ", all.size());
  return all[index];
}

}  // namespace

extern "C" {

tiny_status tiny_optimizer_create(tiny_context* context, tiny_optimizer_kind kind,
                                  tiny_optimizer** out) {
  return tiny::make_with(__func__, context, out, [=] {
    require(kind >= TINY_OPTIMIZER_KIND_SGD && kind <= TINY_OPTIMIZER_KIND_ADAGRAD,
            Status::InvalidArgument, "kind is ", static_cast<int64_t>(kind),
            "; wanted one of tiny_optimizer_kind");
    return static_cast<tiny::OptimizerKind>(kind - TINY_OPTIMIZER_KIND_SGD);
  });
}

void tiny_optimizer_retain(tiny_optimizer* optimizer) {
  tiny::retain_owned(optimizer);
}

void tiny_optimizer_release(tiny_optimizer* optimizer) {
  tiny::release_holder(optimizer);
}

tiny_status tiny_optimizer_add(tiny_optimizer* optimizer, tiny_tensor* const* parameters,
                               size_t count, int64_t* group) {
  if (!group) return tiny::fail(__func__, Status::InvalidArgument, "group is NULL");
  *group = 0;
  return with(__func__, optimizer, [=](tiny::Optimizer& o) {
    *group = static_cast<int64_t>(
        o.add_group(values(*optimizer, parameters, count, "parameters", false)));
  });
}

tiny_status tiny_optimizer_set(tiny_optimizer* optimizer, int64_t group, const char* name,
                               double value) {
  return with(__func__, optimizer, [=](tiny::Optimizer& o) {
    o.set(group_number(group), &tiny::required(name, "name"), value);
  });
}

tiny_status tiny_optimizer_get(const tiny_optimizer* optimizer, int64_t group, const char* name,
                               double* value) {
  if (!value) return tiny::fail(__func__, Status::InvalidArgument, "value is NULL");
  *value = 0;
  return with(__func__, optimizer, [=](tiny::Optimizer& o) {
    *value = o.get(group_number(group), &tiny::required(name, "name"));
  });
}

tiny_status tiny_optimizer_rate(tiny_optimizer* optimizer, int64_t group, tiny_tensor** out) {
  return produce(__func__, optimizer, out,
                 [=](tiny::Optimizer& o) { return o.rate(group_number(group)); });
}

tiny_status tiny_optimizer_step(tiny_optimizer* optimizer, tiny_tensor* const* gradients,
                                size_t count, const tiny_tensor* skip) {
  return with(__func__, optimizer, [=](tiny::Optimizer& o) {
    tiny_tensor* const skips[] = {const_cast<tiny_tensor*>(skip)};
    o.step(values(*optimizer, gradients, count, "gradients", true),
           values(*optimizer, skips, 1, "skip", true).front());
  });
}

tiny_status tiny_optimizer_state_count(tiny_optimizer* optimizer, size_t* out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = 0;
  return with(__func__, optimizer, [=](tiny::Optimizer& o) { *out = o.state().size(); });
}

tiny_status tiny_optimizer_state_name(tiny_optimizer* optimizer, size_t index, const char** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return with(__func__, optimizer,
              [=](tiny::Optimizer& o) { *out = state_at(o, index).name.c_str(); });
}

tiny_status tiny_optimizer_state(tiny_optimizer* optimizer, size_t index, tiny_tensor** out) {
  return produce(__func__, optimizer, out,
                 [=](tiny::Optimizer& o) { return state_at(o, index).value; });
}

}  // extern "C"
