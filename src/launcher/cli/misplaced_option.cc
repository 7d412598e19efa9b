// Finds an option of lrun among PROGRAM's arguments, where it changes nothing. run_request() prints the warning before
// the run.
#include "cli/misplaced_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "base/user_error.h"
#include "cli/flags.h"
#include "plan/host_place.h"

namespace lrun::launcher {
namespace {

using Words = std::vector<std::string>;

/// The options that give the number of workers.
constexpr std::array<std::string_view, 3> kCountOptions{"devices", "nproc-per-node", "num-nodes"};

/// Options that only a launcher has, whatever it starts.
constexpr std::array<std::string_view, 4> kLauncherOptions{"max-restarts", "rdzv-backend", "rdzv-endpoint", "rdzv-id"};

bool gives_number_of_workers(const LaunchRequest& request) {
  return request.devices.given() || request.nproc_per_node.given() || request.num_nodes.given() || names_hosts(request);
}

/// The one of `options` whose whole name is `name`, or nullptr. Prefixes do not count here.
const Flag* flag_named(std::string_view name, const auto& options) {
  for (const std::string_view option : options) {
    const Flag* const flag = find_flag(option);
    const bool is_short = option == "nproc-per-node" && (name == "-np" || name == "-n");
    if (is_short || find_long_flag(name) == flag) return flag;
  }
  return nullptr;
}

/// Whether lrun would start several workers for this value. Without GPUs only numbers ask for several.
bool asks_for_several(const GivenValue& given, bool on_gpus) {
  LaunchRequest asked;
  try {
    given.flag->apply(given, asked);
  } catch (const UserError&) {
    return false;
  }
  if (asked.num_nodes.given()) return asked.num_nodes.value > 1;
  const auto count = (asked.devices.given() ? asked.devices : asked.nproc_per_node).value.number();
  return count ? *count > 1 : on_gpus;
}

/// The first of `options` among the arguments of PROGRAM whose value `matters`.
std::optional<GivenValue> find_misplaced(const Words& command, const auto& options, const auto& matters) {
  for (std::size_t i = 1; i < command.size() && command[i] != "--"; ++i) {
    const std::size_t equals = std::min(command[i].find('='), command[i].size());
    const std::string name = command[i].substr(0, equals);
    const Flag* const flag = flag_named(name, options);
    const bool is_next = equals == command[i].size();
    if (flag == nullptr || (is_next && i + 1 == command.size())) continue;
    GivenValue given{flag, is_next ? command[i + 1] : command[i].substr(equals + 1), Source::kFlag, name};
    if (matters(given)) return given;
  }
  return std::nullopt;
}

/// Whether the text has neither '--nproc-per-node' nor '--nproc_per_node', so that PROGRAM cannot know the option.
bool is_unknown_to(const ProgramText& text, std::string option, const ReadProgram& read) {
  if (text.file.empty()) return false;
  const auto lacks = text.is_python ? script_lacks_word : lacks_word;
  option.erase(0, option.find_first_not_of('-'));
  std::replace(option.begin(), option.end(), '-', '_');
  if (!lacks(text.file, option, read)) return false;
  return option.find('_') == std::string::npos || lacks(text.file, folded_name(option), read);
}

/// Whether a program says in this line that it does not have the option.
bool is_refusal_of(std::string_view line, const std::string& option) {
  constexpr std::array<std::string_view, 6> kWords{"nrecogni",  "nknown",       "o such option",
                                                   "nexpected", "not expected", "nvalid option"};
  const auto is_edge = [line](std::size_t at) {  // also before the line and behind it
    return at >= line.size() || std::string_view(" =',:\"").find(line[at]) != std::string_view::npos;
  };
  std::size_t at = line.find(option);
  while (at != std::string_view::npos && !(is_edge(at - 1) && is_edge(at + option.size()))) {
    at = line.find(option, at + 1);
  }
  return at != std::string_view::npos && std::any_of(kWords.begin(), kWords.end(), [&](std::string_view words) {
           return line.find(words) != std::string_view::npos;
         });
}

/// '--log-dir', '-n', '-np'.
bool is_option(const std::string& word) {
  const bool is_short = word.size() > 1 && word.front() == '-';
  const Flag* const flag = word.starts_with("--") ? find_long_flag(word)
                           : is_short             ? find_short_flag(std::string_view(word).substr(1))
                                                  : nullptr;
  return flag != nullptr && in_this_version(*flag);
}

}  // namespace

std::string hint_about_refused_option(const FailureRecord& record, const std::string& program, const Words& argv) {
  if (record.ending != FailureRecord::Ending::kExited) return {};
  for (const std::string& word : argv) {
    const std::string option = word.substr(0, word.find('='));
    if (!is_option(option)) continue;
    const auto refuses = [&](const std::string& line) { return is_refusal_of(line, option); };
    if (refuses(record.error) || std::any_of(record.evidence.begin(), record.evidence.end(), refuses)) {
      return fmt::format("for lrun's own '{0}' write it before PROGRAM: 'lrun {0} … {1}'", option, program);
    }
  }
  return {};
}

std::string warn_about_misplaced_option(const LaunchPlan& plan, const LaunchRequest& request,
                                        const ProgramFacts& program, const ReadProgram& read) {
  const bool on_gpus = plan.accelerator.value == DeviceKind::kGpu;
  const auto for_several = [&](const GivenValue& given) { return asks_for_several(given, on_gpus); };
  std::optional<GivenValue> option;
  if (plan.world_size == 1 && !gives_number_of_workers(request)) {
    option = find_misplaced(request.command, kCountOptions, for_several);
  }
  const std::string_view result =
      option ? "so lrun starts one worker; for more, write" : "not of lrun; for lrun, write";
  if (!option) option = find_misplaced(request.command, kLauncherOptions, [](const GivenValue&) { return true; });
  if (!option) return {};
  const ProgramText text = text_of(request, program);
  if (!is_unknown_to(text, option->origin, read)) return {};
  const std::string written = option->as_written();
  return fmt::format("'{}' is an argument of '{}', {} 'lrun {} {}{} …'", written, text.file, result, written,
                     request.module ? "-m " : "", request.command.front());
}

}  // namespace lrun::launcher
