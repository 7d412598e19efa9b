// All-reduce (float32, sum) of the processes of one host: microseconds until the slowest rank has the result, as
// buckets of allocate_bucket() and as foreign tensors, by shm, and as foreign tensors by gloo over loopback. With
// LRUN_PERF (./dev bench sets it) beside the limit program shm_allreduce, in turn, so that whatever else the machine
// does falls on both alike.
//
// usage: bench_runtime_allreduce [RANKS [ROUNDS]]
#include <ATen/ATen.h>
#include <fcntl.h>
#include <lrun/session.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr std::array<std::int64_t, 5> kBytes = {4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};

/// Microseconds by bytes and kind ('bucket', 'foreign', 'gloo'; of the limit program 'zerocopy', 'copy-pipe'), one per
/// round.
using Table = std::map<std::pair<std::int64_t, std::string>, std::vector<double>>;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int iterations(std::int64_t bytes) { return bytes >= 64 << 20 ? 5 : bytes >= 1 << 20 ? 30 : 300; }

std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0) std::abort();
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(fd);
  return ntohs(address.sin_port);
}

/// The median over repetitions of the slowest rank's time.
double measure(lrun::Collectives& group, const at::Tensor& tensor, int repetitions) {
  constexpr int kWarmUp = 2;
  std::vector<double> slowest;
  for (int i = 0; i < repetitions + kWarmUp; ++i) {
    group.barrier();
    const auto begin = std::chrono::steady_clock::now();
    group.all_reduce(tensor, lrun::ReduceOp::kSum)->wait();
    const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
    at::Tensor time = at::full({1}, taken.count(), at::kDouble);
    group.all_reduce(time, lrun::ReduceOp::kMax)->wait();
    if (i >= kWarmUp) slowest.push_back(time.item<double>());
  }
  return median(slowest);
}

/// One rank's part; rank 0 writes its lines to `output`.
void run_rank(const std::string& backend, int rank, int ranks, std::uint16_t port, std::FILE* output) {
  lrun::World world;
  world.rank = world.local_rank = rank;
  world.world_size = world.local_world_size = ranks;
  world.master_address = "127.0.0.1";
  world.master_port = port;
  lrun::SessionOptions options;
  options.world = world;
  options.backend = backend;
  options.banner = false;
  lrun::Session session(options);
  lrun::Collectives& group = session.collectives();
  for (const std::int64_t bytes : kBytes) {
    std::vector<std::pair<std::string, at::Tensor>> kinds;
    if (backend == "shm") kinds.emplace_back("bucket", group.allocate_bucket(bytes / 4, at::kFloat));
    kinds.emplace_back(backend == "shm" ? "foreign" : backend, at::ones({bytes / 4}, at::kFloat));
    for (const auto& [kind, tensor] : kinds) {
      tensor.fill_(0);
      const double taken = measure(group, tensor, iterations(bytes));
      if (rank == 0) std::fprintf(output, "%lld %s %f\n", static_cast<long long>(bytes), kind.c_str(), taken);
    }
  }
}

/// Forks the ranks before LibTorch has done anything, and reads rank 0's lines.
void run_ours(const std::string& backend, int ranks, Table& table) {
  const std::uint16_t port = free_port();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      std::FILE* output = ::fdopen(ends[1], "w");
      run_rank(backend, rank, ranks, port, output);
      std::fclose(output);
      ::_exit(0);
    }
    children.push_back(child);
  }
  ::close(ends[1]);
  std::FILE* input = ::fdopen(ends[0], "r");
  long long bytes = 0;
  char kind[16];
  double taken = 0;
  while (std::fscanf(input, "%lld %15s %lf", &bytes, kind, &taken) == 3) table[{bytes, kind}].push_back(taken);
  std::fclose(input);
  for (const pid_t child : children) {
    int status = 0;
    if (::waitpid(child, &status, 0) != child || status != 0) std::abort();
  }
}

void run_limit(const std::string& program, int ranks, Table& table) {
  const std::string command = program + " -p " + std::to_string(ranks) + " -s 4K,64K,1M,16M,64M";
  std::FILE* input = ::popen(command.c_str(), "r");
  if (input == nullptr) std::abort();
  char line[512];
  while (std::fgets(line, sizeof line, input) != nullptr) {
    long long bytes = 0;
    char kind[16];
    double taken = 0;
    if (std::sscanf(line, "P=%*d %lld B %15s med=%lf", &bytes, kind, &taken) == 3) {
      table[{bytes, kind}].push_back(taken);
    }
  }
  if (::pclose(input) != 0) std::abort();
}

void print(const Table& ours, const Table& limit) {
  std::printf("%12s %-8s %12s %10s %12s %10s\n", "bytes", "kind", "us", "GB/s", "limit us", "of limit");
  for (const auto& [row, times] : ours) {
    const auto& [bytes, kind] = row;
    const double taken = median(times);
    std::printf("%12lld %-8s %12.1f %10.2f", static_cast<long long>(bytes), kind.c_str(), taken,
                static_cast<double>(bytes) / taken / 1e3);
    const auto found = limit.find({bytes, kind == "bucket" ? "zerocopy" : kind == "foreign" ? "copy-pipe" : "none"});
    if (found != limit.end()) std::printf(" %12.1f %10.2f", median(found->second), median(found->second) / taken);
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  const char* perf = std::getenv("LRUN_PERF");
  Table ours;
  Table limit;
  for (int round = 0; round < rounds; ++round) {
    if (perf != nullptr) run_limit(std::string(perf) + "/shm_allreduce", ranks, limit);
    run_ours("shm", ranks, ours);
    run_ours("gloo", ranks, ours);
  }
  std::printf("all-reduce, float32 sum, %d ranks, medians of %d rounds\n", ranks, rounds);
  print(ours, limit);
}
