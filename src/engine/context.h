// A context: one graph, one device, its kernel cache and settings.  Nothing is global.
#pragma once

#include <memory>

#include "base/flags.h"
#include "base/ref.h"
#include "engine/backend.h"
#include "engine/kernel_cache.h"
#include "engine/observe.h"
#include "engine/storage.h"
#include "ir/uop.h"

namespace tiny {

class Context : public RefCounted {
 public:
  explicit Context(Flags flags);

  Graph& graph() { return *graph_; }
  Backend& backend() { return *backend_; }
  Device& device() { return backend_->device(); }
  KernelCache& kernels() { return *kernels_; }
  Observer& observer() { return *observer_; }
  const Flags& flags() const { return flags_; }

  // Memory of the device, within the limit of the settings.
  Ref<Storage> allocate(int64_t bytes);
  Ref<Storage> from_host(const void* data, int64_t bytes);

 private:
  ~Context() override = default;
  Flags flags_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Observer> observer_;
  std::unique_ptr<KernelCache> kernels_;  // holds UOps: dies before the graph
};

}  // namespace tiny
