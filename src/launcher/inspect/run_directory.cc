// In: the folder that runs are kept in. Out: a locked folder for a new run, and what others see of it. Called by the
// launcher at its start, and by `lrun status`, `report` and `stack`.
#include "inspect/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <system_error>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "base/replaced_file.h"
#include "base/small_file.h"
#include "base/split.h"
#include "inspect/control_address.h"
#include "plan/run_id.h"

namespace lrun::launcher {
namespace {

constexpr const char* kLockName = "lock";
constexpr const char* kNameBeforeBegin = "lock.new";  ///< of the lock: others do not see the run yet
constexpr std::size_t kMostAddressBytes = 4096;
constexpr Duration kMostPruning(250);  ///< a launcher does it while workers run

Fd make_lock(const Folder& run_directory) {
  Fd lock(::openat(run_directory.fd(), kNameBeforeBegin, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (lock) keep_for_owner(lock.get());
  return lock;
}

/// Waits for a moment: is_stale(), which asks whether a run lives, takes the lock for an instant.
bool take_lock(int lock) {
  constexpr int kTries = 100;
  for (int tries = 0; ::flock(lock, LOCK_EX | LOCK_NB) != 0; ++tries) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || tries == kTries) return false;
    const timespec pause{0, 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
  return true;
}

bool is_safe_owner(uid_t owner) { return owner == ::geteuid() || owner == 0; }

/// Any user may rename and remove the files of others in it.
bool is_open_to_all(const struct stat& folder) {
  return (folder.st_mode & S_IWOTH) != 0 && (folder.st_mode & S_ISVTX) == 0;
}

/// Whether a link in the place of the state folder is the user's own, and not one that another user put there.
bool is_safe_link(const std::filesystem::path& path, const struct stat& link) {
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  struct stat status {};
  return is_safe_owner(link.st_uid) && ::stat(parent.c_str(), &status) == 0 && !is_open_to_all(status);
}

[[noreturn]] void refuse(const std::filesystem::path& folder, const char* why) {
  throw std::system_error(EPERM, std::generic_category(), "'" + folder.string() + "' " + why);
}

/// Opens the folder that runs are kept in. In a folder that others can write to, they could replace our files by links
/// of theirs: it is refused.
Folder open_state_folder(std::filesystem::path path) {
  if (!path.has_filename()) path = path.parent_path();  // 'state/'
  Folder folder = Folder::make(path);
  struct stat opened {};
  struct stat named {};
  if (::fstat(folder.fd(), &opened) != 0 || ::lstat(path.c_str(), &named) != 0) {
    throw std::system_error(errno, std::generic_category(), "'" + path.string() + "'");
  }
  const bool leads_here = S_ISLNK(named.st_mode) ? is_safe_link(path, named)
                                                 : named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
  if (!leads_here || !is_safe_owner(opened.st_uid)) {
    refuse(path, "belongs to another user");
  }
  if (is_open_to_all(opened)) refuse(path, "may be changed by other users");
  return folder;
}

/// Most file systems count the folders of a folder in its links, which spares reading it. Others report 1.
bool holds_fewer_folders(const Folder& folder, std::size_t count) {
  struct stat status {};
  constexpr nlink_t kOwnLinks = 2;
  return ::fstat(folder.fd(), &status) == 0 && status.st_nlink >= kOwnLinks && status.st_nlink - kOwnLinks <= count;
}

bool is_file(const std::filesystem::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

/// No other user can replace it: where all may write to its parent, the sticky bit protects it.
bool is_folder_of_ours(const std::filesystem::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
}

/// The run's folder, or those in it.
template <class Condition>
std::vector<std::filesystem::path> folders_with(const std::filesystem::path& run, Condition holds) {
  if (holds(run)) return {run};
  std::vector<std::filesystem::path> folders;
  if (!is_run_id(run.filename().string())) return folders;
  std::error_code error;
  std::filesystem::directory_iterator entry(run, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (holds(entry->path())) folders.push_back(entry->path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

/// No launcher lives there, or is about to: it locks what it has made a moment ago.
bool may_be_removed(const std::filesystem::path& part) {
  std::error_code error;
  const auto made = std::filesystem::last_write_time(part / kNameBeforeBegin, error);
  const bool is_new = !error && std::filesystem::file_time_type::clock::now() - made < std::chrono::minutes(1);
  return !is_new && is_stale(part);
}

/// Whether it has begun or not.
std::filesystem::path lock_in(const std::filesystem::path& folder) {
  return folder / (is_file(folder / kLockName) ? kLockName : kNameBeforeBegin);
}

bool has_lock(const std::filesystem::path& folder) {
  return is_file(folder / kLockName) || is_file(folder / kNameBeforeBegin);
}

}  // namespace

std::filesystem::path state_folder(const Environment& environment) {
  if (const auto state = environment.get("LRUN_STATE"); state && !state->empty()) return *state;
  // By the XDG Base Directory Specification a relative path counts for nothing.
  if (const auto state = environment.get("XDG_STATE_HOME"); state && state->starts_with('/')) {
    return std::filesystem::path(*state) / "lrun";
  }
  if (const auto home = environment.get("HOME"); home && !home->empty()) {
    return std::filesystem::path(*home) / ".local" / "state" / "lrun";
  }
  return "/tmp/lrun-" + std::to_string(::getuid());
}

RunDirectory::RunDirectory(const std::filesystem::path& path, const std::string& part, std::string_view names)
    : state_(open_state_folder(path.parent_path())),
      run_(part.empty() ? std::string() : path.filename().string()),
      folder_(part.empty() ? state_.make_new(path.filename()) : make_part(state_, run_, part)),
      lock_(make_lock(folder_)) {
  if (!lock_ || !take_lock(lock_.get())) refuse_to_lock(errno);
  (void)write_all(lock_.get(), names);  // on a full disk only its folder names the run
}

void RunDirectory::begin() {
  if (::renameat(folder_.fd(), kNameBeforeBegin, folder_.fd(), kLockName) != 0) refuse_to_lock(errno);
}

void RunDirectory::refuse_to_lock(int error) const {
  throw std::system_error(error, std::generic_category(), "lock '" + path().string() + "'");
}

void RunDirectory::prune_others(std::size_t kept, std::size_t tolerated) const {
  // Of launchers with one folder the first does it for all.
  if (!run_.empty()) {
    const std::vector<std::filesystem::path> parts = parts_of_run(state_.by_descriptor() / run_);
    if (!parts.empty() && parts.front().filename() != path().filename()) return;
  }
  prune_runs(state_, kept, tolerated);
}

void RunDirectory::remove() {
  std::error_code error;
  const std::filesystem::path run = state_.by_descriptor() / run_;
  std::filesystem::remove_all(run / path().filename(), error);
  if (!run_.empty()) std::filesystem::remove(run, error);  // unless others have a part
}

Folder make_part(const Folder& parent, const std::string& run, const std::string& part) {
  constexpr int kMostOfAName = 1024;
  constexpr int kMostRemovals = 8;  // a launcher whose run did not begin removes the run's folder with the last part
  int removals = 0;
  for (int number = 1;;) {
    const Folder folder = parent.inner(run);
    if (!folder) {
      throw std::system_error(errno, std::generic_category(), "make '" + (parent.path() / run).string() + "'");
    }
    try {
      return folder.make_new(number == 1 ? part : part + '-' + std::to_string(number));
    } catch (const std::system_error& error) {
      const bool is_taken = error.code() == std::errc::file_exists && ++number <= kMostOfAName;
      const bool is_removed = folder.is_removed() && ++removals <= kMostRemovals;
      if (!is_taken && !is_removed) throw;
    }
  }
}

std::vector<std::filesystem::path> parts_of_run(const std::filesystem::path& run) {
  return folders_with(run, [](const std::filesystem::path& folder) { return is_file(folder / kLockName); });
}

std::vector<std::filesystem::path> waiting_parts(const std::filesystem::path& run) {
  return folders_with(run, [](const std::filesystem::path& folder) {
    std::error_code error;
    return is_file(folder / kNameBeforeBegin) && std::filesystem::is_socket(folder / kControlName, error);
  });
}

std::vector<std::string> names_of(const std::filesystem::path& run_directory) {
  std::vector<std::string> names = split_lines(read_small_file(lock_in(run_directory), kMostAddressBytes).value_or(""));
  if (names.empty()) names.emplace_back();
  return names;
}

std::filesystem::file_time_type time_of_run(const std::filesystem::path& run_directory) {
  std::error_code gone;  // the lock is not written to after the folder was made
  const auto time = std::filesystem::last_write_time(run_directory / kLockName, gone);
  return gone ? std::filesystem::file_time_type() : time;
}

bool is_stale(const std::filesystem::path& run_directory) {
  const Fd lock(::open(lock_in(run_directory).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return lock && ::flock(lock.get(), LOCK_SH | LOCK_NB) == 0;
}

void prune_runs(const Folder& state_folder, std::size_t kept, std::size_t tolerated) {
  if (holds_fewer_folders(state_folder, std::max(kept, tolerated))) return;
  std::error_code error;
  std::vector<std::filesystem::path> runs;  // other files here neither count nor are removed
  std::filesystem::directory_iterator entry(state_folder.by_descriptor(), error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::filesystem::path& run = entry->path();
    if (is_run_id(run.filename().string()) && is_folder_of_ours(run)) runs.push_back(run);
  }
  if (runs.size() <= std::max(kept, tolerated)) return;
  std::erase_if(runs, [](const std::filesystem::path& run) { return !waiting_parts(run).empty(); });
  if (runs.size() <= std::max(kept, tolerated)) return;
  std::sort(runs.begin(), runs.end());
  runs.resize(runs.size() - kept);
  const SteadyTime end = steady_now() + kMostPruning;
  for (const auto& run : runs) {
    const std::vector<std::filesystem::path> parts = folders_with(run, has_lock);
    if (parts.empty() || !std::all_of(parts.begin(), parts.end(), may_be_removed)) continue;
    for (const std::filesystem::path& part : parts) {
      if (steady_now() >= end) return;  // the next run goes on
      std::filesystem::remove_all(part, error);
    }
    std::filesystem::remove_all(run, error);
  }
}

}  // namespace lrun::launcher
