// One context on several devices: a tiny_context for each, with a lock, a graph and caches of its
// own, which know of each other.  Who opened one holds it.
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/boundary.h"
#include "api/together.h"
#include "engine/backend.h"
#include "engine/storage.h"
#include "shape/shape.h"
#include "tensor/create.h"
#include "tensor/value.h"

namespace tiny {

namespace {

struct Member;

struct DeviceContexts : RefCounted {
  std::mutex lock;  // of both, held for no more than a look
  std::vector<Member*> members;
};

// What a context has to do with the others; it goes with the context.
struct Member : RefCounted {
  Member(Ref<DeviceContexts> a, tiny_context& c, std::string d)
      : among(std::move(a)), context(&c), device(std::move(d)) {}
  ~Member() override {
    {
      const std::lock_guard guard(among->lock);
      std::erase(among->members, this);
    }
    for (tiny_context* one : opened) one->release();
  }

  const Ref<DeviceContexts> among;
  tiny_context* const context;
  const std::string device;
  std::vector<tiny_context*> opened;
};

// The context with an owner more; null if its last reference has gone.
tiny_context* owned(tiny_context& context) {
  int64_t count = context.references.load(std::memory_order_relaxed);
  do {
    if (count == 0) return nullptr;
  } while (!context.references.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel));
  context.own();
  context.release();
  return &context;
}

// The lock is held.
tiny_context* find(const DeviceContexts& contexts, const std::string& device) {
  for (const Member* member : contexts.members)
    if (member->device == device)
      if (tiny_context* found = owned(*member->context)) return found;
  return nullptr;
}

// Who has the context entered.
Member& member_of(tiny_context& context) {
  if (!context.membership) {
    const auto contexts = make_ref<DeviceContexts>();
    const auto first =
        make_ref<Member>(contexts, context, canonical_device(context.core->flags().device));
    contexts->members.push_back(first.get());
    context.membership = first;
  }
  return static_cast<Member&>(*context.membership);
}

tiny_context* on_device(tiny_context& context, const std::string& device) {
  Member& opener = member_of(context);
  DeviceContexts& contexts = *opener.among;
  {
    const std::lock_guard guard(contexts.lock);
    if (tiny_context* found = find(contexts, device)) return found;
  }
  Flags flags = context.core->flags();
  flags.device = device;
  auto made = std::make_unique<tiny_context>(flags);
  made->core->custom_ops().copy(context.core->custom_ops());
  const Ref<CancelToken> token = context.lock.token();
  made->core->stop().set_token(token);
  made->lock.set_token(token);
  const auto member = make_ref<Member>(opener.among, *made, device);
  const std::lock_guard guard(contexts.lock);
  // Another thread may have opened it from another device meanwhile.
  if (tiny_context* found = find(contexts, device)) return found;
  contexts.members.push_back(member.get());
  opener.opened.push_back(made.get());
  made->retain();
  made->membership = member;
  return made.release();
}

// A scalar is the same number in every context.
Tensor scalar_in(const Ref<Context>& context, const tiny_tensor& scalar) {
  if (scalar.dtype.is_float()) return Tensor::weak_float(context, scalar.value.weak_value());
  return Tensor::weak_int(context, static_cast<int64_t>(scalar.number_bits));
}

Tensor copied_to(tiny_context& to, Tensor& tensor) {
  const Ref<Storage> copy = copy_to(to.core->device(), tensor);
  return of_storage(to.core, tensor.dtype(), const_dims(tensor.shape()), copy);
}

// What stands for the copy of a tensor that has its value in runs of a program alone; null for any
// other.
tiny_tensor* copied_in_runs(const tiny_tensor& from, tiny_context& to) {
  const std::unique_ptr<Entered> entered = enter_all({from.context, &to});
  auto* const operand = const_cast<tiny_tensor*>(&from);
  if (!is_of_program({&operand, 1})) return nullptr;
  const Ints shape(from.dims, from.dims + from.rank);
  std::vector<Tensor> made =
      exchanged({&operand, 1}, {{&to, from.dtype, shape}},
                [&to](auto given) { return std::vector{copied_to(to, *given[0])}; });
  return make_handle(to, [&] { return std::move(made[0]); });
}

}  // namespace

}  // namespace tiny

extern "C" {

tiny_status tiny_context_on_device(tiny_context* context, const char* device, tiny_context** out) {
  if (!out) return tiny::fail(__func__, tiny::Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::act(__func__, context, [=] {
    *out = tiny::on_device(*context, tiny::canonical_device(&tiny::required(device, "device")));
  });
}

tiny_status tiny_tensor_to(const tiny_tensor* tensor, tiny_context* context, tiny_tensor** out) {
  if (!out) return tiny::fail(__func__, tiny::Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::guarded(__func__, [=] {
    const tiny_tensor& from = tiny::required(tensor, "tensor");
    tiny_context& to = tiny::required(context, "context");
    tiny::Ref<tiny::Storage> copy;
    if (from.context != &to && !from.is_number) {
      if (tiny_tensor* made = tiny::copied_in_runs(from, to)) {
        *out = made;
        return;
      }
      const tiny::Building building(*from.context);
      copy = tiny::copy_to(to.core->device(), from.value);
    }
    const tiny::Building building(to);
    *out = tiny::make_handle(to, [&] {
      if (from.context == &to) return from.value;
      if (!copy) return tiny::scalar_in(to.core, from);
      return tiny::of_storage(to.core, from.dtype, {from.dims, from.dims + from.rank}, copy);
    });
  });
}

}  // extern "C"
