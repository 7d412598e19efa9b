#include "verdict/job_verdict.h"

#include <gtest/gtest.h>

#include <csignal>
#include <limits>
#include <random>

#include "process/exit_codes.h"

namespace lrun {
namespace {

using Kind = RunEnd::Kind;
using Reports = std::vector<std::optional<JobReport>>;

constexpr std::int64_t kSecond = 1'000'000'000;

FailureRecord ended(int rank, int code, std::int64_t steady_ns, Cause cause = Cause::kOwnError) {
  FailureRecord record;
  record.node = rank < 2 ? "a" : "b";
  record.node_rank = rank / 2;
  record.rank = rank;
  record.value = code;
  record.steady_ns = record.wall_ns = steady_ns;
  record.cause = code == 0 ? Cause::kSucceeded : cause;
  return record;
}

FailureRecord stopped(int rank) {
  FailureRecord record = ended(rank, 0, 50);
  record.ending = FailureRecord::Ending::kSignaled;
  record.value = record.stop_signal = SIGTERM;
  record.cause = Cause::kStoppedByLrun;
  return record;
}

JobReport report(int node_rank, const RunEnd& end, std::int64_t end_ns, const std::vector<FailureRecord>& records,
                 const ClockShift& shift = {}) {
  return report_of(node_rank == 0 ? "a" : "b", node_rank, end, end_ns, records, shift);
}

/// As the launchers do it, whoever reports first.
Verdict judge_all(const Reports& reports, int own_rank, const std::optional<NodeLoss>& loss) {
  std::vector<std::string> texts;
  for (const auto& report : reports) texts.push_back(report ? to_json(*report) : std::string());
  const std::string gathered = merge_reports(texts);
  const std::vector<std::string> other_way{texts.rbegin(), texts.rend()};
  EXPECT_EQ(merge_reports(other_way), gathered);
  return judge_job(job_report_from_json(gathered).value(), own_rank, loss);
}

RunEnd told_by_b(Kind kind, int signal_number = 0) {
  return {.kind = kind, .signal_number = signal_number, .node = "b", .node_rank = 1};
}

TEST(JudgeJob, SucceedsWhenAllNodesDid) {
  const Reports reports{report(0, {}, 9, {ended(0, 0, 5)}), report(1, {}, 9, {ended(2, 0, 6), ended(3, 0, 7)})};
  const Verdict verdict = judge_all(reports, 0, {});
  EXPECT_EQ(verdict.end.kind, Kind::kSucceeded);
  EXPECT_EQ(verdict.others.succeeded, 3);
  EXPECT_EQ(verdict.exit_code, 0);
}

TEST(JudgeJob, IsNoSuccessWhereANodesReportIsMissing) {
  const Reports missing{report(0, {}, 9, {ended(0, 0, 5)}), std::nullopt};
  const Verdict verdict = judge_all(missing, 0, {});
  EXPECT_EQ(verdict.end.kind, Kind::kLauncherFailed);
  EXPECT_FALSE(verdict.end.who.empty());
  EXPECT_EQ(verdict.exit_code, kExitRefused);
  EXPECT_EQ(verdict.others, (Fates{.succeeded = 1}));
  const Reports failed{report(0, {Kind::kWorkerFailed}, 9, {ended(0, 3, 5)}), std::nullopt};
  EXPECT_EQ(judge_all(failed, 0, {}).exit_code, 3) << "a reason that is known counts";
}

TEST(JudgeJob, BlamesTheSameWorkerOnEveryNode) {
  const Reports reports{report(0, told_by_b(Kind::kWorkerFailed), 20, {stopped(0), stopped(1)}),
                        report(1, {Kind::kWorkerFailed}, 10, {ended(3, 7, 10), stopped(2)})};
  for (const int node : {0, 1}) {
    const Verdict verdict = judge_all(reports, node, {});
    ASSERT_TRUE(verdict.culprit) << "node " << node;
    EXPECT_EQ(verdict.culprit->rank, 3);
    EXPECT_EQ(verdict.exit_code, 7);
    EXPECT_EQ(verdict.others, (Fates{.stopped_by_signal = 3}));
  }
}

TEST(JudgeJob, BlamesARankOfAnotherNodeThatEndedWithZeroWhileOthersWaited) {
  FailureRecord waited = ended(0, 1, 20, Cause::kPeerLost);
  waited.error = "RuntimeError: [/gloo/transport/tcp/pair.cc:547] Connection closed by peer";
  const Reports reports{report(0, {Kind::kWorkerFailed}, 20, {waited, stopped(1)}),
                        report(1, told_by_b(Kind::kWorkerFailed), 30, {ended(2, 0, 10), ended(3, 0, 12)})};
  for (const int node : {0, 1}) {
    const Verdict verdict = judge_all(reports, node, {});
    ASSERT_TRUE(verdict.culprit) << "node " << node;
    EXPECT_EQ(verdict.culprit->rank, 2);
    EXPECT_EQ(verdict.culprit->node, "b");
    EXPECT_EQ(verdict.culprit->cause, Cause::kEndedEarly);
    EXPECT_EQ(verdict.exit_code, 1);
    EXPECT_EQ(verdict.others, (Fates{.stopped_by_signal = 1, .failed = 1, .succeeded = 1}));
  }
  const NodeLoss loss{{.kind = Kind::kNodeLost, .who = "node c is lost", .node = "node c"}, 5};
  EXPECT_EQ(judge_all(reports, 0, loss).end, loss.end) << "a lost node explains the lost connection";
}

TEST(JudgeJob, PutsTogetherWhereTheRanksOfAllNodesWere) {
  JobReport one = report(0, {Kind::kTimedOut}, 20, {stopped(0), stopped(1)});
  one.places = {{"waits in", "wait in", "all_reduce at train.py:5", true, 2, 0}};
  JobReport other = report(1, {Kind::kTimedOut}, 21, {ended(2, 0, 10), stopped(3)});
  other.places = {{"waits in", "wait in", "all_reduce at train.py:5", true, 1, 3}};
  const Verdict verdict = judge_all({one, other}, 0, {});
  ASSERT_TRUE(verdict.culprit);
  EXPECT_EQ(verdict.culprit->rank, 2);
  EXPECT_EQ(verdict.culprit->detail, "3 ranks wait for it in all_reduce at train.py:5: did it run fewer steps?");
  EXPECT_EQ(verdict.exit_code, kExitTimedOut);
}

TEST(JudgeJob, BlamesNoEarlyEndWhereARankWasNotSeen) {
  JobReport one = report(0, {Kind::kRequested}, 20, {ended(0, 0, 10), stopped(1)});
  one.places = {{"waits in", "wait in", "all_reduce at train.py:5", true, 1, 1}};
  const Reports reports{one, report(1, told_by_b(Kind::kRequested), 21, {stopped(2), stopped(3)})};
  const Verdict verdict = judge_all(reports, 0, {});
  EXPECT_FALSE(verdict.culprit) << "rank 1 may wait for rank 2, where nobody has looked";
  ASSERT_TRUE(verdict.ended_first);
  EXPECT_EQ(verdict.ended_first->rank, 0);
  EXPECT_EQ(verdict.places, one.places);
}

TEST(JudgeJob, ComparesTimesOnOneClock) {
  const std::vector<FailureRecord> of_a{ended(0, 3, 100 * kSecond)};
  const std::vector<FailureRecord> of_b{ended(2, 4, 5 * kSecond)};  // by a clock that began later
  const ClockShift shift{.steady_ns = 200 * kSecond, .wall_ns = 0};
  const Reports reports{report(0, {Kind::kWorkerFailed}, 100 * kSecond, of_a),
                        report(1, {Kind::kWorkerFailed}, 5 * kSecond, of_b, shift)};
  EXPECT_EQ(judge_all(reports, 1, {}).culprit->rank, 0);
}

TEST(JudgeJob, ComparesErrorFilesOnOneClock) {
  FailureRecord early = ended(0, 1, 10);
  early.error_time = 1000;
  FailureRecord late = ended(2, 1, 10);
  late.error_time = 995;  // by a wall clock that is ten seconds behind
  const Reports reports{report(0, {Kind::kWorkerFailed}, 1, {early}),
                        report(1, {Kind::kWorkerFailed}, 1, {late}, {.steady_ns = 0, .wall_ns = 10 * kSecond})};
  EXPECT_EQ(judge_all(reports, 0, {}).culprit->rank, 0);
}

TEST(JudgeJob, TakesTheLossOfANodeForTheCauseOfWhatFollowedIt) {
  const NodeLoss loss{{.kind = Kind::kNodeLost, .who = "node c is lost: silence for 5s", .node = "node c"}};
  const Reports victims{report(0, {Kind::kWorkerFailed}, 10, {ended(0, 1, 10, Cause::kPeerLost)}), std::nullopt};
  EXPECT_EQ(judge_all(victims, 0, loss).end, loss.end);
  EXPECT_FALSE(judge_all(victims, 0, loss).culprit);
  EXPECT_EQ(judge_all(victims, 0, loss).exit_code, kExitRefused);
  const Reports own_error{report(0, {Kind::kWorkerFailed}, 10, {ended(0, 3, 10)}), std::nullopt};
  EXPECT_EQ(judge_all(own_error, 0, loss).exit_code, 3) << "an error of its own is the cause";
  const Reports nothing{report(0, {}, 10, {ended(0, 0, 10)}), std::nullopt};
  EXPECT_EQ(judge_all(nothing, 0, loss).end, loss.end) << "what the lost node came to is not known";
}

TEST(JudgeJob, BlamesNobodyForWhatCameAfterALostNodeWasLastHeard) {
  const NodeLoss loss{{.kind = Kind::kNodeLost, .who = "node c is lost: silence for 5s", .node = "node c"}, 10};
  const Reports after{report(0, {Kind::kWorkerFailed}, 11, {ended(0, 3, 11)}), std::nullopt};
  EXPECT_EQ(judge_all(after, 0, loss).end, loss.end) << "its connection to the lost node may have broken";
  const Reports before{report(0, {Kind::kWorkerFailed}, 9, {ended(0, 3, 9)}), std::nullopt};
  EXPECT_EQ(judge_all(before, 0, loss).exit_code, 3) << "the lost node was well";
}

TEST(JudgeJob, BlamesNobodyForWhatAJoinedNodeBroughtAbout) {
  const RunEnd joined{.kind = Kind::kNodeJoined, .who = "node c has joined", .node = "node c"};
  for (const FailureRecord& torn : {ended(2, 1, 11), ended(2, 1, 9, Cause::kPeerLost)}) {
    const Reports reports{report(0, joined, 10, {stopped(0), stopped(1)}),
                          report(1, {Kind::kWorkerFailed}, 11, {torn, stopped(3)})};
    for (const int node : {0, 1}) {
      const Verdict verdict = judge_all(reports, node, {});
      EXPECT_EQ(verdict.end, joined) << "its peers on the other node had been stopped";
      EXPECT_FALSE(verdict.culprit);
    }
  }
  const Reports before{report(0, joined, 10, {stopped(0), stopped(1)}),
                       report(1, {Kind::kWorkerFailed}, 9, {ended(2, 3, 9), stopped(3)})};
  EXPECT_EQ(judge_all(before, 0, {}).exit_code, 3) << "nobody had been stopped yet";
}

TEST(JudgeJob, DiesOfASignalOnlyWhereItCame) {
  const Reports reports{report(0, told_by_b(Kind::kInterrupted, SIGTERM), 20, {stopped(0)}),
                        report(1, {Kind::kInterrupted, SIGTERM}, 10, {stopped(2)})};
  const Verdict there = judge_all(reports, 1, {});
  EXPECT_EQ(there.die_of_signal, SIGTERM);
  EXPECT_TRUE(there.end.is_ours());
  const Verdict here = judge_all(reports, 0, {});
  EXPECT_EQ(here.die_of_signal, 0);
  EXPECT_EQ(here.exit_code, 128 + SIGTERM);
  EXPECT_EQ(here.end.node, "b");
}

TEST(JudgeJob, NamesWhoStoppedTheJobWhileItWaited) {
  const Reports reports{report(0, told_by_b(Kind::kInterrupted, SIGTERM), 20, {stopped(0)}),
                        report(1, {}, 5, {ended(2, 0, 5)})};
  EXPECT_TRUE(judge_all(reports, 1, {}).end.is_ours());
  EXPECT_EQ(judge_all(reports, 0, {}).end.node, "b");
}

TEST(JudgeJob, CountsTheOthersOfAllNodes) {
  std::vector<FailureRecord> of_a{ended(0, 1, 12), stopped(1)};
  std::vector<FailureRecord> of_b{ended(2, 1, 10), ended(3, 0, 3)};
  of_a[1].stop_signal = SIGKILL;
  const Reports reports{report(0, {Kind::kWorkerFailed}, 12, of_a), report(1, {Kind::kWorkerFailed}, 10, of_b)};
  const Verdict verdict = judge_all(reports, 0, {});
  EXPECT_EQ(verdict.culprit->rank, 2);
  EXPECT_EQ(verdict.others, (Fates{.killed = 1, .failed = 1, .succeeded = 1}));
}

/// Random endings on random nodes: the sum of the first reports, with all others, is judged as all endings would be.
TEST(JudgeJob, JudgesWhatWasPutTogetherAsAllEndingsAtOnce) {
  std::mt19937 random(7);
  const auto draw = [&random](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int job = 0; job < 500; ++job) {
    std::vector<FailureRecord> all;
    std::vector<std::string> texts;
    for (int node = 0; node < 6; ++node) {
      std::vector<FailureRecord> records;
      for (int worker = 0; worker < 4; ++worker) {
        const int rank = 4 * node + worker;
        FailureRecord record = draw(0, 3) == 0 ? stopped(rank) : ended(rank, draw(0, 2), draw(1, 6) * kSecond);
        record.steady_ns += draw(-1, 1);
        if (!record.success() && draw(0, 4) == 0) record.cause = Cause::kPeerLost;
        if (!record.success() && job % 2 == 0 && draw(0, 5) == 0) record.error_time = draw(1, 6);
        records.push_back(record);
      }
      all.insert(all.end(), records.begin(), records.end());
      texts.push_back(to_json(report(1, {Kind::kWorkerFailed}, 10, records)));
      if (draw(0, 2) == 0) texts = {merge_reports(texts)};
    }
    const Verdict expected = judge({.kind = Kind::kWorkerFailed}, all);
    const Verdict verdict = judge_job(job_report_from_json(merge_reports(texts)).value(), 1, {});
    EXPECT_EQ(verdict.culprit, expected.culprit) << "job " << job;
    EXPECT_EQ(verdict.overruled, expected.overruled) << "job " << job;
    EXPECT_EQ(verdict.others, expected.others) << "job " << job;
    EXPECT_EQ(verdict.exit_code, expected.exit_code) << "job " << job;
  }
}

TEST(JobReport, ComesBackAsItWas) {
  FailureRecord failed = ended(3, 7, 10);
  failed.evidence = {"a \"line\"", "another\n"};
  JobReport before = report(1, {Kind::kHang, 0, 5000, "rank 3"}, 10, {failed, stopped(2), ended(4, 0, 1)}, {3, 4});
  before.wants_no_more = before.is_incomplete = before.grace_expired = true;
  before.screen = {7, {3}};
  before.checkpoint_ns = 1'795'000'000'123'456'789;
  EXPECT_EQ(job_report_from_json(to_json(before)), before);
  EXPECT_EQ(before.reason->end.node, "b");
  const JobReport joined = report(0, {.kind = Kind::kNodeJoined, .who = "c", .node = "node c"}, 10, {stopped(0)});
  EXPECT_EQ(job_report_from_json(to_json(joined)), joined);
  EXPECT_TRUE(joined.joined);
}

TEST(JobReport, CountsTheLinesOfAllConsoles) {
  JobReport one = report(0, {Kind::kWorkerFailed}, 10, {ended(0, 3, 10), stopped(1)});
  JobReport other = report(1, {Kind::kWorkerFailed}, 11, {ended(2, 4, 12), stopped(3)});
  one.screen = {5, {0}};
  other.screen = {8, {2, 3}};
  const ScreenLines all = job_report_from_json(merge_reports({to_json(one), to_json(other)}))->screen;
  EXPECT_EQ(all, (ScreenLines{13, {0}})) << "the other failures are not kept";
  one.screen.since_stop = std::numeric_limits<int>::max();
  EXPECT_EQ(job_report_from_json(merge_reports({to_json(one), to_json(other)}))->screen.since_stop,
            std::numeric_limits<int>::max());
}

TEST(JobReport, HasTheNewestCheckpointOfAll) {
  Reports reports{report(0, {Kind::kWorkerFailed}, 10, {ended(0, 3, 10)}), report(1, {}, 11, {ended(2, 0, 12)})};
  reports[0]->checkpoint_ns = 5;
  reports[1]->checkpoint_ns = 7;
  EXPECT_EQ(judge_all(reports, 0, {}).checkpoint_ns, 7);
  reports.emplace_back();
  const NodeLoss loss{{.kind = Kind::kNodeLost, .who = "node c is lost: silence for 5s", .node = "node c"}};
  EXPECT_EQ(judge_all(reports, 0, loss).checkpoint_ns, 7) << "whatever the verdict is";
}

TEST(JobReport, IsIncompleteWhereOneIsMissing) {
  const std::string good = to_json(report(0, {}, 9, {ended(0, 0, 5)}));
  EXPECT_FALSE(job_report_from_json(merge_reports({good, good}))->is_incomplete);
  EXPECT_TRUE(job_report_from_json(merge_reports({good, ""}))->is_incomplete);
  EXPECT_TRUE(job_report_from_json(merge_reports({merge_reports({"nonsense"}), good}))->is_incomplete);
}

TEST(JobReport, IsBounded) {
  std::vector<std::string> texts;
  for (int node = 0; node < 100; ++node) {
    std::vector<FailureRecord> records;
    for (int rank = 8 * node; rank < 8 * node + 8; ++rank) {
      records.push_back(ended(rank, 1, 1000 - rank));
      records.back().error_time = 2 + rank;
      records.back().evidence = {std::string(FailureRecord::kMostEvidenceBytes - 1, '\x01')};
    }
    texts.push_back(to_json(report(0, {Kind::kWorkerFailed}, 10, records)));
    EXPECT_LE(texts.back().size(), std::size_t{64} << 10U);
  }
  const std::string json = merge_reports(texts);
  EXPECT_LE(json.size(), std::size_t{64} << 10U);
  const auto read = job_report_from_json(json);
  ASSERT_TRUE(read);
  EXPECT_EQ(judge_job(*read, 0, {}).culprit->rank, 0) << "who is to blame is kept";
  EXPECT_EQ(judge_job(*read, 0, {}).culprit->evidence.size(), 1U) << "and what it printed";
  EXPECT_EQ(read->fates.failed, 800);
}

TEST(JobReport, RefusesWhatMakesNoSense) {
  const std::string good = to_json(report(1, {Kind::kWorkerFailed}, 10, {ended(3, 7, 10)}));
  ASSERT_TRUE(job_report_from_json(good));
  const auto with = [&](const std::string& old_text, const std::string& new_text) {
    std::string bad = good;
    const std::size_t at = bad.find(old_text);
    EXPECT_NE(at, std::string::npos) << old_text;
    return at == std::string::npos ? bad : bad.replace(at, old_text.size(), new_text);
  };
  EXPECT_FALSE(job_report_from_json(with("worker_failed", "dancing")));
  EXPECT_FALSE(job_report_from_json(with("worker_failed", "succeeded")));
  EXPECT_FALSE(job_report_from_json(with("\"node_rank\":1", "\"node_rank\":-2")));
  EXPECT_FALSE(job_report_from_json(with("\"end_ns\":10", "\"end_ns\":\"soon\"")));
  EXPECT_FALSE(job_report_from_json(with("\"end_ns\":10", "\"end_ns\":1e300")));
  EXPECT_FALSE(job_report_from_json(with("\"killed\":0", "\"killed\":4294967297")));
  EXPECT_FALSE(job_report_from_json(good.substr(1)));
}

TEST(StopNotice, ComesBackAsItWas) {
  StopNotice notice{told_by_b(Kind::kWorkerFailed), ended(3, 7, 10)};
  EXPECT_EQ(stop_notice_from_json(to_json(notice)), notice);
  notice.cause.reset();
  EXPECT_EQ(stop_notice_from_json(to_json(notice)), notice);
  notice.end = told_by_b(Kind::kInterrupted, SIGINT);
  notice.end.by_head = true;
  EXPECT_EQ(stop_notice_from_json(to_json(notice)), notice);
  EXPECT_FALSE(stop_notice_from_json("{}"));
  EXPECT_FALSE(stop_notice_from_json(to_json(StopNotice{told_by_b(Kind::kSucceeded), {}})));
  for (const int signal : {0, SIGKILL, SIGSTOP}) {
    RunEnd end = told_by_b(Kind::kInterrupted);
    end.signal_number = signal;
    EXPECT_FALSE(stop_notice_from_json(to_json(StopNotice{end, {}}))) << signal << " would be sent to workers";
  }
}

}  // namespace
}  // namespace lrun
