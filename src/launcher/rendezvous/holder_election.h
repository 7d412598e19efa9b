#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/duration.h"
#include "rendezvous/job_state.h"

namespace lrun::launcher {

/// The launcher that holds a meeting, as others find it.
struct HolderRecord {
  std::string token;    ///< of its JoinRecord
  std::string node;     ///< host name
  std::string address;  ///< numeric
  std::uint16_t port = 0;

  bool operator==(const HolderRecord&) const = default;
};

std::string to_json(const HolderRecord& record);
std::optional<HolderRecord> holder_record_from_json(std::string_view json);

/// Finds the launcher that holds the meeting of a job in a place that all its launchers can ask, or makes it this one.
/// One that cannot reach that place for the time of its lease stops to hold the meeting before another may, so that no
/// two hold it at a time. What the next holder has to know, or what the job came to, is kept there, too.
///
/// Nobody talks to that place but who holds the meeting or looks for it. Never blocks. One thread.
class HolderElection {
 public:
  /// An election costs such a place a second or two where it has to choose a leader of its own first.
  static constexpr Duration kShortestLease{3000};
  static constexpr Duration kShortestAttempt{500};  ///< to ask that place
  static constexpr int kAttemptsPerLease = 4;
  static constexpr int kRenewalsPerLease = 4;
  static constexpr Duration kFirstPause{50};  ///< between looks for a holder; doubled while it stays the same
  static constexpr Duration kLongestPause{500};
  static constexpr Duration kProbeLimit{1000};  ///< of a connection to a holder that may be gone

  struct Events {
    /// We are about to hold the meeting at `address`. \return its port. \throws std::system_error
    std::function<std::uint16_t(const std::string& address)> open;
    std::function<void()> close;  ///< another launcher was faster: open() was in vain
    /// The meeting is there. `state`: we hold it, and take it over from another; else empty.
    std::function<void(const HolderRecord& holder, bool is_self, const std::optional<JobState>& state)> found;
    /// We hold it no longer: it must end now, before another begins.
    std::function<void(const std::string& why)> deposed;
    /// The place cannot be used. `hint` may be empty.
    std::function<void(const std::string& why, const std::string& hint)> failed;
    /// Told once while we hold the meeting: what the next holder has to know is not kept. May be empty.
    std::function<void(const std::string& why)> not_kept = {};
    /// The job is over, and its name with it: what it came to, empty when it succeeded. Only told where an outcome
    /// stays; may be empty elsewhere.
    std::function<void(const std::string& outcome)> over = {};
  };

  HolderElection() = default;
  HolderElection(const HolderElection&) = delete;
  HolderElection& operator=(const HolderElection&) = delete;
  virtual ~HolderElection() = default;

  /// Begins to look; `found`, perhaps of the same holder as before, `over` or `failed` follows.
  virtual void look() = 0;
  /// The one that was found is out of reach. A host that lives and on which nobody listens there any more proves that
  /// it is gone: then nobody waits for its lease. Looks again, unless it does so already.
  virtual void look_again() = 0;

  /// From now on we look for another's meeting, and do not hold one: only to say something there.
  virtual void only_look() = 0;
  /// From now on this is how long an answer may take.
  virtual void set_patience(Duration patience) = 0;

  /// We hold the meeting: what the next holder has to know. Tried again until it is kept.
  virtual void keep(const JobState& state) = 0;

  /// We are done. \param outcome  of a job that is over, which is left behind for those that were cut off from it;
  /// empty: another launcher takes the meeting over. `released` is called by the loop, soon, whether there is an answer
  /// or not.
  virtual void release(const std::optional<std::string>& outcome, std::function<void()> released) = 0;
  /// Whatever is under way comes to nothing, and nothing more is told; what we hold is given back where that place
  /// still answers.
  virtual void stop() = 0;

  [[nodiscard]] virtual bool holds() const = 0;
  /// Why the last attempt to ask failed; empty: none has since there was an answer.
  [[nodiscard]] virtual const std::string& trouble() const = 0;
};

}  // namespace lrun::launcher
