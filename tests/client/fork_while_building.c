/* A process forks while another of its threads is in the middle of a building call: in the child,
   building in that context is an error, not a wait without end; looking, reading, runs and releases
   work, and so does a new context.  The parent goes on. */
#include <sys/wait.h>

#include "blocked_builder.h"

static void in_child(blocked_builder* b, small_model* small, tiny_tensor* computed) {
  static float values[ROWS * WIDTH];
  tiny_tensor *none, *input;
  float got[2];
  for (int i = 0; i < 2; ++i) {
    EXPECT(tiny_scalar_int(b->context, 1, &none) == TINY_ERROR_DEVICE_LOST);
    EXPECT(strstr(tiny_last_error(), "forked"));
  }
  CHECK(tiny_tensor_read(computed, got, sizeof got));
  EXPECT(got[1] == 2);
  CHECK(tiny_run_bind_input(small->run, 0, values, sizeof values));
  CHECK(tiny_run_execute(small->run));
  tiny_tensor_release(computed);
  release_small_model(small);
  tiny_context_release(b->context);
  tiny_context* context = context_with_threads(2);
  small_model other = compile_small_model(context, 1);
  input = small_input(context, 5);
  CHECK(tiny_run_set_input(other.run, 0, input));
  CHECK(tiny_run_execute(other.run));
  EXPECT(output_is(other.run, 5));
  tiny_tensor_release(input);
  release_small_model(&other);
  tiny_context_release(context);
}

int main(void) {
  blocked_builder b;
  tiny_options* options;
  CHECK(tiny_options_create(&options));
  make_blocked_builder(&b, options);
  small_model small = compile_small_model(b.context, 1);
  const int64_t dims[] = {2};
  const float values[2] = {1, 2};
  tiny_tensor* computed;
  CHECK(tiny_tensor_from_data(b.context, TINY_FLOAT32, dims, 1, values, sizeof values, &computed));
  block(&b);
  const pid_t child = fork();
  EXPECT(child >= 0);
  if (child == 0) {
    alarm(60);
    in_child(&b, &small, computed);
    exit(0);
  }
  unblock(&b);
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  tiny_tensor_release(computed);
  release_small_model(&small);
  tiny_context_release(b.context);
  return 0;
}
