// In: changes in the run's folder in memory. Out: a warning when it holds too much. run_node() owns one.
#include "run/memory_monitor.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/bytes_text.h"
#include "base/kernel_text.h"
#include "base/own_signals.h"
#include "base/small_file.h"
#include "process/memory_watch.h"
#include "process/signal_set.h"
#include "process/storage_space.h"

namespace lrun::launcher {
namespace {

/// A flood of changes costs a look a second.
constexpr Duration kDelay(1000);
constexpr std::uint64_t kGiB = 1ULL << 30U;
constexpr int kMostFiles = 10'000;        // a look may take some milliseconds
constexpr std::size_t kMostFolders = 16;  // each takes a descriptor: a third of kOfLauncher

/// The free memory of the machine; empty where it is unknown.
std::optional<std::uint64_t> available_memory() {
  constexpr std::size_t kMostBytes = 64 * 1024;
  const auto kib = counter_named(read_small_file("/proc/meminfo", kMostBytes).value_or(""), "MemAvailable:");
  return kib ? std::optional(*kib * 1024) : std::nullopt;
}

/// A quarter of what was free before workers kept `kept` bytes: of the file system, of the machine, and of the cgroup,
/// which counts these files, too.
std::uint64_t default_limit(const std::string& folder, std::uint64_t kept) {
  std::uint64_t free = ~std::uint64_t{0};
  if (const auto space = storage_space(folder.c_str())) free = space->free_bytes + kept;
  if (const auto available = available_memory()) free = std::min(free, *available + kept);
  if (const std::uint64_t limit = MemoryWatch().limit(); limit > 0) free = std::min(free, limit);
  return free / 4;
}

/// What the files below a folder take. `watch` is called with each folder, and with this one.
template <class Watch>
std::uint64_t bytes_in(const std::string& outer, const Watch& watch) {
  constexpr std::uint64_t kBlock = 512;
  std::uint64_t bytes = 0;
  std::set<ino_t> linked;  // each of these files counts once
  std::vector<std::string> folders{outer};
  for (int files = 0; !folders.empty() && files < kMostFiles;) {
    const std::string folder = std::move(folders.back());
    folders.pop_back();
    watch(folder.c_str());
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
    while (const dirent* const entry = entries && files < kMostFiles ? ::readdir(entries.get()) : nullptr) {
      const std::string_view name(entry->d_name);
      std::string path = folder + '/' + entry->d_name;
      struct stat status {};
      if (name == "." || name == ".." || ::lstat(path.c_str(), &status) != 0) continue;
      ++files;
      if (S_ISDIR(status.st_mode)) folders.push_back(std::move(path));
      if (!S_ISREG(status.st_mode)) continue;
      const bool is_known = status.st_nlink > 1 && !linked.insert(status.st_ino).second;
      if (!is_known) bytes += static_cast<std::uint64_t>(status.st_blocks) * kBlock;
    }
  }
  return bytes;
}

}  // namespace

MemoryMonitor::MemoryMonitor(EventLoop& loop, const MemoryFolder& folder, const Setting<MemoryLimit>& limit,
                             MessageSink& sink)
    : loop_(loop), folder_(folder), sink_(sink), limit_(limit.value.bytes) {
  if (!folder_ || limit_ == ResourceLimit::kUnlimited) return;
  const int signal_number = folder_changed_signal();
  const sigset_t blocked = signal_set({signal_number});
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  watch_folder(folder_.outer_path().c_str());
  if (watched_.empty()) {
    const std::error_code error(errno, std::generic_category());
    if (limit.given()) sink_.warn(fmt::format("'{}' is not watched: {}", limit.origin, error.message()));
    return;
  }
  watch_folder(folder_.path().c_str());
  changes_.emplace(loop_, std::vector<int>{signal_number}, [this](const ReceivedSignal&) {
    if (!look_.armed()) look_ = loop_.after(kDelay, [this] { look(); });
  });
}

/// The kernel tells of the first change (dnotify). inotify, which can tell more, takes milliseconds to be closed: the
/// end of each run would wait for it, and the ports of a killed launcher would be in use until then.
void MemoryMonitor::watch_folder(const char* path) {
  if (watched_.size() >= kMostFolders) return;
  Fd folder(::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const bool is_watched = folder && ::fcntl(folder.get(), F_NOTIFY, DN_CREATE | DN_MODIFY) == 0;
  if (is_watched) watched_.push_back(std::move(folder));
}

void MemoryMonitor::look() {
  watched_.clear();
  const std::uint64_t bytes = bytes_in(folder_.outer_path(), [this](const char* inner) { watch_folder(inner); });
  if (!limit_) limit_ = default_limit(folder_.path(), bytes);
  if (bytes <= *limit_) return;
  sink_.warn(
      fmt::format("the workers keep {} in '{}', more than {}", bytes_text(bytes), folder_.path(), bytes_text(*limit_)));
  sink_.hint(fmt::format("remove there what is not needed any more, or allow more, as in '--memory-dir {}G'",
                         std::bit_ceil(bytes / kGiB + 1)));
  watched_.clear();  // once is enough
  changes_.reset();
}

}  // namespace lrun::launcher
