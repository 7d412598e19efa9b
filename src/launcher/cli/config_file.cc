// Reads settings from a TOML text into GivenValues, as if they were options. parse_command_line() calls it for
// --config, LRUN_CONFIG and lrun.toml.
#include "cli/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

// The assertions of toml++ do not hold for every malformed text, and NDEBUG turns them into assumptions. Without them
// the code that follows reports the error.
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "base/appended_file.h"
#include "base/nearest.h"
#include "base/split.h"
#include "base/user_error.h"
#include "base/utf8.h"
#include "cli/read_value.h"
#include "cli/toml_text.h"
#include "cli/unknown_word.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostConfigBytes = 1U << 20;

std::string place_of(const std::string& path, const toml::source_region& source) {
  return fmt::format("{}:{}", path, source.begin.line);
}

bool is_setting(const Flag& flag) { return flag.action == FlagAction::kSetting; }

std::string hint_about_name(const std::string& name, bool is_section) {
  if (is_section) return fmt::format("settings have no sections: leave the line '[{}]' out", name);
  if (name == "program" || name == "script" || name == "command") {
    return "PROGRAM and its arguments stand on the command line";
  }
  std::vector<std::string> names;
  for (const Flag& flag : flag_table()) {
    if (!is_setting(flag)) continue;
    for (const std::string& long_name : long_names_of(flag)) names.push_back(long_name.substr(2));
  }
  const std::string folded = folded_name("--" + name);
  const auto beginning = std::find_if(names.begin(), names.end(), [&](const std::string& known) {
    return name.size() > 2 && folded_name("--" + known).starts_with(folded);
  });
  if (beginning != names.end()) return did_you_mean(*beginning);
  const bool is_variable = lower_case(name).starts_with("lrun_");
  return nearest_hint(is_variable ? lower_case(name).substr(5) : name, names,
                      "settings are the long options of 'lrun --help' without their dashes; those of PROGRAM stand "
                      "behind it, on the command line");
}

const Flag* find_setting(std::string_view name) {
  const Flag* const flag = find_long_flag("--" + std::string(name));
  return flag != nullptr && is_setting(*flag) ? flag : nullptr;
}

/// A string, number or boolean as an option would have it; empty for anything else.
std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return from_ascii(text->get());
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* boolean = node.as_boolean()) return boolean->get() ? "true" : "false";
  return std::nullopt;
}

/// '0,1' for [0, 1].
std::optional<std::string> list_text(const toml::node& node) {
  if (!node.is_array()) return std::nullopt;
  std::vector<std::string> texts;
  for (const toml::node& element : *node.as_array()) {
    std::optional<std::string> text = scalar_text(element);
    if (!text) return std::nullopt;
    texts.push_back(*std::move(text));
  }
  return fmt::format("{}", fmt::join(texts, ","));
}

class ConfigReader {
 public:
  ConfigReader(const std::string& path, std::vector<GivenValue>& values) : path_(path), values_(values) {}

  void read(const toml::table& table) {
    const std::vector<Entry> entries = in_order(table);
    auto next = entries.begin();
    read_words([&] {
      if (next == entries.end()) return false;
      const auto& [key, node] = *next++;
      read_setting(key, *node);
      return true;
    });
  }

 private:
  using Entry = std::pair<std::string, const toml::node*>;

  /// In the order of the file, so that the first mistake is reported. The parser's table is sorted by name.
  static std::vector<Entry> in_order(const toml::table& table) {
    std::vector<Entry> entries;
    for (const auto& [key, node] : table) entries.emplace_back(from_ascii(key.str()), &node);
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& left, const Entry& right) {
      return left.second->source().begin < right.second->source().begin;
    });
    return entries;
  }

  void read_setting(const std::string& key, const toml::node& node) {
    const std::string place = place_of(path_, node.source());
    const std::size_t at = std::min(key.find('@'), key.size());
    const Flag* const flag = find_setting(key.substr(0, at));
    if (flag == nullptr || (at < key.size() && !flag->per_rank)) {
      throw UnknownWord(place + ": unknown setting", key, "",
                        hint_about_name(key, node.is_table() && !node.as_table()->is_inline()));
    }
    const GivenValue given{flag, {}, Source::kConfig, key, place, key.substr(std::min(at + 1, key.size()))};
    if (flag->repeatable && node.is_array()) {
      for (const toml::node& element : *node.as_array()) add(given, element, {});
    } else if (flag->repeatable && node.is_table()) {
      for (const auto& [name, value] : in_order(*node.as_table())) add(given, *value, name + "=");
    } else {
      if (!flag->repeatable) refuse_second(given);
      add(given, node, {});
    }
  }

  void add(GivenValue given, const toml::node& node, const std::string& before) {
    given.place = place_of(path_, node.source());
    const std::optional<std::string> text = scalar_text(node);
    if (!text) {
      throw UserError(fmt::format("{}: '{}' is neither text nor a number", given.place, given.origin),
                      fmt::format("write '{}'", given.as_written_with(list_text(node).value_or("..."))));
    }
    given.text = before + *text;
    if (given.flag->value == ValueKind::kNone && !given.flag->counted && !node.is_boolean()) {
      refuse(given, "neither true nor false",
             fmt::format("write '{}', or leave it out", given.as_written_with("true")));
    }
    if (before.empty() && node.is_boolean() && !take_boolean(given)) return;
    values_.push_back(std::move(given));
  }

  /// \return false when the value says that the option was not given.
  static bool take_boolean(GivenValue& given) {
    if (given.flag->value == ValueKind::kNone) return true;
    if (given.flag->value == ValueKind::kRequired) {
      throw UserError(fmt::format("{}: '{} = {}' is not a switch", given.place, given.origin, given.text),
                      fmt::format("write '{} = {}'", given.origin, given.flag->placeholder));
    }
    const bool given_at_all = given.text == "true";
    given.text = words_of(given.flag->choices).front();
    return given_at_all;
  }

  void refuse_second(const GivenValue& given) const {
    const auto first =
        std::find_if(values_.begin(), values_.end(), [&](const GivenValue& other) { return other.flag == given.flag; });
    if (first == values_.end()) return;
    throw UserError(fmt::format("{}: '{}' was already given in line {}", given.place, given.origin,
                                first->place.substr(path_.size() + 1)),
                    "remove one of them");
  }

  const std::string& path_;
  std::vector<GivenValue>& values_;
};

void refuse_other_than_utf8(std::string_view text, const std::string& path) {
  const std::string_view valid = text.substr(0, valid_bytes(text));
  if (valid.size() == text.size()) return;
  const auto line = std::count(valid.begin(), valid.end(), '\n') + 1;
  throw UserError(fmt::format("{}:{}: not TOML: a byte that is not UTF-8", path, line), "save the file as UTF-8");
}

/// How to fix a line that is not TOML. \param place  of the first wrong character, from 0
std::string hint_about_line(std::string_view line, std::size_t place, const std::string& description) {
  if (description.find("redefine") != std::string::npos) return "it was given before: leave one of the two out";
  const std::size_t equals = line.find('=');
  const bool is_value = equals != std::string_view::npos && place > equals;
  const std::string_view key = trimmed(line.substr(0, equals));
  if (line.starts_with("<<<<<<<") || line.starts_with("=======")) return "a conflict of git is left in the file";
  if (line.starts_with("export ")) return "leave 'export' out";
  if (!is_value) return "a setting is a line such as 'devices = 8' or 'strategy = \"ddp\"'";
  const std::string_view value = trimmed(line.substr(equals + 1));
  if (value.empty()) return fmt::format("write the value behind '=', or leave '{}' out", key);
  const std::size_t comma = value.find(',');
  const std::string_view behind = value.substr(std::min(comma, value.size() - 1) + 1);
  const bool is_list = comma != std::string_view::npos && find_setting(trimmed(behind.substr(0, behind.find('='))));
  if (is_list) return "each setting stands on a line of its own";
  if (value == "yes" || value == "on" || value == "True") return fmt::format("write '{} = true'", key);
  if (value == "no" || value == "off" || value == "False") return fmt::format("write '{} = false'", key);
  const bool has_curly_quote = value.find("%E2%80%9") != std::string_view::npos;
  if (value.find_first_of("\"'[{") == std::string_view::npos && !has_curly_quote) {
    return fmt::format("a text stands in quotes: '{} = \"{}\"'", key, value);
  }
  return fmt::format("a text stands in {}quotes, as in 'strategy = \"ddp\"'", has_curly_quote ? "plain " : "");
}

/// A kind of file that many programs read, and lrun does not.
bool is_of_program(const std::string& path) {
  constexpr std::array<std::string_view, 4> kEndings{".json", ".yaml", ".yml", ".py"};
  return std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) { return path.ends_with(ending); });
}

/// \param ascii  the text that toml++ has read.
[[noreturn]] void refuse_text(std::string_view ascii, const std::string& path, const toml::parse_error& error) {
  const std::vector<std::string> lines = split_lines(ascii);
  const toml::source_position at = error.source().begin;
  const std::string_view line = at.line <= lines.size() ? std::string_view(lines[at.line - 1]) : std::string_view();
  const std::string_view rest = line.substr(std::min<std::size_t>(at.column - 1, line.size()));
  const bool beyond_ascii = rest.starts_with('%') && !rest.starts_with("%25");
  const std::string description = from_ascii(error.description());
  const auto hint = [&]() -> std::string {
    constexpr std::array<std::string_view, 3> kOfAccelerate{"compute_environment:", "num_processes:", "num_machines:"};
    if (std::ranges::any_of(kOfAccelerate, [&](auto key) { return ascii.find(key) != std::string_view::npos; })) {
      return "it is accelerate's: write '-n' for the workers of a node, and '--num-nodes' for its 'num_machines'";
    }
    if (!is_of_program(path)) return hint_about_line(line, at.column - 1, description);
    return fmt::format("'--config' is lrun's own here; PROGRAM's stands behind it: 'lrun PROGRAM --config {}'", path);
  };
  throw UserError(fmt::format("{}: not TOML: {}", place_of(path, error.source()),
                              beyond_ascii ? "a non-ASCII character outside quotes" : description),
                  hint());
}

}  // namespace

FileText read_file(const std::string& path) { return read_user_file(path, kMostConfigBytes); }

std::vector<GivenValue> parse_config(std::string_view text, const std::string& path) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  refuse_other_than_utf8(text, path);
  // toml++ runs into code that it marks as unreachable when letters beyond ASCII stand where TOML has none. So it gets
  // them in ASCII.
  const std::string ascii = as_ascii(text);
  const toml::parse_result parsed = toml::parse(ascii, path);
  if (!parsed) refuse_text(ascii, path, parsed.error());
  std::vector<GivenValue> values;
  ConfigReader(path, values).read(parsed.table());
  return values;
}

std::vector<GivenValue> values_from_config(const GivenValue* asked_for, const Environment& environment,
                                           const ReadFile& read) {
  if (asked_for == nullptr && environment.has("LRUN_RUN_ID")) return {};
  const std::string path(asked_for != nullptr ? std::string_view(asked_for->text) : kConfigFileName);
  const FileText file = read(path);
  if (asked_for == nullptr && file.error_number == ENOENT) return {};
  if (file.error_number != 0) {
    const bool is_variable = asked_for != nullptr && asked_for->source == Source::kEnvironment;
    throw UserError(fmt::format("cannot read the settings in '{}'{}: {}", path, is_variable ? " of LRUN_CONFIG" : "",
                                file_refusal_text(file.error_number)),
                    "name a file that is there; '--config /dev/null' reads none");
  }
  return parse_config(file.text, path);
}

std::vector<std::string> warn_about_other_formats(const ReadFile& read) {
  std::vector<std::string> warnings;
  for (const char* const name : {"lrun.yaml", "lrun.yml", "lrun.json"}) {
    if (read(name).error_number != 0) continue;
    warnings.push_back(
        fmt::format("'{}' is not read: settings stand in '{}', in lines such as 'devices = 8'", name, kConfigFileName));
  }
  return warnings;
}

std::string note_config_elsewhere(const std::string& program, const Environment& environment, const ReadFile& read) {
  using Path = std::filesystem::path;
  if (read(std::string(kConfigFileName)).error_number == 0) return {};
  const Path home = environment.get("HOME").value_or("");
  const Path beside = Path(program).parent_path();
  const Path parent = Path(environment.get("PWD").value_or("")).parent_path();
  for (const Path& folder : {beside, Path("..")}) {
    const std::string path = (folder / kConfigFileName).string();
    const bool is_home = !home.empty() && (folder == ".." ? parent : folder) == home;
    if (folder.empty() || is_home || read(path).error_number != 0) continue;
    return fmt::format(
        "'{0}' is not read: lrun reads that of the folder in which it is started; '--config {0}' reads it", path);
  }
  return {};
}

}  // namespace lrun::launcher
