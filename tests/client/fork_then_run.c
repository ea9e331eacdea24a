/* A process forks after it has run on several threads; the child runs the same program, on threads
   of its own, and so does the parent. */
#include <sys/wait.h>

#include "process.h"
#include "small_model.h"

/* Waits until the process has this many threads beside its own: starting and ending take a moment.
   Executes `run` (may be NULL) meanwhile: workers are not called while others have the cores, which
   may be for seconds. */
static int has_workers(int wanted, tiny_run* run) {
  for (int look = 0; look < 10000; ++look) {
    if (threads_of_process() == wanted + 1) return 1;
    if (run) CHECK(tiny_run_execute(run));
    usleep(1000);
  }
  return 0;
}

static void run_with(tiny_context* context, tiny_run* run, int step) {
  tiny_tensor* input = small_input(context, step);
  CHECK(tiny_run_set_input(run, 0, input));
  for (int i = 0; i < 50; ++i) CHECK(tiny_run_execute(run));
  EXPECT(output_is(run, step));
  tiny_tensor_release(input);
}

int main(void) {
  tiny_context* context = context_with_threads(3);
  small_model small = compile_small_model(context, 1);
  run_with(context, small.run, 3);
  EXPECT(has_workers(2, small.run));
  for (int generation = 0; generation < 3; ++generation) {
    const pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
      EXPECT(has_workers(0, NULL));
      run_with(context, small.run, 4 + generation);
      EXPECT(has_workers(2, small.run));
      /* What the parent made can be released, and a new context works. */
      release_small_model(&small);
      tiny_context_release(context);
      EXPECT(has_workers(0, NULL));
      context = context_with_threads(2);
      small = compile_small_model(context, 1);
      run_with(context, small.run, 9);
      exit(0);
    }
    run_with(context, small.run, 5 + generation);
    int status = -1;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  release_small_model(&small);
  tiny_context_release(context);
  return 0;
}
