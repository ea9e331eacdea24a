/* Handles released by other threads while their owner builds and computes, twice at once in two
   contexts; wrapped memory is given back exactly once.  Run under the thread sanitizer. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <tiny.h>

enum { ROUNDS = 300, QUEUE = 64 };

#define CHECK(call)                                                          \
  do {                                                                       \
    if ((call) != TINY_OK) {                                                 \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, tiny_last_error()); \
      exit(1);                                                               \
    }                                                                        \
  } while (0)

/* Handles on their way from the owner to the releasing thread. */
typedef struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  tiny_tensor* handles[QUEUE];
  int count, closed;
} queue;

static atomic_int given_back;
static const float kMemory[4] = {1, 2, 3, 4};

static void give_back(void* user) {
  (void)user;
  atomic_fetch_add(&given_back, 1);
}

static void put(queue* q, tiny_tensor* handle) {
  pthread_mutex_lock(&q->mutex);
  while (q->count == QUEUE) pthread_cond_wait(&q->changed, &q->mutex);
  q->handles[q->count++] = handle;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->mutex);
}

static void* release_all(void* argument) {
  queue* q = (queue*)argument;
  for (;;) {
    pthread_mutex_lock(&q->mutex);
    while (q->count == 0 && !q->closed) pthread_cond_wait(&q->changed, &q->mutex);
    tiny_tensor* handle = q->count > 0 ? q->handles[--q->count] : NULL;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->mutex);
    if (handle == NULL) return NULL;
    tiny_tensor_retain(handle);
    tiny_tensor_release(handle);
    tiny_tensor_release(handle);
  }
}

/* Builds and computes in a context of its own; every handle is released by the other thread. */
static void* build(void* argument) {
  int* failures = (int*)argument;
  queue q = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {NULL}, 0, 0};
  pthread_t releaser;
  tiny_options* options;
  tiny_context* context;
  CHECK(tiny_options_create(&options));
  CHECK(tiny_options_set_int(options, "threads", 2));
  CHECK(tiny_context_create(options, &context));
  tiny_options_release(options);
  pthread_create(&releaser, NULL, release_all, &q);
  for (int round = 0; round < ROUNDS; ++round) {
    const int64_t dims[1] = {4}, backwards[1] = {-1}, wrong[1] = {3};
    float number = (float)round, total = 0;
    tiny_tensor *wrapped, *scalar, *product, *sum, *none;
    CHECK(tiny_tensor_wrap(context, TINY_FLOAT32, dims, backwards, 1, (void*)(kMemory + 3),
                           give_back, NULL, &wrapped));
    CHECK(tiny_tensor_from_data(context, TINY_FLOAT32, NULL, 0, &number, sizeof number, &scalar));
    CHECK(tiny_binary(TINY_MUL, wrapped, scalar, &product));
    CHECK(tiny_reduce(TINY_SUM, product, NULL, 0, 0, &sum));
    put(&q, wrapped);
    put(&q, scalar);
    if (tiny_reshape(product, wrong, 1, &none) != TINY_ERROR_SHAPE || none != NULL) ++*failures;
    put(&q, product);
    if (round % 10 == 0) {
      CHECK(tiny_tensor_read(sum, &total, sizeof total));
      if (total != 10 * number) ++*failures;
    }
    put(&q, sum);
  }
  tiny_context_release(context); /* the releaser still holds tensors of it */
  pthread_mutex_lock(&q.mutex);
  q.closed = 1;
  pthread_cond_broadcast(&q.changed);
  pthread_mutex_unlock(&q.mutex);
  pthread_join(releaser, NULL);
  return NULL;
}

int main(void) {
  pthread_t builders[2];
  int failures[2] = {0, 0};
  for (int i = 0; i < 2; ++i) pthread_create(&builders[i], NULL, build, &failures[i]);
  for (int i = 0; i < 2; ++i) pthread_join(builders[i], NULL);
  const int back = atomic_load(&given_back);
  if (back != 2 * ROUNDS) fprintf(stderr, "%d of %d given back\n", back, 2 * ROUNDS);
  if (failures[0] + failures[1] > 0) fprintf(stderr, "%d wrong\n", failures[0] + failures[1]);
  return back == 2 * ROUNDS && failures[0] + failures[1] == 0 ? 0 : 1;
}
