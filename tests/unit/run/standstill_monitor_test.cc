#include "run/standstill_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inspect/job_answers.h"
#include "report/stack_text.h"
#include "unit/run/attempt_fixture.h"

namespace lrun::launcher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Two ranks that are looked at every twentieth of a second. The test says where they are.
class StandstillMonitorTest : public AttemptFixture {
 protected:
  void watch(const std::string& script, bool python = true) {
    plan_for(script, 2);
    supervise();
    look_ = [this, python](EventLoop&, const std::vector<RankProcess>& processes, LookKind kind, SeenRanks seen) {
      const bool closer = kind == LookKind::kBrief;
      EXPECT_TRUE(kind == LookKind::kUndisturbed || (!python && closer))
          << "no debugger may stop a run that nobody asked about";
      ++(closer ? closer_looks : looks);
      std::vector<StackSample> samples;
      for (const RankProcess& process : processes) {
        samples.push_back(python ? where(process) : where_native(process, closer));
      }
      auto timer = std::make_shared<EventLoop::Timer>();
      *timer = loop.after(Duration(0), [this, samples, seen = std::move(seen)] {
        seen(samples, "");
        loop.stop();
      });
      return timer;
    };
    monitor.emplace(
        loop, StandstillMonitor::Facts{.attempt = *attempt,
                                       .logs = *logs,
                                       .sink = sink,
                                       .look = look_,
                                       .launcher = ::getpid(),
                                       .reads_python = python,
                                       .ask = [this](auto words, const auto& reply) { answer_of_job(words, reply); },
                                       .period = Duration(50)});
    monitor->begin();
  }

  StackSample where(const RankProcess& process) const {
    const bool first = process.rank == 0 && nodes == 1;
    StackSample sample{.rank = process.rank, .pid = process.pid, .command = "python3", .state = 'S', .threads = 1};
    sample.activity = 7;
    sample.system_call = "futex";
    sample.python = {{first ? "evaluate" : operation, "train.py:4" + std::to_string(moves ? looks : 0)},
                     {"main", "train.py:9"}};
    return sample;
  }

  StackSample where_native(const RankProcess& process, bool closer) const {
    StackSample sample{.rank = process.rank, .pid = process.pid, .command = "train", .state = 'S', .threads = 1};
    sample.activity = 7;
    sample.system_call = "futex";
    if (closer) sample.native = {{process.rank == 0 && !came ? "load_batch()" : "all_reduce", "h"}, {"main", "h"}};
    return sample;
  }

  /// The other launcher's ranks are where these are.
  void answer_of_job(std::string_view words, const ControlSocket::Reply& reply) {
    const bool closer = words == kBriefStackWords;
    ++(closer ? closer_looks : asked);
    LauncherStacks own = monitor->standing_still();
    if (closer) {
      own.samples.clear();
      for (const RankProcess& process : attempt->processes()) own.samples.push_back(where_native(process, true));
    }
    LauncherStacks other = own;
    for (StackSample& sample : other.samples) {
      sample.rank += 2;
      for (int& rank : sample.alike) rank += 2;
    }
    if (others_move) other.samples.clear();
    reply(job_answers_text({to_json_within(own, most), to_json_within(other, most)}));
  }

  std::string operation = "all_reduce";
  int asked = 0;
  std::size_t most = 10'000;  ///< bytes of an answer
  bool others_move = false;
  bool moves = false;  ///< the ranks, from look to look
  RecordingSink sink;
  int looks = 0;
  int closer_looks = 0;
  bool came = false;  ///< rank 0, by the time of a closer look
  std::optional<StandstillMonitor> monitor;

 private:
  LookAtRanks look_;
};

constexpr const char* kSleeps = "exec sleep 1000";

TEST_F(StandstillMonitorTest, NotesOnceWhereRanksWaitForEachOther) {
  watch(kSleeps);
  run_until([this] { return !sink.text().empty(); });
  EXPECT_THAT(sink.text(),
              AllOf(HasSubstr("no rank has moved for "), HasSubstr(": rank 0 is in futex(), called from evaluate")));
  EXPECT_THAT(sink.text(), HasSubstr("the others wait for rank 0"));
  const std::string told = sink.text();
  run_until([this, before = looks] { return looks > before + 6; });
  EXPECT_EQ(sink.text(), told);
  stop();
  run_until_finished();
}

TEST_F(StandstillMonitorTest, TellsOfAJobWhereTheRanksOfAllItsLaunchersWait) {
  nodes = 2;
  watch(kSleeps);
  run_until([this] { return !sink.text().empty(); });
  EXPECT_THAT(sink.text(), AllOf(HasSubstr("no rank has moved for "), HasSubstr(": 4 ranks wait in all_reduce")));
  EXPECT_THAT(sink.text(), HasSubstr("each rank has to call 'all_reduce' as often"));
  const int before = asked;
  run_until([this, looks_before = looks] { return looks > looks_before; });
  EXPECT_EQ(asked, before) << "it has been told";
  EXPECT_EQ(monitor->standing_still().samples.size(), 1U) << "the other one may ask later";
  stop();
  run_until_finished();
}

/// One of many launchers has few bytes: ranks at the same place share a stack.
TEST_F(StandstillMonitorTest, TellsOfAJobWhoseAnswersAreShort) {
  nodes = 2;
  most = 600;
  watch(kSleeps);
  run_until([this] { return !sink.text().empty(); });
  EXPECT_THAT(sink.text(), AllOf(HasSubstr("no rank has moved for "), HasSubstr(": 4 ranks wait in all_reduce")));
  stop();
  run_until_finished();
}

TEST_F(StandstillMonitorTest, SaysNothingOfAJobWhileRanksElsewhereMove) {
  nodes = 2;
  others_move = true;
  watch(kSleeps);
  run_until([this] { return asked == 5; });
  EXPECT_EQ(sink.text(), "");
  stop();
  run_until_finished();
}

TEST_F(StandstillMonitorTest, WaitsLongerWhileRanksBegin) {
  operation = "init_process_group";
  watch(kSleeps);
  const SteadyTime began = steady_now();
  run_until([this] { return !sink.text().empty(); });
  EXPECT_GE(steady_now() - began, Duration(14 * 50 - 25)) << sink.text();
  EXPECT_THAT(sink.text(), HasSubstr("the others wait for rank 0"));
  stop();
  run_until_finished();
}

TEST_F(StandstillMonitorTest, RanksThatWentOnWithoutAWordAreToldOfAgainAndLater) {
  watch(kSleeps);
  run_until([this] { return !sink.text().empty(); });
  const std::string first = sink.text();
  moves = true;
  run_until([this, before = looks] { return looks > before + 2; });
  moves = false;
  const SteadyTime stand = steady_now();
  run_until([this, &first] { return sink.text() != first; });
  EXPECT_GE(steady_now() - stand, Duration(300)) << "twice the 175 ms at least that were told first, but a look";
  stop();
  run_until_finished();
}

TEST_F(StandstillMonitorTest, ASilenceThatEndedByItselfMakesTheNextNoteLater) {
  const std::string go = (temporary / "go").string();
  ASSERT_EQ(::mkfifo(go.c_str(), 0600), 0);
  watch("[ $RANK = 1 ] || { read line < '" + go + "'; echo moves; }; exec sleep 1000");
  run_until([this] { return !sink.text().empty(); });
  const std::string first = sink.text();
  std::ofstream(go) << "go" << std::endl;
  out.read_until_it_says("moves");
  ::usleep(200'000);  // the launcher is busy: its next look comes some periods after the line
  const SteadyTime moved = steady_now();
  run_until([this, &first] { return sink.text() != first; });
  EXPECT_GE(steady_now() - moved, Duration(350)) << "twice the 175 ms at least that were told first";
  stop();
  run_until_finished();
}

TEST_F(StandstillMonitorTest, RanksThatMoveAreLookedAtAgainAndAgain) {
  moves = true;
  watch(kSleeps);
  run_until([this] { return looks == 4; });
  EXPECT_EQ(sink.text(), "");
  stop();
  run_until_finished();
}

/// Rank 1 reports, as liblrun does, that it waits in an all_reduce, and in the next one when a line comes.
std::string reports_a_call(const std::string& go) {
  const std::string bytes = "printf \"\\00$1\\0\\0\\0\\0\\0\\0\\0\\002\\00$1\\0\\0\\0\\0\\0\\0\"";
  const auto write_at = [](std::size_t offset) {
    return " | dd of=/proc/self/fd/${LRUN_PROGRESS_FD%:*} bs=1 conv=notrunc 2>/dev/null seek=$((${LRUN_PROGRESS_FD#*:} "
           "+ " +
           std::to_string(offset) + "))";
  };
  const std::string pid =
      "printf \"$(printf '\\\\%03o\\\\%03o\\\\%03o' $(($$ % 256)) $(($$ / 256 % 256)) $(($$ / 65536)))\"";
  return "report() { " + pid + write_at(offsetof(Progress, calls_pid)) + "; " + bytes +
         write_at(offsetof(Progress, calls)) + "; }; [ $RANK = 0 ] || { report 1; while read line < '" + go +
         "'; do report $line; done; }; exec sleep 1000";
}
static_assert(offsetof(Progress, call) == offsetof(Progress, calls) + sizeof Progress::calls);

TEST_F(StandstillMonitorTest, RanksThatReportTheirCallsAreLookedAtCloselyOnce) {
  watch(reports_a_call("/dev/null"), false);
  run_until([this] { return !sink.text().empty(); });
  EXPECT_THAT(sink.text(), HasSubstr(": rank 0 is in futex(), called from load_batch() (h); rank 1 waits in all_reduce"
                                     " at main (h)"));
  EXPECT_THAT(sink.text(), HasSubstr("the others wait for rank 0"));
  run_until([this, before = looks] { return looks > before + 6; });
  EXPECT_EQ(closer_looks, 1);
  stop();
  run_until_finished();
}

TEST_F(StandstillMonitorTest, RanksOfAJobThatReportTheirCallsAreLookedAtByTheirLaunchers) {
  nodes = 2;
  watch(reports_a_call("/dev/null"), false);
  run_until([this] { return !sink.text().empty(); });
  EXPECT_THAT(sink.text(), HasSubstr(": 2 ranks are in futex(), called from load_batch() (h); 2 ranks wait in "
                                     "all_reduce at main (h)"));
  EXPECT_THAT(sink.text(), HasSubstr("the others wait for ranks 0,2"));
  EXPECT_EQ(closer_looks, 1);
  stop();
  run_until_finished();
}

TEST_F(StandstillMonitorTest, ALookAtARankThatWentOnIsMadeAgainLater) {
  came = true;
  watch(reports_a_call("/dev/null"), false);
  run_until([this] { return closer_looks == 1; });
  const SteadyTime first = steady_now();
  run_until([this] { return closer_looks == 2; });
  EXPECT_GE(steady_now() - first, Duration(350)) << "twice the 175 ms at least that they stood still first";
  EXPECT_EQ(sink.text(), "");
  stop();
  run_until_finished();
}

TEST_F(StandstillMonitorTest, ANewCallIsToldOfAgainAndLater) {
  const std::string go = (temporary / "go").string();
  ASSERT_EQ(::mkfifo(go.c_str(), 0600), 0);
  watch(reports_a_call(go), false);
  run_until([this] { return !sink.text().empty(); });
  const std::string first = sink.text();
  const SteadyTime moved = steady_now();
  std::ofstream(go) << "2" << std::endl;
  run_until([this, &first] { return sink.text() != first; });
  EXPECT_GE(steady_now() - moved, Duration(350)) << "twice the 175 ms at least that were told first";
  EXPECT_EQ(closer_looks, 2);
  stop();
  run_until_finished();
}

TEST_F(StandstillMonitorTest, ProgramsThatReportNoCallsAreNotLookedAt) {
  watch("echo started; exec sleep 1000", false);
  out.read_until_it_says("started");
  bool passed = false;  // ten periods
  const EventLoop::Timer timer = loop.after(Duration(500), [&] {
    passed = true;
    loop.stop();
  });
  run_until([&] { return passed; });
  EXPECT_EQ(looks, 0);
  stop();
  run_until_finished();
}

}  // namespace
}  // namespace lrun::launcher
