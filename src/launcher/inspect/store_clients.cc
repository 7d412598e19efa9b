#include "inspect/store_clients.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

namespace lrun::launcher {
namespace {

/// The open connections whose other end is `port`, as their links in /proc/PID/fd read: 'socket:[4711]'.
void add_sockets(const std::string& table, int port, std::set<std::string>& sockets) {
  constexpr std::string_view kEstablished = "01";
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
    if (remote_port == port && state == kEstablished && inode != "0") sockets.insert("socket:[" + inode + "]");
  }
}

bool is_connected(int port, pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  std::error_code error;
  const std::filesystem::directory_iterator files(folder + "/fd", error);
  if (error) return error != std::errc::no_such_file_or_directory;
  std::set<std::string> sockets;
  for (const char* const table : {"/net/tcp", "/net/tcp6"}) add_sockets(folder + table, port, sockets);
  return std::any_of(begin(files), end(files), [&](const auto& entry) {
    const std::filesystem::path target = std::filesystem::read_symlink(entry.path(), error);
    return !error && sockets.contains(target.string());
  });
}

}  // namespace

std::vector<pid_t> connected_to(int port, const std::vector<pid_t>& pids) {
  std::vector<pid_t> connected;
  std::copy_if(pids.begin(), pids.end(), std::back_inserter(connected),
               [port](pid_t pid) { return is_connected(port, pid); });
  return connected;
}

}  // namespace lrun::launcher
