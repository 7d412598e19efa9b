#include "run/log_folder.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "inspect/run_directory.h"

namespace lrun::launcher {
namespace {

std::string random_letters() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  std::array<unsigned char, 8> random{};
  (void)::getrandom(random.data(), random.size(), GRND_NONBLOCK);
  std::string letters;
  for (const unsigned char byte : random) letters += kLetters[byte % kLetters.size()];
  return letters;
}

/// A run's name, or a host's, as the name of one folder: 'user/job' would be two, '..' another one.
std::string folder_name(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return name.starts_with('.') ? '_' + name : name;
}

}  // namespace

std::string part_of(const LaunchPlan& plan) {
  if (!plan.rendezvous && !plan.has_head) return {};
  const NodePlan& node = plan.nodes.front();
  return plan.is_of_one_rank ? "rank_" + std::to_string(node.workers.front().rank) : folder_name(node.name);
}

LogFolder::LogFolder(const LaunchPlan& plan, const Environment& environment) : files_(plan.output.files) {
  const bool named = !plan.log_dir.value.empty();
  base_ = plan.log_dir.value;
  if (plan.personality.log_folder == Personality::LogFolder::kRun) {
    name_ = plan.run_id;
    part_ = part_of(plan);
  } else {
    name_ = folder_name(plan.run_name + "_" + random_letters());
    if (!named) {
      const auto temporary = environment.get("TMPDIR");
      std::error_code not_there;  // Python, too, takes the next one then
      const bool usable = temporary && std::filesystem::is_directory(*temporary, not_there);
      base_ = usable ? *temporary : "/tmp";
      new_base_ = "torchelastic_" + random_letters();
    }
  }
  std::error_code error;  // in a deleted folder a relative name means nothing: it stays as it is and cannot be made
  const std::filesystem::path absolute = base_.empty() ? base_ : std::filesystem::absolute(base_, error);
  if (!error) base_ = absolute;
}

void LogFolder::make(const Folder* run_directory) {
  if (!files_) return;
  if (base_.empty()) {
    folder_ = run_directory;
    return;
  }
  if (made_ && !made_.is_removed()) return;
  made_in_ = Folder::make(base_);
  if (!part_.empty()) {
    made_ = make_part(made_in_, name_, part_);
  } else {
    made_ = new_base_.empty() ? made_in_.make_new(name_) : made_in_.make_new(new_base_).make_new(name_);
  }
  folder_ = &made_;
}

void LogFolder::remove_when_unused() const {
  if (!made_) return;
  std::error_code error;
  const std::filesystem::path outer = made_in_.by_descriptor() / (new_base_.empty() ? name_ : new_base_);
  std::vector<std::filesystem::path> folders{part_.empty() ? outer : outer / made_.path().filename()};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folders.front(), error)) {
    if (!entry.is_directory(error)) return;
    folders.push_back(entry.path());
  }
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) std::filesystem::remove(*folder, error);
  if (!part_.empty()) std::filesystem::remove(outer, error);  // unless others have a part
}

}  // namespace lrun::launcher
