/* A thread that is in the middle of a building call for as long as a test wants. */
#ifndef TINY_TESTS_BLOCKED_BUILDER_H
#define TINY_TESTS_BLOCKED_BUILDER_H

#include <pthread.h>

#include "small_model.h"

typedef struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int is_armed, is_inside, may_leave;
  tiny_status wanted; /* of the call */
  tiny_context* context;
  tiny_status called_back; /* of a building call by the function that the context calls */
  pthread_t thread;
} blocked_builder;

/* Told by the thread that compiles: stays until it may leave. */
static inline int32_t stay_inside(void* user, const char* what, int64_t done, int64_t total) {
  (void)what, (void)done, (void)total;
  blocked_builder* b = (blocked_builder*)user;
  pthread_mutex_lock(&b->mutex);
  if (b->is_armed && !b->is_inside) {
    tiny_tensor* none;
    b->called_back = tiny_scalar_int(b->context, 1, &none);
    b->is_inside = 1;
    pthread_cond_broadcast(&b->changed);
    while (!b->may_leave) pthread_cond_wait(&b->changed, &b->mutex);
  }
  pthread_mutex_unlock(&b->mutex);
  return 0;
}

/* A context in which a thread can be blocked; `options` may have more settings, and are released.
 */
static inline void make_blocked_builder(blocked_builder* b, tiny_options* options) {
  memset(b, 0, sizeof *b);
  pthread_mutex_init(&b->mutex, NULL);
  pthread_cond_init(&b->changed, NULL);
  CHECK(tiny_options_set_int(options, "cache", 0));
  CHECK(tiny_options_set_int(options, "threads", 2));
  CHECK(tiny_options_set_progress(options, stay_inside, b));
  CHECK(tiny_context_create(options, &b->context));
  tiny_options_release(options);
}

static inline void* compile_blocked(void* user) {
  blocked_builder* b = (blocked_builder*)user;
  const int64_t dims[] = {3, 5};
  tiny_tensor *x, *y;
  float got[15] = {1, 2, 3};
  CHECK(tiny_tensor_from_data(b->context, TINY_FLOAT32, dims, 2, got, sizeof got, &x));
  CHECK(tiny_unary(TINY_EXP, x, &y));
  pthread_mutex_lock(&b->mutex);
  b->is_armed = 1;
  pthread_mutex_unlock(&b->mutex);
  const tiny_status status = tiny_tensor_read(y, got, sizeof got);
  if (status != b->wanted) fprintf(stderr, "%s\n", tiny_last_error());
  EXPECT(status == b->wanted);
  tiny_tensor_release(x);
  tiny_tensor_release(y);
  return NULL;
}

/* Returns when the thread is inside of its call. */
static inline void block(blocked_builder* b) {
  b->is_inside = b->may_leave = 0;
  EXPECT(pthread_create(&b->thread, NULL, compile_blocked, b) == 0);
  pthread_mutex_lock(&b->mutex);
  while (!b->is_inside) pthread_cond_wait(&b->changed, &b->mutex);
  pthread_mutex_unlock(&b->mutex);
  EXPECT(b->called_back == TINY_ERROR_BUSY);
}

static inline void let_leave(blocked_builder* b) {
  pthread_mutex_lock(&b->mutex);
  b->may_leave = 1;
  b->is_armed = 0;
  pthread_cond_broadcast(&b->changed);
  pthread_mutex_unlock(&b->mutex);
}

static inline void unblock(blocked_builder* b) {
  let_leave(b);
  EXPECT(pthread_join(b->thread, NULL) == 0);
}

#endif
