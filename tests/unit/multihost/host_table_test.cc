#include "multihost/host_table.h"

#include <gtest/gtest.h>

#include <csignal>

#include "process/exit_codes.h"

namespace lrun::launcher {
namespace {

constexpr ExitStatus kSuccess{ExitStatus::Kind::kExited, 0};
constexpr ExitStatus failure(int code) { return {ExitStatus::Kind::kExited, code}; }

HostTable table_of(std::size_t hosts) {
  HostTable table;
  for (std::size_t host = 0; host < hosts; ++host) table.add("h" + std::to_string(host), host == 0);
  return table;
}

/// All have answered and were told to go.
HostTable started(std::size_t hosts) {
  HostTable table = table_of(hosts);
  for (std::size_t host = 0; host < hosts; ++host) table.answered(host, {});
  table.start();
  return table;
}

TEST(HostTable, GivesAHostUpForGood) {
  HostTable table = table_of(2);
  table.cannot_be_used(1, "no answer in 30 s");
  table.answered(1, {});
  EXPECT_EQ(table.problems(), (std::vector<HostProblem>{{"h1", "no answer in 30 s"}}));
}

TEST(HostTable, IsCompleteWhenEachHostHasAnsweredOrCannotBeUsed) {
  HostTable table = table_of(3);
  table.answered(0, {});
  table.cannot_be_used(2, "no route");
  EXPECT_FALSE(table.all_answered());
  table.answered(1, {});
  EXPECT_TRUE(table.all_answered());
  EXPECT_EQ(table.problems(), (std::vector<HostProblem>{{"h2", "no route"}}));
  EXPECT_EQ(table.reached().at(0).name, "h0");
  EXPECT_TRUE(table.reached().at(0).here);
}

TEST(HostTable, SaysWhichHostsAreWaitedFor) {
  HostTable table = table_of(3);
  EXPECT_EQ(table.waits_for(), "connecting to 3 of 3 hosts: h0, h1, h2");
  table.answered(0, {});
  table.cannot_be_used(2, "no route");
  EXPECT_EQ(table.waits_for(), "connecting to 1 of 3 hosts: h1");
  EXPECT_EQ(table.state_text(1), "connecting");
  EXPECT_EQ(table.state_text(2), "cannot be used: no route");
  EXPECT_EQ(started(1).waits_for(), "starting on 1 host: h0");
  table = started(3);
  table.close(1);
  EXPECT_EQ(table.waits_for(), "starting on 2 hosts: h0, h2") << "the other is lost";
}

TEST(HostTable, OneHostAloneHasNobodyToMeet) {
  EXPECT_EQ(started(1)[0].stage, HostTable::Stage::kBegun);
  EXPECT_EQ(started(2)[0].stage, HostTable::Stage::kReady);
}

TEST(HostTable, ALossIsReportedByHostsThatHaveMet) {
  HostTable table = started(2);
  EXPECT_FALSE(table.loss_will_be_reported());
  table.begun(0);
  table.begun(1);
  EXPECT_TRUE(table.loss_will_be_reported());
  EXPECT_FALSE(table.end_was_reported());
  table.ended(0, failure(3));
  EXPECT_TRUE(table.end_was_reported());
}

TEST(HostTable, TheJobIsOverAfterOneSuccessOrWithoutEnoughHosts) {
  HostTable table = started(3);
  table.ended(0, failure(3));
  EXPECT_FALSE(table.job_is_over(2)) << "two are enough";
  EXPECT_TRUE(table.job_is_over(3));
  table.ended(1, kSuccess);
  EXPECT_TRUE(table.job_is_over(2));
}

TEST(HostTable, RunsUntilTheLastConnectionHasEnded) {
  HostTable table = started(2);
  EXPECT_EQ(table.running(), 2);
  table.ended(0, kSuccess);
  EXPECT_EQ(table.running(), 1);
  EXPECT_TRUE(table.close(0));
  EXPECT_FALSE(table.close(0)) << "it is over already";
  EXPECT_FALSE(table.all_over());
  table.close(1);
  EXPECT_TRUE(table.all_over());
}

TEST(HostTable, TheCodeIsThatOfTheFirstHostThatHasMetTheOthers) {
  HostTable table = started(2);
  table.begun(0);
  table.begun(1);
  table.ended(1, failure(4));
  EXPECT_EQ(table.exit_code(false), 4);
  table.ended(0, failure(3));
  EXPECT_EQ(table.exit_code(false), 3);
}

TEST(HostTable, TheHostThatKeptTheJobFromBeginningHasTheCode) {
  HostTable table = started(3);
  table.ended(0, failure(exit_code_of_signal(SIGTERM)));
  table.failed_to_start(2);
  EXPECT_EQ(table.exit_code(true), kExitRefused);
  table.ended(1, failure(127));
  EXPECT_EQ(table.exit_code(true), 127);
}

TEST(HostTable, AHostThatTheJobDidWithoutHasNotTheCode) {
  HostTable table = started(3);
  table.ended(1, failure(127));
  table.begun(2);
  table.ended(2, kSuccess);
  EXPECT_EQ(table.exit_code(false), 0) << "the first host is lost";
  table.begun(0);
  table.ended(0, failure(7));
  EXPECT_EQ(table.exit_code(false), 7);
}

TEST(HostTable, HostsThatWereStoppedSayNothing) {
  HostTable table = started(2);
  table.ended(0, failure(exit_code_of_signal(SIGTERM)));
  EXPECT_EQ(table.exit_code(true), kExitRefused);
  EXPECT_EQ(table.exit_code(false), exit_code_of_signal(SIGTERM));
}

TEST(HostTable, WithoutAnEndTheCodeIsLrunsOwn) { EXPECT_EQ(started(2).exit_code(false), kExitRefused); }

}  // namespace
}  // namespace lrun::launcher
