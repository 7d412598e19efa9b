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

/// "rank 3 printed nan: 'loss=nan' (--watch 'loss=([^ ]+) => nan')"
std::string text_of(const WatchFinding& finding, const WatchRule& rule) {
  return fmt::format("{} ({} '{}')", finding.text, rule.origin, shortened(terminal_safe(rule.text), kMostRuleColumns));
}

bool is_running(Attempt& attempt) {
  return attempt.supervised() && attempt.supervisor().state().phase == SupervisionState::Phase::kRunning;
}

}  // namespace

WatchMonitor::WatchMonitor(EventLoop& loop, const std::vector<WatchRule>& rules, MessageSink& sink,
                           std::function<Attempt&()> attempt)
    : loop_(loop), rules_(rules), sink_(sink), attempt_(std::move(attempt)), watch_(rules) {}

void WatchMonitor::printed(int rank, LogStream stream, std::string_view bytes) {
  if (const int attempt = attempt_().membership().round; attempt != watched_attempt_) {
    watched_attempt_ = attempt;
    watch_ = LineWatch(rules_);
    findings_.clear();
  }
  for (WatchFinding& finding : watch_.read(rank, stream, bytes, steady_now())) findings_.push_back(std::move(finding));
  if (!findings_.empty()) reaction_ = loop_.after(Duration::zero(), [this] { react(); });
  if (!silence_.armed()) wait_for_silence();
}

void WatchMonitor::warn_of_unmatched() const {
  for (const std::size_t place : watch_.unmatched()) {
    sink_.warn(fmt::format("no line matched '{} {}'", rules_[place].origin,
                           shortened(terminal_safe(rules_[place].text), kMostRuleColumns)));
  }
}

void WatchMonitor::wait_for_silence() {
  const std::optional<SteadyTime> next = watch_.next_silence();
  if (!next) return;
  const auto left = std::chrono::ceil<Duration>(*next - steady_now());
  silence_ = loop_.after(std::max(left, Duration::zero()), [this] { look_for_silence(); });
}

/// Lines that have come since move the time further.
void WatchMonitor::look_for_silence() {
  silence_.cancel();
  Attempt& attempt = attempt_();
  if (!is_running(attempt)) return;
  if (attempt.supervisor().state().suspended) watch_.wait_anew(steady_now());
  findings_ = watch_.silent(steady_now());
  react();
  wait_for_silence();
}

void WatchMonitor::react() {
  for (const WatchFinding& finding : std::exchange(findings_, {})) react_to(finding);
}

void WatchMonitor::react_to(const WatchFinding& finding) {
  const WatchRule& rule = rules_[finding.rule];
  const std::string text = text_of(finding, rule);
  if (rule.reaction == WatchReaction::kWarn) return sink_.warn(text);
  if (!is_running(attempt_())) return;
  RunEnd end{RunEnd::Kind::kWatched};
  end.who = text;
  attempt_().supervisor().handle(TimeIsOver{end, rule.reaction == WatchReaction::kRestart});
}

}  // namespace lrun::launcher
