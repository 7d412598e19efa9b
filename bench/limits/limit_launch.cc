// The least that a launcher does: limit_launch [-P] [-r] N PROGRAM [ARGUMENTS...] starts a program N times, with the
// variables of its ranks, and waits for all. Its status is that of the first worker that failed.
//   -P  a pipe each for stdout and stderr of a worker, copied to its own stdout
//   -r  when a worker fails the others get SIGTERM, and all start once more
#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "lines.h"

namespace {

/// Where events of a worker come from.
enum Source : std::uint32_t { kEnd, kOutput, kErrors, kSources };

struct Worker {
  pid_t pid = 0;  ///< 0 once it is reaped.
  std::array<int, kSources> fds{-1, -1, -1};
};

struct Options {
  bool with_pipes = false;
  bool restarts = false;
  int workers = 0;
  char** program = nullptr;
};

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::_Exit(1);
}

/// The variables of one rank after the other, before those of this process.
class Environment {
 public:
  Environment(int workers, int attempt) {
    std::size_t own = 0;
    while (environ[own] != nullptr) ++own;
    variables_ = static_cast<char**>(std::calloc(own + kAdded + 1, sizeof(char*)));
    if (variables_ == nullptr) give_up("calloc");
    std::copy_n(environ, own, variables_ + kAdded);
    for (std::size_t i = 0; i < kAdded; ++i) variables_[i] = added_[i].data();
    set(0, "MASTER_ADDR=127.0.0.%d", 1);
    set(1, "MASTER_PORT=%d", 29500);
    set(2, "WORLD_SIZE=%d", workers);
    set(3, "TORCHELASTIC_RESTART_COUNT=%d", attempt);
  }
  ~Environment() { std::free(variables_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  char** of_rank(int rank) {
    set(4, "RANK=%d", rank);
    set(5, "LOCAL_RANK=%d", rank);
    return variables_;
  }

 private:
  static constexpr std::size_t kAdded = 6;

  void set(std::size_t index, const char* format, int value) {
    std::snprintf(added_[index].data(), added_[index].size(), format, value);
  }

  std::array<std::array<char, 48>, kAdded> added_{};
  char** variables_ = nullptr;
};

struct Start {
  char** program;
  char** environment;
  int output;  ///< -1: the launcher's own, also for `errors`.
  int errors;
};

int become_program(void* argument) {
  const auto& start = *static_cast<const Start*>(argument);
  if (start.output >= 0) {
    ::dup2(start.output, STDOUT_FILENO);
    ::dup2(start.errors, STDERR_FILENO);
  }
  ::execvpe(start.program[0], start.program, start.environment);
  ::_exit(127);
}

/// The child runs in this memory, and this process waits, until it has become the program.
pid_t start_process(Start& start, int& pidfd) {
  alignas(64) static std::array<char, 1 << 16> stack;
  constexpr int kFlags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD;
  const pid_t pid = ::clone(become_program, stack.data() + stack.size(), kFlags, &start, &pidfd);
  if (pid < 0) give_up("clone");
  return pid;
}

void watch(int events, const Worker& worker, int rank, Source source) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<std::uint64_t>(rank) << 32U | source;
  if (::epoll_ctl(events, EPOLL_CTL_ADD, worker.fds[source], &event) != 0) give_up("epoll_ctl");
}

Worker start_worker(const Options& options, Environment& environment, int rank, int events) {
  std::array<int, 2> output{-1, -1};
  std::array<int, 2> errors{-1, -1};
  if (options.with_pipes && (::pipe2(output.data(), O_CLOEXEC) != 0 || ::pipe2(errors.data(), O_CLOEXEC) != 0))
    give_up("pipe2");
  Worker worker;
  Start start{options.program, environment.of_rank(rank), output[1], errors[1]};
  worker.pid = start_process(start, worker.fds[kEnd]);
  watch(events, worker, rank, kEnd);
  if (!options.with_pipes) return worker;
  ::close(output[1]);
  ::close(errors[1]);
  worker.fds[kOutput] = output[0];
  worker.fds[kErrors] = errors[0];
  watch(events, worker, rank, kOutput);
  watch(events, worker, rank, kErrors);
  return worker;
}

/// \return whether there may be more.
bool copy_output(int fd) {
  static std::array<char, 1 << 17> buffer;
  const ssize_t count = ::read(fd, buffer.data(), buffer.size());
  if (count <= 0) return false;
  if (!write_all(STDOUT_FILENO, buffer.data(), static_cast<std::size_t>(count))) give_up("write");
  return true;
}

/// \return its exit code, or 128 + the signal that ended it.
int reap(Worker& worker) {
  int status = 0;
  if (::waitpid(worker.pid, &status, 0) != worker.pid) give_up("waitpid");
  worker.pid = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// All workers of one attempt, and the status of the first of them that failed.
struct Attempt {
  const Options& options;
  Worker* workers;
  int failure = 0;

  void start_all(int events, int number) const {
    Environment environment(options.workers, number);
    for (int rank = 0; rank < options.workers; ++rank) workers[rank] = start_worker(options, environment, rank, events);
  }

  void note_end(int status) {
    if (status == 0 || failure != 0) return;
    failure = status;
    for (int rank = 0; options.restarts && rank < options.workers; ++rank)
      if (workers[rank].pid > 0) ::kill(workers[rank].pid, SIGTERM);
  }

  /// \return whether that was the last event of this source.
  bool serve(Worker& worker, Source source) {
    if (source != kEnd) return !copy_output(worker.fds[source]);
    note_end(reap(worker));
    return true;
  }
};

int run(const Options& options, Worker* workers, int number) {
  const int events = ::epoll_create1(EPOLL_CLOEXEC);
  Attempt attempt{options, workers};
  attempt.start_all(events, number);
  std::array<epoll_event, 64> ready;
  for (int open = options.workers * (options.with_pipes ? 3 : 1); open > 0;) {
    const int count = ::epoll_wait(events, ready.data(), static_cast<int>(ready.size()), -1);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t about = ready[static_cast<std::size_t>(i)].data.u64;
      Worker& worker = workers[about >> 32U];
      const auto source = static_cast<Source>(about & 3U);
      if (!attempt.serve(worker, source)) continue;
      // close() is not enough: a child that is about to exec may still have a copy.
      ::epoll_ctl(events, EPOLL_CTL_DEL, worker.fds[source], nullptr);
      ::close(worker.fds[source]);
      --open;
    }
  }
  ::close(events);
  return attempt.failure;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int option = 0; (option = ::getopt(argc, argv, "+Pr")) != -1;) {
    if (option == 'P') options.with_pipes = true;
    if (option == 'r') options.restarts = true;
  }
  if (argc - optind < 2) return 2;
  options.workers = std::atoi(argv[optind]);
  options.program = argv + optind + 1;
  auto* workers = static_cast<Worker*>(std::calloc(static_cast<std::size_t>(options.workers) + 1, sizeof(Worker)));
  if (workers == nullptr) give_up("calloc");
  int status = run(options, workers, 0);
  if (options.restarts && status != 0) status = run(options, workers, 1);
  std::free(workers);
  return status;
}
