#include "runtime/cuda/on_gpu.h"

#include <ATen/Context.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <memory>

namespace lrun::detail::testing {

namespace {

extern "C" void print_place(int signal_number) {
  std::array<void*, 64> frames{};
  ::backtrace_symbols_fd(frames.data(), ::backtrace(frames.data(), static_cast<int>(frames.size())), STDERR_FILENO);
  ::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

}  // namespace

void load_cuda_side() {
  require(::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr, "libtorch_cuda.so does not load");
}

std::string run_apart(const std::function<void()>& body) {
  return run_ranks_apart(1, [&](int) { body(); }).front();
}

std::vector<std::string> run_ranks_apart(int ranks, const std::function<void(int rank)>& body) {
  std::vector<RankProcess> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    processes.emplace_back([&, rank] {
      ::signal(SIGALRM, print_place);
      ::alarm(kSecondsOfAProcess);
      body(rank);
    });
  }
  std::vector<std::string> errors;
  for (RankProcess& process : processes) errors.push_back(process.result());
  return errors;
}

SessionOptions options_of_one(const std::string& strategy, int replicas) {
  SessionOptions options{.world = World(), .strategy = strategy, .banner = false};
  options.devices = std::vector<std::string>(static_cast<std::size_t>(replicas), "cuda:0");
  options.timeout = std::chrono::seconds(60);
  options.gradients = {.bucket_bytes = 1024, .first_bucket_bytes = 512};  // several, made anew after the first step
  return options;
}

void pretend_to_be_host(int rank) {
  ::setenv("NCCL_HOSTID", ("host " + std::to_string(rank)).c_str(), 1);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  ::setenv("NCCL_IB_DISABLE", "1", 1);
}

void switch_tf32_off() {
  at::globalContext().setAllowTF32CuBLAS(false);
  at::globalContext().setAllowTF32CuDNN(false);
}

void synchronize_gpu() { c10::impl::VirtualGuardImpl(at::kCUDA).synchronizeDevice(0); }

Spin::Spin() : matrix_(at::zeros({8192, 8192}, on_gpu(at::kFloat))), product_(at::empty_like(matrix_)) {
  at::mm_out(product_, matrix_, matrix_);  // loads the library
  synchronize_gpu();
  const auto begin = std::chrono::steady_clock::now();
  at::mm_out(product_, matrix_, matrix_);
  synchronize_gpu();
  seconds_of_one_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Spin::start(std::chrono::milliseconds length) {
  const double count = std::ceil(std::chrono::duration<double>(length).count() / seconds_of_one_);
  require(count < 800, "a product takes " + std::to_string(seconds_of_one_) + " s: too many of them for a stream");
  for (double done = 0; done < count; ++done) at::mm_out(product_, matrix_, matrix_);
}

std::function<bool()> mark_current_stream() {
  const auto event = std::make_shared<c10::Event>(at::kCUDA);
  event->record(c10::impl::VirtualGuardImpl(at::kCUDA).getStream(at::Device(at::kCUDA, 0)));
  return [event] { return event->query(); };
}

std::size_t used_gpu_memory() {
  using MemGetInfo = int (*)(std::size_t * free, std::size_t * total);
  const auto ask = reinterpret_cast<MemGetInfo>(::dlsym(RTLD_DEFAULT, "cudaMemGetInfo"));
  require(ask != nullptr, "CUDA's runtime is not loaded");
  std::size_t free = 0;
  std::size_t total = 0;
  require(ask(&free, &total) == 0, "cudaMemGetInfo");
  return total - free;
}

}  // namespace lrun::detail::testing
