// A worker of an elastic job. elastic_worker FOLDER NODE: trains until FOLDER/end exists and logs its steps in
// FOLDER/log; keeps FOLDER/alive.NODE locked as long as it lives. elastic_worker --check FOLDER: prints what is wrong.
//
// A step needs all ranks: each adds its sample to sums in the workers' store, all meet, and rank 0 publishes how far
// they have come. A worker that cannot reach the others waits to be ended, as one in a collective would.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "support/elastic_log.h"
#include "support/store_client.h"

namespace lrun::test {
namespace {

namespace fs = std::filesystem;

constexpr auto kPatience = std::chrono::seconds(300);  // the launcher is the one to end us
constexpr auto kStep = std::chrono::milliseconds(10);

SteadyTime deadline() { return std::chrono::steady_clock::now() + kPatience; }

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) throw std::runtime_error(fmt::format("{} is not set", variable));
  return std::stoi(text);
}

class Training {
 public:
  explicit Training(const fs::path& folder, const std::string& node)
      : folder_(folder),
        store_(std::getenv("MASTER_ADDR"), static_cast<std::uint16_t>(number_in("MASTER_PORT")), deadline()) {
    event_.node = node;
    event_.rank = number_in("RANK");
    event_.world_size = number_in("WORLD_SIZE");
    event_.nodes = number_in("GROUP_WORLD_SIZE");
    event_.restarts = number_in("TORCHELASTIC_RESTART_COUNT");
  }

  void run() {
    begin();
    bool more = true;
    for (int step = 0; more; ++step) more = make_step(std::to_string(step));
    event_.kind = "end";
    append(folder_, event_);
  }

 private:
  /// All go on from the same place, which rank 0 looks up.
  void begin() {
    event_.kind = "start";
    event_.entered = now_ns();
    if (event_.rank == 0) {
      at_ = newest_checkpoint(folder_);
      const std::string round = fmt::format("{:08x}", std::random_device{}());
      store_.set("begin", fmt::format("{} {} {} {}", round, at_.position, at_.sum, at_.squares), deadline());
    }
    std::istringstream words(store_.get("begin", deadline()).value_or(""));
    words >> event_.round >> at_.position >> at_.sum >> at_.squares;
    if (!words) throw std::runtime_error("rank 0 did not come");
    meet("begun");
    event_.done = now_ns();
    event_.position = at_.position;
    append(folder_, event_);
  }

  void meet(const std::string& what) {
    if (!store_.barrier(what, event_.world_size, deadline())) throw std::runtime_error("not all came to " + what);
  }

  /// \return whether there is another one.
  bool make_step(const std::string& step) {
    std::this_thread::sleep_for(kStep);
    event_.kind = "step";
    event_.entered = now_ns();
    const std::int64_t sample = at_.position + event_.rank + 1;
    store_.add("sum/" + step, sample, deadline());
    store_.add("squares/" + step, sample * sample, deadline());
    if (event_.rank == 0 && fs::exists(folder_ / "end")) store_.add("end/" + step, 1, deadline());
    meet("step/" + step);
    at_ = {at_.position + event_.world_size, at_.sum + store_.add("sum/" + step, 0, deadline()),
           at_.squares + store_.add("squares/" + step, 0, deadline())};
    event_.done = now_ns();
    event_.position = at_.position;
    if (event_.rank == 0) {
      append(folder_, event_);
      publish(folder_, at_);
      remove(folder_, before_last_);
      before_last_ = std::exchange(last_, at_);
    }
    return store_.add("end/" + step, 0, deadline()) == 0;
  }

  fs::path folder_;
  StoreClient store_;
  ElasticEvent event_;
  ElasticCheckpoint at_;
  ElasticCheckpoint last_;  ///< published by this rank
  ElasticCheckpoint before_last_;
};

int work(const fs::path& folder, const std::string& node) {
  const Fd alive(::open((folder / ("alive." + node)).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ::flock(alive.get(), LOCK_SH);
  try {
    Training(folder, node).run();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "waits to be ended: " << error.what() << std::endl;
    while (true) ::pause();
  }
}

int check(const fs::path& folder) {
  const std::vector<std::string> problems = problems_of_job(folder);
  for (const std::string& problem : problems) std::cout << problem << '\n';
  return problems.empty() ? 0 : 1;
}

}  // namespace
}  // namespace lrun::test

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  if (std::string_view(argv[1]) == "--check") return lrun::test::check(argv[2]);
  return lrun::test::work(argv[1], argv[2]);
}
