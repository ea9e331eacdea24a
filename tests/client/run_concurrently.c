/* Two threads run one program, each a run of its own, while a third releases handles and a fourth
   builds, compiles and computes in the same context.  Run under the thread sanitizer. */
#include <pthread.h>
#include <stdatomic.h>

#include "small_model.h"

enum { RUNS = 60, BUILDS = 40, QUEUE = 16 };

static tiny_context* context;
static tiny_program* program;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static tiny_tensor* handles[QUEUE];
static int count, closed;
static atomic_int wrong;

/* A run that was made before; its input is set. */
static void* execute(void* argument) {
  tiny_run* run = (tiny_run*)argument;
  for (int i = 0; i < RUNS; ++i) CHECK(tiny_run_execute(run));
  if (!output_is(run, 5)) atomic_fetch_add(&wrong, 1);
  tiny_run_release(run);
  return NULL;
}

static void* release_all(void* argument) {
  (void)argument;
  for (;;) {
    pthread_mutex_lock(&mutex);
    while (count == 0 && !closed) pthread_cond_wait(&changed, &mutex);
    tiny_tensor* handle = count > 0 ? handles[--count] : NULL;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    if (!handle) return NULL;
    tiny_tensor_release(handle);
  }
}

static void give_away(tiny_tensor* handle) {
  pthread_mutex_lock(&mutex);
  while (count == QUEUE) pthread_cond_wait(&changed, &mutex);
  handles[count++] = handle;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

static void* build(void* argument) {
  (void)argument;
  for (int i = 0; i < BUILDS; ++i) {
    tiny_tensor *x = small_input(context, 1 + i % 12), *y, *z;
    CHECK(tiny_unary(i % 2 ? TINY_SQUARE : TINY_ABS, x, &y));
    CHECK(tiny_reduce(TINY_SUM, y, NULL, 0, 0, &z));
    give_away(x);
    give_away(y);
    float sum;
    if (i % 4 == 0) CHECK(tiny_tensor_read(z, &sum, sizeof sum));
    give_away(z);
    if (i % 10 != 0) continue;
    tiny_model* model = load_small_model(context, 1);
    tiny_program* other;
    CHECK(tiny_model_compile(model, NULL, 0, &other));
    tiny_program_release(other);
    tiny_model_release(model);
  }
  pthread_mutex_lock(&mutex);
  closed = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

int main(void) {
  context = context_with_threads(2);
  tiny_model* model = load_small_model(context, 1);
  CHECK(tiny_model_compile(model, NULL, 0, &program));
  pthread_t threads[4];
  tiny_run* runs[2];
  tiny_tensor* input = small_input(context, 5);
  for (int i = 0; i < 2; ++i) {
    CHECK(tiny_run_create(program, &runs[i]));
    CHECK(tiny_run_set_input(runs[i], 0, input));
  }
  for (int i = 0; i < 2; ++i) EXPECT(pthread_create(&threads[i], NULL, execute, runs[i]) == 0);
  EXPECT(pthread_create(&threads[2], NULL, release_all, NULL) == 0);
  EXPECT(pthread_create(&threads[3], NULL, build, NULL) == 0);
  tiny_program_release(program);
  tiny_model_release(model);
  for (int i = 0; i < 4; ++i) EXPECT(pthread_join(threads[i], NULL) == 0);
  tiny_tensor_release(input);
  tiny_context_release(context);
  return atomic_load(&wrong) == 0 ? 0 : 1;
}
