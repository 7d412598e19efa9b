#pragma once

#include <string>

namespace lrun::launcher {

/// The same for all that ask on this machine, under whatever name they have reached it, until it boots; another in a
/// container, or a virtual machine, that has processes of its own, and for the copy of a machine that has another
/// name. Empty where the kernel does not say which boot this is.
std::string machine_identity();

}  // namespace lrun::launcher
