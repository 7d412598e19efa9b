// Replaces link.cc where gloo's headers are missing.

#include <lrun/error.h>

#include "runtime/collectives/gloo/link.h"

namespace lrun::detail {

std::unique_ptr<GlooLink> connect_gloo(const GroupOptions& /*options*/, const std::string& /*address*/,
                                       const std::string& /*prefix*/) {
  throw Unsupported("backend 'gloo' is not in this build of liblrun: build it where gloo's headers are (libgloo-dev)");
}

bool has_gloo() { return false; }

}  // namespace lrun::detail
