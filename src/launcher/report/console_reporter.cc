#include "report/console_reporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace lrun::launcher {
namespace {

constexpr Duration kSeenByPeople(1000);

bool is_asked_for(const RunEnd& end) {
  return end.kind == RunEnd::Kind::kInterrupted || end.kind == RunEnd::Kind::kNotice;
}

}  // namespace

void ConsoleReporter::worker_ended(const FailureRecord& record) { events_.worker_ended(record); }

void ConsoleReporter::settling(const FailureRecord& failed, Duration moment) {
  events_.settling(failed.rank, moment);
  if (moment < kSeenByPeople) return;  // the cause is told in no time
  say_(message_line(Severity::kNote,
                    fmt::format("{}; stopping the others in {}", cause_text(failed), format_duration(moment)),
                    facts_.colour));
}

void ConsoleReporter::stopping(const RunEnd& end, const FailureRecord* cause, RunningWorkers others) {
  events_.stopping(end, cause, others.workers);
  if (others.workers == 0) return;  // nothing is left to stop: the verdict follows at once
  stop_told_ = true;
  killing_told_ = end.kind == RunEnd::Kind::kGuardDied || facts_.grace == Duration::zero();
  const bool said = say_(stopping_text(end, cause, others, facts_));
  stop_at_ = lines_().value_or(0);
  if (!said) return;
  if (cause != nullptr) told_ = {cause->rank, cause->attempt};
  end_told_ = cause == nullptr && is_asked_for(end);
}

void ConsoleReporter::begin_attempt() {
  told_ = {-1, -1};
  end_told_ = false;
  stop_at_.reset();
}

bool ConsoleReporter::has_told(const Verdict& verdict) const {
  if (!verdict.culprit) return is_asked_for(verdict.end) && end_told_;
  return verdict.end.kind == RunEnd::Kind::kWorkerFailed &&
         told_ == std::pair(verdict.culprit->rank, verdict.culprit->attempt);
}

int ConsoleReporter::lines_since_stop() const { return stop_at_ ? lines_since(*stop_at_) : 0; }

int ConsoleReporter::lines_since(std::uint64_t lines) const {
  constexpr std::uint64_t kMost = std::numeric_limits<int>::max();
  const std::optional<std::uint64_t> now = lines_();
  return static_cast<int>(now ? std::min(*now - lines, kMost) : kMost);
}

void ConsoleReporter::killing(int others) {
  events_.noted("killing");
  if (killing_told_) return;
  const std::string text = others == 1 ? "killing 1 worker that has not ended"
                                       : fmt::format("killing {} workers that have not ended", others);
  say_(message_line(Severity::kNote, text, facts_.colour));
}

void ConsoleReporter::terminal_came_back(int rank, int others) {
  if (others == 0) return;  // the verdict, or a good end, follows
  const std::string who = others == 1 ? "1 other rank runs on" : fmt::format("{} other ranks run on", others);
  say_(message_line(Severity::kNote,
                    fmt::format("the debugger of rank {} has ended: Ctrl-C now stops the run; {}", rank, who),
                    facts_.colour));
}

void ConsoleReporter::suspended() { events_.noted("suspended"); }

void ConsoleReporter::resumed() { events_.noted("resumed"); }

}  // namespace lrun::launcher
