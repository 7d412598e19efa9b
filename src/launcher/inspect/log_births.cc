#include "inspect/log_births.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <system_error>

namespace lrun::launcher {

std::int64_t first_output_ms(const std::filesystem::path& rank_folder) {
  std::int64_t first = 0;
  std::error_code error;
  std::filesystem::directory_iterator entry(rank_folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with("stdout") && !name.starts_with("stderr")) continue;
    struct statx status {};
    if (::statx(AT_FDCWD, entry->path().c_str(), AT_SYMLINK_NOFOLLOW, STATX_BTIME, &status) != 0) continue;
    if ((status.stx_mask & STATX_BTIME) == 0) continue;
    const std::int64_t born = status.stx_btime.tv_sec * 1000 + status.stx_btime.tv_nsec / 1'000'000;
    if (first == 0 || born < first) first = born;
  }
  return first;
}

}  // namespace lrun::launcher
