// In: the calls of CUDA and NCCL, and the faults that a test wants. Out: their count, random delays, errors, and what
// was misused. Called by the stand-in's libraries and by tests.
#include "runtime/stand_in/script.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "runtime/stand_in/machine.h"

namespace lrun::test::stand_in {
namespace {

constexpr std::size_t kMostReports = 20;

struct Script {
  std::mutex mutex;
  std::mt19937_64 random;
  std::chrono::microseconds longest_delay{0};
  std::map<CallSite, std::uint64_t> calls;
  std::optional<Fault> fault;
  bool fault_happened = false;
  std::vector<std::string> misuse;
  std::array<int, kDevices> broken{};
  std::atomic<std::uint64_t> runs{0};
  std::atomic<int> events{0};
  std::atomic<int> communicators{0};
  std::atomic<int> open_groups{0};
};

Script& script() {
  static Script& instance = *new Script;  // threads of the libraries outlive main()
  return instance;
}

}  // namespace

void begin_run(std::uint64_t seed, std::chrono::microseconds longest_delay) {
  Script& all = script();
  {
    const std::lock_guard lock(all.mutex);
    all.misuse.clear();
  }
  forget_accesses();
  const std::lock_guard lock(all.mutex);
  all.random.seed(seed);
  all.longest_delay = longest_delay;
  all.calls.clear();
  all.fault.reset();
  all.fault_happened = false;
  all.broken.fill(0);
  ++all.runs;
  all.events = all.communicators = all.open_groups = 0;  // what an earlier run has lost
}

void inject(const Fault& fault) {
  Script& all = script();
  const std::lock_guard lock(all.mutex);
  all.fault = fault;
}

bool was_injected() {
  Script& all = script();
  const std::lock_guard lock(all.mutex);
  return all.fault_happened;
}

void break_device(int device, int cuda_error) {
  Script& all = script();
  {
    const std::lock_guard lock(all.mutex);
    all.broken[static_cast<std::size_t>(device)] = cuda_error;
  }
  look_again();
}

int error_of_device(int device) {
  Script& all = script();
  const std::lock_guard lock(all.mutex);
  return all.broken[static_cast<std::size_t>(device)];
}

std::map<CallSite, std::uint64_t> calls() {
  Script& all = script();
  const std::lock_guard lock(all.mutex);
  return all.calls;
}

std::uint64_t number_of_run() { return script().runs; }

Live live() { return {script().events, script().communicators, script().open_groups}; }

std::vector<std::string> take_misuse() {
  Script& all = script();
  const std::lock_guard lock(all.mutex);
  return std::exchange(all.misuse, {});
}

void report_misuse(const std::string& what) {
  Script& all = script();
  const std::lock_guard lock(all.mutex);
  if (all.misuse.size() < kMostReports) all.misuse.push_back(what);
}

std::string library_of(const void* caller) {
  Dl_info info;
  if (::dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string path = info.dli_fname;
  return path.substr(path.rfind('/') + 1);
}

std::chrono::microseconds random_delay() {
  Script& all = script();
  const std::lock_guard lock(all.mutex);
  const auto longest = static_cast<std::uint64_t>(all.longest_delay.count());
  return std::chrono::microseconds(longest == 0 ? 0 : all.random() % (longest + 1));
}

bool toss() {
  Script& all = script();
  const std::lock_guard lock(all.mutex);
  return all.random() % 2 == 0;
}

int enter_call(const char* function, const void* caller) {
  const CallSite site{function, library_of(caller), current_device()};
  const std::chrono::microseconds pause = random_delay() / 16;  // so that threads meet in every order
  if (pause.count() > 0) std::this_thread::sleep_for(pause);
  Script& all = script();
  const std::lock_guard lock(all.mutex);
  const std::uint64_t call = ++all.calls[site];
  if (!all.fault || all.fault->site != site || all.fault->call != call) return 0;
  all.fault_happened = true;
  return all.fault->error;
}

void count_communicators(int change) { script().communicators += change; }
void count_groups(int change) { script().open_groups += change; }
void count_events(int change) { script().events += change; }

}  // namespace lrun::test::stand_in
