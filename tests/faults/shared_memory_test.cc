// Workers of liblrun share memory: nothing of it is left when one is killed, whatever they are doing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "faults/chance.h"
#include "faults/remains.h"
#include "faults/settings.h"
#include "support/lrun_process.h"

namespace lrun::test {
namespace {

std::set<std::string> shared_memory_of_lrun() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("lrun") && !name.starts_with("lrun-memory-")) names.insert(name);
  }
  return names;
}

/// One worker is killed at any time: while its program is loaded, while the group is made, or in an all-reduce.
std::string kill_one(int number) {
  Chance chance(settings().seed, number);
  const int world_size = chance.between(2, 4);
  const int victim = chance.below(world_size);
  const std::chrono::milliseconds after(chance.below(1500));
  LrunProcess lrun({"--devices", std::to_string(world_size), "--grace", "1s", ALL_REDUCE_WORKER});
  const auto begin = std::chrono::steady_clock::now();
  pid_t pid = kNoProcess;
  (void)lrun.read_until([&] {
    if (pid == kNoProcess) pid = pid_of_rank(lrun, victim);
    return pid != kNoProcess && std::chrono::steady_clock::now() - begin >= after;
  });
  if (!lrun.is_process(pid)) return fmt::format("rank {} is not there: {}", victim, lrun.err());
  ::kill(pid, SIGKILL);
  const LrunEnd end = lrun.wait();
  const bool named = end.exited && end.code == 128 + SIGKILL && read_result(lrun.state()).culprit == victim;
  return named ? std::string()
               : fmt::format("rank {} of {} was killed after {} ms: {}", victim, world_size, after.count(), lrun.err());
}

TEST(RandomFaults, AWorkerKilledAmongOthersIsNamedAndLeavesNoSharedMemory) {
  std::cout << "seed " << settings().seed << std::endl;
  const std::set<std::string> before = shared_memory_of_lrun();
  const int runs = std::max(1, settings().runs / 10);
  std::mutex mutex;
  std::vector<std::string> not_named;
  for_each_number(runs, [&](int number) {
    const std::string trouble = kill_one(number);
    const std::lock_guard lock(mutex);
    if (!trouble.empty()) not_named.push_back(trouble);
  });
  std::cout << "named " << runs - static_cast<int>(not_named.size()) << " of " << runs << std::endl;
  EXPECT_LE(static_cast<int>(not_named.size()) * 100, runs) << fmt::format("{}", fmt::join(not_named, "\n"));
  // Memory that other tests of this machine make meanwhile goes away with them.
  std::vector<std::string> left;
  EXPECT_TRUE(eventually([&] {
    const std::set<std::string> now = shared_memory_of_lrun();
    left.clear();
    std::set_difference(now.begin(), now.end(), before.begin(), before.end(), std::back_inserter(left));
    return left.empty();
  })) << "left in /dev/shm: "
      << fmt::format("{}", fmt::join(left, " "));
}

}  // namespace
}  // namespace lrun::test
