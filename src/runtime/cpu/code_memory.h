// Executable memory that is never writable and executable at once.  A batch of functions is written
// through one mapping, which goes away before the other, executable one comes; or, without memfd,
// in place before the pages change from writable to executable.  Neither ever changes back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ref.h"

namespace tiny {

class CodeMemory : public RefCounted {
 public:
  // Copies each function, aligned to 64 bytes.  Error{Device} if the system refuses.
  static Ref<CodeMemory> make(std::span<const std::span<const std::byte>> functions);

  // Where function `i` lies.
  std::byte* function(size_t i) const { return base_ + offsets_[i]; }

 protected:
  ~CodeMemory() override;

 private:
  CodeMemory() = default;
  bool map_shared(std::span<const std::span<const std::byte>> functions);
  bool map_private(std::span<const std::span<const std::byte>> functions);
  void copy(std::byte* to, std::span<const std::span<const std::byte>> functions) const;

  std::byte* base_ = nullptr;
  size_t size_ = 0;
  std::vector<size_t> offsets_;
};

}  // namespace tiny
