#include "run/standstill_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>
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
  void watch(const std::string& script) {
    plan_for(script, 2);
    supervise();
    look_ = [this](EventLoop&, const std::vector<RankProcess>& processes, LookKind kind, SeenRanks seen) {
      EXPECT_EQ(kind, LookKind::kUndisturbed) << "no debugger may stop a run that nobody asked about";
      ++looks;
      std::vector<StackSample> samples;
      for (const RankProcess& process : processes) samples.push_back(where(process));
      auto timer = std::make_shared<EventLoop::Timer>();
      *timer = loop.after(Duration(0), [this, samples, seen = std::move(seen)] {
        seen(samples, "");
        loop.stop();
      });
      return timer;
    };
    monitor.emplace(loop, StandstillMonitor::Facts{.attempt = *attempt,
                                                   .logs = *logs,
                                                   .sink = sink,
                                                   .look = look_,
                                                   .launcher = ::getpid(),
                                                   .ask = [this](const auto& reply) { answer_of_job(reply); },
                                                   .period = Duration(50)});
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

  /// The other launcher's ranks are where these are.
  void answer_of_job(const ControlSocket::Reply& reply) {
    ++asked;
    const LauncherStacks own = monitor->standing_still();
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

}  // namespace
}  // namespace lrun::launcher
