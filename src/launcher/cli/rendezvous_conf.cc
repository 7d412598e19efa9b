// The keys of --rdzv-conf: a table with the function that reads the value of each. The text comes in as a GivenValue,
// and its values go into a RendezvousRequest. Called by the row of the option in node_flags.cc.
#include "cli/rendezvous_conf.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/nearest.h"
#include "base/split.h"
#include "cli/read_value.h"

namespace lrun::launcher {
namespace {

/// torchrun's defaults: a node is lost after this number of intervals without a heartbeat.
constexpr Duration kKeepAliveInterval(5000);
constexpr int kKeepAliveAttempts = 3;

/// One 'KEY=VALUE'.
struct Entry {
  const GivenValue& given;
  std::string key;
  std::string value;
};

struct Conf {
  RendezvousRequest& request;
  // torchrun's two keys for lrun's one heartbeat:
  std::optional<Duration> keep_alive_interval;
  std::optional<int> keep_alive_attempts;
};

[[noreturn]] void refuse_entry(const Entry& entry, const std::string& problem, const std::string& example_value) {
  refuse(entry.given, "'" + entry.key + "' is " + problem, example(entry.given, entry.key + "=" + example_value));
}

Duration seconds_of(const Entry& entry) {
  constexpr long kMostSeconds = 10L * 365 * 24 * 3600;
  const auto seconds = whole_number<long>(entry.value);
  if (!seconds || *seconds <= 0 || *seconds > kMostSeconds)
    refuse_entry(entry, "not a number of seconds above 0", "600");
  return std::chrono::seconds(*seconds);
}

template <std::optional<Duration> RendezvousRequest::*field>
void set_seconds(const Entry& entry, Conf& conf) {
  conf.request.*field = seconds_of(entry);
}

template <std::string EtcdTls::*file>
void set_file(const Entry& entry, Conf& conf) {
  conf.request.etcd_tls.*file = entry.value;
}

void check_seconds(const Entry& entry, Conf& /*conf*/) { (void)seconds_of(entry); }

void ignore(const Entry& /*entry*/, Conf& /*conf*/) {}

void set_is_host(const Entry& entry, Conf& conf) {
  constexpr NamedValue<bool> kWords[] = {{"1", true},  {"true", true},   {"t", true},  {"yes", true}, {"y", true},
                                         {"0", false}, {"false", false}, {"f", false}, {"no", false}, {"n", false}};
  conf.request.is_host = value_in(kWords, lower_case(entry.value));
  if (!conf.request.is_host) refuse_entry(entry, "neither true nor false", "true");
}

void set_keep_alive_interval(const Entry& entry, Conf& conf) { conf.keep_alive_interval = seconds_of(entry); }

void set_keep_alive_attempts(const Entry& entry, Conf& conf) {
  constexpr int kMost = 1000;
  conf.keep_alive_attempts = whole_number<int>(entry.value);
  if (!conf.keep_alive_attempts || *conf.keep_alive_attempts < 1 || *conf.keep_alive_attempts > kMost) {
    refuse_entry(entry, "not a number of attempts above 0", "3");
  }
}

void set_protocol(const Entry& entry, Conf& conf) {
  const std::string word = lower_case(entry.value);
  if (word != "http" && word != "https") refuse_entry(entry, "neither http nor https", "https");
  conf.request.etcd_is_asked_over_tls = word == "https";
}

/// torchrun's c10d backend can also use a file.
void check_store_type(const Entry& entry, Conf& /*conf*/) {
  if (lower_case(entry.value) == "tcp") return;
  refuse(entry.given, "the rendezvous uses TCP, not a store of type '" + entry.value + "'",
         "leave 'store_type' out and give '--rdzv-endpoint HOST:29400' on every node");
}

/// '/lrun' and '/lrun/' are the same folder.
void set_etcd_prefix(const Entry& entry, Conf& conf) {
  conf.request.etcd_prefix = entry.value.substr(0, entry.value.find_last_not_of('/') + 1);
}

struct Key {
  std::string_view name;
  void (*take)(const Entry& entry, Conf& conf);
};

constexpr Key kKeys[] = {
    {"is_host", set_is_host},
    {"join_timeout", set_seconds<&RendezvousRequest::join_timeout>},
    {"last_call_timeout", set_seconds<&RendezvousRequest::last_call>},
    {"close_timeout", check_seconds},
    {"read_timeout", set_seconds<&RendezvousRequest::connect_timeout>},
    {"heartbeat_timeout", set_seconds<&RendezvousRequest::heartbeat>},
    {"keep_alive_interval", set_keep_alive_interval},
    {"keep_alive_max_attempt", set_keep_alive_attempts},
    {"cas_backoff_max_seconds", ignore},
    {"store_type", check_store_type},
    {"timeout", check_seconds},
    {"rank", ignore},
    {"protocol", set_protocol},
    {"etcd_prefix", set_etcd_prefix},
    // Each of torchrun's two etcd backends has names of its own for the same files.
    {"cacert", set_file<&EtcdTls::authorities>},
    {"ca_cert", set_file<&EtcdTls::authorities>},
    {"cert", set_file<&EtcdTls::certificate>},
    {"ssl_cert", set_file<&EtcdTls::certificate>},
    {"key", set_file<&EtcdTls::key>},
    {"ssl_cert_key", set_file<&EtcdTls::key>},
};

std::string warn_about(const Entry& entry) {
  std::vector<std::string> known;
  for (const Key& key : kKeys) known.emplace_back(key.name);
  const std::string near = nearest_hint(entry.key, known);
  return entry.given.quoted() + ": '" + entry.key + "' is unknown and ignored" + (near.empty() ? "" : "; " + near);
}

void take(const Entry& entry, Conf& conf) {
  if (entry.key.empty() || entry.value.empty()) {
    refuse(entry.given, "not a list of KEY=VALUE with commas", example(entry.given, "join_timeout=600"));
  }
  const auto* const key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                       [&](const Key& candidate) { return candidate.name == entry.key; });
  if (key == std::end(kKeys)) {
    conf.request.warnings.push_back(warn_about(entry));
  } else {
    key->take(entry, conf);
  }
}

}  // namespace

void read_rendezvous_conf(const GivenValue& given, RendezvousRequest& request) {
  if (trimmed(given.text).empty()) return;
  Conf conf{request, {}, {}};
  for (const std::string& field : fields_of(given.text)) {
    std::string_view value = field;
    const std::string_view key = trimmed(cut(value, '='));
    take({given, std::string(key), std::string(trimmed(value))}, conf);
  }
  if (!request.heartbeat && (conf.keep_alive_interval || conf.keep_alive_attempts)) {
    request.heartbeat =
        conf.keep_alive_interval.value_or(kKeepAliveInterval) * conf.keep_alive_attempts.value_or(kKeepAliveAttempts);
  }
}

}  // namespace lrun::launcher
