// Calls over tensors of several devices at once, and of several processes.
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "api/boundary.h"
#include "api/processes_handle.h"
#include "api/together.h"
#include "tensor/collective.h"
#include "tensor/elementwise.h"

namespace tiny {

namespace {

using Combine = decltype(Combining::combine);
constexpr Named<Combine> kCombining[] = {
    {TINY_SUM, "TINY_SUM", add},
    {TINY_PROD, "TINY_PROD", mul},
    {TINY_REDUCE_MAX, "TINY_REDUCE_MAX", maximum},
    {TINY_REDUCE_MIN, "TINY_REDUCE_MIN", minimum},
    {TINY_MEAN, "TINY_MEAN", add},
};

// A call that makes one tensor of each, where that one lies.
tiny_status produce_together(const char* call, tiny_tensor* const* tensors, size_t tensor_count,
                             const tiny_processes* processes, tiny_tensor** outs, size_t count,
                             const auto& shape_of_result, const auto& together) noexcept {
  if (!outs) return fail(call, Status::InvalidArgument, "outs is NULL");
  for (size_t i = 0; i < count; ++i) outs[i] = nullptr;
  return guarded(call, [&] {
    require(tensors != nullptr && tensor_count > 0, Status::InvalidArgument,
            "tensors is NULL or empty");
    require(count == tensor_count, Status::InvalidArgument, "room for ", count, " results of ",
            tensor_count, " tensors");
    for (size_t i = 0; i < count; ++i) required(tensors[i], cat("tensors[", i, "]").c_str());
    const Ref<Processes> ring = processes ? required(processes, "processes").core : nullptr;
    std::vector<tiny_context*> contexts;
    for (size_t i = 0; i < count; ++i) contexts.push_back(tensors[i]->context);
    const std::unique_ptr<Entered> entered = enter_all(contexts);
    const std::vector<Tensor*> values = values_in(tensors, count);
    std::vector<Tensor> results;
    if (is_of_program({tensors, count})) {
      const Ints shape = shape_of_result(values, ring.get());
      std::vector<ResultOf> kinds;
      for (size_t i = 0; i < count; ++i) kinds.push_back({contexts[i], tensors[i]->dtype, shape});
      results = exchanged({tensors, count}, std::move(kinds),
                          [together, ring](auto given) { return together(given, ring.get()); });
    } else {
      results = together(values, ring.get());
    }
    std::vector<std::unique_ptr<tiny_tensor>> made;
    for (size_t i = 0; i < count; ++i) {
      made.push_back(std::make_unique<tiny_tensor>(*tensors[i]->context));
      made.back()->hold(std::move(results[i]));
    }
    for (size_t i = 0; i < count; ++i) {
      made[i]->context->retain();
      outs[i] = made[i].release();
    }
  });
}

}  // namespace

}  // namespace tiny

extern "C" {

tiny_status tiny_allreduce(tiny_tensor* const* tensors, size_t tensor_count, tiny_reduce_op op,
                           const tiny_processes* processes, tiny_tensor** outs, size_t count) {
  using Rows = std::span<const tiny::Named<tiny::Combine>>;
  const auto how = [op] {
    return tiny::Combining{tiny::find(Rows(tiny::kCombining), op, "op"), op == TINY_MEAN, op};
  };
  return tiny::produce_together(
      __func__, tensors, tensor_count, processes, outs, count,
      [how](auto values, auto*) { return tiny::reduced_shape(values, how()); },
      [how](auto values, auto* ring) { return tiny::allreduce(values, how(), ring); });
}

tiny_status tiny_allgather(tiny_tensor* const* tensors, size_t tensor_count, int64_t axis,
                           const tiny_processes* processes, tiny_tensor** outs, size_t count) {
  return tiny::produce_together(
      __func__, tensors, tensor_count, processes, outs, count,
      [axis](auto values, auto* ring) { return tiny::gathered_shape(values, axis, ring); },
      [axis](auto values, auto* ring) { return tiny::allgather(values, axis, ring); });
}

tiny_status tiny_processes_open(const char* library, tiny_processes** out) {
  if (!out) return tiny::fail(__func__, tiny::Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::guarded(
      __func__, [=] { *out = new tiny_processes(tiny::open_processes(library ? library : "")); });
}

void tiny_processes_retain(tiny_processes* processes) {
  tiny::retain_owned(processes);
}

void tiny_processes_release(tiny_processes* processes) {
  if (tiny::is_last_release(processes)) delete processes;
}

tiny_status tiny_processes_rank(const tiny_processes* processes, int64_t* out) {
  return tiny::answer(__func__, out, processes, "processes",
                      [](const tiny_processes& p) { return p.core->rank(); });
}

tiny_status tiny_processes_count(const tiny_processes* processes, int64_t* out) {
  return tiny::answer(__func__, out, processes, "processes",
                      [](const tiny_processes& p) { return p.core->count(); });
}

}  // extern "C"
