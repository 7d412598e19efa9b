#include "cli/deepspeed_env.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/small_file.h"
#include "base/split.h"
#include "base/user_error.h"
#include "cli/flags.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{1} << 20U;

}  // namespace

std::vector<GivenValue> parse_deepspeed_env(std::string_view text, const std::string& path) {
  constexpr std::string_view kBlanks = " \t\r";
  std::vector<GivenValue> values;
  int number = 0;
  for (const std::string& line : split_lines(text)) {
    ++number;
    std::string_view value = trimmed(line, kBlanks);
    if (value.empty() || value.starts_with('#')) continue;
    const bool has_value = value.find('=') != std::string_view::npos;
    const std::string name(trimmed(cut(value, '='), kBlanks));
    if (!has_value || name.empty()) {
      throw UserError(fmt::format("{}:{}: '{}' is not of the form 'NAME=VALUE'", path, number, line),
                      "write one variable per line");
    }
    values.push_back({.flag = find_flag("env"),
                      .text = name + "=" + std::string(trimmed(value, kBlanks)),
                      .source = Source::kConfig,
                      .origin = "env",
                      .place = fmt::format("{}:{}", path, number)});
  }
  return values;
}

void take_deepspeed_env(ParsedCommandLine& parsed, const Environment& environment) {
  if (parsed.request.strategy.value != Strategy::kDeepspeed) return;
  const std::string name = environment.get("DS_ENV_FILE").value_or(".deepspeed_env");
  for (const std::string& folder : {environment.get("HOME").value_or(""), std::string(".")}) {
    if (folder.empty()) continue;
    const std::string path = (std::filesystem::path(folder) / name).string();
    const auto text = read_small_file(path, kMostFileBytes);
    if (!text) continue;
    for (GivenValue& given : parse_deepspeed_env(*text, path)) {
      given.flag->apply(given, parsed.request);
      parsed.settings.push_back(std::move(given));
    }
  }
}

}  // namespace lrun::launcher
