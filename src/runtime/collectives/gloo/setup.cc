#include "runtime/collectives/gloo/setup.h"

#include <lrun/error.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <utility>

#include "base/split.h"
#include "runtime/collectives/bootstrap/group_rendezvous.h"
#include "runtime/collectives/bootstrap/local_address.h"

namespace lrun::detail {
namespace {

/// Raise it with any change of the format on the wire.
constexpr std::uint32_t kGlooVersion = 1;

/// c10d's texts come with a C++ stack trace.
std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

GlooPeers peers_of(const std::vector<GlooIdentity>& ranks, const ProcessIdentity& self) {
  GlooPeers peers;
  std::vector<pid_t> pids;
  for (const GlooIdentity& rank : ranks) {
    peers.processes.push_back(rank.process);
    pids.push_back(rank.process.pid_for(self));
  }
  peers.watch = PeerWatch(pids);
  return peers;
}

/// Where the other ranks reach this one.
std::string address_for(const std::vector<GlooIdentity>& ranks, int self) {
  const std::string& address = ranks[static_cast<std::size_t>(self)].address;
  if (const auto direction = better_direction(ranks, self)) return local_address_towards(*direction).value_or(address);
  return address;
}

}  // namespace

std::string GlooIdentity::line() const {
  return "gloo " + std::to_string(kGlooVersion) + ' ' + address + ' ' + process.text();
}

GlooIdentity GlooIdentity::parse(const std::string& line) {
  std::istringstream words(line);
  GlooIdentity identity;
  std::string backend;
  std::uint32_t version = 0;
  std::string rest;
  if (words >> backend >> version >> identity.address && std::getline(words, rest) && backend == "gloo" &&
      version == kGlooVersion) {
    if (const auto process = ProcessIdentity::parse(rest)) {
      identity.process = *process;
      return identity;
    }
  }
  throw Error("a rank of the group says '" + line + "' in the store, which is not of this version of liblrun");
}

std::optional<std::string> better_direction(const std::vector<GlooIdentity>& ranks, int self) {
  const GlooIdentity& mine = ranks[static_cast<std::size_t>(self)];
  if (!is_loopback(mine.address)) return std::nullopt;
  for (const GlooIdentity& other : ranks) {
    if (other.process.host != mine.process.host && !is_loopback(other.address)) return other.address;
  }
  return std::nullopt;
}

GlooSetup meet_and_connect(const GroupOptions& options) {
  const SteadyTime deadline = std::chrono::steady_clock::now() + options.timeout;
  GroupRendezvous rendezvous(options);
  const std::string all =
      rendezvous.exchange(GlooIdentity{rendezvous.process(), rendezvous.local_address()}.line(), join_lines);
  std::vector<GlooIdentity> ranks;
  for (const std::string& line : split_lines(all)) ranks.push_back(GlooIdentity::parse(line));
  GlooSetup setup;
  setup.peers = peers_of(ranks, rendezvous.process());
  const std::string address = address_for(ranks, options.rank);
  try {
    setup.link = connect_gloo(options, address, "lrun/gloo/" + std::to_string(rendezvous.identity()) + "/");
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const std::string text = "rank " + std::to_string(options.name_of(options.rank)) + " at " + address +
                             " could not connect with all ranks: " + first_line(error);
    if (std::chrono::steady_clock::now() >= deadline) throw CollectiveTimeout(text);
    throw Error(text);
  }
  return setup;
}

}  // namespace lrun::detail
