// Memory that tensors share.  A Buffer node's argument, and what a realised node points to.
//
// A write in place makes another Storage of the same memory: an older one names a version that is
// gone, so that nothing built on it can be taken for the new one.
#pragma once

#include <cstdint>
#include <utility>

#include "base/ref.h"
#include "runtime/device.h"

namespace tiny {

class Storage : public RefCounted {
 public:
  explicit Storage(Ref<Buffer> memory, int64_t byte_offset)
      : memory_(std::move(memory)), byte_offset_(byte_offset) {}
  // The caller's memory: `deleter` runs when nothing needs it any more.
  Storage(Ref<Buffer> memory, int64_t byte_offset, void (*deleter)(void*), void* user)
      : memory_(std::move(memory)), byte_offset_(byte_offset), deleter_(deleter), user_(user) {}
  // The memory of `older` after a write.
  explicit Storage(const Ref<Storage>& older)
      : memory_(older->memory_),
        byte_offset_(older->byte_offset_),
        first_(older->first_ ? older->first_ : older),
        claimed_(older->claimed_) {}

  bool has_memory() const { return static_cast<bool>(memory_); }
  Buffer& memory() const { return *memory_; }
  int64_t byte_offset() const { return byte_offset_; }  // of element 0
  // Takes on the duty to call `deleter` (may be null) at the end.
  void set_deleter(void (*deleter)(void*), void* user) {
    deleter_ = deleter;
    user_ = user;
  }
  // True for the first who asks: writes to the memory are theirs alone.
  bool claim() { return !std::exchange(claimed_, true); }

 protected:
  ~Storage() override {
    if (deleter_) deleter_(user_);
  }

 private:
  Ref<Buffer> memory_;
  int64_t byte_offset_ = 0;
  Ref<Storage> first_;  // of the same memory: it has the deleter
  bool claimed_ = false;
  void (*deleter_)(void*) = nullptr;
  void* user_ = nullptr;
};

}  // namespace tiny
