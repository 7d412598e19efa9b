// The least that a sum over processes of one machine takes: limit_allreduce RANKS BYTES [RUNS]. Each process adds its
// part of all float32 tensors. Prints the median of the slowest rank's times in microseconds for three ways:
//   in_place     the tensors lie in shared memory, and each part is written to all of them
//   copied       the tensors are private: copied to shared memory, added there, copied back
//   in_chunks    the same chunk by chunk, so that what is shared stays in the caches
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "figures.h"

namespace {

constexpr int kMostRanks = 64;
constexpr int kSpins = 2000;
constexpr std::size_t kChunk = 65536;   // floats
constexpr std::size_t kSamples = 1024;  // of a tensor, to see that the sum is right
constexpr std::size_t kMega = std::size_t{1} << 20U;

struct Control {
  alignas(64) std::atomic<int> arrived{0};
  alignas(64) std::atomic<int> round{0};
  alignas(64) std::array<double, kMostRanks> seconds{};
};

void* map_memory(std::size_t bytes, int sharing) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    std::_Exit(1);
  }
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  std::memset(memory, 0, bytes);
  return memory;
}

float* map_floats(std::size_t bytes, int sharing) { return static_cast<float*>(map_memory(bytes, sharing)); }

/// A register full of elements, wherever they lie.
using Register = float __attribute__((vector_size(32), aligned(4), may_alias));
constexpr std::size_t kElements = sizeof(Register) / sizeof(float);
constexpr std::size_t kRegisters = 4;  // at a time: each of them waits for its loads
constexpr std::size_t kBlock = kRegisters * kElements;

/// Writes the sum of the sources' elements [begin, end) to all targets.
void add_up(const std::vector<float*>& sources, const std::vector<float*>& targets, std::size_t begin,
            std::size_t end) {
  const auto registers = [](float* memory) { return reinterpret_cast<Register*>(memory); };
  std::size_t at = begin;
  for (; at + kBlock <= end; at += kBlock) {
    Register sum[kRegisters];
    for (std::size_t i = 0; i < kRegisters; ++i) sum[i] = registers(sources[0] + at)[i];
    for (std::size_t rank = 1; rank < sources.size(); ++rank)
      for (std::size_t i = 0; i < kRegisters; ++i) sum[i] += registers(sources[rank] + at)[i];
    for (float* target : targets)
      for (std::size_t i = 0; i < kRegisters; ++i) registers(target + at)[i] = sum[i];
  }
  for (; at < end; ++at) {
    float sum = 0;
    for (const float* source : sources) sum += source[at];
    for (float* target : targets) target[at] = sum;
  }
}

struct Part {
  std::size_t begin;
  std::size_t end;
};

/// One process of the sum. The processes have all memory but the private tensor in common.
class Rank {
 public:
  /// \param runs  0: as many as take a moment.
  Rank(int ranks, std::size_t bytes, int runs) : ranks_(ranks), count_(bytes / sizeof(float)), runs_(runs) {
    if (runs_ == 0) runs_ = bytes >= 64 * kMega ? 5 : bytes >= kMega ? 30 : 300;
    control_ = new (map_memory(sizeof(Control), MAP_SHARED)) Control();
    for (int rank = 0; rank < ranks; ++rank) {
      tensors_.push_back(map_floats(bytes, MAP_SHARED));
      slots_.push_back(map_floats(bytes, MAP_SHARED));
    }
    sum_ = map_floats(bytes, MAP_SHARED);
  }

  void become(int rank) {
    rank_ = rank;
    own_ = map_floats(count_ * sizeof(float), MAP_PRIVATE);
  }

  /// \return the median of the slowest rank's seconds; of rank 0 only.
  double measure(float* tensor, void (Rank::*add)()) {
    std::vector<double> times;
    for (int run = -2; run < runs_; ++run) {
      const double seconds = one_sum(tensor, add);
      if (run >= 0) times.push_back(seconds);
    }
    return median(times);
  }

  [[nodiscard]] float* shared_tensor() const { return tensors_[static_cast<std::size_t>(rank_)]; }
  [[nodiscard]] float* private_tensor() const { return own_; }
  [[nodiscard]] bool is_wrong() const { return is_wrong_; }

  void add_in_place() {
    const Part part = part_of(count_);
    add_up(tensors_, tensors_, part.begin, part.end);
    wait_for_all();
  }

  void add_copied() {
    float* const slot = slots_[static_cast<std::size_t>(rank_)];
    std::copy_n(own_, count_, slot);
    wait_for_all();
    const Part part = part_of(count_);
    add_up(slots_, {sum_, own_}, part.begin, part.end);
    wait_for_all();
    std::copy_n(sum_, part.begin, own_);
    std::copy(sum_ + part.end, sum_ + count_, own_ + part.end);
  }

  /// Two places for chunks take turns: a third faster than one, whose lines another rank has just read.
  void add_in_chunks() {
    std::vector<float*> sources(slots_.size());
    for (std::size_t done = 0, place = 0; done < count_; done += kChunk, place = kChunk - place) {
      const std::size_t count = std::min(kChunk, count_ - done);
      for (std::size_t rank = 0; rank < sources.size(); ++rank) sources[rank] = slots_[rank] + place;
      std::copy_n(own_ + done, count, sources[static_cast<std::size_t>(rank_)]);
      wait_for_all();
      const Part part = part_of(count);
      add_up(sources, {sum_ + place}, part.begin, part.end);
      wait_for_all();
      std::copy_n(sum_ + place, count, own_ + done);
    }
  }

  void wait_for_all() {
    const int round = control_->round.load(std::memory_order_acquire);
    if (control_->arrived.fetch_add(1, std::memory_order_acq_rel) == ranks_ - 1) {
      control_->arrived.store(0, std::memory_order_relaxed);
      control_->round.store(round + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; control_->round.load(std::memory_order_acquire) == round; ++spins) {
      if (spins > kSpins) {
        ::sched_yield();
      } else {
#ifdef __x86_64__
        __builtin_ia32_pause();
#endif
      }
    }
  }

 private:
  /// Parts begin at whole cache lines.
  [[nodiscard]] Part part_of(std::size_t count) const {
    const auto rank = static_cast<std::size_t>(rank_);
    const std::size_t size = (count / static_cast<std::size_t>(ranks_) + 15) / 16 * 16;
    return {std::min(count, size * rank), rank_ == ranks_ - 1 ? count : std::min(count, size * (rank + 1))};
  }

  double one_sum(float* tensor, void (Rank::*add)()) {
    const std::size_t step = std::max<std::size_t>(1, count_ / kSamples);
    for (std::size_t i = 0; i < count_; i += step) tensor[i] = static_cast<float>(rank_ + 1);
    wait_for_all();
    const double begin = seconds_now();
    (this->*add)();
    control_->seconds[static_cast<std::size_t>(rank_)] = seconds_now() - begin;
    const auto sum = static_cast<float>(ranks_ * (ranks_ + 1)) / 2;
    for (std::size_t i = 0; i < count_; i += step) {
      if (tensor[i] == sum || is_wrong_) continue;
      std::fprintf(stderr, "limit_allreduce: rank %d: element %zu is %g, not %g\n", rank_, i, tensor[i], sum);
      is_wrong_ = true;
    }
    wait_for_all();
    const double slowest = *std::max_element(control_->seconds.begin(), control_->seconds.begin() + ranks_);
    wait_for_all();
    return slowest;
  }

  int ranks_;
  std::size_t count_;
  int runs_;
  int rank_ = 0;
  bool is_wrong_ = false;  ///< One of the sums. The others still wait for this rank.
  Control* control_ = nullptr;
  std::vector<float*> tensors_;
  std::vector<float*> slots_;
  float* sum_ = nullptr;
  float* own_ = nullptr;
};

void measure_all(Rank& rank, bool prints) {
  const std::array<double, 3> seconds{rank.measure(rank.shared_tensor(), &Rank::add_in_place),
                                      rank.measure(rank.private_tensor(), &Rank::add_copied),
                                      rank.measure(rank.private_tensor(), &Rank::add_in_chunks)};
  if (prints)
    std::printf("in_place %.2f\ncopied %.2f\nin_chunks %.2f\n", 1e6 * seconds[0], 1e6 * seconds[1], 1e6 * seconds[2]);
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc >= 3 ? std::atoi(argv[1]) : 0;
  const std::size_t bytes = argc >= 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (ranks < 1 || ranks > kMostRanks || bytes < sizeof(float)) return 2;
  Rank self(ranks, bytes, argc > 3 ? std::max(1, std::atoi(argv[3])) : 0);
  std::vector<pid_t> others;
  for (int rank = 1; rank < ranks; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      self.become(rank);
      measure_all(self, false);
      std::_Exit(self.is_wrong() ? 1 : 0);
    }
    if (pid < 0) {
      std::perror("fork");
      return 1;
    }
    others.push_back(pid);
  }
  self.become(0);
  measure_all(self, true);
  bool is_wrong = self.is_wrong();
  for (const pid_t pid : others) {
    int status = 0;
    is_wrong |= ::waitpid(pid, &status, 0) != pid || status != 0;
  }
  return is_wrong ? 1 : 0;
}
