// In: frames of all hosts, ends of their connections, signals. Out: orders, the go and signals to the hosts, their
// output, and the exit code of the run. start_on_hosts.cc makes one.
#include "multihost/head.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/signal_names.h"
#include "base/split.h"
#include "base/whole_number.h"
#include "logs/terminal_text.h"
#include "process/exit_codes.h"
#include "process/signal_set.h"
#include "remote/reached_hosts.h"
#include "remote/ssh.h"
#include "report/diagnostics.h"
#include "report/head_channel.h"
#include "report/hosts_text.h"
#include "run/console_patience.h"

namespace lrun::launcher {
namespace {

using Kind = NodeFrame::Kind;
using Stage = HostTable::Stage;

/// The first line that is an error, with its end; empty: there is none.
std::string first_error(std::string_view lines) {
  while (!lines.empty()) {
    const std::string line(cut(lines, '\n'));
    if (line.starts_with("lrun: error: ")) return line + "\n";
  }
  return {};
}

/// Before the run has begun: what it waited for.
std::string signal_text(int signal_number, const HostTable& table) {
  return fmt::format("received {} while {}", signal_name(signal_number), table.waits_for());
}

}  // namespace

void stop_by_sigtstp() {
  const sigset_t only = signal_set({SIGTSTP});
  ::raise(SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);  // here the process stops, until SIGCONT
  ::sigprocmask(SIG_BLOCK, &only, nullptr);
}

Head::Head(EventLoop& loop, std::vector<Host> hosts, Options options, HostOutput& output, MessageSink& sink,
           const MakeLinks& make_links)
    : loop_(loop),
      hosts_(std::move(hosts)),
      options_(std::move(options)),
      output_(output),
      sink_(sink),
      messages_(hosts_.size()),
      close_limits_(hosts_.size()) {
  for (const Host& host : hosts_) table_.add(host.order.name, host.here);
  output_.set_events(
      {.filled = [this](bool full) { links_->pause(full); }, .closed = [this] { send_to_all(Kind::kCloseOut, ""); }});
  links_ = make_links({.order = [this](std::size_t host) { return encode(hosts_[host].order); },
                       .frame = [this](std::size_t host, const NodeFrame& frame) { received(host, frame); },
                       .ended = [this](const std::vector<std::size_t>& ended, const ExitStatus& status,
                                       const std::string& last_line) { links_ended(ended, status, last_line); },
                       .failed =
                           [this](std::size_t host, const std::string& why) {
                             (void)table_.close(host);
                             cannot_be_used(host, why);
                           }});
}

Head::End Head::run() {
  links_->connect();
  wait_for_answers();
  send_heartbeat();
  loop_.run();
  links_.reset();
  return end_;
}

void Head::received(std::size_t host, const NodeFrame& frame) {
  if (table_[host].over) return;
  Running* const running = std::get_if<Running>(&phase_);
  if (running != nullptr && running->rest_limit.armed()) limit_the_rest();  // counted from the last word of any host
  switch (frame.kind) {
    case Kind::kAnswer: {
      std::optional<NodeReady> ready = decode_ready(frame.payload);
      if (!ready) return cannot_be_used(host, "its answer cannot be read");
      table_.answered(host, *std::move(ready));
      return start_when_all_answered();
    }
    case Kind::kRefusal:
      return running != nullptr ? failed_to_start(host, frame.payload) : cannot_be_used(host, frame.payload);
    case Kind::kOut:
      return output_.show(host, LogStream::kOut, frame.payload);
    case Kind::kErr:
      return output_.show(host, LogStream::kErr, frame.payload);
    case Kind::kJobWords:
      return show_of_job(messages_.of_job(host, frame.payload));
    case Kind::kOwnWords:
      return show_of_host(host, frame.payload);
    case Kind::kBegun:
      return has_begun(host);
    case Kind::kTold:
      return options_.told(frame.payload);
    case Kind::kEnded:
      return launcher_ended(host, frame.payload);
    default:
      return;
  }
}

void Head::has_begun(std::size_t host) {
  table_.begun(host);
  if (!std::exchange(run_began_, true)) options_.began();
}

void Head::show_of_job(const std::string& text) {
  if (text.empty()) return;
  const bool is_aborted = end_.signal_number != 0 && !run_began_;  // what breaks then says less than the signal
  if (!is_aborted) last_words_.clear();
  std::string_view lines = text;
  while (!lines.empty()) last_words_ += terminal_safe(cut(lines, '\n')) + "\n";
  if (const std::string cause = first_error(last_words_); !cause.empty()) {
    cause_ = cause;
    host_to_hint_.reset();
  }
  sink_.print_of_job(text);
}

/// An error of one host is the cause of the job's end where the job has none.
void Head::show_of_host(std::size_t host, const std::string& payload) {
  if (!messages_.is_new(payload)) return;
  const std::string name = hosts_.size() > 1 ? table_[host].name : std::string();
  const std::string text = text_of_node(payload, name, false);
  if (host == host_to_hint_ && text.starts_with("lrun: hint: ")) cause_ += text;
  if (host == host_to_hint_) host_to_hint_.reset();
  if (cause_.empty()) {
    cause_ = first_error(text);
    if (cause_ == text) host_to_hint_ = host;
  }
  sink_.print_lines(text_of_node(payload, name, sink_.colour()));
}

/// After a signal the cause may be that of an earlier attempt.
std::string Head::last_words() const {
  const bool needs_cause = end_.signal_number == 0 && first_error(last_words_).empty();
  return (needs_cause ? cause_ : "") + last_words_;
}

void Head::tell(Severity severity, const std::string& text) {
  show_of_job(message_line(severity, text, sink_.colour()));
}

RunStatus Head::status() const {
  RunStatus status;
  const bool is_stopping = end_.signal_number != 0;
  status.phase = std::holds_alternative<Ending>(phase_) ? "over"
                 : is_stopping                          ? "stopping"
                 : run_began_                           ? "running"
                                                        : "waiting";
  if (status.waiting()) status.waits_for = table_.waits_for();
  for (std::size_t host = 0; host < table_.size(); ++host) {
    status.hosts.push_back({table_[host].name, table_.state_text(host)});
  }
  return status;
}

std::size_t Head::ask(const std::string& question) {
  std::size_t count = 0;
  for (std::size_t host = 0; host < table_.size(); ++host) {
    if (table_[host].stage != Stage::kBegun || table_[host].over || table_[host].end) continue;
    links_->send(host, Kind::kAsk, question);
    ++count;
  }
  return count;
}

/// \param payload  a signal's number and the exit code
void Head::launcher_ended(std::size_t host, const std::string& payload) {
  std::string_view rest = payload;
  const int signal_number = whole_number<int>(cut(rest, ' ')).value_or(0);
  const int code = whole_number<int>(rest).value_or(kExitRefused);
  table_.ended(host, signal_number != 0 ? ExitStatus{ExitStatus::Kind::kSignaled, signal_number}
                                        : ExitStatus{ExitStatus::Kind::kExited, code});
  close_limits_[host] = loop_.after(options_.close_limit, [this, host] { close(host); });
  host_ended(host);
}

void Head::links_ended(std::vector<std::size_t> hosts, const ExitStatus& status, const std::string& last_line) {
  if (std::holds_alternative<Ending>(phase_)) return;
  std::erase_if(hosts, [this](std::size_t host) { return !table_.close(host); });
  const bool is_connecting = std::holds_alternative<Connecting>(phase_);
  for (const std::size_t host : hosts) {
    close_limits_[host].cancel();
    if (!is_connecting || table_[host].stage == Stage::kUnusable) continue;
    const std::string why = ssh_failure_text(status.shell_code(), last_line, options_.program);
    table_.cannot_be_used(host, table_[host].ready ? "the connection ended: " + why : why);
  }
  if (is_connecting) return start_when_all_answered();
  std::erase_if(hosts, [this](std::size_t host) { return table_[host].end.has_value(); });
  if (hosts.empty()) return finish_when_all_over();
  const char* const command = table_[hosts.front()].here ? "lrun" : "ssh";
  print_lost(hosts, last_line.empty() ? fmt::format("{} {}", command, status.text()) : last_line);
  for (const std::size_t host : hosts) show_of_job(messages_.lost(host));
  for (const std::size_t host : hosts) host_ended(host);
  finish_when_all_over();
}

/// Each host has its own time, which begins anew whenever something moves towards it.
void Head::wait_for_answers() {
  const SteadyTime now = options_.clock.steady();
  links_->connect_silent_from_here(now - options_.detour_limit);
  SteadyTime next = SteadyTime::max();
  for (std::size_t host = 0; host < table_.size(); ++host) {
    if (table_[host].stage != Stage::kConnecting) continue;
    const SteadyTime moved = links_->last_progress(host);
    for (const Duration limit : {options_.detour_limit, options_.answer_limit}) {
      if (moved + limit > now) next = std::min(next, moved + limit);
    }
    if (moved + options_.answer_limit > now) continue;
    table_.cannot_be_used(host, fmt::format("no answer in {}", format_duration(options_.answer_limit)));
  }
  Connecting* const connecting = std::get_if<Connecting>(&phase_);
  if (connecting != nullptr && next != SteadyTime::max()) {
    const auto left = std::chrono::ceil<Duration>(next - now);
    connecting->answer_limit = loop_.after(left, [this] { wait_for_answers(); });
  }
  start_when_all_answered();
}

void Head::cannot_be_used(std::size_t host, const std::string& why) {
  table_.cannot_be_used(host, why);
  start_when_all_answered();
}

void Head::start_when_all_answered() {
  if (!std::holds_alternative<Connecting>(phase_) || !table_.all_answered()) return;
  const std::vector<HostProblem> problems = table_.problems();
  problems.empty() ? start() : refuse_hosts(problems);
}

void Head::refuse_hosts(const std::vector<HostProblem>& problems) {
  show_of_job(hosts_problem_text(problems, hosts_.size(), sink_.colour()));
  end_.code = kExitRefused;
  phase_ = Ending{.has_run = false};
  output_.when_flushed(kLastWordPatience, [this] { loop_.stop(); });
}

void Head::start() {
  phase_ = Running{};
  const std::vector<ReachedHost> reached = table_.reached();
  table_.start();
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    const NodeGo go{reached.front().ready.port, rendezvous_for(host, reached), names_of_machine(reached, host)};
    links_->send(host, Kind::kGo, encode(go));
  }
}

/// The address of the first host, as this one reaches it. A host behind another answers with that other host's address
/// as the head's: the head's own address is the one that the first host on the way has seen.
std::string Head::rendezvous_for(std::size_t host, const std::vector<ReachedHost>& hosts) const {
  if (!options_.master_addr.empty()) return options_.master_addr;
  ReachedHost reached = hosts[host];
  reached.ready.head_address = hosts[links_->first_on_the_way(host)].ready.head_address;
  return rendezvous_address(hosts.front(), reached);
}

/// The host had answered that it is ready, and the others got the go.
void Head::failed_to_start(std::size_t host, const std::string& why) {
  tell(Severity::kError, fmt::format("{}: lrun cannot start there: {}", table_[host].name, why));
  show_of_job(messages_.lost(host));
  table_.failed_to_start(host);
  host_ended(host);
  close(host);
}

/// Launchers of the job print what the loss means for it. Once one of them has reported the end, the loss is not worth
/// a line. Where no launcher can report, the loss has ended the run.
void Head::print_lost(const std::vector<std::size_t>& hosts, const std::string& why) {
  if (table_.end_was_reported()) return;
  std::vector<std::string> names;
  for (const std::size_t host : hosts) names.push_back(table_[host].name);
  tell(table_.loss_will_be_reported() ? Severity::kWarning : Severity::kError, lost_hosts_text(names, why));
}

/// The last line that it printed may have no end.
void Head::host_ended(std::size_t host) {
  output_.show_unfinished();
  const HostTable::Host& ended = table_[host];
  const bool failed = !ended.end || !ended.end->success();
  if (failed && ended.stage != Stage::kBegun) stop_waiting_hosts();
  limit_the_rest();
}

void Head::limit_the_rest() {
  Running* const running = std::get_if<Running>(&phase_);
  if (running == nullptr || !table_.job_is_over(options_.min_nodes)) return;
  running->rest_limit = loop_.after(options_.grace + options_.end_margin, [this] {
    // While the console is full no frames are read, so silence means nothing.
    if (output_.full()) return limit_the_rest();
    give_up([](const HostTable::Host& host) { return !host.end; });
  });
}

/// Stops hosts that would wait for a lost host for ever.
void Head::stop_waiting_hosts() {
  Running* const running = std::get_if<Running>(&phase_);
  if (running == nullptr || table_.running() >= options_.min_nodes) return;
  if (std::exchange(running->stopped_waiting, true)) return;
  for (std::size_t host = 0; host < table_.size(); ++host) {
    const HostTable::Host& waiting = table_[host];
    if (waiting.stage != Stage::kBegun && !waiting.over && !waiting.end) {
      links_->send(host, Kind::kSignal, std::to_string(SIGTERM));
    }
  }
  running->stop_limit = loop_.after(options_.grace + options_.end_margin, [this] {
    give_up([](const HostTable::Host& host) { return host.stage != Stage::kBegun; });
  });
}

/// Without their connection the hosts end what they run.
void Head::give_up(const std::function<bool(const HostTable::Host&)>& is_waited_for) {
  std::string names;
  for (std::size_t host = 0; host < table_.size(); ++host) {
    if (table_[host].over || !is_waited_for(table_[host])) continue;
    names += (names.empty() ? "" : ", ") + table_[host].name;
    (void)table_.close(host);
    links_->close(host);
  }
  if (names.empty()) return;
  sink_.message_of_job(Severity::kWarning, "no outcome was received from " + names);
  finish_when_all_over();
}

void Head::close(std::size_t host) {
  (void)table_.close(host);
  finish_when_all_over();
}

void Head::finish_when_all_over() {
  const Running* const running = std::get_if<Running>(&phase_);
  if (running == nullptr || !table_.all_over()) return;
  end_.code = table_.exit_code(running->stopped_waiting);
  if (end_.code == 0) end_.signal_number = 0;  // the run had succeeded before the signal came
  phase_ = Ending{.has_run = true};
  output_.show_unfinished();
  output_.when_flushed(console_patience(end_.code == 0 ? RunEnd::Kind::kSucceeded : RunEnd::Kind::kWorkerFailed),
                       [this] { loop_.stop(); });
}

/// A machine that loses its power or network ends no connection: hosts elsewhere know of this one by its heartbeats.
void Head::send_heartbeat() {
  if (!links_->send_elsewhere(Kind::kHeartbeat)) return;
  heartbeat_ = loop_.after(kHeartbeatInterval, [this] { send_heartbeat(); });
}

/// Ctrl-Z is for the head alone, and may last for days: the workers run on.
void Head::suspend() {
  (void)links_->send_elsewhere(Kind::kPaused);
  options_.stop_process();
  send_heartbeat();
  // Frames that came meanwhile are still unread: the time for them begins now.
  const Running* const running = std::get_if<Running>(&phase_);
  if (running != nullptr && running->rest_limit.armed()) limit_the_rest();
}

void Head::signal_arrived(int signal_number) {
  if (signal_number == SIGTSTP) return suspend();
  const bool ends = std::find(options_.stop_signals.begin(), options_.stop_signals.end(), signal_number) !=
                    options_.stop_signals.end();
  const Ending* const ending = std::get_if<Ending>(&phase_);
  if (std::holds_alternative<Connecting>(phase_) || (ending != nullptr && !ending->has_run)) {
    if (ends) end_before_start(signal_number);
    return;
  }
  send_to_all(Kind::kSignal, std::to_string(signal_number));
  if (!ends) return;
  const bool is_first = end_.signal_number == 0;
  if (is_first) end_.signal_number = signal_number;
  if (is_first && !run_began_) tell(Severity::kNote, signal_text(signal_number, table_));
  Running* const running = std::get_if<Running>(&phase_);
  if (running == nullptr) return;  // all have ended, and only the console is waited for
  const auto end_all = [this] { give_up([](const HostTable::Host&) { return true; }); };
  if (is_first) {
    running->end_limit = loop_.after(options_.grace + options_.end_margin, end_all);
  } else if (!running->hurried_limit.armed()) {  // a third signal gives no more time
    running->hurried_limit = loop_.after(options_.hurried_end, end_all);
  }
}

/// No host has been told to start anything: a first signal is told of, and a second one ends the head at once.
void Head::end_before_start(int signal_number) {
  end_ = {exit_code_of_signal(signal_number), signal_number};
  if (std::holds_alternative<Ending>(phase_)) return loop_.stop();
  tell(Severity::kNote, signal_text(signal_number, table_));
  phase_ = Ending{};
  output_.when_flushed(kLastWordPatience, [this] { loop_.stop(); });
}

void Head::send_to_all(Kind kind, const std::string& payload) {
  for (std::size_t host = 0; host < table_.size(); ++host) {
    if (!table_[host].over && !table_[host].end) links_->send(host, kind, payload);
  }
}

}  // namespace lrun::launcher
