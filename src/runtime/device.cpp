#include "runtime/device.h"

#include "base/error.h"

namespace tiny {

void MemoryUse::take(int64_t bytes) {
  const int64_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
  if (limit_ <= 0 || bytes <= limit_ - before) return;
  give_back(bytes);
  throw Error(Status::Limit, cat("a buffer of ", bytes, " bytes beside ", before,
                                 " in use: more than the limit memory_limit = ", limit_,
                                 "; a higher one is set with the option \"memory_limit\""));
}

Ref<Buffer> Device::allocate(int64_t bytes) {
  require(bytes >= 0, Status::InvalidArgument, "a buffer of ", bytes, " bytes");
  memory_->take(bytes);
  Ref<Buffer> buffer;
  try {
    buffer = make_buffer(bytes);
  } catch (...) {
    memory_->give_back(bytes);
    throw;
  }
  buffer->count_in(memory_);
  counts_.allocated(bytes);
  return buffer;
}

}  // namespace tiny
