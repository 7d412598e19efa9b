#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/allocation.h"
#include "plan/setting.h"

namespace lrun::launcher {

/// What --devices or --nproc-per-node says, read but not yet held against a machine.
struct DeviceRequest {
  enum class Kind {
    kNone,       ///< not given
    kAuto,       ///< --devices auto
    kAllGpus,    ///< --devices -1, --nproc-per-node gpu, --nproc-per-node xpu
    kList,       ///< --devices 2,3
    kCount,      ///< --devices 8
    kProcesses,  ///< --nproc-per-node 8
    kAutoCount,  ///< --nproc-per-node auto
    kCpuCount,   ///< --nproc-per-node cpu
  };
  Kind kind = Kind::kNone;
  int count = 0;                         ///< of kCount and kProcesses, at least 1
  std::vector<std::string> ids;          ///< of kList: distinct, not empty
  std::optional<GpuVendor> vendor = {};  ///< of kAllGpus: whose GPUs alone will do; empty: anybody's

  bool operator==(const DeviceRequest&) const = default;
};

/// \throws UserError  not a count, 'auto', '-1' or a list of distinct GPUs; says what is allowed.
DeviceRequest read_devices(const Setting<std::string>& devices);

/// \throws UserError  not a count, 'auto', 'cpu', 'gpu' or 'xpu'.
DeviceRequest read_processes(const Setting<std::string>& nproc_per_node);

/// Stands for '--exclude' where it left some devices of a host: they are not what it names.
inline constexpr const char* kLeftByExclude = "left by --exclude";

/// The origin of what was said of one host of several: '-H, node1'.
std::string origin_of_host(const std::string& origin, const std::string& host);

/// The setting as the user wrote it: '--devices 8', 'PET_NPROC_PER_NODE=8', of a host '-H node1:8', 'hosts.txt:
/// node1:8'.
std::string as_written(const Setting<std::string>& setting);

}  // namespace lrun::launcher
