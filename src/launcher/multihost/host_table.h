#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "process/exit_status.h"
#include "remote/frames.h"
#include "remote/reached_hosts.h"
#include "report/hosts_text.h"

namespace lrun::launcher {

/// How far each host of a run has come, and what follows from that for the run as a whole. Hosts are numbered in the
/// order of the nodes. Pure.
class HostTable {
 public:
  enum class Stage {
    kConnecting,  ///< it has not answered
    kReady,       ///< it has answered that it is ready, and has not joined the others
    kUnusable,    ///< it cannot be used: `problem`
    kBegun,       ///< it has joined the others
  };
  struct Host {
    std::string name;   ///< as typed
    bool here = false;  ///< this machine: no ssh
    Stage stage = Stage::kConnecting;
    std::string problem = {};
    std::optional<NodeReady> ready = {};  ///< its answer
    std::optional<ExitStatus> end = {};   ///< of its launcher, as that has reported
    bool over = false;                    ///< its connection has ended, or is not waited for any more
  };

  void add(std::string name, bool here) { hosts_.push_back({.name = std::move(name), .here = here}); }
  [[nodiscard]] std::size_t size() const { return hosts_.size(); }
  [[nodiscard]] const Host& operator[](std::size_t host) const { return hosts_[host]; }

  void answered(std::size_t host, NodeReady ready);
  void cannot_be_used(std::size_t host, std::string why);
  /// All hosts get the go. A single host has no others to join.
  void start();
  void begun(std::size_t host) { hosts_[host].stage = Stage::kBegun; }
  void ended(std::size_t host, const ExitStatus& status) { hosts_[host].end = status; }
  /// The host had answered that it is ready, and then failed.
  void failed_to_start(std::size_t host);
  /// Nothing more comes from the host. \return false: that was known.
  bool close(std::size_t host);

  /// 'running', 'exited with code 0', for people.
  [[nodiscard]] std::string state_text(std::size_t host) const;
  /// Before the run has begun: 'connecting to 2 of 8 hosts: a, b'.
  [[nodiscard]] std::string waits_for() const;
  [[nodiscard]] bool all_answered() const;
  /// The hosts that cannot be used.
  [[nodiscard]] std::vector<HostProblem> problems() const;
  /// After all have answered.
  [[nodiscard]] std::vector<ReachedHost> reached() const;
  /// A launcher that had joined the others has ended, and has printed why.
  [[nodiscard]] bool end_was_reported() const;
  /// A launcher that has joined the others still runs, and will print what a loss means for the job.
  [[nodiscard]] bool loss_will_be_reported() const;
  /// Hosts whose launcher has not ended.
  [[nodiscard]] int running() const;
  /// No host is needed any more: a launcher ends well only when the job is over everywhere, and without enough hosts
  /// there is no job.
  [[nodiscard]] bool job_is_over(int min_nodes) const;
  [[nodiscard]] bool all_over() const;

  /// The exit code of the run: that of the host whose messages were shown, or, where the job never began, that of the
  /// host which kept it from beginning.
  /// \param waiting_were_stopped  hosts that waited for one that is lost were stopped: their codes mean nothing
  [[nodiscard]] int exit_code(bool waiting_were_stopped) const;

 private:
  std::vector<Host> hosts_;
};

}  // namespace lrun::launcher
