// Calls over tensors of several devices at once, and of several processes.
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "api/boundary.h"
#include "api/processes_handle.h"
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

// Has contexts for one call: what was entered last is left first, also where one cannot be had.
struct Entered {
  Entered(std::unique_ptr<Entered> b, tiny_context& context)
      : before(std::move(b)), building(context) {}

  std::unique_ptr<Entered> before;
  Building building;
};

// The contexts of all tensors, each once.  In the order of their addresses, so that two such calls
// do not wait for each other.
std::unique_ptr<Entered> enter_all(tiny_tensor* const* tensors, size_t count) {
  std::unique_ptr<Entered> entered;
  tiny_context* next = nullptr;
  do {
    tiny_context* const last = std::exchange(next, nullptr);
    for (size_t i = 0; i < count; ++i)
      if (tiny_context* const one = tensors[i]->context; one > last && (!next || one < next))
        next = one;
    if (next) entered = std::make_unique<Entered>(std::move(entered), *next);
  } while (next);
  return entered;
}

using Together = std::function<std::vector<Tensor>(std::span<Tensor* const>, const Processes*)>;

// A call that makes one tensor of each, where that one lies.
tiny_status produce_together(const char* call, tiny_tensor* const* tensors, size_t tensor_count,
                             const tiny_processes* processes, tiny_tensor** outs, size_t count,
                             const Together& together) noexcept {
  if (!outs) return fail(call, Status::InvalidArgument, "outs is NULL");
  for (size_t i = 0; i < count; ++i) outs[i] = nullptr;
  return guarded(call, [&] {
    require(tensors != nullptr && tensor_count > 0, Status::InvalidArgument,
            "tensors is NULL or empty");
    require(count == tensor_count, Status::InvalidArgument, "room for ", count, " results of ",
            tensor_count, " tensors");
    for (size_t i = 0; i < count; ++i) required(tensors[i], cat("tensors[", i, "]").c_str());
    const Processes* const ring = processes ? required(processes, "processes").core.get() : nullptr;
    const std::unique_ptr<Entered> entered = enter_all(tensors, count);
    const std::vector<Tensor*> values = values_in(tensors, count);
    std::vector<Tensor> results = together(values, ring);
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
  return tiny::produce_together(
      __func__, tensors, tensor_count, processes, outs, count, [op](auto values, auto* ring) {
        using Rows = std::span<const tiny::Named<tiny::Combine>>;
        return tiny::allreduce(
            values, {tiny::find(Rows(tiny::kCombining), op, "op"), op == TINY_MEAN, op}, ring);
      });
}

tiny_status tiny_allgather(tiny_tensor* const* tensors, size_t tensor_count, int64_t axis,
                           const tiny_processes* processes, tiny_tensor** outs, size_t count) {
  return tiny::produce_together(
      __func__, tensors, tensor_count, processes, outs, count,
      [axis](auto values, auto* ring) { return tiny::allgather(values, axis, ring); });
}

tiny_status tiny_processes_open(const char* library, tiny_processes** out) {
  if (!out) return tiny::fail(__func__, tiny::Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::guarded(
      __func__, [&] { *out = new tiny_processes(tiny::open_processes(library ? library : "")); });
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
