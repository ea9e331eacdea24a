/* A process that is bound to one core gets one thread, whatever the machine has. */
#define _GNU_SOURCE
#include <sched.h>

#include "process.h"
#include "small_model.h"

static int threads_told(tiny_context* context) {
  tiny_report* report;
  CHECK(tiny_context_info(context, &report));
  const char* at = strstr(tiny_report_text(report), "\"threads\":");
  EXPECT(at != NULL);
  const int threads = atoi(at + strlen("\"threads\":"));
  tiny_report_release(report);
  return threads;
}

int main(void) {
  cpu_set_t before, one;
  EXPECT(sched_getaffinity(0, sizeof before, &before) == 0);
  int core = 0;
  while (!CPU_ISSET(core, &before)) ++core;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  EXPECT(sched_setaffinity(0, sizeof one, &one) == 0);
  tiny_context* context = context_with_threads(0);
  EXPECT(threads_told(context) == 1);
  tiny_run* run = compile_small_model(context, 1).run;
  CHECK(tiny_run_set_input(run, 0, small_input(context, 7)));
  for (int i = 0; i < 10; ++i) CHECK(tiny_run_execute(run));
  EXPECT(output_is(run, 7));
  EXPECT(threads_of_process() == 1);
  /* A caller who asks for more gets what was asked for. */
  tiny_context* more = context_with_threads(3);
  EXPECT(threads_told(more) == 3);
  tiny_context_release(more);
  return 0;
}
