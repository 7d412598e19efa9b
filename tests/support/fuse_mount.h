#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/fd.h"

namespace lrun::test {

/// Gives this process a mount namespace of its own, with FUSE in the place of `folder`. Call it before exec, as root:
/// where that is not possible, the process exits with 99.
/// \param device  /dev/fuse, open: whoever reads it serves the folder
inline void mount_fuse(const Fd& device, const std::filesystem::path& folder) {
  const std::string options = "fd=" + std::to_string(device.get()) + ",rootmode=40755,user_id=0,group_id=0";
  const bool mounted = ::unshare(CLONE_NEWNS) == 0 &&
                       ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                       ::mount("none", folder.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
  if (!mounted) ::_exit(99);
}

}  // namespace lrun::test
