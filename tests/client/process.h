/* What client programs ask of the system about their own process. */
#ifndef TINY_TESTS_PROCESS_H
#define TINY_TESTS_PROCESS_H

#include <dirent.h>
#include <stdlib.h>
#include <time.h>

/* How many names a folder has; ends the process if it cannot be read. */
static inline int entries_of(const char* folder) {
  int count = 0;
  DIR* directory = opendir(folder);
  if (!directory) exit(1);
  for (struct dirent* entry = readdir(directory); entry; entry = readdir(directory))
    if (entry->d_name[0] != '.') ++count;
  closedir(directory);
  return count;
}

static inline int threads_of_process(void) {
  return entries_of("/proc/self/task");
}

/* Since some moment in the past. */
static inline double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
