/* Handles on their way from a thread that makes them to one that releases them. */
#ifndef TINY_TESTS_RELEASE_QUEUE_H
#define TINY_TESTS_RELEASE_QUEUE_H

#include <pthread.h>
#include <tiny.h>

enum { QUEUE = 16 };

typedef struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  tiny_tensor* handles[QUEUE];
  int count, closed;
} release_queue;

#define RELEASE_QUEUE {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {NULL}, 0, 0}

/* Gives the handle away; waits while the queue is full. */
static inline void give_away(release_queue* q, tiny_tensor* handle) {
  pthread_mutex_lock(&q->mutex);
  while (q->count == QUEUE) pthread_cond_wait(&q->changed, &q->mutex);
  q->handles[q->count++] = handle;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->mutex);
}

/* Nothing more will come. */
static inline void close_queue(release_queue* q) {
  pthread_mutex_lock(&q->mutex);
  q->closed = 1;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->mutex);
}

/* A thread's work: takes the handles of the queue that is its argument, until that is closed, and
   releases each, once with another reference. */
static inline void* release_all(void* argument) {
  release_queue* q = (release_queue*)argument;
  for (;;) {
    pthread_mutex_lock(&q->mutex);
    while (q->count == 0 && !q->closed) pthread_cond_wait(&q->changed, &q->mutex);
    tiny_tensor* handle = q->count > 0 ? q->handles[--q->count] : NULL;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->mutex);
    if (!handle) return NULL;
    tiny_tensor_retain(handle);
    tiny_tensor_release(handle);
    tiny_tensor_release(handle);
  }
}

#endif
