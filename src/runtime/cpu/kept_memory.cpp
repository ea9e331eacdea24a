#include "runtime/cpu/kept_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"

namespace tiny {

namespace {

constexpr int64_t kHugePage = 2 << 20;

// Null if there is none.
KeptMemory::Mapping map_pages(int64_t bytes, int64_t stagger, size_t mapped) {
  void* base = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return {};
  const auto start = reinterpret_cast<uintptr_t>(base);
  const uintptr_t aligned = (start + kHugePage - 1) / kHugePage * kHugePage;
  // A last page of which little is wanted would take its 2 MB all the same.
  const uintptr_t end = aligned + static_cast<uintptr_t>(bytes + stagger);
  const uintptr_t huge_end = (end + kHugePage / 2) / kHugePage * kHugePage;
  if (huge_end > aligned)
    madvise(reinterpret_cast<void*>(aligned), huge_end - aligned, MADV_HUGEPAGE);
  if (end > huge_end) madvise(reinterpret_cast<void*>(huge_end), end - huge_end, MADV_NOHUGEPAGE);
  return {static_cast<std::byte*>(base), mapped, reinterpret_cast<std::byte*>(aligned) + stagger};
}

}  // namespace

KeptMemory::Mapping KeptMemory::take(int64_t bytes, int64_t stagger) {
  const auto wanted = static_cast<size_t>(bytes);
  const auto mapped = static_cast<size_t>(
      round_up(checked_add(bytes, stagger + kHugePage, "a buffer's size"), kHugePage));
  const std::lock_guard guard(lock_);
  // The smallest that has the room, and not much more.
  size_t best = count_;
  for (size_t i = 0; i < count_; ++i) {
    const Mapping& m = mappings_[i];
    const bool fits = m.room() >= wanted && m.bytes <= mapped + mapped / 8;
    if (fits && (best == count_ || m.bytes < mappings_[best].bytes)) best = i;
  }
  if (best < count_) {
    const Mapping found = mappings_[best];
    std::move(mappings_.begin() + static_cast<std::ptrdiff_t>(best) + 1,
              mappings_.begin() + static_cast<std::ptrdiff_t>(count_),
              mappings_.begin() + static_cast<std::ptrdiff_t>(best));
    --count_;
    kept_ -= found.bytes;
    used_ += found.bytes;
    return found;
  }
  drop_to(std::max(used_most_, used_ + mapped) - used_ - mapped);
  Mapping made = map_pages(bytes, stagger, mapped);
  if (!made.base) {
    drop_to(0);
    made = map_pages(bytes, stagger, mapped);
  }
  require(made.base != nullptr, Status::OutOfMemory, "no memory for a buffer of ", bytes, " bytes");
  used_ += mapped;
  used_most_ = std::max(used_most_, used_);
  return made;
}

void KeptMemory::give(const Mapping& mapping) {
  const std::lock_guard guard(lock_);
  used_ -= mapping.bytes;
  if (mapping.bytes > limit_) {
    munmap(mapping.base, mapping.bytes);
    return;
  }
  drop_to(limit_ - mapping.bytes);
  if (count_ == kMost) drop(0);
  mappings_[count_++] = mapping;
  kept_ += mapping.bytes;
}

void KeptMemory::drop_all() {
  const std::lock_guard guard(lock_);
  drop_to(0);
}

int64_t KeptMemory::kept() {
  const std::lock_guard guard(lock_);
  return static_cast<int64_t>(kept_);
}

void KeptMemory::drop(size_t index) {
  const Mapping gone = mappings_[index];
  std::move(mappings_.begin() + static_cast<std::ptrdiff_t>(index) + 1,
            mappings_.begin() + static_cast<std::ptrdiff_t>(count_),
            mappings_.begin() + static_cast<std::ptrdiff_t>(index));
  --count_;
  kept_ -= gone.bytes;
  munmap(gone.base, gone.bytes);
}

void KeptMemory::drop_to(size_t kept_most) {
  while (kept_ > kept_most) drop(0);
}

}  // namespace tiny
