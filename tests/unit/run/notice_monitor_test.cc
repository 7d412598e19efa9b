#include "run/notice_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/log_test_support.h"
#include "support/patience.h"
#include "support/recording_sink.h"
#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Duration kPause(2);
constexpr Duration kLong(60'000);

/// Goes through looks, each time one further, and stays at the last.
std::function<NoticeLook()> looks_in_turn(std::vector<NoticeLook> looks) {
  return [looks = std::move(looks), next = std::size_t{0}]() mutable {
    const NoticeLook look = looks[next];
    if (next + 1 < looks.size()) ++next;
    return look;
  };
}

class NoticeMonitorTest : public ::testing::Test {
 protected:
  void look(std::function<NoticeLook()> look, Duration patience = kLong) {
    monitor.emplace(NoticeMonitor::Facts{.loop = loop,
                                         .place = "/run/going",
                                         .of = "a test",
                                         .look = std::move(look),
                                         .pause = kPause,
                                         .patience = patience},
                    sink);
  }
  void listen() {
    monitor->tell(sink, [this](const std::string& notice) {
      notices.push_back(notice);
      loop.stop();
    });
  }
  void wait_for_notice() {
    listen();
    const TimeLimit limit(loop);
    loop.run();
    EXPECT_FALSE(limit.expired());
  }
  void wait_for_warnings(std::size_t count) {
    sink.printed = [this, count](const std::string&) {
      if (sink.entries.size() >= count) loop.stop();
    };
    const TimeLimit limit(loop);
    while (sink.entries.size() < count && !limit.expired()) loop.run();
  }

  std::vector<std::string> notices;
  RecordingSink sink;
  EventLoop loop;
  std::optional<NoticeMonitor> monitor;
};

TEST_F(NoticeMonitorTest, TellsANoticeOnce) {
  look(looks_in_turn({{}, {}, {"notice from AWS: stop", ""}}));
  wait_for_notice();
  EXPECT_THAT(notices, ElementsAre("notice from AWS: stop"));
  const SteadyTime deadline = test::soon();
  while (monitor->pid() != 0 && steady_now() < deadline) std::this_thread::yield();
  EXPECT_EQ(monitor->pid(), 0) << "the child has nothing left to do";
  EXPECT_THAT(sink.entries, IsEmpty());
}

TEST_F(NoticeMonitorTest, HasLookedOnceBeforeANodeJoinsOthers) {
  look(looks_in_turn({{"notice", ""}}));
  monitor->wait_for_first_look(kLong);
  EXPECT_EQ(monitor->notice(), "notice");
  wait_for_notice();
  EXPECT_THAT(notices, ElementsAre("notice")) << "one that came before is told, too";
}

TEST_F(NoticeMonitorTest, WaitsForNoFirstLookThatHangs) {
  look([]() -> NoticeLook {
    while (true) ::pause();
  });
  monitor->wait_for_first_look(Duration(20));
  EXPECT_EQ(monitor->notice(), "");
  EXPECT_NE(monitor->pid(), 0);
}

TEST_F(NoticeMonitorTest, TellsNobodyWhereNobodyListens) {
  look(looks_in_turn({{"notice", ""}}));
  listen();
  monitor->tell(sink, {});
  wait_for_notice();
  EXPECT_THAT(notices, ElementsAre("notice")) << "the last to listen";
}

TEST_F(NoticeMonitorTest, WarnsAtOnceWhereTheFirstLookFails) {
  look(looks_in_turn({{"", "no answer"}, {"", "no answer"}, {"", "another one"}, {"notice", ""}}));
  wait_for_notice();
  EXPECT_EQ(sink.text(), "lrun: warning: --notice: no answer; the run goes on, and lrun asks again\n");
}

TEST_F(NoticeMonitorTest, KeepsQuietAboutTroubleThatIsShort) {
  look(looks_in_turn({{}, {"", "no answer"}, {}, {"notice", ""}}));
  wait_for_notice();
  EXPECT_THAT(sink.entries, IsEmpty());
}

TEST_F(NoticeMonitorTest, WarnsOfTroubleThatLasts) {
  look(looks_in_turn({{}, {"", "no answer"}}), Duration(100));
  wait_for_warnings(1);
  // On a machine that is slow the second look, which fails, may not be over.
  EXPECT_THAT(sink.text(),
              AnyOf("lrun: warning: --notice: no answer, for 100ms; the run goes on, and lrun asks again\n",
                    HasSubstr("has not answered, for 100ms; ")));
}

TEST_F(NoticeMonitorTest, WarnsOfALookThatHangs) {
  look(
      [has_looked = false]() mutable -> NoticeLook {
        while (has_looked) ::pause();
        has_looked = true;
        return {};
      },
      Duration(30));
  wait_for_warnings(1);
  EXPECT_EQ(sink.text(),
            "lrun: warning: --notice: '/run/going' has not answered, for 30ms; the run goes on, and lrun asks again\n");
}

TEST_F(NoticeMonitorTest, WarnsAgainAfterAnAnswer) {
  const TemporaryFolder folder;
  const std::string answered = (folder.path() / "answered").string();
  look(
      [answered]() -> NoticeLook {
        if (::access(answered.c_str(), F_OK) != 0) return {"", "no answer"};
        if (::unlink(answered.c_str()) == 0) return {};
        return {"", "no answer"};
      },
      Duration(30));
  wait_for_warnings(1);
  std::ofstream(answered).flush();
  wait_for_warnings(2);
  EXPECT_EQ(sink.entries.size(), 2U);
}

TEST_F(NoticeMonitorTest, StartsAChildThatIsKilledAgain) {
  const TemporaryFolder folder;
  const std::string killed = (folder.path() / "killed").string();
  look([killed]() -> NoticeLook {
    if (::access(killed.c_str(), F_OK) == 0) return {"notice", ""};
    std::ofstream(killed).flush();
    std::abort();
  });
  wait_for_notice();
  EXPECT_THAT(notices, ElementsAre("notice"));
  EXPECT_THAT(sink.entries, IsEmpty());
}

TEST_F(NoticeMonitorTest, WarnsWhereItsChildIsKilledAgainAndAgain) {
  look([]() -> NoticeLook { std::abort(); });
  wait_for_warnings(1);
  EXPECT_EQ(sink.text(),
            "lrun: warning: --notice: none is seen any more: the process that looks for it was killed several times\n");
}

TEST_F(NoticeMonitorTest, TellsNothingOnceItIsStopped) {
  look(looks_in_turn({{"notice", ""}}));
  monitor->wait_for_first_look(kLong);
  listen();
  monitor->stop();
  const EventLoop::Timer later = loop.after(Duration(20), [this] { loop.stop(); });
  loop.run();
  EXPECT_THAT(notices, IsEmpty());
}

TEST_F(NoticeMonitorTest, TakesItsChildAlong) {
  look([]() -> NoticeLook { return {}; });
  const pid_t child = monitor->pid();
  monitor.reset();
  EXPECT_NE(::kill(child, 0), 0);
}

TEST_F(NoticeMonitorTest, KeepsQuietAboutAPlaceThatIsBusyAtFirst) {
  look(looks_in_turn({{"", "it answers 429", true}, {}, {"notice", ""}}));
  wait_for_notice();
  EXPECT_THAT(sink.entries, IsEmpty());
}

TEST_F(NoticeMonitorTest, ReadsATextOfTwoLinesAsOne) {
  look(looks_in_turn({{"", "'/a\nnode': not a directory"}, {"two\nlines", ""}}));
  wait_for_notice();
  EXPECT_THAT(notices, ElementsAre("two lines"));
}

}  // namespace
}  // namespace lrun::launcher
