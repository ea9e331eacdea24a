/* Building calls of many threads on one context wait for each other; looking, reading, releasing
   and running wait for nobody, shown while a thread is in the middle of a building call; who waits
   can be cancelled and can give up; who hammers on a context starves nobody.  Run under the thread
   sanitizer too. */
#include <stdatomic.h>

#include "blocked_builder.h"
#include "process.h"

enum { THREADS = 8, ROUNDS = 40 };

static tiny_options* new_options(void) {
  tiny_options* options;
  CHECK(tiny_options_create(&options));
  return options;
}

static tiny_tensor* numbers(tiny_context* context, float first) {
  const int64_t dims[] = {2, 3};
  const float values[6] = {first, 1, 2, 3, 4, 5};
  tiny_tensor* made;
  CHECK(tiny_tensor_from_data(context, TINY_FLOAT32, dims, 2, values, sizeof values, &made));
  return made;
}

/* ---- Nobody waits to look, read, release or run. */

/* What is known of a dimension, and what is none. */
static void look_at_dimension(tiny_context* context, int64_t dim) {
  tiny_report* report;
  int64_t min, max;
  CHECK(tiny_dim_range(context, dim, &min, &max));
  EXPECT(min == 5 && max == 65);
  CHECK(tiny_dim_text(context, dim, &report));
  EXPECT(strcmp(tiny_report_text(report), "2*N + 1") == 0);
  tiny_report_release(report);
  EXPECT(tiny_dim_range(context, dim + 1, &min, &max) == TINY_ERROR_INVALID_ARGUMENT);
  EXPECT(tiny_dim_text(context, dim + 1, &report) == TINY_ERROR_INVALID_ARGUMENT);
}

static void look(blocked_builder* b, tiny_tensor* computed, tiny_tensor* view, tiny_tensor* lazy) {
  tiny_dtype dtype;
  size_t rank;
  int64_t dims[2], count;
  const char* device;
  const void* data;
  float got[6];
  tiny_context* context;
  CHECK(tiny_tensor_dtype(lazy, &dtype));
  CHECK(tiny_tensor_rank(lazy, &rank));
  CHECK(tiny_tensor_shape(lazy, dims, 2, &rank));
  EXPECT(dtype == TINY_FLOAT32 && rank == 2 && dims[0] == 2 && dims[1] == 3);
  CHECK(tiny_tensor_strides(view, dims, 2, &rank));
  EXPECT(dims[0] == 1 && dims[1] == 3);
  CHECK(tiny_tensor_offset(view, &count));
  CHECK(tiny_tensor_numel(lazy, &count));
  EXPECT(count == 6);
  CHECK(tiny_tensor_device(lazy, &device));
  CHECK(tiny_tensor_context(lazy, &context));
  EXPECT(context == b->context);
  tiny_context_release(context);
  CHECK(tiny_tensor_read(computed, got, sizeof got));
  EXPECT(got[0] == 7 && got[5] == 5);
  CHECK(tiny_tensor_read(view, got, sizeof got));
  EXPECT(got[0] == 7 && got[1] == 3 && got[2] == 1 && got[5] == 5);
  CHECK(tiny_tensor_data(computed, &data));
  EXPECT(((const float*)data)[4] == 4);
  tiny_tensor_retain(lazy);
  tiny_tensor_release(lazy);
  tiny_report* report;
  CHECK(tiny_context_info(b->context, &report));
  tiny_report_release(report);
  CHECK(tiny_context_counters(b->context, &report));
  EXPECT(strstr(tiny_report_text(report), "\"compile_seconds\"") != NULL);
  tiny_report_release(report);
}

/* Files of what is computed are written and read, and archives looked at. */
static void keep_files(blocked_builder* b, tiny_tensor* computed, tiny_tensor* view,
                       tiny_tensor* lazy) {
  char path[64], single[64];
  tiny_archive *archive, *read;
  tiny_report* report;
  const char* name;
  size_t count;
  snprintf(path, sizeof path, "/tmp/tiny_wait_%d.safetensors", (int)getpid());
  snprintf(single, sizeof single, "/tmp/tiny_wait_%d.npy", (int)getpid());
  CHECK(tiny_archive_create(b->context, &archive));
  CHECK(tiny_archive_set(archive, "lazy", lazy));
  CHECK(tiny_archive_set(archive, "lazy", computed));
  CHECK(tiny_archive_set(archive, "view", view));
  CHECK(tiny_archive_set_metadata(archive, "key", "text"));
  CHECK(tiny_archive_save(archive, path));
  CHECK(tiny_tensor_save(view, single, NULL));
  tiny_archive_release(archive);
  CHECK(tiny_archive_load(b->context, path, &read));
  CHECK(tiny_archive_count(read, &count));
  EXPECT(count == 2);
  CHECK(tiny_archive_name(read, 1, &name));
  EXPECT(strcmp(name, "view") == 0);
  CHECK(tiny_archive_info(read, &report));
  EXPECT(strstr(tiny_report_text(report), "\"shape\":[3,2]") != NULL);
  tiny_report_release(report);
  tiny_archive_release(read);
  remove(path);
  remove(single);
}

/* All that can be asked of a model, with an output of which the file says nothing. */
static void look_at_model(const tiny_model* model) {
  tiny_report* report;
  tiny_dtype dtype;
  tiny_kind kind;
  size_t count;
  int64_t dims[2];
  const char* text;
  CHECK(tiny_model_info(model, &report));
  EXPECT(strstr(tiny_report_text(report), "\"supported\":true"));
  EXPECT(!strstr(tiny_report_text(report), "\"flops\":null"));
  tiny_report_release(report);
  CHECK(tiny_model_header(model, &report));
  tiny_report_release(report);
  CHECK(tiny_model_output_dtype(model, 0, &dtype));
  CHECK(tiny_model_output_shape(model, 0, dims, 2, &count));
  EXPECT(dtype == TINY_FLOAT32 && count == 2 && dims[0] == ROWS && dims[1] == WIDTH);
  CHECK(tiny_model_output_dim_name(model, 0, 1, &text));
  CHECK(tiny_model_output_kind(model, 0, &kind));
  CHECK(tiny_model_input_count(model, &count));
  CHECK(tiny_model_input_name(model, 0, &text));
  CHECK(tiny_model_metadata(model, "graph_name", &text));
  EXPECT(strcmp(text, "small") == 0);
}

static void run_beside(small_model* small) {
  static float in[ROWS * WIDTH], out[ROWS * WIDTH], wanted[ROWS * WIDTH];
  size_t count;
  int64_t dims[2];
  for (int i = 0; i < ROWS * WIDTH; ++i) in[i] = (float)((i * 5) % 13 - 6) / 8;
  small_expected(5, wanted);
  look_at_model(small->model);
  CHECK(tiny_program_kernel_count(small->program, &count));
  CHECK(tiny_run_output_shape(small->run, 0, dims, 2, &count));
  CHECK(tiny_run_bind_input(small->run, 0, in, sizeof in));
  CHECK(tiny_run_execute(small->run));
  CHECK(tiny_run_read_output(small->run, 0, out, sizeof out));
  for (int i = 0; i < ROWS * WIDTH; ++i)
    EXPECT(out[i] > wanted[i] - 1e-3f && out[i] < wanted[i] + 1e-3f);
}

static void show_that_looking_waits_for_nobody(void) {
  blocked_builder b;
  make_blocked_builder(&b, new_options());
  small_model small = compile_small_model(b.context, 1);
  tiny_tensor *a = numbers(b.context, 3), *b2 = numbers(b.context, 4), *sum, *flat, *view, *lazy;
  const int64_t flat_dims[] = {3, 2}, axes[] = {1, 0};
  tiny_variable* n;
  int64_t dim;
  CHECK(tiny_variable_create(b.context, "N", 2, 32, &n));
  CHECK(tiny_variable_dim(n, &dim));
  CHECK(tiny_dim_mul(b.context, dim, 2, &dim));
  CHECK(tiny_dim_add(b.context, dim, 1, &dim));
  CHECK(tiny_binary(TINY_ADD, a, b2, &sum)); /* 7 2 4 6 8 10 */
  CHECK(tiny_realize(&sum, 1));
  tiny_tensor_release(sum);
  sum = numbers(b.context, 7);
  CHECK(tiny_permute(sum, axes, 2, &view));
  CHECK(tiny_reshape(view, flat_dims, 2, &flat));
  CHECK(tiny_unary(TINY_NEG, sum, &lazy));
  block(&b);
  look(&b, sum, view, lazy);
  look_at_dimension(b.context, dim);
  keep_files(&b, sum, view, lazy);
  run_beside(&small);
  tiny_tensor_release(a);
  tiny_tensor_release(b2);
  tiny_tensor_release(flat);
  unblock(&b);
  tiny_tensor_release(sum);
  tiny_tensor_release(view);
  tiny_tensor_release(lazy);
  tiny_variable_release(n);
  release_small_model(&small);
  tiny_context_release(b.context);
}

/* ---- Who waits can be cancelled, and can give up. */

static tiny_cancel* cancel;
static atomic_int is_waiting;

static void* wait_for_cancel(void* user) {
  tiny_tensor* none;
  atomic_store(&is_waiting, 1);
  EXPECT(tiny_scalar_int((tiny_context*)user, 1, &none) == TINY_ERROR_CANCELLED);
  EXPECT(none == NULL);
  return NULL;
}

static atomic_int is_over;

static int32_t ask_whether_over(void* user) {
  (void)user;
  return atomic_load(&is_over);
}

static void* wait_for_poll(void* user) {
  tiny_tensor* none;
  atomic_store(&is_waiting, 1);
  EXPECT(tiny_scalar_int((tiny_context*)user, 1, &none) == TINY_ERROR_CANCELLED);
  EXPECT(strstr(tiny_last_error(), "the poll function"));
  return NULL;
}

/* The caller's function, which is how languages look at Ctrl-C. */
static void show_that_a_poll_ends_waiting(void) {
  blocked_builder b;
  pthread_t waiter;
  tiny_options* options = new_options();
  CHECK(tiny_options_set_poll(options, ask_whether_over, NULL));
  make_blocked_builder(&b, options);
  b.wanted = TINY_ERROR_CANCELLED;
  block(&b);
  atomic_store(&is_waiting, 0);
  EXPECT(pthread_create(&waiter, NULL, wait_for_poll, b.context) == 0);
  while (!atomic_load(&is_waiting)) usleep(100);
  usleep(2000);
  atomic_store(&is_over, 1);
  EXPECT(pthread_join(waiter, NULL) == 0); /* while the builder is inside */
  unblock(&b);
  tiny_context_release(b.context);
}

static void show_that_waiting_ends(void) {
  blocked_builder b;
  tiny_tensor* none;
  pthread_t waiter;
  make_blocked_builder(&b, new_options());
  CHECK(tiny_cancel_create(&cancel));
  CHECK(tiny_context_set_cancel(b.context, cancel));
  b.wanted = TINY_ERROR_CANCELLED;
  block(&b);
  EXPECT(pthread_create(&waiter, NULL, wait_for_cancel, b.context) == 0);
  while (!atomic_load(&is_waiting)) usleep(100);
  usleep(2000);
  CHECK(tiny_cancel_set(cancel)); /* while the builder is inside */
  EXPECT(pthread_join(waiter, NULL) == 0);
  unblock(&b);
  CHECK(tiny_cancel_clear(cancel));
  tiny_cancel_release(cancel);
  tiny_context_release(b.context);

  tiny_options* options = new_options();
  CHECK(tiny_options_set_int(options, "busy_timeout", 30));
  make_blocked_builder(&b, options);
  block(&b);
  double start = seconds();
  EXPECT(tiny_scalar_int(b.context, 1, &none) == TINY_ERROR_BUSY);
  EXPECT(seconds() - start >= 0.029);
  EXPECT(strstr(tiny_last_error(), "busy_timeout = 30"));
  unblock(&b);
  tiny_context_release(b.context);

  options = new_options();
  CHECK(tiny_options_set_string(options, "busy", "error"));
  make_blocked_builder(&b, options);
  block(&b);
  EXPECT(tiny_scalar_int(b.context, 1, &none) == TINY_ERROR_BUSY);
  EXPECT(strstr(tiny_last_error(), "\"busy\""));
  unblock(&b);
  tiny_context_release(b.context);

  options = new_options();
  CHECK(tiny_options_set_string(options, "busy", "maybe"));
  EXPECT(tiny_context_create(options, &b.context) == TINY_ERROR_INVALID_ARGUMENT);
  EXPECT(strstr(tiny_last_error(), "maybe") && strstr(tiny_last_error(), "wait, error"));
  tiny_options_release(options);
}

/* ---- Eight threads build, compute, run a model and look, in one context. */

typedef struct {
  tiny_context* context;
  tiny_model* model;
  tiny_tensor* shared;
  int number;
} worker;

static void run_model(const worker* w, int step) {
  const int64_t dims[] = {ROWS, WIDTH};
  float* values = (float*)malloc(2 * sizeof(float) * ROWS * WIDTH);
  float* wanted = values + ROWS * WIDTH;
  tiny_tensor *input, *output;
  for (int i = 0; i < ROWS * WIDTH; ++i) values[i] = (float)((i * step) % 13 - 6) / 8;
  CHECK(tiny_tensor_from_data(w->context, TINY_FLOAT32, dims, 2, values,
                              sizeof(float) * ROWS * WIDTH, &input));
  CHECK(tiny_model_run(w->model, &input, 1, &output, 1));
  CHECK(tiny_tensor_read(output, values, sizeof(float) * ROWS * WIDTH));
  small_expected(step, wanted);
  for (int i = 0; i < ROWS * WIDTH; ++i)
    EXPECT(values[i] > wanted[i] - 1e-3f && values[i] < wanted[i] + 1e-3f);
  tiny_tensor_release(input);
  tiny_tensor_release(output);
  free(values);
}

static void* work(void* user) {
  const worker* w = (const worker*)user;
  for (int round = 0; round < ROUNDS; ++round) {
    tiny_tensor *mine = numbers(w->context, (float)(w->number + round)), *sum, *total;
    float got, read[6];
    CHECK(tiny_binary(TINY_ADD, mine, w->shared, &sum));
    CHECK(tiny_reduce(TINY_SUM, sum, NULL, 0, 0, &total));
    tiny_tensor_release(mine);
    CHECK(tiny_tensor_read(total, &got, sizeof got));
    EXPECT(got == (float)(w->number + round) + 15 + 22);
    CHECK(tiny_tensor_read(w->shared, read, sizeof read));
    EXPECT(read[0] == 7);
    tiny_tensor_release(sum);
    tiny_tensor_release(total);
    if (round % 4 == 0) run_model(w, 1 + (w->number + round) % 12);
    if (round % 4 == w->number % 4) look_at_model(w->model);
  }
  return NULL;
}

static void show_that_eight_threads_succeed(const char* device) {
  tiny_options* options = new_options();
  tiny_context* context;
  CHECK(tiny_options_set_string(options, "device", device));
  CHECK(tiny_options_set_int(options, "threads", 2));
  CHECK(tiny_context_create(options, &context));
  tiny_options_release(options);
  worker workers[THREADS];
  pthread_t threads[THREADS];
  tiny_model* model = load_small_model(context, 1);
  tiny_tensor* shared = numbers(context, 7);
  for (int i = 0; i < THREADS; ++i) {
    workers[i] = (worker){context, model, shared, i};
    EXPECT(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < THREADS; ++i) EXPECT(pthread_join(threads[i], NULL) == 0);
  tiny_tensor_release(shared);
  tiny_model_release(model);
  tiny_context_release(context);
}

/* ---- A thread that builds without a pause lets others build. */

static atomic_int is_over;

static void* hammer(void* user) {
  while (!atomic_load(&is_over)) tiny_tensor_release(numbers((tiny_context*)user, 1));
  return NULL;
}

static void show_that_nobody_starves(void) {
  tiny_context* context = context_with_threads(1);
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) EXPECT(pthread_create(&threads[i], NULL, hammer, context) == 0);
  const double start = seconds();
  for (int i = 0; i < 200; ++i) tiny_tensor_release(numbers(context, 2));
  EXPECT(seconds() - start < 60);
  atomic_store(&is_over, 1);
  for (int i = 0; i < 3; ++i) EXPECT(pthread_join(threads[i], NULL) == 0);
  tiny_context_release(context);
}

/* ---- What is assigned is either all there or not there, for whoever reads meanwhile. */

enum { WIDE = 1 << 16 };

static void* read_whole(void* user) {
  float* got = (float*)malloc(WIDE * sizeof(float));
  while (!atomic_load(&is_over)) {
    CHECK(tiny_tensor_read((tiny_tensor*)user, got, WIDE * sizeof(float)));
    for (int i = 1; i < WIDE; ++i) EXPECT(got[i] == got[0]);
  }
  free(got);
  return NULL;
}

static void show_that_reads_are_whole(void) {
  tiny_context* context = context_with_threads(2);
  const int64_t dims[] = {WIDE};
  tiny_tensor* target;
  pthread_t threads[2];
  CHECK(tiny_full(context, TINY_FLOAT32, dims, 1, 0, &target));
  CHECK(tiny_realize(&target, 1));
  atomic_store(&is_over, 0);
  for (int i = 0; i < 2; ++i) EXPECT(pthread_create(&threads[i], NULL, read_whole, target) == 0);
  for (int i = 1; i <= 100; ++i) {
    tiny_tensor* value;
    CHECK(tiny_full(context, TINY_FLOAT32, dims, 1, i, &value));
    CHECK(tiny_assign(target, value));
    CHECK(tiny_realize(&target, 1));
    tiny_tensor_release(value);
  }
  atomic_store(&is_over, 1);
  for (int i = 0; i < 2; ++i) EXPECT(pthread_join(threads[i], NULL) == 0);
  tiny_tensor_release(target);
  tiny_context_release(context);
}

int main(void) {
  show_that_looking_waits_for_nobody();
  show_that_waiting_ends();
  show_that_a_poll_ends_waiting();
  show_that_eight_threads_succeed("cpu");
  show_that_nobody_starves();
  show_that_reads_are_whole();
  return 0;
}
