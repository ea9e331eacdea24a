// Memory that tensors share.  A Buffer node's argument, and what a realised node points to.
#pragma once

#include <cstdint>
#include <utility>

#include "base/ref.h"
#include "runtime/device.h"

namespace tiny {

class Storage : public RefCounted {
 public:
  explicit Storage(Ref<Buffer> memory) : memory_(std::move(memory)) {}
  // The caller's memory: `deleter` runs when nothing needs it any more.
  Storage(Ref<Buffer> memory, int64_t byte_offset, void (*deleter)(void*), void* user)
      : memory_(std::move(memory)), byte_offset_(byte_offset), deleter_(deleter), user_(user) {}

  bool has_memory() const { return static_cast<bool>(memory_); }
  Buffer& memory() const { return *memory_; }
  int64_t byte_offset() const { return byte_offset_; }  // of element 0
  // Takes on the duty to call `deleter` (may be null) at the end.
  void set_deleter(void (*deleter)(void*), void* user) {
    deleter_ = deleter;
    user_ = user;
  }

 protected:
  ~Storage() override {
    if (deleter_) deleter_(user_);
  }

 private:
  Ref<Buffer> memory_;
  int64_t byte_offset_ = 0;
  void (*deleter_)(void*) = nullptr;
  void* user_ = nullptr;
};

}  // namespace tiny
