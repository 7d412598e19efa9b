// The same work as that of limit_store with c10d::TCPStore, server and clients: torch_store CLIENTS[,CLIENTS...]
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "barriers.h"

namespace {

constexpr int kRuns = 3;
constexpr int kBarriers = 5;

c10d::TCPStoreOptions options(std::uint16_t port, bool is_server) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = is_server;
  options.waitWorkers = false;
  options.useLibUV = true;
  options.timeout = std::chrono::seconds(60);
  return options;
}

/// The barrier that torch.distributed makes of its store: a count, and a key that the last one sets.
class Client {
 public:
  Client(std::uint16_t port, int clients, int run)
      : store_("127.0.0.1", options(port, false)), clients_(clients), name_(std::to_string(run) + "/") {}

  void pass_barrier(int number) {
    const std::string key = name_ + std::to_string(number);
    if (store_.add(key, 1) == clients_) store_.set(key + "/all", std::vector<std::uint8_t>{1});
    store_.wait({key + "/all"});
  }

 private:
  c10d::TCPStore store_;
  int clients_;
  std::string name_;
};

/// Starts a server in a process that ends with this one. \return its pid. Sets its port.
pid_t start_server(std::uint16_t& port) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const c10d::TCPStore server("127.0.0.1", options(0, true));
    port = server.getPort();
    if (::write(ends[1], &port, sizeof port) != sizeof port) std::abort();
    for (;;) ::pause();
  }
  ::close(ends[1]);
  if (::read(ends[0], &port, sizeof port) != sizeof port) std::abort();
  ::close(ends[0]);
  return pid;
}

void measure(std::uint16_t port, const std::vector<int>& worlds) {
  int number = 0;
  for (const int clients : worlds) {
    std::vector<BarrierTimes> runs;
    for (int run = 0; run < kRuns; ++run) {
      ++number;
      runs.push_back(time_barriers(clients, kBarriers, [&] { return Client(port, clients, number); }));
    }
    print_barriers("TCPStore", clients, runs);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  allow_many_files();
  std::uint16_t port = 0;
  const pid_t server = start_server(port);
  measure(port, numbers_of(argv[1]));
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
}
