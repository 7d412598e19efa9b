#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/lrun_process.h"
#include "support/words.h"

namespace lrun::test {

/// Free now; below the range from which the kernel gives ports to others by itself. Processes that run at the same
/// time, and calls of one process, begin to look far apart.
inline int free_port() {
  constexpr int kFirst = 20'000;
  constexpr int kPorts = 12'000;
  static std::atomic<int> calls{0};
  const int start = static_cast<int>((static_cast<long>(::getpid()) * 7919 + 37L * calls++) % kPorts);
  for (int i = 0; i < kPorts; ++i) {
    const int port = kFirst + (start + i) % kPorts;
    const Fd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    if (::bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return port;
  }
  return 0;
}

/// The launchers of one job.
class Job {
 public:
  explicit Job(Words common) : common_(std::move(common)), endpoint_("127.0.0.1:" + std::to_string(free_port())) {}

  LrunProcess& start(const Words& options, const Words& command, LrunProcess::Options process = {}) {
    const Words rendezvous{"--rdzv-endpoint", endpoint_, "--rdzv-id", "named"};
    const Words words = joined(joined(joined(rendezvous, common_), options), command);
    nodes_.push_back(std::make_unique<LrunProcess>(words, std::move(process)));
    return *nodes_.back();
  }

 private:
  Words common_;
  std::string endpoint_;
  std::vector<std::unique_ptr<LrunProcess>> nodes_;
};

/// kill -9 of both processes of a launcher, while neither can act. It is waited for.
inline void kill_whole(LrunProcess& node) {
  const pid_t launcher = node.launcher_pid();
  node.signal(SIGSTOP);  // the guard would end by itself between the two
  ::kill(launcher, SIGKILL);
  node.signal(SIGKILL);
  (void)node.wait();
}

}  // namespace lrun::test
