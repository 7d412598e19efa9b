// A job of many nodes meets: bench_rendezvous [NODES...], 1000 and 10000 unless told. The rendezvous is served as a
// launcher does, in a process of its own. Its nodes are connections of this process, over loopback, which send the
// messages of launchers and look only at the kind of those that they get. All meet; one worker of one node fails, and
// the end of the round goes to all; all meet again. Prints the time of each, from the first node's first message to the
// last one's answer, the bytes that were sent, and the processor time and memory of the leader.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "base/fd.h"
#include "rendezvous/handshake.h"
#include "rendezvous/rendezvous_server.h"
#include "supervise/restart_policy.h"
#include "verdict/job_report.h"
#include "wire/connect.h"

namespace {

using lrun::Fd;
using lrun::launcher::Handshake;
using lrun::launcher::LauncherMessage;
using Kind = LauncherMessage::Kind;
using Clock = std::chrono::steady_clock;

constexpr int kWorkersOfANode = 8;
constexpr std::size_t kConnectAtOnce = 256;
constexpr std::chrono::seconds kPatience(120);

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::_Exit(1);
}

struct Leader {
  pid_t pid = -1;
  std::uint16_t port = 0;
};

Leader start_leader(int nodes) {
  int port_pipe[2];
  if (::pipe2(port_pipe, O_CLOEXEC) != 0) give_up("pipe");
  Leader leader;
  leader.pid = ::fork();
  if (leader.pid < 0) give_up("fork");
  if (leader.pid == 0) {
    lrun::EventLoop loop;
    lrun::launcher::RendezvousServer::Options options{.reach = lrun::launcher::StoreReach::kLoopback,
                                                      .merge = lrun::merge_reports};
    options.times.heartbeat = options.times.join;  // no launcher is silent here, and none sends heartbeats
    options.max_store_connections = options.max_launchers = 2 * static_cast<std::size_t>(nodes);
    lrun::launcher::RendezvousServer server(loop, options);
    const std::uint16_t port = server.server().port();
    if (::write(port_pipe[1], &port, sizeof port) != sizeof port) give_up("write");
    loop.run();
    std::_Exit(0);
  }
  if (::read(port_pipe[0], &leader.port, sizeof leader.port) != sizeof leader.port) give_up("read");
  ::close(port_pipe[0]);
  ::close(port_pipe[1]);
  return leader;
}

/// Peak of its resident memory in MiB.
double peak_of(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

/// Its processor time in seconds.
double processor_time_of(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text(std::istreambuf_iterator<char>(stat), {});
  unsigned long user = 0;
  unsigned long system = 0;
  text.erase(0, text.rfind(')') + 1);
  if (std::sscanf(text.c_str(), " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2) return 0;
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::string in_bytes(const LauncherMessage& message) {
  std::string bytes;
  append_message(bytes, message);
  return bytes;
}

lrun::launcher::JoinRecord record_of(int node, int nodes) {
  const std::string address =
      "10." + std::to_string(node >> 16) + "." + std::to_string(node >> 8 & 255) + "." + std::to_string(node & 255);
  const std::string name = "node-" + std::to_string(node) + ".cluster";
  return {.token = name + "/20260101-000000-abcdef/" + std::to_string(node),
          .run_name = "job",
          .run_id = "20260101-000000-abcdef",
          .node = name,
          .address = address,
          .leader_address = "10.0.0.1",
          .workers = kWorkersOfANode,
          .store_port = 4000,
          .min_nodes = nodes,
          .max_nodes = nodes,
          .settings = "strategy ddp, 3 restarts, back-off 1s, --compat=lrun"};
}

/// One worker of node 0 fails, and all others are stopped for it.
std::string report_of_node(int node) {
  const bool fails = node == 0;
  std::vector<lrun::FailureRecord> records(kWorkersOfANode);
  for (lrun::FailureRecord& record : records) {
    record.node = "node-" + std::to_string(node) + ".cluster";
    record.ending = lrun::FailureRecord::Ending::kSignaled;
    record.value = record.stop_signal = SIGTERM;
  }
  if (fails) {
    records[3].stop_signal = 0;
    records[3].evidence = std::vector<std::string>(30, "  File \"train.py\", line 17, in step: a line of a traceback");
  }
  lrun::RunEnd end{lrun::RunEnd::Kind::kWorkerFailed};
  if (!fails) end.node = "node-0.cluster", end.node_rank = 0;
  return to_json(lrun::report_of(records[0].node, node, end, 5 + node, records, {}));
}

struct Node {
  Fd socket;
  Handshake handshake{Handshake::Side::kLauncher, "", lrun::launcher::random_nonce()};
  std::string bytes;  ///< of a message that is not whole yet
};

class Nodes {
 public:
  explicit Nodes(int count) : poll_(::epoll_create1(EPOLL_CLOEXEC)), count_(static_cast<std::size_t>(count)) {}

  void meet(std::uint16_t port) {
    while (told_ < count_) {
      while (nodes_.size() < count_ && nodes_.size() < joined_ + kConnectAtOnce) connect(port);
      wait("begin");
    }
  }

  /// Everybody says something, and is told something.
  void say(const std::vector<std::string>& messages, std::string_view answer) {
    told_ = bytes_ = 0;
    for (std::size_t i = 0; i < count_; ++i) send(*nodes_[i], messages[i % messages.size()]);
    while (told_ < count_) wait(answer);
  }

  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void connect(std::uint16_t port) {
    nodes_.push_back(std::make_unique<Node>());
    Node& node = *nodes_.back();
    node.socket = lrun::connect_to("127.0.0.1", port, Clock::now() + kPatience);
    epoll_event event{.events = EPOLLIN, .data = {.u64 = nodes_.size() - 1}};
    if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, node.socket.get(), &event) != 0) give_up("epoll_ctl");
    send(node, node.handshake.take_output());
  }

  static void send(Node& node, const std::string& bytes) {
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t count = ::send(node.socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count < 0 && (errno != EAGAIN || !lrun::poll_until(node.socket.get(), POLLOUT, Clock::now() + kPatience))) {
        give_up("send");
      }
      sent += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    }
  }

  void wait(std::string_view answer) {
    epoll_event events[64];
    const int ready = ::epoll_wait(poll_.get(), events, 64, std::chrono::milliseconds(kPatience).count());
    if (ready <= 0) give_up("nothing is told");
    for (int i = 0; i < ready; ++i) read(events[i].data.u64, answer);
  }

  void read(std::size_t index, std::string_view answer) {
    static char bytes[1 << 16];
    Node& node = *nodes_[index];
    const ssize_t count = ::recv(node.socket.get(), bytes, sizeof bytes, 0);
    if (count <= 0) give_up("the leader has closed a connection");
    std::string_view came(bytes, static_cast<std::size_t>(count));
    if (!node.handshake.done()) {
      node.handshake.feed(came);
      if (!node.handshake.done()) return;
      ++joined_;
      send(node, in_bytes({.kind = Kind::kJoin, .join = record_of(static_cast<int>(index), static_cast<int>(count_))}));
      node.bytes = node.handshake.take_rest();
      came = {};
    }
    node.bytes += came;
    bytes_ += came.size();
    take_messages(node, answer);
  }

  void take_messages(Node& node, std::string_view answer) {
    while (node.bytes.size() >= 4) {
      std::size_t length = 0;
      for (std::size_t i = 0; i < 4; ++i) length = length << 8U | static_cast<unsigned char>(node.bytes[i]);
      if (node.bytes.size() < 4 + length) return;
      const std::string kind = R"("kind":")" + std::string(answer) + '"';
      if (node.bytes.find(kind) < 4 + length) ++told_;
      node.bytes.erase(0, 4 + length);
    }
  }

  Fd poll_;
  std::size_t count_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::size_t joined_ = 0;
  std::size_t told_ = 0;
  std::size_t bytes_ = 0;
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void measure(int count) {
  const Leader leader = start_leader(count);
  Nodes nodes(count);
  std::vector<std::string> reports;
  for (int node = 0; node < count; ++node) {
    reports.push_back(in_bytes({.kind = Kind::kReport, .text = report_of_node(node)}));
  }
  auto start = Clock::now();
  nodes.meet(leader.port);
  std::printf("rendezvous N=%-6d meet=%.2f s bytes=%.1f MB", count, seconds_since(start),
              static_cast<double>(nodes.bytes()) / 1e6);
  start = Clock::now();
  nodes.say(reports, "over");
  std::printf("  end=%.2f s bytes=%.1f MB", seconds_since(start), static_cast<double>(nodes.bytes()) / 1e6);
  lrun::launcher::RestartHistory history{.used = 1, .in_a_row = 1, .last = lrun::FailureRecord{}};
  history.last->evidence = std::vector<std::string>(30, "  File \"train.py\", line 17, in step: a line of a traceback");
  start = Clock::now();
  nodes.say({in_bytes({.kind = Kind::kReady, .round = 1, .text = to_json(history), .attempt = 1, .port = 4000})},
            "begin");
  std::printf("  next=%.2f s bytes=%.1f MB  leader: %.1f MiB, %.2f s of a core\n", seconds_since(start),
              static_cast<double>(nodes.bytes()) / 1e6, peak_of(leader.pid), processor_time_of(leader.pid));
  ::kill(leader.pid, SIGKILL);
  ::waitpid(leader.pid, nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  std::vector<int> counts;
  for (int i = 1; i < argc; ++i) counts.push_back(std::max(1, std::atoi(argv[i])));
  if (counts.empty()) counts = {1000, 10'000};
  constexpr rlim_t kForOthers = 100;
  for (const int count : counts) {
    if (static_cast<rlim_t>(count) + kForOthers <= limit.rlim_max) {
      measure(count);
    } else {
      std::printf("rendezvous N=%-6d left out: the hard limit is %ju descriptors\n", count,
                  static_cast<std::uintmax_t>(limit.rlim_max));
    }
  }
}
