#include "plan/notice_source.h"

#include "base/split.h"
#include "plan/named_value.h"

namespace lrun::launcher {
namespace {

constexpr NamedValue<NoticeSource::Kind> kClouds[] = {
    {"aws", NoticeSource::Kind::kAws}, {"azure", NoticeSource::Kind::kAzure}, {"gcp", NoticeSource::Kind::kGcp}};

}  // namespace

std::optional<NoticeSource> parse_notice_source(std::string_view text) {
  if (text == "/dev/null") return NoticeSource{};
  if (text.find('/') != std::string_view::npos) return NoticeSource{NoticeSource::Kind::kFile, std::string(text)};
  const auto cloud = value_in(kClouds, lower_case(std::string(text)));
  return cloud ? std::optional(NoticeSource{*cloud, {}}) : std::nullopt;
}

std::string text_of(const NoticeSource& source) {
  return source.kind == NoticeSource::Kind::kFile ? source.file : std::string(name_in(kClouds, source.kind));
}

}  // namespace lrun::launcher
