#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/allocation.h"
#include "process/storage_space.h"

namespace lrun::launcher {

/// A pair of GPUs whose memory one cannot read from the other, and the driver's reason.
struct BlockedPair {
  int first = 0;
  int second = 0;
  std::string reason;

  bool operator==(const BlockedPair&) const = default;
};

/// Facts of the GPU driver beside the inventory.
struct DriverFacts {
  std::string library;                    ///< version that NVML belongs to; empty: not known
  std::string kernel;                     ///< version of the loaded kernel module; empty: not known
  int cuda = 0;                           ///< newest CUDA that the driver runs, 12080 is 12.8; 0: not known
  int listed = 0;                         ///< GPUs that the kernel module lists; 0: not known
  int pairs = 0;                          ///< pairs of GPUs that were looked at
  std::vector<BlockedPair> blocked;       ///< those without peer-to-peer access
  std::vector<int> waiting_for_reset;     ///< GPUs with broken memory that a reset would replace
  std::vector<std::string> closed_nodes;  ///< device nodes that this user may not open

  bool operator==(const DriverFacts&) const = default;
};

/// Whether another host can be reached.
struct PeerFacts {
  enum class Path {
    kOpen,         ///< it answered, if only by refusing the connection
    kUnresolved,   ///< its name does not resolve
    kSilent,       ///< no answer in time, as behind a firewall that drops
    kUnreachable,  ///< the network or a firewall refused
  };
  std::string host;
  Path path = Path::kSilent;
  std::string address;  ///< that was tried; empty when there was none
  std::string detail;   ///< the text of the error

  bool operator==(const PeerFacts&) const = default;
};

/// All facts that `lrun doctor` judges.
struct MachineFacts {
  StorageSpace shared_memory;                  ///< of /dev/shm; total 0: there is none
  std::optional<std::uint64_t> locked_memory;  ///< soft limit in bytes; empty: none
  bool infiniband = false;                     ///< there is an RDMA device
  std::uint64_t open_files = 0;                ///< hard limit of file descriptors
  std::string loopback_error;                  ///< why 127.0.0.1 cannot be reached; empty: it can
  std::string host_name;
  std::vector<std::string> host_addresses;  ///< that the name resolves to
  bool host_name_slow = false;              ///< the name service did not answer in time
  int cpus = 1;                             ///< by affinity
  std::optional<double> cpu_quota;          ///< of the cgroups
  GpuInventory machine_gpus;
  GpuInventory visible_gpus;  ///< those that a program started here would see
  DriverFacts driver;
  bool nvidia_hardware = false;  ///< there is a PCI device of NVIDIA that computes
  bool clock_synchronized = true;
  std::int64_t clock_seconds = 0;  ///< since 1970
  std::string state_folder;
  std::string state_error;  ///< why nothing can be written there; empty: it can
  StorageSpace state_room;
  std::vector<PeerFacts> peers;

  bool operator==(const MachineFacts&) const = default;
};

}  // namespace lrun::launcher
