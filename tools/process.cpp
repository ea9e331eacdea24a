#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "failure.h"
#include "json.h"

extern char** environ;

namespace tiny::cli {
namespace {

// The only state of the process beside main's own: handlers of signals can be given nothing.
struct Watched {
  std::mutex lock;  // of stdout and of the members below
  std::string phase, failed_phase;
  std::string step;   // how far the phase is; may be empty
  double share = -1;  // of the phase that is done; less than 0: not known
  Gauge gauge{};      // what a measurement counts itself
  Clock::time_point phase_start;
  bool shown = false;  // a progress line stands on the terminal
  bool quiet = false;
  std::vector<pid_t> children;
  std::string on_interrupt;
  std::string on_crash;
};

Watched& watched() {
  static Watched* const state = new Watched;  // never destroyed: threads outlive main
  return *state;
}

std::string error_object(std::string_view command, const char* status, const char* message) {
  Json error = Json::object();
  error.set("status", status).set("message", message).set("call", Json()).set("node", Json());
  error.set("file", Json());
  Json object = Json::object();
  object.set("schema", 1).set("command", command).set("ok", false);
  object.set("tiny", tiny_version()).set("status", status).set("error", error);
  return object.dump() + "\n";
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

void clear_progress(Watched& state) {
  if (state.shown) write_all(STDERR_FILENO, "\r\033[K");
  state.shown = false;
}

// How much of the phase is done: what it told, or counted; less than 0: not known.
double share_done(const Watched& state, double ms) {
  const Gauge& gauge = state.gauge;
  if (gauge.done != nullptr && gauge.total > 0)
    return static_cast<double>(gauge.done->load(std::memory_order_relaxed)) /
           static_cast<double>(gauge.total);
  if (gauge.seconds > 0) return ms / 1e3 / gauge.seconds;
  return state.share;
}

// "[#####...............]  25%"
std::string bar_text(double share) {
  constexpr int kWidth = 20;
  share = std::min(share, 1.0);
  const auto full = static_cast<size_t>(share * kWidth);
  const std::string percent = std::to_string(static_cast<int>(share * 100));
  return "[" + std::string(full, '#') + std::string(kWidth - full, '.') + "] " +
         std::string(3 - std::min<size_t>(3, percent.size()), ' ') + percent + "%";
}

void show_progress(Watched& state) {
  const std::lock_guard guard(state.lock);
  const double ms = ms_since(state.phase_start);
  if (state.phase.empty() || ms < 1000 || state.quiet) return;
  const double share = share_done(state, ms);
  const std::string line = "\r\033[K" + state.phase + (share < 0 ? "" : " " + bar_text(share)) +
                           (state.step.empty() ? "" : " ") + state.step + ", " +
                           std::to_string(static_cast<int64_t>(ms / 1000)) + " s";
  write_all(STDERR_FILENO, line);
  state.shown = true;
}

// Waits for a signal to end, and draws the progress line in between.
[[noreturn]] void watch_signals(sigset_t signals) {
  Watched& state = watched();
  const bool terminal = isatty(STDERR_FILENO) == 1;
  const timespec tick{0, 200'000'000};
  for (;;) {
    if (sigtimedwait(&signals, nullptr, &tick) <= 0) {
      if (terminal) show_progress(state);
      continue;
    }
    state.lock.lock();
    for (const pid_t child : state.children) kill(child, SIGKILL);
    clear_progress(state);
    write_all(STDOUT_FILENO, state.on_interrupt);
    write_all(STDERR_FILENO, "tiny: interrupted\n");
    _exit(static_cast<int>(Exit::Interrupted));
  }
}

// Async-signal-safe: nothing but write and _exit.
void on_crash(int number) {
  const std::string& text = watched().on_crash;
  write_all(STDOUT_FILENO, text);
  char message[] = "tiny: internal error: signal 00\n";
  message[sizeof message - 4] = static_cast<char>('0' + number / 10 % 10);
  message[sizeof message - 3] = static_cast<char>('0' + number % 10);
  write_all(STDERR_FILENO, message);
  _exit(static_cast<int>(Exit::Internal));
}

}  // namespace

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void watch_process(bool json, bool quiet, std::string_view command) {
  Watched& state = watched();
  state.quiet = quiet;
  if (json) {
    state.on_interrupt = error_object(command, "CANCELLED", "interrupted");
    state.on_crash = error_object(command, "INTERNAL", "the program crashed");
  }
  std::signal(SIGPIPE, SIG_IGN);
  // A stack that overflowed leaves no room for a handler: it has a stack of its own.
  static char* const stack = new char[1 << 16];
  stack_t own{};
  own.ss_sp = stack;
  own.ss_size = 1 << 16;
  sigaltstack(&own, nullptr);
  struct sigaction crash{};
  crash.sa_handler = on_crash;
  crash.sa_flags = SA_ONSTACK;
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    sigaction(number, &crash, nullptr);

  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  sigaddset(&interrupt, SIGTERM);
  struct sigaction hangup{};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaddset(&interrupt, SIGHUP);  // else nohup asks to go on
  pthread_sigmask(SIG_BLOCK, &interrupt, nullptr);
  std::thread(watch_signals, interrupt).detach();
}

void print(std::string_view text) {
  Watched& state = watched();
  const std::lock_guard guard(state.lock);
  clear_progress(state);
  if (!write_all(STDOUT_FILENO, text)) throw file_failure("standard output", std::strerror(errno));
}

void warn(std::string_view text) {
  Watched& state = watched();
  const std::lock_guard guard(state.lock);
  if (state.quiet) return;
  clear_progress(state);
  write_all(STDERR_FILENO, "tiny: " + std::string(text) + "\n");
}

Phase::Phase(std::string what, Gauge gauge) {
  Watched& state = watched();
  const std::lock_guard guard(state.lock);
  state.phase = std::move(what);
  state.step.clear();
  state.share = -1;
  state.gauge = gauge;
  state.phase_start = Clock::now();
}

Phase::~Phase() {
  Watched& state = watched();
  const std::lock_guard guard(state.lock);
  if (std::uncaught_exceptions() > 0) state.failed_phase.swap(state.phase);
  state.phase.clear();
  state.gauge = {};
  clear_progress(state);
}

void note_progress(std::string_view what, int64_t done, int64_t total) {
  Watched& state = watched();
  const std::lock_guard guard(state.lock);
  state.step.assign(what);
  state.step += ", " + std::to_string(done) + " of " + std::to_string(total);
  state.share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : -1;
}

std::string failed_phase() {
  Watched& state = watched();
  const std::lock_guard guard(state.lock);
  return state.failed_phase;
}

struct Children::Child {
  size_t id;
  pid_t pid;
  int out, err;
  Clock::time_point start;
  double seconds;
  Ended ended;
};

Children::Children() = default;

Children::~Children() {
  for (Child& child : children_) {
    kill(child.pid, SIGKILL);
    bury(child);
  }
}

size_t Children::running() const {
  return children_.size();
}

void Children::start(size_t id, const std::vector<std::string>& arguments, double seconds) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0) throw Failure(Exit::Limit, "LIMIT", std::strerror(errno));
  if (pipe2(err, O_CLOEXEC) != 0) {
    close(out[0]);
    close(out[1]);
    throw Failure(Exit::Limit, "LIMIT", std::strerror(errno));
  }
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err[1], STDERR_FILENO);
  // The interrupt key is blocked in this process; the child decides for itself.
  posix_spawnattr_t attributes;
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);

  std::vector<std::string> words{"tiny"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  Child child{id, 0, out[0], err[0], Clock::now(), seconds, {}};
  Watched& state = watched();
  state.lock.lock();
  const int error =
      posix_spawn(&child.pid, "/proc/self/exe", &files, &attributes, argv.data(), environ);
  if (error == 0) state.children.push_back(child.pid);
  state.lock.unlock();
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  close(out[1]);
  close(err[1]);
  if (error != 0) {
    close(out[0]);
    close(err[0]);
    throw Failure(Exit::Limit, "LIMIT", std::string("no new process: ") + std::strerror(error));
  }
  children_.push_back(std::move(child));
}

// Reads what is there; false at the end of the file, which is closed then.
bool Children::drain(int& file, std::string& text) {
  char buffer[65536];
  const ssize_t got = read(file, buffer, sizeof buffer);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got > 0) {
    text.append(buffer, static_cast<size_t>(got));
    return true;
  }
  close(file);
  file = -1;
  return false;
}

// True once the child has ended, or has to.
bool Children::serve(Child& child, bool out_ready, bool err_ready) {
  std::string& err = child.ended.err;
  if (err_ready) drain(child.err, err);
  if (err.size() > 4096) err.erase(0, err.size() - 4096);
  if (ms_since(child.start) > child.seconds * 1000) {
    child.ended.timed_out = true;
    kill(child.pid, SIGKILL);
    return true;
  }
  return out_ready && !drain(child.out, child.ended.out);
}

Ended Children::bury(Child& child) {
  {
    Watched& state = watched();
    const std::lock_guard guard(state.lock);
    std::erase(state.children, child.pid);
  }
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) continue;
  child.ended.ms = ms_since(child.start);
  if (child.err >= 0) {
    fcntl(child.err, F_SETFL, O_NONBLOCK);  // a process of the child's may hold it open
    const size_t before = child.ended.err.size();
    drain(child.err, child.ended.err);
    if (child.ended.err.size() > before + 4096) child.ended.err.resize(before + 4096);
  }
  if (child.err >= 0) close(child.err);
  if (child.out >= 0) close(child.out);
  if (WIFEXITED(status))
    child.ended.exit_code = WEXITSTATUS(status);
  else
    child.ended.signal = WTERMSIG(status);
  return std::move(child.ended);
}

std::pair<size_t, Ended> Children::wait() {
  for (;;) {
    std::vector<pollfd> files;
    double left = 3600;
    for (const Child& child : children_) {
      files.push_back({child.out, POLLIN, 0});
      files.push_back({child.err, POLLIN, 0});
      left = std::min(left, child.seconds - ms_since(child.start) / 1000);
    }
    poll(files.data(), files.size(), static_cast<int>(std::max(0.0, left) * 1000) + 1);
    for (size_t i = 0; i < children_.size(); ++i) {
      Child& child = children_[i];
      if (!serve(child, files[2 * i].revents != 0, files[2 * i + 1].revents != 0)) continue;
      std::pair<size_t, Ended> result(child.id, bury(child));
      children_.erase(children_.begin() + static_cast<ptrdiff_t>(i));
      return result;
    }
  }
}

void end_with_parent() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
}

}  // namespace tiny::cli
