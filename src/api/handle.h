// What the handles of tiny.h are.
//
// A context lives while it has owners, and while a handle made from it does.  UOps have
// plain counts, so a tensor dies only while its context's flag is held, or with the context: a
// release by a thread that is not the context's last builder, or while the flag is held, puts the
// tensor on a lock-free list that the next building call empties.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "api/counted.h"
#include "base/flags.h"
#include "engine/context.h"
#include "tensor/marks.h"
#include "tensor/tensor.h"
#include "tiny.h"

struct tiny_options : tiny::CountedAs<tiny::HandleKind::Options> {
  explicit tiny_options(tiny::Flags f) : flags(std::move(f)) {}

  tiny::Flags flags;
};

struct tiny_context : tiny::CountedAs<tiny::HandleKind::Context> {
  explicit tiny_context(const tiny::Flags& flags) : core(tiny::make_ref<tiny::Context>(flags)) {}
  ~tiny_context();

  // For a handle that is made from it, and once for all owners together.
  void retain() { references.fetch_add(1, std::memory_order_relaxed); }
  void release();
  // One owner more, also where there was none left.
  void own() {
    if (add_owner()) retain();
  }
  // The flag of a building call; false if it is taken.
  bool try_enter();
  void leave() { busy.store(false, std::memory_order_release); }
  // Destroys what was released from elsewhere; the caller holds the flag.
  void drain();

  std::atomic<int64_t> references{1};
  std::atomic<bool> busy{false};
  std::atomic<const void*> builder{nullptr};    // a mark of the thread that last built
  std::atomic<tiny_tensor*> released{nullptr};  // handles that await drain()
  tiny::Ref<tiny::Context> core;
  tiny::DimensionMarks marks{tiny::DimensionMarks::next_context()};  // dies before its graph
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

struct tiny_tensor : tiny::CountedAs<tiny::HandleKind::Tensor> {
  explicit tiny_tensor(tiny_context& c) : context(&c) {}

  tiny_context* context;        // counted while the handle is alive
  mutable tiny::Tensor value;   // reading replaces the node by one that has memory
  std::string name;             // tiny_tensor_set_name
  tiny_tensor* next = nullptr;  // on the context's list
};

namespace tiny {

// Drops an owner; does nothing to what is no live tensor.
void release_handle(tiny_tensor* tensor) noexcept;

}  // namespace tiny
