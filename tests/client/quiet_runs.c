/* A thousand runs of a program, with one thread, call neither the allocator nor mmap nor futex,
   also where each is bound to memory of its own and its output is read. The allocator's calls are
   counted by a preloaded library; system calls by a seccomp filter that traps them, however they
   are made.  Both counters are shown to count. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "small_model.h"

enum { RUNS = 1000 };

static atomic_long trapped;
static const long kTrapped[] = {SYS_mmap,  SYS_munmap,  SYS_mremap,   SYS_brk,
                                SYS_futex, SYS_madvise, SYS_mprotect, SYS_sched_yield};
enum { TRAPPED = sizeof kTrapped / sizeof *kTrapped };

/* The call is not made; it says that there is no such call. */
static void on_trap(int signal, siginfo_t* info, void* user) {
  (void)signal;
  (void)info;
  atomic_fetch_add(&trapped, 1);
  ((ucontext_t*)user)->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
}

static void trap_system_calls(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO;
  EXPECT(sigaction(SIGSYS, &action, NULL) == 0);
  struct sock_filter filter[TRAPPED + 3];
  filter[0] =
      (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < TRAPPED; ++i)
    filter[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)kTrapped[i],
                                                 (uint8_t)(TRAPPED - i), 0);
  filter[TRAPPED + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  filter[TRAPPED + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
  const struct sock_fprog program = {TRAPPED + 3, filter};
  EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

int main(void) {
  void* symbol = dlsym(RTLD_DEFAULT, "counted_calls");
  if (!symbol) {
    fprintf(stderr, "count_calls is not preloaded\n");
    return 1;
  }
  const atomic_long* allocated = (const atomic_long*)symbol;
  tiny_context* context = context_with_threads(1);
  tiny_run* run = compile_small_model(context, 4).run;
  CHECK(tiny_run_set_input(run, 0, small_input(context, 7)));
  static float in[2][ROWS * WIDTH], out[2][ROWS * WIDTH], copy[ROWS * WIDTH];
  tiny_run* bound = compile_small_model(context, 4).run;
  CHECK(tiny_run_bind_input(bound, 0, in[0], sizeof in[0]));
  CHECK(tiny_run_bind_output(bound, 0, out[0], sizeof out[0]));
  CHECK(tiny_run_execute(bound));
  CHECK(tiny_run_execute(run)); /* scratch is made by the first */

  trap_system_calls();
  const long allocations = atomic_load(allocated), calls = atomic_load(&trapped);
  for (int i = 0; i < RUNS; ++i) {
    CHECK(tiny_run_execute(run));
    CHECK(tiny_run_bind_input(bound, 0, in[i % 2], sizeof in[0]));
    CHECK(tiny_run_bind_output(bound, 0, out[i % 2], sizeof out[0]));
    CHECK(tiny_run_execute(bound));
    CHECK(tiny_run_read_output(bound, 0, copy, sizeof copy));
  }
  const long did_allocate = atomic_load(allocated) - allocations;
  const long did_call = atomic_load(&trapped) - calls;

  void* volatile memory = malloc(16);
  free(memory);
  uint32_t word = 0;
  syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
  syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const int counts = atomic_load(allocated) - allocations == did_allocate + 1 &&
                     atomic_load(&trapped) - calls == did_call + 2;
  if (!counts || did_allocate != 0 || did_call != 0) {
    char text[160];
    const int size =
        snprintf(text, sizeof text, "%d runs: %ld allocations, %ld system calls; counters %s\n",
                 RUNS, did_allocate, did_call, counts ? "count" : "do not count");
    if (write(2, text, (size_t)size) < 0) _exit(2);
    _exit(1);
  }
  _exit(0); /* the filter stays: nothing can be released */
}
