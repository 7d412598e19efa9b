#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/user_hosts.h"

namespace lrun::launcher {

/// The word with which the head starts lrun as the launcher of a host.
inline constexpr const char* kNodeWord = "@node";

/// The word with which it starts lrun where further hosts are reached through it (multihost/relay_agent.h).
inline constexpr const char* kRelayWord = "@relay";

/// The command that starts `lrun`, a path, with this word on `host`. It never asks for a password, gives up on a host
/// that does not answer, and ends when a host has fallen silent. Nothing of the job is in it: others see command lines.
/// \param ssh  the words of the user's ssh: 'ssh', '-p', '2222'; they go before ours.
std::vector<std::string> ssh_command(const std::vector<std::string>& ssh, const Host& host, const std::string& lrun,
                                     const char* word);

/// The same for a host that lacks lrun: it reads the program, of `bytes` bytes (at least one), from its standard input
/// first, into a private folder that goes when the launcher ends.
std::vector<std::string> ssh_copy_command(const std::vector<std::string>& ssh, const Host& host, std::size_t bytes,
                                          const char* word);

/// The command that only logs in, in the same way.
std::vector<std::string> ssh_login_command(const std::vector<std::string>& ssh, const Host& host);

/// The part of the output of ssh that matters: its last line, or that a host has another key than before.
std::string ssh_last_words(std::string_view output);

/// Why an ssh that ended with this status could not start lrun. \param last_line  that it has printed.
std::string ssh_failure_text(int exit_code, const std::string& last_line, const std::string& lrun);

/// In place of ssh's many lines about a key that is another than before.
inline constexpr const char* kHostKeyChanged = "its host key has changed";

/// The hint for a login that failed, by ssh's message; empty where none is known. 'HOST' stands for the host.
std::string_view ssh_advice(std::string_view message);

/// The environment that a job's launchers get from where it was started: NAME=VALUE of all that is not a host's or a
/// login's own (HOME, TMPDIR, DISPLAY, SSH_*, SLURM_*), and of what `wanted` names in any case.
std::vector<std::string> carried_environment(const std::vector<std::string>& variables,
                                             const std::vector<std::string>& wanted);

}  // namespace lrun::launcher
