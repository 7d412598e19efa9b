// Short runs with random faults. random_faults [--runs=N] [--launches=N] [--seed=S] [--only=N] [--at-once=N]
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "faults/played_run.h"
#include "faults/run_plan.h"
#include "support/lrun_process.h"

namespace lrun::test {
namespace {

struct Settings {
  std::uint64_t seed = std::random_device{}();
  int runs = 20;
  int launches = 5;
  int only = -1;
  int at_once = 4;
  std::string program;
};

Settings settings;

/// Calls `one` for every number below `count`, some at the same time.
void for_each_number(int count, const std::function<void(int)>& one) {
  std::atomic<int> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < std::min(settings.at_once, count); ++i) {
    threads.emplace_back([&] {
      for (int number = next++; number < count; number = next++) one(number);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::string quantiles(std::vector<std::chrono::milliseconds> times) {
  if (times.empty()) return "none";
  std::sort(times.begin(), times.end());
  const auto at = [&](std::size_t percent) { return times[(times.size() - 1) * percent / 100].count(); };
  return fmt::format("p50 {} ms, p99 {} ms, longest {} ms", at(50), at(99), times.back().count());
}

/// Counts what many runs came to.
class Tally {
 public:
  void add(int number, const RunPlan& plan, const PlayedRun& played) {
    const std::lock_guard lock(mutex_);
    ++kinds_[plan.kind];
    to_the_end_.push_back(played.to_the_end);
    to_the_last_.push_back(played.to_the_last);
    culprits_ += played.has_culprit ? 1 : 0;
    named_ += played.has_culprit && played.named ? 1 : 0;
    const std::string about = fmt::format("run {}: {}repeat it with: {} --seed={} --only={}\n{}", number, to_text(plan),
                                          settings.program, settings.seed, number, played.transcript);
    for (const std::string& problem : played.problems) ADD_FAILURE() << problem << "\n" << about;
    if (played.has_culprit && !played.named) std::cout << "not named: " << about << std::endl;
    constexpr std::chrono::milliseconds kPromised{1000};
    if (played.to_the_last > kPromised) {
      std::cout << fmt::format("the last process ended {} ms after lrun: ", played.to_the_last.count()) << about
                << std::endl;
    }
  }

  /// At least 99 % of the culprits are to be named.
  void judge() const {
    for (const auto& [kind, count] : kinds_) std::cout << fmt::format("{:5} {}\n", count, kind);
    std::cout << "named " << named_ << " of " << culprits_
              << " culprits\nto the end of lrun: " << quantiles(to_the_end_)
              << "\nfrom there to the end of the last process: " << quantiles(to_the_last_) << std::endl;
    EXPECT_GE(named_ * 100, culprits_ * 99);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> kinds_;
  std::vector<std::chrono::milliseconds> to_the_end_;
  std::vector<std::chrono::milliseconds> to_the_last_;
  int culprits_ = 0;
  int named_ = 0;
};

TEST(RandomFaults, EveryRunEndsLeavesNothingAndNamesTheCulprit) {
  std::cout << "seed " << settings.seed << std::endl;
  Tally tally;
  const bool is_wrapped = std::getenv("LRUN_TEST_UNDER") != nullptr;
  const auto one = [&](int number) {
    RunPlan plan = make_run_plan(settings.seed, number);
    // Whatever it runs below (valgrind) needs descriptors of its own, and time.
    if (is_wrapped && plan.file_limit > 0) return;
    if (is_wrapped) plan.limit *= 4;
    tally.add(number, plan, play(plan));
  };
  if (settings.only >= 0) {
    std::cout << to_text(make_run_plan(settings.seed, settings.only)) << std::flush;
    one(settings.only);
  } else {
    for_each_number(settings.runs, one);
  }
  tally.judge();
}

TEST(ManyLaunches, OfThirtyTwoWorkersNeverHang) {
  std::mutex mutex;
  std::vector<std::chrono::milliseconds> times;
  for_each_number(settings.launches, [&](int number) {
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

bool take(const std::string& word) {
  const auto equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (value.empty() || value.find_first_not_of("0123456789") != std::string::npos) return false;
  if (name == "--seed") {
    settings.seed = std::stoull(value);
    return true;
  }
  const std::map<std::string, int*> numbers{{"--runs", &settings.runs},
                                            {"--launches", &settings.launches},
                                            {"--only", &settings.only},
                                            {"--at-once", &settings.at_once}};
  const auto found = numbers.find(name);
  if (found == numbers.end()) return false;
  *found->second = std::stoi(value);
  return true;
}

}  // namespace
}  // namespace lrun::test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  lrun::test::settings.program = std::string(argv[0]) + " --gtest_filter=RandomFaults.*";
  for (int i = 1; i < argc; ++i) {
    if (lrun::test::take(argv[i])) continue;
    std::cerr << "unknown argument '" << argv[i] << "'\n";
    return 2;
  }
  // What a shell's background job ignores, lrun would ignore as well.
  for (const int number : {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGPIPE}) std::signal(number, SIG_DFL);
  return RUN_ALL_TESTS();
}
