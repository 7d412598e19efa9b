#include "run/fork_server_answer.h"

#include "base/whole_number.h"

namespace lrun::launcher {

std::optional<ForkServerAnswer> parse_fork_server_answer(std::string_view bytes) {
  using enum ForkServerAnswer::Kind;
  if (bytes.empty() || bytes.size() > kMostAnswerBytes) return std::nullopt;
  ForkServerAnswer answer{static_cast<ForkServerAnswer::Kind>(bytes.front())};
  const std::string_view text = bytes.substr(1);
  switch (answer.kind) {
    case kHello:
      return text.empty() ? std::optional(answer) : std::nullopt;
    case kForked:
      answer.pid = whole_number<pid_t>(text).value_or(0);
      return answer.pid > 0 ? std::optional(answer) : std::nullopt;
    case kReady:
    case kUnfit:
      answer.text = text;
      return answer;
  }
  return std::nullopt;
}

}  // namespace lrun::launcher
