// What synchronising gradients costs a training step: 12 x (Linear(1024) + ReLU) in float32, SGD, two ranks over shm,
// one thread each. The ranks are this program again, started with the worker environment.
//
// Every row is the median of steps that take turns, so that whatever else the machine does falls on all alike:
//   plain   no wrapper: what the ranks can do at all
//   local   wrapped, under no_sync()
//   synced  wrapped, gradients averaged
//   kept    as synced, with zero_grad(false): gradients are zeroed and added to in the bucket instead of copied into it
//   watched as synced, where the guards compare the parameters of all ranks in every step, not in every 500th
// Efficiency is plain / synced in wall time; beside it stands the same ratio in processor time of rank 0 (all its
// threads), which other programs on the machine hardly move, but which does not count waiting.
#include <lrun/data_loader.h>
#include <lrun/session.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

constexpr int kRanks = 2;
constexpr int kLayers = 12;
constexpr std::int64_t kWidth = 1024;
constexpr int kWarmUp = 3;

struct Net : torch::nn::Module {
  Net() {
    for (int layer = 0; layer < kLayers; ++layer) {
      layers.push_back(register_module("layer" + std::to_string(layer), torch::nn::Linear(kWidth, kWidth)));
    }
  }
  at::Tensor forward(at::Tensor hidden) {
    for (auto& layer : layers) hidden = at::relu(layer(hidden));
    return hidden;
  }
  std::vector<torch::nn::Linear> layers;
};

struct Row {
  std::vector<double> wall, processor;  // milliseconds a step
};

struct Times {
  Row plain, local, synced, kept, watched;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double processor_milliseconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto milliseconds = [](const timeval& time) {
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_usec);
  };
  return milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
}

template <class Step>
void time_step(lrun::Session& session, Row& row, Step step) {
  session.barrier();  // so that no row waits for another row's late rank
  const auto begin = std::chrono::steady_clock::now();
  const double processor = processor_milliseconds();
  step();
  row.wall.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  row.processor.push_back(processor_milliseconds() - processor);
}

Times measure(lrun::Session& session, std::int64_t batch_size, int steps) {
  auto plain = std::make_shared<Net>();
  auto net = std::make_shared<Net>();
  auto model = session.wrap(net);
  torch::optim::SGD plain_optimizer(plain->parameters(), 1e-4);
  auto optimizer = session.optimizer<torch::optim::SGD>(model, 1e-4);
  auto apart = session.wrap(std::make_shared<Net>());  // steps without averaging: its parameters drift apart
  auto apart_optimizer = session.optimizer<torch::optim::SGD>(apart, 1e-4);
  auto watched = session.wrap(std::make_shared<Net>(), lrun::WrapOptions{.guards = {.compare_parameters_every = 1}});
  auto watched_optimizer = session.optimizer<torch::optim::SGD>(watched, 1e-4);
  torch::manual_seed(session.rank_seed());
  const auto batch = at::randn({batch_size, kWidth});
  const auto step = [](Net& replica, const at::Tensor& part) { return replica.forward(part).square().mean(); };
  const auto wrapped = [&](auto& of_model, auto& with_optimizer, bool set_to_none) {
    with_optimizer.zero_grad(set_to_none);
    of_model.train_step(batch, step);
    with_optimizer.step();
  };
  Times times;
  for (int turn = -kWarmUp; turn < steps; ++turn) {
    if (turn == 0) times = Times();
    time_step(session, times.plain, [&] {
      plain_optimizer.zero_grad();
      step(*plain, batch).backward();
      plain_optimizer.step();
    });
    time_step(session, times.local, [&] {
      const auto guard = apart.no_sync();
      wrapped(apart, apart_optimizer, true);
    });
    time_step(session, times.synced, [&] { wrapped(model, optimizer, true); });
    time_step(session, times.kept, [&] { wrapped(model, optimizer, false); });
    time_step(session, times.watched, [&] { wrapped(watched, watched_optimizer, true); });
  }
  return times;
}

int run_rank(int steps) {
  lrun::Session session({.timeout = std::chrono::seconds(60), .banner = false});
  for (const std::int64_t batch_size : {256, 64}) {
    const auto times = measure(session, batch_size, steps);
    if (!session.is_rank_zero()) continue;
    const auto print = [&](const char* what, std::vector<double> Row::*of) {
      std::printf(
          "ddp_step batch=%-3ld %-9s plain=%.2f local=%.2f synced=%.2f kept=%.2f watched=%.2f ms efficiency=%.1f%%\n",
          batch_size, what, median(times.plain.*of), median(times.local.*of), median(times.synced.*of),
          median(times.kept.*of), median(times.watched.*of), 100 * median(times.plain.*of) / median(times.synced.*of));
    };
    print("wall", &Row::wall);
    print("processor", &Row::processor);
    std::fflush(stdout);
  }
  return 0;
}

/// A port that nobody listens on; rank 0 will.
int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  void* raw = &address;
  if (::bind(fd, static_cast<sockaddr*>(raw), size) != 0 ||
      ::getsockname(fd, static_cast<sockaddr*>(raw), &size) != 0) {
    std::perror("bench_runtime_ddp_step: no free port");
    std::exit(1);
  }
  ::close(fd);
  return ntohs(address.sin_port);
}

int start_ranks(char** arguments) {
  const std::string port = std::to_string(free_port());
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("MASTER_PORT", port.c_str(), 1);
  ::setenv("WORLD_SIZE", std::to_string(kRanks).c_str(), 1);
  ::setenv("OMP_NUM_THREADS", "1", 1);
  std::vector<pid_t> ranks(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    const int error =
        ::posix_spawn(&ranks[static_cast<std::size_t>(rank)], "/proc/self/exe", nullptr, nullptr, arguments, environ);
    if (error != 0) {
      std::fprintf(stderr, "bench_runtime_ddp_step: cannot start a rank: %s\n", std::strerror(error));
      return 1;
    }
  }
  int result = 0;
  for (const pid_t rank : ranks) {
    int status = 0;
    if (::waitpid(rank, &status, 0) != rank || status != 0) result = 1;
  }
  return result;
}

}  // namespace

int main(int argument_count, char** arguments) {
  const int steps = argument_count > 1 ? std::atoi(arguments[1]) : 25;
  return std::getenv("RANK") == nullptr ? start_ranks(arguments) : run_rank(std::max(steps, 1));
}
