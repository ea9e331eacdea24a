// Work in a process of its own, which a crash or an endless loop ends alone.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <stdexcept>
#include <string>

namespace tiny::testing {

// What the work said, and how its process ended (as waitpid tells it).
struct Ended {
  std::string text;
  int status = 0;

  // The signal that ended the process, or 0.
  int signal() const { return WIFSIGNALED(status) ? WTERMSIG(status) : 0; }
  // 0 where a signal ended it.
  int exit_status() const { return WIFEXITED(status) ? WEXITSTATUS(status) : 0; }
};

// Forks, and has the first 4000 bytes of what `work` returns; SIGALRM ends it after `seconds`.
inline Ended run_apart(unsigned seconds, const std::function<std::string()>& work) {
  int pipes[2];
  if (pipe(pipes) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    close(pipes[0]);
    alarm(seconds);
    const std::string text = work().substr(0, 4000);
    const bool written = write(pipes[1], text.data(), text.size()) == std::ssize(text);
    _exit(written ? 0 : 1);
  }
  close(pipes[1]);
  Ended ended;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(pipes[0], buffer, sizeof buffer)) > 0;)
    ended.text.append(buffer, static_cast<size_t>(n));
  close(pipes[0]);
  waitpid(child, &ended.status, 0);
  return ended;
}

}  // namespace tiny::testing
