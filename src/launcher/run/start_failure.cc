// In: why the workers of this node cannot start. Out: the failure as the other nodes of the job hear of it.
// run_in_job() and launch() report through it.
#include "run/start_failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/shortened.h"
#include "rendezvous/job.h"
#include "run/join_job.h"
#include "verdict/job_report.h"
#include "verdict/job_verdict.h"

namespace lrun::launcher {
namespace {

/// The launchers of a job are usually started within seconds of each other.
constexpr Duration kPatience(10'000);
constexpr Duration kQuiet(1000);
constexpr std::size_t kMostMembers = 64;
constexpr std::size_t kMostWhyBytes = 500;
constexpr int kNoNode = -2;  // the report always comes from another node

/// A member of the job that only delivers its failure.
class FailureNotice : private JobEvents {
 public:
  FailureNotice(const LaunchPlan& plan, const JoinRecord& record, const Environment& environment, MessageSink& sink)
      : sink_(sink),
        job_(loop_, impatient(*plan.rendezvous), record, merge_reports, kMostMembers, job_secret(environment),
             etcd_user(environment)) {}

  /// \return the leader has the report
  bool run(bool is_quiet) {
    job_.set_events(*this);
    const EventLoop::Timer note = loop_.after(kQuiet, [this, is_quiet] {
      if (is_quiet) return;
      sink_.note(fmt::format("the other nodes are notified if they join within {}", format_duration(kPatience)));
    });
    {
      const EventLoop::Timer limit = loop_.after(kPatience, [this] { loop_.stop(); });
      loop_.run();
    }
    bool left = false;
    job_.finish("", kPatience + kQuiet, [&] {
      left = true;
      loop_.stop();
    });
    if (!left) loop_.run();
    return is_delivered_;
  }

 private:
  void failed(const std::string& /*why*/, const std::string& /*hint*/) override { loop_.stop(); }
  void lost(const std::string& /*node*/, const std::string& /*how*/, std::int64_t /*heard_ns*/,
            const std::string& /*spare*/) override {
    loop_.stop();
  }
  void over(const std::string& /*report*/) override { delivered(); }
  void ended(const std::string& /*why*/, bool /*by_leader*/) override { delivered(); }
  void delivered() {
    is_delivered_ = true;
    loop_.stop();
  }

  static RendezvousPlan impatient(RendezvousPlan plan) {
    plan.connect_timeout = std::min(plan.connect_timeout, kPatience);
    plan.etcd_start = std::min(plan.etcd_start, kPatience);
    return plan;
  }

  MessageSink& sink_;
  EventLoop loop_;
  Job job_;
  bool is_delivered_ = false;
};

}  // namespace

void describe_failure(const Verdict& verdict, const UserError& why, JoinRecord& record) {
  std::vector<FailureRecord> failures;
  if (verdict.culprit) {
    failures.push_back(*verdict.culprit);
    failures.back().error = shortened(why.what(), kMostWhyBytes);
    failures.back().detail = shortened(why.hint(), kMostWhyBytes);
  }
  RunEnd end = verdict.end;
  end.who = shortened(end.who, kMostWhyBytes);
  record.cannot_start = shortened(why.what(), kMostWhyBytes);
  record.report = to_json(report_of(record.node, record.node_rank.value_or(-1), end,
                                    nanoseconds(std::chrono::steady_clock::now()), failures, ClockShift()));
}

Verdict failure_of_another_node(const std::string& report) {
  return judge_job(job_report_from_json(report).value_or(JobReport{.is_incomplete = true}), kNoNode, std::nullopt);
}

bool report_failure(const LaunchPlan& plan, const JoinRecord& record, const Environment& environment,
                    MessageSink& sink) {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return FailureNotice(plan, record, environment, sink).run(!speaks_for_job(plan));
  } catch (const std::exception&) {  // the port is taken, descriptors ran out: the caller prints the failure itself
    return false;
  }
}

}  // namespace lrun::launcher
