#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/message_sink.h"

namespace lrun::launcher {

/// Keeps what is printed, in order.
class RecordingSink final : public MessageSink {
 public:
  struct Entry {
    bool of_job = false;
    std::string text;  ///< rendered

    bool operator==(const Entry&) const = default;
  };

  void print(Severity severity, std::string_view text) noexcept override { print_lines(message_line(severity, text)); }
  void print_lines(std::string_view lines) noexcept override { entries.push_back({false, std::string(lines)}); }
  void print_of_job(std::string_view lines) noexcept override { entries.push_back({true, std::string(lines)}); }
  [[nodiscard]] bool colour() const noexcept override { return false; }

  /// All of it.
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const Entry& entry : entries) all += entry.text;
    return all;
  }

  std::vector<Entry> entries;
};

}  // namespace lrun::launcher
