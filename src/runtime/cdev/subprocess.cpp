#include "runtime/cdev/subprocess.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/read_text.h"
#include "base/text.h"

namespace tiny {
ProcessResult run_process(const std::vector<std::string>& arguments, const std::string& messages) {
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, messages.c_str(),
                                   O_WRONLY | O_CREAT | O_EXCL, 0600);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return {false, cat("cannot run ", arguments[0], ": ", std::strerror(error))};
  int status = 0;
  pid_t waited = 0;
  do waited = waitpid(pid, &status, 0);
  while (waited < 0 && errno == EINTR);
  // A host that ignores SIGCHLD has no status to give; then the output's existence must tell.
  if (waited < 0) return {true, read_text(messages)};
  if (WIFSIGNALED(status))
    return {false, cat(arguments[0], " was killed by signal ", WTERMSIG(status))};
  return {WIFEXITED(status) && WEXITSTATUS(status) == 0, read_text(messages)};
}

}  // namespace tiny
