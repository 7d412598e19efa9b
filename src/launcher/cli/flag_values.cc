#include "cli/flag_values.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "base/nearest.h"
#include "base/split.h"
#include "base/user_error.h"
#include "cli/read_value.h"

namespace lrun::launcher::flag_values {
namespace {

// Beyond any machine, and small enough that devices x nodes is an int.
constexpr int kMostWorkersPerNode = 16'384;
constexpr int kMostNodes = 65'536;

bool is_neutral(const GivenValue& given) {
  const auto neutral = words_of(given.flag->neutral_values);
  return std::any_of(neutral.begin(), neutral.end(),
                     [&](std::string_view word) { return word == "*" || word == given.text; });
}

void refuse_unless_neutral(const GivenValue& given) {
  if (is_neutral(given)) return;
  throw UserError(given.quoted() + " is not in this version", std::string(given.flag->hint));
}

}  // namespace

bool switch_value(const GivenValue& given) {
  std::string word = lower_case(given.text);
  // An empty variable is true: Kubeflow writes PET_STANDALONE="".
  for (const char* const yes : {"", "1", "true", "yes", "on"}) {
    if (word == yes) return true;
  }
  for (const char* const no : {"0", "false", "no", "off"}) {
    if (word == no) return false;
  }
  if (const auto number = number_in<long>(word)) return *number != 0;
  refuse(given, "neither yes nor no; allowed: 1, true, 0, false", example(given, "1"));
}

void devices(const GivenValue& given, LaunchRequest& request) {
  constexpr const char* kAllowed = "; allowed: a count such as 8, a list such as 2,3, auto or -1";
  auto parsed = parse_devices(given.text, kMostWorkersPerNode);
  if (const auto* const problem = std::get_if<DeviceProblem>(&parsed)) {
    refuse(given, problem->what + kAllowed,
           problem->example.empty() ? problem->hint : example(given, problem->example));
  }
  request.devices = setting(given, std::get<DeviceRequest>(std::move(parsed)));
}

void nproc_per_node(const GivenValue& given, LaunchRequest& request) {
  using Kind = DeviceRequest::Kind;
  const std::string word = lower_case(given.text);
  const auto number = number_in<int>(word);
  if (number && *number >= 1 && *number <= kMostWorkersPerNode) {
    request.nproc_per_node = setting(given, DeviceRequest{Kind::kProcesses, *number});
    return;
  }
  const std::string allowed = "; allowed: 1 to " + std::to_string(kMostWorkersPerNode) + ", auto, cpu, gpu, xpu";
  if (number) {
    refuse(given, "no such number of workers" + allowed,
           example(given, *number < 1 ? "1" : std::to_string(kMostWorkersPerNode)));
  }
  for (const Kind kind : {Kind::kAutoCount, Kind::kCpuCount, Kind::kGpuCount, Kind::kXpuCount}) {
    if (word != text_of(DeviceRequest{kind})) continue;
    request.nproc_per_node = setting(given, DeviceRequest{kind});
    return;
  }
  refuse_choice(given, "not a number of workers" + allowed, {"auto", "cpu", "gpu", "xpu"}, "2");
}

void num_nodes(const GivenValue& given, LaunchRequest& request) {
  const std::size_t colon = given.text.find(':');
  const auto first = number_in<int>(given.text.substr(0, colon));
  const auto last = colon == std::string::npos ? first : number_in<int>(given.text.substr(colon + 1));
  if (!first || !last || *first < 1 || *last < 1 || *last > kMostNodes) {
    refuse(given, "not a number of nodes; allowed: 1 to " + std::to_string(kMostNodes), example(given, "1"));
  }
  if (*first > *last) refuse(given, "min_nodes is more than max_nodes", example(given, std::to_string(*last)));
  request.num_nodes = setting(given, *last);
  request.min_nodes = *first == *last ? 0 : *first;
}

void accelerator(const GivenValue& given, LaunchRequest& request) {
  constexpr NamedValue<std::optional<DeviceKind>> kKinds[] = {{"auto", std::nullopt},
                                                              {"cpu", DeviceKind::kCpu},
                                                              {"gpu", DeviceKind::kGpu},
                                                              {"cuda", DeviceKind::kGpu},
                                                              {"tpu", DeviceKind::kTpu}};
  request.accelerator = setting(given, choice_in(kKinds, given, "accelerator"));
}

void isolate_gpus(const GivenValue& given, LaunchRequest& request) { request.isolate_gpus = switch_value(given); }

void share_gpus(const GivenValue& given, LaunchRequest& request) { request.share_gpus = switch_value(given); }

void bind(const GivenValue& given, LaunchRequest& request) {
  request.bind = setting(given, choice_in(kBindings, given, "binding"));
}

/// torchrun's words for the same.
void numa_binding(const GivenValue& given, LaunchRequest& request) {
  constexpr NamedValue<Binding> kTorchrunsBindings[] = {{"node", Binding::kNuma},
                                                        {"socket", Binding::kSocket},
                                                        {"exclusive", Binding::kCore},
                                                        {"core-complex", Binding::kCache}};
  const Binding binding = choice_in(kTorchrunsBindings, given, "binding");
  if (request.bind.given() && request.bind.value != binding) {
    refuse(given, "'" + request.bind.origin + "' says otherwise", "give one of them");
  }
  request.bind = setting(given, binding);
}

void strategy(const GivenValue& given, LaunchRequest& request) {
  request.strategy = setting(given, find_strategy(choice_of(given, "strategy")));
}

void process_group_backend(const GivenValue& given, LaunchRequest& request) {
  const std::string word = lower_case(given.text);
  const std::string allowed = "; allowed: auto, nccl, gloo, shm, shm+gloo";
  if (word == "mpi" || word == "ucc") {
    refuse(given, "LibTorch has no " + std::string(word == "mpi" ? "MPI" : "UCC") + " inside" + allowed,
           "between CPUs of several nodes '" + given.as_written_with("gloo") + "'");
  }
  if (word == "threads") {
    refuse(given, "threads are ranks of one process, and lrun starts processes" + allowed, example(given, "shm"));
  }
  request.process_group_backend = setting(given, value_in(kGroupBackends, choice_of(given, "backend")));
}

void seed(const GivenValue& given, LaunchRequest& request) {
  const auto number = number_between<std::uint64_t>(given, 0, std::numeric_limits<std::uint64_t>::max());
  request.seed = setting<std::optional<std::uint64_t>>(given, number);
}

void master_port(const GivenValue& given, LaunchRequest& request) {
  request.master_port = setting<std::optional<int>>(given, number_between(given, 0, 65'535));
}

void module(const GivenValue& given, LaunchRequest& request) { request.module = switch_value(given); }

void run_path(const GivenValue& given, LaunchRequest& request) { request.run_path = switch_value(given); }

void no_python(const GivenValue& given, LaunchRequest& request) { request.no_python = switch_value(given); }

void liblrun(const GivenValue& given, LaunchRequest& request) { request.of_liblrun = switch_value(given); }

void nested(const GivenValue& given, LaunchRequest& request) { request.nested = switch_value(given); }

void no_local_rank(const GivenValue& given, LaunchRequest& request) { request.no_local_rank = switch_value(given); }

void use_env(const GivenValue& given, LaunchRequest& request) { request.use_env = switch_value(given); }

void compat(const GivenValue& given, LaunchRequest& request) {
  const std::string command = choice_of(given, "command");
  request.compat = command == "lrun" ? Compat::kLrun : Compat::kTorchrun;
  request.is_old_launch = command == "torch.distributed.launch";
}

/// torchx gives an empty one, for a shorter prefix.
void role(const GivenValue& given, LaunchRequest& request) { request.role = given.text; }

void rdzv_id(const GivenValue& given, LaunchRequest& request) { request.rdzv_id = given.text; }

void standalone(const GivenValue& given, LaunchRequest& request) { request.standalone = switch_value(given); }

void dry_run(const GivenValue& given, LaunchRequest& request) {
  if (given.source == Source::kEnvironment && (given.text == "1" || given.text == "0")) {
    request.dry_run = given.text == "1" ? DryRun::kText : DryRun::kNo;
    return;
  }
  request.dry_run = choice_of(given, "format") == "json" ? DryRun::kJson : DryRun::kText;
}

void verbose(const GivenValue& given, LaunchRequest& request) {
  constexpr int kMost = 9;
  if (given.source != Source::kFlag && (given.text == "true" || given.text == "false")) {
    request.verbosity = given.text == "true" ? 1 : 0;
    return;
  }
  request.verbosity = given.source == Source::kFlag ? std::min(number_between(given, 0, 1'000'000), kMost)
                                                    : number_between(given, 0, kMost);
}

void not_in_this_version(const GivenValue& given, LaunchRequest& /*request*/) {
  if (!given.text.empty()) refuse_unless_neutral(given);
}

void choice_not_in_this_version(const GivenValue& given, LaunchRequest& /*request*/) {
  (void)choice_of(given, "choice");
  refuse_unless_neutral(given);
}

void monitor_interval(const GivenValue& given, LaunchRequest& request) {
  char* stop = nullptr;
  const double seconds = std::strtod(given.text.c_str(), &stop);  // takes what Python's float() takes
  if (given.text.empty() || *stop != '\0' || !(seconds > 0)) {
    refuse(given, "not a number of seconds above 0", example(given, "0.1"));
  }
  constexpr double kMostSeconds = 1;
  request.monitor_interval =
      std::chrono::round<Duration>(std::chrono::duration<double>(std::min(seconds, kMostSeconds)));
}

}  // namespace lrun::launcher::flag_values
