#pragma once

#include <sys/resource.h>

#include <barrier>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "figures.h"

/// Each client has a socket.
inline void allow_many_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Milliseconds.
struct BarrierTimes {
  double connect = 0;  ///< Until all clients are connected and have passed their first barrier.
  double next = 0;     ///< A further barrier on the open connections.
};

/// Clients in threads of their own, a connection each. Times are taken by the last one that arrives.
/// \param connect  connect() returns a client; its pass_barrier(number) returns when all clients have called it.
template <class Connect>
BarrierTimes time_barriers(int clients, int barriers, const Connect& connect) {
  double begin = 0;
  double middle = 0;
  double end = 0;
  std::barrier begun(clients, [&]() noexcept { begin = seconds_now(); });
  std::barrier connected(clients, [&]() noexcept { middle = seconds_now(); });
  std::barrier passed(clients, [&]() noexcept { end = seconds_now(); });
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i) {
    threads.emplace_back([&] {
      begun.arrive_and_wait();
      auto client = connect();
      client.pass_barrier(0);
      connected.arrive_and_wait();
      for (int number = 1; number <= barriers; ++number) client.pass_barrier(number);
      passed.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return {1e3 * (middle - begin), 1e3 * (end - middle) / barriers};
}

/// Prints the medians of all runs with so many clients.
inline void print_barriers(const char* server, int clients, const std::vector<BarrierTimes>& runs) {
  std::vector<double> connect;
  std::vector<double> next;
  for (const BarrierTimes& run : runs) {
    connect.push_back(run.connect);
    next.push_back(run.next);
  }
  std::printf("%s W=%-5d connect+barrier med=%.2f ms  barrier med=%.3f ms\n", server, clients, median(connect),
              median(next));
  std::fflush(stdout);
}
