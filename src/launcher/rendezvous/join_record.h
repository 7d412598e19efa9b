#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// What a launcher says about its node when it joins a rendezvous. Comes from another machine: nothing in it is trusted
/// before join_record_from_json() has looked at it.
struct JoinRecord {
  std::string token;           ///< names this launcher process among all; never used twice
  std::string run_name;        ///< --rdzv-id; empty: not given
  std::string run_id;          ///< the name it would give the run
  std::string node;            ///< host name
  std::string address;         ///< numeric: where others reach the node
  std::string leader_address;  ///< numeric: where it reached the meeting
  int workers = 1;
  std::optional<int> node_rank;  ///< asked for with --node-rank; empty: any
  std::string role = "default";
  int store_port = 0;    ///< on which it would host the workers' store
  int standby_port = 0;  ///< on which it would hold the meeting in another's place; 0: it cannot
  bool of_rank = false;  ///< each rank of the job has a launcher: node ranks and numbers of nodes are those of ranks
  int min_nodes = 1;     ///< of the job
  int max_nodes = 1;     ///< of the job
  std::string settings;  ///< what has to be equal on all nodes, in words: 'strategy ddp, max-restarts 3'
  /// By what two jobs are told apart: the program's name without folders, and a digest of it and of its arguments,
  /// which are not for others to read. Empty: not to be compared.
  std::string program;
  std::string command_digest;
  /// Why this node cannot start its workers, in words: it does not take part, and only says so; empty: it can.
  std::string cannot_start;
  std::string report;  ///< of that failure, as LauncherMessage::kReport has it; empty where there is none

  bool operator==(const JoinRecord&) const = default;
};

inline constexpr int kMostNodesOfAJob = 65'536;
inline constexpr int kMostWorkersOfANode = 1 << 20;
inline constexpr int kMostWorkersOfAJob = 1 << 24;

std::string to_json(const JoinRecord& record);

/// Empty for what is not JSON, lacks a field, or holds a value out of its range.
std::optional<JoinRecord> join_record_from_json(std::string_view json);

/// ''b' from 10.0.0.2 (2 workers, node rank 1)'.
std::string describe(const JoinRecord& record);

/// Who is lost or has come: 'b', or 'b (rank 3)' of several launchers there.
std::string name_of(const JoinRecord& record);

/// What a job has `count` launchers of: 'nodes', or 'ranks' where each of them has one.
std::string unit_of(bool of_ranks, int count);

/// How many nodes a job may have: '2', '2:4'.
std::string nodes_text(int least, int most);

/// True of '127.0.0.1', '127.5.5.5' and '::1'.
bool is_loopback_address(std::string_view address);

}  // namespace lrun::launcher
