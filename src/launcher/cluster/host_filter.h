#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/user_hosts.h"

namespace lrun::launcher {

/// What is left of `hosts` by a selection in DeepSpeed's grammar, 'a@b:0,2': only these hosts, and of b only the
/// devices 0 and 2.
/// \param written  how the user wrote it, for messages: '--include a@b:0,2'.
/// \throws UserError  it cannot be read, or names what is not there.
std::vector<Host> included(const std::vector<Host>& hosts, std::string_view selection, const std::string& written);

/// The same for what is to be left out: hosts, or devices of hosts whose number of slots is known.
/// \throws UserError  as included(); nothing is left.
std::vector<Host> excluded(const std::vector<Host>& hosts, std::string_view selection, const std::string& written);

}  // namespace lrun::launcher
