#pragma once

#include <cstdint>
#include <string>

#include "rendezvous/membership.h"

namespace lrun::launcher {

/// The reports of a Job to the launcher that takes part in it. Called by the loop; each method does nothing unless
/// overridden. A method may call the Job, and must not destroy it.
class JobEvents {
 public:
  JobEvents() = default;
  JobEvents(const JobEvents&) = delete;
  JobEvents& operator=(const JobEvents&) = delete;
  virtual ~JobEvents() = default;

  /// A round has begun: start the workers. Messages right behind the first one wait for the next set_events().
  virtual void begun(const Membership& /*membership*/) {}
  /// Launchers are missing: `text` lists those that are there.
  virtual void waiting(const std::string& /*text*/) {}
  /// The job runs, and may need this node later.
  virtual void spare(const std::string& /*text*/) {}
  /// There is no job to take part in. Nothing more comes. `hint` says what to do about it; empty: nothing special.
  virtual void failed(const std::string& /*why*/, const std::string& /*hint*/) {}
  /// Stop the workers: `text` is what another launcher gave to Job::stopping().
  virtual void stop(const std::string& /*text*/) {}
  /// Stop the workers: a node is gone. Empty `node`: the leader's, and nothing more comes.
  /// \param heard_ns  its last sign of life, on the leader's steady clock
  /// \param spare     the node that takes its place; empty: none
  virtual void lost(const std::string& /*node*/, const std::string& /*how*/, std::int64_t /*heard_ns*/,
                    const std::string& /*spare*/) {}
  /// Stop the workers: a node has joined.
  virtual void resized(const std::string& /*node*/, const std::string& /*text*/) {}
  /// The round is over everywhere: `report` was made of those of all nodes.
  virtual void over(const std::string& /*report*/) {}
  /// The job is over for this node, and nothing more comes. Empty `why`: it succeeded without this node.
  /// \param by_leader  which has told all of its nodes
  virtual void ended(const std::string& /*why*/, bool /*by_leader*/) {}
  /// Stop the workers, and be ready for the next round: the leader is lost, and the others look for another one.
  virtual void leaderless(const std::string& /*how*/, std::int64_t /*heard_ns*/) {}
  /// The rendezvous is served here, and a launcher that came was not admitted, or was with a warning.
  virtual void rejected(const std::string& /*line*/) {}
  /// This launcher leads, and etcd does not take the state for the next leader.
  virtual void not_published(const std::string& /*why*/) {}
  /// The job meets at another address, or its leader is lost and looked for. Only before a round, and while there is no
  /// leader.
  virtual void redirected(const std::string& /*text*/) {}
  /// This launcher leads, and another job of the same name has begun at the endpoint.
  virtual void second_job(const std::string& /*text*/) {}
};

}  // namespace lrun::launcher
