/* A process that exits while another thread is in the middle of a run ends with its own exit code.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "small_model.h"

enum { PROCESSES = 100 };

static atomic_int started;

static void* run_for_ever(void* argument) {
  for (;;) {
    CHECK(tiny_run_execute((tiny_run*)argument));
    atomic_store(&started, 1);
  }
  return NULL;
}

/* Exits after `microseconds` of runs, on a pool with threads or without. */
static void child(int threads, unsigned microseconds) {
  tiny_context* context = context_with_threads(threads);
  const small_model small = compile_small_model(context, 2);
  CHECK(tiny_run_set_input(small.run, 0, small_input(context, 7)));
  pthread_t thread;
  EXPECT(pthread_create(&thread, NULL, run_for_ever, small.run) == 0);
  while (!atomic_load(&started)) usleep(10);
  usleep(microseconds);
  exit(0);
}

int main(void) {
  for (int i = 0; i < PROCESSES; ++i) {
    const pid_t process = fork();
    EXPECT(process >= 0);
    if (process == 0) child(1 + i % 3, (unsigned)(i * 37 % 500));
    int status = -1;
    EXPECT(waitpid(process, &status, 0) == process);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      fprintf(stderr, "process %d ended with status %d\n", i, status);
      return 1;
    }
  }
  return 0;
}
