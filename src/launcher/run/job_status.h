#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "base/event_loop.h"
#include "inspect/control_socket.h"
#include "inspect/run_status.h"
#include "rendezvous/job_member.h"

namespace lrun::launcher {

/// Answers for the whole job, on any of its nodes: asks the other launchers through the job, and answers when all have
/// told their status, or after a second. One thread.
class JobStatus {
 public:
  /// \param own  the status of this launcher. Everything must outlive this.
  JobStatus(EventLoop& loop, JobMember& job, std::function<RunStatus()> own);
  ~JobStatus() { job_.set_status({}); }
  JobStatus(const JobStatus&) = delete;
  JobStatus& operator=(const JobStatus&) = delete;

  void ask(const ControlSocket::Reply& reply);

 private:
  void add(const std::string& status);
  void finish_when_complete();
  void finish();

  EventLoop& loop_;
  JobMember& job_;
  std::function<RunStatus()> own_;
  std::vector<ControlSocket::Reply> askers_;  ///< of the question that is under way
  std::vector<RunStatus> known_;
  EventLoop::Timer limit_;
};

}  // namespace lrun::launcher
