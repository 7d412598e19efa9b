#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

using Words = std::vector<std::string>;

TEST(InformationFlags, ReadEveryFormOfADryRun) {
  EXPECT_EQ(request_of({"p"}).dry_run, DryRun::kNo);
  EXPECT_EQ(request_of({"--dry-run", "p"}).dry_run, DryRun::kText);
  EXPECT_EQ(request_of({"--dry-run=text", "p"}).dry_run, DryRun::kText);
  EXPECT_EQ(request_of({"--dry-run=JSON", "p"}).dry_run, DryRun::kJson);
  EXPECT_EQ(request_of({"--dry-run", "json"}).command, Words{"json"}) << "the value needs its '='";
}

TEST(InformationFlags, AcceptTorchrunsFlagsThatAskForNothingOnOneMachine) {
  const LaunchRequest plain = request_of({"p"});
  for (const Words& words :
       {Words{"--rdzv-endpoint=", "p"}, Words{"--monitor-interval", "0.1", "p"}, Words{"--start-method=fork", "p"},
        Words{"-r", "0", "-t0", "p"}, Words{"--role=default", "p"}}) {
    EXPECT_EQ(request_of(words), plain) << words.front();
  }
}

TEST(InformationFlags, KeepAtMostASecondOfTorchrunsInterval) {
  EXPECT_EQ(request_of({"--monitor-interval=0.5", "p"}).monitor_interval, Duration(500));
  EXPECT_EQ(request_of({"--monitor-interval", "5", "p"}).monitor_interval, Duration(1000));
  EXPECT_EQ(request_of({"--monitor-interval=inf", "p"}).monitor_interval, Duration(1000));
}

TEST(InformationFlags, RefuseWrongValuesWithAWayOut) {
  expect_refused({
      {"--monitor-interval=0", {"'--monitor-interval 0'", "0", "'--monitor-interval 0.1'"}},
      {"--monitor-interval=soon", {"'--monitor-interval soon'", "0", "'--monitor-interval 0.1'"}},
      {"--start-method=thread",
       {"'--start-method thread'", "allowed: spawn, fork, forkserver", "'--start-method spawn'"}},
      {"--dry-run=yaml", {"'--dry-run=yaml'", "allowed: text, json", "'--dry-run=text'"}},
  });
}

}  // namespace
}  // namespace lrun::launcher
