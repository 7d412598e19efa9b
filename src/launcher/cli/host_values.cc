#include "cli/host_values.h"

#include "base/shell_words.h"
#include "base/split.h"
#include "cli/flag_values.h"
#include "cli/read_value.h"
#include "cluster/user_hosts.h"

namespace lrun::launcher::flag_values {
namespace {

void refuse_nothing(const GivenValue& given, const char* what, std::string_view right) {
  if (trimmed(given.text).empty()) refuse(given, what, example(given, right));
}

}  // namespace

void hosts(const GivenValue& given, LaunchRequest& request) {
  refuse_nothing(given, "no host is named", "a:4,b:4");
  request.hosts = setting(given, HostList{given.text, parse_host_list(given.text, given.as_written())});
}

void hostfile(const GivenValue& given, LaunchRequest& request) {
  refuse_nothing(given, "the name of a file is missing", "hosts.txt");
  request.hostfile = setting(given, given.text);
}

void include(const GivenValue& given, LaunchRequest& request) {
  refuse_nothing(given, "no host is named", "a@b:0,2");
  request.include = setting(given, given.text);
}

void exclude(const GivenValue& given, LaunchRequest& request) {
  refuse_nothing(given, "no host is named", "a@b:0,2");
  request.exclude = setting(given, given.text);
}

void ssh(const GivenValue& given, LaunchRequest& request) {
  auto words = split_shell_words(given.text);
  if (!words) refuse(given, "a quote is not closed, or a backslash protects nothing", "quote as for a shell");
  if (words->empty() || words->front().empty()) {
    refuse(given, "the name of a program is missing",
           example(given, given.source == Source::kFlag ? "\"ssh -p 2222\"" : "ssh -p 2222"));
  }
  request.ssh = setting(given, std::move(*words));
}

void copy(const GivenValue& given, LaunchRequest& request) { request.copy = switch_value(given); }

}  // namespace lrun::launcher::flag_values
