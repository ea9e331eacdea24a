/* A chain of a million additions is built, computed and released on a stack of 256 KB. */
#include <pthread.h>

#include "process.h"
#include "small_model.h"

enum { LENGTH = 1000000, STACK = 256 << 10 };

static void* build_and_compute(void* argument) {
  (void)argument;
  tiny_context* context = context_with_threads(1);
  const int64_t dims[] = {4};
  const double start = seconds();
  const float zeros[4] = {0, 0, 0, 0}, steps[4] = {1, 2, 3, 4};
  tiny_tensor *sum, *step;
  CHECK(tiny_tensor_from_data(context, TINY_FLOAT32, dims, 1, zeros, sizeof zeros, &sum));
  CHECK(tiny_tensor_from_data(context, TINY_FLOAT32, dims, 1, steps, sizeof steps, &step));
  for (int i = 0; i < LENGTH; ++i) {
    tiny_tensor* next;
    CHECK(tiny_binary(TINY_ADD, sum, step, &next));
    tiny_tensor_release(sum);
    sum = next;
  }
  const double built = seconds();
  float got[4];
  CHECK(tiny_tensor_read(sum, got, sizeof got));
  for (int i = 0; i < 4; ++i) EXPECT(got[i] == (float)(LENGTH * (i + 1)));
  const double computed = seconds();
  /* A second chain goes without having been computed. */
  for (int i = 0; i < LENGTH; ++i) {
    tiny_tensor* next;
    CHECK(tiny_binary(TINY_MUL, sum, step, &next));
    tiny_tensor_release(sum);
    sum = next;
  }
  const double again = seconds();
  tiny_tensor_release(sum);
  tiny_tensor_release(step);
  tiny_context_release(context);
  printf("built %.2f s, computed %.2f s, released %.2f s\n", built - start, computed - built,
         seconds() - again);
  return NULL;
}

int main(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  EXPECT(pthread_attr_init(&attributes) == 0);
  EXPECT(pthread_attr_setstacksize(&attributes, STACK) == 0);
  EXPECT(pthread_create(&thread, &attributes, build_and_compute, NULL) == 0);
  EXPECT(pthread_join(thread, NULL) == 0);
  return 0;
}
