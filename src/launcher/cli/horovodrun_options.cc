// The options that only horovodrun has: each becomes an option of lrun, a variable of the workers, or an error with a
// hint. The reader of the command line calls it when lrun runs as 'horovodrun'.
#include "cli/horovodrun_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <vector>

#include "base/nearest.h"
#include "base/numeric_address.h"
#include "base/shell_words.h"
#include "base/split.h"
#include "base/user_error.h"
#include "base/whole_number.h"

namespace lrun::launcher {
namespace {

using enum HorovodrunOption::Meaning;
constexpr ValueKind kWord = ValueKind::kRequired;

constexpr std::string_view kOverMpi =
    "leave it out: lrun runs Horovod over Gloo; for MPI, start the program with 'mpirun -np N PROGRAM'";
constexpr std::string_view kElastic =
    "lrun restarts all workers when nodes join or leave: on every node, 'lrun --strategy horovod --num-nodes 2:4 "
    "--devices 4 --rdzv-endpoint HOST:29500 --max-restarts 3 PROGRAM'";

constexpr HorovodrunOption kOptions[] = {
    {"-v", kFlag, "version"},
    {"--num-proc", kFlag, "nproc-per-node", kWord},
    {"-hostfile", kFlag, "hostfile", kWord},
    {"--output-filename", kFlag, "log-dir", kWord},
    {"-prefix-timestamp --prefix-output-with-timestamp", kFlag, "timestamps"},
    {"-p --ssh-port", kSsh, "-p", kWord},
    {"-i --ssh-identity-file", kSsh, "-i", kWord},
    {"--network-interfaces --network-interface", kNetwork, "", kWord},
    {"--gloo --disable-cache", kNothing},
    {"--tcp", kYes, "NCCL_IB_DISABLE"},

    {"--fusion-threshold-mb", kMebibytes, "HOROVOD_FUSION_THRESHOLD", kWord},
    {"--cycle-time-ms", kNumber, "HOROVOD_CYCLE_TIME", kWord},
    {"--cache-capacity", kCount, "HOROVOD_CACHE_CAPACITY", kWord},
    {"--hierarchical-allreduce", kYes, "HOROVOD_HIERARCHICAL_ALLREDUCE"},
    {"--no-hierarchical-allreduce", kNo, "HOROVOD_HIERARCHICAL_ALLREDUCE"},
    {"--hierarchical-allgather", kYes, "HOROVOD_HIERARCHICAL_ALLGATHER"},
    {"--no-hierarchical-allgather", kNo, "HOROVOD_HIERARCHICAL_ALLGATHER"},
    {"--torus-allreduce", kYes, "HOROVOD_TORUS_ALLREDUCE"},
    {"--no-torus-allreduce", kNo, "HOROVOD_TORUS_ALLREDUCE"},
    {"--autotune", kYes, "HOROVOD_AUTOTUNE"},
    {"--no-autotune", kNo, "HOROVOD_AUTOTUNE"},
    {"--autotune-log-file", kText, "HOROVOD_AUTOTUNE_LOG", kWord},
    {"--autotune-warmup-samples", kCount, "HOROVOD_AUTOTUNE_WARMUP_SAMPLES", kWord},
    {"--autotune-steps-per-sample", kCount, "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", kWord},
    {"--autotune-bayes-opt-max-samples", kCount, "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", kWord},
    {"--autotune-gaussian-process-noise", kFraction, "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", kWord},
    {"--timeline-filename", kText, "HOROVOD_TIMELINE", kWord},
    {"--timeline-mark-cycles", kYes, "HOROVOD_TIMELINE_MARK_CYCLES"},
    {"--no-timeline-mark-cycles", kNo, "HOROVOD_TIMELINE_MARK_CYCLES"},
    {"--no-stall-check", kYes, "HOROVOD_STALL_CHECK_DISABLE"},
    {"--stall-check", kNo, "HOROVOD_STALL_CHECK_DISABLE"},
    {"--stall-check-warning-time-seconds", kCount, "HOROVOD_STALL_CHECK_TIME_SECONDS", kWord},
    {"--stall-check-shutdown-time-seconds", kCount, "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", kWord},
    {"--num-nccl-streams", kCount, "HOROVOD_NUM_NCCL_STREAMS", kWord},
    {"--thread-affinity", kCount, "HOROVOD_THREAD_AFFINITY", kWord},
    {"--gloo-timeout-seconds", kCount, "HOROVOD_GLOO_TIMEOUT_SECONDS", kWord},
    {"--log-level", kLevel, "HOROVOD_LOG_LEVEL", kWord},
    {"--log-without-timestamp --log-hide-timestamp", kYes, "HOROVOD_LOG_HIDE_TIME"},
    {"--log-with-timestamp --no-log-hide-timestamp", kNo, "HOROVOD_LOG_HIDE_TIME"},

    {"--mpi --jsrun --mpi-threads-disable --no-mpi-threads-disable", kRefused, kOverMpi},
    {"--mpi-args", kRefused, kOverMpi, kWord},
    {"--binding-args", kRefused, "use '--bind core' or '--bind numa'", kWord},
    {"-cb --check-build", kRefused,
     "ask the installed Horovod: python -c 'import horovod.torch as hvd; print(hvd.gloo_built(), hvd.nccl_built())'"},
    {"--config-file", kRefused, "write its settings as options, or put defaults into 'lrun.toml'", kWord},
    {"--min-np --min-num-proc --max-np --max-num-proc --slots-per-host --elastic-timeout --reset-limit "
     "--blacklist-cooldown-range --host-discovery-script",
     kRefused, kElastic, kWord},
};

[[noreturn]] void refuse_value(const std::string& origin, const std::string& value, const std::string& allowed,
                               std::string_view example) {
  throw UserError(fmt::format("'{} {}': {}", origin, value, allowed),
                  fmt::format("for example '{} {}'", origin, example));
}

std::uint64_t count_of(const std::string& origin, const std::string& value) {
  const auto count = whole_number<std::uint64_t>(value);
  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (!count || *count > kMost) {
    refuse_value(origin, value, fmt::format("not a whole number; allowed: 0 to {}", kMost), "1");
  }
  return *count;
}

void check_number(const std::string& origin, const std::string& value, double most, const std::string& allowed) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  const bool is_number = !value.empty() && *end == '\0' && number >= 0 && number <= most;
  if (!is_number) refuse_value(origin, value, allowed, "0.5");
}

void check_level(const std::string& origin, const std::string& value) {
  static const std::vector<std::string> kLevels{"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "FATAL"};
  if (std::find(kLevels.begin(), kLevels.end(), value) != kLevels.end()) return;
  refuse_value(origin, value, "unknown level; allowed: " + join_words(kLevels, ", "), "INFO");
}

void add_variable(std::string_view name, const std::string& value, const std::string& origin, SpelledLine& line) {
  line.options.push_back({find_flag("env"), fmt::format("{}={}", name, value), Source::kFlag, origin});
}

/// The value that an earlier option gave to a variable, without the name; empty if none did.
std::string value_before(const SpelledLine& line, const std::string& name) {
  std::string value;
  for (const GivenValue& given : line.options) {
    if (given.flag->name == "env" && given.text.starts_with(name + "=")) value = given.text.substr(name.size() + 1);
  }
  return value;
}

/// Gloo takes one interface, the first. NCCL takes all.
void add_network(const std::string& origin, const std::string& value, SpelledLine& line) {
  const std::string before = value_before(line, "NCCL_SOCKET_IFNAME");
  const std::string all = before.empty() ? value : before + "," + value;
  const std::string first = all.substr(0, all.find(','));
  if (first.empty()) refuse_value(origin, value, "the name of a network interface is missing", "eth0");
  add_variable("HOROVOD_GLOO_IFACE", first, origin, line);
  add_variable("NCCL_SOCKET_IFNAME", all, origin, line);
}

void add_ssh(const HorovodrunOption& option, const std::string& origin, const std::string& value, SpelledLine& line) {
  const bool is_port = option.what == "-p";
  if (is_port && (count_of(origin, value) == 0 || count_of(origin, value) > kMostPort)) {
    refuse_value(origin, value, "not a port; allowed: 1 to 65535", "22");
  }
  std::string command = "ssh";
  for (const GivenValue& earlier : line.options) {
    if (earlier.flag->name == "ssh") command = earlier.text;
  }
  std::erase_if(line.options, [](const GivenValue& earlier) { return earlier.flag->name == "ssh"; });
  command += fmt::format(" {} {}", option.what, is_port ? value : quoted_for_shell(value));
  line.options.push_back({find_flag("ssh"), command, Source::kFlag, origin});
}

[[noreturn]] void refuse_option(const HorovodrunOption& option, const std::string& origin) {
  throw UserError(fmt::format("'{}' of horovodrun is not supported", origin), std::string(option.what));
}

}  // namespace

std::span<const HorovodrunOption> horovodrun_options() { return kOptions; }

const HorovodrunOption* find_horovodrun_option(std::string_view name) {
  for (const HorovodrunOption& option : kOptions) {
    const std::vector<std::string_view> names = words_of(option.names);
    if (std::find(names.begin(), names.end(), name) != names.end()) return &option;
  }
  return nullptr;
}

void add_horovodrun_option(const HorovodrunOption& option, const std::string& origin, const std::string& value,
                           SpelledLine& line) {
  switch (option.meaning) {
    case kNothing:
      return;
    case kRefused:
      refuse_option(option, origin);
    case kFlag:
      line.options.push_back({find_flag(option.what), value, Source::kFlag, origin});
      return;
    case kSsh:
      return add_ssh(option, origin, value, line);
    case kNetwork:
      return add_network(origin, value, line);
    case kMebibytes:
      return add_variable(option.what, std::to_string(count_of(origin, value) << 20U), origin, line);
    case kYes:
      return add_variable(option.what, "1", origin, line);
    case kNo:
      return add_variable(option.what, "0", origin, line);
    case kCount:
      (void)count_of(origin, value);
      break;
    case kNumber:
      check_number(origin, value, std::numeric_limits<double>::max(), "not a number of 0 or more");
      break;
    case kFraction:
      check_number(origin, value, 1, "not a number from 0 to 1");
      break;
    case kLevel:
      check_level(origin, value);
      break;
    case kText:
      break;
  }
  add_variable(option.what, value, origin, line);
}

}  // namespace lrun::launcher
