/* Opens the library, computes with it and closes it, a hundred times over: it really goes, and
   leaves neither memory nor mappings nor threads nor files behind.  Argument: the path of
   libtiny.so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiny.h>

#include "process.h"

enum { ROUNDS = 100, SETTLED = 20, SIZE = 512 };

typedef struct {
  long in_use, resident, mappings, files, threads; /* KB of the heap, pages, and numbers */
} usage;

static usage measure(void) {
  usage u = {(long)(mallinfo2().uordblks >> 10), 0, 0, entries_of("/proc/self/fd"),
             entries_of("/proc/self/task")};
  char line[4096];
  FILE* file = fopen("/proc/self/statm", "r");
  long total;
  if (!file || fscanf(file, "%ld %ld", &total, &u.resident) != 2) exit(1);
  fclose(file);
  file = fopen("/proc/self/maps", "r");
  while (file && fgets(line, sizeof line, file)) ++u.mappings;
  if (file) fclose(file);
  return u;
}

/* The function `name` of the library, as the type of the function in tiny.h. */
#define FUNCTION(library, name) ((__typeof__(&name))(uintptr_t)dlsym(library, #name))
#define MUST(condition)                                                        \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "round %d, line %d: %s\n", round, __LINE__, #condition); \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

static void use_library(const char* path, int round) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fprintf(stderr, "%s\n", dlerror());
  MUST(library != NULL);
  tiny_options* options;
  tiny_context* context;
  tiny_tensor *a, *product, *sum, *none;
  static float ones[SIZE * SIZE];
  for (int i = 0; i < SIZE * SIZE; ++i) ones[i] = 1;
  const int64_t dims[] = {SIZE, SIZE}, wrong[] = {7};
  float got = 0;
  MUST(FUNCTION(library, tiny_options_create)(&options) == TINY_OK);
  MUST(FUNCTION(library, tiny_options_set_int)(options, "threads", 2) == TINY_OK);
  MUST(FUNCTION(library, tiny_context_create)(options, &context) == TINY_OK);
  FUNCTION(library, tiny_options_release)(options);
  MUST(FUNCTION(library, tiny_tensor_from_data)(context, TINY_FLOAT32, dims, 2, ones, sizeof ones,
                                                &a) == TINY_OK);
  MUST(FUNCTION(library, tiny_matmul)(a, a, &product) == TINY_OK);
  MUST(FUNCTION(library, tiny_reduce)(TINY_REDUCE_MAX, product, NULL, 0, 0, &sum) == TINY_OK);
  MUST(FUNCTION(library, tiny_tensor_read)(sum, &got, sizeof got) == TINY_OK && got == SIZE);
  MUST(FUNCTION(library, tiny_reshape)(a, wrong, 1, &none) == TINY_ERROR_SHAPE);
  MUST(strlen(FUNCTION(library, tiny_last_error)()) > 0);
  FUNCTION(library, tiny_tensor_release)(a);
  FUNCTION(library, tiny_tensor_release)(product);
  FUNCTION(library, tiny_tensor_release)(sum);
  FUNCTION(library, tiny_context_release)(context);
  MUST(dlclose(library) == 0);
  MUST(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  usage settled = {0, 0, 0, 0, 0};
  for (int round = 0; round < ROUNDS; ++round) {
    use_library(argv[1], round);
    if (round == SETTLED) settled = measure();
  }
  const usage end = measure();
  printf("after %d rounds: %ld KB in use, %ld pages, %ld mappings, %ld files, %ld threads\n",
         SETTLED, settled.in_use, settled.resident, settled.mappings, settled.files,
         settled.threads);
  printf("after %d rounds: %ld KB in use, %ld pages, %ld mappings, %ld files, %ld threads\n",
         ROUNDS, end.in_use, end.resident, end.mappings, end.files, end.threads);
  return end.in_use <= settled.in_use + 64 && end.resident <= settled.resident + 4096 &&
                 end.mappings <= settled.mappings + 4 && end.files == settled.files &&
                 end.threads == settled.threads
             ? 0
             : 1;
}
