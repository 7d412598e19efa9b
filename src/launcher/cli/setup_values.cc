#include "cli/setup_values.h"

#include <limits>
#include <utility>

#include "base/nearest.h"
#include "base/shell_words.h"
#include "cli/flag_values.h"
#include "cli/read_value.h"

namespace lrun::launcher::flag_values {
namespace {

using Kind = EnvironmentChange::Kind;

/// A name that can be in an environment, and that nobody gets by a slip of the keyboard.
void check_name(const GivenValue& given, const std::string& name, std::string_view right) {
  const bool typed = name.find_first_of(" \t\n\r") == std::string::npos;
  if (name.empty()) refuse(given, "the name of a variable is missing", example(given, right));
  if (!typed) refuse(given, "no name of a variable has blanks", "one variable for each '--env'");
}

void change(const GivenValue& given, LaunchRequest& request, Kind kind, std::string name, std::string value) {
  check_name(given, name, kind == Kind::kUnset ? "A" : "A=1");
  const Setting<std::string> named = setting(given, std::string());
  add_change(request.setup.environment, {kind, std::move(name), std::move(value), named.source, named.origin});
}

}  // namespace

void chdir(const GivenValue& given, LaunchRequest& request) {
  if (given.text.empty()) refuse(given, "the name of a directory is missing", "leave it out to stay here");
  request.setup.folder = setting(given, given.text);
}

void env(const GivenValue& given, LaunchRequest& request) {
  const std::size_t equals = given.text.find('=');
  if (equals == std::string::npos) {
    change(given, request, Kind::kPassOn, given.text, {});
  } else {
    change(given, request, Kind::kSet, given.text.substr(0, equals), given.text.substr(equals + 1));
  }
}

void unset(const GivenValue& given, LaunchRequest& request) {
  if (given.text.find('=') != std::string::npos) {
    refuse(given, "this is no name of a variable",
           "write '" + given.as_written_with(given.text.substr(0, given.text.find('='))) + "'");
  }
  change(given, request, Kind::kUnset, given.text, {});
}

void rlimit(const GivenValue& given, LaunchRequest& request) {
  const std::size_t equals = given.text.find('=');
  const std::string name = given.text.substr(0, equals);
  const auto resource = find_resource(name);
  if (!resource) {
    const std::vector<std::string> names = resource_names();
    refuse(given, "no such limit; allowed: " + join_words(names, ", "),
           nearest_hint(name, names, example(given, "nofile=65536")));
  }
  auto limit = equals == std::string::npos ? std::nullopt : parse_limit(*resource, given.text.substr(equals + 1));
  if (!limit) {
    refuse(given, "not a limit; allowed: NAME=SOFT or NAME=SOFT:HARD, numbers or 'unlimited', SOFT not above HARD",
           "for example '" + given.as_written_with(name + (name == "nofile" ? "=65536" : "=unlimited")) + "'");
  }
  const Setting<std::string> named = setting(given, std::string());
  limit->source = named.source;
  limit->origin = named.origin;
  add_limit(request.setup.limits, std::move(*limit));
}

void core(const GivenValue& given, LaunchRequest& request) { request.setup.core_dumps = switch_value(given); }

void debug_rank(const GivenValue& given, LaunchRequest& request) {
  request.setup.debug_rank = setting(given, number_between(given, 0, std::numeric_limits<int>::max()));
}

void wrap(const GivenValue& given, LaunchRequest& request) {
  auto words = split_shell_words(given.text);
  if (!words) refuse(given, "a quote is not closed, or a backslash protects nothing", "quote as for a shell");
  if (words->empty() || words->front().empty()) {
    refuse(given, "the name of a program is missing",
           example(given, given.source == Source::kFlag ? "\"numactl -m 0\"" : "numactl -m 0"));
  }
  Wrapper::Ranks ranks;
  if (given.origin.find('@') != std::string::npos) {
    const auto parsed = parse_ranks(given.ranks);
    if (!parsed) refuse(given, "no ranks behind '@'", "for example '--wrap@0' or '--wrap@0,2-3'");
    ranks = *parsed;
  }
  request.setup.wrappers.push_back({std::move(*words), std::move(ranks), setting(given, std::string()).origin});
}

}  // namespace lrun::launcher::flag_values
