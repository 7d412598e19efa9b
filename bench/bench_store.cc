// The store at scale, seen by clients that do nothing but ask: bench_store [-w 1,64,256,1024] [-k RUNS] [-m KEYS]
//   [-t SECONDS]      how long a server may be silent [60]
//   [-p PORT -i PID]  a server of the protocol that runs already, its process for the memory; else our own in a process
// Clients are threads of this process with a blocking connection each, as of limit_store. Two ways to the same barrier:
//   one  VALIDATE and BARRIER in one write, as limit_store's one request (torch's server of 2.11 does not know it)
//   add  what torch's clients ask: VALIDATE and PING, ADD, a SET of the last one, WAIT
// Prints medians: connect and pass a barrier, a barrier on open connections, ADDs a second; and the server's memory.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/event_loop.h"
#include "base/fd.h"
#include "store/server.h"
#include "wire/store_protocol.h"

namespace {

using lrun::StoreCommand;
using lrun::StoreRequest;
using Clock = std::chrono::steady_clock;

constexpr int kBarriers = 10;
constexpr auto kAddsFor = std::chrono::milliseconds(200);

struct Server {
  std::uint16_t port = 0;
  pid_t pid = -1;
  bool ours = false;
};

enum class Way { kOneRequest, kAddAndWait };

/// A server that has no file for a further connection leaves it unanswered, and torch's asks for the names of its
/// clients, for which it may wait.
timeval most_silence{60, 0};

[[noreturn]] void give_up(const char* what) {
  const bool silent = errno == EAGAIN || errno == EINPROGRESS;
  if (silent) {
    std::fprintf(stderr,
                 "bench_store: %s: the server has not answered for %ld s: it may lack open files, or a name server\n",
                 what, most_silence.tv_sec);
  } else {
    std::perror(what);
  }
  std::_Exit(1);
}

/// One connection that blocks, and the bytes of its next write.
class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int one = 1;
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    for (const int way : {SO_RCVTIMEO, SO_SNDTIMEO}) {
      ::setsockopt(socket_.get(), SOL_SOCKET, way, &most_silence, sizeof most_silence);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) give_up("connect");
    add({StoreCommand::kValidate, {}, lrun::kStoreMagic});
  }

  void add(const StoreRequest& request) { append_request(unsent_, request); }

  void send() {
    for (std::size_t sent = 0; sent < unsent_.size();) {
      const ssize_t count = ::send(socket_.get(), unsent_.data() + sent, unsent_.size() - sent, MSG_NOSIGNAL);
      if (count < 0) give_up("send");
      sent += static_cast<std::size_t>(count);
    }
    unsent_.clear();
  }

  /// Sends, and takes an answer of `size` bytes: a number of the protocol, or its first bytes.
  std::int64_t ask(std::size_t size) {
    send();
    std::int64_t answer = 0;
    const ssize_t count = ::recv(socket_.get(), &answer, size, MSG_WAITALL);
    if (count == 0) errno = ECONNRESET;
    if (count != static_cast<ssize_t>(size)) give_up("recv");
    return answer;
  }

  void pass_barrier(Way way, const std::string& key, int clients) {
    if (way == Way::kOneRequest) {
      add({StoreCommand::kBarrier, {key}, static_cast<std::uint64_t>(clients)});
      ask(1);
      return;
    }
    add({StoreCommand::kAdd, {key}, 1});
    if (ask(sizeof(std::int64_t)) == clients) add({StoreCommand::kSet, {key + "/all", "1"}});
    add({StoreCommand::kWait, {key + "/all"}});
    ask(1);
  }

 private:
  lrun::Fd socket_;
  std::string unsent_;
};

/// Milliseconds, and requests a second.
struct Figures {
  double connect_and_barrier = 0;
  double barrier = 0;
  double adds = 0;
};

double milliseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

/// Times are taken by the last client that arrives: this thread may have to wait for a processor.
Figures one_run(std::uint16_t port, Way way, int clients, const std::string& name) {
  Clock::time_point start;
  Clock::time_point connected;
  Clock::time_point passed;
  std::barrier begun(clients, [&]() noexcept { start = Clock::now(); });
  std::barrier met(clients, [&]() noexcept { connected = Clock::now(); });
  std::barrier met_again(clients + 1, [&]() noexcept { passed = Clock::now(); });
  std::barrier ended(clients + 1);
  std::atomic<bool> stop{false};
  std::atomic<long> adds{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i) {
    threads.emplace_back([&] {
      begun.arrive_and_wait();
      Client client(port);
      if (way == Way::kAddAndWait) {
        client.add({StoreCommand::kPing, {}, 1});
        client.ask(sizeof(std::uint32_t));
      }
      client.pass_barrier(way, name, clients);
      met.arrive_and_wait();
      for (int k = 0; k < kBarriers; ++k) client.pass_barrier(way, name + "/" + std::to_string(k), clients);
      met_again.arrive_and_wait();
      long own = 0;
      for (; !stop.load(std::memory_order_relaxed); ++own) {
        client.add({StoreCommand::kAdd, {"counter"}, 1});
        client.ask(sizeof(std::int64_t));
      }
      adds += own;
      ended.arrive_and_wait();
    });
  }
  met_again.arrive_and_wait();
  std::this_thread::sleep_for(kAddsFor);
  stop = true;
  ended.arrive_and_wait();
  const double seconds = milliseconds(passed, Clock::now()) / 1000;
  for (std::thread& thread : threads) thread.join();
  return {milliseconds(start, connected), milliseconds(connected, passed) / kBarriers,
          static_cast<double>(adds.load()) / seconds};
}

double median(std::vector<Figures>& runs, double Figures::*figure) {
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), middle, runs.end(),
                   [figure](const Figures& a, const Figures& b) { return a.*figure < b.*figure; });
  return (*middle).*figure;
}

void print_figures(const Server& server, Way way, int clients, int count) {
  static int names = 0;
  std::vector<Figures> runs;
  for (int run = 0; run < count; ++run) {
    const std::string name = "/bench/" + std::to_string(::getpid()) + "/" + std::to_string(++names);
    runs.push_back(one_run(server.port, way, clients, name));
  }
  std::printf("store %s W=%-5d connect+barrier med=%.2f ms  barrier med=%.3f ms  add/s=%.0f\n",
              way == Way::kOneRequest ? "one" : "add", clients, median(runs, &Figures::connect_and_barrier),
              median(runs, &Figures::barrier), median(runs, &Figures::adds));
  std::fflush(stdout);
}

long resident_kib(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
  }
  return 0;
}

/// Keys of 32 bytes with values of 16, as a large job's addresses have them.
void print_memory(const Server& server, int keys) {
  constexpr int kAtOnce = 1000;
  Client client(server.port);
  client.add({StoreCommand::kPing, {}, 1});
  client.ask(sizeof(std::uint32_t));
  const long before = resident_kib(server.pid);
  for (int key = 0; key < keys;) {
    StoreRequest request{StoreCommand::kMultiSet, {}};
    for (int i = 0; i < kAtOnce && key < keys; ++i, ++key) {
      char name[33];
      std::snprintf(name, sizeof name, "/default_pg/0//cpu//0/%010d", key);
      request.strings.emplace_back(name);
      request.strings.emplace_back(16, 'x');
    }
    client.add(request);
    client.add({StoreCommand::kPing, {}, 1});
    client.ask(sizeof(std::uint32_t));
  }
  const long after = resident_kib(server.pid);
  std::printf("store memory keys=%d before=%.1f MiB after=%.1f MiB bytes/key=%.0f\n", keys,
              static_cast<double>(before) / 1024, static_cast<double>(after) / 1024,
              static_cast<double>(after - before) * 1024 / keys);
}

/// Our own server, as a launcher has it, in a process that ends with this one.
Server start_server() {
  int port_pipe[2];
  if (::pipe2(port_pipe, O_CLOEXEC) != 0) give_up("pipe");
  Server server{.ours = true};
  server.pid = ::fork();
  if (server.pid < 0) give_up("fork");
  if (server.pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    lrun::EventLoop loop;
    const lrun::launcher::StoreServer store(loop, {});
    const std::uint16_t port = store.port();
    if (::write(port_pipe[1], &port, sizeof port) != sizeof port) give_up("write");
    loop.run();
    std::_Exit(0);
  }
  if (::read(port_pipe[0], &server.port, sizeof server.port) != sizeof server.port) give_up("read");
  ::close(port_pipe[0]);
  ::close(port_pipe[1]);
  return server;
}

void raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  std::string worlds = "1,64,256,1024";
  int runs = 5;
  int keys = 0;
  Server server;
  for (int option = 0; (option = ::getopt(argc, argv, "w:k:m:p:i:t:")) != -1;) {
    if (option == 'w') worlds = optarg;
    if (option == 'k') runs = std::max(1, std::atoi(optarg));
    if (option == 'm') keys = std::atoi(optarg);
    if (option == 'p') server.port = static_cast<std::uint16_t>(std::atoi(optarg));
    if (option == 't') most_silence.tv_sec = std::max(1, std::atoi(optarg));
    if (option == 'i') server.pid = std::atoi(optarg);
    if (option == '?') return 2;
  }
  raise_descriptor_limit();
  if (server.port == 0) server = start_server();
  std::istringstream list(worlds);
  for (std::string clients; std::getline(list, clients, ',');) {
    if (server.ours) print_figures(server, Way::kOneRequest, std::atoi(clients.c_str()), runs);
    print_figures(server, Way::kAddAndWait, std::atoi(clients.c_str()), runs);
  }
  if (keys > 0 && server.pid > 0) print_memory(server, keys);
  if (!server.ours) return 0;
  ::kill(server.pid, SIGKILL);
  ::waitpid(server.pid, nullptr, 0);
}
