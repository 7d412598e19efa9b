#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "remote/frames.h"

namespace lrun::launcher {

/// A host whose launcher has answered.
struct ReachedHost {
  std::string name;   ///< as typed
  bool here = false;  ///< this machine, without ssh
  NodeReady ready;    ///< with its addresses as ssh's connection shows them
};

/// The address of `first`, where the rendezvous is, as `host` reaches it: numeric, or the name that was typed where no
/// address is known. A loopback address is given only to hosts that were reached over loopback themselves. Pure.
std::string rendezvous_address(const ReachedHost& first, const ReachedHost& host);

/// The names of all `hosts` that are one machine with this one, its own included, in their order. Empty where it has no
/// other name, or where its machine is not known. Pure.
std::vector<std::string> names_of_machine(const std::vector<ReachedHost>& hosts, std::size_t host);

}  // namespace lrun::launcher
