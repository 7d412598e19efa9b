#include "report/hosts_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/message.h"
#include "base/nearest.h"
#include "base/shortened.h"
#include "remote/ssh.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostShown = 64;
constexpr std::size_t kMostNamed = 4;
constexpr std::size_t kMostAnswerBytes = 300;

/// Hints for the commonest reasons beside those of ssh.
struct StartAdvice {
  std::string_view sign;
  std::string_view advice;
};
constexpr StartAdvice kAdvice[] = {
    {"cannot execute '", "hosts are reached with ssh: install it here, or name another command with '--ssh'"},
    {"lacks glibc", "lrun needs glibc 2.28 or newer there (not Alpine)"},
    {"version `GLIBC", "that host's glibc is older than this lrun's: an lrun of './dev release' needs 2.28"},
    {"its processor is", "install lrun for that processor there, and leave '--copy' out"},
    {"died of SIG", "install lrun anew on that host, or use '--copy'"},
    {"the copy of lrun", "set TMPDIR on that host to a directory that has room and whose programs may be executed"},
    {"mktemp", "set TMPDIR on that host to a directory that has room and whose programs may be executed"},
    {"is not there", "'--copy' copies lrun to hosts that lack it"},
    {"on that host", "'--copy' copies lrun to hosts that lack it"},
    {"Address already in use", "another program has the port: choose one with '--master-port'"},
    {"ssh ended with status 0", "a start file of the shell there, such as .bashrc, ends it before lrun starts"},
    {"cannot be executed", "'--copy' copies lrun to hosts that lack it"},
    {"is lrun ", "install the same lrun everywhere, or use '--copy'"},
    {"directory", "work in a directory that all hosts have, or name one with '--chdir'"},
};

std::string_view advice_for(const std::vector<HostProblem>& problems) {
  for (const HostProblem& problem : problems) {
    for (const auto& [sign, advice] : kAdvice) {
      if (problem.why.find(sign) != std::string::npos) return advice;
    }
    if (const std::string_view advice = ssh_advice(problem.why); !advice.empty()) return advice;
  }
  return "'ssh HOST true' has to work; '--ssh' names another command or options";
}

/// One line that keeps the table in shape.
std::string printable(const std::string& text) {
  const std::string line = message_line(Severity::kNote, shortened(text, kMostAnswerBytes));
  return line.substr(line.find("note: ") + 6);
}

}  // namespace

std::string hosts_problem_text(const std::vector<HostProblem>& problems, std::size_t hosts, bool colour) {
  std::string text =
      message_line(Severity::kError,
                   fmt::format("{} of {} hosts cannot be used; nothing was started", problems.size(), hosts), colour);
  std::size_t width = 0;
  for (const HostProblem& problem : problems) width = std::max(width, problem.host.size());
  for (std::size_t i = 0; i < std::min(problems.size(), kMostShown); ++i) {
    text += fmt::format("  | {:<{}}  {}", problems[i].host, width, printable(problems[i].why));
  }
  if (problems.size() > kMostShown) text += fmt::format("  | and {} more\n", problems.size() - kMostShown);
  return text + message_line(Severity::kHint, advice_for(problems), colour);
}

std::string lost_hosts_text(const std::vector<std::string>& hosts, const std::string& why) {
  const bool one = hosts.size() == 1;
  return fmt::format("the {} to {} {} lost: {}", one ? "connection" : "connections",
                     join_first(hosts, kMostNamed, " and "), one ? "was" : "were", shortened(why, kMostAnswerBytes));
}

}  // namespace lrun::launcher
