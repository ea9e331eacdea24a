// What every handle of tiny.h begins with: how many owners it has, and a tag that says what it is.
//
// A handle of another kind, or one that was released, is told by them as long as its memory has
// not been used again.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>

namespace tiny {

enum class HandleKind : uint8_t {
  Options,
  Context,
  Tensor,
  Report,
  Cancel,
  Archive,
  Model,
  Program,
  Run,
  Variable,
  Window,
  CustomOp,
  Optimizer,
  Loader,
  Generator,
  Module,
  LossScaler,
  Plateau,
  Node,
  Value,
  Processes
};

class Counted;
// Error{InvalidArgument} that says what `name` is instead of a live handle of this kind.
[[noreturn]] void throw_wrong(const Counted* handle, HandleKind wanted, const char* name);

class Counted {
 public:
  explicit Counted(HandleKind kind) : tag_(kLive + static_cast<uint64_t>(kind)) {}
  // Volatile: it is the last that happens to the object, and a compiler might leave it out.
  ~Counted() {
    volatile std::atomic<uint64_t>& tag = tag_;
    tag.store(tag - kLive + kReleased, std::memory_order_relaxed);
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  // True if it had none.
  bool add_owner() const { return owners_.fetch_add(1, std::memory_order_relaxed) == 0; }
  // True for the last owner.
  bool drop_owner() const { return owners_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

  bool is_live(HandleKind kind) const {
    return tag_.load(std::memory_order_relaxed) == kLive + static_cast<uint64_t>(kind) &&
           owners_.load(std::memory_order_relaxed) > 0;
  }

 private:
  friend void throw_wrong(const Counted* handle, HandleKind wanted, const char* name);
  // Numbers that nothing else is likely to hold, with room for the kinds behind them.
  static constexpr uint64_t kLive = 0x7fe3'a1c9'5d20'6b00;
  static constexpr uint64_t kReleased = 0x7fe3'a1c9'5d20'6c00;

  mutable std::atomic<int64_t> owners_{1};
  // Memory that is free has the allocator's lists in its first two words: the tag is behind them.
  [[maybe_unused]] uint64_t unused_ = 0;
  std::atomic<uint64_t> tag_;
};

inline bool is_aligned(const Counted* handle) {
  return reinterpret_cast<uintptr_t>(handle) % alignof(Counted) == 0;
}

template <HandleKind kind>
struct CountedAs : Counted {
  CountedAs() : Counted(kind) {}
  static constexpr HandleKind kKind = kind;
};

// A type of handles.
template <class T>
concept IsHandle = std::derived_from<T, Counted>;

// False for NULL and for what is no handle of this type any more, or never was.
template <class T>
bool is_live(const T* handle) {
  return handle != nullptr && is_aligned(handle) && handle->is_live(T::kKind);
}

// What a caller does with a handle that may be a wrong one: then nothing happens.
template <class T>
void retain_owned(const T* handle) {
  if (is_live(handle)) handle->add_owner();
}
template <class T>
bool is_last_release(const T* handle) {
  return is_live(handle) && handle->drop_owner();
}

}  // namespace tiny
