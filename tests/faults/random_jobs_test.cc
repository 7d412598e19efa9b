// Jobs of several launchers with random faults. random_jobs [--runs=N] [--seed=S] [--only=N] [--at-once=N]
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "faults/job_plan.h"
#include "faults/played_job.h"
#include "faults/settings.h"

namespace lrun::test {
namespace {

TEST(RandomJobs, EveryJobEndsOnceAndLeavesNothing) {
  std::cout << "seed " << settings().seed << std::endl;
  std::mutex mutex;
  std::map<std::string, int> ends;
  std::vector<std::chrono::milliseconds> times;
  int rounds = 0;
  int trained = 0;
  const auto one = [&](int number) {
    const JobPlan plan = make_job_plan(settings().seed, number);
    const PlayedJob played = play(plan);
    const std::lock_guard lock(mutex);
    ++ends[played.end];
    rounds += played.rounds;
    trained += played.rounds > 0 ? 1 : 0;
    times.push_back(played.to_the_end);
    const std::string about = fmt::format("run {}: {}repeat it with: {} --seed={} --only={}\n{}", number, to_text(plan),
                                          settings().program, settings().seed, number, played.transcript);
    for (const std::string& problem : played.problems) ADD_FAILURE() << problem << "\n" << about;
    if (settings().only >= 0) std::cout << about << std::endl;
  };
  if (settings().only >= 0) return one(settings().only);
  for_each_number(settings().runs, one);
  for (const auto& [end, count] : ends) std::cout << fmt::format("{:5} {}\n", count, end);
  std::sort(times.begin(), times.end());
  std::cout << fmt::format(
      "{} of {} jobs trained, in {} rounds; from the last deed to the end: p50 {} ms, longest {} ms\n", trained,
      times.size(), rounds, times[times.size() / 2].count(), times.back().count());
  // Or the test sees nothing.
  EXPECT_GE(trained * 2, settings().runs);
}

}  // namespace
}  // namespace lrun::test
