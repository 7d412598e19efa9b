// In: the name of a run. Out: a cgroup for its workers, where lrun may make one, and the end of all in it. Called by
// the launcher at its start, by the guard at the end (by the waker where it was killed), and by a later run for what
// was left.
#include "process/run_cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "base/kernel_text.h"
#include "base/small_file.h"

namespace lrun::inline core {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "lrun-";
constexpr const char* kKillFile = "cgroup.kill";

/// The directory of this process's cgroup; empty when it cannot be seen.
fs::path own_folder(const fs::path& root) {
  constexpr std::size_t kMostBytes = 64 * 1024;
  const std::string membership = read_small_file(root / "proc/self/cgroup", kMostBytes).value_or("");
  const auto path = cgroup_path(membership, "");
  if (!path || path->starts_with("/..")) return {};  // outside of what this container sees
  for (const char* const mount_point : {"sys/fs/cgroup", "sys/fs/cgroup/unified"}) {
    fs::path folder = root / mount_point;
    if (*path != "/") folder /= fs::path(*path).relative_path();
    if (::access((folder / "cgroup.subtree_control").c_str(), F_OK) == 0) return folder;  // only version 2 has it
  }
  return {};
}

Fd open_folder(const fs::path& folder) { return Fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (entry->is_directory(error)) found.push_back(entry->path());
  }
  return found;
}

/// \return 0 when it is gone, otherwise the errno.
int remove_folder(const fs::path& folder) { return ::rmdir(folder.c_str()) == 0 || errno == ENOENT ? 0 : errno; }

/// Innermost first: the kernel removes only a cgroup without cgroups below it. \return as remove_folder().
int remove_with_those_below(const fs::path& folder) {
  if (const int error = remove_folder(folder); error != EBUSY && error != ENOTEMPTY) return error;
  for (const fs::path& below : folders_in(folder)) remove_with_those_below(below);
  return remove_folder(folder);
}

/// A process leaves its cgroup a moment after it was killed. Until then the kernel reports that it is in use.
void end_and_remove(int fd, const fs::path& folder, SteadyTime deadline) {
  while (remove_with_those_below(folder) == EBUSY && std::chrono::steady_clock::now() < deadline) {
    kill_cgroup(fd);
    const timespec moment{0, 1'000'000};
    ::nanosleep(&moment, nullptr);
  }
}

}  // namespace

void kill_cgroup(int folder) noexcept {
  const int file = ::openat(folder, kKillFile, O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  (void)!::write(file, "1", 1);
  ::close(file);
}

RunCgroup RunCgroup::make(std::string_view name, const fs::path& root) {
  const fs::path parent = own_folder(root);
  if (parent.empty()) return {};
  const std::string first = (parent / (std::string(kPrefix) += name)).string();
  constexpr int kMostTries = 64;  // launchers of one job have one name; an ending run may remove what is not locked yet
  for (int tries = 0; tries < kMostTries; ++tries) {
    fs::path folder = tries == 0 ? first : first + '-' + std::to_string(tries + 1);
    if (::mkdir(folder.c_str(), 0755) != 0) {
      if (errno != EEXIST) break;
      continue;
    }
    Fd fd = open_folder(folder);
    const bool usable = !fd || ::faccessat(fd.get(), kKillFile, W_OK, 0) == 0;
    if (usable && fd && try_lock(fd)) return {std::move(fd), std::move(folder)};
    ::rmdir(folder.c_str());
    if (!usable) break;
  }
  return {};
}

RunCgroup RunCgroup::inner(const std::string& name) const {
  if (!fd_) return {};
  fs::path folder = folder_ / name;
  if (::mkdir(folder.c_str(), 0755) != 0) return {};
  Fd fd = open_folder(folder);
  return {std::move(fd), std::move(folder)};
}

void RunCgroup::kill() const {
  if (fd_) kill_cgroup(fd_.get());
}

void RunCgroup::remove() const {
  constexpr Duration kLimit(500);
  const bool is_there = fd_ && ::faccessat(fd_.get(), kKillFile, F_OK, 0) == 0;
  if (is_there) end_and_remove(fd_.get(), folder_, std::chrono::steady_clock::now() + kLimit);
}

void RunCgroup::remove_abandoned() const {
  constexpr Duration kLimit(20);  // of all together: a run goes on meanwhile
  if (!fd_) return;
  const SteadyTime deadline = std::chrono::steady_clock::now() + kLimit;
  for (const fs::path& other : folders_in(folder_.parent_path())) {
    if (other == folder_ || !other.filename().native().starts_with(kPrefix)) continue;
    const Fd fd = open_folder(other);
    if (fd && try_lock(fd)) end_and_remove(fd.get(), other, deadline);
  }
}

}  // namespace lrun::inline core
