// Memory that tensors share.  A Buffer node's argument, and what a realised node points to.
//
// A write in place makes another Storage of the same memory: an older one names a version that is
// gone, so that nothing built on it can be taken for the new one.  Runs of programs write from any
// thread; they count, so that the owner can see it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

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
        claimed_(older->claimed_),
        runs_seen_(first_->runs_.load(std::memory_order_acquire)) {}

  // The same memory from a later element on, or itself.
  static Ref<Storage> part(const Ref<Storage>& whole, int64_t bytes) {
    if (bytes == 0) return whole;
    Ref<Storage> out = make_ref<Storage>(whole);
    out->byte_offset_ += bytes;
    return out;
  }

  bool has_memory() const { return static_cast<bool>(memory_); }
  Buffer& memory() const { return *memory_; }
  int64_t byte_offset() const { return byte_offset_; }  // of element 0
  // Takes on the duty to call `deleter` (may be null) at the end.
  void set_deleter(void (*deleter)(void*), void* user) {
    deleter_ = deleter;
    user_ = user;
  }
  // How the memory can go until it is read again; called with the deleter's `user`.
  void set_unload(void (*unload)(void*)) { unload_ = unload; }
  bool can_unload() const { return unload_ != nullptr; }
  // For elements that are hardly read again, such as a weight that now lies elsewhere as kernels
  // want it.
  void unload() const {
    if (unload_) unload_(user_);
  }
  // A program has written to the memory.
  void count_run() { first().runs_.fetch_add(1, std::memory_order_acq_rel); }
  // Whether no program has since this Storage was made.
  bool is_current() const { return first().runs_.load(std::memory_order_acquire) == runs_seen_; }
  // A copy of memory of the caller's that is to be written and that the device does not see.
  void set_copy_of_callers() { copy_of_callers_ = true; }
  bool is_copy_of_callers() const { return copy_of_callers_; }
  // What was computed from these elements alone, by how: it is kept as long as they are.  Belongs
  // to the context's thread.
  Ref<Storage> derived(const std::string& recipe) const {
    const auto at = derived_.find(recipe);
    return at == derived_.end() ? Ref<Storage>() : at->second;
  }
  void keep_derived(std::string recipe, Ref<Storage> result) {
    derived_.insert_or_assign(std::move(recipe), std::move(result));
  }
  // What was computed of these elements knows them by it, without keeping them.
  class Identity : public RefCounted {};
  const Ref<Identity>& identity() {
    if (!identity_) identity_ = make_ref<Identity>();
    return identity_;
  }
  void set_made_of(std::vector<Ref<Identity>> memories) { made_of_ = std::move(memories); }
  bool is_made_of(const Storage& other) const {
    return other.identity_ && std::ranges::count(made_of_, other.identity_) > 0;
  }
  // Nothing writes to the memory for as long as it is there: programs may keep what is computed
  // from it.
  void set_constant() { constant_ = true; }
  bool is_constant() const { return constant_; }
  // True for the first who asks: writes to the memory are theirs alone.  Nobody writes to a
  // constant.
  bool claim() { return !constant_ && !std::exchange(claimed_, true); }

 protected:
  ~Storage() override {
    if (deleter_) deleter_(user_);
  }

 private:
  Storage& first() const { return first_ ? *first_ : const_cast<Storage&>(*this); }

  Ref<Buffer> memory_;
  int64_t byte_offset_ = 0;
  Ref<Storage> first_;  // of the same memory: it has the deleter
  std::map<std::string, Ref<Storage>> derived_;
  Ref<Identity> identity_;
  std::vector<Ref<Identity>> made_of_;
  bool claimed_ = false;
  bool constant_ = false;
  bool copy_of_callers_ = false;
  std::atomic<int64_t> runs_{0};  // of the first Storage: programs' writes
  int64_t runs_seen_ = 0;
  void (*deleter_)(void*) = nullptr;
  void (*unload_)(void*) = nullptr;
  void* user_ = nullptr;
};

// Whether the elements can be had: the device "null" keeps none of its own memory.
inline bool has_elements(const Storage& storage) {
  return storage.memory().host() || !storage.memory().device().sees_host();
}

// The first bytes of the elements, for the host.
inline void copy_to_host(const Storage& storage, std::byte* to, int64_t bytes) {
  Buffer& memory = storage.memory();
  const std::byte* host = memory.host();
  if (!host)
    memory.device().copy_out(nullptr, to, memory, storage.byte_offset(), bytes);
  else if (bytes > 0)
    std::memcpy(to, host + storage.byte_offset(), static_cast<size_t>(bytes));
}

}  // namespace tiny
