#include "runtime/cdev/subprocess.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "base/read_text.h"
#include "base/text.h"

namespace tiny {
namespace {

// What waitpid says of a process once it has ended.  Killed with its group if `stop` is over.
pid_t wait_for(pid_t pid, int& status, const StopSignal& stop) {
  constexpr timespec kLook{0, 1'000'000};
  for (bool killed = false;;) {
    const pid_t waited = waitpid(pid, &status, killed ? 0 : WNOHANG);
    if (waited != 0 && !(waited < 0 && errno == EINTR)) return waited;
    if (!killed && stop.is_over()) killed = kill(-pid, SIGKILL) == 0;
    if (!killed) nanosleep(&kLook, nullptr);
  }
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments, const std::string& messages,
                          const StopSignal& stop) {
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
  posix_spawnattr_t attributes;  // a group of its own, which is killed as one
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int error = posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return {false, cat("cannot run ", arguments[0], ": ", std::strerror(error))};
  int status = 0;
  const pid_t waited = wait_for(pid, status, stop);
  // A host that ignores SIGCHLD has no status to give; then the output's existence must tell.
  if (waited < 0) return {true, read_text(messages)};
  if (WIFSIGNALED(status))
    return {false, cat(arguments[0], " was killed by signal ", WTERMSIG(status))};
  return {WIFEXITED(status) && WEXITSTATUS(status) == 0, read_text(messages)};
}

}  // namespace tiny
