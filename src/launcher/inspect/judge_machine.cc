// In: the facts that read_machine() found. Out: findings, each with a fix to type. Called by `lrun doctor`.
#include "inspect/judge_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/bytes_text.h"
#include "inspect/judge_python.h"
#include "plan/busy_gpus.h"
#include "remote/ssh.h"

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

void judge_driver(const MachineFacts& facts, Findings& findings) {
  const GpuInventory& gpus = facts.machine_gpus;
  const DriverFacts& driver = facts.driver;
  if (gpus.answer == GpuAnswer::kNoLibrary && facts.nvidia_hardware) {
    findings.push_back({"driver", Severity::kProblem, "NVIDIA GPU found, but no driver library",
                        "install the driver; in a container: docker run --gpus all"});
  } else if (gpus.answer == GpuAnswer::kDriverNotLoaded && facts.nvidia_hardware) {
    findings.push_back({"driver", Severity::kProblem, "NVIDIA GPU found, but its driver is not loaded",
                        "as root: modprobe nvidia; 'dmesg | grep -i nvidia' shows why it is not loaded"});
  } else if (gpus.answer == GpuAnswer::kFailed) {
    findings.push_back(
        {"driver", Severity::kProblem, gpus.detail, "see 'nvidia-smi' and 'dmesg'; reboot if both fail"});
  }
  if (!driver.kernel.empty() && !driver.library.empty() && driver.kernel != driver.library) {
    findings.push_back(
        {"driver-version", Severity::kProblem,
         fmt::format("the NVIDIA kernel module has version {}, the driver library {}", driver.kernel, driver.library),
         "reboot, or reload the module: the driver was updated while it was in use"});
  }
  for (const std::string& node : driver.closed_nodes) {
    findings.push_back({"permission", Severity::kProblem, "no permission to open '" + node + "': programs find no GPU",
                        "join the group that owns it: ls -l " + node});
  }
}

void judge_each_gpu(const MachineFacts& facts, Findings& findings) {
  for (const Gpu& gpu : facts.machine_gpus.gpus) {
    const std::string name = fmt::format("GPU {}", gpu.index);
    if (gpu.lost) {
      findings.push_back({"gpu-lost", Severity::kProblem, name + " is lost: it fell off the bus",
                          "reboot; if it happens again, 'dmesg | grep Xid' shows the cause"});
    } else if (gpu.mode == ComputeMode::kProhibited) {
      findings.push_back({"gpu-mode", Severity::kWarning, name + " cannot be used: its compute mode is 'prohibited'",
                          fmt::format("as root: nvidia-smi -i {} -c DEFAULT", gpu.index)});
    } else if (!gpu.processes.empty()) {
      findings.push_back({"gpu-busy", Severity::kWarning, name + " is busy: " + why_busy(gpu),
                          "use other GPUs, or end the process if an earlier run left it"});
    }
  }
  for (const int index : facts.driver.waiting_for_reset) {
    findings.push_back({"gpu-memory", Severity::kWarning,
                        fmt::format("GPU {} has faulty memory, which its next reset replaces", index),
                        fmt::format("as root, with nothing running on it: nvidia-smi -i {} --gpu-reset", index)});
  }
}

void judge_gpu_count(const MachineFacts& facts, Findings& findings) {
  const auto there = static_cast<int>(facts.machine_gpus.gpus.size());
  if (facts.machine_gpus.answer == GpuAnswer::kCounted && facts.driver.listed > 0 && there < facts.driver.listed) {
    findings.push_back({"gpu-missing", Severity::kProblem,
                        fmt::format("the kernel lists {} GPUs, but only {} answer{}", facts.driver.listed, there,
                                    facts.machine_gpus.detail.empty() ? "" : ": " + facts.machine_gpus.detail),
                        "'nvidia-smi' and 'dmesg | grep Xid' show which is missing"});
  }
  if (there > 0 && facts.visible_gpus.gpus.empty()) {
    findings.push_back({"gpu-hidden", Severity::kWarning,
                        "programs started here see no GPU: " + facts.visible_gpus.detail,
                        "unset the variable, or name GPUs that exist"});
  }
}

/// Where no pair has peer-to-peer access, that kind of GPU lacks it. Where only some pairs lack it, that is a fault.
void judge_gpu_pairs(const MachineFacts& facts, Findings& findings) {
  const DriverFacts& driver = facts.driver;
  if (driver.blocked.empty()) return;
  const bool all = static_cast<int>(driver.blocked.size()) == driver.pairs;
  const BlockedPair& first = driver.blocked.front();
  const std::string text =
      all ? fmt::format("the GPUs cannot read each other's memory ({}): collectives go through the host", first.reason)
          : fmt::format("GPUs {} and {} cannot read each other's memory ({}), other pairs can", first.first,
                        first.second, first.reason);
  findings.push_back({"p2p", all ? Severity::kNote : Severity::kWarning, text,
                      "'nvidia-smi topo -p2p r' shows all pairs; ACS and IOMMU settings in the BIOS may disable it"});
}

void judge_shared_memory(const MachineFacts& facts, Findings& findings) {
  const StorageSpace& room = facts.shared_memory;
  if (room.total_bytes == 0) {
    findings.push_back({"shm", Severity::kProblem, "there is no /dev/shm: workers cannot share memory",
                        "mount -t tmpfs -o size=8g tmpfs /dev/shm"});
  } else if (room.total_bytes < kEnoughSharedMemory) {
    findings.push_back({"shm", Severity::kWarning,
                        fmt::format("/dev/shm has only {}: data loaders and collectives die of SIGBUS when it is full",
                                    bytes_text(room.total_bytes)),
                        "docker run --shm-size=8g, or as root: mount -o remount,size=8g /dev/shm"});
  } else if (room.free_bytes < kEnoughFreeMemory) {
    findings.push_back({"shm", Severity::kWarning,
                        fmt::format("/dev/shm is almost full: {} of {} free", bytes_text(room.free_bytes),
                                    bytes_text(room.total_bytes)),
                        "remove files of programs that have ended: ls -lS /dev/shm"});
  }
}

void judge_limits(const MachineFacts& facts, Findings& findings) {
  if (facts.infiniband && facts.locked_memory && *facts.locked_memory < kEnoughLockedMemory) {
    findings.push_back(
        {"memlock", Severity::kWarning,
         fmt::format("only {} of memory can be locked, but RDMA locks its buffers", bytes_text(*facts.locked_memory)),
         "ulimit -l unlimited; 'memlock' in /etc/security/limits.conf, LimitMEMLOCK=infinity of the "
         "service, or docker run --ulimit memlock=-1"});
  }
  if (facts.open_files < kEnoughFiles) {
    findings.push_back({"nofile", Severity::kWarning,
                        fmt::format("a process can open only {} files: data loaders need more", facts.open_files),
                        "as root: ulimit -Hn 1048576; 'nofile' in /etc/security/limits.conf, or LimitNOFILE= of the "
                        "service"});
  }
}

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

void judge_names(const MachineFacts& facts, Findings& findings) {
  if (!facts.loopback_error.empty()) {
    findings.push_back({"loopback", Severity::kProblem,
                        "127.0.0.1 cannot be reached (" + facts.loopback_error + "): workers cannot reach their store",
                        "as root: ip link set lo up; allow traffic on interface lo in the firewall"});
  }
  const std::vector<std::string>& addresses = facts.host_addresses;
  const std::string entry = "add a line '<address> " + facts.host_name + "' to /etc/hosts";
  if (facts.host_name_slow) {
    findings.push_back({"hostname", Severity::kWarning,
                        "the name service does not answer for '" + facts.host_name + "': every start waits for it",
                        entry + ", or name another server in /etc/resolv.conf"});
  } else if (addresses.empty()) {
    findings.push_back({"hostname", Severity::kWarning,
                        "the host name '" + facts.host_name + "' does not resolve: gloo needs it", entry});
  } else if (!facts.peers.empty() && std::all_of(addresses.begin(), addresses.end(), is_loopback)) {
    findings.push_back(
        {"hostname", Severity::kWarning,
         "the host name '" + facts.host_name + "' resolves to " + addresses.front() + ": other hosts cannot use that",
         entry + ", with an address that they can reach"});
  }
}

void judge_cpus(const MachineFacts& facts, Findings& findings) {
  if (!facts.cpu_quota || *facts.cpu_quota >= facts.cpus) return;
  const auto gpus = static_cast<double>(facts.visible_gpus.gpus.size());
  const bool starves = *facts.cpu_quota < std::max(1.0, gpus);
  findings.push_back({"cpu-quota", starves ? Severity::kWarning : Severity::kNote,
                      fmt::format("the cgroup allows {:.1f} of {} CPUs{}", *facts.cpu_quota, facts.cpus,
                                  starves ? ", less than one per worker" : ""),
                      "raise 'docker run --cpus', resources.limits.cpu in Kubernetes, or cpu.max of the cgroup"});
}

void judge_clock(const MachineFacts& facts, Findings& findings) {
  if (facts.clock_seconds < kYear2024) {
    findings.push_back({"clock", Severity::kProblem, "the clock is years behind: certificates look not yet valid",
                        "as root: timedatectl set-ntp true, or date -s"});
  } else if (!facts.clock_synchronized) {
    findings.push_back({"clock", facts.peers.empty() ? Severity::kNote : Severity::kWarning,
                        "the clock is not synchronized: logs of different hosts cannot be compared",
                        "as root: timedatectl set-ntp true, or start chronyd"});
  }
}

void judge_state(const MachineFacts& facts, Findings& findings) {
  const std::string other = "set LRUN_STATE to a writable folder";
  if (!facts.state_error.empty()) {
    findings.push_back({"state", Severity::kWarning,
                        "cannot write to '" + facts.state_folder + "' (" + facts.state_error + "): runs keep no logs",
                        other});
  } else if (facts.state_room.total_bytes > 0 && facts.state_room.free_bytes < kEnoughLogRoom) {
    findings.push_back(
        {"state", Severity::kWarning,
         fmt::format("only {} free for logs in '{}'", bytes_text(facts.state_room.free_bytes), facts.state_folder),
         "free some space, or " + other});
  }
}

Finding judge_login(const PeerFacts& peer) {
  std::string fix(ssh_advice(peer.login_error));
  if (fix.empty()) fix = "'ssh -v HOST true' shows what it waits for or lacks";
  constexpr std::string_view kHost = "HOST";
  for (std::size_t at = 0; (at = fix.find(kHost, at)) != std::string::npos; at += peer.host.size()) {
    fix.replace(at, kHost.size(), peer.host);
  }
  return {"ssh", Severity::kProblem, "ssh cannot log in to '" + peer.host + "': " + peer.login_error, fix};
}

Finding judge_peer(const PeerFacts& peer) {
  using Path = PeerFacts::Path;
  const bool ssh_knows_it =
      peer.login == PeerFacts::Login::kFails && peer.login_error.find("resolve hostname") == std::string::npos;
  if (peer.path == Path::kOpen || (peer.path == Path::kUnresolved && ssh_knows_it)) return judge_login(peer);
  if (peer.login == PeerFacts::Login::kWorks) {
    return {"peer", Severity::kNote, "'" + peer.host + "' does not resolve, only ssh knows the name",
            "use its address, or add a line for it to /etc/hosts, to look for firewalls, too"};
  }
  const std::string at = peer.address.empty() ? "" : " (" + peer.address + ")";
  if (peer.path == Path::kUnresolved) {
    return {"peer", Severity::kProblem, "'" + peer.host + "' does not resolve: " + peer.detail,
            "use its address, or add a line for it to /etc/hosts"};
  }
  if (peer.path == Path::kSilent) {
    return {"peer", Severity::kProblem,
            "'" + peer.host + "'" + at + " does not answer: it is down, or a firewall drops the packets",
            "allow TCP from this host on all ports there: workers choose their own"};
  }
  return {"peer", Severity::kProblem, "'" + peer.host + "'" + at + " cannot be reached: " + peer.detail,
          "add a route to it, or allow TCP in the firewalls between the hosts"};
}

void judge_peers(const MachineFacts& facts, Findings& findings) {
  for (const PeerFacts& peer : facts.peers) {
    const bool is_fine = peer.path == PeerFacts::Path::kOpen && peer.login != PeerFacts::Login::kFails;
    if (!is_fine) findings.push_back(judge_peer(peer));
  }
  if (facts.ssh_error.empty()) return;
  findings.push_back({"ssh", Severity::kProblem, facts.ssh_error + ": hosts are reached with it",
                      "install ssh here, or name another command with LRUN_SSH"});
}

}  // namespace

std::vector<Finding> judge_machine(const MachineFacts& facts) {
  Findings findings;
  judge_driver(facts, findings);
  judge_gpu_count(facts, findings);
  judge_each_gpu(facts, findings);
  judge_gpu_pairs(facts, findings);
  judge_python(facts, findings);
  judge_shared_memory(facts, findings);
  judge_limits(facts, findings);
  judge_cpus(facts, findings);
  judge_names(facts, findings);
  judge_peers(facts, findings);
  judge_clock(facts, findings);
  judge_state(facts, findings);
  return findings;
}

bool is_healthy(const std::vector<Finding>& findings) {
  return std::all_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.severity == Severity::kNote; });
}

}  // namespace lrun::launcher
