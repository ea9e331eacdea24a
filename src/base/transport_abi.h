/* What a library that carries bytes between processes offers to the engine: one function, which
   fills a table.  C, so that a transport may be anybody's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TINY_TRANSPORT_VERSION 1

typedef struct {
  int64_t rank;  /* of this process */
  int64_t count; /* of all */
  /* Gives `sent` bytes to the next process of the ring and takes `received` from the one before;
     returns when both are done, NULL, or what was wrong, for as long as nothing else is called. */
  const char* (*exchange)(const void* to_next, size_t sent, void* from_previous, size_t received);
  /* Nothing is called afterwards. */
  void (*close)(void);
} tiny_transport;

/* Joins the others; all processes call it.  NULL, or what was wrong. */
typedef const char* (*tiny_transport_open_function)(int32_t version, tiny_transport* out);
#define TINY_TRANSPORT_OPEN "tiny_transport_open"

#ifdef __cplusplus
}
#endif
