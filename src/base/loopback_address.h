#pragma once

#include <string>

namespace lrun {

/// The address of the loopback interface that `host` is, as the kernel writes it: '127.0.0.1' for 'localhost', one of
/// 127.0.0.0/8, or '::1'. Empty for every other name and address; nobody is asked.
std::string loopback_address_of(const std::string& host);

}  // namespace lrun
