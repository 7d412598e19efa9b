#include "cli/rendezvous_values.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/split.h"
#include "cli/read_value.h"

namespace lrun::flag_values {
namespace {

constexpr std::array<std::string_view, 4> kTimes{"join_timeout", "last_call_timeout", "close_timeout", "read_timeout"};
constexpr std::array<std::string_view, 7> kOtherKeys{"heartbeat_timeout",
                                                     "keep_alive_interval",
                                                     "keep_alive_max_attempt",
                                                     "cas_backoff_max_seconds",
                                                     "store_type",
                                                     "timeout",
                                                     "rank"};

template <std::size_t size>
bool contains(const std::array<std::string_view, size>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string warn_about(const GivenValue& given, const std::string& key) {
  std::vector<std::string> known{"is_host"};
  known.insert(known.end(), kTimes.begin(), kTimes.end());
  known.insert(known.end(), kOtherKeys.begin(), kOtherKeys.end());
  const std::string near = choice_hint(key, known);
  return given.quoted() + ": '" + key + "' is unknown and ignored" + (near.empty() ? "" : "; " + near);
}

std::optional<bool> truth(const std::string& text) {
  const std::string word = lower_case(text);
  for (const char* const yes : {"1", "true", "t", "yes", "y"}) {
    if (word == yes) return true;
  }
  for (const char* const no : {"0", "false", "f", "no", "n"}) {
    if (word == no) return false;
  }
  return std::nullopt;
}

void check_is_host(const GivenValue& given, const std::string& value) {
  const std::optional<bool> is_host = truth(value);
  if (!is_host) refuse(given, "'is_host' is neither yes nor no", example(given, "is_host=true"));
  if (!*is_host) {
    refuse(given, "nobody else can hold the rendezvous: this version runs on one machine", "leave 'is_host' out");
  }
}

void take_entry(const GivenValue& given, const std::string& entry, std::vector<std::string>& warnings) {
  const std::size_t equals = std::min(entry.find('='), entry.size());
  const std::string key(trimmed(std::string_view(entry).substr(0, equals)));
  const std::string value(trimmed(std::string_view(entry).substr(std::min(equals + 1, entry.size()))));
  if (key.empty() || value.empty()) {
    refuse(given, "not a list of KEY=VALUE with commas", example(given, "join_timeout=600"));
  }
  if (key == "is_host") {
    check_is_host(given, value);
  } else if (contains(kTimes, key)) {
    const auto seconds = whole_number<long>(value);
    if (!seconds || *seconds <= 0) {
      refuse(given, "'" + key + "' is not a number of seconds above 0", example(given, key + "=600"));
    }
  } else if (!contains(kOtherKeys, key)) {
    warnings.push_back(warn_about(given, key));
  }
}

}  // namespace

void rdzv_backend(const GivenValue& given, LaunchRequest& request) {
  if (given.text.empty()) return;
  const std::string word = lower_case(given.text);
  if (word != "static" && word != "c10d") {
    refuse(given, "not in this version, which runs on one machine; allowed: static, c10d", example(given, "c10d"));
  }
  request.rendezvous.backend = setting(given, word);
}

void rdzv_endpoint(const GivenValue& given, LaunchRequest& request) {
  if (trimmed(given.text).empty()) return;
  auto endpoint = parse_endpoint(given.text);
  if (!endpoint) {
    refuse(given, "not HOST:PORT; an IPv6 address stands in brackets and has a port",
           example(given, "localhost:29400"));
  }
  request.rendezvous.endpoint = setting(given, std::move(*endpoint));
}

void rdzv_conf(const GivenValue& given, LaunchRequest& request) {
  request.rendezvous.warnings.clear();
  if (trimmed(given.text).empty()) return;
  for (std::size_t start = 0; start <= given.text.size();) {
    const std::size_t end = std::min(given.text.find(',', start), given.text.size());
    take_entry(given, given.text.substr(start, end - start), request.rendezvous.warnings);
    start = end + 1;
  }
}

void master_addr(const GivenValue& given, LaunchRequest& request) {
  request.rendezvous.master_addr = setting(given, std::string(trimmed(given.text)));
}

void local_addr(const GivenValue& given, LaunchRequest& request) {
  request.rendezvous.local_addr = setting(given, std::string(trimmed(given.text)));
}

}  // namespace lrun::flag_values
