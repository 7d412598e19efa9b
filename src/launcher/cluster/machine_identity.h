#pragma once

#include <string>

namespace lrun::launcher {

/// Text that is equal for all callers on this machine until it boots, under whatever name they reached it. It differs
/// in a container or virtual machine with own processes, and on a copy of the machine under another name. Empty where
/// the kernel has no boot id.
std::string machine_identity();

}  // namespace lrun::launcher
