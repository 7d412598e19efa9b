#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// The record of a node with which its launcher joins a rendezvous. Comes from another machine: nothing in it is
/// trusted before join_record_from_json() has looked at it.
struct JoinRecord {
  std::string token;     ///< identifies this launcher process; no secret, and never used twice
  std::string run_name;  ///< --rdzv-id; empty: not given
  std::string run_id;    ///< of the job, once the launcher is in it; before, its own. Not torch's, which is run_name
  std::string node;      ///< host name
  std::string address;   ///< numeric: where others reach the node
  std::string leader_address;  ///< numeric: where it reached the leader
  int workers = 1;
  std::optional<int> node_rank;  ///< asked for with --node-rank; empty: any
  std::string role = "default";
  int store_port = 0;    ///< on which it would host the workers' store
  int standby_port = 0;  ///< at which it would lead in another's place; 0: it cannot
  int copy_port = 0;     ///< at which it keeps copies of other nodes' files in memory; 0: it keeps none
  std::string copy_key;  ///< that others have to know there; the leader gives it to those who need it
  bool of_rank = false;  ///< each rank of the job has a launcher: node ranks and numbers of nodes are those of ranks
  int min_nodes = 1;     ///< of the job
  int max_nodes = 1;     ///< of the job
  std::string settings;  ///< options that have to be equal on all nodes: 'strategy ddp, max-restarts 3'
  /// By these two jobs are told apart: the program's name without folders, and a digest of it and of its arguments,
  /// which others must not read. Empty: they are not compared.
  std::string program;
  std::string command_digest;
  /// Why this node cannot start its workers: it joins only to report that. Empty: it can.
  std::string cannot_start;
  std::string report;  ///< of that failure, as LauncherMessage::kReport has it; empty where there is none

  bool operator==(const JoinRecord&) const = default;
};

inline constexpr int kMostNodesOfAJob = 65'536;
inline constexpr int kMostWorkersOfANode = 1 << 20;
inline constexpr int kMostWorkersOfAJob = 1 << 24;

/// For fields that come from another machine.
inline bool is_within(int value, int least, int most) { return value >= least && value <= most; }

std::string to_json(const JoinRecord& record);

/// Empty for what is not JSON, lacks a field, or holds a value out of its range.
std::optional<JoinRecord> join_record_from_json(std::string_view json);

/// ''b' from 10.0.0.2 (2 workers, node rank 1)'; without the address where only the node itself has it.
std::string describe(const JoinRecord& record);

/// The node by its name: 'b', or 'b (rank 3)' where it has several launchers.
std::string name_of(const JoinRecord& record);

/// The unit of `count` launchers: 'nodes', or 'ranks' where each rank has one.
std::string unit_of(bool of_ranks, int count);

/// How many nodes a job may have: '2', '2:4'.
std::string nodes_text(int least, int most);

/// True of '127.0.0.1', '127.5.5.5' and '::1'.
bool is_loopback_address(std::string_view address);

}  // namespace lrun::launcher
