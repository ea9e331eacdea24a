/* A loader gathers ahead on its thread while this one computes with what it gave, assigns to what
 *it reads from,
 ** and lets it go at any time. */
#include "check.h"

#define ROWS 97
#define WIDTH 5

static tiny_tensor* pictures(tiny_context* context) {
  static float values[ROWS * WIDTH];
  const int64_t dims[] = {ROWS, WIDTH};
  tiny_tensor* t = NULL;
  for (int i = 0; i < ROWS * WIDTH; ++i) values[i] = (float)(i / WIDTH);
  CHECK(tiny_tensor_from_data(context, TINY_FLOAT32, dims, 2, values, sizeof values, &t));
  return t;
}

/* Rows and labels belong together, and each is there once in an epoch. */
static void read_epoch(tiny_loader* loader, int64_t batch) {
  int seen[ROWS] = {0};
  int64_t rows = 0, all = 0;
  for (;;) {
    CHECK(tiny_loader_next(loader, &rows));
    if (rows == 0) break;
    tiny_tensor *x = NULL, *y = NULL, *sum = NULL;
    float sums[ROWS];
    int64_t labels[ROWS];
    const int64_t axis = 1;
    CHECK(tiny_loader_tensor(loader, 0, &x));
    CHECK(tiny_loader_tensor(loader, 1, &y));
    CHECK(tiny_reduce(TINY_SUM, x, &axis, 1, 0, &sum));
    CHECK(tiny_tensor_read(sum, sums, (size_t)rows * sizeof *sums));
    CHECK(tiny_tensor_read(y, labels, (size_t)rows * sizeof *labels));
    EXPECT(rows <= batch);
    for (int64_t i = 0; i < rows; ++i) {
      EXPECT(labels[i] >= 0 && labels[i] < ROWS && !seen[labels[i]]);
      seen[labels[i]] = 1;
      EXPECT(sums[i] == (float)(WIDTH * labels[i]));
    }
    all += rows;
    tiny_tensor_release(sum);
    tiny_tensor_release(y);
    tiny_tensor_release(x);
  }
  EXPECT(all == ROWS);
}

int main(void) {
  tiny_context* context = NULL;
  CHECK(tiny_context_create(NULL, &context));
  tiny_tensor* arrays[2] = {pictures(context), NULL};
  CHECK(tiny_arange(context, TINY_INT64, ROWS, &arrays[1]));
  for (size_t ahead = 0; ahead < 4; ++ahead) {
    tiny_loader* loader = NULL;
    CHECK(tiny_loader_create(arrays, 2, 8, 42, ahead, TINY_FLAG_SHUFFLE, &loader));
    for (int epoch = 0; epoch < 5; ++epoch) {
      read_epoch(loader, 8);
      /* The same elements, written while the thread may be reading them. */
      tiny_tensor* again = pictures(context);
      CHECK(tiny_assign(arrays[0], again));
      CHECK(tiny_realize(arrays, 1));
      tiny_tensor_release(again);
      CHECK(tiny_loader_seek(loader, epoch + 1, 0));
    }
    tiny_loader_release(loader);
  }
  for (int round = 0; round < 100; ++round) {
    tiny_loader* loader = NULL;
    int64_t rows = 0;
    CHECK(tiny_loader_create(arrays, 2, 1 + round % 9, round, 2, 0, &loader));
    for (int i = 0; i < round % 4; ++i) CHECK(tiny_loader_next(loader, &rows));
    tiny_loader_release(loader);
  }
  tiny_tensor_release(arrays[0]);
  tiny_tensor_release(arrays[1]);
  tiny_context_release(context);
  printf("loaders give every row once\n");
  return 0;
}
