#pragma once

#include <lrun/export.h>

#include <stdexcept>
#include <string>

namespace lrun {

/// Base of all errors whose reason lies outside the program.
class LRUN_EXPORT Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Error() override;
};

/// A variable of the worker environment is missing, malformed or contradicts another; the text names it.
class LRUN_EXPORT BadEnvironment : public Error {
 public:
  using Error::Error;
  ~BadEnvironment() override;
};

/// The request cannot be met by this build, this machine or this version; the text says what can be used instead.
class LRUN_EXPORT Unsupported : public Error {
 public:
  using Error::Error;
  ~Unsupported() override;
};

/// A collective operation did not finish before its deadline; the text names the missing ranks.
class LRUN_EXPORT CollectiveTimeout : public Error {
 public:
  using Error::Error;
  ~CollectiveTimeout() override;
};

/// A rank of the group ended while others needed it; the text names it. The operation's tensors are unspecified:
/// restart from a checkpoint.
class LRUN_EXPORT PeerLost : public Error {
 public:
  using Error::Error;
  ~PeerLost() override;
};

/// The ranks called different operations, or with different shapes or dtypes; the text names both.
class LRUN_EXPORT CollectiveMismatch : public Error {
 public:
  using Error::Error;
  ~CollectiveMismatch() override;
};

/// The model differs between ranks; the text names the first parameter that does.
class LRUN_EXPORT RankMismatch : public Error {
 public:
  using Error::Error;
  ~RankMismatch() override;
};

/// A checkpoint is truncated, damaged, incomplete or no checkpoint at all; the text names the file or the ranks, and
/// the reason.
class LRUN_EXPORT CheckpointError : public Error {
 public:
  using Error::Error;
  ~CheckpointError() override;
};

/// A launch() did not succeed: a rank failed, the time limit passed, or a signal arrived. The remaining ranks were
/// stopped. The first line of the text is the verdict; the lines below it are the last output of the rank to blame.
class LRUN_EXPORT WorkersFailed : public Error {
 public:
  /// \param rank       the rank to blame; -1: none
  /// \param exit_code  as a shell shows it: the rank's code, or 128 + signal; 124 after the time limit
  WorkersFailed(const std::string& text, int rank, int exit_code) : Error(text), rank_(rank), exit_code_(exit_code) {}
  ~WorkersFailed() override;

  [[nodiscard]] int rank() const noexcept { return rank_; }            ///< The rank to blame; -1: none.
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }  ///< Never 0.

 private:
  int rank_;
  int exit_code_;
};

/// The step of one replica threw under dp or ddp2; the text names part and device. The original exception is nested
/// (std::rethrow_if_nested).
class LRUN_EXPORT ReplicaFailed : public Error {
 public:
  using Error::Error;
  ~ReplicaFailed() override;
};

}  // namespace lrun
