// A file of settings: whatever its bytes, it is a list of values or a UserError that names file and line; and what
// --print-config makes of the values is a file with the same values. Input: the file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/user_error.h"
#include "cli/config_file.h"
#include "cli/flags.h"
#include "cli/print_config.h"
#include "report/diagnostics.h"

namespace {

using lrun::launcher::GivenValue;

/// What of the values --print-config shows and a program would see: the last ones, in the table's order.
std::vector<std::string> facts_of(const std::vector<GivenValue>& values) {
  std::vector<std::string> facts;
  for (const lrun::launcher::Flag& flag : lrun::launcher::flag_table()) {
    std::vector<std::string> of_flag;
    for (const GivenValue& given : values) {
      if (given.flag != &flag) continue;
      const std::string key = std::string(flag.name) + "@" + given.ranks + "=";
      if (flag.per_rank) std::erase_if(of_flag, [&](const std::string& fact) { return fact.starts_with(key); });
      of_flag.push_back(key + given.text);
    }
    facts.insert(facts.end(), of_flag.begin(), of_flag.end());
  }
  return facts;
}

/// '1' and 'true' are the same for a switch.
void write_switches_as_words(std::vector<GivenValue>& values) {
  for (GivenValue& given : values) {
    if (given.flag->value != lrun::launcher::ValueKind::kNone) continue;
    if (given.text.empty() || given.text == "1") given.text = "true";
    if (given.text == "0") given.text = "false";
  }
}

void expect_refusal(const lrun::UserError& error) {
  const std::string lines = lrun::launcher::render(error, false);
  const auto expected = error.hint().empty() ? 1 : 2;
  if (std::count(lines.begin(), lines.end(), '\n') != expected) std::abort();
  if (!std::string_view(error.what()).starts_with("f.toml:")) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<GivenValue> values;
  try {
    values = lrun::launcher::parse_config(text, "f.toml");
  } catch (const lrun::UserError& error) {
    expect_refusal(error);
    return 0;
  }
  write_switches_as_words(values);
  std::vector<GivenValue> again = lrun::launcher::parse_config(lrun::launcher::config_text(values), "printed");
  write_switches_as_words(again);
  if (facts_of(again) != facts_of(values)) std::abort();
  return 0;
}
