#include "base/process_stat.h"

#include <charconv>

#include "base/small_file.h"
#include "base/split.h"

namespace lrun::inline core {
namespace {

template <typename Number>
Number next_number(std::string_view& fields) {
  const std::string_view field = cut(fields, ' ');
  Number number = 0;
  std::from_chars(field.data(), field.data() + field.size(), number);
  return number;
}

void skip(std::string_view& fields, int count) {
  for (int i = 0; i < count; ++i) cut(fields, ' ');
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  ProcessStat stat;
  stat.command = text.substr(open + 1, close - open - 1);
  std::string_view fields = text.substr(close + 1);
  if (fields.size() < 4 || fields.front() != ' ') return std::nullopt;
  fields.remove_prefix(1);
  stat.state = cut(fields, ' ').front();
  stat.parent = next_number<pid_t>(fields);
  stat.group = next_number<pid_t>(fields);
  stat.session = next_number<pid_t>(fields);
  skip(fields, 1);
  stat.foreground_group = next_number<pid_t>(fields);
  skip(fields, 5);
  stat.ticks = next_number<std::uint64_t>(fields);
  stat.ticks += next_number<std::uint64_t>(fields);
  stat.children_ticks = next_number<std::uint64_t>(fields);
  stat.children_ticks += next_number<std::uint64_t>(fields);
  skip(fields, 2);
  stat.threads = next_number<int>(fields);
  skip(fields, 1);
  stat.started_ticks = next_number<std::uint64_t>(fields);
  skip(fields, 1);
  stat.resident_pages = next_number<std::uint64_t>(fields);
  skip(fields, 27);
  stat.exit_code = next_number<int>(fields);
  return stat;
}

std::optional<ProcessStat> stat_of_process(pid_t pid) {
  constexpr std::size_t kMostBytes = 4096;
  return parse_process_stat(read_small_file("/proc/" + std::to_string(pid) + "/stat", kMostBytes).value_or(""));
}

}  // namespace lrun::inline core
