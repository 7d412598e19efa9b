#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/allocation.h"
#include "cluster/python_choice.h"
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

/// The torch of a Python, as its files describe it.
struct TorchFacts {
  std::string version;       ///< '2.6.0+cu124'
  std::string cuda;          ///< that it was built for, '12.4'; empty: none
  std::string nccl;          ///< the version that it finds, '2.21.5'; empty: none, or one inside torch
  std::string missing_nccl;  ///< the package that it needs and lacks, 'nvidia-nccl-cu12==2.21.5'; empty: none

  bool operator==(const TorchFacts&) const = default;
};

/// The Python that lrun runs '.py' programs with.
struct PythonFacts {
  enum class Answer {
    kNone,    ///< there is no such program
    kFailed,  ///< it does not run, or not in time
    kGiven,
  };
  PythonChoice choice;
  Answer answer = Answer::kNone;
  std::string error;    ///< of kFailed: the reason
  std::string path;     ///< as it names itself
  std::string version;  ///< '3.11.2'
  std::optional<TorchFacts> torch;

  bool operator==(const PythonFacts&) const = default;
};

/// Whether another host can be reached.
struct PeerFacts {
  enum class Path {
    kOpen,         ///< it answered, if only by refusing the connection
    kUnresolved,   ///< its name does not resolve
    kSilent,       ///< no answer in time, as behind a firewall that drops
    kUnreachable,  ///< the network or a firewall refused
  };
  enum class Login {
    kNotTried,  ///< it is this machine, or TCP does not reach it
    kWorks,     ///< over ssh, without a password
    kFails,
  };
  std::string host;  ///< as a login names it: 'node1', 'bob@node1'
  Path path = Path::kSilent;
  std::string address = {};  ///< that was tried; empty when there was none
  std::string detail = {};   ///< the text of the error
  Login login = Login::kNotTried;
  std::string login_error = {};  ///< of kFails

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
  PythonFacts python;
  std::vector<PeerFacts> peers;
  std::string ssh_error;  ///< why there is no ssh to try; empty: there is, or none was needed

  bool operator==(const MachineFacts&) const = default;
};

}  // namespace lrun::launcher
