// One CUDA device in use: its primary context, which other libraries of the process share, the
// memory that it has given, and what went wrong.  Outlives the device: its buffers may.
//
//   Current   the context is current for the length of a Scope, and what was current before is
//   again
//             afterwards.
//   Lost      after an error that the driver gives again to each later call, and in the child of a
//             fork, every Scope is Error{DeviceLost} with the driver's words; destructors then ask
//             the driver for nothing.
//   Threads   all functions may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "runtime/cuda/driver.h"

namespace tiny::cuda {

class Gpu : public RefCounted {
 public:
  // The device of that number; Error{Device} if there is none.  At most `memory_kept` bytes are
  // kept of what was given back.
  Gpu(Ref<Driver> driver, int64_t number, int64_t memory_kept);

  class Scope {
   public:
    explicit Scope(Gpu& gpu);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Gpu& gpu_;
  };

  const Functions& functions() const { return driver_->functions(); }
  const Driver& driver() const { return *driver_; }
  // By which the driver, and libraries over it, know the device.
  int number() const { return number_; }
  int attribute(Attribute which) const;
  // Throws what the result means; a loss is remembered.
  void check(Result result, const char* call);
  bool is_lost() const;
  // For destructors: does `work` with the context current, unless the device is lost.
  template <class Work>
  void clean_up(const Work& work) {
    if (is_lost()) return;
    CUctx_st* before = nullptr;
    if (functions().cuCtxPushCurrent_v2(context_) != kSuccess) return;
    work(functions());
    functions().cuCtxPopCurrent_v2(&before);
  }

  // Error{DeviceLost} where it is that.
  void check_usable();
  // Copies from another device's memory without the host between them, on a stream of this one's;
  // false if the two do not reach each other.
  bool copy_peer(Address to, Gpu& source, Address from, int64_t bytes, CUstream_st* stream);

  // Memory of at least so many bytes, aligned to 256: what was given back serves again.  All work
  // with it has been done.
  Address take(int64_t bytes);
  void give(Address address);
  // A little pinned memory of the host.
  static constexpr size_t kPinnedBytes = 16;
  void* take_pinned();
  void give_pinned(void* memory);
  int64_t kept_bytes();
  void drop_kept();

 private:
  ~Gpu() override;
  void lose(const std::string& words);
  Result allocate(Address* address, size_t bytes);

  Ref<Driver> driver_;
  int number_ = 0;
  CUctx_st* context_ = nullptr;
  const int64_t kept_most_;
  const int process_;  // in a fork's child the driver does not work
  std::atomic<bool> is_lost_{false};
  std::mutex lock_;
  std::string why_;  // it is lost
  std::vector<void*> pinned_pages_, pinned_free_;
  std::map<Address, int64_t> sizes_;      // of what is in use
  std::multimap<int64_t, Address> kept_;  // by size
  int64_t kept_bytes_ = 0, used_ = 0, used_most_ = 0;
};

}  // namespace tiny::cuda
