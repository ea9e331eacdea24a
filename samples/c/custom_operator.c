/* An operator that the engine has not, written in C: the median of rows, in the middle of a graph
   that the engine compiles.  It is known by its name to models of this context, too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiny.h>

#define TRY(call)                                 \
  do {                                            \
    if ((call) != TINY_OK) {                      \
      fprintf(stderr, "%s\n", tiny_last_error()); \
      exit(1);                                    \
    }                                             \
  } while (0)

/* What comes out: as the input, without its last dimension. */
static tiny_status infer_median(void* user, tiny_custom_call* call) {
  size_t rank;
  const int64_t* shape = tiny_custom_call_input_shape(call, 0, &rank);
  (void)user;
  if (tiny_custom_call_input_dtype(call, 0) != TINY_FLOAT32 || rank == 0) {
    tiny_custom_call_set_error(call, "a float32 tensor with one dimension or more is wanted");
    return TINY_ERROR_INVALID_ARGUMENT;
  }
  return tiny_custom_call_set_output(call, 0, TINY_FLOAT32, shape, rank - 1);
}

static int compare(const void* a, const void* b) {
  const float x = *(const float*)a, y = *(const float*)b;
  return (x > y) - (x < y);
}

static tiny_status run_median(void* user, tiny_custom_call* call) {
  size_t rank;
  const int64_t* shape = tiny_custom_call_input_shape(call, 0, &rank);
  const float* in = tiny_custom_call_input_data(call, 0);
  float* out = tiny_custom_call_output_data(call, 0);
  const size_t length = (size_t)shape[rank - 1];
  size_t rows = 1;
  float* row = malloc(length * sizeof *row);
  (void)user;
  if (row == NULL) return TINY_ERROR_OUT_OF_MEMORY;
  for (size_t i = 0; i + 1 < rank; ++i) rows *= (size_t)shape[i];
  for (size_t r = 0; r < rows; ++r) {
    memcpy(row, in + r * length, length * sizeof *row);
    qsort(row, length, sizeof *row, compare);
    out[r] = row[length / 2];
  }
  free(row);
  return TINY_OK;
}

int main(void) {
  const int64_t dims[] = {2, 5};
  const float values[] = {1, 2, 3, 4, 100, 9, 7, 5, 3, 1};
  float medians[2];
  tiny_context* context;
  tiny_custom_op* op;
  tiny_tensor *x, *square, *y;
  TRY(tiny_context_create(NULL, &context));
  TRY(tiny_custom_op_create("com.example", "RowMedian", NULL, NULL, &op));
  TRY(tiny_custom_op_set_infer(op, infer_median));
  TRY(tiny_custom_op_set_run(op, run_median));
  TRY(tiny_context_add_custom_op(context, op));
  tiny_custom_op_release(op);

  TRY(tiny_tensor_from_data(context, TINY_FLOAT32, dims, 2, values, sizeof values, &x));
  TRY(tiny_binary(TINY_MUL, x, x, &square));
  TRY(tiny_op(context, "com.example", "RowMedian", 0, &square, 1, NULL, &y, 1));
  TRY(tiny_tensor_read(y, medians, sizeof medians));
  printf("medians of the squares: %g %g\n", medians[0], medians[1]);

  tiny_tensor_release(x);
  tiny_tensor_release(square);
  tiny_tensor_release(y);
  tiny_context_release(context);
  return medians[0] == 9 && medians[1] == 25 ? 0 : 1;
}
