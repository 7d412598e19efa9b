// In: a host, the user's ssh, and the path or the size of lrun. Out: the command that starts lrun there. Called by the
// head, before it connects.
#include "remote/ssh.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>

#include "base/shell_words.h"
#include "base/signal_names.h"
#include "base/split.h"
#include "process/exit_codes.h"

namespace lrun::launcher {
namespace {

/// Variables of a host, of a login on it, or of a manager's job there.
constexpr std::array<std::string_view, 33> kOwnNames{"HOME",
                                                     "USER",
                                                     "LOGNAME",
                                                     "SHELL",
                                                     "MAIL",
                                                     "HOSTNAME",
                                                     "HOST",
                                                     "HOSTTYPE",
                                                     "PWD",
                                                     "OLDPWD",
                                                     "SHLVL",
                                                     "_",
                                                     "TMPDIR",
                                                     "TMP",
                                                     "TEMP",
                                                     "DISPLAY",
                                                     "WAYLAND_DISPLAY",
                                                     "XAUTHORITY",
                                                     "WINDOWID",
                                                     "STY",
                                                     "TMUX",
                                                     "TMUX_PANE",
                                                     "KRB5CCNAME",
                                                     "LINES",
                                                     "COLUMNS",
                                                     "GPG_AGENT_INFO",
                                                     "DBUS_SESSION_BUS_ADDRESS",
                                                     "INVOCATION_ID",
                                                     "JOURNAL_STREAM",
                                                     "NOTIFY_SOCKET",
                                                     "LISTEN_FDS",
                                                     "LISTEN_PID",
                                                     "LRUN_JOB_SECRET"};
constexpr std::array<std::string_view, 5> kOwnBeginnings{"SSH_", "XDG_", "SLURM_", "SLURMD_", "VSCODE_"};

struct Advice {
  std::string_view sign;
  std::string_view advice;
};
constexpr Advice kAdvice[] = {
    {"Permission denied", "'ssh HOST true' has to work without a password: 'ssh-copy-id HOST' copies your key there"},
    {"Host key verification failed", "log in once by hand, to accept the key of the host: ssh HOST true"},
    {kHostKeyChanged, "ask its administrator why; if it was installed anew, remove its old key: ssh-keygen -R NAME"},
    {"Connection refused", "start an ssh server there, or name its port in ~/.ssh/config"},
    {"resolve hostname", "write names that ssh knows: see ~/.ssh/config and /etc/hosts"},
};

bool is_hosts_own(std::string_view name) {
  return std::find(kOwnNames.begin(), kOwnNames.end(), name) != kOwnNames.end() ||
         std::any_of(kOwnBeginnings.begin(), kOwnBeginnings.end(),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

std::vector<std::string> ssh_to(const std::vector<std::string>& ssh, const Host& host) {
  std::vector<std::string> command = ssh;
  // A connection shared with others (ControlMaster) would outlive the run, or not notice a silent host.
  for (const char* const option :
       {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=2", "ServerAliveCountMax=3", "ControlMaster=no",
        "ControlPath=none", "ClearAllForwardings=yes", "RemoteCommand=none"}) {
    command.insert(command.end(), {"-o", option});
  }
  command.emplace_back("-T");
  if (host.port != 0) command.insert(command.end(), {"-p", std::to_string(host.port)});
  if (!host.user.empty()) command.insert(command.end(), {"-l", host.user});
  command.push_back(host.name);
  return command;
}

std::string processor_here() {
  utsname names{};
  (void)::uname(&names);
  return names.machine;
}

}  // namespace

std::vector<std::string> ssh_command(const std::vector<std::string>& ssh, const Host& host, const std::string& lrun,
                                     const char* word) {
  std::vector<std::string> command = ssh_to(ssh, host);
  command.push_back(fmt::format("exec {} {}", quoted_for_shell(lrun), word));
  return command;
}

std::vector<std::string> ssh_copy_command(const std::vector<std::string>& ssh, const Host& host, std::size_t bytes,
                                          const char* word) {
  std::vector<std::string> command = ssh_to(ssh, host);
  // dd reads exactly as much as it is told to, and leaves the rest to lrun. It succeeds also when less came, hence wc.
  // A line for each piece reports progress, which this end cannot see where the network stores more than it sends.
  // All is one line: csh allows no other in quotes.
  constexpr std::size_t kPiece = std::size_t{256} * 1024;
  const std::size_t pieces = (bytes - 1) / kPiece;
  const std::string script = fmt::format(
      R"sh(umask 077; d=$(mktemp -d) || exit 1; trap 'rm -rf "$d"' EXIT; trap 'exit 1' HUP INT TERM; )sh"
      R"sh({{ n={1}; while [ $n -gt 0 ]; do dd bs={2} count=1 iflag=fullblock; echo >&3; n=$((n-1)); done; )sh"
      R"sh(dd bs={3} count=1 iflag=fullblock; }} 3>&1 >"$d/lrun" 2>/dev/null; )sh"
      R"sh({{ [ "$(wc -c <"$d/lrun")" -eq {0} ] && chmod 700 "$d/lrun"; }} 2>/dev/null || )sh"
      R"sh({{ echo "the copy of lrun in '$d' is not whole" >&2; exit 1; }}; )sh"
      R"sh("$d/lrun" {4}; s=$?; )sh"
      R"sh([ $s -ne 126 ] || [ "$(uname -m)" = {5} ] || {{ echo "its processor is $(uname -m), and this lrun is for {5}" >&2; exit 1; }}; )sh"
      R"sh([ $s -ne 126 ] || {{ echo "the copy of lrun in '$d' cannot be executed" >&2; exit 1; }}; )sh"
      R"sh([ $s -ne 127 ] || {{ echo "the copy of lrun in '$d' cannot be started: that host lacks glibc" >&2; exit 1; }}; )sh"
      R"sh(exit $s)sh",
      bytes, pieces, kPiece, bytes - pieces * kPiece, word, processor_here());
  command.push_back("exec sh -c " + quoted_for_shell(script));
  return command;
}

std::vector<std::string> ssh_login_command(const std::vector<std::string>& ssh, const Host& host) {
  std::vector<std::string> command = ssh_to(ssh, host);
  command.emplace_back("true");
  return command;
}

std::string ssh_last_words(std::string_view output) {
  const std::string_view last = last_line_of(output);
  const bool is_refused = last.find("Host key verification failed") != std::string_view::npos;
  const bool has_changed = is_refused && output.find("IDENTIFICATION HAS CHANGED") != std::string_view::npos;
  return has_changed ? kHostKeyChanged : std::string(last);
}

std::string ssh_failure_text(int exit_code, const std::string& last_line, const std::string& lrun) {
  if (exit_code == kExitNotFound) return fmt::format("no '{}' on that host", lrun);
  if (exit_code == kExitNotExecutable) return fmt::format("'{}' cannot be executed there", lrun);
  if (!last_line.empty()) return last_line;
  constexpr int kFirstSignal = 128;
  if (const int number = exit_code - kFirstSignal; number > 0 && number < SIGRTMIN) {
    return fmt::format("'{}' died of {} there", lrun, signal_name(number));
  }
  return fmt::format("ssh ended with status {}", exit_code);
}

std::string_view ssh_advice(std::string_view message) {
  for (const auto& [sign, advice] : kAdvice) {
    if (message.find(sign) != std::string_view::npos) return advice;
  }
  return {};
}

std::vector<std::string> carried_environment(const std::vector<std::string>& variables,
                                             const std::vector<std::string>& wanted) {
  std::vector<std::string> carried;
  for (const std::string& variable : variables) {
    const std::string name = variable.substr(0, variable.find('='));
    const bool is_wanted = std::find(wanted.begin(), wanted.end(), name) != wanted.end();
    if (name != "LRUN_JOB_SECRET" && (is_wanted || !is_hosts_own(name))) carried.push_back(variable);
  }
  return carried;
}

}  // namespace lrun::launcher
