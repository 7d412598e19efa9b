#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/collectives/common/call.h"
#include "runtime/collectives/common/failure.h"

namespace lrun::detail {

/// A call with the form of a tensor, and nothing else.
inline Call call_with(Call::Operation operation, const at::Tensor& tensor) {
  Call call;
  call.operation = operation;
  call.dtype = static_cast<std::int32_t>(tensor.scalar_type());
  set_shape(call, tensor.sizes());
  return call;
}

/// Calls of one rank, one after the other. Value.
struct CallHistory {
  std::uint64_t first = 1;  ///< The sequence number of calls.front().
  std::vector<Call> calls;

  [[nodiscard]] std::uint64_t last() const { return first + calls.size() - 1; }  ///< 0: none yet.
  [[nodiscard]] std::string text() const;
  /// Nothing when `text` is none of these.
  static std::optional<CallHistory> parse(const std::string& text);

  bool operator==(const CallHistory&) const = default;
};

/// The first call on which two ranks differ, of those that both histories have; as a sentence that names both.
std::optional<std::string> find_difference(const CallHistory& first, int first_rank, const CallHistory& other,
                                           int other_rank, const std::vector<int>& ranks_above = {});

/// Our knowledge of a rank's calls.
struct HeardOf {
  bool is_known = true;                ///< False: the request failed, so a missing history means nothing.
  std::optional<CallHistory> history;  ///< Empty: the rank has published none, because it waits for none.
};

/// Why an operation has not ended in time, from the reports of all ranks: names the ranks that did not call it, and
/// those for which that is unknown.
std::string explain_silence(Call::Operation operation, std::uint64_t sequence, std::chrono::milliseconds timeout,
                            const std::vector<HeardOf>& ranks, const std::vector<int>& ranks_above = {});

/// How long nothing moves before the ranks compare what they called.
constexpr std::chrono::milliseconds patience_before_comparing(std::chrono::milliseconds timeout) {
  return std::min<std::chrono::milliseconds>(std::chrono::seconds(2), timeout / 4);
}

/// For a backend that does not compare the ranks' calls (NCCL): keeps this rank's last ones, and compares them with the
/// others' when nothing has moved for a while. If any two ranks differ, then so do two neighbours; so each rank reads
/// the calls of one other rank, however many there are.
///
/// Threads  any.
class CallLog {
 public:
  static constexpr std::size_t kKept = 64;

  /// The last report of a rank.
  struct Answer {
    bool is_known = true;             ///< False: the request failed.
    std::optional<std::string> text;  ///< Empty: it has reported nothing.
  };

  /// \param tell, hear  publish this rank's calls, and read the last report of a rank; called one at a time.
  /// \param ranks_above  see name_of_rank().
  CallLog(int rank, int world_size, std::function<void(const std::string&)> tell, std::function<Answer(int rank)> hear,
          std::vector<int> ranks_above = {});

  void add(const Call& call);

  /// Nothing moves: publishes this rank's calls, unless that was done. \return  the difference between the ranks'
  /// calls, if one is found.
  std::optional<Failure> compare();

  /// Why the operation has not ended in time.
  Failure explain(std::uint64_t sequence, std::chrono::milliseconds timeout);

 private:
  [[nodiscard]] CallHistory history() const;
  [[nodiscard]] HeardOf hear_from(int rank) const;

  const int rank_;
  const int world_size_;
  const std::function<void(const std::string&)> tell_;
  const std::function<Answer(int rank)> hear_;
  const std::vector<int> ranks_above_;
  mutable std::mutex mutex_;
  std::deque<Call> calls_;  // the last ones
  std::uint64_t count_ = 0;
  std::uint64_t told_ = 0;  // the number of calls that were published
};

}  // namespace lrun::detail
