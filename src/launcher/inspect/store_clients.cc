#include "inspect/store_clients.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace lrun::launcher {
namespace {

/// The sockets whose other end is `port`, as their links in /proc/PID/fd read: 'socket:[4711]'.
void add_sockets(const char* table, int port, std::set<std::string>& sockets) {
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);  // the heads of the columns
  while (std::getline(file, line)) {
    std::istringstream columns(line);
    std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    columns >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
    const std::size_t colon = remote.rfind(':');
    int remote_port = 0;
    if (colon == std::string::npos) continue;
    std::from_chars(remote.data() + colon + 1, remote.data() + remote.size(), remote_port, 16);
    if (remote_port == port && inode != "0") sockets.insert("socket:[" + inode + "]");
  }
}

bool holds_one_of(const std::set<std::string>& sockets, pid_t pid) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", error)) {
    const std::filesystem::path target = std::filesystem::read_symlink(entry.path(), error);
    if (!error && sockets.contains(target.string())) return true;
  }
  return false;
}

}  // namespace

std::vector<pid_t> connected_to(int port, const std::vector<pid_t>& pids) {
  std::set<std::string> sockets;
  add_sockets("/proc/net/tcp", port, sockets);
  add_sockets("/proc/net/tcp6", port, sockets);
  std::vector<pid_t> connected;
  std::copy_if(pids.begin(), pids.end(), std::back_inserter(connected),
               [&](pid_t pid) { return holds_one_of(sockets, pid); });
  return connected;
}

}  // namespace lrun::launcher
