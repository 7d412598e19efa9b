#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lrun::test {

/// The events of an elastic job, which its workers write into one shared file, a line an event. Times are those of
/// CLOCK_MONOTONIC, which is common to all of them.
struct ElasticEvent {
  std::string kind;          ///< 'start': a worker has met the others · 'step': rank 0 has made one · 'end'
  std::int64_t entered = 0;  ///< nanoseconds: before the worker met the others for this
  std::int64_t done = 0;     ///< ... and after it
  std::string round;         ///< drawn by rank 0 for each round and given to the others through their store
  int world_size = 0;
  int rank = 0;
  int nodes = 0;
  int restarts = 0;
  std::int64_t position = 0;  ///< samples taken so far
  std::string node;           ///< the argument NODE of the worker: the name of its launcher

  bool operator==(const ElasticEvent&) const = default;
};

/// How far a job has come, whatever worlds it had: each sample that was taken counts with its number and its square.
struct ElasticCheckpoint {
  std::int64_t position = 0;
  std::int64_t sum = 0;
  std::int64_t squares = 0;

  bool operator==(const ElasticCheckpoint&) const = default;
};

/// The sums when each of the first `position` samples was taken once.
ElasticCheckpoint exactly_once(std::int64_t position);

std::string to_line(const ElasticEvent& event);

void append(const std::filesystem::path& folder, const ElasticEvent& event);
std::vector<ElasticEvent> read_log(const std::filesystem::path& folder);

/// Published whole or not at all; an existing one stays, because it has the same content.
void publish(const std::filesystem::path& folder, const ElasticCheckpoint& checkpoint);
void remove(const std::filesystem::path& folder, const ElasticCheckpoint& checkpoint);
/// The one that has come farthest; position 0 when there is none.
ElasticCheckpoint newest_checkpoint(const std::filesystem::path& folder);

/// Texts of broken promises; empty: all is well. Two rounds never make steps at the same time, each rank of a round is
/// there once, and every sample was taken once.
std::vector<std::string> problems_of_job(const std::filesystem::path& folder);

}  // namespace lrun::test
