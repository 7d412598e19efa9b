// The text of --print-config: every row of the flag table as a line of TOML with its source. main() prints it; --config
// reads it again.
#include "cli/print_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "cli/read_value.h"
#include "cli/toml_text.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kSourceColumn = 40;

/// The source without control characters, which a file's name may have, so that it stays on one line.
std::string source_of(const GivenValue& given) {
  std::string source = given.place.empty() ? given.origin : given.place;
  std::replace_if(
      source.begin(), source.end(), [](char letter) { return static_cast<unsigned char>(letter) < ' '; }, '?');
  return source;
}

std::string with_source(std::string line, const std::string& source) {
  return fmt::format("{:<{}}  # {}\n", std::move(line), kSourceColumn, source);
}

/// The name in the table, with '@RANKS' where the value is for some ranks.
std::string key_of(const GivenValue& given) {
  std::string key(given.flag->name);
  if (!given.ranks.empty()) key += "@" + given.ranks;
  return toml_key(key);
}

std::string printed_value(const GivenValue& given) {
  const bool once = given.text.empty() || given.text == "1" || given.text == "0";
  if (given.flag->value == ValueKind::kNone && (once || !given.flag->counted))
    return switch_value(given) ? "true" : "false";
  return given.flag->repeatable ? toml_string(given.text) : toml_value(given.text);
}

/// Writes bytes that are not UTF-8 as '\xff'.
std::string with_bytes_written_out(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t bytes = first_character(text).bytes;
    shown +=
        bytes == 0 ? written_out_byte(static_cast<unsigned char>(text.front())) : std::string(text.substr(0, bytes));
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return shown;
}

/// A value that TOML cannot hold becomes a comment, so that --config can still read the other lines.
std::string setting_line(const std::string& before, const GivenValue& given, const std::string& after) {
  const std::string value = printed_value(given);
  const std::string shown = with_bytes_written_out(value);
  if (shown == value) return with_source(before + value + after, source_of(given));
  return with_source("# " + before + shown + after, source_of(given) + ", not UTF-8: a TOML file cannot have it");
}

std::string array_of(const std::vector<GivenValue>& values) {
  std::string text = key_of(values.front()) + " = [\n";
  for (const GivenValue& given : values) text += setting_line("  ", given, ",");
  return text + "]\n";
}

/// A setting that was not given. It is a comment because its default may depend on the machine.
std::string default_line(const Flag& flag) {
  const std::string_view value = flag.value == ValueKind::kNone ? "false" : flag.default_value;
  return value.empty() ? fmt::format("# {}\n", flag.name)
                       : with_source(fmt::format("# {} = {}", flag.name, value), "default");
}

std::string lines_of(const std::vector<GivenValue>& values) {
  std::vector<std::vector<GivenValue>> of_ranks;  // those of equal ranks
  for (const GivenValue& given : values) {
    const auto same = std::find_if(of_ranks.begin(), of_ranks.end(),
                                   [&](const auto& others) { return others.front().ranks == given.ranks; });
    (same == of_ranks.end() ? of_ranks.emplace_back() : *same).push_back(given);
  }
  std::string text;
  for (const std::vector<GivenValue>& equal : of_ranks) {
    const Flag& flag = *equal.front().flag;
    const bool is_list = flag.repeatable && (equal.size() > 1 || !flag.per_rank);
    text += is_list ? array_of(equal) : setting_line(key_of(equal.back()) + " = ", equal.back(), "");
  }
  return text;
}

}  // namespace

std::string config_text(const std::vector<GivenValue>& values) {
  std::string text;
  for (const Flag& flag : flag_table()) {
    if (flag.action != FlagAction::kSetting) continue;
    std::vector<GivenValue> given;
    std::copy_if(values.begin(), values.end(), std::back_inserter(given),
                 [&](const GivenValue& value) { return value.flag == &flag; });
    if (!given.empty()) {
      text += lines_of(given);
    } else if (in_this_version(flag)) {
      text += default_line(flag);
    }
  }
  return text;
}

}  // namespace lrun::launcher
