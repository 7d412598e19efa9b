#pragma once

#include <string>

namespace lrun::inline core {

inline constexpr int kMostPort = 65'535;

/// True of '10.0.0.1' and 'fd00::1', and of no name.
bool is_numeric_address(const std::string& address);

/// A host as the resolver takes it: an IPv6 address, with or without an interface behind '%', loses the brackets that
/// keep it apart from a port ('[fd00::1]' is 'fd00::1'); anything else stays as it is.
std::string without_brackets(const std::string& host);

/// The address of the loopback interface that `host` is, as the kernel writes it: '127.0.0.1' for 'localhost', one of
/// 127.0.0.0/8, or '::1'. Empty for every other name and address; the name service is not asked.
std::string loopback_address_of(const std::string& host);

}  // namespace lrun::inline core
