/* Lets libtiny.so run with glibc 2.31 though it is linked with a newer one.
**
** A linker takes the newest version of a symbol.  What glibc has given new versions since, and what
** is new in it, is defined here under the same name, for the library alone: references of the
** library and of the C++ run time that is linked into it end here, and go on to the version that
** 2.31 has already.  Versions are those of x86-64. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HERE __attribute__((visibility("hidden")))
/* `type name parameters`, found in glibc as the symbol `old` at `version`. */
#define OLD(type, name, parameters, old, version)      \
  __asm__(".symver old_" #name "," #old "@" #version); \
  type old_##name parameters

/* Threads and loading were in libraries of their own before 2.34. */
#define FORWARD(type, name, parameters, arguments, version) \
  OLD(type, name, parameters, name, version);               \
  HERE type name parameters {                               \
    return old_##name arguments;                            \
  }

FORWARD(int, pthread_create,
        (pthread_t * thread, const pthread_attr_t* attributes, void* (*start)(void*),
         void* argument),
        (thread, attributes, start, argument), GLIBC_2.2.5)
FORWARD(int, pthread_join, (pthread_t thread, void** result), (thread, result), GLIBC_2.2.5)
FORWARD(int, pthread_detach, (pthread_t thread), (thread), GLIBC_2.2.5)
FORWARD(int, pthread_once, (pthread_once_t * once, void (*initialise)(void)), (once, initialise),
        GLIBC_2.2.5)
FORWARD(int, pthread_key_create, (pthread_key_t * key, void (*destroy)(void*)), (key, destroy),
        GLIBC_2.2.5)
FORWARD(int, __pthread_key_create, (pthread_key_t * key, void (*destroy)(void*)), (key, destroy),
        GLIBC_2.2.5)
FORWARD(int, pthread_key_delete, (pthread_key_t key), (key), GLIBC_2.2.5)
FORWARD(void*, pthread_getspecific, (pthread_key_t key), (key), GLIBC_2.2.5)
FORWARD(int, pthread_setspecific, (pthread_key_t key, const void* value), (key, value), GLIBC_2.2.5)
FORWARD(int, pthread_cond_clockwait,
        (pthread_cond_t* restrict condition, pthread_mutex_t* restrict mutex, clockid_t clock,
         const struct timespec* restrict until),
        (condition, mutex, clock, until), GLIBC_2.30)
FORWARD(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock), GLIBC_2.2.5)
FORWARD(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock), GLIBC_2.2.5)
FORWARD(int, pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock), GLIBC_2.2.5)
FORWARD(int, pthread_setname_np, (pthread_t thread, const char* name), (thread, name), GLIBC_2.12)
FORWARD(int, pthread_sigmask, (int how, const sigset_t* set, sigset_t* old), (how, set, old),
        GLIBC_2.2.5)
FORWARD(void*, dlopen, (const char* path, int mode), (path, mode), GLIBC_2.2.5)
FORWARD(void*, dlsym, (void* restrict handle, const char* restrict name), (handle, name),
        GLIBC_2.2.5)
FORWARD(int, dlclose, (void* handle), (handle), GLIBC_2.2.5)
FORWARD(char*, dlerror, (void), (), GLIBC_2.2.5)

/* Before 2.33 programs called these, with the version of struct stat that they knew. */
enum { STAT_VERSION = 1 };
OLD(int, stat, (int version, const char* path, struct stat* out), __xstat, GLIBC_2.2.5);
OLD(int, lstat, (int version, const char* path, struct stat* out), __lxstat, GLIBC_2.2.5);
OLD(int, fstat, (int version, int file, struct stat* out), __fxstat, GLIBC_2.2.5);
OLD(int, fstatat, (int version, int folder, const char* path, struct stat* out, int flags),
    __fxstatat, GLIBC_2.4);
HERE int stat(const char* restrict path, struct stat* restrict out) {
  return old_stat(STAT_VERSION, path, out);
}
HERE int lstat(const char* restrict path, struct stat* restrict out) {
  return old_lstat(STAT_VERSION, path, out);
}
HERE int fstat(int file, struct stat* out) {
  return old_fstat(STAT_VERSION, file, out);
}
HERE int fstatat(int folder, const char* restrict path, struct stat* restrict out, int flags) {
  return old_fstatat(STAT_VERSION, folder, path, out, flags);
}

/* 2.32: whether the process has had one thread only.  The C++ run time counts without atomics then.
 */
HERE char __libc_single_threaded = 0;

/* 2.36. */
HERE uint32_t arc4random(void) {
  uint32_t bits = 0;
  while (getentropy(&bits, sizeof bits) != 0) {
  }
  return bits;
}

/* 2.35: where the unwinder's table of the object lies that has `address`. */
struct search {
  uintptr_t address;
  struct dl_find_object* found;
};

static int look(struct dl_phdr_info* object, size_t size, void* argument) {
  (void)size;
  struct search* search = argument;
  const ElfW(Phdr)* table = NULL;
  uintptr_t first = 0, last = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) table = part;
    if (part->p_type == PT_LOAD && search->address - begin < part->p_memsz) {
      first = begin;
      last = begin + part->p_memsz;
    }
  }
  if (last == 0 || table == NULL) return 0;
  memset(search->found, 0, sizeof *search->found);
  search->found->dlfo_map_start = (void*)first; /* NOLINT: addresses are numbers here */
  search->found->dlfo_map_end = (void*)last;    /* NOLINT */
  search->found->dlfo_eh_frame = (void*)(object->dlpi_addr + table->p_vaddr); /* NOLINT */
  return 1;
}

HERE int _dl_find_object(void* address, struct dl_find_object* out) {
  struct search search = {(uintptr_t)address, out};
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}
