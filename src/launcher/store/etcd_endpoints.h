#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"

namespace lrun::launcher {

/// A member of an etcd.
struct EtcdEndpoint {
  std::string host;  ///< a name, or a numeric address
  std::uint16_t port = 0;

  bool operator==(const EtcdEndpoint&) const = default;
};

/// Which member of an etcd is asked next, and whether it is of use to ask on. Pure: time goes in. A value.
class EtcdEndpoints {
 public:
  enum class Failure {
    kPassing,   ///< it may answer the next time
    kRefused,   ///< its host refused the connection
    kWordless,  ///< it closed the connection without a word
    kMistake,   ///< it is not an etcd, or not the one that is meant
  };

  /// \param endpoints  at least one
  /// \param start      how long a new etcd may take to listen, where none has answered yet; zero: as long as it likes
  EtcdEndpoints(std::vector<EtcdEndpoint> endpoints, Duration start)
      : endpoints_(std::move(endpoints)), start_(start) {}

  [[nodiscard]] const EtcdEndpoint& current() const { return endpoints_[current_]; }
  /// 'host port 2379'.
  [[nodiscard]] std::string text() const { return current().host + " port " + std::to_string(current().port); }

  /// The current one has answered.
  void answered();
  /// The current one has not. \return false: it is of no use to go on.
  bool failed(Failure failure, SteadyTime now);
  /// None has ever answered, and those that were asked refuse connections.
  [[nodiscard]] bool are_refused() const { return refused_since_ && !has_answered_; }
  /// Another one is asked. \return true: all of them have failed since the last time that this was true
  bool next();

 private:
  std::vector<EtcdEndpoint> endpoints_;
  Duration start_;
  std::size_t current_ = 0;
  std::size_t failed_ = 0;    ///< one after another, since one has answered
  std::size_t mistakes_ = 0;  ///< of these, the last ones
  std::size_t wordless_ = 0;  ///< connections, since one has answered
  bool has_answered_ = false;
  std::optional<SteadyTime> refused_since_;  ///< by every endpoint that was asked
};

}  // namespace lrun::launcher
