// In: hosts, the user's ssh, the environment. Out: facts that only other programs know: Python about its torch, ssh
// about logins. Called by read_machine().
#include "inspect/ask_helpers.h"

#include <fmt/format.h>

#include <memory>
#include <system_error>
#include <utility>

#include "base/event_loop.h"
#include "base/shortened.h"
#include "base/split.h"
#include "cluster/own_names.h"
#include "inspect/python_answer.h"
#include "process/program_path.h"
#include "remote/ssh.h"

namespace lrun::launcher {
namespace {

constexpr Duration kPythonLimit(10'000);  // one on a file server reads its modules from there
constexpr Duration kLoginLimit(12'000);   // ssh itself gives up on a connection after ten seconds
constexpr std::size_t kMostHelperBytes = std::size_t{64} * 1024;
constexpr std::size_t kMostErrorBytes = 300;

/// The last line that a tool has printed, on its standard output where there is no other.
std::string last_words(const ToolOutcome& outcome) {
  const std::string_view error = last_line_of(outcome.errors);
  return shortened(error.empty() ? last_line_of(outcome.output) : error, kMostErrorBytes);
}

std::vector<ToolOutcome> run_all(std::vector<ToolRequest> requests) {
  EventLoop loop;
  std::vector<ToolOutcome> outcomes(requests.size());
  std::vector<std::unique_ptr<ToolRun>> runs;
  std::size_t left = requests.size();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    runs.push_back(std::make_unique<ToolRun>(loop, std::move(requests[i]), [&, i](ToolOutcome outcome) {
      outcomes[i] = std::move(outcome);
      if (--left == 0) loop.stop();
    }));
  }
  if (left > 0) loop.run();
  return outcomes;
}

/// A run needs no ssh for this machine. A name that does not resolve may be one that only ssh's configuration knows.
bool needs_login(const Host& host, const PeerFacts& peer) {
  using Path = PeerFacts::Path;
  if (peer.path == Path::kUnresolved) return true;
  const bool is_plain = host.user.empty() && host.port == 0;
  return peer.path == Path::kOpen && !(is_plain && !own_names({peer.address}).empty());
}

}  // namespace

void ask_helpers(const std::vector<Host>& hosts, const std::vector<std::string>& ssh, const PythonChoice& chosen,
                 const Environment& environment, MachineFacts& facts) {
  const std::string search_path = environment.get("PATH").value_or("");
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment.variables()) variables.push_back(name + "=" + value);
  std::vector<ToolRequest> requests;
  const auto add = [&](std::vector<std::string> argv, const std::string& path, Duration limit) {
    argv.front() = path;
    requests.push_back({std::move(argv), variables, limit, kMostHelperBytes});
  };
  facts.python.choice = chosen;
  const ProgramPath python = find_program(chosen.program, search_path);
  if (python.error_number == 0) add(python_question(python.path), python.path, kPythonLimit);

  std::vector<PeerFacts*> tried;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (!needs_login(hosts[i], facts.peers[i])) continue;
    const ProgramPath path = find_program(ssh.front(), search_path);
    if (path.error_number != 0) {
      facts.ssh_error =
          fmt::format("cannot execute '{}': {}", ssh.front(), std::generic_category().message(path.error_number));
      break;
    }
    add(ssh_login_command(ssh, hosts[i]), path.path, kLoginLimit);
    tried.push_back(&facts.peers[i]);
  }

  const std::vector<ToolOutcome> outcomes = run_all(std::move(requests));
  auto next = outcomes.begin();
  if (python.error_number == 0) read_python_outcome(*next++, facts.python);
  for (PeerFacts* const peer : tried) read_login_outcome(*next++, *peer);
}

void read_python_outcome(const ToolOutcome& outcome, PythonFacts& python) {
  std::optional<PythonFacts> answer;
  if (outcome.succeeded()) answer = parse_python_answer(outcome.output);
  if (answer) {
    python.answer = PythonFacts::Answer::kGiven;
    python.path = answer->path;
    python.version = answer->version;
    python.torch = answer->torch;
    return;
  }
  python.answer = PythonFacts::Answer::kFailed;
  if (outcome.error_number != 0) {
    python.error = std::generic_category().message(outcome.error_number);
  } else if (outcome.timed_out) {
    python.error = "no answer within " + format_duration(kPythonLimit);
  } else {
    const std::string words = last_words(outcome);
    python.error = words.empty() ? "it gives no answer" : words;
  }
}

void read_login_outcome(const ToolOutcome& outcome, PeerFacts& peer) {
  peer.login = outcome.succeeded() ? PeerFacts::Login::kWorks : PeerFacts::Login::kFails;
  if (outcome.succeeded()) return;
  if (outcome.error_number != 0) {
    peer.login_error = std::generic_category().message(outcome.error_number);
  } else if (outcome.timed_out) {
    peer.login_error = "no answer within " + format_duration(kLoginLimit);
  } else if (ssh_last_words(outcome.errors) == kHostKeyChanged) {
    peer.login_error = kHostKeyChanged;
  } else {
    const std::string words = last_words(outcome);
    peer.login_error = words.empty() ? "ssh failed without a message" : words;
  }
}

}  // namespace lrun::launcher
