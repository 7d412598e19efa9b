// What starting a program costs a small process and one of 1 GiB, in turn: through lrun_core, and by fork() and exec,
// which copies page tables. The program is /bin/true, from the start to its end; medians in microseconds.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "process/spawn.h"

namespace {

constexpr std::size_t kLarge = std::size_t{1} << 30U;
constexpr int kRounds = 7;
constexpr int kStarts = 31;

char* const* arguments() {
  static char program[] = "/bin/true";
  static char* words[] = {program, nullptr};
  return words;
}

char* const* no_environment() {
  static char* none[] = {nullptr};
  return none;
}

void spawn_and_wait() {
  static const lrun::SpawnDefaults defaults = lrun::SpawnDefaults::of_this_process();
  const lrun::SpawnRequest request{.path = "/bin/true", .argv = arguments(), .envp = no_environment()};
  lrun::SpawnResult result = lrun::spawn(request, defaults);
  if (!result.ok() || !result.child->wait_until_ended(lrun::Duration(10'000)) || !result.child->try_wait())
    std::abort();
}

void fork_and_wait() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execve("/bin/true", arguments(), no_environment());
    ::_exit(127);
  }
  if (pid < 0 || ::waitpid(pid, nullptr, 0) != pid) std::abort();
}

double microseconds(const std::function<void()>& start) {
  const auto before = std::chrono::steady_clock::now();
  start();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - before).count();
}

double median(std::vector<double>& times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

void add(std::vector<double>& times, const std::function<void()>& start) {
  for (int i = 0; i < kStarts; ++i) times.push_back(microseconds(start));
}

}  // namespace

int main() {
  struct Row {
    const char* name;
    void (*start)();
    std::vector<double> small;
    std::vector<double> large;
  };
  Row rows[] = {{"lrun_core", spawn_and_wait, {}, {}}, {"fork+exec", fork_and_wait, {}, {}}};
  for (int round = 0; round < kRounds; ++round) {
    for (Row& row : rows) add(row.small, row.start);
    const std::vector<char> memory(kLarge, 1);
    for (Row& row : rows) add(row.large, row.start);
  }
  std::printf("%-10s %12s %12s %8s\n", "start by", "small us", "1 GiB us", "ratio");
  for (Row& row : rows) {
    const double small = median(row.small);
    const double large = median(row.large);
    std::printf("%-10s %12.1f %12.1f %8.2f\n", row.name, small, large, large / small);
  }
}
