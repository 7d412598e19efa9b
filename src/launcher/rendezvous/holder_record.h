#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

}  // namespace lrun::launcher
