// The least that a store takes: limit_store CLIENTS[,CLIENTS...] lets so many clients connect to a server over loopback
// and pass barriers. The server has one thread and two messages of a fixed size; it answers those who wait at a barrier
// when all have come.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "barriers.h"

namespace {

constexpr int kRuns = 5;
constexpr int kBarriers = 10;
constexpr int kAcceptedAtOnce = 64;

struct Request {
  std::uint64_t clients = 0;
  std::array<char, 56> rest{};
};

struct Reply {
  std::array<char, 16> bytes{};
};

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::_Exit(1);
}

void send_without_delay(int socket) {
  const int one = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

class Server {
 public:
  explicit Server(int listener) : listener_(listener), events_(::epoll_create1(EPOLL_CLOEXEC)) { watch(listener_); }

  [[noreturn]] void run() {
    std::array<epoll_event, 256> ready;
    for (;;) {
      const int count = ::epoll_wait(events_, ready.data(), static_cast<int>(ready.size()), -1);
      for (int i = 0; i < count; ++i) {
        const int fd = ready[static_cast<std::size_t>(i)].data.fd;
        if (fd == listener_) {
          accept_clients();
        } else {
          serve(fd);
        }
      }
    }
  }

 private:
  void watch(int fd) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    ::epoll_ctl(events_, EPOLL_CTL_ADD, fd, &event);
  }

  void accept_clients() const {
    for (int i = 0; i < kAcceptedAtOnce; ++i) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (client < 0) return;
      send_without_delay(client);
      watch(client);
    }
  }

  void serve(int client) {
    Request request;
    if (::recv(client, &request, sizeof request, 0) != sizeof request) {
      ::close(client);
      return;
    }
    waiting_.push_back(client);
    if (waiting_.size() < request.clients) return;
    const Reply reply;
    for (const int waiting : waiting_)
      if (::send(waiting, &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply) give_up("send");
    waiting_.clear();
  }

  int listener_;
  int events_;
  std::vector<int> waiting_;
};

class Client {
 public:
  Client(const sockaddr_in& server, int clients) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    request_.clients = static_cast<std::uint64_t>(clients);
    send_without_delay(socket_);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&server), sizeof server) != 0) give_up("connect");
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void pass_barrier(int) const {
    Reply reply;
    if (::send(socket_, &request_, sizeof request_, MSG_NOSIGNAL) != sizeof request_) give_up("send");
    if (::recv(socket_, &reply, sizeof reply, MSG_WAITALL) != sizeof reply) give_up("recv");
  }

 private:
  Request request_;
  int socket_;
};

/// Starts a server in a process that ends with this one. Sets where it listens.
pid_t start_server(sockaddr_in& address) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener, generic, size) != 0 || ::listen(listener, 4096) != 0) give_up("listen");
  ::getsockname(listener, generic, &size);
  const pid_t server = ::fork();
  if (server < 0) give_up("fork");
  if (server == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Server(listener).run();
  }
  ::close(listener);
  return server;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  allow_many_files();
  sockaddr_in address{};
  const pid_t server = start_server(address);
  for (const int clients : numbers_of(argv[1])) {
    std::vector<BarrierTimes> runs;
    for (int run = 0; run < kRuns; ++run)
      runs.push_back(time_barriers(clients, kBarriers, [&] { return Client(address, clients); }));
    print_barriers("server", clients, runs);
  }
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
}
