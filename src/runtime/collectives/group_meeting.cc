#include "runtime/collectives/group_meeting.h"

#include <lrun/error.h>

#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <random>

#include "runtime/collectives/backoff.h"
#include "runtime/collectives/failure.h"

namespace lrun {
namespace {

std::uint64_t random_number() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

/// How many groups of each name this process has made.
class MadeGroups {
 public:
  void add(const GroupOptions& options) {
    const std::lock_guard lock(mutex_);
    ++made_[key(options)];
  }
  int count(const GroupOptions& options) {
    const std::lock_guard lock(mutex_);
    return made_[key(options)];
  }

 private:
  // The rank belongs to the name here: ranks that are threads of one process count each for itself.
  static std::string key(const GroupOptions& options) {
    return options.name + '/' + std::to_string(options.store.port) + '/' + std::to_string(options.rank);
  }

  std::mutex mutex_;
  std::map<std::string, int> made_;
};

MadeGroups& made_groups() {
  static MadeGroups groups;
  return groups;
}

/// 'lrun/<name>/<n>', where n counts the groups of that name in this process.
std::string prefix_of(const GroupOptions& options) {
  return "lrun/" + options.name + "/" + std::to_string(made_groups().count(options));
}

}  // namespace

void GroupMeeting::note_made(const GroupOptions& options) { made_groups().add(options); }

GroupMeeting::GroupMeeting(const GroupOptions& options)
    : options_(options),
      deadline_(std::chrono::steady_clock::now() + options.timeout),
      prefix_(prefix_of(options)),
      store_(options.store, deadline_),
      number_(random_number()) {
  if (options_.rank == 0) {
    gather();
  } else {
    join();
  }
}

std::string GroupMeeting::key(std::uint64_t number, const std::string& what) const {
  return prefix_ + "/" + std::to_string(number) + "/" + what;
}

void GroupMeeting::join() {
  store_.set(prefix_ + "/rank/" + std::to_string(options_.rank), std::to_string(number_));
  const auto call = store_.get(key(number_, "call"), deadline_);
  if (!call) time_out({0});
  identity_ = std::stoull(*call);
  store_.set(key(identity_, "here/" + std::to_string(number_)), "1");
}

void GroupMeeting::gather() {
  identity_ = number_;
  members_.assign(static_cast<std::size_t>(options_.world_size), 0);
  members_[0] = number_;
  std::vector<int> missing;
  for (int rank = 1; rank < options_.world_size; ++rank) missing.push_back(rank);
  // A rank that does not answer to its number is looked up again: a successor may have taken its place.
  for (Backoff backoff(deadline_); !missing.empty(); backoff.sleep()) {
    std::erase_if(missing, [this](int rank) { return has_answered(rank); });
    if (!missing.empty() && backoff.is_over()) time_out(missing);
  }
}

/// Calls the process that stands under the rank's name, once. \return  whether it has answered.
bool GroupMeeting::has_answered(int rank) {
  std::uint64_t& member = members_[static_cast<std::size_t>(rank)];
  const auto said = store_.try_get(prefix_ + "/rank/" + std::to_string(rank));
  if (!said) return false;
  if (const std::uint64_t number = std::stoull(*said); number != member) {
    member = number;
    store_.set(key(member, "call"), std::to_string(identity_));
  }
  return store_.try_get(key(identity_, "here/" + std::to_string(member))).has_value();
}

std::string GroupMeeting::exchange(const std::string& line,
                                   const std::function<std::string(const std::vector<std::string>&)>& decide) {
  const std::string round = std::to_string(round_++);
  if (options_.rank != 0) {
    store_.set(key(number_, "say/" + round), line);
    return hear(0, key(number_, "hear/" + round));
  }
  std::vector<std::string> lines{line};
  for (int rank = 1; rank < options_.world_size; ++rank) {
    lines.push_back(hear(rank, key(members_[static_cast<std::size_t>(rank)], "say/" + round)));
  }
  std::string answer = decide(lines);
  for (int rank = 1; rank < options_.world_size; ++rank) {
    store_.set(key(members_[static_cast<std::size_t>(rank)], "hear/" + round), answer);
  }
  return answer;
}

void GroupMeeting::watch(const PeerWatch& peers, const std::vector<pid_t>& pids) {
  peers_ = &peers;
  pids_ = pids;
}

std::string GroupMeeting::hear(int rank, const std::string& key) {
  bool ended = false;
  const auto has_ended = [&] { return ended = peers_ != nullptr && !peers_->ended(std::array{rank}).empty(); };
  if (auto said = store_.get(key, deadline_, has_ended)) return *said;
  if (!ended) time_out({rank});
  throw PeerLost("rank " + std::to_string(rank) + " (pid " + std::to_string(pids_[static_cast<std::size_t>(rank)]) +
                 ") ended while the group was made");
}

void GroupMeeting::time_out(const std::vector<int>& missing) const {
  throw CollectiveTimeout("the group of " + std::to_string(options_.world_size) + " ranks did not meet within " +
                          std::to_string(options_.timeout.count()) + " ms: " + name_ranks(missing) + " did not come");
}

}  // namespace lrun
