#include "cli/output_values.h"

#include <algorithm>

#include "cli/flag_values.h"
#include "cli/read_value.h"

namespace lrun::launcher::flag_values {
namespace {

/// As torchrun: an empty variable says nothing, where torchrun's default is empty too.
bool says_nothing(const GivenValue& given) { return given.text.empty() && given.source == Source::kEnvironment; }

void take_streams(const GivenValue& given, Setting<RankStreams>& to) {
  const auto streams = parse_rank_streams(given.text);
  if (!streams) {
    refuse(given,
           "not a choice of streams; allowed: 0 none, 1 stdout, 2 stderr, 3 both, or by local rank, as in 0:3,1:1",
           "for example '" + given.as_written_with("3") + "'");
  }
  if (*streams != RankStreams{}) to = setting(given, *streams);  // '0' is what both start from
}

constexpr std::uint64_t kLeastFileBytes = 4096;

/// '100', '64K', '1M', '2G'; powers of 1024. Empty when it is none of these or does not fit.
std::optional<std::uint64_t> parse_bytes(std::string text) {
  constexpr std::string_view kUnits = "KMGkmg";
  const std::size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  if (unit != std::string_view::npos) text.pop_back();
  const auto number = whole_number<std::uint64_t>(text);
  const unsigned shift = unit == std::string_view::npos ? 0 : static_cast<unsigned>(unit % 3 + 1) * 10;
  if (!number || *number > (std::uint64_t{1} << 62 >> shift)) return std::nullopt;
  return *number << shift;
}

/// Words between commas, where two commas are one that belongs to the word.
std::vector<std::string> filters_of(const std::string& text) {
  std::vector<std::string> filters;
  std::string word;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const bool comma = i < text.size() && text[i] == ',';
    if (comma && i + 1 < text.size() && text[i + 1] == ',') {
      word += ',';
      ++i;
    } else if (comma || i == text.size()) {
      if (!word.empty()) filters.push_back(std::move(word));
      word.clear();
    } else {
      word += text[i];
    }
  }
  return filters;
}

}  // namespace

void output(const GivenValue& given, LaunchRequest& request) {
  const std::string word = choice_of(given, "way to show output");
  const ConsoleMode mode = word == "fold"    ? ConsoleMode::kFold
                           : word == "raw"   ? ConsoleMode::kRaw
                           : word == "rank0" ? ConsoleMode::kRank0
                           : word == "quiet" ? ConsoleMode::kQuiet
                                             : ConsoleMode::kPrefix;
  request.output.console = setting(given, mode);
}

void timestamps(const GivenValue& given, LaunchRequest& request) { request.output.timestamps = switch_value(given); }

void pty(const GivenValue& given, LaunchRequest& request) { request.output.pty = switch_value(given); }

void standard_input(const GivenValue& given, LaunchRequest& request) { request.standard_input = switch_value(given); }

void log_max_bytes(const GivenValue& given, LaunchRequest& request) {
  const auto bytes = parse_bytes(given.text);
  if (!bytes || (*bytes > 0 && *bytes < kLeastFileBytes)) {
    refuse(given, "not a size of log files; allowed: 0 for no limit, or 4K and more, with K, M or G",
           example(given, "100M"));
  }
  request.output.max_file_bytes = *bytes;
}

void log_dir(const GivenValue& given, LaunchRequest& request) {
  if (says_nothing(given)) return;
  if (given.text.empty()) refuse(given, "the name of a directory is missing", "'/dev/null' switches log files off");
  request.log_dir = setting(given, given.text);
}

void redirects(const GivenValue& given, LaunchRequest& request) { take_streams(given, request.output.redirects); }

void tee(const GivenValue& given, LaunchRequest& request) { take_streams(given, request.output.tee); }

void local_ranks_filter(const GivenValue& given, LaunchRequest& request) {
  std::vector<int> ranks;
  std::size_t start = 0;
  while (start <= given.text.size() && !given.text.empty()) {
    const std::size_t end = std::min(given.text.find(',', start), given.text.size());
    const auto rank = number_in<int>(given.text.substr(start, end - start));
    if (!rank || *rank < 0) {
      refuse(given, "not a list of local ranks; allowed: numbers with commas", example(given, "0,1,2"));
    }
    ranks.push_back(*rank);
    start = end + 1;
  }
  request.output.local_ranks = std::move(ranks);
}

void duplicate_stdout_filters(const GivenValue& given, LaunchRequest& request) {
  request.output.stdout_filters = filters_of(given.text);
}

void duplicate_stderr_filters(const GivenValue& given, LaunchRequest& request) {
  request.output.stderr_filters = filters_of(given.text);
}

void log_line_prefix_template(const GivenValue& given, LaunchRequest& request) {
  request.output.prefix_template = given.text;
}

}  // namespace lrun::launcher::flag_values
