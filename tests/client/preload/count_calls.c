/* Preloaded into a client program: counts the calls of the allocator, of all threads. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

atomic_long counted_calls; /* the program reads it through dlsym */

void* malloc(size_t size) {
  atomic_fetch_add(&counted_calls, 1);
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  atomic_fetch_add(&counted_calls, 1);
  return __libc_calloc(count, size);
}

void* realloc(void* old, size_t size) {
  atomic_fetch_add(&counted_calls, 1);
  return __libc_realloc(old, size);
}

void* memalign(size_t alignment, size_t size) {
  atomic_fetch_add(&counted_calls, 1);
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  return memalign(alignment, size);
}

int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}
