#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "plan/notice_source.h"

namespace lrun::launcher {

/// The outcome of one look for a notice that this machine is about to go.
struct NoticeLook {
  std::string notice;     ///< 'notice from AWS: terminate at 2026-11-30T08:22:00Z'; empty: there is none
  std::string problem;    ///< why nobody can say whether there is one; empty: somebody could
  bool may_pass = false;  ///< of a problem: the place may be busy, or not be ready yet

  bool operator==(const NoticeLook&) const = default;
};

/// The answer of AWS at latest/meta-data/spot/instance-action: '{"action": "terminate", "time": "..."}'. Pure.
NoticeLook notice_of_aws(std::string_view json);

/// The answer of Azure's scheduled events. A machine that is frozen for seconds stays. Pure.
/// \param machine  its name, as the events have it
NoticeLook notice_of_azure(std::string_view json, std::string_view machine);

/// The answer of Google Cloud at instance/preempted: 'TRUE' or 'FALSE'. Pure.
NoticeLook notice_of_gcp(std::string_view preempted);

/// The place where machines of the three clouds ask about themselves.
struct MetadataPlace {
  std::string address = "169.254.169.254";
  std::uint16_t port = 80;
};

/// Looks, time and again. Not thread-safe.
class NoticeLooker {
 public:
  explicit NoticeLooker(NoticeSource source, MetadataPlace place = {});

  /// Blocks until the deadline at most, or as long as the file system does.
  NoticeLook look(SteadyTime deadline);

 private:
  NoticeLook look_at_azure(SteadyTime deadline);

  NoticeSource source_;
  MetadataPlace place_;
  std::string azure_name_;  ///< of this machine; empty: not known yet
};

}  // namespace lrun::launcher
