// In: changes in the run's folder in memory. Out: a warning when it holds too much. run_node() owns one.
#include "run/memory_monitor.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/bytes_text.h"
#include "copies/memory_limit.h"

namespace lrun::launcher {
namespace {

/// A flood of changes costs a look a second.
constexpr Duration kDelay(1000);
constexpr std::uint64_t kGiB = 1ULL << 30U;
constexpr int kMostFiles = 10'000;        // a look may take some milliseconds
constexpr std::size_t kMostFolders = 16;  // each takes a descriptor: a third of kOfLauncher

/// What the files below a folder take. `watch` is called with each folder, and with this one.
template <class Watch>
std::uint64_t bytes_in(const std::string& top, const Watch& watch) {
  constexpr std::uint64_t kBlock = 512;
  std::uint64_t bytes = 0;
  std::set<ino_t> linked;  // each of these files counts once
  std::vector<std::string> folders{top};
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
  watch_.emplace(loop_, kMostFolders, [this] {
    if (!look_.armed()) look_ = loop_.after(kDelay, [this] { look(); });
  });
  if (!watch_->add(folder_.outer_path().c_str())) {
    const std::error_code error(errno, std::generic_category());
    watch_.reset();
    if (limit.given()) sink_.warn(fmt::format("'{}' is not watched: {}", limit.origin, error.message()));
    return;
  }
  watch_->add(folder_.path().c_str());
}

void MemoryMonitor::look() {
  watch_->clear();
  watch_->add(folder_.outer_path().c_str());  // workers may remove their folder and make it again
  const std::uint64_t bytes = bytes_in(folder_.path(), [this](const char* inner) { watch_->add(inner); });
  if (!limit_) limit_ = default_memory_limit(folder_.path(), bytes);
  if (bytes <= *limit_) return;
  sink_.warn(
      fmt::format("the workers keep {} in '{}', more than {}", bytes_text(bytes), folder_.path(), bytes_text(*limit_)));
  sink_.hint(fmt::format("remove there what is not needed any more, or allow more, as in '--memory-dir {}G'",
                         std::bit_ceil(bytes / kGiB + 1)));
  watch_.reset();  // once is enough
}

}  // namespace lrun::launcher
