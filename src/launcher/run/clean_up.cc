#include "run/clean_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "base/clock.h"
#include "base/small_file.h"
#include "process/descendants.h"

namespace lrun::launcher {
namespace {

constexpr Duration kToEnd(200);
constexpr Duration kPause(10);

/// Empty: it has ended, or is no program of its own.
std::string own_command_of(pid_t pid, const std::string& worker) {
  constexpr std::size_t kMostBytes = 4096;
  std::string words = read_small_file(fmt::format("/proc/{}/cmdline", pid), kMostBytes).value_or("");
  const bool is_helper = words.find("multiprocessing") != std::string::npos;
  if (is_helper || words == worker) return {};
  while (words.ends_with('\0')) words.pop_back();
  std::replace(words.begin(), words.end(), '\0', ' ');
  return words;
}

std::string first_own_command(const std::string& worker, const std::vector<pid_t>& spared) {
  for (const pid_t pid : all_descendants()) {
    if (std::find(spared.begin(), spared.end(), pid) != spared.end()) continue;
    if (std::string command = own_command_of(pid, worker); !command.empty()) return command;
  }
  return {};
}

}  // namespace

std::string program_left_behind(const std::vector<std::string>& worker, const std::vector<pid_t>& spared) {
  std::string line;  // of the worker, as /proc has it
  for (const std::string& word : worker) line.append(word).push_back('\0');
  const SteadyTime limit = steady_now() + kToEnd;
  std::string command = first_own_command(line, spared);
  while (!command.empty() && steady_now() < limit) {
    std::this_thread::sleep_for(kPause);
    command = first_own_command(line, spared);
  }
  return command;
}

bool end_what_is_left(const Guard& guard, Duration limit, MessageSink& sink, const std::vector<pid_t>& spared) {
  const std::vector<pid_t> survivors = end_all_descendants(limit, guard.cgroup(), spared);
  if (survivors.empty()) return true;
  sink.warn(survivors_text(survivors));
  return are_dead(survivors);
}

void kill_children(const Guard& guard) {
  guard.cgroup().kill();
  for (const pid_t child : direct_children()) ::kill(child, SIGKILL);
}

}  // namespace lrun::launcher
