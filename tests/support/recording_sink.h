#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
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
  void print_lines(std::string_view lines) noexcept override { add({false, std::string(lines)}); }
  void print_of_job(std::string_view lines) noexcept override { add({true, std::string(lines)}); }
  [[nodiscard]] bool colour() const noexcept override { return false; }

  /// All of it.
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const Entry& entry : entries) all += entry.text;
    return all;
  }

  std::vector<Entry> entries;
  std::function<void(const std::string& text)> printed;  ///< gets each text

 private:
  void add(Entry entry) {
    if (entry.text.empty()) return;
    entries.push_back(std::move(entry));
    if (printed) printed(entries.back().text);
  }
};

}  // namespace lrun::launcher
