// What the handles of tiny.h are.
//
// A context lives while it has owners, and while a handle made from it does.  UOps have
// plain counts, so a tensor dies only while its context's lock is held, or with the context: a
// release puts the tensor on a list, which who releases empties if the lock is free, and otherwise
// who has the lock, when it is given back.
//
// What a tensor says of itself never changes and is in its handle; its elements, once computed, are
// read through its cell.  Neither needs the lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "api/counted.h"
#include "base/fair_lock.h"
#include "base/flags.h"
#include "engine/context.h"
#include "tensor/marks.h"
#include "tensor/tensor.h"
#include "tiny.h"

namespace tiny {

// A handle that holds nodes.  Nothing virtual: what counts its owners comes first in memory.
struct HoldsNodes {
  HoldsNodes(tiny_context& c, void (*e)(HoldsNodes*)) : context(&c), end(e) {}

  tiny_context* context;       // counted while the handle is alive
  void (*end)(HoldsNodes*);    // deletes it
  HoldsNodes* next = nullptr;  // on the context's list
};
template <class Handle>
void end_handle(HoldsNodes* handle) {
  delete static_cast<Handle*>(handle);
}
// Of the last owner.
void release_nodes(HoldsNodes* handle) noexcept;

}  // namespace tiny

struct tiny_options : tiny::CountedAs<tiny::HandleKind::Options> {
  explicit tiny_options(tiny::Flags f) : flags(std::move(f)) {}

  tiny::Flags flags;
};

struct tiny_context : tiny::CountedAs<tiny::HandleKind::Context> {
  explicit tiny_context(const tiny::Flags& flags);
  ~tiny_context();

  // For a handle that is made from it, and once for all owners together.
  void retain() { references.fetch_add(1, std::memory_order_relaxed); }
  void release();
  // One owner more, also where there was none left.
  void own() {
    if (add_owner()) retain();
  }
  // Waits for the context as its options say.  Error{Busy}, Error{Limit} or Error{Cancelled} if it
  // cannot be had, Error{DeviceLost} in a child forked while another thread had it.
  // The limit of time counts from `since` on; gives that back, or when waiting began.
  tiny::StopSignal::Since enter(tiny::StopSignal::Since since = {});
  // For the end of a call that gave the context away on its way: waits also where others must not,
  // for no longer than the limit of time.
  void enter_again(tiny::StopSignal::Since since);
  // False where it would wait.
  bool try_enter();
  void leave();
  // Destroys what was released, if nobody has the context.
  void drain_if_free();

  std::atomic<int64_t> references{1};
  std::atomic<tiny::HoldsNodes*> released{nullptr};  // handles that await their end
  tiny::Ref<tiny::Context> core;
  tiny::FairLock lock;                                               // of building calls
  tiny::DimensionMarks marks{tiny::DimensionMarks::next_context()};  // dies before its graph
  std::set<std::string> names;  // that tensors were given; they stay
  // Among those of its other devices, once one was asked for (api/device_contexts.cpp).
  tiny::Ref<tiny::RefCounted> membership;

 private:
  struct WaitLimit;
  void wait(const WaitLimit& limit, tiny::StopSignal::Clock::time_point since);
  void drain();

  const bool waits_;  // the option "busy"
};

// Holds no nodes: any thread may release it.
struct tiny_variable : tiny::CountedAs<tiny::HandleKind::Variable> {
  tiny_variable(tiny_context& c, std::string n, int64_t low, int64_t high, int64_t m)
      : context(&c), name(std::move(n)), min(low), max(high), mark(m) {
    c.retain();
  }

  tiny_context* context;
  std::string name;
  int64_t min;
  int64_t max;
  int64_t mark;  // the dimension, in the context's marks
};

struct tiny_cancel : tiny::CountedAs<tiny::HandleKind::Cancel> {
  tiny::Ref<tiny::CancelToken> token = tiny::make_ref<tiny::CancelToken>();
};

struct tiny_tensor final : tiny::CountedAs<tiny::HandleKind::Tensor>, tiny::HoldsNodes {
  explicit tiny_tensor(tiny_context& c) : HoldsNodes(c, tiny::end_handle<tiny_tensor>) {}
  // Once, before anybody has the handle; the caller has the context.  Throws nothing for a tensor
  // of known sizes.
  void hold(tiny::Tensor tensor);

  mutable tiny::Tensor value;  // reading replaces the node by one that has memory

  // For any thread, without the lock.
  tiny::DType dtype;
  bool is_number = false;  // a scalar that depends on nothing
  bool is_weak = false;    // it is told that the dtype gives way to others
  bool is_fixed = true;    // no size depends on a variable: strides, offset and numel are numbers
  uint64_t number_bits = 0;
  size_t rank = 0;
  int64_t numel = 0;
  int64_t offset = 0;
  int64_t dims[TINY_RANK_MAX];  // of `rank` axes; what depends on a variable is its mark
  int64_t strides[TINY_RANK_MAX];
  std::string shape;                  // as text, of one that is not fixed
  std::atomic<const char*> name{""};  // tiny_tensor_set_name; among its context's names
};

namespace tiny {

// Drops an owner; does nothing to what is no live tensor.
void release_handle(tiny_tensor* tensor) noexcept;

}  // namespace tiny
