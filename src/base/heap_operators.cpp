// The library's own operator new and delete, which nobody outside of it sees: the heap's memory, by
// way of what a piece of work keeps (base/kept_blocks.h).  Not where a sanitizer watches the heap.
#include <cstdlib>
#include <new>

#include "base/kept_blocks.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TINY_WATCHED_HEAP
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define TINY_WATCHED_HEAP
#endif
#endif

#ifndef TINY_WATCHED_HEAP
void* operator new(size_t bytes) {
  if (void* const block = tiny::KeptBlocks::take(bytes)) return block;
  throw std::bad_alloc();
}

void operator delete(void* block) noexcept {
  std::free(block);
}

void operator delete(void* block, size_t bytes) noexcept {
  tiny::KeptBlocks::give(block, bytes);
}
#endif
