// In: hosts to try, the user's ssh, and the environment. Out: the facts of this machine, unjudged. Called by `lrun
// doctor`.
#include "inspect/read_machine.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "base/child_query.h"
#include "base/fd.h"
#include "cluster/find_gpus.h"
#include "cluster/system_file.h"
#include "cluster/usable_cpus.h"
#include "cluster/visible_gpus.h"
#include "inspect/ask_helpers.h"
#include "inspect/reach_hosts.h"
#include "inspect/read_driver.h"
#include "inspect/run_directory.h"

namespace lrun::launcher {
namespace {

constexpr Duration kNameLimit(2000);
constexpr Duration kPeerLimit(3000);
constexpr Duration kDriverLimit(5000);
constexpr Duration kFolderLimit(2000);

/// The soft or the hard value of a limit; empty: unlimited.
std::optional<std::uint64_t> limit_of(__rlimit_resource_t resource, rlim_t rlimit::*which) {
  struct rlimit limit = {};
  if (::getrlimit(resource, &limit) != 0 || limit.*which == RLIM_INFINITY) return std::nullopt;
  return limit.*which;
}

/// Connects to itself, as workers do to the store. \return the text of the first error.
std::string try_loopback() {
  const auto failure = [] { return std::generic_category().message(errno); };
  const Fd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listening || !client) return failure();
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listening.get(), name, size) != 0 || ::listen(listening.get(), 1) != 0) return failure();
  if (::getsockname(listening.get(), name, &size) != 0) return failure();
  if (::connect(client.get(), name, size) == 0) return {};
  if (errno != EINPROGRESS) return failure();
  pollfd writable{client.get(), POLLOUT, 0};
  if (::poll(&writable, 1, static_cast<int>(kNameLimit.count())) <= 0) return "no answer";
  int error = 0;
  size = sizeof error;
  ::getsockopt(client.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? std::string() : std::generic_category().message(error);
}

void read_network(const std::vector<Host>& hosts, MachineFacts& facts) {
  char name[HOST_NAME_MAX + 1] = {};
  if (::gethostname(name, sizeof name - 1) != 0) throw std::system_error(errno, std::generic_category(), "gethostname");
  facts.host_name = name;
  facts.loopback_error = try_loopback();
  facts.host_addresses = resolve(facts.host_name, kNameLimit, facts.host_name_slow);
  std::vector<std::string> names;
  for (const Host& host : hosts) names.push_back(host.name);
  facts.peers = reach_hosts(names, kPeerLimit);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (!hosts[i].user.empty()) facts.peers[i].host = hosts[i].user + "@" + hosts[i].name;
  }
}

void read_gpus(const Environment& environment, MachineFacts& facts) {
  facts.machine_gpus = find_gpus(kDriverLimit);
  facts.visible_gpus = visible_gpus(facts.machine_gpus, environment);
  facts.nvidia_hardware = has_nvidia_hardware();
  // A driver that has just failed may hang, and is not asked again.
  if (facts.machine_gpus.answer == GpuAnswer::kCounted) facts.driver = read_driver(kDriverLimit);
}

void read_clock(MachineFacts& facts) {
  facts.clock_seconds = std::time(nullptr);
  timex state = {};
  facts.clock_synchronized = ::adjtimex(&state) >= 0 ? (state.status & STA_UNSYNC) == 0 : true;
}

/// The nearest folder that exists: a first run makes the rest.
std::filesystem::path existing_part(std::filesystem::path folder) {
  std::error_code error;
  while (!std::filesystem::exists(folder, error) && folder.has_parent_path() && folder != folder.parent_path()) {
    folder = folder.parent_path();
  }
  return folder;
}

/// In a child, because the home folder may be on a file server that does not answer.
void read_state(const Environment& environment, MachineFacts& facts) {
  facts.state_folder = state_folder(environment).string();
  const auto query = [&] {
    const std::string folder = existing_part(facts.state_folder).string();
    const int error = ::access(folder.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
    const StorageSpace space = storage_space(folder.c_str()).value_or(StorageSpace{});
    return std::to_string(error) + " " + std::to_string(space.total_bytes) + " " + std::to_string(space.free_bytes);
  };
  const ChildAnswer answer = query_in_child(query, kFolderLimit);
  if (answer.end != ChildAnswer::End::kAnswered) {
    facts.state_error = "the file system does not answer";
    return;
  }
  char* next = nullptr;
  const long error = std::strtol(answer.text.c_str(), &next, 10);
  if (error != 0) facts.state_error = std::generic_category().message(static_cast<int>(error));
  facts.state_room.total_bytes = std::strtoull(next, &next, 10);
  facts.state_room.free_bytes = std::strtoull(next, &next, 10);
}

}  // namespace

MachineFacts read_machine(const std::vector<Host>& hosts, const std::vector<std::string>& ssh,
                          const PythonChoice& python, const Environment& environment) {
  MachineFacts facts;
  facts.shared_memory = storage_space("/dev/shm").value_or(StorageSpace{});
  facts.locked_memory = limit_of(RLIMIT_MEMLOCK, &rlimit::rlim_cur);
  facts.infiniband = !list_names("/sys/class/infiniband").empty();
  facts.open_files = limit_of(RLIMIT_NOFILE, &rlimit::rlim_max).value_or(ULLONG_MAX);
  facts.cpus = cpus_by_affinity();
  facts.cpu_quota = cgroup_cpu_limit();
  read_gpus(environment, facts);
  read_network(hosts, facts);
  ask_helpers(hosts, ssh, python, environment, facts);
  read_clock(facts);
  read_state(environment, facts);
  return facts;
}

}  // namespace lrun::launcher
