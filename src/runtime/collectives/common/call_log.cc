// In: this rank's calls, and those that a neighbour published. Out: the first difference, or the reason for a timeout.
// Called by the nccl group, whose library does not compare calls.
#include "runtime/collectives/common/call_log.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/split.h"
#include "runtime/collectives/common/bucket_tag.h"

namespace lrun::detail {
namespace {

std::string text_of(const Call& call) {
  std::ostringstream text;
  text << static_cast<std::int32_t>(call.operation) << ' ' << call.dtype << ' ' << call.op << ' ' << call.root << ' '
       << call.count << ' ' << call.dimensions << ' ' << call.tag;
  for (const std::int64_t size : call.sizes) text << ' ' << size;
  return text.str();
}

std::optional<Call> parse_call(const std::string& line) {
  std::istringstream text(line);
  Call call;
  std::int32_t operation = 0;
  text >> operation >> call.dtype >> call.op >> call.root >> call.count >> call.dimensions >> call.tag;
  for (std::int64_t& size : call.sizes) text >> size;
  if (text.fail()) return std::nullopt;
  call.operation = static_cast<Call::Operation>(operation);
  return call;
}

}  // namespace

std::string CallHistory::text() const {
  std::string text = std::to_string(first);
  for (const Call& call : calls) text += '\n' + text_of(call);
  return text;
}

std::optional<CallHistory> CallHistory::parse(const std::string& text) {
  const std::vector<std::string> lines = split_lines(text);
  if (lines.empty()) return std::nullopt;
  CallHistory history;
  std::istringstream first(lines.front());
  if (!(first >> history.first)) return std::nullopt;
  for (std::size_t index = 1; index < lines.size(); ++index) {
    const auto call = parse_call(lines[index]);
    if (!call) return std::nullopt;
    history.calls.push_back(*call);
  }
  return history;
}

std::optional<std::string> find_difference(const CallHistory& first, int first_rank, const CallHistory& other,
                                           int other_rank, const std::vector<int>& ranks_above) {
  const std::uint64_t last = std::min(first.last(), other.last());
  for (std::uint64_t sequence = std::max(first.first, other.first); sequence <= last; ++sequence) {
    const Call& one = first.calls[sequence - first.first];
    const Call& two = other.calls[sequence - other.first];
    if (one == two) continue;
    return "rank " + std::to_string(name_of_rank(first_rank, ranks_above)) + " called " +
           describe_call(one, sequence, ranks_above) + ", but rank " +
           std::to_string(name_of_rank(other_rank, ranks_above)) + " called " +
           describe_call(two, sequence, ranks_above) + explain_tags(one.tag, two.tag);
  }
  return std::nullopt;
}

std::string explain_silence(Call::Operation operation, std::uint64_t sequence, std::chrono::milliseconds timeout,
                            const std::vector<HeardOf>& ranks, const std::vector<int>& ranks_above) {
  std::vector<int> missing;
  std::vector<int> unknown;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto& [is_known, history] = ranks[rank];
    const int name = name_of_rank(static_cast<int>(rank), ranks_above);
    if (!is_known) {
      unknown.push_back(name);
    } else if (!history || history->last() < sequence) {
      missing.push_back(name);
    }
  }
  const std::string not_known =
      unknown.empty() ? "" : "; what " + name_ranks(unknown) + " called is not known: the store does not tell";
  if (!missing.empty()) return describe_timeout(operation, sequence, timeout, missing) + not_known;
  const std::string late =
      name_call(operation, sequence) + " did not finish within " + std::to_string(timeout.count()) + " ms";
  if (!unknown.empty()) return late + not_known;
  return late +
         ", although all ranks called it: a GPU is busy with something else, or the connection between them does not "
         "work (NCCL_DEBUG=INFO tells more)";
}

CallLog::CallLog(int rank, int world_size, std::function<void(const std::string&)> tell,
                 std::function<Answer(int rank)> hear, std::vector<int> ranks_above)
    : rank_(rank),
      world_size_(world_size),
      tell_(std::move(tell)),
      hear_(std::move(hear)),
      ranks_above_(std::move(ranks_above)) {}

void CallLog::add(const Call& call) {
  const std::lock_guard lock(mutex_);
  ++count_;
  calls_.push_back(call);
  if (calls_.size() > kKept) calls_.pop_front();
}

CallHistory CallLog::history() const {
  const std::lock_guard lock(mutex_);
  return {count_ - calls_.size() + 1, {calls_.begin(), calls_.end()}};
}

HeardOf CallLog::hear_from(int rank) const {
  const auto [is_known, text] = hear_(rank);
  if (!is_known || !text) return {is_known, std::nullopt};
  auto history = CallHistory::parse(*text);
  return {history.has_value(), std::move(history)};
}

std::optional<Failure> CallLog::compare() {
  const CallHistory own = history();
  if (std::exchange(told_, own.last()) != own.last()) tell_(own.text());
  const int neighbour = (rank_ + world_size_ - 1) % world_size_;
  const auto other = hear_from(neighbour).history;
  if (neighbour == rank_ || !other) return std::nullopt;
  const bool first = rank_ < neighbour;  // both of two ranks report the same text
  const auto difference = first ? find_difference(own, rank_, *other, neighbour, ranks_above_)
                                : find_difference(*other, neighbour, own, rank_, ranks_above_);
  if (!difference) return std::nullopt;
  return Failure{Failure::Kind::kMismatch, *difference};
}

Failure CallLog::explain(std::uint64_t sequence, std::chrono::milliseconds timeout) {
  const CallHistory own = history();
  std::vector<HeardOf> ranks;
  for (int rank = 0; rank < world_size_; ++rank) {
    ranks.push_back(rank == rank_ ? HeardOf{true, own} : hear_from(rank));
  }
  const bool kept = sequence >= own.first && sequence <= own.last();
  const auto operation = kept ? own.calls[sequence - own.first].operation : Call::Operation::kAllReduce;
  return {Failure::Kind::kTimeout, explain_silence(operation, sequence, timeout, ranks, ranks_above_)};
}

}  // namespace lrun::detail
