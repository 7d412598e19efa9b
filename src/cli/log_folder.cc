#include "cli/log_folder.h"

#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace lrun {
namespace {

std::string random_letters() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  std::array<unsigned char, 8> random{};
  (void)::getrandom(random.data(), random.size(), GRND_NONBLOCK);
  std::string letters;
  for (const unsigned char byte : random) letters += kLetters[byte % kLetters.size()];
  return letters;
}

/// A run's name as the name of one folder: 'user/job' would be two.
std::string folder_name(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

}  // namespace

LogFolder::LogFolder(const LaunchPlan& plan, const Environment& environment, const std::filesystem::path& run_folder) {
  if (!plan.output.files) return;
  const bool named = !plan.log_dir.value.empty();
  if (plan.personality.log_folder == Personality::LogFolder::kRun) {
    folder_ = named ? std::filesystem::path(plan.log_dir.value) / plan.run_id : run_folder;
  } else {
    std::filesystem::path base = plan.log_dir.value;
    if (!named) {
      const auto temporary = environment.get("TMPDIR");
      std::error_code not_there;  // Python, too, takes the next one then
      const bool usable = temporary && std::filesystem::is_directory(*temporary, not_there);
      base = std::filesystem::path(usable ? *temporary : "/tmp") / ("torchelastic_" + random_letters());
      temporary_ = base;
    }
    folder_ = base / folder_name(plan.run_name + "_" + random_letters());
  }
  std::error_code error;  // in a deleted folder a relative name means nothing: it stays as it is and cannot be made
  const std::filesystem::path absolute = std::filesystem::absolute(folder_, error);
  if (!error) folder_ = absolute;
}

bool LogFolder::is_below(const std::filesystem::path& folder) const {
  const std::string inside = folder_.string();
  return inside == folder.string() || inside.starts_with(folder.string() + "/");
}

std::filesystem::path LogFolder::attempt(int number, int again) const {
  if (folder_.empty()) return {};
  return folder_ / ("attempt_" + std::to_string(number) + (again == 0 ? "" : "_again_" + std::to_string(again)));
}

void LogFolder::make() const {
  if (temporary_.empty() || ::mkdir(temporary_.c_str(), 0700) == 0 || errno == EEXIST) return;
  throw std::system_error(errno, std::generic_category(), "mkdir '" + temporary_.string() + "'");
}

void LogFolder::remove_when_unused() const {
  if (temporary_.empty()) return;
  std::error_code error;
  std::vector<std::filesystem::path> folders{temporary_};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(temporary_, error)) {
    if (!entry.is_directory(error)) return;
    folders.push_back(entry.path());
  }
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) std::filesystem::remove(*folder, error);
}

}  // namespace lrun
