// A worker of hangs.py: bench_runtime_hang KIND CULPRIT STEP. All ranks sum a tensor again and again; before the step
// the culprit says the time and does what KIND says. 'healthy' hangs nowhere: CULPRIT is the seed of what ranks do.
#include <ATen/ops/ones.h>
#include <fcntl.h>
#include <lrun/session.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#define VISIBLE [[gnu::noinline, gnu::visibility("default")]]

namespace {

using std::chrono::seconds;

void say(const std::string& text) { std::cout << text + "\n" << std::flush; }

void sum(lrun::Session& session, std::int64_t count = 1000) {
  static_cast<void>(session.all_reduce(at::ones({count}), lrun::ReduceOp::kSum));
}

}  // namespace

VISIBLE void load_batch() {
  int ends[2] = {};
  char byte = 0;
  static_cast<void>(::pipe(ends) == 0 && ::read(ends[0], &byte, 1) == 1);
}

VISIBLE void fetch_batch() {
  int ends[2] = {};
  char byte = 0;
  static_cast<void>(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && ::recv(ends[0], &byte, 1, 0) == 1);
}

VISIBLE void compute() {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  ::pthread_mutex_lock(&mutex);
  ::pthread_mutex_lock(&mutex);
  ::pthread_mutex_unlock(&mutex);  // so that the compiler does not jump out of here
}

VISIBLE void take_from_queue() {
  static std::mutex mutex;
  static std::condition_variable filled;
  static bool any = false;
  std::unique_lock lock(mutex);
  filled.wait(lock, [] { return any; });
}

VISIBLE void save() {
  while (::write(::open("/dev/full", O_WRONLY), "x", 1) < 0) std::this_thread::sleep_for(seconds(2));
}

namespace {

/// What the culprit does in the place of its sum.
const std::map<std::string, std::function<void(lrun::Session& session)>>& kinds() {
  using Session = lrun::Session&;
  static const std::map<std::string, std::function<void(Session)>> kKinds{
      {"skipped collective", [](Session) {}},
      {"other shape", [](Session session) { sum(session, 1'000'000); }},
      {"other order", [](Session session) { session.barrier(); }},
      {"loader", [](Session) { load_batch(); }},
      {"socket", [](Session) { fetch_batch(); }},
      {"mutex", [](Session) { compute(); }},
      {"queue", [](Session) { take_from_queue(); }},
      {"exited rank", [](Session) { ::_exit(0); }},
      {"full disk", [](Session) { save(); }},
      {"SIGSTOP",
       [](Session session) {
         ::raise(SIGSTOP);
         sum(session);
       }},
  };
  return kKinds;
}

void evaluate(std::chrono::duration<double> time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) static_cast<void>(at::ones({300, 300}).mm(at::ones({300, 300})));
}

void write_checkpoint(std::chrono::duration<double> time) {
  const auto end = std::chrono::steady_clock::now() + time;
  const int fd = ::open(".", O_TMPFILE | O_WRONLY, 0600);
  const std::vector<char> bytes(1 << 20);
  while (std::chrono::steady_clock::now() < end) {
    static_cast<void>(::pwrite(fd, bytes.data(), bytes.size(), 0));
    ::fsync(fd);
  }
  ::close(fd);
}

void run_a_tool(std::chrono::duration<double> time) {
  static_cast<void>(std::system(("sleep " + std::to_string(std::min(time.count(), 4.0))).c_str()));
}

void look_for_a_file(std::chrono::duration<double> time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    static_cast<void>(::access("/nowhere", F_OK));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

/// Rank 0 does its work while the others wait for it.
void be_healthy(unsigned seed) {
  std::mt19937 chance(seed);
  const auto between = [&](double least, double most) {
    return std::chrono::duration<double>(std::uniform_real_distribution<>(least, most)(chance));
  };
  const unsigned turn = chance() % 4;
  const auto late = between(0, 12);
  const auto rank = std::stoul(std::getenv("RANK"));
  if (rank == chance() % std::stoul(std::getenv("WORLD_SIZE"))) std::this_thread::sleep_for(late);
  lrun::Session session(lrun::SessionOptions{.banner = false});
  const std::vector<std::function<void(std::chrono::duration<double>)>> works{evaluate, write_checkpoint, run_a_tool,
                                                                              look_for_a_file};
  for (unsigned number = 0; number < 5; ++number) {
    sum(session);
    if (session.rank() == 0) works[(number + turn) % works.size()](between(2, 12));
    session.barrier();
  }
}

void hang(const std::string& kind, int culprit, int step) {
  lrun::Session session(lrun::SessionOptions{.banner = false});
  for (int number = 0; number < step + 3; ++number) {
    if (number == step && session.rank() == culprit) {
      const auto now = std::chrono::system_clock::now().time_since_epoch();
      say("hangs " + std::to_string(std::chrono::duration<double>(now).count()));
      kinds().at(kind)(session);
    } else {
      sum(session);
    }
    say("step " + std::to_string(number));
  }
  session.barrier();
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count != 4) throw std::invalid_argument("usage: bench_runtime_hang KIND CULPRIT STEP");
    const std::string kind = arguments[1];
    const int number = std::stoi(arguments[2]);
    if (kind == "healthy") {
      be_healthy(static_cast<unsigned>(number));
    } else {
      hang(kind, number, std::stoi(arguments[3]));
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}
