/* A small ONNX model, written byte by byte: `layers` times y = relu(x W + b) over rows of WIDTH
   floats, each kernel long enough to be split between threads. */
#ifndef TINY_TESTS_SMALL_MODEL_H
#define TINY_TESTS_SMALL_MODEL_H

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { ROWS = 64, WIDTH = 128 };

/* A protobuf message that grows. */
typedef struct {
  unsigned char* data;
  size_t size, room;
} message;

static inline void add_bytes(message* m, const void* data, size_t size) {
  if (m->size + size > m->room) {
    m->room = 2 * (m->size + size);
    m->data = (unsigned char*)realloc(m->data, m->room);
    if (!m->data) exit(1);
  }
  memcpy(m->data + m->size, data, size);
  m->size += size;
}

static inline void add_varint(message* m, uint64_t value) {
  for (;; value >>= 7) {
    const unsigned char byte = (unsigned char)(value < 128 ? value : value | 128);
    add_bytes(m, &byte, 1);
    if (value < 128) return;
  }
}

static inline void add_number(message* m, uint64_t field, uint64_t value) {
  add_varint(m, field << 3);
  add_varint(m, value);
}

static inline void add_field(message* m, uint64_t field, const void* data, size_t size) {
  add_varint(m, field << 3 | 2);
  add_varint(m, size);
  add_bytes(m, data, size);
}

static inline void add_text(message* m, uint64_t field, const char* text) {
  add_field(m, field, text, strlen(text));
}

/* Adds `part` as a field and empties it. */
static inline void add_message(message* m, uint64_t field, message* part) {
  add_field(m, field, part->data, part->size);
  free(part->data);
  part->data = NULL;
  part->size = part->room = 0;
}

static inline void add_node(message* graph, const char* op, const char* a, const char* b,
                            const char* out) {
  message node = {NULL, 0, 0};
  add_text(&node, 1, a);
  if (b) add_text(&node, 1, b);
  add_text(&node, 2, out);
  add_text(&node, 4, op);
  add_message(graph, 1, &node);
}

/* A float initializer whose element i is ((i * step) % 17 - 8) / 64. */
static inline void add_weights(message* graph, const char* name, int rows, int columns, int step) {
  message tensor = {NULL, 0, 0};
  if (rows > 0) add_number(&tensor, 1, (uint64_t)rows);
  add_number(&tensor, 1, (uint64_t)columns);
  add_number(&tensor, 2, 1); /* FLOAT */
  add_text(&tensor, 8, name);
  const int count = (rows > 0 ? rows : 1) * columns;
  float* values = (float*)malloc((size_t)count * sizeof(float));
  for (int i = 0; i < count; ++i) values[i] = (float)((i * step) % 17 - 8) / 64;
  add_field(&tensor, 9, values, (size_t)count * sizeof(float));
  free(values);
  add_message(graph, 5, &tensor);
}

/* A float value of ROWS x WIDTH. */
static inline void add_port(message* graph, uint64_t field, const char* name) {
  message dim = {NULL, 0, 0}, shape = dim, tensor = dim, type = dim, port = dim;
  add_number(&dim, 1, ROWS);
  add_message(&shape, 1, &dim);
  add_number(&dim, 1, WIDTH);
  add_message(&shape, 1, &dim);
  add_number(&tensor, 1, 1);
  add_message(&tensor, 2, &shape);
  add_message(&type, 1, &tensor);
  add_text(&port, 1, name);
  add_message(&port, 2, &type);
  add_message(graph, field, &port);
}

/* A value of which the file says nothing but its name. */
static inline void add_name(message* graph, uint64_t field, const char* name) {
  message port = {NULL, 0, 0};
  add_text(&port, 1, name);
  add_message(graph, field, &port);
}

/* Writes the model to a new file; its path is to be freed. */
static inline char* write_small_model(int layers) {
  message graph = {NULL, 0, 0}, opset = graph, model = graph;
  for (int i = 0; i < layers; ++i) {
    char in[32], product[32], sum[32], out[32], weight[32], bias[32];
    snprintf(in, sizeof in, i == 0 ? "x" : "y%d", i - 1);
    snprintf(product, sizeof product, "p%d", i);
    snprintf(sum, sizeof sum, "s%d", i);
    snprintf(out, sizeof out, i + 1 == layers ? "y" : "y%d", i);
    snprintf(weight, sizeof weight, "w%d", i);
    snprintf(bias, sizeof bias, "b%d", i);
    add_node(&graph, "MatMul", in, weight, product);
    add_node(&graph, "Add", product, bias, sum);
    add_node(&graph, "Relu", sum, NULL, out);
    add_weights(&graph, weight, WIDTH, WIDTH, 5 + i);
    add_weights(&graph, bias, 0, WIDTH, 3 + i);
  }
  add_text(&graph, 2, "small");
  add_port(&graph, 11, "x");
  add_name(&graph, 12, "y");
  add_number(&model, 1, 8);
  add_message(&model, 7, &graph);
  add_number(&opset, 2, 13);
  add_message(&model, 8, &opset);
  char* path = strdup("/tmp/tiny-small-model-XXXXXX");
  const int file = mkstemp(path);
  EXPECT(file >= 0 && write(file, model.data, model.size) == (ssize_t)model.size);
  close(file);
  free(model.data);
  return path;
}

static inline tiny_model* load_small_model(tiny_context* context, int layers) {
  char* path = write_small_model(layers);
  tiny_model* loaded;
  CHECK(tiny_model_load(context, path, &loaded));
  unlink(path);
  free(path);
  return loaded;
}

/* The model, compiled, and a run of it. */
typedef struct {
  tiny_model* model;
  tiny_program* program;
  tiny_run* run;
} small_model;

static inline small_model compile_small_model(tiny_context* context, int layers) {
  small_model m;
  m.model = load_small_model(context, layers);
  CHECK(tiny_model_compile(m.model, NULL, 0, &m.program));
  CHECK(tiny_run_create(m.program, &m.run));
  return m;
}

static inline void release_small_model(small_model* m) {
  tiny_run_release(m->run);
  tiny_program_release(m->program);
  tiny_model_release(m->model);
}

/* A context with one option set. */
static inline tiny_context* context_with(const char* key, int64_t value) {
  tiny_options* options;
  tiny_context* context;
  CHECK(tiny_options_create(&options));
  CHECK(tiny_options_set_int(options, key, value));
  CHECK(tiny_context_create(options, &context));
  tiny_options_release(options);
  return context;
}

/* One with this many threads (0: the default). */
static inline tiny_context* context_with_threads(int threads) {
  return context_with("threads", threads);
}

/* The model's input: element i is ((i * step) % 13 - 6) / 8. */
static inline tiny_tensor* small_input(tiny_context* context, int step) {
  const int64_t dims[] = {ROWS, WIDTH};
  static float values[ROWS * WIDTH];
  for (int i = 0; i < ROWS * WIDTH; ++i) values[i] = (float)((i * step) % 13 - 6) / 8;
  tiny_tensor* input;
  CHECK(tiny_tensor_from_data(context, TINY_FLOAT32, dims, 2, values, sizeof values, &input));
  return input;
}

/* What one layer of the model computes for small_input(step), in loops. */
static inline void small_expected(int step, float* out) {
  for (int r = 0; r < ROWS; ++r)
    for (int c = 0; c < WIDTH; ++c) {
      double sum = ((c * 3) % 17 - 8) / 64.0;
      for (int k = 0; k < WIDTH; ++k)
        sum += (((r * WIDTH + k) * step) % 13 - 6) / 8.0 * (((k * WIDTH + c) * 5) % 17 - 8) / 64.0;
      out[r * WIDTH + c] = (float)(sum > 0 ? sum : 0);
    }
}

/* Whether the run's output is small_expected(step), up to rounding. */
static inline int output_is(tiny_run* run, int step) {
  const size_t bytes = ROWS * WIDTH * sizeof(float);
  float *got = (float*)malloc(bytes), *want = (float*)malloc(bytes);
  int same = 1;
  CHECK(tiny_run_read_output(run, 0, got, bytes));
  small_expected(step, want);
  for (int i = 0; i < ROWS * WIDTH && same; ++i) {
    same = got[i] - want[i] < 1e-3f && want[i] - got[i] < 1e-3f;
    if (!same) fprintf(stderr, "element %d: got %g, want %g\n", i, (double)got[i], (double)want[i]);
  }
  free(got);
  free(want);
  return same;
}

#endif
