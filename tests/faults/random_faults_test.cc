// Short runs with random faults. random_faults [--runs=N] [--launches=N] [--seed=S] [--only=N] [--at-once=N]
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "faults/played_run.h"
#include "faults/run_plan.h"
#include "faults/settings.h"
#include "support/lrun_process.h"

namespace lrun::test {
namespace {

std::string quantiles(std::vector<std::chrono::milliseconds> times) {
  if (times.empty()) return "none";
  std::sort(times.begin(), times.end());
  const auto at = [&](std::size_t percent) { return times[(times.size() - 1) * percent / 100].count(); };
  return fmt::format("p50 {} ms, p99 {} ms, longest {} ms", at(50), at(99), times.back().count());
}

/// Counts the outcomes of many runs.
class Tally {
 public:
  /// \param order_is_known  of deaths that lrun sees together, because it stood still. Without pidfds it is not, and
  ///                        lrun need not name who was first.
  explicit Tally(bool order_is_known) : order_is_known_(order_is_known) {}

  void add(int number, const RunPlan& plan, const PlayedRun& played) {
    const std::lock_guard lock(mutex_);
    ++kinds_[plan.kind];
    to_the_end_.push_back(played.to_the_end);
    to_the_last_.push_back(played.to_the_last);
    if (order_is_known_ || !plan.sees_ends_together) {
      culprits_ += played.has_culprit ? 1 : 0;
      named_ += played.has_culprit && played.named ? 1 : 0;
    }
    const std::string about =
        fmt::format("run {}: {}repeat it with: {} --seed={} --only={}\n{}", number, to_text(plan),
                    settings().program + " --gtest_filter=RandomFaults.*", settings().seed, number, played.transcript);
    for (const std::string& problem : played.problems) ADD_FAILURE() << problem << "\n" << about;
    if (played.has_culprit && !played.named) std::cout << "not named: " << about << std::endl;
    constexpr std::chrono::milliseconds kPromised{1000};
    if (played.to_the_last > kPromised) {
      std::cout << fmt::format("the last process ended {} ms after lrun: ", played.to_the_last.count()) << about
                << std::endl;
    }
  }

  void judge(int least_percent) const {
    for (const auto& [kind, count] : kinds_) std::cout << fmt::format("{:5} {}\n", count, kind);
    std::cout << "named " << named_ << " of " << culprits_
              << " culprits\nto the end of lrun: " << quantiles(to_the_end_)
              << "\nfrom there to the end of the last process: " << quantiles(to_the_last_) << std::endl;
    EXPECT_GE(named_ * 100, culprits_ * least_percent);
  }

 private:
  bool order_is_known_;
  std::mutex mutex_;
  std::map<std::string, int> kinds_;
  std::vector<std::chrono::milliseconds> to_the_end_;
  std::vector<std::chrono::milliseconds> to_the_last_;
  int culprits_ = 0;
  int named_ = 0;
};

TEST(RandomFaults, EveryRunEndsLeavesNothingAndNamesTheCulprit) {
  std::cout << "seed " << settings().seed << std::endl;
  const bool is_wrapped = std::getenv("LRUN_TEST_UNDER") != nullptr;
  const bool order_is_known = !is_wrapped && std::getenv("LRUN_NO_PIDFD") == nullptr;
  Tally tally(order_is_known);
  const auto one = [&](int number) {
    RunPlan plan = make_run_plan(settings().seed, number);
    // Below a tool (valgrind) lrun needs more descriptors and time, and dies of some failures of exec.
    if (is_wrapped && (plan.file_limit > 0 || to_text(plan).find("bad-interpreter") != std::string::npos)) return;
    if (is_wrapped) plan.limit *= 4;
    tally.add(number, plan, play(plan));
  };
  if (settings().only >= 0) {
    std::cout << to_text(make_run_plan(settings().seed, settings().only)) << std::flush;
    one(settings().only);
  } else {
    for_each_number(settings().runs, one);
  }
  tally.judge(order_is_known ? 99 : 80);  // a machine that is busy slows lrun down, too
}

TEST(ManyLaunches, OfThirtyTwoWorkersNeverHang) {
  std::mutex mutex;
  std::vector<std::chrono::milliseconds> times;
  for_each_number(settings().launches, [&](int number) {
    const auto begin = std::chrono::steady_clock::now();
    LrunProcess lrun({"-n", "32", "--output", "raw", "sh", "-c", "echo $RANK"});
    const LrunEnd end = lrun.wait();
    const auto time = std::chrono::steady_clock::now() - begin;
    const std::lock_guard lock(mutex);
    times.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(time));
    EXPECT_TRUE(end.exited && end.code == 0) << "launch " << number << ": " << lrun.err();
    EXPECT_EQ(std::count(lrun.out().begin(), lrun.out().end(), '\n'), 32) << "launch " << number << ": " << lrun.out();
  });
  std::cout << times.size() << " launches of 32 workers: " << quantiles(times) << std::endl;
}

}  // namespace
}  // namespace lrun::test
