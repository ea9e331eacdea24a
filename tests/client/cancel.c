/* Work that is ended early: a token set by another thread stops a long run and a long compilation,
   and both can be done again; a limit of time, memory, nodes or file size says which it was. */
#include <pthread.h>

#include "process.h"
#include "small_model.h"

static tiny_cancel* cancel;

/* Sets the token after `argument` milliseconds. */
static void* set_later(void* argument) {
  usleep((unsigned)(intptr_t)argument * 1000);
  CHECK(tiny_cancel_set(cancel));
  return NULL;
}

static pthread_t set_in(int milliseconds) {
  pthread_t thread;
  EXPECT(pthread_create(&thread, NULL, set_later, (void*)(intptr_t)milliseconds) == 0);
  return thread;
}

static void expect_message(const char* first, const char* second) {
  if (strstr(tiny_last_error(), first) && strstr(tiny_last_error(), second)) return;
  fprintf(stderr, "\"%s\" names neither %s nor %s\n", tiny_last_error(), first, second);
  exit(1);
}

static void cancel_runs(void) {
  tiny_context* context = context_with_threads(2);
  small_model small = compile_small_model(context, 300);
  tiny_run* run = small.run;
  tiny_tensor* input = small_input(context, 7);
  CHECK(tiny_run_set_input(run, 0, input));
  CHECK(tiny_run_set_cancel(run, cancel));
  CHECK(tiny_run_execute(run));
  const pthread_t setter = set_in(20);
  tiny_status status = TINY_OK;
  const double start = seconds();
  while (status == TINY_OK && seconds() - start < 30) status = tiny_run_execute(run);
  EXPECT(status == TINY_ERROR_CANCELLED);
  pthread_join(setter, NULL);
  EXPECT(tiny_run_execute(run) == TINY_ERROR_CANCELLED);
  CHECK(tiny_cancel_clear(cancel));
  CHECK(tiny_run_execute(run));
  CHECK(tiny_cancel_set(cancel));
  CHECK(tiny_run_set_cancel(run, NULL));
  CHECK(tiny_run_execute(run));
  CHECK(tiny_cancel_clear(cancel));
  tiny_tensor_release(input);
  release_small_model(&small);
  tiny_context_release(context);
}

/* A chain of this many additions, not computed. */
static tiny_tensor* long_chain(tiny_context* context, int length) {
  tiny_tensor *sum = small_input(context, 3), *step = small_input(context, 5);
  for (int i = 0; i < length; ++i) {
    tiny_tensor* next;
    CHECK(tiny_binary(i % 3 ? TINY_ADD : TINY_SUB, sum, step, &next));
    tiny_tensor_release(sum);
    sum = next;
  }
  tiny_tensor_release(step);
  return sum;
}

static void cancel_compilation(void) {
  tiny_context* context = context_with_threads(1);
  tiny_tensor* chain = long_chain(context, 100000);
  CHECK(tiny_context_set_cancel(context, cancel));
  const double start = seconds();
  const pthread_t setter = set_in(20);
  tiny_tensor* list[] = {chain};
  EXPECT(tiny_realize(list, 1) == TINY_ERROR_CANCELLED);
  pthread_join(setter, NULL);
  const double took = seconds() - start;
  tiny_model* model = NULL;
  tiny_program* program;
  CHECK(tiny_cancel_clear(cancel));
  model = load_small_model(context, 20);
  CHECK(tiny_cancel_set(cancel));
  EXPECT(tiny_model_compile(model, NULL, 0, &program) == TINY_ERROR_CANCELLED && program == NULL);
  CHECK(tiny_cancel_clear(cancel));
  CHECK(tiny_model_compile(model, NULL, 0, &program));
  CHECK(tiny_realize(list, 1));
  EXPECT(seconds() - start > took); /* there was something to cancel */
  tiny_program_release(program);
  tiny_model_release(model);
  tiny_tensor_release(chain);
  tiny_context_release(context);
}

/* The small model with a limit that it does not keep. */
static void refuse_model(const char* key, int64_t value) {
  tiny_context* context = context_with(key, value);
  tiny_model* model;
  char* path = write_small_model(8);
  EXPECT(tiny_model_load(context, path, &model) == TINY_ERROR_LIMIT && model == NULL);
  expect_message("limit", key);
  unlink(path);
  free(path);
  tiny_context_release(context);
}

static void limits(void) {
  refuse_model("node_limit", 5);
  refuse_model("file_limit", 1000);

  tiny_context* context = context_with("memory_limit", 3 * ROWS * WIDTH * 4);
  tiny_tensor* kept[4] = {NULL, NULL, NULL, NULL};
  static float values[ROWS * WIDTH];
  const int64_t dims[] = {ROWS, WIDTH};
  for (int i = 0; i < 3; ++i)
    CHECK(tiny_tensor_from_data(context, TINY_FLOAT32, dims, 2, values, sizeof values, &kept[i]));
  EXPECT(tiny_tensor_from_data(context, TINY_FLOAT32, dims, 2, values, sizeof values, &kept[3]) ==
         TINY_ERROR_LIMIT);
  expect_message("memory_limit", "set with the option");
  tiny_tensor_release(kept[0]);
  CHECK(tiny_tensor_from_data(context, TINY_FLOAT32, dims, 2, values, sizeof values, &kept[0]));
  for (int i = 0; i < 3; ++i) tiny_tensor_release(kept[i]);
  tiny_context_release(context);

  context = context_with("time_limit", 10);
  tiny_tensor* chain = long_chain(context, 100000);
  EXPECT(tiny_realize(&chain, 1) == TINY_ERROR_LIMIT);
  expect_message("time_limit", "set with the option");
  tiny_tensor_release(chain);
  tiny_context_release(context);
}

int main(void) {
  CHECK(tiny_cancel_create(&cancel));
  cancel_runs();
  cancel_compilation();
  limits();
  tiny_cancel_release(cancel);
  return 0;
}
