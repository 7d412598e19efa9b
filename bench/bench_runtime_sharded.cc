// What ddp_sharded saves: Adam over 12 x Linear(1024) in float32, shm, one thread a rank. The ranks are this program
// again, started with the worker environment; without arguments worlds of 1, 2 and 4.
//
//   state   bytes of Adam's state on the rank that has the most, beside the whole
//   step    the optimizer's step with its exchange of parameters, median in turn with that of ddp
#include <lrun/session.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
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

constexpr int kLayers = 12;
constexpr std::int64_t kWidth = 1024;
constexpr int kSteps = 15;

struct Net : torch::nn::Module {
  Net() {
    for (int layer = 0; layer < kLayers; ++layer) {
      register_module("layer" + std::to_string(layer), torch::nn::Linear(kWidth, kWidth));
    }
  }
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double state_bytes(const torch::optim::Adam& optimizer) {
  double bytes = 0;
  for (const auto& [parameter, state] : optimizer.state()) {
    const auto& adam = dynamic_cast<const torch::optim::AdamParamState&>(*state);
    bytes += static_cast<double>(adam.exp_avg().nbytes() + adam.exp_avg_sq().nbytes());
  }
  return bytes;
}

/// An optimizer over a model of its own, whose gradients are all there.
struct Side {
  explicit Side(lrun::Collectives* split_over)
      : optimizer(net->parameters(), torch::optim::AdamOptions(1e-3), split_over) {
    for (auto& parameter : net->parameters()) parameter.mutable_grad() = at::ones_like(parameter);
  }

  void time_step(lrun::Session& session) {
    session.barrier();
    const auto begin = std::chrono::steady_clock::now();
    optimizer.step();
    session.barrier();
    milliseconds.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }

  std::shared_ptr<Net> net = std::make_shared<Net>();
  lrun::Optimizer<torch::optim::Adam> optimizer;
  std::vector<double> milliseconds;
};

int run_rank() {
  lrun::Session session({.timeout = std::chrono::seconds(60), .banner = false});
  Side whole(nullptr);
  Side sharded(&session.collectives());
  for (int step = 0; step < kSteps; ++step) {
    whole.time_step(session);
    sharded.time_step(session);
  }
  const double most = session.all_reduce(state_bytes(*sharded.optimizer), lrun::ReduceOp::kMax);
  if (!session.is_rank_zero()) return 0;
  constexpr double kMiB = 1 << 20;
  const double all = state_bytes(*whole.optimizer);
  std::printf("sharded ranks=%d state ddp=%.1f MiB ddp_sharded=%.1f MiB (%.3f) step ddp=%.1f ddp_sharded=%.1f ms\n",
              session.world_size(), all / kMiB, most / kMiB, most / all, median(whole.milliseconds),
              median(sharded.milliseconds));
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
    std::perror("bench_runtime_sharded: no free port");
    std::exit(1);
  }
  ::close(fd);
  return ntohs(address.sin_port);
}

int start_ranks(int world_size, char** arguments) {
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("MASTER_PORT", std::to_string(free_port()).c_str(), 1);
  ::setenv("WORLD_SIZE", std::to_string(world_size).c_str(), 1);
  ::setenv("OMP_NUM_THREADS", "1", 1);
  std::vector<pid_t> ranks(static_cast<std::size_t>(world_size));
  for (int rank = 0; rank < world_size; ++rank) {
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    pid_t& pid = ranks[static_cast<std::size_t>(rank)];
    const int error = ::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, arguments, environ);
    if (error != 0) {
      std::fprintf(stderr, "bench_runtime_sharded: cannot start a rank: %s\n", std::strerror(error));
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

int main(int, char** arguments) {
  if (std::getenv("RANK") != nullptr) return run_rank();
  for (const int world_size : {1, 2, 4}) {
    if (start_ranks(world_size, arguments) != 0) return 1;
  }
  return 0;
}
