/* The first program in C11 against tiny.h alone: two arrays are added and summed, one of them seen
   from its end; a wrong call says what was wrong; dimensions beyond 2^31 come back as they went. */
#include <string.h>

#include "check.h"

static const int64_t kFar = ((int64_t)1 << 31) + 7;

static void add_and_sum(tiny_context* context) {
  const int64_t dims[] = {4}, backwards[] = {-1};
  const float ones[] = {10, 20, 30, 40};
  float values[] = {1, 2, 3, 4};
  const float wanted[] = {14, 23, 32, 41};
  float got[4], total = 0;
  int64_t stride = 0;
  size_t rank = 0;
  tiny_tensor *a, *b, *c, *sum;
  CHECK(tiny_tensor_from_data(context, TINY_FLOAT32, dims, 1, ones, sizeof ones, &a));
  CHECK(tiny_tensor_wrap(context, TINY_FLOAT32, dims, backwards, 1, values, sizeof values, 3, 0,
                         NULL, NULL, &b));
  CHECK(tiny_tensor_strides(b, &stride, 1, &rank));
  EXPECT(rank == 1 && stride == -1);
  CHECK(tiny_binary(TINY_ADD, a, b, &c));
  CHECK(tiny_reduce(TINY_SUM, c, NULL, 0, 0, &sum));
  CHECK(tiny_tensor_read(c, got, sizeof got));
  for (int i = 0; i < 4; ++i) EXPECT(got[i] == wanted[i]);
  CHECK(tiny_tensor_read(sum, &total, sizeof total));
  EXPECT(total == 110);
  printf("the sum is %g\n", total);
  tiny_tensor_release(a);
  tiny_tensor_release(b);
  tiny_tensor_release(c);
  tiny_tensor_release(sum);
}

static void wrong_call(tiny_context* context) {
  const int64_t dims[] = {2, 3}, five[] = {5};
  const float values[6] = {0};
  tiny_tensor *a, *b = NULL;
  CHECK(tiny_tensor_from_data(context, TINY_FLOAT32, dims, 2, values, sizeof values, &a));
  EXPECT(tiny_reshape(a, five, 1, &b) == TINY_ERROR_SHAPE);
  EXPECT(b == NULL);
  printf("the engine says: %s\n", tiny_last_error());
  EXPECT(strstr(tiny_last_error(), "tiny_reshape"));
  EXPECT(strstr(tiny_last_error(), "[2, 3]"));
  EXPECT(strstr(tiny_last_error(), "[5]"));
  tiny_tensor_release(a);
}

static void far_dimensions(tiny_context* context) {
  const int64_t one[] = {1}, far[] = {kFar}, begin[] = {kFar - 2}, value[] = {5};
  int64_t shape[2] = {0}, count = 0, last[2] = {0};
  size_t rank = 0;
  tiny_tensor *single, *repeated, *tail;
  CHECK(tiny_tensor_from_data(context, TINY_INT64, one, 1, value, sizeof value, &single));
  CHECK(tiny_expand(single, far, 1, &repeated));
  CHECK(tiny_tensor_shape(repeated, shape, 2, &rank));
  CHECK(tiny_tensor_numel(repeated, &count));
  EXPECT(rank == 1 && shape[0] == kFar && count == kFar);
  CHECK(tiny_slice(repeated, begin, far, NULL, 1, &tail));
  CHECK(tiny_tensor_read(tail, last, sizeof last));
  EXPECT(last[0] == 5 && last[1] == 5);
  tiny_tensor_release(single);
  tiny_tensor_release(repeated);
  tiny_tensor_release(tail);
}

int main(void) {
  tiny_context* context;
  CHECK(tiny_context_create(NULL, &context));
  add_and_sum(context);
  wrong_call(context);
  far_dimensions(context);
  tiny_context_release(context);
  return 0;
}
