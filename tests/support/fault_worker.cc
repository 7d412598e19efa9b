// A worker that ends in a chosen way: fault_worker KIND [RANK]. The others wait until they get a signal.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static void check_batch(int size) { assert(size > 0); }

namespace {

void say(const std::string& line) { std::cerr << line << std::endl; }

void read_through_null() {
  const volatile int* const nowhere = nullptr;
  std::cout << *nowhere;
}

int sum_of_frames(int depth) {
  std::array<volatile char, 4096> frame{};
  frame[static_cast<std::size_t>(depth) % frame.size()] = 1;
  return sum_of_frames(depth + 1) + frame[0];
}

void smash_the_stack(std::size_t count) {
  std::array<char, 8> small{};
  std::memset(small.data(), 'x', count);
  std::cout << small[0];
}

void free_twice() {
  // The second pointer hides the fault from the compiler.
  void* volatile block = std::malloc(100);
  void* volatile same = block;
  std::free(block);
  std::free(same);
}

void take_all_memory() {
  const rlimit limit{std::size_t{256} << 20U, std::size_t{256} << 20U};
  ::setrlimit(RLIMIT_AS, &limit);
  std::vector<std::vector<char>> blocks;
  while (true) blocks.emplace_back(std::size_t{64} << 20U);
}

void use_all_descriptors() {
  const rlimit limit{16, 16};
  ::setrlimit(RLIMIT_NOFILE, &limit);
  while (::open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {
  }
  throw std::runtime_error(std::string("cannot open data.bin: ") + std::strerror(errno));
}

void touch_beyond_the_end() {
  const int file = ::memfd_create("empty", MFD_CLOEXEC);
  auto* const bytes = static_cast<volatile char*>(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0));
  std::cout << bytes[0];
}

void outgrow_a_file() {
  const rlimit limit{4096, 4096};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const int file = ::memfd_create("big", MFD_CLOEXEC);
  const std::vector<char> bytes(10'000);
  for (int i = 0; i < 10; ++i) (void)!::write(file, bytes.data(), bytes.size());
}

void leave_a_thread() {
  std::thread waits([] { ::pause(); });
  // Destroyed while it runs: std::terminate().
}

void pass_on_a_childs_end(int signal_number) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(signal_number);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::_exit(128 + WTERMSIG(status));
}

/// Only a tool can read its stack.
void wait_in_generated_code() {
  say("waits");
#if defined(__x86_64__)
  constexpr unsigned char kPauseForEver[] = {0xB8, SYS_pause, 0, 0, 0, 0x0F, 0x05, 0xEB, 0xF7};
  void* const code = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(code, kPauseForEver, sizeof kPauseForEver);
  reinterpret_cast<void (*)()>(code)();
#endif
}

/// The child keeps the worker's pipes open after its end.
void leave_a_child_behind() {
  if (::fork() == 0) {
    ::pause();
    ::_exit(0);
  }
  say("left a child behind");
  ::_exit(6);
}

void print_a_long_line() {
  std::cerr << std::string(1'000'000, 'x') << " the end of a long line";
  std::cerr.flush();
  ::_exit(7);
}

void fail_like_all() {
  say("bad input");
  ::_exit(8);
}

struct Base {
  Base() { call(); }
  virtual ~Base() = default;
  void call() { step(); }
  virtual void step() = 0;
};
struct Derived : Base {
  void step() override {}
};

const std::map<std::string, std::function<void()>>& kinds() {
  static const std::map<std::string, std::function<void()>> kKinds{
      {"throw", [] { throw std::runtime_error("no such file: weights.bin"); }},
      {"throw-int", [] { throw 42; }},
      {"throw-lines", [] { throw std::runtime_error("shapes differ\nleft (2, 3)\nright (4, 5)"); }},
      {"peer-lost",
       [] {
         throw std::runtime_error("[/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:4242");
       }},
      {"watchdog",
       [] {
         say("[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)");
         std::abort();
       }},
      {"cuda-memory", [] { throw std::runtime_error("CUDA out of memory. Tried to allocate 2.00 GiB"); }},
      {"nccl", [] { throw std::runtime_error("NCCL error in: ProcessGroupNCCL.cpp:1, ncclSystemError: socket"); }},
      {"assert", [] { check_batch(0); }},
      {"abort", [] { std::abort(); }},
      {"terminate", [] { std::terminate(); }},
      {"leave-thread", leave_a_thread},
      {"pure-virtual", [] { const Derived derived; }},
      {"null", read_through_null},
      {"stack-overflow", [] { std::cout << sum_of_frames(0); }},
      {"stack-smash", [] { smash_the_stack(64); }},
      {"double-free", free_twice},
      {"beyond-end", touch_beyond_the_end},
      {"memory-limit", take_all_memory},
      {"file-limit", use_all_descriptors},
      {"file-size", outgrow_a_file},
      {"child-killed", [] { pass_on_a_childs_end(SIGKILL); }},
      {"child-crashed", [] { pass_on_a_childs_end(SIGSEGV); }},
      {"generated-code", wait_in_generated_code},
      {"leave-child", leave_a_child_behind},
      {"long-line", print_a_long_line},
      {"all", fail_like_all},
      {"exit-0-silent", [] { ::_exit(0); }},
      {"close-output",
       [] {
         ::close(1);
         ::close(2);
         ::_exit(9);
       }},
      {"escape-sequences",
       [] {
         say("\x1b[2J\x1b[31mred\x1b[0m \x07 bell");
         ::_exit(10);
       }},
      {"not-utf8",
       [] {
         say("bytes \xff\xfe that are no text");
         ::_exit(11);
       }},
      {"progress-bar",
       [] {
         std::cerr << "epoch 1: 10%\repoch 1: 20%\repoch 1: 30%";
         std::cerr.flush();
         ::_exit(12);
       }},
  };
  return kKinds;
}

void end_by(const std::string& kind) {
  if (kind.rfind("exit-", 0) == 0 && kinds().count(kind) == 0) ::_exit(std::stoi(kind.substr(5)));
  if (kind.rfind("signal-", 0) == 0) {
    const int number = std::stoi(kind.substr(7));
    std::signal(number, SIG_DFL);
    ::raise(number);
    return;
  }
  kinds().at(kind)();
}

}  // namespace

int main(int argc, char** argv) {
  const char* const rank = std::getenv("RANK");
  const std::string chosen = argc > 2 ? argv[2] : "1";
  if (argc > 1 && rank != nullptr && (chosen == "all" || chosen == rank)) end_by(argv[1]);
  ::pause();
  return 0;
}
