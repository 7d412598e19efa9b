#include "cli/run_values.h"

#include <limits>
#include <optional>

#include "cli/read_value.h"

namespace lrun::launcher::flag_values {
namespace {

/// Zero: no limit.
Duration limit_of(const GivenValue& given, const std::string& example) {
  if (given.text == "none") return Duration::zero();
  const Duration limit = duration_of(given, example);
  if (limit == Duration::zero()) refuse(given, "no time at all", "'none' is no limit");
  return limit;
}

}  // namespace

void grace(const GivenValue& given, LaunchRequest& request) {
  request.grace = setting(given, duration_of(given, "30s"));
}

void timeout(const GivenValue& given, LaunchRequest& request) {
  request.timeout = setting(given, limit_of(given, "2h"));
}

void start_timeout(const GivenValue& given, LaunchRequest& request) {
  request.start_timeout = setting(given, limit_of(given, "5m"));
}

void hang_timeout(const GivenValue& given, LaunchRequest& request) {
  request.hang_timeout = setting(given, limit_of(given, "10m"));
}

void hang_signal(const GivenValue& given, LaunchRequest& request) {
  request.hang_signal = choice_of(given, "signal") == "cpu" ? HangSignal::kCpu : HangSignal::kProgress;
}

void on_hang(const GivenValue& given, LaunchRequest& request) {
  const std::string what = choice_of(given, "reaction");
  request.on_hang = what == "dump" ? OnHang::kDump : what == "kill" ? OnHang::kKill : OnHang::kRestart;
}

void signals_to_handle(const GivenValue& given, LaunchRequest& request) {
  request.signals_to_handle = setting(given, given.text);
}

void max_restarts(const GivenValue& given, LaunchRequest& request) {
  request.max_restarts = setting(given, number_between(given, 0, std::numeric_limits<int>::max()));
}

void restart_backoff(const GivenValue& given, LaunchRequest& request) {
  request.restart_backoff = setting<std::optional<Duration>>(given, duration_of(given, "30s"));
}

void settle(const GivenValue& given, LaunchRequest& request) {
  request.settle = setting(given, duration_of(given, "2s"));
}

}  // namespace lrun::launcher::flag_values
