// In: what workers print, and the rules of --watch. Out: warnings, and the end of an attempt. NodeLauncher owns one.
#include "run/watch_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/shortened.h"
#include "logs/terminal_text.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostRuleColumns = 60;
/// A rank that fails for the same reason has more to say: its own error is then the cause.
constexpr Duration kMomentToFail(250);
/// A line that is not ended by then, as that of a progress bar, is read as it is.
constexpr Duration kMomentToEnd(250);
/// After it a launcher that was busy, or stopped, has read what was there.
constexpr Duration kMomentToRead(100);

/// "--watch 'loss=([^ ]+) => nan'"
std::string named_rule(const WatchRule& rule) {
  return fmt::format("{} '{}'", rule.origin, shortened(terminal_safe(rule.text), kMostRuleColumns));
}

SupervisionState::Phase phase_of(Attempt& attempt) {
  return attempt.supervised() ? attempt.supervisor().state().phase : SupervisionState::Phase::kOver;
}

std::vector<int> ranks_of(const std::vector<RankProcess>& processes) {
  std::vector<int> ranks;
  for (const RankProcess& process : processes) ranks.push_back(process.rank);
  return ranks;
}

}  // namespace

WatchMonitor::WatchMonitor(Facts facts) : facts_(std::move(facts)), watch_(facts_.rules) {}

/// Another round begins anew.
void WatchMonitor::enter_round() {
  const int round = facts_.attempt().membership().round;
  if (std::exchange(watched_round_, round) == round) return;
  watch_ = LineWatch(facts_.rules);
  findings_.clear();
}

bool WatchMonitor::printed(int rank, LogStream stream, std::string_view bytes) {
  enter_round();
  for (WatchFinding& finding : watch_.read(rank, stream, bytes, steady_now())) findings_.push_back(std::move(finding));
  wait();
  return !findings_.empty();
}

void WatchMonitor::wait() {
  if (!unfinished_.armed() && watch_.has_unfinished()) {
    unfinished_ = facts_.loop.after(kMomentToEnd, [this] { read_unfinished(); });
  }
  const std::optional<SteadyTime> next = watch_.next_silence();
  if (!next || (silence_.armed() && silence_due_ <= *next)) return;
  silence_due_ = *next;
  const auto left = std::chrono::ceil<Duration>(*next - steady_now());
  silence_ = facts_.loop.after(std::max(left, Duration::zero()) + kMomentToRead, [this] { look_for_silence(); });
}

void WatchMonitor::read_unfinished() {
  unfinished_.cancel();
  enter_round();
  for (WatchFinding& finding : watch_.read_unfinished(steady_now())) findings_.push_back(std::move(finding));
  react();
}

/// Lines that have come since move the time further. Lines that nobody has read yet are no silence.
void WatchMonitor::look_for_silence() {
  silence_.cancel();
  enter_round();
  Attempt& attempt = facts_.attempt();
  if (phase_of(attempt) != SupervisionState::Phase::kRunning) return;
  if (attempt.supervisor().state().suspended || facts_.is_blocked()) went_on();
  for (WatchFinding& finding : watch_.silent(steady_now() - kMomentToRead, ranks_of(attempt.running()))) {
    findings_.push_back(std::move(finding));
  }
  react();
  wait();
}

/// Of several rules that hold at once the one that stops comes first.
void WatchMonitor::react() {
  std::vector<WatchFinding> findings = std::exchange(findings_, {});
  std::stable_sort(findings.begin(), findings.end(), [this](const WatchFinding& left, const WatchFinding& right) {
    const auto order = [this](const WatchFinding& one) {
      return facts_.rules[one.rule].reaction == WatchReaction::kStop;
    };
    return order(left) > order(right);
  });
  for (const WatchFinding& finding : findings) react_to(finding);
}

void WatchMonitor::react_to(const WatchFinding& finding) {
  const WatchRule& rule = facts_.rules[finding.rule];
  const std::string text = fmt::format("{} ({})", finding.text, named_rule(rule));
  facts_.events.watched(finding.rank, text);
  if (rule.reaction == WatchReaction::kWarn) return facts_.sink.warn(text);
  TimeIsOver over{.end = {RunEnd::Kind::kWatched}, .may_restart = rule.reaction == WatchReaction::kRestart};
  over.end.who = text;
  over.end.rank = finding.rank;
  over.end.limit_ms = finding.silence.count();
  if (finding.silence == Duration::zero()) over.moment = kMomentToFail;
  const SupervisionState::Phase phase = phase_of(facts_.attempt());
  if (!over.may_restart && phase != SupervisionState::Phase::kOver) return facts_.stop(over);
  if (phase == SupervisionState::Phase::kRunning) facts_.attempt().supervisor().handle(over);
}

void WatchMonitor::warn_of_idle() const {
  for (const auto& [place, words] : watch_.idle()) facts_.sink.warn(words + " " + named_rule(facts_.rules[place]));
}

}  // namespace lrun::launcher
