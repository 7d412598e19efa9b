#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "logs/line_watch.h"
#include "plan/watch_rule.h"

namespace {

using namespace lrun::launcher;  // NOLINT(google-build-using-namespace)

/// Aborts, which libFuzzer reports with the input.
void demand(bool holds) {
  if (!holds) std::abort();
}

std::vector<WatchFinding> read_in_pieces(const WatchRule& rule, std::string_view lines, std::size_t piece) {
  LineWatch watch({rule});
  std::vector<WatchFinding> all;
  while (!lines.empty()) {
    const auto found = watch.read(0, lrun::LogStream::kOut, lines.substr(0, piece), {});
    all.insert(all.end(), found.begin(), found.end());
    lines.remove_prefix(std::min(piece, lines.size()));
  }
  demand(watch.silent(lrun::SteadyTime::max(), {0}).size() <= 1);
  return all;
}

}  // namespace

/// Input: the size of a piece, a rule up to the first line end, and what a worker prints. In whatever pieces it comes,
/// the same is found.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.empty()) return 0;
  const std::size_t piece = 1 + static_cast<unsigned char>(input.front()) % 64U;
  input.remove_prefix(1);
  const std::size_t end = std::min(input.find('\n'), input.size());
  auto parsed = parse_watch_rule(input.substr(0, end));
  if (const auto* const problem = std::get_if<LinePattern::Problem>(&parsed)) {
    demand(!problem->what.empty() && !problem->hint.empty());
    return 0;
  }
  const WatchRule rule = std::get<WatchRule>(parsed);
  demand(!rule.tests.empty());
  const std::string_view lines = input.substr(end);
  demand(read_in_pieces(rule, lines, piece) == read_in_pieces(rule, lines, size));
  return 0;
}
