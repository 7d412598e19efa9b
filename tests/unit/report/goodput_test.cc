#include "report/goodput.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace lrun::launcher {
namespace {

using ::testing::HasSubstr;
using End = AttemptUse::End;
using Fate = WorkerSpan::Fate;

/// A job in seconds since its beginning.
class Job {
 public:
  explicit Job(std::string id = "r1", std::int64_t launched = 0, std::int64_t started = 0) {
    run_.run_id = std::move(id);
    run_.launched_ms = at(launched);
    run_.started_ms = at(started);
  }

  /// Two ranks that reach `milestone` after `ready` and one more second, fail or end at `end`, the second one a second
  /// later.
  Job& round(int begin, int ready, int end, Fate fate, std::string_view milestone = kFirstStep) {
    const int number = run_.workers.empty() ? 0 : run_.workers.back().round + 1;
    for (const int rank : {0, 1}) {
      WorkerSpan worker{.rank = rank, .attempt = number, .round = number, .spawned_ms = at(begin)};
      if (ready != 0) worker.milestones.push_back({at(ready + rank), std::string(milestone)});
      if (fate != Fate::kRunning) worker.ended_ms = at(end + rank);
      worker.fate = rank == 1 && fate == Fate::kFailed ? Fate::kStopped : fate;
      run_.workers.push_back(std::move(worker));
    }
    return *this;
  }
  Job& saved(int kept, int in_memory = 0) {
    run_.checkpoints.push_back(
        {run_.workers.back().round, kept == 0 ? 0 : at(kept), in_memory == 0 ? 0 : at(in_memory)});
    return *this;
  }
  Job& stopped(int when) {
    run_.stops_ms.push_back(at(when));
    return *this;
  }
  Job& ended(int when, const std::string& reason = "worker failed") {
    run_.ended_ms = at(when);
    run_.reason = reason;
    return *this;
  }
  Job& now(int when) {
    run_.now_ms = at(when);
    return *this;
  }
  Job& goes_on(int when) {
    run_.goes_on_ms.push_back(at(when));
    return *this;
  }
  /// Its workers were seen then.
  Job& used(int when) {
    run_.workers.back().usage.push_back({.ms = at(when)});
    return *this;
  }
  [[nodiscard]] const Timeline& timeline() const { return run_; }
  [[nodiscard]] Goodput goodput() const { return goodput_of({run_}); }

  static std::int64_t at(std::int64_t seconds) { return 1'700'000'000'000 + seconds * 1000; }

 private:
  Timeline run_;
};

/// In seconds.
TimeUse use(int useful, int starting, int lost, int waiting, int stopping) {
  return {useful * 1000, starting * 1000, lost * 1000, waiting * 1000, stopping * 1000};
}

void expect_use(const TimeUse& found, const TimeUse& expected) {
  EXPECT_EQ(found.useful, expected.useful) << "useful";
  EXPECT_EQ(found.starting, expected.starting) << "starting";
  EXPECT_EQ(found.lost, expected.lost) << "lost";
  EXPECT_EQ(found.waiting, expected.waiting) << "waiting";
  EXPECT_EQ(found.stopping, expected.stopping) << "stopping";
}

TEST(Goodput, OfARunThatSucceedsIsAllButItsStartAndItsWait) {
  const Goodput goodput = Job("r1", 0, 5).round(5, 14, 90, Fate::kSucceeded).ended(91, "succeeded").goodput();
  expect_use(goodput.use, use(76, 10, 0, 5, 0));
  EXPECT_EQ(goodput.began_ms, Job::at(0));
  EXPECT_EQ(goodput.until_ms, Job::at(91));
  EXPECT_DOUBLE_EQ(goodput.share(), 76.0 / 91);
  EXPECT_EQ(goodput.ready, Goodput::Ready::kByStep);
  EXPECT_EQ(goodput.attempts.front().end, End::kSucceeded);
}

TEST(Goodput, CountsWorkUpToTheNewestCheckpointBeforeAFailure) {
  const Goodput goodput = Job()
                              .round(0, 9, 50, Fate::kFailed)
                              .saved(40)
                              .round(60, 69, 100, Fate::kSucceeded)
                              .ended(101, "succeeded")
                              .goodput();
  expect_use(goodput.attempts[0].use, use(30, 10, 10, 0, 1));
  expect_use(goodput.attempts[1].use, use(31, 10, 0, 9, 0));
  expect_use(goodput.use, use(61, 20, 10, 9, 1));
  EXPECT_TRUE(goodput.knows_checkpoints);
  EXPECT_EQ(goodput.attempts[0].end, End::kFailed);
}

TEST(Goodput, HasLostAllWorkWhereNoCheckpointIsKnown) {
  const Goodput goodput = Job().round(0, 9, 50, Fate::kFailed).ended(51).goodput();
  expect_use(goodput.use, use(0, 10, 40, 0, 1));
  EXPECT_FALSE(goodput.knows_checkpoints);
  EXPECT_NE(goodput_text(goodput, "").find("--checkpoint-path says where they are"), std::string::npos);
}

TEST(Goodput, LosesNothingOfACheckpointThatIsSavedWhileWorkersAreStopped) {
  const Goodput goodput =
      Job().round(0, 9, 55, Fate::kStopped).stopped(50).saved(54).ended(56, "interrupted").goodput();
  expect_use(goodput.use, use(40, 10, 0, 0, 6));
  EXPECT_EQ(goodput.attempts.front().end, End::kStopped);
}

TEST(Goodput, OfWorkersThatEndWellWhenTheyAreStoppedIsUpToTheCheckpoint) {
  const Goodput goodput =
      Job().round(0, 9, 55, Fate::kSucceeded).stopped(50).saved(40).ended(56, "interrupted").goodput();
  expect_use(goodput.use, use(30, 10, 10, 0, 6));
  EXPECT_EQ(goodput.attempts.front().end, End::kStopped);
}

TEST(Goodput, CountsACheckpointInMemoryOnlyWhereALaterStartHasKeptItsWork) {
  Job job;
  job.round(0, 9, 50, Fate::kFailed).saved(20, 45).round(51, 60, 100, Fate::kFailed).saved(20, 90).ended(101);
  const Goodput goodput = job.goodput();
  expect_use(goodput.attempts[0].use, use(10, 10, 30, 0, 1));
  expect_use(goodput.attempts[1].use, use(0, 10, 39, 0, 1));
  job.round(102, 110, 150, Fate::kSucceeded).ended(151, "succeeded");
  expect_use(job.goodput().attempts[0].use, use(35, 10, 5, 0, 1));
}

TEST(Goodput, IsNothingOfAStartInWhichARankNeverBecameReady) {
  Job job;
  job.round(0, 0, 20, Fate::kFailed).round(21, 29, 50, Fate::kSucceeded).ended(51, "succeeded");
  expect_use(job.goodput().attempts[0].use, use(0, 20, 0, 0, 1));
}

TEST(Goodput, DoesNotWaitForRanksThatAreNeverReady) {
  Job job;
  job.round(0, 9, 50, Fate::kSucceeded).ended(51, "succeeded");
  Timeline timeline = job.timeline();
  timeline.workers[1].milestones.clear();
  expect_use(goodput_of({timeline}).use, use(42, 9, 0, 0, 0));
}

TEST(Goodput, TakesTheStoreWhereNoRankTellsSteps) {
  const Goodput goodput = Job().round(0, 9, 50, Fate::kSucceeded, kConnectedToStore).ended(51, "succeeded").goodput();
  EXPECT_EQ(goodput.ready, Goodput::Ready::kByStore);
  expect_use(goodput.use, use(41, 10, 0, 0, 0));
}

TEST(Goodput, OfAProgramThatTellsNothingHasNoStart) {
  const Goodput goodput = Job().round(0, 0, 50, Fate::kSucceeded).ended(51, "succeeded").goodput();
  EXPECT_EQ(goodput.ready, Goodput::Ready::kUnknown);
  expect_use(goodput.use, use(51, 0, 0, 0, 0));
}

TEST(Goodput, OfALivingRunIsUpToNow) {
  Job job;
  job.round(0, 9, 50, Fate::kFailed).saved(40).round(52, 61, 0, Fate::kRunning).now(100);
  const Goodput goodput = job.goodput();
  expect_use(goodput.attempts[1].use, use(38, 10, 0, 1, 0));
  EXPECT_EQ(goodput.attempts[1].end, End::kRuns);
}

TEST(Goodput, OfALivingRunTakesTheStoreUntilItsFirstStepsAreWritten) {
  Job job;
  job.round(0, 9, 50, Fate::kFailed).saved(50).round(52, 55, 0, Fate::kRunning, kConnectedToStore).now(100);
  expect_use(job.goodput().attempts[1].use, use(44, 4, 0, 1, 0));
}

TEST(Goodput, OfALivingRunThatWaitsForNodesGrowsByTheWait) {
  const Goodput goodput = Job().round(0, 9, 50, Fate::kFailed).saved(50).now(100).goodput();
  expect_use(goodput.use, use(40, 10, 0, 49, 1));
}

TEST(Goodput, OfRequeuedRunsHasTheTimeBetweenThem) {
  const Job first = Job("r1", 0, 1).round(1, 9, 50, Fate::kStopped).stopped(49).saved(49).ended(51, "interrupted");
  const Job second = Job("r2", 151, 152).round(152, 160, 200, Fate::kSucceeded).ended(201, "succeeded");
  const Goodput goodput = goodput_of({first.timeline(), second.timeline()});
  EXPECT_EQ(goodput.runs, 2);
  expect_use(goodput.use, use(39 + 40, 9 + 9, 0, 1 + 101, 2));
  EXPECT_EQ(goodput.use.whole(), 201'000);
  EXPECT_EQ(goodput.attempts[1].run_id, "r2");
}

TEST(Goodput, OfARunWhoseLauncherWasKilledIsLost) {
  const Goodput goodput = Job().round(0, 9, 0, Fate::kRunning, kConnectedToStore).used(60).goodput();
  expect_use(goodput.use, use(0, 10, 50, 0, 0));
  EXPECT_EQ(goodput.attempts.front().end, End::kUnknown);
}

TEST(Goodput, OfALivingStartIsWorkWhereFirstStepsAreNotWrittenYetAndNobodyUsesTheStore) {
  Job job;
  job.round(0, 9, 50, Fate::kFailed).saved(50).round(52, 0, 0, Fate::kRunning).now(100);
  expect_use(job.goodput().attempts[1].use, use(48, 0, 0, 2 - 1, 0));
}

TEST(Goodput, OfALivingStartThatHasNotReachedTheStoreIsItsStart) {
  Job job;
  job.round(0, 9, 50, Fate::kFailed, kConnectedToStore).saved(50).round(52, 0, 0, Fate::kRunning).now(100);
  expect_use(job.goodput().attempts[1].use, use(0, 48, 0, 1, 0));
}

TEST(Goodput, OfAStartThatFailedOnAnotherNodeIsLost) {
  Job job;
  job.round(0, 9, 50, Fate::kSucceeded).round(60, 69, 90, Fate::kSucceeded).ended(100, "succeeded");
  const Goodput goodput = job.goodput();
  EXPECT_EQ(goodput.attempts[0].end, End::kFailed);
  expect_use(goodput.attempts[0].use, use(0, 10, 50, 0, 0));
  expect_use(goodput.attempts[1].use, use(30, 10, 0, 0, 0));
}

TEST(Goodput, OfWorkersThatHaveEndedWellGoesOnWhileOtherNodesWork) {
  const Goodput goodput = Job().round(0, 9, 50, Fate::kSucceeded).now(80).goodput();
  EXPECT_EQ(goodput.attempts[0].end, End::kRuns);
  expect_use(goodput.use, use(70, 10, 0, 0, 0));
}

TEST(Goodput, CountsTheTimeWithoutANodeAsWaiting) {
  Job job;
  job.round(0, 9, 50, Fate::kStopped).saved(50);
  Timeline timeline =
      job.stopped(50).goes_on(52).round(90, 99, 120, Fate::kSucceeded).ended(121, "succeeded").timeline();
  timeline.workers[1].ended_ms = 0;  // its node is lost
  timeline.workers[1].fate = Fate::kRunning;
  const Goodput goodput = goodput_of({timeline});
  EXPECT_EQ(goodput.attempts[0].end, End::kStopped);
  expect_use(goodput.use, use(40 + 21, 10 + 10, 0, 40, 0));
}

TEST(Goodput, CountsTheTimeInWhichARunWaitsForNodesThatDoNotComeAsWaiting) {
  const Goodput goodput = Job()
                              .round(0, 9, 50, Fate::kStopped)
                              .stopped(50)
                              .saved(50)
                              .goes_on(52)
                              .stopped(80)
                              .ended(81, "interrupted")
                              .goodput();
  expect_use(goodput.use, use(40, 10, 0, 30, 1));
}

TEST(Goodput, IsNotReadyWithoutOneOfTheRanksThatEverAre) {
  Job job;
  job.round(0, 9, 50, Fate::kFailed).round(60, 69, 90, Fate::kFailed).ended(91);
  Timeline timeline = job.timeline();
  for (WorkerSpan& worker : timeline.workers) {
    worker.rank += worker.round * 10;
    if (worker.round == 1) worker.milestones.clear();
  }
  expect_use(goodput_of({timeline}).attempts[1].use, use(0, 30, 0, 9, 1));
}

TEST(Goodput, HandsOutNoTimeTwiceWhereHostsHaveOtherClocks) {
  Job job;
  job.round(0, 9, 50, Fate::kFailed).saved(60).round(45, 40, 70, Fate::kSucceeded).ended(71, "succeeded");
  const Goodput goodput = job.goodput();
  EXPECT_EQ(goodput.use.whole(), goodput.until_ms - goodput.began_ms);
}

TEST(GoodputText, IsThis) {
  const Job first = Job("r1", 0, 1).round(1, 9, 50, Fate::kStopped).stopped(49).saved(48).ended(51, "interrupted");
  const Job second = Job("r2", 151, 152).round(152, 160, 4000, Fate::kSucceeded).ended(4001, "succeeded");
  EXPECT_EQ(goodput_text(goodput_of({first.timeline(), second.timeline()}), "bert"),
            "job bert: 2 runs, 2 starts of the workers, 1h07m since 2023-11-14 22:13:20 UTC\n"
            "goodput 96.9 %\n"
            "\n"
            "  useful       1h05m   96.9 %  work that a checkpoint or the end of the training has kept\n"
            "  lost          1.0s    0.0 %  work since the newest checkpoint before a failure or a stop\n"
            "  starting     18.0s    0.4 %  until every rank had begun its first step\n"
            "  stopping      2.0s    0.0 %  from a failure or the wish to stop until all workers had ended\n"
            "  waiting      1m42s    2.5 %  for nodes, before restarts, and between runs\n"
            "\n"
            "RUN  ATTEMPT  WAITED  STARTING  USEFUL  LOST  STOPPING  END\n"
            "r1         0    1.0s      9.0s   38.0s  1.0s      2.0s  stopped\n"
            "r2         0   1m41s      9.0s   1h04m  0.0s      0.0s  succeeded\n");
}

TEST(GoodputText, SaysWhatTheNumbersDoNotTell) {
  const auto text_of = [](const Job& job) { return goodput_text(job.goodput(), ""); };
  EXPECT_THAT(text_of(Job().round(0, 0, 50, Fate::kSucceeded).ended(51, "succeeded")),
              HasSubstr("  starting         -        -  not known: no rank told a step or reached the store\n"));
  EXPECT_THAT(text_of(Job().round(0, 9, 50, Fate::kFailed).saved(40).round(60, 69, 0, Fate::kRunning).used(90)),
              HasSubstr("nobody looked for checkpoints"));
  EXPECT_THAT(text_of(Job().round(0, 9, 0, Fate::kRunning, kConnectedToStore).now(90)),
              HasSubstr("all work of a start that goes on counts as useful so far\n"));
}

TEST(GoodputJson, HasTheSameInMilliseconds) {
  const Goodput goodput = Job().round(0, 9, 50, Fate::kFailed).saved(40).ended(51).goodput();
  const auto json = nlohmann::json::parse(goodput_json(goodput, "bert"));
  EXPECT_EQ(json["job"], "bert");
  EXPECT_EQ(json["ready_by"], "first_step");
  EXPECT_EQ(json["useful_ms"], 30'000);
  EXPECT_EQ(json["lost_ms"], 10'000);
  EXPECT_DOUBLE_EQ(json["goodput"], 30.0 / 51);
  EXPECT_EQ(json["attempts"][0]["end"], "failed");
  EXPECT_EQ(json["attempts"][0]["stopping_ms"], 1'000);
}

TEST(GoodputPage, HasABarOfAllUses) {
  const std::string page = goodput_html(Job().round(0, 9, 50, Fate::kFailed).saved(40).ended(51).goodput());
  EXPECT_NE(page.find("<h2>Goodput 58.8 %</h2>"), std::string::npos) << page;
  EXPECT_NE(page.find("width: 58.824%; background: var(--succeeded)"), std::string::npos) << page;
  EXPECT_EQ(page.find("waiting"), std::string::npos) << "what took no time has no place";
  EXPECT_EQ(goodput_html(Job().ended(100, "succeeded").goodput()), "") << "the workers are on other hosts";
}

}  // namespace
}  // namespace lrun::launcher
