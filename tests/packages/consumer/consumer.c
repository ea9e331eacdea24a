/* Prints the version, a sum, and what becomes of a model that is not there. */
#include <stdio.h>
#include <tiny.h>

int main(void) {
  const int64_t shape[] = {3};
  const float data[] = {1, 2, 3};
  float total = 0;
  tiny_context* context;
  tiny_tensor *x, *sum;
  tiny_model* model;
  if (tiny_context_create(NULL, &context) ||
      tiny_tensor_from_data(context, TINY_FLOAT32, shape, 1, data, sizeof data, &x) ||
      tiny_reduce(TINY_SUM, x, NULL, 0, 0, &sum) || tiny_tensor_read(sum, &total, sizeof total))
    return fprintf(stderr, "%s\n", tiny_last_error()), 1;
  const tiny_status status = tiny_model_load(context, "no.onnx", &model);
  printf("%s\n%g\n%s\n%s\n", tiny_version(), total, tiny_status_name(status), tiny_last_error());
  tiny_tensor_release(sum), tiny_tensor_release(x);
  tiny_context_release(context);
  return 0;
}
