#pragma once

#include <string>

#include "remote/node_frames.h"

namespace lrun::launcher {

/// A host whose launcher has answered.
struct ReachedHost {
  std::string name;   ///< as typed
  bool here = false;  ///< this machine, without ssh
  NodeReady ready;    ///< with its addresses as ssh's connection shows them
};

/// Where `first` is, as `host` reaches it: a numeric address, or the name that was typed where none is known. A
/// loopback address is told only to hosts that were reached over loopback themselves.
std::string meeting_address(const ReachedHost& first, const ReachedHost& host);

}  // namespace lrun::launcher
