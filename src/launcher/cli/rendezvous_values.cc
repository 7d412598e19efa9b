#include "cli/rendezvous_values.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string_view>

#include "base/nearest.h"
#include "base/numeric_address.h"
#include "base/split.h"
#include "cli/read_value.h"

namespace lrun::launcher::flag_values {
namespace {

/// Times in whole seconds. Those that lrun has no use for are checked, too.
constexpr std::array<std::string_view, 6> kTimes{"join_timeout", "last_call_timeout", "close_timeout",
                                                 "read_timeout", "heartbeat_timeout", "keep_alive_interval"};
constexpr std::array<std::string_view, 7> kOtherKeys{
    "keep_alive_max_attempt", "cas_backoff_max_seconds", "store_type", "timeout", "rank", "protocol", "etcd_prefix"};
/// Of torchrun's two etcd backends each has names of its own for the same files.
struct FileKey {
  std::string_view name;
  std::string_view other_name;
  std::string EtcdTls::*file;
};
constexpr std::array<FileKey, 3> kFileKeys{FileKey{"cacert", "ca_cert", &EtcdTls::authorities},
                                           FileKey{"cert", "ssl_cert", &EtcdTls::certificate},
                                           FileKey{"key", "ssl_cert_key", &EtcdTls::key}};
constexpr long kMostSeconds = 10L * 365 * 24 * 3600;
/// torchrun's; a node is lost after so many of them.
constexpr Duration kKeepAliveInterval(5000);
constexpr int kMostNodeRank = 65'535;
constexpr int kKeepAliveAttempts = 3;
constexpr int kMostKeepAliveAttempts = 1000;

template <std::size_t size>
bool contains(const std::array<std::string_view, size>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string warn_about(const GivenValue& given, const std::string& key) {
  std::vector<std::string> known{"is_host"};
  known.insert(known.end(), kTimes.begin(), kTimes.end());
  known.insert(known.end(), kOtherKeys.begin(), kOtherKeys.end());
  for (const FileKey& file : kFileKeys)
    known.insert(known.end(), {std::string(file.name), std::string(file.other_name)});
  const std::string near = nearest_hint(key, known);
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

bool is_host_value(const GivenValue& given, const std::string& value) {
  const std::optional<bool> is_host = truth(value);
  if (!is_host) refuse(given, "'is_host' is neither yes nor no", example(given, "is_host=true"));
  return *is_host;
}

Duration seconds_value(const GivenValue& given, const std::string& key, const std::string& value) {
  const auto seconds = whole_number<long>(value);
  if (!seconds || *seconds <= 0 || *seconds > kMostSeconds) {
    refuse(given, "'" + key + "' is not a number of seconds above 0", example(given, key + "=600"));
  }
  return std::chrono::seconds(*seconds);
}

bool is_tls(const GivenValue& given, const std::string& value) {
  const std::string word = lower_case(value);
  if (word != "http" && word != "https") {
    refuse(given, "'protocol' is neither http nor https", example(given, "protocol=https"));
  }
  return word == "https";
}

/// torchrun's c10d backend also meets through a file.
void check_store_type(const GivenValue& given, const std::string& value) {
  if (lower_case(value) == "tcp") return;
  refuse(given, "launchers meet over TCP, and not through a store of type '" + value + "'",
         "leave 'store_type' out, and give '--rdzv-endpoint HOST:29400' on every node");
}

/// \return whether the key names a file.
bool take_file(const std::string& key, const std::string& value, RendezvousRequest& rendezvous) {
  const auto* const found = std::find_if(kFileKeys.begin(), kFileKeys.end(), [&](const FileKey& file) {
    return key == file.name || key == file.other_name;
  });
  if (found == kFileKeys.end()) return false;
  rendezvous.etcd_tls.*(found->file) = value;
  return true;
}

/// '/lrun', without the last slash of '/lrun/'.
std::string etcd_prefix_value(const std::string& value) {
  const std::size_t last = value.find_last_not_of('/');
  return last == std::string::npos ? std::string() : value.substr(0, last + 1);
}

/// What is put together from several keys.
struct KeepAlive {
  std::optional<Duration> interval;
  std::optional<int> attempts;
};

void take_time(const std::string& key, Duration time, RendezvousRequest& rendezvous, KeepAlive& keep_alive) {
  if (key == "join_timeout") rendezvous.join_timeout = time;
  if (key == "last_call_timeout") rendezvous.last_call = time;
  if (key == "read_timeout") rendezvous.connect_timeout = time;
  if (key == "heartbeat_timeout") rendezvous.heartbeat = time;
  if (key == "keep_alive_interval") keep_alive.interval = time;
}

void take_entry(const GivenValue& given, const std::string& entry, RendezvousRequest& rendezvous,
                KeepAlive& keep_alive) {
  const std::size_t equals = std::min(entry.find('='), entry.size());
  const std::string key(trimmed(std::string_view(entry).substr(0, equals)));
  const std::string value(trimmed(std::string_view(entry).substr(std::min(equals + 1, entry.size()))));
  if (key.empty() || value.empty()) {
    refuse(given, "not a list of KEY=VALUE with commas", example(given, "join_timeout=600"));
  }
  if (key == "is_host") {
    rendezvous.is_host = is_host_value(given, value);
  } else if (contains(kTimes, key)) {
    take_time(key, seconds_value(given, key, value), rendezvous, keep_alive);
  } else if (key == "keep_alive_max_attempt") {
    keep_alive.attempts = whole_number<int>(value);
    if (!keep_alive.attempts || *keep_alive.attempts < 1 || *keep_alive.attempts > kMostKeepAliveAttempts) {
      refuse(given, "'" + key + "' is not a number of attempts above 0", example(given, key + "=3"));
    }
  } else if (key == "protocol") {
    rendezvous.etcd_is_asked_over_tls = is_tls(given, value);
  } else if (key == "store_type") {
    check_store_type(given, value);
  } else if (key == "etcd_prefix") {
    rendezvous.etcd_prefix = etcd_prefix_value(value);
  } else if (!take_file(key, value, rendezvous) && !contains(kOtherKeys, key)) {
    rendezvous.warnings.push_back(warn_about(given, key));
  }
}

/// A name, or an address in or out of brackets.
std::string host_value(const GivenValue& given) {
  std::string host = without_brackets(std::string(trimmed(given.text)));
  if (host.find_first_of("[]") == std::string::npos) return host;
  refuse(given, "neither a host's name nor an address", example(given, "[fd00::1]"));
}

}  // namespace

void rdzv_backend(const GivenValue& given, LaunchRequest& request) {
  if (given.text.empty()) return;
  request.rendezvous.backend = setting(given, choice_in(kRendezvousBackends, given, "rendezvous backend"));
}

/// Several, with commas, are the members of an etcd.
void rdzv_endpoint(const GivenValue& given, LaunchRequest& request) {
  if (trimmed(given.text).empty()) return;
  std::vector<Endpoint> endpoints;
  for (std::size_t start = 0; start <= given.text.size();) {
    const std::size_t end = std::min(given.text.find(',', start), given.text.size());
    auto endpoint = parse_endpoint(std::string_view(given.text).substr(start, end - start));
    if (!endpoint) {
      refuse(given, "not HOST:PORT; an IPv6 address stands in brackets", example(given, "localhost:29400"));
    }
    endpoints.push_back(std::move(*endpoint));
    start = end + 1;
  }
  request.rendezvous.endpoint = setting(given, std::move(endpoints.front()));
  endpoints.erase(endpoints.begin());
  request.rendezvous.more_endpoints = std::move(endpoints);
}

void rdzv_conf(const GivenValue& given, LaunchRequest& request) {
  RendezvousRequest& rendezvous = request.rendezvous;
  rendezvous.warnings.clear();
  rendezvous.is_host.reset();
  rendezvous.etcd_prefix = RendezvousRequest().etcd_prefix;
  rendezvous.etcd_is_asked_over_tls = false;
  rendezvous.etcd_tls = {};
  for (auto* time :
       {&rendezvous.join_timeout, &rendezvous.connect_timeout, &rendezvous.last_call, &rendezvous.heartbeat}) {
    time->reset();
  }
  if (trimmed(given.text).empty()) return;
  KeepAlive keep_alive;
  for (std::size_t start = 0; start <= given.text.size();) {
    const std::size_t end = std::min(given.text.find(',', start), given.text.size());
    take_entry(given, given.text.substr(start, end - start), rendezvous, keep_alive);
    start = end + 1;
  }
  if (!rendezvous.heartbeat && (keep_alive.interval || keep_alive.attempts)) {
    rendezvous.heartbeat =
        keep_alive.interval.value_or(kKeepAliveInterval) * keep_alive.attempts.value_or(kKeepAliveAttempts);
  }
}

void node_rank(const GivenValue& given, LaunchRequest& request) {
  request.rendezvous.node_rank = setting(given, number_between<int>(given, 0, kMostNodeRank));
}

void master_addr(const GivenValue& given, LaunchRequest& request) {
  request.rendezvous.master_addr = setting(given, host_value(given));
}

void spares(const GivenValue& given, LaunchRequest& request) {
  request.spares = setting(given, number_between<int>(given, 1, kMostNodeRank));
}

void local_addr(const GivenValue& given, LaunchRequest& request) {
  request.rendezvous.local_addr = setting(given, host_value(given));
}

}  // namespace lrun::launcher::flag_values
