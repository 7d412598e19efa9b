#pragma once

#include <string>
#include <vector>

#include "rendezvous/membership.h"

namespace lrun::launcher {

/// What the leader knows of a node's files in memory (LRUN_MEMORY_DIR) and of its copies of other nodes' files.
struct NodeWithFiles {
  std::string token;             ///< as in its JoinRecord
  int copy_port = 0;             ///< as in its JoinRecord
  std::string copy_key;          ///< the same
  bool is_new = false;           ///< it was not in the last round
  std::vector<FileOwner> keeps;  ///< whose files it has copies of

  bool operator==(const NodeWithFiles&) const = default;
};

/// Sets where the copies of each node's files are kept in this round, and who gets those of lost nodes. Pure.
///
/// A node's neighbour is on the next host, in the order of node ranks and with the first one behind the last: what
/// happens to a host happens to all of its launchers. Launchers of one host, which have one address, have different
/// neighbours as far as there are so many. The files of a lost node go to the newcomer that has its node
/// rank now. Where none has, they go to another newcomer, in the order of node ranks, and to the node that has its
/// rank now: programs read what the first rank saved, and a newcomer need not get the rank of the node that it
/// replaces.
/// \param nodes    by node rank
/// \param members  of the same nodes
void assign_neighbours(const std::vector<NodeWithFiles>& nodes, std::vector<Member>& members);

}  // namespace lrun::launcher
