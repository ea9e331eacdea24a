// Groups of threads on a host, for the text of kernels that was made for GPUs: the threads of a
// group take turns, from one barrier to the next.
#pragma once

#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace host {

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

inline Index size, thread_of_group, group_of_grid;

// The group that runs.
struct Group {
  static constexpr size_t kStackBytes = 256 << 10;
  struct Thread {
    ucontext_t context{};
    Index index;
    std::vector<char> stack = std::vector<char>(kStackBytes);
    bool is_done = false;
  };
  std::vector<Thread> threads;
  ucontext_t turns{};
  size_t current = 0;
  void (*body)(void*) = nullptr;
  void* argument = nullptr;
};
inline Group* running = nullptr;

inline void begin_thread() {
  running->body(running->argument);
  running->threads[running->current].is_done = true;
}

inline void barrier() {
  Group& group = *running;
  const size_t own = group.current;
  swapcontext(&group.threads[own].context, &group.turns);
}

// All come to each barrier, or all are done.
inline void run_group(Group& group) {
  running = &group;
  for (Group::Thread& thread : group.threads) {
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.data();
    thread.context.uc_stack.ss_size = thread.stack.size();
    thread.context.uc_link = &group.turns;
    thread.is_done = false;
    makecontext(&thread.context, begin_thread, 0);
  }
  for (size_t done = 0; done == 0;) {
    for (group.current = 0; group.current < group.threads.size(); ++group.current) {
      thread_of_group = group.threads[group.current].index;
      swapcontext(&group.turns, &group.threads[group.current].context);
      done += group.threads[group.current].is_done;
    }
    if (done != 0 && done != group.threads.size()) {
      std::fprintf(stderr, "%zu of %zu threads are done, the others wait\n", done,
                   group.threads.size());
      std::abort();
    }
  }
}

// So many groups of threads, one after the other.
template <class Body>
void run(Index threads, long long groups, Body body) {
  size = threads;
  Group group;
  group.argument = &body;
  group.body = [](void* argument) { (*static_cast<Body*>(argument))(); };
  group.threads.resize(size_t{threads.x} * threads.y * threads.z);
  for (size_t i = 0; i < group.threads.size(); ++i)
    group.threads[i].index = {static_cast<unsigned>(i % threads.x),
                              static_cast<unsigned>(i / threads.x % threads.y),
                              static_cast<unsigned>(i / threads.x / threads.y)};
  for (long long at = 0; at < groups; ++at) {
    group_of_grid = {static_cast<unsigned>(at), 0, 0};
    run_group(group);
  }
}

}  // namespace host
