#include "cluster/network_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "base/folder.h"

namespace lrun::launcher {
namespace {

struct FileSystem {
  std::uint64_t type;
  std::string_view name;
};

/// Numbers of Linux's magic.h, and of the projects whose modules are not part of Linux.
constexpr FileSystem kFileSystems[] = {
    {0x6969, "NFS"},        {0xFF534D42, "CIFS"},  {0xFE534D42, "SMB"},   {0x517B, "SMB"},
    {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"},  {0x00C36400, "Ceph"},  {0x19830326, "BeeGFS"},
    {0x5346414F, "AFS"},    {0x6B414653, "AFS"},   {0xAAD7AAEA, "PanFS"}, {0x20030528, "OrangeFS"},
    {0x01021997, "9P"},     {0x7461636F, "OCFS2"}, {0x01161970, "GFS2"},  {0x65735546, "FUSE"},
};

}  // namespace

std::string_view network_file_system(std::uint64_t type) {
  const auto found = std::find_if(std::begin(kFileSystems), std::end(kFileSystems),
                                  [type](const FileSystem& one) { return one.type == type; });
  return found == std::end(kFileSystems) ? std::string_view() : found->name;
}

std::string_view network_file_system_of(const std::string& folder) {
  std::filesystem::path path = folder;
  struct statfs status {};
  while (::statfs(path.c_str(), &status) != 0) {
    const bool goes_on = errno == ENOENT && path.has_relative_path();
    if (!goes_on) return {};
    path = path.parent_path();
  }
  return network_file_system(static_cast<std::uint32_t>(status.f_type));
}

std::string problem_of_private_folder(const std::string& path) {
  struct stat status {};
  const bool is_there = ::lstat(path.c_str(), &status) == 0;
  if (is_there && !S_ISDIR(status.st_mode)) return fmt::format("'{}' is no folder", path);
  if (is_there && status.st_uid != ::geteuid()) return fmt::format("'{}' belongs to another user", path);
  if (is_there && (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return fmt::format("others may write in '{}'", path);
  const std::string above = std::filesystem::path(path).parent_path();
  const std::string& written = is_there ? path : above;
  if (::faccessat(AT_FDCWD, written.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return fmt::format("'{}': {}", written, std::strerror(errno));
  }
  const Folder folder = Folder::open(above);
  const bool is_safe = !folder.may_be_replaced() && !folder.lets_others_rename();
  return is_safe ? std::string() : fmt::format("another user may replace '{}'", path);
}

}  // namespace lrun::launcher
