#include "support/elastic_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/fd.h"

namespace lrun::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLog = "log";
constexpr std::string_view kCheckpoint = "checkpoint.";

/// The steps of a round.
struct Round {
  int world_size = 0;
  std::set<int> ranks;
  std::int64_t first_done = 0;    ///< of a step; 0: there was none
  std::int64_t last_entered = 0;  ///< the same
};

fs::path place_of(const fs::path& folder, std::int64_t position) {
  return folder / fmt::format("{}{}", kCheckpoint, position);
}

std::string round_text(const std::string& name, const Round& round) {
  return fmt::format("round {} (world of {}, steps from {} to {} ns)", name, round.world_size, round.first_done,
                     round.last_entered);
}

void check_that_rounds_follow_each_other(const std::map<std::string, Round>& rounds,
                                         std::vector<std::string>& problems) {
  std::vector<std::pair<std::string, Round>> in_order;
  for (const auto& entry : rounds) {
    if (entry.second.first_done != 0) in_order.push_back(entry);
  }
  std::sort(in_order.begin(), in_order.end(),
            [](const auto& a, const auto& b) { return a.second.first_done < b.second.first_done; });
  for (std::size_t i = 1; i < in_order.size(); ++i) {
    const auto& [before_name, before] = in_order[i - 1];
    const auto& [name, round] = in_order[i];
    if (before.last_entered < round.first_done) continue;
    problems.push_back("two jobs at once: " + round_text(before_name, before) + " and " + round_text(name, round));
  }
}

}  // namespace

ElasticCheckpoint exactly_once(std::int64_t position) {
  return {position, position * (position + 1) / 2, position * (position + 1) * (2 * position + 1) / 6};
}

std::string to_line(const ElasticEvent& event) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {}\n", event.kind, event.entered, event.done, event.round,
                     event.world_size, event.rank, event.nodes, event.restarts, event.position, event.node);
}

void append(const fs::path& folder, const ElasticEvent& event) {
  const Fd file(::open((folder / kLog).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const std::string line = to_line(event);
  (void)!::write(file.get(), line.data(), line.size());  // one write: lines of several processes stay whole
}

std::vector<ElasticEvent> read_log(const fs::path& folder) {
  std::vector<ElasticEvent> events;
  std::ifstream lines(folder / kLog);
  for (std::string line; std::getline(lines, line);) {
    ElasticEvent event;
    std::istringstream words(line);
    words >> event.kind >> event.entered >> event.done >> event.round >> event.world_size >> event.rank >>
        event.nodes >> event.restarts >> event.position >> event.node;
    if (words) events.push_back(event);
  }
  return events;
}

void publish(const fs::path& folder, const ElasticCheckpoint& checkpoint) {
  const fs::path fresh = folder / fmt::format("fresh.{}.{}", ::getpid(), checkpoint.position);
  std::ofstream(fresh) << checkpoint.position << ' ' << checkpoint.sum << ' ' << checkpoint.squares << '\n';
  (void)!::link(fresh.c_str(), place_of(folder, checkpoint.position).c_str());
  ::unlink(fresh.c_str());
}

void remove(const fs::path& folder, const ElasticCheckpoint& checkpoint) {
  ::unlink(place_of(folder, checkpoint.position).c_str());
}

ElasticCheckpoint newest_checkpoint(const fs::path& folder) {
  std::int64_t newest = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(kCheckpoint))
      newest = std::max<std::int64_t>(newest, std::stoll(name.substr(kCheckpoint.size())));
  }
  ElasticCheckpoint checkpoint;
  std::ifstream(place_of(folder, newest)) >> checkpoint.position >> checkpoint.sum >> checkpoint.squares;
  return checkpoint;
}

std::vector<std::string> problems_of_job(const fs::path& folder) {
  std::vector<std::string> problems;
  std::map<std::string, Round> rounds;
  for (const ElasticEvent& event : read_log(folder)) {
    Round& round = rounds[event.round];
    if (round.world_size == 0) round.world_size = event.world_size;
    if (round.world_size != event.world_size) problems.push_back("a round of two sizes: " + to_line(event));
    if (event.kind == "start" && !round.ranks.insert(event.rank).second) {
      problems.push_back("a rank is there twice: " + to_line(event));
    }
    if (event.kind != "step") continue;
    if (round.first_done == 0 || event.done < round.first_done) round.first_done = event.done;
    round.last_entered = std::max(round.last_entered, event.entered);
  }
  check_that_rounds_follow_each_other(rounds, problems);
  const ElasticCheckpoint checkpoint = newest_checkpoint(folder);
  if (checkpoint != exactly_once(checkpoint.position)) {
    problems.push_back(fmt::format("samples were not taken exactly once: {} of them sum up to {}, squares to {}",
                                   checkpoint.position, checkpoint.sum, checkpoint.squares));
  }
  return problems;
}

}  // namespace lrun::test
