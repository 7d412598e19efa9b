#include "run/fork_server_answer.h"

#include "base/whole_number.h"

namespace lrun::launcher {
namespace {

/// Separated by spaces; empty: a word is no pid.
std::vector<pid_t> parse_pids(std::string_view text) {
  std::vector<pid_t> pids;
  for (;;) {
    const std::size_t end = text.find(' ');
    pids.push_back(whole_number<pid_t>(text.substr(0, end)).value_or(0));
    if (pids.back() <= 0) return {};
    if (end == std::string_view::npos) return pids;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::optional<ForkServerAnswer> parse_fork_server_answer(std::string_view bytes) {
  using enum ForkServerAnswer::Kind;
  if (bytes.empty() || bytes.size() > kMostAnswerBytes) return std::nullopt;
  ForkServerAnswer answer{static_cast<ForkServerAnswer::Kind>(bytes.front())};
  const std::string_view text = bytes.substr(1);
  switch (answer.kind) {
    case kHello:
      return text.empty() ? std::optional(answer) : std::nullopt;
    case kForked:
      answer.pids = parse_pids(text);
      return answer.pids.empty() ? std::nullopt : std::optional(answer);
    case kReady:
    case kUnfit:
      answer.text = text;
      return answer;
  }
  return std::nullopt;
}

}  // namespace lrun::launcher
