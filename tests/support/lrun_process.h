#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "support/temporary_folder.h"

namespace lrun::test {

using namespace std::chrono_literals;

/// Longer than anything should take on a loaded machine; a test that reaches it has failed.
inline constexpr auto kPatience = 60s;

/// Waits for a condition that an event outside this process makes true. \return false when patience ended.
bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit = kPatience);

/// The id of a process that is not there. kill() refuses it; -1 would be every process of the user.
inline constexpr pid_t kNoProcess = std::numeric_limits<pid_t>::max();

struct LrunEnd {
  bool exited = false;
  int code = 0;           ///< when exited
  int signal_number = 0;  ///< when it died of a signal
};

/// The built lrun, started as a person would start it, with its output read as it comes.
///
/// With LRUN_TEST_UNDER='valgrind …' in the environment it runs below that; LRUN_NO_CGROUP and LRUN_NO_PIDFD are passed
/// on to it.
///
/// Every process below carries a mark in its environment; the destructor fails the test when one is left, and ends it.
class LrunProcess {
 public:
  struct Options {
    std::map<std::string, std::string> environment = {};
    std::string program = {};  ///< a link to it; empty: lrun itself
    bool terminal = false;     ///< stdin, stdout and stderr are a terminal of its own
    std::function<void()> before_exec = {};
  };

  explicit LrunProcess(std::vector<std::string> arguments) : LrunProcess(std::move(arguments), Options{}) {}
  LrunProcess(std::vector<std::string> arguments, const Options& options);
  ~LrunProcess();
  LrunProcess(const LrunProcess&) = delete;
  LrunProcess& operator=(const LrunProcess&) = delete;

  /// Reads until stdout and stderr together contain `text`.
  [[nodiscard]] bool wait_for(const std::string& text);
  /// Reads until a condition holds that the workers make true.
  [[nodiscard]] bool read_until(const std::function<bool()>& condition);
  /// Reads to the end and waits for lrun itself.
  LrunEnd wait();
  void signal(int signal_number) const;
  /// Types on the terminal.
  void type(const std::string& keys) const;
  /// Closes our end of its stdout, as `| head` does.
  void close_stdout();

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::string& out() const { return out_; }
  [[nodiscard]] const std::string& err() const { return err_; }  ///< all of it when there is a terminal
  [[nodiscard]] const std::filesystem::path& state() const { return state_.path(); }
  /// The folder of this launcher: that of the one run, or its part in it.
  [[nodiscard]] std::filesystem::path run_folder() const;
  /// Of lrun's outer process: the launcher, the waker, and what it has adopted.
  [[nodiscard]] std::vector<pid_t> children() const;
  /// The inner process of the two that lrun is; kNoProcess: it is not there.
  [[nodiscard]] pid_t launcher_pid() const;
  /// The one that continues the other two; kNoProcess: there is none.
  [[nodiscard]] pid_t waker_pid() const;
  /// Living processes of this run but lrun's own.
  [[nodiscard]] std::vector<pid_t> workers() const;
  /// True of a living process of this run.
  [[nodiscard]] bool is_process(pid_t pid) const;
  /// Living processes of this run, lrun's own included.
  [[nodiscard]] std::vector<pid_t> processes() const;

 private:
  bool read_some(std::chrono::milliseconds limit);

  TemporaryFolder state_;
  std::string mark_;
  pid_t pid_ = kNoProcess;
  bool reaped_ = false;
  LrunEnd end_;
  Fd out_fd_;
  Fd err_fd_;
  std::string out_;
  std::string err_;
};

/// Of a worker that was executed, not forked by a server; kNoProcess: it is not there.
pid_t pid_of_rank(const LrunProcess& lrun, int rank);

/// Kills guard and launcher so that neither can clean up. \return false: the waker had continued the guard, which did
[[nodiscard]] bool kill_both(LrunProcess& lrun);

/// Living direct children of a process, zombies left out.
std::vector<pid_t> living_children(pid_t parent);
/// Ended children of a process that it has not reaped.
int zombie_children(pid_t parent);
/// A living process's environment, each variable between two newlines; empty when it is gone.
std::string environment_of(pid_t pid);
/// As its program, or it itself, set it; empty: there is no such process.
std::string program_name(pid_t pid);
/// The state letter in /proc/PID/stat: 'R', 'S', 'T', 'Z'...; ' ' when there is no such process.
char process_state(pid_t pid);

}  // namespace lrun::test
