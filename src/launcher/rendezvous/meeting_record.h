#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/holder_election.h"
#include "rendezvous/job_state.h"

namespace lrun::launcher {

/// All that a TCPStore knows of a job: one value, so that one COMPARE_SET changes it as a whole.
struct MeetingRecord {
  std::optional<HolderRecord> holder = {};  ///< empty: nobody holds the meeting
  std::int64_t beat = 0;                    ///< larger in each record than in the one before it: no two are equal
  std::optional<JobState> state = {};       ///< of a job that has begun, or is over

  [[nodiscard]] bool is_over() const { return state && state->outcome; }

  bool operator==(const MeetingRecord&) const = default;
};

std::string to_json(const MeetingRecord& record);

/// Empty for what is not JSON, lacks a field, or holds a value out of its range.
std::optional<MeetingRecord> meeting_record_from_json(std::string_view json);

}  // namespace lrun::launcher
