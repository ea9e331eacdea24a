/* Handles released by other threads while their owner builds and computes, twice at once in two
   contexts; wrapped memory is given back exactly once.  Run under the thread sanitizer. */
#include <pthread.h>
#include <stdatomic.h>

#include "release_queue.h"
#include "small_model.h"

enum { ROUNDS = 300 };

static atomic_int given_back;
static const float kMemory[4] = {1, 2, 3, 4};

static void give_back(void* user) {
  (void)user;
  atomic_fetch_add(&given_back, 1);
}

/* Builds and computes in a context of its own; every handle is released by the other thread. */
static void* build(void* argument) {
  int* failures = (int*)argument;
  release_queue q = RELEASE_QUEUE;
  pthread_t releaser;
  tiny_context* context = context_with_threads(2);
  pthread_create(&releaser, NULL, release_all, &q);
  for (int round = 0; round < ROUNDS; ++round) {
    const int64_t dims[1] = {4}, backwards[1] = {-1}, wrong[1] = {3};
    float number = (float)round, total = 0;
    tiny_tensor *wrapped, *scalar, *product, *sum, *none;
    CHECK(tiny_tensor_wrap(context, TINY_FLOAT32, dims, backwards, 1, (void*)kMemory,
                           sizeof kMemory, 3, TINY_FLAG_READ_ONLY, give_back, NULL, &wrapped));
    CHECK(tiny_tensor_from_data(context, TINY_FLOAT32, NULL, 0, &number, sizeof number, &scalar));
    CHECK(tiny_binary(TINY_MUL, wrapped, scalar, &product));
    CHECK(tiny_reduce(TINY_SUM, product, NULL, 0, 0, &sum));
    give_away(&q, wrapped);
    give_away(&q, scalar);
    if (tiny_reshape(product, wrong, 1, &none) != TINY_ERROR_SHAPE || none != NULL) ++*failures;
    give_away(&q, product);
    if (round % 10 == 0) {
      CHECK(tiny_tensor_read(sum, &total, sizeof total));
      if (total != 10 * number) ++*failures;
    }
    give_away(&q, sum);
  }
  tiny_context_release(context); /* the releaser still holds tensors of it */
  close_queue(&q);
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
