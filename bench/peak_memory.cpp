// Runs a command and writes to a file the most memory that it had, in KB, and the milliseconds from
// its fork to its end: peak_memory FILE COMMAND..
//
// The kernel counts what a process had before exec() as its own, so a process that Python starts
// seems to have all of Python's memory; one that this small program starts does not.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "peak_memory FILE COMMAND..\n");
    return 2;
  }
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child < 0) {
    std::perror("fork");
    return 1;
  }
  if (child == 0) {
    execvp(arguments[2], arguments + 2);
    std::perror(arguments[2]);
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child) {
    std::perror("wait4");
    return 1;
  }
  const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
  std::FILE* file = std::fopen(arguments[1], "w");
  if (!file || std::fprintf(file, "%ld %.3f\n", usage.ru_maxrss, ms.count()) < 0 ||
      std::fclose(file) != 0) {
    std::perror(arguments[1]);
    return 1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
