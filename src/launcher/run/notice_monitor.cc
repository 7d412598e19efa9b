// In: a place where a notice may appear. Out: the notice, once, and warnings where nobody can know. Made before a node
// joins others; RendezvousWait and NodeLauncher end the run.
#include "run/notice_monitor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace lrun::launcher {
namespace {

constexpr Duration kFilePause(1000);
constexpr Duration kCloudPause(5000);  // as Amazon advises
constexpr Duration kLookLimit(4000);
/// The metadata of a cloud answers within milliseconds.
constexpr Duration kFirstLookLimit(2000);
constexpr Duration kBusyPause(1000);
constexpr Duration kPatience(30'000);
constexpr Duration kAzurePatience(180'000);  // it takes up to two minutes for its first answer
/// A timer that is so late was held up with this process, and maybe with the child.
constexpr Duration kLateness(200);
/// A child that is killed is started again; not at once, since it may be the end of all processes.
constexpr int kMostChildren = 4;
constexpr std::string_view kGoesOn = "the run goes on, and lrun asks again";
constexpr char kNotice = 'n';
constexpr char kProblem = 'p';
constexpr char kPassing = 'b';

/// What the child writes about a look: a letter, and the text.
std::string line_of(const NoticeLook& look) {
  std::string line = look.notice.empty() ? (look.may_pass ? kPassing : kProblem) + look.problem : kNotice + look.notice;
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line + '\n';
}

/// The child. Launchers of one machine look at the same time, so that they stop together.
int keep_looking(int news, const NoticeMonitor::Facts& facts) {
  while (true) {
    const NoticeLook seen = facts.look();
    if (write_all(news, line_of(seen)) != 0 || !seen.notice.empty()) return 0;
    const Duration pause = seen.may_pass ? std::min(kBusyPause, facts.pause) : facts.pause;
    std::this_thread::sleep_for(pause - Duration(wall_ms() % pause.count()));
  }
}

}  // namespace

NoticeMonitor::NoticeMonitor(Facts facts, MessageSink& sink) : facts_(std::move(facts)), sink_(&sink) {
  wait_for_answer();
  start();
}

void NoticeMonitor::start() {
  ++starts_;
  unread_.clear();
  try {
    Pipe pipe = make_pipe();
    news_ = std::move(pipe.read);
    readable_ = facts_.loop.on_readable(news_.get(), [this] { read(); });
    child_.emplace(
        ForkedHelper::Request{.function = [this, news = pipe.write.get()] { return keep_looking(news, facts_); },
                              .descriptors = {pipe.write.get()},
                              .name = kNoticeName,
                              .of = facts_.of});
  } catch (const std::system_error& error) {
    readable_.cancel();
    silence_.cancel();
    sink_->warn(fmt::format("--notice: no process can look for one: {}", error.what()));
  }
}

void NoticeMonitor::child_ended() {
  readable_.cancel();
  if (!notice_.empty()) return;
  if (starts_ < kMostChildren) {
    restart_ = facts_.loop.after(facts_.pause, [this] { start(); });
    return;
  }
  silence_.cancel();
  sink_->warn("--notice: none is seen any more: the process that looks for it was killed several times");
}

void NoticeMonitor::wait_for_first_look(Duration limit) {
  if (has_answered_ || !child_) return;
  const EventLoop::Timer late = facts_.loop.after(limit, [this] { facts_.loop.stop(); });
  is_awaited_ = true;
  facts_.loop.run();
  is_awaited_ = false;
}

void NoticeMonitor::tell(MessageSink& sink, std::function<void(const std::string& notice)> noticed) {
  sink_ = &sink;
  noticed_ = std::move(noticed);
  telling_.cancel();
  if (!notice_.empty() && noticed_) tell_soon();
}

void NoticeMonitor::stop() {
  noticed_ = nullptr;
  readable_.cancel();
  silence_.cancel();
  restart_.cancel();
  telling_.cancel();
}

void NoticeMonitor::read() {
  char bytes[4096];
  const ssize_t count = ::read(news_.get(), bytes, sizeof bytes);
  if (count < 0) return;
  unread_.append(bytes, static_cast<std::size_t>(count));
  for (std::size_t end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
    saw(std::string_view(unread_).substr(0, end));
    unread_.erase(0, end + 1);
  }
  if (count == 0) child_ended();
}

void NoticeMonitor::saw(std::string_view line) {
  if (line.empty()) return;
  const bool is_first = !std::exchange(has_answered_, true);
  const std::string text(line.substr(1));
  if (is_awaited_) facts_.loop.stop();
  if (line.starts_with(kNotice)) {
    notice_ = text;
    silence_.cancel();
    if (noticed_) tell_soon();
    return;
  }
  problem_ = text;
  if (problem_.empty()) {
    has_warned_ = false;
    wait_for_answer();
  } else if (is_first && line.front() == kProblem) {
    warn(fmt::format("{}; {}", problem_, kGoesOn));
  }
}

void NoticeMonitor::wait_for_answer() {
  const SteadyTime due = steady_now() + facts_.patience;
  silence_ = facts_.loop.after(facts_.patience, [this, due] {
    if (steady_now() > due + kLateness) return wait_for_answer();
    const std::string what = problem_.empty() ? fmt::format("'{}' has not answered", facts_.place) : problem_;
    warn(fmt::format("{}, for {}; {}", what, format_duration(facts_.patience), kGoesOn));
  });
}

void NoticeMonitor::warn(std::string_view what) {
  if (!std::exchange(has_warned_, true)) sink_->warn(fmt::format("--notice: {}", what));
}

void NoticeMonitor::tell_soon() {
  telling_ = facts_.loop.after(Duration::zero(), [this] {
    const auto noticed = std::exchange(noticed_, nullptr);  // it may end this object
    noticed(notice_);
  });
}

std::unique_ptr<NoticeMonitor> watch_for_notice(EventLoop& loop, const LaunchPlan& plan, const Guard& guard,
                                                MessageSink& sink) {
  using Kind = NoticeSource::Kind;
  const NoticeSource& source = plan.notice.value;
  if (!source.is_given()) return nullptr;
  auto monitor = std::make_unique<NoticeMonitor>(
      NoticeMonitor::Facts{
          .loop = loop,
          .place = text_of(source),
          .of = fmt::format("process {}, run {}", guard.pid(), plan.run_id),
          .look = [looker = NoticeLooker(source)]() mutable { return looker.look(steady_now() + kLookLimit); },
          .pause = source.kind == Kind::kFile ? kFilePause : kCloudPause,
          .patience = source.kind == Kind::kAzure ? kAzurePatience : kPatience},
      sink);
  monitor->wait_for_first_look(kFirstLookLimit);
  return monitor;
}

}  // namespace lrun::launcher
