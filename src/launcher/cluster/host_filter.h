#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/user_hosts.h"

namespace lrun::launcher {

/// Those of `hosts` that a selection in DeepSpeed's grammar names. 'a@b:0,2' is host a, and host b with its devices 0
/// and 2.
/// \param written  the option as the user wrote it, for messages: '--include a@b:0,2'.
/// \throws UserError  the selection cannot be read, or names a host or device that does not exist.
std::vector<Host> included(const std::vector<Host>& hosts, std::string_view selection, const std::string& written);

/// `hosts` without those that a selection names. Devices can be excluded only from hosts whose number of slots is
/// known. \throws UserError  as included(), or no host is left.
std::vector<Host> excluded(const std::vector<Host>& hosts, std::string_view selection, const std::string& written);

}  // namespace lrun::launcher
