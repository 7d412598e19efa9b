// In: a question through the control socket. Out: what all launchers of the job answer. NodeLauncher owns one.
#include "run/job_status.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "rendezvous/message.h"

namespace lrun::launcher {
namespace {

constexpr Duration kPatience(1000);
/// Of all answers to one question: they wait in the memory of the leader where the asker reads slowly.
constexpr std::size_t kMostBytesOfJob = std::size_t{1} << 20U;

std::size_t most_bytes(const RunStatus& status) {
  return std::min(kMostReportBytes, kMostBytesOfJob / static_cast<std::size_t>(std::max(1, status.nodes)));
}

}  // namespace

JobStatus::JobStatus(EventLoop& loop, JobMember& job, std::function<RunStatus()> own)
    : loop_(loop), job_(job), own_(std::move(own)) {
  job_.set_status({.own =
                       [this] {
                         const RunStatus status = own_();
                         return to_json_within(status, most_bytes(status));
                       },
                   .other = [this](const std::string& status) { add(status); }});
}

void JobStatus::ask(const ControlSocket::Reply& reply) {
  askers_.push_back(reply);
  if (limit_.armed()) return;
  known_ = {own_()};
  limit_ = loop_.after(kPatience, [this] { finish(); });
  job_.ask_status();
  finish_when_complete();
}

/// One that answers an earlier question is too late.
void JobStatus::add(const std::string& text) {
  std::optional<RunStatus> status = run_status_from_json(text);
  if (!status || !limit_.armed()) return;
  const bool is_known = std::any_of(known_.begin(), known_.end(), [&](const RunStatus& known) {
    return known.host == status->host && known.pid == status->pid;
  });
  if (is_known) return;
  status->argv = known_.front().argv;
  known_.push_back(*std::move(status));
  finish_when_complete();
}

void JobStatus::finish_when_complete() {
  if (known_.size() >= static_cast<std::size_t>(known_.front().nodes)) finish();
}

void JobStatus::finish() {
  limit_.cancel();
  const std::string line = to_json(std::exchange(known_, {}));
  for (const ControlSocket::Reply& reply : std::exchange(askers_, {})) reply(line);
}

}  // namespace lrun::launcher
