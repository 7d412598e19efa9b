// In: one line of every rank in each round. Out: rank 0's answer, through the workers' store. Called by each backend of
// processes while it makes a group.
#include "runtime/collectives/bootstrap/group_rendezvous.h"

#include <lrun/error.h>

#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <random>
#include <sstream>

#include "runtime/collectives/bootstrap/backoff.h"

namespace lrun::detail {
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
  // The rank is part of the key here: ranks that are threads of one process count their groups separately.
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

/// Rank 0's answer in a round: a line, or the failure that ends the rendezvous.
std::string encode_answer(const std::string& line) { return "+" + line; }
std::string encode_answer(const Failure& failure) {
  return "-" + std::to_string(static_cast<std::uint32_t>(failure.kind)) + ' ' + failure.text;
}

/// The failure, if the answer is one.
std::optional<Failure> failure_in(const std::string& answer) {
  if (answer.starts_with('+')) return std::nullopt;
  const std::size_t space = answer.find(' ');
  if (!answer.starts_with('-') || space == std::string::npos) {
    throw Error("rank 0 of the group answers '" + answer + "' in the store, which is not of this version of liblrun");
  }
  return Failure{static_cast<Failure::Kind>(std::stoul(answer.substr(1, space - 1))), answer.substr(space + 1)};
}

/// 'lrun/<name>/<n>', where n counts the groups of that name in this process.
std::string prefix_of(const GroupOptions& options) {
  return "lrun/" + options.name + "/" + std::to_string(made_groups().count(options));
}

}  // namespace

std::string join_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

void GroupRendezvous::note_made(const GroupOptions& options) { made_groups().add(options); }

GroupRendezvous::GroupRendezvous(const GroupOptions& options)
    : options_(options),
      deadline_(std::chrono::steady_clock::now() + options.timeout),
      prefix_(prefix_of(options)),
      store_(options.store, deadline_),
      self_{random_number(), ProcessIdentity::of_this_process()},
      members_(static_cast<std::size_t>(options.world_size)) {
  if (options_.rank == 0) {
    gather();
  } else {
    join();
  }
}

std::string GroupRendezvous::Member::text() const { return std::to_string(number) + ' ' + process.text(); }

GroupRendezvous::Member GroupRendezvous::Member::parse(int rank, const std::string& text) {
  std::istringstream words(text);
  Member member;
  std::string rest;
  if (words >> member.number && std::getline(words, rest)) {
    if (const auto process = ProcessIdentity::parse(rest)) {
      member.process = *process;
      return member;
    }
  }
  throw Error("rank " + std::to_string(rank) + " of the group says '" + text +
              "' in the store, which is not of this version of liblrun");
}

std::string GroupRendezvous::key(std::uint64_t number, const std::string& what) const {
  return prefix_ + "/" + std::to_string(number) + "/" + what;
}

/// The key of rank 0's answer in this round.
std::string GroupRendezvous::answer_key(int rank) const {
  const bool mine = rank == options_.rank;
  const std::uint64_t number = mine ? self_.number : members_[static_cast<std::size_t>(rank)].number;
  return key(number, "hear/" + std::to_string(round_));
}

void GroupRendezvous::join() {
  store_.set(prefix_ + "/rank/" + std::to_string(options_.rank), self_.text(), deadline_);
  const auto call = store_.get(key(self_.number, "call"), deadline_);
  if (!call) time_out({0});
  members_[0] = Member::parse(0, *call);
  watch(0);
  store_.set(key(identity(), "here/" + std::to_string(self_.number)), "1", deadline_);
}

void GroupRendezvous::gather() {
  members_[0] = self_;
  std::vector<int> missing;
  for (int rank = 1; rank < options_.world_size; ++rank) missing.push_back(rank);
  // A rank that does not answer to its number is looked up again: a new process may have registered under its name.
  for (Backoff backoff(deadline_); !missing.empty(); backoff.sleep()) {
    std::erase_if(missing, [this](int rank) { return admit(rank); });
    require_all_alive();
    if (!missing.empty() && backoff.is_over()) time_out(missing);
  }
}

/// Calls the process that is registered under the rank's name, once. \return  whether it has answered.
bool GroupRendezvous::admit(int rank) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  const auto said = store_.try_get(prefix_ + "/rank/" + std::to_string(rank), deadline_);
  if (!said) return false;
  if (const Member found = Member::parse(rank, *said); found.number != member.number) {
    member = found;
    store_.set(key(member.number, "call"), self_.text(), deadline_);
  }
  if (!store_.try_get(key(identity(), "here/" + std::to_string(member.number)), deadline_)) return false;
  watch(rank);
  return true;
}

void GroupRendezvous::watch(int rank) {
  watched_.push_back(rank);
  watch_.add(rank, members_[static_cast<std::size_t>(rank)].process.pid_for(self_.process));
}

std::string GroupRendezvous::exchange(const std::string& line,
                                      const std::function<std::string(const std::vector<std::string>&)>& decide) {
  const std::string say = "say/" + std::to_string(round_);
  if (options_.rank != 0) {
    store_.set(key(self_.number, say), line, deadline_);
    std::string answer = hear_answer();
    ++round_;
    return answer;
  }
  std::vector<std::string> lines{line};
  for (int rank = 1; rank < options_.world_size; ++rank) {
    lines.push_back(hear(rank, key(members_[static_cast<std::size_t>(rank)].number, say)));
  }
  std::string answer = decide(lines);
  for (int rank = 1; rank < options_.world_size; ++rank) store_.set(answer_key(rank), encode_answer(answer), deadline_);
  ++round_;
  return answer;
}

std::string GroupRendezvous::hear_answer() {
  const std::string answer = hear(0, answer_key(options_.rank));
  if (const auto failure = failure_in(answer)) {
    store_.set(key(self_.number, "heard"), "1", deadline_);
    failure->raise();
  }
  return answer.substr(1);
}

std::string GroupRendezvous::hear(int rank, const std::string& key) {
  if (auto said = look_for(key)) return *said;
  require_all_alive();
  time_out(who_is_missing(rank));
}

/// Rank 0 has registered but does not answer in time: it waits for other ranks, those that are not in the store.
/// Without this check a rank whose deadline comes shortly before rank 0's would name the wrong one.
std::vector<int> GroupRendezvous::who_is_missing(int silent) {
  if (options_.rank == 0) return {silent};
  std::vector<int> missing;
  try {
    const SteadyTime soon = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    for (int rank = 1; rank < options_.world_size; ++rank) {
      if (!store_.try_get(prefix_ + "/rank/" + std::to_string(rank), soon)) missing.push_back(rank);
    }
  } catch (const Error&) {
    missing.clear();  // the store ended with it
  }
  return missing.empty() ? std::vector<int>{silent} : missing;
}

/// The value, once it is set; empty when a watched rank has ended, or at the deadline.
std::optional<std::string> GroupRendezvous::look_for(const std::string& key) {
  try {
    return store_.get(key, deadline_, [this] { return !watch_.ended(watched_).empty(); });
  } catch (const CollectiveTimeout&) {
    throw;
  } catch (const Error&) {
    // If a rank serves the store, the store ends with it.
    if (ended_soon().empty()) throw;
    return std::nullopt;
  }
}

/// The watched ranks that have ended. The kernel closes a process's connections a moment before it counts as ended.
std::vector<int> GroupRendezvous::ended_soon() const {
  std::vector<int> ended;
  for (Backoff backoff(std::chrono::steady_clock::now() + std::chrono::milliseconds(500));; backoff.sleep()) {
    ended = watch_.ended(watched_);
    if (!ended.empty() || backoff.is_over()) return ended;
  }
}

void GroupRendezvous::require_all_alive() {
  const std::vector<int> ended = watch_.ended(watched_);
  if (ended.empty()) return;
  const pid_t pid = members_[static_cast<std::size_t>(ended.front())].process.pid;
  fail({Failure::Kind::kPeerLost, "rank " + std::to_string(options_.name_of(ended.front())) + " (pid " +
                                      std::to_string(pid) + ") ended while the group was made"});
}

void GroupRendezvous::time_out(const std::vector<int>& missing) {
  const std::vector<int> names = names_of_ranks(missing, options_.ranks_above);
  fail({Failure::Kind::kTimeout, "the group of " + std::to_string(options_.world_size) + " ranks did not meet within " +
                                     std::to_string(options_.timeout.count()) + " ms: " + name_ranks(names) +
                                     " did not come"});
}

/// If rank 0 serves the store, the store ends with it now: leave the ranks that it has called a moment to read the
/// failure. One whose answer to the call was not seen yet is among them.
void GroupRendezvous::wait_until_heard() {
  std::vector<int> waiting;
  for (int rank = 1; rank < options_.world_size; ++rank) {
    if (members_[static_cast<std::size_t>(rank)].number != 0) waiting.push_back(rank);
  }
  for (Backoff backoff(std::chrono::steady_clock::now() + std::chrono::seconds(1));; backoff.sleep()) {
    std::erase_if(waiting, [this](int rank) {
      return store_.try_get(key(members_[static_cast<std::size_t>(rank)].number, "heard"), deadline_).has_value() ||
             !watch_.ended(std::array{rank}).empty();
    });
    if (waiting.empty() || backoff.is_over()) return;
  }
}

/// Rank 0 sends the failure to all ranks that wait, or will wait, for its answer.
void GroupRendezvous::fail(const Failure& failure) {
  try {
    for (int rank = 1; rank < options_.world_size && options_.rank == 0; ++rank) {
      if (members_[static_cast<std::size_t>(rank)].number == 0) continue;
      store_.set(answer_key(rank), encode_answer(failure), deadline_);
    }
    if (options_.rank == 0) wait_until_heard();
  } catch (const std::exception&) {
    // Without the store the other ranks notice the failure themselves.
  }
  failure.raise();
}

}  // namespace lrun::detail
