// Reads the words of a command line up to PROGRAM by torchrun's grammar: finds the option that each name means, and the
// words that are values. parse_command_line() hands the values on to collect_values().
#include "cli/spelling.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/nearest.h"
#include "base/split.h"
#include "base/user_error.h"
#include "cli/foreign_options.h"
#include "cli/horovodrun_options.h"
#include "cli/unknown_word.h"

namespace lrun::launcher {
namespace {

struct Found {
  const Flag* flag = nullptr;
  std::string name;  ///< with dashes, completed
};

std::string hint_about_unknown(const std::string& option) {
  if (option.find(' ') != std::string::npos) {
    return "an option and its value are two words: leave out the quotes around both";
  }
  if (std::string hint = hint_about_foreign_option(option); !hint.empty()) return hint;
  if (option.find_first_not_of("0123456789", 1) == std::string::npos) return did_you_mean("-n " + option.substr(1));
  const bool is_long = option.starts_with("--");
  std::vector<std::string> names;
  for (const Flag& flag : flag_table()) {
    for (std::string& name : long_names_of(flag)) names.push_back(std::move(name));
  }
  return nearest_hint(
      lower_case(is_long ? option : "-" + option), names,
      "options of PROGRAM stand behind it, as in 'lrun PROGRAM " + option + "'; 'lrun --help' lists lrun's");
}

[[noreturn]] void refuse_unknown(const std::string& option, std::string hint) {
  throw UnknownWord("unknown option", option, "", std::move(hint));
}

[[noreturn]] void refuse_unknown(const std::string& option) { refuse_unknown(option, hint_about_unknown(option)); }

/// The flag whose long name is `option` or begins with it, when there is only one. A name that other launchers have is
/// no beginning of a name, except where the line is torchrun's.
Found find_long(const std::string& option, Compat compat) {
  if (const Flag* const flag = find_long_flag(option)) return {flag, option};
  const std::string folded = folded_name(option);
  std::vector<Found> beginnings;
  for (const Flag& flag : flag_table()) {
    for (const std::string& name : long_names_of(flag)) {
      const bool known = !beginnings.empty() && beginnings.back().flag == &flag;
      if (!known && folded_name(name).starts_with(folded)) beginnings.push_back({&flag, name});
    }
  }
  const bool is_foreign = compat == Compat::kLrun && !hint_about_foreign_option(option).empty();
  if (beginnings.empty() || is_foreign) refuse_unknown(option);
  if (beginnings.size() == 1) return beginnings.front();
  std::vector<std::string> names;
  for (const Found& found : beginnings) names.push_back("'" + found.name + "'");
  throw UserError("ambiguous option '" + option + "'", "it could be " + join_words(names, " or "));
}

/// '-np4': a name of two letters and a number, as mpirun's users write it.
const Flag* find_counted(const std::string& word) {
  constexpr std::size_t kNumber = 3;
  const bool counted = word.size() > kNumber && word.find_first_not_of("0123456789", kNumber) == std::string::npos;
  return counted ? find_short_flag(std::string_view(word).substr(1, 2)) : nullptr;
}

bool is_numeric(const std::string& word) { return word.find_first_not_of("0123456789.") == std::string::npos; }

/// As in argparse, '-1' and '-2.5' are values, and everything else with a dash in front is an option.
bool looks_like_option(const std::string& word) {
  return word.size() > 1 && word.front() == '-' && !is_numeric(word.substr(1));
}

class LineReader {
 public:
  LineReader(const std::vector<std::string>& words, Compat compat) : words_(words), compat_(compat) {}

  SpelledLine run() {
    try {
      read_options();
    } catch (const UnknownWord& unknown) {
      refuse_earlier_values();
      throw error_about(and_those_behind(unknown));
    } catch (const UserError&) {
      refuse_earlier_values();
      throw;
    }
    line_.program = next_;
    refuse_value_of_switch();
    return std::move(line_);
  }

 private:
  void read_options() {
    while (next_ < words_.size() && !line_.double_dash) {
      const std::string& word = words_[next_];
      if (word.size() < 2 || word.front() != '-') break;
      ++next_;
      if (word == "--") {
        line_.double_dash = true;
      } else if (compat_ == Compat::kHorovodrun && read_horovodruns(word)) {
        continue;
      } else if (word.starts_with("--")) {
        read_long(word);
      } else {
        read_short(word);
      }
    }
  }

  /// The unknown options up to the first word that may be PROGRAM: nobody knows whether they take a word as value,
  /// except where that is a number.
  std::vector<UnknownWord> and_those_behind(UnknownWord unknown) {
    std::vector<UnknownWord> all{std::move(unknown)};
    while (next_ < words_.size()) {
      try {
        if (is_numeric(words_[next_])) ++next_;
        read_options();
        break;
      } catch (const UnknownWord& next) {
        all.push_back(next);
      } catch (const UserError&) {
        break;
      }
    }
    return all;
  }

  /// An option without its value takes the next word, often PROGRAM, and then the words after that look wrong. The
  /// error should be about the option that took a wrong value.
  void refuse_earlier_values() const {
    LaunchRequest unused;
    for (const GivenValue& given : line_.options) {
      if (given.flag->apply != nullptr && given.flag->value != ValueKind::kNone) given.flag->apply(given, unused);
    }
  }

  /// A number behind a switch is meant as its value, not as PROGRAM, and so are 'true' and its like in front of
  /// another word: '--verbose 2 ./train', '--standalone true ./train'.
  void refuse_value_of_switch() const {
    if (line_.double_dash || line_.options.empty() || next_ == words_.size()) return;
    const GivenValue& last = line_.options.back();
    const std::string& word = words_[next_];
    if (last.flag->value == ValueKind::kRequired || word.empty()) return;
    constexpr std::array<std::string_view, 6> kValues{"true", "false", "yes", "no", "on", "off"};
    const bool is_value = next_ + 1 < words_.size() && std::find(kValues.begin(), kValues.end(), word) != kValues.end();
    if (!is_value && word.find_first_not_of("0123456789") != std::string::npos) return;
    throw UserError("'" + last.origin + "' takes no value, got '" + word + "'",
                    "write only '" + last.origin + "'; the program of that name is '-- " + word + "'");
  }

  /// \return false when lrun has the option, too.
  bool read_horovodruns(const std::string& word) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    const HorovodrunOption* const option = find_horovodrun_option(name);
    if (option == nullptr) return false;
    auto value = equals == word.size() ? std::nullopt : value_after(word, equals);
    if (option->value == ValueKind::kNone && value) refuse_value(name, *value);
    if (option->value == ValueKind::kRequired && !value) value = next_value(name, "VALUE");
    add_horovodrun_option(*option, name, value.value_or(""), line_);
    return true;
  }

  void read_long(const std::string& word) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::size_t at = std::min(word.find('@'), equals);
    Found found = find_long(word.substr(0, at), compat_);
    const std::string ranks = word.substr(at, equals - at);
    if (!ranks.empty() && !found.flag->per_rank) {
      throw UserError("'" + found.name + "' cannot be given for some ranks only", "write '" + found.name + "'");
    }
    add(*found.flag, found.name + ranks, equals == word.size() ? std::nullopt : value_after(word, equals));
    if (!ranks.empty()) line_.options.back().ranks = ranks.substr(1);
  }

  void read_short(const std::string& word) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const Flag* const whole_word = equals > 2 ? find_short_flag(std::string_view(word).substr(1, equals - 1)) : nullptr;
    if (whole_word != nullptr) {
      add(*whole_word, word.substr(0, equals), equals == word.size() ? std::nullopt : value_after(word, equals));
      return;
    }
    if (const Flag* const counted = find_counted(word)) {
      add(*counted, word.substr(0, 3), word.substr(3));
      return;
    }
    if (find_long_flag("-" + word.substr(0, equals)) != nullptr) refuse_unknown(word, did_you_mean("-" + word));
    const bool is_foreign = compat_ == Compat::kLrun && !hint_about_foreign_option(word.substr(0, equals)).empty();
    if (is_foreign) refuse_unknown(word.substr(0, equals));  // '-npernode' is not '-n pernode'
    for (std::size_t i = 1; i < word.size(); ++i) {
      const Flag* const flag = find_short_flag(std::string_view(word).substr(i, 1));
      if (flag == nullptr) refuse_unknown(word);
      const bool takes_rest = flag->value != ValueKind::kNone || (i + 1 < word.size() && word[i + 1] == '=');
      const bool has_rest = takes_rest && i + 1 < word.size();
      add(*flag, {'-', word[i]}, has_rest ? value_after(word, word[i + 1] == '=' ? i + 1 : i) : std::nullopt);
      if (takes_rest) return;
    }
  }

  static std::optional<std::string> value_after(const std::string& word, std::size_t position) {
    return word.substr(position + 1);
  }

  void add(const Flag& flag, std::string origin, std::optional<std::string> value) {
    constexpr std::array kSwitchValues{"0", "1", "false", "true"};
    const bool switched = flag.action == FlagAction::kSetting && !flag.repeatable && origin.starts_with("--") &&
                          value && std::find(kSwitchValues.begin(), kSwitchValues.end(), *value) != kSwitchValues.end();
    if (flag.value == ValueKind::kNone && value && !switched) refuse_value(origin, *value);
    if (flag.value == ValueKind::kRequired && !value) value = next_value(origin, flag.placeholder);
    if (flag.value == ValueKind::kOptional && !value) value = words_of(flag.choices).front();
    line_.options.push_back({&flag, value.value_or(""), Source::kFlag, std::move(origin)});
  }

  [[noreturn]] static void refuse_value(const std::string& origin, const std::string& value) {
    throw UserError("'" + origin + "' takes no value, got '" + value + "'", "write only '" + origin + "'");
  }

  std::string next_value(const std::string& origin, std::string_view placeholder) {
    if (next_ == words_.size() || looks_like_option(words_[next_])) {
      throw UserError("'" + origin + "' needs a value", "write '" + origin + " " + std::string(placeholder) + "'");
    }
    return words_[next_++];
  }

  const std::vector<std::string>& words_;
  Compat compat_;
  std::size_t next_ = 0;
  SpelledLine line_;
};

}  // namespace

SpelledLine spell_out(const std::vector<std::string>& words, Compat compat) { return LineReader(words, compat).run(); }

}  // namespace lrun::launcher
