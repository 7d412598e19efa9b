#include "multihost/head.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/message.h"
#include "base/split.h"
#include "base/whole_number.h"
#include "process/exit_codes.h"
#include "remote/reached_hosts.h"
#include "remote/ssh.h"
#include "report/head_channel.h"
#include "run/console_patience.h"
#include "verdict/judge.h"

namespace lrun::launcher {
namespace {

using Kind = NodeFrame::Kind;

constexpr Duration kEndMargin(20'000);   // the holder of the meeting waits so long for others, and some more
constexpr Duration kHurriedEnd(10'000);  // after a second signal
constexpr Duration kToHangUp(1500);      // for an ssh whose host has told its end: it may serve others, too
constexpr Duration kUnfinishedLine(100);

}  // namespace

Head::Head(EventLoop& loop, std::vector<Start> hosts, Options options)
    : loop_(loop),
      options_(std::move(options)),
      words_(hosts.size()),
      consoles_(loop, LogOptions{},
                {.progressed = [this] { hold_back_when_full(); },
                 .closed =
                     [this](LogStream stream) {
                       if (stream == LogStream::kOut) send_to_all(Kind::kCloseOut, "");
                     },
                 .warning = [this](const std::string& text) { say(message_line(Severity::kWarning, text, colour_)); }}),
      colour_(options_.colour),
      signals_(loop, options_.signals, [this](const ReceivedSignal& signal) { signal_arrived(signal.number); }) {
  for (Start& start : hosts) hosts_.push_back({std::move(start), {}, {}, false, false, {}, {}, {}, {}});
  links_ = links_to(hosts_);
}

std::unique_ptr<HostLinks> Head::links_to(const std::vector<Host>& hosts) {
  std::vector<bool> here;
  std::vector<HostLinks::Host> ends;
  for (const Host& host : hosts) {
    here.push_back(host.start.here);
    ends.push_back({host.start.name, host.start.here, host.start.command, host.start.relay_command});
  }
  return std::make_unique<HostLinks>(
      loop_, std::move(ends),
      HostLinks::Options{host_ways(here, options_.most_connections), options_.defaults, options_.first_bytes},
      HostLinks::Events{.order = [this](std::size_t index) { return encode(hosts_[index].start.order); },
                        .frame = [this](std::size_t index, const NodeFrame& frame) { received(index, frame); },
                        .ended = [this](const std::vector<std::size_t>& indexes, const ExitStatus& status,
                                        const std::string& last_line) { links_ended(indexes, status, last_line); },
                        .failed =
                            [this](std::size_t index, const std::string& why) {
                              hosts_[index].over = true;
                              cannot_be_used(index, why);
                            }});
}

Head::End Head::run() {
  links_->connect();
  wait_for_answers();
  say_that_we_live();
  loop_.run();
  links_.reset();
  return end_;
}

/// Each host has its own time, which begins anew whenever something moves towards it.
void Head::wait_for_answers() {
  const SteadyTime now = steady_now();
  links_->connect_silent_from_here(now - options_.detour_limit);
  SteadyTime next = SteadyTime::max();
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    Host& host = hosts_[i];
    if (host.ready || !host.problem.empty()) continue;
    for (const Duration limit : {options_.detour_limit, options_.answer_limit}) {
      if (links_->last_progress(i) + limit > now) next = std::min(next, links_->last_progress(i) + limit);
    }
    if (links_->last_progress(i) + options_.answer_limit > now) continue;
    host.problem = fmt::format("no answer in {}", format_duration(options_.answer_limit));
  }
  const auto left = std::chrono::ceil<Duration>(next - now);
  if (next != SteadyTime::max()) answer_limit_ = loop_.after(left, [this] { wait_for_answers(); });
  start_when_all_answered();
}

void Head::received(std::size_t index, const NodeFrame& frame) {
  Host& host = hosts_[index];
  if (host.over) return;
  if (rest_limit_.armed()) limit_the_rest();
  switch (frame.kind) {
    case Kind::kAnswer:
      host.ready = decode_ready(frame.payload);
      if (!host.ready) return cannot_be_used(index, "what it answered cannot be read");
      return start_when_all_answered();
    case Kind::kRefusal:
      return started_ ? failed_to_start(index, frame.payload) : cannot_be_used(index, frame.payload);
    case Kind::kOut:
      return show(index, host.out, LogStream::kOut, frame.payload);
    case Kind::kErr:
      return show(index, host.err, LogStream::kErr, frame.payload);
    case Kind::kJobWords:
      return say(words_.of_job(index, frame.payload));
    case Kind::kOwnWords:
      if (words_.is_new(frame.payload)) {
        say(text_of_node(frame.payload, hosts_.size() > 1 ? host.start.name : std::string(), colour_));
      }
      return;
    case Kind::kBegun:
      host.begun = true;
      return;
    case Kind::kEnded: {
      std::string_view rest = frame.payload;
      const int signal_number = whole_number<int>(cut(rest, ' ')).value_or(0);
      const int code = whole_number<int>(rest).value_or(kExitRefused);
      host.end = signal_number != 0 ? ExitStatus{ExitStatus::Kind::kSignaled, signal_number}
                                    : ExitStatus{ExitStatus::Kind::kExited, code};
      host.hang_up = loop_.after(kToHangUp, [this, index] { hang_up(index); });
      return host_ended(index);
    }
    default:
      return;
  }
}

void Head::cannot_be_used(std::size_t index, const std::string& why) {
  hosts_[index].problem = why;
  start_when_all_answered();
}

/// It had answered that it can, and the others were told to go.
void Head::failed_to_start(std::size_t index, const std::string& why) {
  Host& host = hosts_[index];
  say(message_line(Severity::kError, fmt::format("{}: lrun cannot start there: {}", host.start.name, why), colour_));
  say(words_.lost(index));
  host.begun = false;
  host.end = ExitStatus{ExitStatus::Kind::kExited, kExitRefused};
  host_ended(index);
  hang_up(index);
}

void Head::hang_up(std::size_t index) {
  hosts_[index].over = true;
  finish_when_all_ended();
}

void Head::links_ended(std::vector<std::size_t> indexes, const ExitStatus& status, const std::string& last_line) {
  std::erase_if(indexes, [this](std::size_t index) { return std::exchange(hosts_[index].over, true); });
  for (const std::size_t index : indexes) {
    Host& host = hosts_[index];
    host.hang_up.cancel();
    if (started_ || !host.problem.empty()) continue;
    const std::string why = ssh_failure_text(status.shell_code(), last_line, host.start.program);
    host.problem = host.ready ? "the connection ended: " + why : why;
  }
  if (!started_) return start_when_all_answered();
  std::erase_if(indexes, [this](std::size_t index) { return hosts_[index].end.has_value(); });
  if (indexes.empty()) return finish_when_all_ended();
  const char* const command = hosts_[indexes.front()].start.here ? "lrun" : "ssh";
  tell_lost(indexes, last_line.empty() ? fmt::format("{} {}", command, status.text()) : last_line);
  for (const std::size_t index : indexes) say(words_.lost(index));
  for (const std::size_t index : indexes) host_ended(index);
  finish_when_all_ended();
}

/// Launchers of the job tell what the loss is to it. Once one of them has told the end, no more is to be said; where
/// there is none that could, this is what ended the run.
void Head::tell_lost(const std::vector<std::size_t>& lost, const std::string& why) {
  const auto has_told = [](const Host& host) { return host.begun && host.end; };
  const auto will_tell = [](const Host& host) { return host.begun && !host.over; };
  if (std::any_of(hosts_.begin(), hosts_.end(), has_told)) return;
  const bool others_tell = std::any_of(hosts_.begin(), hosts_.end(), will_tell);
  std::vector<std::string> names;
  for (const std::size_t index : lost) names.push_back(hosts_[index].start.name);
  say(message_line(others_tell ? Severity::kWarning : Severity::kError, lost_hosts_text(names, why), colour_));
}

void Head::start_when_all_answered() {
  if (started_ || done_) return;
  const auto answered = [](const Host& host) { return host.ready || !host.problem.empty(); };
  if (!std::all_of(hosts_.begin(), hosts_.end(), answered)) return;
  answer_limit_.cancel();
  const bool all_well =
      std::all_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.problem.empty(); });
  all_well ? begin() : refuse_hosts();
}

void Head::refuse_hosts() {
  std::vector<HostProblem> problems;
  for (const Host& host : hosts_) {
    if (!host.problem.empty()) problems.push_back({host.start.name, host.problem});
  }
  say(hosts_problem_text(problems, hosts_.size(), colour_));
  end_.code = kExitRefused;
  done_ = true;
  consoles_.when_flushed(kLastWordPatience, [this](bool) { loop_.stop(); });
}

/// Where the first host is, as this one reaches it. Who reached a host by way of another is that other's address: ours
/// is the one that the first on the way has seen.
std::string Head::meeting_for(std::size_t index, const std::vector<ReachedHost>& hosts) const {
  if (!options_.master_addr.empty()) return options_.master_addr;
  ReachedHost host = hosts[index];
  host.ready.head_address = hosts[links_->first_on_the_way(index)].ready.head_address;
  return rendezvous_address(hosts.front(), host);
}

void Head::begin() {
  started_ = true;
  std::vector<ReachedHost> hosts;
  for (const Host& host : hosts_) hosts.push_back({host.start.name, host.start.here, *host.ready});
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    hosts_[i].begun = hosts_.size() == 1;
    const NodeGo go{hosts.front().ready.port, meeting_for(i, hosts), names_of_machine(hosts, i)};
    links_->send(i, Kind::kGo, encode(go));
  }
}

/// What it printed last may have no newline.
void Head::host_ended(std::size_t index) {
  show_unfinished();
  const Host& host = hosts_[index];
  const bool failed = !host.end || !host.end->success();
  if (failed && !host.begun) stop_those_who_wait();
  limit_the_rest();
}

/// A launcher ends well only when the job is over everywhere, and without enough hosts there is no job. Counted from
/// the last word of any host.
void Head::limit_the_rest() {
  const auto is_over = [this](const Host& host) {
    return host.end && (host.end->success() || options_.min_nodes == static_cast<int>(hosts_.size()));
  };
  if (std::none_of(hosts_.begin(), hosts_.end(), is_over)) return;
  rest_limit_ = loop_.after(options_.grace + kEndMargin, [this] {
    paused_ ? limit_the_rest() : give_up([](const Host& host) { return !host.end; });
  });
}

/// The others would wait for a host that does not come.
void Head::stop_those_who_wait() {
  const auto left =
      std::count_if(hosts_.begin(), hosts_.end(), [](const Host& host) { return !host.over && !host.end; });
  if (left >= options_.min_nodes || std::exchange(stopping_those_who_wait_, true)) return;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const Host& host = hosts_[i];
    if (!host.begun && !host.over && !host.end) links_->send(i, Kind::kSignal, std::to_string(SIGTERM));
  }
  stop_limit_ =
      loop_.after(options_.grace + kEndMargin, [this] { give_up([](const Host& host) { return !host.begun; }); });
}

void Head::show(std::size_t index, LineSplitter& splitter, LogStream stream, std::string_view bytes) {
  const int writer = static_cast<int>(2 * index) + (stream == LogStream::kErr ? 1 : 0);
  Console& console = consoles_.of(stream);
  splitter.split(bytes, [&](std::string_view piece) { console.append(writer, {}, piece); });
  console.write_out();
  if (splitter.held_bytes() > 0 && !unfinished_.armed()) {
    unfinished_ = loop_.after(kUnfinishedLine, [this] { show_unfinished(); });
  }
  hold_back_when_full();
}

void Head::show_unfinished() {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const int writer = static_cast<int>(2 * i);
    hosts_[i].out.finish([&](std::string_view piece) { consoles_.of(LogStream::kOut).append(writer, {}, piece); });
    hosts_[i].err.finish([&](std::string_view piece) { consoles_.of(LogStream::kErr).append(writer + 1, {}, piece); });
  }
  consoles_.write_out();
}

void Head::say(const std::string& text) {
  if (text.empty()) return;
  consoles_.of(LogStream::kErr).append(Console::kLauncher, {}, text);
  consoles_.write_out();
}

/// A slow console makes the workers wait, as on one host.
void Head::hold_back_when_full() {
  Console& out = consoles_.of(LogStream::kOut);
  Console& err = consoles_.of(LogStream::kErr);
  const bool full = out.full() || err.full();
  const bool relieved = out.relieved() && err.relieved();
  if (paused_ ? !relieved : !full) return;
  paused_ = !paused_;
  links_->pause(paused_);
}

/// A machine that loses its power or network ends no connection: hosts elsewhere know of us by what we send.
void Head::say_that_we_live() {
  if (!links_->send_elsewhere(Kind::kHeartbeat)) return;
  alive_ = loop_.after(kHeartbeatInterval, [this] { say_that_we_live(); });
}

/// Ctrl-Z is for us alone, and may last for days: the workers run on.
void Head::suspend() {
  (void)links_->send_elsewhere(Kind::kPaused);
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, SIGTSTP);
  ::raise(SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);  // here it stops, until SIGCONT
  ::sigprocmask(SIG_BLOCK, &only, nullptr);
  say_that_we_live();
  if (rest_limit_.armed()) limit_the_rest();  // what was said meanwhile is still unread
}

void Head::signal_arrived(int signal_number) {
  if (signal_number == SIGTSTP) return suspend();
  const bool ends = std::find(options_.stop_signals.begin(), options_.stop_signals.end(), signal_number) !=
                    options_.stop_signals.end();
  if (!started_) {
    if (!ends) return;
    end_ = {exit_code_of_signal(signal_number), signal_number};
    done_ = true;
    return loop_.stop();
  }
  send_to_all(Kind::kSignal, std::to_string(signal_number));
  if (!ends) return;
  const auto end_all = [this] { give_up([](const Host&) { return true; }); };
  if (end_.signal_number == 0) {
    end_.signal_number = signal_number;
    end_limit_ = loop_.after(options_.grace + kEndMargin, end_all);
  } else if (!hurried_limit_.armed()) {  // a third signal gives no more time
    hurried_limit_ = loop_.after(kHurriedEnd, end_all);
  }
}

void Head::send_to_all(NodeFrame::Kind kind, const std::string& payload) {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (!hosts_[i].over && !hosts_[i].end) links_->send(i, kind, payload);
  }
}

/// Without their connection the hosts end what they run.
void Head::give_up(const std::function<bool(const Host&)>& is_waited_for) {
  std::string names;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    Host& host = hosts_[i];
    if (host.over || !is_waited_for(host)) continue;
    names += (names.empty() ? "" : ", ") + host.start.name;
    host.over = true;
    links_->close(i);
  }
  if (names.empty()) return;
  say(message_line(Severity::kWarning, "no end was heard of from " + names, colour_));
  finish_when_all_ended();
}

void Head::finish_when_all_ended() {
  if (done_ || !std::all_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.over; })) return;
  done_ = true;
  end_limit_.cancel();
  hurried_limit_.cancel();
  stop_limit_.cancel();
  end_.code = code_of_run();
  if (end_.code == 0) end_.signal_number = 0;  // it was done before the signal came
  show_unfinished();
  consoles_.when_flushed(console_patience(end_.code == 0 ? RunEnd::Kind::kSucceeded : RunEnd::Kind::kWorkerFailed),
                         [this](bool) { loop_.stop(); });
}

/// That of the host whose words were shown; of a job that never began, that of the host which kept it from that. What
/// hosts end with because they were stopped for one that is lost says nothing.
int Head::code_of_run() const {
  const auto failed_to_begin = [](const Host& host) {
    return host.end && !host.begun && host.end->kind == ExitStatus::Kind::kExited && host.end->value != 0 &&
           host.end->value != exit_code_of_signal(SIGTERM);
  };
  const auto culprit = std::find_if(hosts_.begin(), hosts_.end(), failed_to_begin);
  if (culprit != hosts_.end()) return culprit->end->value;
  const auto spoke = std::find_if(hosts_.begin(), hosts_.end(), [this](const Host& host) {
    return host.end && (host.begun || !stopping_those_who_wait_);
  });
  if (spoke == hosts_.end()) return kExitRefused;
  return spoke->end->shell_code();
}

}  // namespace lrun::launcher
