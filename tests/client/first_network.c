/* A small network in C11 against tiny.h alone: a convolution, a pool, a matrix product, a softmax;
   every number checked against loops.  It is built on a placeholder and compiled once; the program
   is run for several pictures and counts them in a tensor that it writes. */
#include <math.h>

#include "check.h"

enum { SIZE = 8, CHANNELS = 3, CLASSES = 4, POOLED = SIZE / 2 };

static float image[SIZE][SIZE];
static float kernel[CHANNELS][3][3];
static float weight[CHANNELS * POOLED * POOLED][CLASSES];

static void fill(float* values, int count, int step) {
  for (int i = 0; i < count; ++i) values[i] = (float)((i * step) % 17 - 8) / 16;
}

/* What the network computes, in loops. */
static void expect(double* probabilities) {
  double logits[CLASSES] = {0};
  for (int c = 0; c < CHANNELS; ++c)
    for (int y = 0; y < POOLED; ++y)
      for (int x = 0; x < POOLED; ++x) {
        double best = 0; /* the pool of a relu */
        for (int v = 2 * y; v < 2 * y + 2; ++v)
          for (int u = 2 * x; u < 2 * x + 2; ++u) {
            double sum = 0;
            for (int j = -1; j <= 1; ++j)
              for (int i = -1; i <= 1; ++i)
                if (v + j >= 0 && v + j < SIZE && u + i >= 0 && u + i < SIZE)
                  sum += (double)image[v + j][u + i] * kernel[c][j + 1][i + 1];
            best = fmax(best, sum);
          }
        for (int k = 0; k < CLASSES; ++k)
          logits[k] += best * weight[(c * POOLED + y) * POOLED + x][k];
      }
  double total = 0;
  for (int k = 0; k < CLASSES; ++k) total += exp(logits[k]);
  for (int k = 0; k < CLASSES; ++k) probabilities[k] = exp(logits[k]) / total;
}

static void check_close(const float* got) {
  double want[CLASSES];
  expect(want);
  for (int i = 0; i < CLASSES; ++i)
    if (!(fabs(got[i] - want[i]) < 1e-5)) {
      fprintf(stderr, "class %d: got %g, want %g\n", i, got[i], want[i]);
      exit(1);
    }
}

static tiny_tensor* picture(tiny_context* context, int step) {
  const int64_t dims[] = {1, 1, SIZE, SIZE};
  tiny_tensor* x;
  fill(&image[0][0], SIZE * SIZE, step);
  CHECK(tiny_tensor_from_data(context, TINY_FLOAT32, dims, 4, image, sizeof image, &x));
  return x;
}

/* The network's answer to x, a picture or a placeholder. */
static tiny_tensor* network(tiny_context* context, const tiny_tensor* x) {
  const int64_t kernel_dims[] = {CHANNELS, 1, 3, 3};
  const int64_t weight_dims[] = {CHANNELS * POOLED * POOLED, CLASSES};
  const int64_t twos[] = {2, 2}, flat[] = {1, -1};
  tiny_window *same, *pairs;
  tiny_tensor *k, *w, *convolved, *positive, *pooled, *row, *logits, *probabilities;
  CHECK(tiny_tensor_from_data(context, TINY_FLOAT32, kernel_dims, 4, kernel, sizeof kernel, &k));
  CHECK(tiny_tensor_wrap(context, TINY_FLOAT32, weight_dims, NULL, 2, weight, sizeof weight, 0, 0,
                         NULL, NULL, &w));
  CHECK(tiny_window_create(2, &same));
  CHECK(tiny_window_set_auto_padding(same, TINY_PADDING_SAME_UPPER));
  CHECK(tiny_conv(x, k, NULL, same, &convolved));
  CHECK(tiny_unary(TINY_RELU, convolved, &positive));
  CHECK(tiny_window_create(2, &pairs));
  CHECK(tiny_window_set_kernel(pairs, twos, 2));
  CHECK(tiny_window_set_strides(pairs, twos, 2));
  CHECK(tiny_max_pool(positive, pairs, &pooled));
  CHECK(tiny_reshape(pooled, flat, 2, &row));
  CHECK(tiny_matmul(row, w, &logits));
  CHECK(tiny_softmax(logits, -1, &probabilities));
  tiny_window_release(same);
  tiny_window_release(pairs);
  /* Each keeps alive what it was made from. */
  tiny_tensor* made[] = {k, w, convolved, positive, pooled, row, logits};
  for (size_t i = 0; i < sizeof made / sizeof *made; ++i) tiny_tensor_release(made[i]);
  return probabilities;
}

/* Computed at once, when it is read. */
static void run_once(tiny_context* context) {
  float got[CLASSES];
  tiny_tensor* x = picture(context, 5);
  tiny_tensor* probabilities = network(context, x);
  tiny_tensor_release(x);
  CHECK(tiny_tensor_read(probabilities, got, sizeof got));
  tiny_tensor_release(probabilities);
  check_close(got);
}

/* Compiled once, run for many pictures. */
static void run_many(tiny_context* context) {
  enum { PICTURES = 5 };
  const int64_t dims[] = {1, 1, SIZE, SIZE}, scalar[] = {1};
  int64_t seen = 0;
  float got[CLASSES];
  tiny_tensor *x, *count, *one, *next;
  CHECK(tiny_input(context, TINY_FLOAT32, dims, 4, &x));
  CHECK(tiny_tensor_wrap(context, TINY_INT64, scalar, NULL, 1, &seen, sizeof seen, 0, 0, NULL, NULL,
                         &count));
  CHECK(tiny_scalar_int(context, 1, &one));
  CHECK(tiny_binary(TINY_ADD, count, one, &next));
  CHECK(tiny_assign(count, next)); /* a write that every run does */
  tiny_tensor* outputs[] = {network(context, x), count};
  tiny_program* program;
  tiny_run* run;
  CHECK(tiny_program_compile(&x, 1, outputs, 2, &program));
  CHECK(tiny_run_create(program, &run));
  for (int i = 1; i <= PICTURES; ++i) {
    tiny_tensor* given = picture(context, i);
    CHECK(tiny_run_set_input(run, 0, given));
    tiny_tensor_release(given);
    CHECK(tiny_run_execute(run));
    CHECK(tiny_run_read_output(run, 0, got, sizeof got));
    check_close(got);
  }
  if (seen != PICTURES) {
    fprintf(stderr, "%d pictures, counted %d\n", PICTURES, (int)seen);
    exit(1);
  }
  /* In any order. */
  tiny_program_release(program);
  tiny_tensor* made[] = {x, count, one, next, outputs[0]};
  for (size_t i = 0; i < sizeof made / sizeof *made; ++i) tiny_tensor_release(made[i]);
  tiny_run_release(run);
}

int main(void) {
  fill(&kernel[0][0][0], CHANNELS * 9, 7);
  fill(&weight[0][0], CHANNELS * POOLED * POOLED * CLASSES, 3);
  tiny_context* context;
  CHECK(tiny_context_create(NULL, &context));
  run_once(context);
  run_many(context);
  tiny_context_release(context);
  return 0;
}
