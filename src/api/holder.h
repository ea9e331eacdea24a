// Calls on handles that have one object of the library, `core`, which holds nodes.
#pragma once

#include <type_traits>
#include <utility>

#include "api/boundary.h"

namespace tiny {

// A call that works with the object, in its context.
template <class Handle>
tiny_status with(const char* call, const Handle* handle, const char* name,
                 std::type_identity_t<FunctionRef<void(Handle&)>> body) noexcept {
  return guarded(call, [&] {
    auto& h = const_cast<Handle&>(required(handle, name));
    const Building building(*h.context);
    body(h);
  });
}

// One that makes a tensor.
template <class Handle>
tiny_status produce_with(const char* call, const Handle* handle, const char* name,
                         tiny_tensor** out,
                         std::type_identity_t<FunctionRef<Tensor(Handle&)>> body) noexcept {
  if (!out) return fail(call, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return with(call, handle, name,
              [&](Handle& h) { *out = make_handle(*h.context, [&] { return body(h); }); });
}

// One that answers with a number or a text.
template <class Handle, class T>
tiny_status answer_with(const char* call, const Handle* handle, const char* name, T* out,
                        std::type_identity_t<FunctionRef<T(Handle&)>> body) noexcept {
  if (!out) return fail(call, Status::InvalidArgument, "out is NULL");
  *out = T();
  return with(call, handle, name, [&](Handle& h) { *out = body(h); });
}

// Another handle in this context, of `core`.
template <class Made, class Core>
Made* new_holder(tiny_context& context, Core core) {
  auto* const made = new Made(context, std::move(core));
  context.retain();
  return made;
}

// A call that makes one.
template <class Made, class Body>
tiny_status make_with(const char* call, tiny_context* context, Made** out, Body body) noexcept {
  if (!out) return fail(call, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return act(call, context, [&] { *out = new_holder<Made>(*context, body()); });
}

template <class Handle>
void release_holder(Handle* handle) noexcept {
  if (is_last_release(handle)) release_nodes(handle);
}

}  // namespace tiny
