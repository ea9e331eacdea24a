#include "allocations.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TINY_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TINY_SANITIZED 1
#endif
#endif

#if defined(TINY_SANITIZED) || !defined(__GLIBC__)

std::optional<uint64_t> tiny::cli::allocations() {
  return std::nullopt;
}

#else

namespace {

// Most processes never ask, and counting takes the processor a while for each.
std::atomic<bool> is_counting{false};
std::atomic<uint64_t> allocation_count{0};

void note_allocation() {
  if (is_counting.load(std::memory_order_relaxed))
    allocation_count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

std::optional<uint64_t> tiny::cli::allocations() {
  is_counting.store(true);
  return allocation_count.load();
}

// An executable's malloc takes the place of the C library's everywhere in the process; the C
// library keeps its own under these names.
extern "C" {

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

__attribute__((visibility("default"))) void* malloc(size_t size) noexcept {
  note_allocation();
  return __libc_malloc(size);
}

__attribute__((visibility("default"))) void* calloc(size_t count, size_t size) noexcept {
  note_allocation();
  return __libc_calloc(count, size);
}

__attribute__((visibility("default"))) void* realloc(void* memory, size_t size) noexcept {
  note_allocation();
  return __libc_realloc(memory, size);
}

__attribute__((visibility("default"))) void* memalign(size_t alignment, size_t size) noexcept {
  note_allocation();
  return __libc_memalign(alignment, size);
}

__attribute__((visibility("default"))) void* aligned_alloc(size_t alignment, size_t size) noexcept {
  return memalign(alignment, size);
}

__attribute__((visibility("default"))) int posix_memalign(void** out, size_t alignment,
                                                          size_t size) noexcept {
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return EINVAL;
  void* memory = memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}

}  // extern "C"

#endif
