#include "inspect/run_processes.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/small_file.h"
#include "base/split.h"
#include "base/whole_number.h"
#include "process/descendants.h"

namespace lrun::launcher {
namespace {

/// The share of time that looks may take: a tenth for one question, a quarter for those of all users.
constexpr int kPartOfTime = 10;
constexpr int kPartForAll = 4;
constexpr Duration kSaved(1000);  // unused time that is kept, for many questions at once
constexpr std::size_t kMostUsers = 256;

SteadyTime again_after(SteadyTime began) {
  const SteadyTime now = steady_now();
  return now + (kPartOfTime - 1) * (now - began);
}

/// The effective user. Not the owner of the folder in /proc, which is root's where a process has changed its user.
std::optional<uid_t> user_of(pid_t pid) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 10U;
  constexpr std::string_view kLine = "\nUid:";  // real, effective, saved, of the file system
  const std::string status = read_small_file(fmt::format("/proc/{}/status", pid), kMostBytes).value_or("");
  const std::size_t at = status.find(kLine);
  if (at == std::string::npos) return std::nullopt;
  std::string_view users = trimmed(std::string_view(status).substr(at + kLine.size()));
  cut(users, '\t');
  return whole_number<uid_t>(cut(users, '\t'));
}

/// The number in 'socket:[4711]', the target of a descriptor's link.
std::optional<std::uint64_t> socket_at(int folder, const char* descriptor) {
  char target[64];
  const ssize_t size = ::readlinkat(folder, descriptor, target, sizeof target);
  std::string_view text(target, size > 0 ? static_cast<std::size_t>(size) : 0);
  constexpr std::string_view kBegin = "socket:[";
  if (!text.starts_with(kBegin) || !text.ends_with(']')) return std::nullopt;
  text.remove_prefix(kBegin.size());
  text.remove_suffix(1);
  return whole_number<std::uint64_t>(text);
}

/// \return false where its descriptors may not be read.
bool add_sockets_of(pid_t pid, RunSockets& sockets) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(fmt::format("/proc/{}/fd", pid).c_str()), ::closedir);
  if (!folder) return errno != EACCES && errno != EPERM;
  while (const dirent* const entry = ::readdir(folder.get())) {
    if (const auto inode = socket_at(::dirfd(folder.get()), entry->d_name)) sockets.inodes.insert(*inode);
  }
  return true;
}

}  // namespace

bool RunProcesses::has_user(uid_t user) {
  const SteadyTime began = steady_now();
  const auto again = again_.find(user);
  const bool may_look = began >= any_again_ && (again == again_.end() || began >= again->second);
  if (!may_look) return users_.contains(user);
  users_.clear();
  for (const pid_t pid : all_descendants()) {
    if (const std::optional<uid_t> other = user_of(pid)) users_.insert(*other);
  }
  if (again_.size() >= kMostUsers) again_.clear();
  again_[user] = again_after(began);
  any_again_ = std::max(any_again_, began - kSaved) + kPartForAll * (steady_now() - began);
  return users_.contains(user);
}

std::optional<RunSockets> RunProcesses::sockets() {
  const SteadyTime began = steady_now();
  if (began < sockets_again_) return std::nullopt;
  RunSockets sockets;
  std::vector<pid_t> all = all_descendants();
  all.push_back(::getpid());
  for (const pid_t pid : all) {
    if (add_sockets_of(pid, sockets)) continue;
    if (const std::optional<uid_t> user = user_of(pid)) sockets.hidden_users.insert(*user);
  }
  sockets_again_ = again_after(began);
  return sockets;
}

}  // namespace lrun::launcher
