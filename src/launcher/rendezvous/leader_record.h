#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// The leader of a job, as others find it.
struct LeaderRecord {
  std::string token;    ///< of its JoinRecord
  std::string node;     ///< host name
  std::string address;  ///< numeric
  std::uint16_t port = 0;

  bool operator==(const LeaderRecord&) const = default;
};

std::string to_json(const LeaderRecord& record);
std::optional<LeaderRecord> leader_record_from_json(std::string_view json);

}  // namespace lrun::launcher
