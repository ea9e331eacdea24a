/* What every client program ends with, where something is not as it should be. */
#ifndef TINY_TESTS_CHECK_H
#define TINY_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <tiny.h>

#define CHECK(call)                                                          \
  do {                                                                       \
    if ((call) != TINY_OK) {                                                 \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, tiny_last_error()); \
      exit(1);                                                               \
    }                                                                        \
  } while (0)

#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

#endif
