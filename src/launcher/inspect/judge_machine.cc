#include "inspect/judge_machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "inspect/judge_gpus.h"

namespace lrun::launcher {
namespace {

using Severity = Finding::Severity;
using Findings = std::vector<Finding>;

constexpr std::uint64_t kMiB = 1ULL << 20U;
constexpr std::uint64_t kEnoughSharedMemory = 1024 * kMiB;
constexpr std::uint64_t kEnoughFreeMemory = 64 * kMiB;
constexpr std::uint64_t kEnoughLockedMemory = 1024 * kMiB;
constexpr std::uint64_t kEnoughFiles = 4096;
constexpr std::uint64_t kEnoughLogRoom = 100 * kMiB;
constexpr std::int64_t kYear2024 = 1'704'067'200;

std::string in_words(std::uint64_t bytes) {
  if (bytes >= 1024 * kMiB) return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1024.0 * kMiB));
  return bytes >= kMiB ? fmt::format("{} MiB", bytes / kMiB) : fmt::format("{} KiB", bytes / 1024);
}

void judge_shared_memory(const MachineFacts& facts, Findings& findings) {
  const Room& room = facts.shared_memory;
  if (room.total == 0) {
    findings.push_back({"shm", Severity::kProblem, "there is no /dev/shm: workers cannot share memory",
                        "mount -t tmpfs -o size=8g tmpfs /dev/shm"});
  } else if (room.total < kEnoughSharedMemory) {
    findings.push_back(
        {"shm", Severity::kWarning,
         fmt::format("/dev/shm holds only {}: data loaders and collectives end with SIGBUS when it is full",
                     in_words(room.total)),
         "docker run --shm-size=8g, or as root: mount -o remount,size=8g /dev/shm"});
  } else if (room.free < kEnoughFreeMemory) {
    findings.push_back({"shm", Severity::kWarning,
                        fmt::format("/dev/shm is full: {} of {} are free", in_words(room.free), in_words(room.total)),
                        "remove what ended programs left: ls -lS /dev/shm"});
  }
}

void judge_limits(const MachineFacts& facts, Findings& findings) {
  if (facts.infiniband && facts.locked_memory && *facts.locked_memory < kEnoughLockedMemory) {
    findings.push_back(
        {"memlock", Severity::kWarning,
         fmt::format("only {} of memory may be locked, and RDMA locks its buffers", in_words(*facts.locked_memory)),
         "ulimit -l unlimited; 'memlock' in /etc/security/limits.conf, LimitMEMLOCK=infinity of the "
         "service, or docker run --ulimit memlock=-1"});
  }
  if (facts.open_files < kEnoughFiles) {
    findings.push_back({"nofile", Severity::kWarning,
                        fmt::format("a process may open only {} files: data loaders run out of them", facts.open_files),
                        "ulimit -Hn 1048576 as root; 'nofile' in /etc/security/limits.conf, or LimitNOFILE= of the "
                        "service"});
  }
}

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

void judge_names(const MachineFacts& facts, Findings& findings) {
  if (!facts.loopback_error.empty()) {
    findings.push_back({"loopback", Severity::kProblem,
                        "127.0.0.1 cannot be reached (" + facts.loopback_error + "): workers do not find their store",
                        "ip link set lo up, and let the firewall pass the interface lo"});
  }
  const std::vector<std::string>& addresses = facts.host_addresses;
  const std::string entry = "add a line '<address> " + facts.host_name + "' to /etc/hosts";
  if (facts.host_name_slow) {
    findings.push_back(
        {"hostname", Severity::kWarning,
         "nobody says in time what '" + facts.host_name + "' means: every start waits for the name service",
         entry + ", or name a server that answers in /etc/resolv.conf"});
  } else if (addresses.empty()) {
    findings.push_back({"hostname", Severity::kWarning,
                        "the host's own name '" + facts.host_name + "' means nothing here: gloo looks it up", entry});
  } else if (!facts.peers.empty() && std::all_of(addresses.begin(), addresses.end(), is_loopback)) {
    findings.push_back(
        {"hostname", Severity::kWarning,
         "the host's own name '" + facts.host_name + "' means " + addresses.front() + ": other hosts cannot use that",
         entry + ", with an address of the network"});
  }
}

void judge_cpus(const MachineFacts& facts, Findings& findings) {
  if (!facts.cpu_quota || *facts.cpu_quota >= facts.cpus) return;
  const auto gpus = static_cast<double>(facts.visible_gpus.gpus.size());
  const bool starves = *facts.cpu_quota < std::max(1.0, gpus);
  findings.push_back({"cpu-quota", starves ? Severity::kWarning : Severity::kNote,
                      fmt::format("the cgroup grants {:.1f} of {} CPUs{}", *facts.cpu_quota, facts.cpus,
                                  starves ? ", less than one for each worker" : ""),
                      "docker run --cpus, resources.limits.cpu in Kubernetes, or cpu.max of the cgroup"});
}

void judge_clock(const MachineFacts& facts, Findings& findings) {
  if (facts.clock_seconds < kYear2024) {
    findings.push_back({"clock", Severity::kProblem, "the clock is years behind: certificates seem not yet valid",
                        "timedatectl set-ntp true, or date -s as root"});
  } else if (!facts.clock_synchronized) {
    findings.push_back({"clock", facts.peers.empty() ? Severity::kNote : Severity::kWarning,
                        "the clock is not synchronized: logs of several hosts cannot be compared",
                        "timedatectl set-ntp true, or start chronyd"});
  }
}

void judge_state(const MachineFacts& facts, Findings& findings) {
  const std::string other = "set LRUN_STATE to a folder that works";
  if (!facts.state_error.empty()) {
    findings.push_back(
        {"state", Severity::kWarning,
         "nothing can be written to '" + facts.state_folder + "' (" + facts.state_error + "): runs leave no logs",
         other});
  } else if (facts.state_room.total > 0 && facts.state_room.free < kEnoughLogRoom) {
    findings.push_back(
        {"state", Severity::kWarning,
         fmt::format("only {} are free for logs in '{}'", in_words(facts.state_room.free), facts.state_folder),
         "make room, or " + other});
  }
}

Finding judge_peer(const PeerFacts& peer) {
  using Path = PeerFacts::Path;
  const std::string at = peer.address.empty() ? "" : " (" + peer.address + ")";
  if (peer.path == Path::kUnresolved) {
    return {"peer", Severity::kProblem, "'" + peer.host + "' means nothing here: " + peer.detail,
            "write its address, or add a line for it to /etc/hosts"};
  }
  if (peer.path == Path::kSilent) {
    return {"peer", Severity::kProblem,
            "'" + peer.host + "'" + at + " does not answer: it is down, or a firewall drops what is sent to it",
            "allow TCP from this host there, all ports: workers choose their own"};
  }
  return {"peer", Severity::kProblem, "'" + peer.host + "'" + at + " cannot be reached: " + peer.detail,
          "add a route to it, or let the firewalls between the hosts pass TCP"};
}

}  // namespace

std::vector<Finding> judge_machine(const MachineFacts& facts) {
  Findings findings;
  judge_gpus(facts, findings);
  judge_shared_memory(facts, findings);
  judge_limits(facts, findings);
  judge_cpus(facts, findings);
  judge_names(facts, findings);
  for (const PeerFacts& peer : facts.peers) {
    if (peer.path != PeerFacts::Path::kOpen) findings.push_back(judge_peer(peer));
  }
  judge_clock(facts, findings);
  judge_state(facts, findings);
  return findings;
}

bool is_healthy(const std::vector<Finding>& findings) {
  return std::all_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.severity == Severity::kNote; });
}

}  // namespace lrun::launcher
