// In: answers and ends of the hosts of a run. Out: how far each is, and what follows from that. Head owns the table.
#include "multihost/host_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/nearest.h"
#include "base/shortened.h"
#include "inspect/run_status.h"
#include "process/exit_codes.h"

namespace lrun::launcher {
namespace {

using Stage = HostTable::Stage;

}  // namespace

void HostTable::answered(std::size_t host, NodeReady ready) {
  if (hosts_[host].stage == Stage::kUnusable) return;  // given up: the answer is too late
  hosts_[host].ready = std::move(ready);
  hosts_[host].stage = Stage::kReady;
}

void HostTable::cannot_be_used(std::size_t host, std::string why) {
  hosts_[host].problem = std::move(why);
  hosts_[host].stage = Stage::kUnusable;
}

void HostTable::start() {
  if (size() == 1) hosts_.front().stage = Stage::kBegun;
}

void HostTable::failed_to_start(std::size_t host) {
  hosts_[host].stage = Stage::kReady;
  hosts_[host].end = ExitStatus{ExitStatus::Kind::kExited, kExitRefused};
}

bool HostTable::close(std::size_t host) { return !std::exchange(hosts_[host].over, true); }

std::string HostTable::state_text(std::size_t host) const {
  const Host& of = hosts_[host];
  if (of.end) return of.end->text();
  if (of.over) return "lost";
  if (of.stage == Stage::kConnecting) return "connecting";
  if (of.stage == Stage::kUnusable) return "cannot be used: " + of.problem;
  return of.stage == Stage::kBegun ? kHostRuns : "starting";
}

std::string HostTable::waits_for() const {
  constexpr std::size_t kMostNameBytes = 100;
  std::vector<std::string> connecting;
  std::vector<std::string> starting;
  for (const Host& host : hosts_) {
    if (host.stage == Stage::kConnecting) connecting.push_back(host.name);
    if (!host.over && !host.end) starting.push_back(host.name);
  }
  const auto names = [](const std::vector<std::string>& of) { return shortened(join_words(of, ", "), kMostNameBytes); };
  if (connecting.empty()) return fmt::format("starting on {}: {}", counted(starting.size(), "host"), names(starting));
  return fmt::format("connecting to {} of {}: {}", connecting.size(), counted(size(), "host"), names(connecting));
}

bool HostTable::all_answered() const {
  return std::none_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.stage == Stage::kConnecting; });
}

std::vector<HostProblem> HostTable::problems() const {
  std::vector<HostProblem> problems;
  for (const Host& host : hosts_) {
    if (host.stage == Stage::kUnusable) problems.push_back({host.name, host.problem});
  }
  return problems;
}

std::vector<ReachedHost> HostTable::reached() const {
  std::vector<ReachedHost> reached;
  for (const Host& host : hosts_) reached.push_back({host.name, host.here, host.ready.value_or(NodeReady())});
  return reached;
}

bool HostTable::end_was_reported() const {
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [](const Host& host) { return host.stage == Stage::kBegun && host.end; });
}

bool HostTable::loss_will_be_reported() const {
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [](const Host& host) { return host.stage == Stage::kBegun && !host.over; });
}

int HostTable::running() const {
  return static_cast<int>(
      std::count_if(hosts_.begin(), hosts_.end(), [](const Host& host) { return !host.over && !host.end; }));
}

bool HostTable::job_is_over(int min_nodes) const {
  const bool needs_all = min_nodes == static_cast<int>(size());
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [&](const Host& host) { return host.end && (host.end->success() || needs_all); });
}

bool HostTable::all_over() const {
  return std::all_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.over; });
}

int HostTable::exit_code(bool waiting_were_stopped) const {
  const auto has_begun = [](const Host& host) { return host.stage == Stage::kBegun; };
  const auto kept_job_from_beginning = [](const Host& host) {
    return host.end && host.end->kind == ExitStatus::Kind::kExited && host.end->value != 0 &&
           host.end->value != exit_code_of_signal(SIGTERM);
  };
  const bool job_began = std::any_of(hosts_.begin(), hosts_.end(), has_begun);
  if (!job_began) {
    const auto culprit = std::find_if(hosts_.begin(), hosts_.end(), kept_job_from_beginning);
    if (culprit != hosts_.end()) return culprit->end->value;
  }
  const auto shown = std::find_if(hosts_.begin(), hosts_.end(), [&](const Host& host) {
    return host.end && (job_began ? has_begun(host) : !waiting_were_stopped);
  });
  return shown == hosts_.end() ? kExitRefused : shown->end->shell_code();
}

}  // namespace lrun::launcher
