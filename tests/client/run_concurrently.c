/* Two threads run one program, each a run of its own, while a third releases handles and a fourth
   builds, compiles and computes in the same context.  Run under the thread sanitizer. */
#include <pthread.h>
#include <stdatomic.h>

#include "release_queue.h"
#include "small_model.h"

enum { RUNS = 60, BUILDS = 40 };

static tiny_context* context;
static tiny_program* program;
static release_queue queue = RELEASE_QUEUE;
static atomic_int wrong;

/* A run that was made before; its input is set. */
static void* execute(void* argument) {
  tiny_run* run = (tiny_run*)argument;
  for (int i = 0; i < RUNS; ++i) CHECK(tiny_run_execute(run));
  if (!output_is(run, 5)) atomic_fetch_add(&wrong, 1);
  tiny_run_release(run);
  return NULL;
}

static void* build(void* argument) {
  (void)argument;
  for (int i = 0; i < BUILDS; ++i) {
    tiny_tensor *x = small_input(context, 1 + i % 12), *y, *z;
    CHECK(tiny_unary(i % 2 ? TINY_SQUARE : TINY_ABS, x, &y));
    CHECK(tiny_reduce(TINY_SUM, y, NULL, 0, 0, &z));
    give_away(&queue, x);
    give_away(&queue, y);
    float sum;
    if (i % 4 == 0) CHECK(tiny_tensor_read(z, &sum, sizeof sum));
    give_away(&queue, z);
    if (i % 10 != 0) continue;
    tiny_model* model = load_small_model(context, 1);
    tiny_program* other;
    CHECK(tiny_model_compile(model, NULL, 0, &other));
    tiny_program_release(other);
    tiny_model_release(model);
  }
  close_queue(&queue);
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
  EXPECT(pthread_create(&threads[2], NULL, release_all, &queue) == 0);
  EXPECT(pthread_create(&threads[3], NULL, build, NULL) == 0);
  tiny_program_release(program);
  tiny_model_release(model);
  for (int i = 0; i < 4; ++i) EXPECT(pthread_join(threads[i], NULL) == 0);
  tiny_tensor_release(input);
  tiny_context_release(context);
  return atomic_load(&wrong) == 0 ? 0 : 1;
}
