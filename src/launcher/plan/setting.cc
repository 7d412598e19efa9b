#include "plan/setting.h"

#include "base/split.h"

namespace lrun::launcher {
namespace {

constexpr std::string_view kOfHost = ", ";

}  // namespace

std::string origin_of_host(const std::string& origin, const std::string& host) {
  return origin + std::string(kOfHost) + host;
}

std::string as_written(const std::string& origin, std::string_view value) {
  const bool is_option = origin.starts_with('-');
  const std::size_t of_host = origin.rfind(kOfHost);
  // A comma in the name of a configuration file is not followed by a host, but by more words.
  const bool names_host =
      of_host != std::string::npos && origin.find(' ', of_host + kOfHost.size()) == std::string::npos;
  if (!names_host) return origin + (is_option ? " " : "=") + std::string(value);
  // The list of one device is '2,', which nobody writes behind a host.
  return origin.substr(0, of_host) + (is_option ? " " : ": ") + origin.substr(of_host + kOfHost.size()) + ":" +
         std::string(trimmed(value, ","));
}

}  // namespace lrun::launcher
