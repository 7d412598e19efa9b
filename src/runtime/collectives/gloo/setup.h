#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/collectives/bootstrap/group_options.h"
#include "runtime/collectives/bootstrap/process_identity.h"
#include "runtime/collectives/gloo/channel.h"
#include "runtime/collectives/gloo/link.h"

namespace lrun::detail {

/// The connections and peers of a gloo group.
struct GlooSetup {
  std::unique_ptr<GlooLink> link;
  GlooPeers peers;
};

/// Meets the other ranks in the store and connects with all of them. Collective. \throws as make_gloo().
GlooSetup meet_and_connect(const GroupOptions& options);

/// The identity of a rank of a gloo group, and its address from its own view: one line in the store. Value.
struct GlooIdentity {
  ProcessIdentity process;
  std::string address;  ///< A number.

  [[nodiscard]] std::string line() const;
  /// \throws Error  the line is of another version of liblrun.
  static GlooIdentity parse(const std::string& line);
  bool operator==(const GlooIdentity&) const = default;
};

/// The address of another host's rank, if rank `self` has to look for its own address towards it: the address that it
/// published serves this host only. Empty when that one is good, or when no rank of another host published a better
/// one.
std::optional<std::string> better_direction(const std::vector<GlooIdentity>& ranks, int self);

}  // namespace lrun::detail
