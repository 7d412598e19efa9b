#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/fd.h"

namespace lrun::inline core {

/// The collective operations in which a worker reports that it waits; in the first one all ranks join the group.
enum class ReportedOperation : std::uint8_t {
  kInitProcessGroup,
  kAllocateBucket,
  kAllReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBarrier
};

/// A call of such an operation, as one word of memory.
struct ReportedCall {
  std::uint64_t word = 0;  ///< 0: none

  [[nodiscard]] explicit operator bool() const { return word != 0; }
  /// 'all_reduce'; empty for any other word.
  [[nodiscard]] std::string operation() const;
  bool operator==(const ReportedCall&) const = default;
};

/// The progress of one worker.
struct Progress {
  std::uint64_t steps = 0;                ///< training steps so far; 0: none reported
  std::int64_t steady_ns = 0;             ///< when it reported the last one, on the machine's steady clock
  std::int64_t first_steady_ns = 0;       ///< when it reported the first one
  std::int64_t checkpoint_steady_ns = 0;  ///< when it had written the last checkpoint; 0: none reported
  std::uint64_t calls = 0;                ///< in which it has waited for other ranks so far; 0: none reported
  ReportedCall call{};                    ///< in which it waits
  std::int64_t calls_pid = 0;             ///< the process that reports calls

  bool operator==(const Progress&) const = default;
};

/// The launcher's side: memory in which each worker of an attempt writes its progress. Nothing wakes the launcher,
/// which reads it when it needs it.
class ProgressBoard {
 public:
  ProgressBoard() = default;
  /// \throws std::system_error  no memory.
  explicit ProgressBoard(std::size_t workers);

  [[nodiscard]] int fd() const { return memory_.get(); }
  /// The value of LRUN_PROGRESS_FD for a worker whose descriptor `worker_fd` is this memory: '3:128'.
  [[nodiscard]] static std::string variable(int worker_fd, std::size_t worker);
  /// Zero for a worker that reported nothing, and on a board without memory.
  [[nodiscard]] Progress of(std::size_t worker) const;

 private:
  Fd memory_;
};

/// The worker's side: reports a step or a checkpoint with one small write each. Does nothing without a launcher that
/// asks for it.
class ProgressReporter {
 public:
  /// \param variable  the value of LRUN_PROGRESS_FD; nullptr: none. A descriptor that is not such memory is left alone.
  explicit ProgressReporter(const char* variable);

  /// A step is done. Never fails and never waits.
  void step();
  /// A checkpoint is written that the next attempt finds. Never fails and never waits. Also of a reporter of its own.
  void checkpoint();

 private:
  Fd memory_;
  std::int64_t offset_ = 0;
  Progress progress_;
};

/// The worker's side: reports the collective operations in which it waits, for some nanoseconds each. Does nothing
/// without a launcher that asks for it. Threads: any; of calls at the same time the one that began last is seen.
class CallReporter {
 public:
  /// \param variable  as of ProgressReporter
  explicit CallReporter(const char* variable);
  CallReporter(const CallReporter&) = delete;
  CallReporter& operator=(const CallReporter&) = delete;
  ~CallReporter();

  [[nodiscard]] explicit operator bool() const { return place_ != nullptr; }

  /// This worker waits in an operation while this lives.
  class Call {
   public:
    Call(const CallReporter& reporter, ReportedOperation operation);
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call();

   private:
    Progress* place_;
    std::uint64_t word_ = 0;
  };

 private:
  void* page_ = nullptr;
  Progress* place_ = nullptr;  ///< in that page; nullptr: nobody asks
};

/// The name of the variable by which a worker finds its place.
inline constexpr const char* kProgressVariable = "LRUN_PROGRESS_FD";

}  // namespace lrun::inline core
