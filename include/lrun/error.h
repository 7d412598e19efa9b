#pragma once

#include <lrun/export.h>

#include <stdexcept>
#include <string>

namespace lrun {

/// Base of everything liblrun throws for reasons outside the program.
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

/// What was asked for is not in this build, on this machine, or not in this version; the text says what is.
class LRUN_EXPORT Unsupported : public Error {
 public:
  using Error::Error;
  ~Unsupported() override;
};

/// A collective operation did not finish within its deadline; the text names the ranks that are missing.
class LRUN_EXPORT CollectiveTimeout : public Error {
 public:
  using Error::Error;
  ~CollectiveTimeout() override;
};

/// A rank of the group ended while others needed it; the text names it. Tensors of the operation are unspecified:
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

/// A checkpoint is torn, damaged or something else, or was not completed; the text names the file, or the ranks, and
/// why.
class LRUN_EXPORT CheckpointError : public Error {
 public:
  using Error::Error;
  ~CheckpointError() override;
};

/// Ranks that launch() started did not come to their end: one failed, their time was over, or a signal came. The first
/// line of the text is the verdict, the others are the last lines of the rank to blame. The others were stopped.
class LRUN_EXPORT WorkersFailed : public Error {
 public:
  /// \param rank       the one to blame; -1: none is
  /// \param exit_code  what a shell would show of it: its code, or 128 + signal; 124 when the time was over
  WorkersFailed(const std::string& text, int rank, int exit_code) : Error(text), rank_(rank), exit_code_(exit_code) {}
  ~WorkersFailed() override;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }

 private:
  int rank_;
  int exit_code_;
};

/// The step of one replica ended in an exception under dp or ddp2; the text names part and device. What it threw is
/// nested (std::rethrow_if_nested).
class LRUN_EXPORT ReplicaFailed : public Error {
 public:
  using Error::Error;
  ~ReplicaFailed() override;
};

}  // namespace lrun
