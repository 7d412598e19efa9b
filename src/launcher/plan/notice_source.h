#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// Where a notice stands that this machine is about to go: --notice. A value.
struct NoticeSource {
  enum class Kind { kNowhere, kFile, kAws, kAzure, kGcp };
  Kind kind = Kind::kNowhere;
  std::string file;  ///< of kFile: its path

  [[nodiscard]] bool is_given() const { return kind != Kind::kNowhere; }
  bool operator==(const NoticeSource&) const = default;
};

/// Reads 'aws', 'azure' or 'gcp', in any case, or the path of a file, a text with a '/'; '/dev/null' stands for
/// nowhere. Empty: it is none of them. Pure.
std::optional<NoticeSource> parse_notice_source(std::string_view text);

/// 'aws', or the path of the file.
std::string text_of(const NoticeSource& source);

}  // namespace lrun::launcher
