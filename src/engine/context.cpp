#include "engine/context.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/pieces.h"
#include "engine/backend.h"
#include "engine/kernel_cache.h"
#include "engine/observe.h"
#include "engine/option_lists.h"
#include "engine/plan_cache.h"
#include "engine/storage.h"

namespace tiny {

namespace {

// What a setting names in files is read once, so that caches know it too.
Flags with_files_read(Flags flags) {
  flags.opts = option_text(flags.opts);
  return flags;
}

}  // namespace

Context::Context(Flags flags)
    : flags_(with_files_read(std::move(flags))),
      graph_(std::make_unique<Graph>()),
      backend_(make_backend(flags_)),
      observer_(std::make_unique<Observer>(flags_)),
      kernels_(std::make_unique<KernelCache>(*backend_, flags_, *observer_, stop_)),
      plans_(std::make_unique<PlanCache>(flags_.cache_plans)) {
  stop_.set_progress(flags_.progress);
  stop_.set_poll(flags_.poll);
  device().memory().set_limit(flags_.memory_limit);
  Allocator allocator = flags_.allocator;
  allocator.owner = flags_.owner;  // buffers may outlive this
  device().set_allocator(allocator);
  graph_->set_watch(observer_->watch());
  observer_->opened(*backend_);
}

Context::~Context() = default;

namespace {

// Settings that may change in a context that is in use.
struct Changeable {
  std::string_view key;
  int64_t Flags::* value;
  bool decides_code;  // what was compiled before is not what would be now
};
constexpr Changeable kChangeable[] = {{"debug", &Flags::debug, false},
                                      {"graph", &Flags::graph, false},
                                      {"graphuops", &Flags::graphuops, false},
                                      {"beam", &Flags::beam, true},
                                      {"noopt", &Flags::noopt, true},
                                      {"fusion", &Flags::fusion, true},
                                      {"default_int", &Flags::default_int, false},
                                      {"default_float", &Flags::default_float, false},
                                      {"weak_results", &Flags::weak_results, false}};

}  // namespace

void Context::set(std::string_view key, int64_t value) {
  const auto* found = std::ranges::find(kChangeable, key, &Changeable::key);
  std::vector<std::string> known;
  for (const Changeable& one : kChangeable) known.emplace_back(one.key);
  require(found != std::end(kChangeable), Status::InvalidArgument, "the setting ", key,
          " is fixed once a context is made; that can be changed: ", join(known, ", "));
  Flags checked = flags_;
  checked.set_int(key, value);
  if (flags_.*(found->value) == value) return;
  flags_.*(found->value) = value;
  observer_->set_level(flags_.debug);
  graph_->set_watch(observer_->watch());
  kernels_->disk().open(flags_);
  if (!found->decides_code) return;
  kernels_->forget();
  plans_->clear();
}

DType Context::default_int() const {
  return *dtype_numbered(static_cast<int32_t>(flags_.default_int));
}

DType Context::default_float() const {
  return *dtype_numbered(static_cast<int32_t>(flags_.default_float));
}

Device& Context::device() {
  return backend_->device();
}

Ref<Storage> Context::allocate(int64_t bytes) {
  return make_ref<Storage>(device().allocate(bytes), 0);
}

Ref<Storage> Context::from_host(const void* data, int64_t bytes) {
  Ref<Storage> storage = allocate(bytes);
  const Ref<Queue> queue = bytes > kPieceBytes ? device().make_queue() : nullptr;
  for_each_piece_of(bytes, 1, &stop_, [&](int64_t at, int64_t size) {
    device().copy_in(queue.get(), storage->memory(), at, static_cast<const std::byte*>(data) + at,
                     size);
  });
  device().wait(queue.get());
  return storage;
}

std::string of_two_devices(Context& got, Context& wanted) {
  const std::string& there = got.device().name();
  const std::string& here = wanted.device().name();
  if (there == here) return {};
  return cat(": it is on the device \"", there, "\" and not on \"", here,
             "\"; tiny_tensor_to copies it there");
}

}  // namespace tiny
