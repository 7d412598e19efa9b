// The verbs of lrun with their options, and the reader of the words after a verb. parse_command_line() calls
// parse_verb(); src/launcher/commands carries the VerbRequest out.
#include "cli/verb_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/nearest.h"
#include "base/split.h"
#include "base/user_error.h"
#include "base/whole_number.h"
#include "cli/flags.h"
#include "cli/foreign_options.h"
#include "cli/unknown_word.h"

namespace lrun::launcher {
namespace {

/// 'RANK:PID', or only 'PID', which has its place in the list as rank. 'RANK:0' is a rank that has exited.
RankProcess read_process(std::string_view word, int place, const std::string& list) {
  const auto colon = word.find(':');
  const auto rank = colon == std::string_view::npos ? std::optional(place) : natural_number(word.substr(0, colon));
  const auto pid = natural_number(colon == std::string_view::npos ? word : word.substr(colon + 1));
  if (rank && pid && (*pid > 0 || colon != std::string_view::npos)) return {*rank, *pid};
  throw UserError("'--pids " + list + "': '" + std::string(word) + "' is not a process",
                  "write '--pids 4242,4243' or '--pids 0:4242,1:4243' (RANK:PID)");
}

void json(const std::string&, VerbRequest& request) { request.json = true; }

void watch(const std::string&, VerbRequest& request) { request.watch = true; }

void html(const std::string& value, VerbRequest& request) {
  if (value.empty()) throw UserError("'--html' needs the name of a file", "write '--html report.html'");
  request.html_file = value;
}

void goodput(const std::string&, VerbRequest& request) { request.goodput = true; }

void pids(const std::string& value, VerbRequest& request) {
  constexpr std::size_t kMost = 4096;
  std::string_view rest = value;
  request.processes.clear();
  while (request.processes.size() < kMost) {
    const auto comma = rest.find(',');
    request.processes.push_back(read_process(rest.substr(0, comma), static_cast<int>(request.processes.size()), value));
    if (comma == std::string_view::npos) return;
    rest.remove_prefix(comma + 1);
  }
  throw UserError("'--pids' takes at most 4096 processes", "choose fewer processes");
}

/// The value of '--tail' or '--attempt'.
int number_of_option(const char* option, const std::string& value) {
  if (const auto count = natural_number(value)) return *count;
  if (value == "last" || value == "latest" || value == "all") {
    throw UserError(fmt::format("'{} {}' is not a number", option, value),
                    fmt::format("leave it out: {} is meant", value == "all" ? "all of it" : "the last one"));
  }
  const auto positive = natural_number(std::string_view(value).substr(value.starts_with('-') ? 1 : 0));
  throw UserError(fmt::format("'{} {}' is not a number", option, value),
                  fmt::format("write '{} {}'", option, positive.value_or(2)));
}

void follow(const std::string&, VerbRequest& request) { request.follow = true; }

void grep(const std::string& value, VerbRequest& request) { request.text = value; }

void attempt(const std::string& value, VerbRequest& request) { request.attempt = number_of_option("--attempt", value); }

void tail(const std::string& value, VerbRequest& request) { request.last_lines = number_of_option("--tail", value); }

void stream(const std::string& value, VerbRequest& request) {
  if (value != "stdout" && value != "stderr") {
    throw choice_error("'--stream " + value + "': there is no such stream", value, {"stdout", "stderr"},
                       "write '--stream stdout' or '--stream stderr'");
  }
  request.stream = value == "stdout" ? LogStream::kOut : LogStream::kErr;
}

void brief(const std::string&, VerbRequest& request) { request.brief = true; }

void show_only(const std::string&, VerbRequest& request) { request.dry_run = true; }

void verbose(const std::string&, VerbRequest& request) { request.verbose = true; }

void hosts(const std::string& value, VerbRequest& request) {
  constexpr std::size_t kMost = 256;
  if (value.empty()) throw UserError("'--hosts' names no host", "write '--hosts node1,node2'");
  request.hosts = parse_host_list(value, "--hosts " + value);
  if (request.hosts.size() > kMost) {
    throw UserError("'--hosts' takes at most 256 hosts", "split them over several calls");
  }
}

constexpr VerbOption kJson{"json", "", "Print one JSON object.", json};

constexpr VerbOption kDoctorOptions[] = {
    {"hosts", "HOST,...", "Also try to reach these hosts over TCP and with ssh.", hosts},
    kJson,
    {"verbose", "", "Also show passed checks.", verbose, 'v'},
};

constexpr VerbOption kJsonAlone[] = {kJson};

constexpr VerbOption kStatusOptions[] = {
    {"json", "", "Print one JSON object; with --watch one on a line for each look.", json},
    {"watch", "",
     "Look again every 2 seconds, until the runs end, and print how each ended. On a terminal the table is drawn in "
     "its place, and 'q' or Ctrl-C ends only the watching.",
     watch},
};

constexpr VerbOption kLogsOptions[] = {
    {"attempt", "N", "Print what was written in this attempt; 0 is the first. Default: the last one.", attempt},
    {"follow", "",
     "Also print what is being written, and the next attempts, until the run ends. The default RUN is the only one "
     "that is alive.",
     follow, 'f'},
    {"grep", "TEXT", "Print only lines that have TEXT.", grep},
    {"stream", "NAME", "Print only what was written to stdout, or only what was written to stderr.", stream},
    {"tail", "N", "Print only the last N lines of each rank's stdout and of its stderr.", tail},
};

constexpr VerbOption kReportOptions[] = {
    {"goodput", "",
     "Print what the time of the run's job was spent on instead: useful, lost, starting, stopping, waiting.", goodput},
    {"html", "FILE", "Also write the report as one self-contained HTML page with a plot; with - only that, to stdout.",
     html},
    {"json", "", "With --goodput: print one JSON object.", json},
};

constexpr VerbOption kAgainOptions[] = {
    {"dry-run", "", "Only print the command line, for a shell.", show_only},
};

constexpr VerbOption kStackOptions[] = {
    {"brief", "",
     "Print only one sentence, within 3 seconds. Native stacks are skipped where the Python stack is known.", brief},
    kJson,
    {"pids", "[RANK:]PID,...", "Look at these processes instead of those of a run.", pids},
};

[[noreturn]] void refuse_argument(const Verb& verb, const std::string& problem) {
  throw UserError(fmt::format("'lrun {}' takes {}", verb.name, problem),
                  fmt::format("usage: lrun {}{}{}; a program of that name is 'lrun -- {}'", verb.name,
                              verb.options.empty() ? "" : " [options]",
                              verb.arguments.empty() ? "" : " " + std::string(verb.arguments), verb.name));
}

void take_run(const Verb& verb, const std::string& word, VerbRequest& request) {
  if (word.empty()) throw UserError("the name of RUN is empty", "an unset variable in quotes gives an empty word");
  if (!request.run.empty()) refuse_argument(verb, "one RUN, got '" + request.run + "' and '" + word + "'");
  request.run = word;
}

void take_run_to_watch(const Verb& verb, const std::string& word, VerbRequest& request) {
  if (request.watch && natural_number(word)) {
    throw UserError("'--watch' takes no value, got '" + word + "'", "write only '--watch': it looks every 2 seconds");
  }
  take_run(verb, word, request);
}

[[noreturn]] void take_no_host(const Verb&, const std::string& word, VerbRequest&) {
  const bool is_program = word.find('/') != std::string::npos || word.ends_with(".py");
  throw UserError("'lrun doctor' takes no argument, got '" + word + "'",
                  is_program ? fmt::format("'lrun --dry-run {}' shows how it would be started", word)
                             : did_you_mean("lrun doctor --hosts " + word));
}

[[noreturn]] void take_no_run(const Verb&, const std::string& word, VerbRequest&) {
  throw UserError("'lrun runs' takes no argument, got '" + word + "'",
                  "it lists all runs that are kept; 'lrun report RUN' shows one, and lrun removes old ones itself");
}

/// A list of ranks, or else RUN, which may be digits, too: an id begins with a date.
void take_run_or_ranks(const Verb& verb, const std::string& word, VerbRequest& request) {
  constexpr int kMostRank = 99'999;
  const std::optional<RankRanges> ranks = parse_ranks(word);
  if (!ranks || ranks->back().second > kMostRank) return take_run(verb, word, request);
  if (request.run == "rank" || request.run == "ranks") {
    throw UserError(fmt::format("no run '{}'", request.run), did_you_mean(fmt::format("lrun {} {}", verb.name, word)));
  }
  request.ranks.insert(request.ranks.end(), ranks->begin(), ranks->end());
}

void take_shell(const Verb& verb, const std::string& word, VerbRequest& request) {
  const std::vector<std::string> shells{"bash", "zsh", "fish"};
  if (std::find(shells.begin(), shells.end(), word) == shells.end()) {
    throw choice_error("no completions for '" + word + "'", word, shells, "write 'bash', 'zsh' or 'fish'");
  }
  if (!request.shell.empty()) refuse_argument(verb, "one SHELL, got '" + request.shell + "' and '" + word + "'");
  request.shell = word;
}

/// 'lrun help stack' is 'lrun stack --help', and 'lrun help --devices' the part of 'lrun --help' about it.
void take_verb(const Verb& verb, const std::string& word, VerbRequest& request) {
  if (request.help || request.flag != nullptr) refuse_argument(verb, "one VERB");
  const Verb* const asked = find_verb(word);
  if (asked == nullptr) {
    const bool is_letter = word.starts_with('-') && !word.starts_with("--");
    const Flag* const flag =
        is_letter ? find_short_flag(word.substr(1)) : find_long_flag(word.starts_with('-') ? word : "--" + word);
    if (flag != nullptr && in_this_version(*flag)) {
      request.flag = flag;
      return;
    }
    std::vector<std::string> known;
    for (const Verb& each : verb_table()) known.emplace_back(each.name);
    throw choice_error("no verb '" + word + "'", word, known,
                       "'lrun -h' lists the verbs, and 'lrun --help' describes every option");
  }
  request = {.kind = asked->kind, .help = true};
}

constexpr Verb kVerbs[] = {
    {"status", VerbRequest::Kind::kStatus, "what runs here, and what each rank does",
     "Shows each live run with its start time and attempt, and for each rank its state, how long it has printed "
     "nothing, CPU, memory, GPUs, training steps a second where known, and its last line. Ranks that are alike share a "
     "line; a rank that differs from the others is marked. RUN selects one of the runs.",
     kStatusOptions, "[RUN]", take_run_to_watch},
    {"logs", VerbRequest::Kind::kLogs, "what ranks of a run wrote",
     "Prints what the ranks of a run wrote, one rank after the other, with the rank in front. RANK is '3', '0,2' or "
     "'0-3,7'; without one all ranks of this host are printed. The default RUN is the last one. On a terminal colours "
     "and other escape sequences of workers are left out.",
     kLogsOptions, "[RUN] [RANK...]", take_run_or_ranks},
    {"runs", VerbRequest::Kind::kRuns, "the runs that are kept, and how each ended",
     "Lists the runs that are kept, the last one at the end: when each began, how long it took, how many workers it "
     "had, how it ended, and what they ran.",
     kJsonAlone, "", take_no_run},
    {"report", VerbRequest::Kind::kReport, "what happened in a run",
     "Shows the verdict of a run again, with a timeline. The default RUN is the last one.", kReportOptions, "[RUN]",
     take_run},
    {"explain", VerbRequest::Kind::kExplain, "why a run ended, and what to type next",
     "Says in at most 4 kB why a run ended: the cause, the rank to blame, its place and last lines, what became of the "
     "others, how earlier attempts ended, and what to type next. Words that look like secrets are left out. Of a run "
     "that goes on it says which ranks are quiet. The default RUN is the last one.",
     kJsonAlone, "[RUN]", take_run},
    {"again", VerbRequest::Kind::kAgain, "run the last run's command line again",
     "Runs the command line of a run again, in the directory in which it was typed, with the environment of now. The "
     "default RUN is the last one.",
     kAgainOptions, "[RUN]", take_run},
    {"stack", VerbRequest::Kind::kStack, "the stack of every rank of a run",
     "Shows where every rank of a running job is: its system call, its native stack and its Python stack. Identical "
     "stacks are grouped. RUN may be left out when only one job is running.",
     kStackOptions, "[RUN]", take_run},
    {"doctor", VerbRequest::Kind::kDoctor, "problems of this machine that break training",
     "Checks what training needs, quickly and without using a GPU: GPUs, their driver, memory and links, Python with "
     "its torch, CUDA and NCCL, /dev/shm, limits, CPU quota, names, loopback, clock, and disk space for logs. Prints "
     "every problem with its fix and exits with 1; without problems it prints one line and exits with 0.",
     kDoctorOptions, "", take_no_host},
    {"completion",
     VerbRequest::Kind::kCompletion,
     "print the completions for bash, zsh or fish",
     "Prints what makes a shell complete lrun's options, their values, verbs and runs. For bash, in ~/.bashrc: source "
     "<(lrun completion bash). For zsh: lrun completion zsh > DIR/_lrun, where DIR is a directory of $fpath. For fish: "
     "lrun completion fish > ~/.config/fish/completions/lrun.fish.",
     {},
     "SHELL",
     take_shell},
    {"help",
     VerbRequest::Kind::kHelp,
     "the help of a verb",
     "Shows what 'lrun VERB --help' shows, of an option what 'lrun --help' says about it, or else 'lrun -h'.",
     {},
     "[VERB]",
     take_verb},
};

/// '--tail N', as it is typed.
std::string with_placeholder(const VerbOption& option) {
  return "--" + std::string(option.name) + (option.placeholder.empty() ? "" : " " + std::string(option.placeholder));
}

/// The name of an option of a verb in 'tail', 'docker logs', 'watch' and their like.
struct OtherName {
  VerbRequest::Kind verb;
  std::string_view theirs;
  std::string_view ours;  ///< for hint_to_type()
};
constexpr std::string_view kLastIsMeant = "leave it out: the last run is meant where none is named";
constexpr std::string_view kEveryRank = "leave it out: every rank is shown";
constexpr OtherName kOtherNames[] = {
    {VerbRequest::Kind::kLogs, "-n", "--tail"},
    {VerbRequest::Kind::kLogs, "--lines", "--tail"},
    {VerbRequest::Kind::kLogs, "--head", "lrun logs | head"},
    {VerbRequest::Kind::kLogs, "--since", "--tail 100"},
    {VerbRequest::Kind::kLogs, "-r", "ranks are plain words: 'lrun logs 0 2'"},
    {VerbRequest::Kind::kLogs, "--ignore-case", "lrun logs | grep -i TEXT"},
    {VerbRequest::Kind::kLogs, "--stdout", "--stream stdout"},
    {VerbRequest::Kind::kLogs, "--stderr", "--stream stderr"},
    {VerbRequest::Kind::kStatus, "-f", "--watch"},
    {VerbRequest::Kind::kStatus, "--follow", "--watch"},
    {VerbRequest::Kind::kStatus, "--interval", "--watch"},
    {VerbRequest::Kind::kRuns, "--all", "leave it out: all runs that are kept are listed"},
    {VerbRequest::Kind::kLogs, "--last", "leave it out: the last run is meant, and '--tail N' has its last lines"},
    {VerbRequest::Kind::kRuns, "--last", "leave it out: the last run stands at the end"},
    {VerbRequest::Kind::kReport, "--last", kLastIsMeant},
    {VerbRequest::Kind::kExplain, "--last", kLastIsMeant},
    {VerbRequest::Kind::kAgain, "--last", kLastIsMeant},
    {VerbRequest::Kind::kStack, "--rank", kEveryRank},
    {VerbRequest::Kind::kStatus, "--rank", kEveryRank},
    {VerbRequest::Kind::kExplain, "--rank",
     "leave it out: the rank to blame is explained; 'lrun logs 1' has rank 1's lines"},
    {VerbRequest::Kind::kReport, "--rank",
     "leave it out: a report is about all ranks; 'lrun logs 1' has rank 1's lines"},
    {VerbRequest::Kind::kExplain, "--html", "lrun report --html report.html"},
    {VerbRequest::Kind::kStatus, "--html", "lrun report --html report.html"},
    {VerbRequest::Kind::kExplain, "--goodput", "lrun report --goodput"},
    {VerbRequest::Kind::kStatus, "--goodput", "lrun report --goodput"},
    {VerbRequest::Kind::kRuns, "--goodput", "lrun report --goodput"},
    {VerbRequest::Kind::kStack, "--pid", "--pids"},
    {VerbRequest::Kind::kRuns, "-n", "lrun runs | tail"},
    {VerbRequest::Kind::kReport, "--verbose", "leave it out: a report has all that is known"},
    {VerbRequest::Kind::kStack, "--watch", "lrun status --watch"},
    {VerbRequest::Kind::kDoctor, "--fix", "leave it out: 'lrun doctor' changes nothing, and says what to do"},
    {VerbRequest::Kind::kReport, "-1", "'lrun runs' names the runs before the last one"},
};

/// The option that was probably meant. Empty: none of them.
std::string option_meant_by(const Verb& verb, const std::string& name) {
  for (const auto& [kind, theirs, ours] : kOtherNames) {
    if (kind == verb.kind && name == theirs) return std::string(ours);
  }
  const bool is_letter = name.size() == 2;
  const bool is_count = name.find_first_not_of("0123456789", 1) == std::string::npos;
  if (is_count && verb.kind == VerbRequest::Kind::kLogs) return "--tail " + name.substr(1);
  std::vector<std::string> known{"--help"};
  for (const VerbOption& option : verb.options) {
    if (is_letter && lower_case(name)[1] == option.name.front()) return with_placeholder(option);  // no two begin so
    known.push_back("--" + std::string(option.name));
  }
  return nearest_word(name, known).value_or("");
}

std::string hint_about_unknown_option(const Verb& verb, const std::string& name) {
  const bool takes_ranks = verb.arguments.find("RANK") != std::string_view::npos;
  if (takes_ranks && folded_name(name).starts_with("--rank")) {
    return fmt::format("ranks are plain words: 'lrun {} 0 2'", verb.name);
  }
  if (const std::string meant = option_meant_by(verb, name); !meant.empty()) return hint_to_type(meant);
  if (verb.kind == VerbRequest::Kind::kAgain) {
    return "'lrun again --dry-run' prints the command line, which you can change and type";
  }
  if (verb.kind == VerbRequest::Kind::kHelp) return "'lrun --help' describes every option";
  std::vector<std::string> options;
  for (const VerbOption& option : verb.options) options.push_back("'" + with_placeholder(option) + "'");
  return options.empty() ? fmt::format("it has none; usage: lrun {} {}", verb.name, verb.arguments)
                         : "it has " + join_words(options);
}

/// The option with this name, or the only one with this prefix.
const VerbOption& find_option(const Verb& verb, const std::string& name) {
  const std::string folded = folded_name(name);
  const VerbOption* found = nullptr;
  for (const VerbOption& option : verb.options) {
    if (option.letter != '\0' && name == std::string{'-', option.letter}) return option;
    const std::string candidate = "--" + std::string(option.name);
    if (candidate == folded) return option;
    if (folded.size() > 2 && candidate.starts_with(folded))
      found = &option;  // a test makes sure that no two options share a prefix
  }
  if (found == nullptr) {
    throw UnknownWord("unknown option", name, fmt::format(" of 'lrun {}'", verb.name),
                      hint_about_unknown_option(verb, name));
  }
  return *found;
}

class VerbReader {
 public:
  VerbReader(const Verb& verb, const std::vector<std::string>& words) : verb_(verb), words_(words) {
    request_.kind = verb.kind;
  }

  VerbRequest run() {
    read_words([this] { return read_word(); });
    if (verb_.kind == VerbRequest::Kind::kCompletion && request_.shell.empty() && !request_.help) {
      throw UserError("'lrun completion' needs the name of a shell", "write 'lrun completion bash', or zsh or fish");
    }
    if (verb_.kind == VerbRequest::Kind::kReport && request_.json && !request_.goodput && !request_.help) {
      throw UserError("'lrun report --json' needs '--goodput'",
                      "'lrun report --goodput --json' has the times, and 'lrun explain --json' the cause");
    }
    if (request_.goodput && request_.html_file == "-" && !request_.help) {
      throw UserError("'--goodput' and '--html -' both write to stdout", "write '--html report.html', which has both");
    }
    return std::move(request_);
  }

 private:
  /// \return false when no word is left that counts
  bool read_word() {
    if (next_ == words_.size()) return false;
    const std::string& word = words_[next_++];
    if (word == "-h" || word == "--help") {
      request_.help = true;
      return false;
    }
    if (word.size() > 1 && word.front() == '-' && verb_.kind != VerbRequest::Kind::kHelp) {
      read_option(word);
    } else {
      read_argument(word);
    }
    return true;
  }

  void read_option(const std::string& word) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    const VerbOption& option = find_option(verb_, name);
    std::optional<std::string> value;
    if (equals < word.size()) value = word.substr(equals + 1);
    if (option.placeholder.empty() && value) {
      throw UserError("'" + name + "' takes no value, got '" + *value + "'", "write only '" + name + "'");
    }
    if (!option.placeholder.empty() && !value) {
      if (next_ == words_.size()) {
        throw UserError("'" + name + "' needs a value", "write '" + with_placeholder(option) + "'");
      }
      value = words_[next_++];
    }
    option.apply(value.value_or(""), request_);
  }

  void read_argument(const std::string& word) {
    if (verb_.take == nullptr) refuse_argument(verb_, "no argument, got '" + word + "'");
    verb_.take(verb_, word, request_);
  }

  const Verb& verb_;
  const std::vector<std::string>& words_;
  std::size_t next_ = 0;
  VerbRequest request_;
};

}  // namespace

std::span<const Verb> verb_table() { return kVerbs; }

const Verb* find_verb(std::string_view name) {
  for (const Verb& verb : kVerbs) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

VerbRequest parse_verb(const Verb& verb, const std::vector<std::string>& words) {
  return VerbReader(verb, words).run();
}

}  // namespace lrun::launcher
