// Where exceptions stop: every entry point of tiny.h that can fail is one call of a helper below.
// Only the helpers write `*out`, and only here is anything caught.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "api/handle.h"
#include "base/error.h"
#include "base/function_ref.h"
#include "base/inside.h"
#include "io/file.h"

namespace tiny {

// Keeps the error for tiny_last_error; `call` is the function's name.  Needs no memory.
tiny_status fail(const char* call, Status status, const char* message) noexcept;
// Ok, unless `body` throws.
tiny_status guarded(const char* call, FunctionRef<void()> body) noexcept;

// `*pointer`, or Error{InvalidArgument} that names it: it is NULL, or a handle that is no live one
// of this type.
template <class T>
T& required(T* pointer, const char* name) {
  require(pointer != nullptr, Status::InvalidArgument, name, " is NULL");
  if constexpr (IsHandle<T>)
    if (!is_live(pointer)) throw_wrong(pointer, T::kKind, name);
  return *pointer;
}

[[noreturn]] void throw_of_two(const tiny_context& got, const tiny_context& wanted,
                               const std::string& words);
// Error{InvalidArgument} of these words, and both devices where they are two, unless it is the
// context that is wanted.
template <class... Words>
void require_one_context(const tiny_context& got, const tiny_context& wanted,
                         const Words&... words) {
  if (&got != &wanted) throw_of_two(got, wanted, cat(words...));
}

// The values of handles that were checked.
std::vector<Tensor> values_of(tiny_tensor* const* tensors, size_t count);
std::vector<Tensor*> values_in(tiny_tensor* const* tensors, size_t count);  // in the handles

// The token of a handle that may be NULL: then null.
Ref<CancelToken> token_of(const tiny_cancel* cancel);

// The list of `count` numbers, which may be NULL if there are none.
std::vector<int64_t> numbers(const int64_t* values, size_t count, const char* name);
// Error{InvalidArgument} that lists the known ones unless `flags` has no other bits than `known`.
void check_flags(tiny_flags flags, tiny_flags known);
int64_t signed_bytes(size_t bytes);
// `value` as a dtype; Error{InvalidArgument} that lists the known ones.
DType dtype_argument(tiny_dtype value);

struct Operand {
  const tiny_tensor* tensor;
  const char* name;
  bool may_be_null = false;
};

// The handles that a call is about: a context, tensors that must be of one context, or a list.
class Operands {
 public:
  Operands(tiny_context* context) : context_(context) {}  // NOLINT: a call names its handles bare
  Operands(std::initializer_list<Operand> named) : kind_(Kind::Named), named_(named) {}
  Operands(const tiny_tensor* const* list, size_t count, const char* name)
      : kind_(Kind::List), list_(list), count_(count), name_(name) {}
  // Checks all of them; their context.
  tiny_context& context() const;

 private:
  enum class Kind : uint8_t { Context, Named, List };
  Kind kind_ = Kind::Context;
  tiny_context* context_ = nullptr;
  std::initializer_list<Operand> named_;
  const tiny_tensor* const* list_ = nullptr;
  size_t count_ = 0;
  const char* name_ = nullptr;
};

// Has the context for one building call, which waits for those of other threads.
class Building {
 public:
  explicit Building(tiny_context& context, StopSignal::Since since = {});
  // Of a context that was entered.
  Building(tiny_context& context, StopSignal::Since since, std::adopt_lock_t);
  ~Building() { context_.leave(); }
  Building(const Building&) = delete;
  Building& operator=(const Building&) = delete;

 private:
  tiny_context& context_;
  Inside inside_;
};

// Works for the context beside whoever has it: touches no graph.  Ends early as a building call
// does.
class Beside {
 public:
  explicit Beside(tiny_context& context, StopSignal::Since since = {});
  const StopSignal& stop() const { return stop_; }
  // How the context reads files.
  FileAccess file_access() const;
  // One that nobody else has, for a graph that is looked at and forgotten: with the context's
  // limits and operators.  It computes no more than shapes depend on.
  Ref<Context> own_context() const;

 private:
  tiny_context& context_;
  Inside inside_;  // the caller's functions must not call the context
  StopSignal::Since since_;
  StopSignal stop_;
};

// A handle of the value that `body` returns; its context is being built in.
tiny_tensor* make_handle(tiny_context& context, FunctionRef<Tensor()> body);

// Writes a handle for each value to `outs`, or throws and writes none.  Within a Building.
void give_handles(tiny_context& context, std::vector<Tensor> values, tiny_tensor** outs);

// A call that makes a tensor: `body` returns its value.
tiny_status produce(const char* call, tiny_tensor** out, const Operands& operands,
                    FunctionRef<Tensor()> body) noexcept;

// A call that makes several tensors, into `outs[0..count)`.
tiny_status produce_list(const char* call, tiny_tensor** outs, size_t count,
                         const Operands& operands,
                         FunctionRef<std::vector<Tensor>()> body) noexcept;

// A call that computes a number.
template <class T>
tiny_status give_number(const char* call, T* out, const char* missing,
                        std::type_identity_t<FunctionRef<T()>> body) noexcept {
  if (!out) return fail(call, Status::InvalidArgument, missing);
  *out = T();
  return guarded(call, [&] { *out = body(); });
}

// A call that answers a question about a handle from what the handle knows: any thread, no waiting.
template <class T, class Handle>
tiny_status answer(const char* call, T* out, const Handle* handle, const char* name,
                   std::type_identity_t<FunctionRef<T(const Handle&)>> body) noexcept {
  if (!out) return fail(call, Status::InvalidArgument, "out is NULL");
  *out = T();
  return guarded(call, [&] { *out = body(required(handle, name)); });
}

// A call that acts.
tiny_status act(const char* call, const Operands& operands, FunctionRef<void()> body) noexcept;

// A row of a family: the value of an enumeration of tiny.h and what it stands for.
template <class Function>
struct Named {
  int32_t value;
  const char* name;
  Function function;
};

template <class Function>
Function find(std::span<const Named<Function>> rows, int32_t value, const char* what) {
  for (const Named<Function>& row : rows)
    if (row.value == value) return row.function;
  std::vector<std::string> names;
  for (const Named<Function>& row : rows) names.push_back(cat(row.name, " (", row.value, ")"));
  throw_error(Status::InvalidArgument, "unknown ", what, " ", value,
              "; known: ", join(names, ", "));
}

}  // namespace tiny
