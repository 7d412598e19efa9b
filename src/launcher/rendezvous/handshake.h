#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// The first bytes of a connection between launchers, with the version of all that follows. No client of the store
/// begins with its first byte: one port serves both.
inline constexpr std::string_view kLauncherProtocol = "lrun-job/8";

/// The first exchange between a launcher and the leader of its job: both are lrun of one version, and where there is a
/// secret each of them knows it. No message is taken before.
///
/// Both send 'lrun-job/8 NONCE secret|open', the launcher first. With a secret the launcher then sends 'proof HMAC'
/// over both lines, and the leader answers with its own, or with 'no'. A foreign program that connects learns nothing
/// against which it could try secrets, and no answer can be sent back to its sender. The secret itself is never sent.
/// Later messages are neither encrypted nor signed.
///
/// A value: bytes go in, bytes come out; no I/O, at most kMostBytesOfLine are kept.
class Handshake {
 public:
  enum class Side { kLauncher, kServer };

  /// \param secret  empty: none
  /// \param nonce   random bytes that no other handshake uses
  Handshake(Side side, std::string secret, std::string_view nonce);

  /// Bytes came from the other end.
  void feed(std::string_view bytes);

  /// Takes the bytes that have to be sent since the last call.
  std::string take_output();

  /// The other end is one of us.
  [[nodiscard]] bool done() const { return step_ == Step::kDone; }
  /// The other end is a launcher or a leader of this version, of any job.
  [[nodiscard]] bool knows_other() const { return !their_hello_.empty(); }
  /// The other end is the workers' store of another job, which has sent lone_job_handshake().
  [[nodiscard]] bool met_lone_job() const { return met_lone_job_; }
  /// The other end is not lrun; hint() is empty then.
  [[nodiscard]] bool met_foreign() const { return met_foreign_; }
  /// Why the connection must be closed, as a clause about the other end; empty while all is well.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  /// A hint that says what a person can do about it; empty: the refusal says it all.
  [[nodiscard]] const std::string& hint() const { return hint_; }

  /// After done(): the bytes that came behind the handshake.
  std::string take_rest();

  static constexpr std::size_t kMostBytesOfLine = 128;

 private:
  enum class Step { kHello, kProof, kDone, kRefused };

  void take_line(std::string_view line);
  void take_hello(std::string_view line);
  void take_proof(std::string_view line);
  void compare_secrets(bool theirs);
  void refuse(std::string why, std::string hint);
  void refuse_foreign();
  void refuse_lone_job(std::string_view name);
  [[nodiscard]] std::string proof_of(Side side) const;

  Side side_;
  std::string secret_;
  std::string own_hello_;
  std::string their_hello_;
  Step step_ = Step::kHello;
  std::string bytes_;  ///< that came and are not a whole line yet
  std::string out_;
  std::string refusal_;
  std::string hint_;
  bool met_lone_job_ = false;
  bool met_foreign_ = false;
};

/// A hint where a foreign program has the port. \param option that names the port
std::string hint_of_other_port(const std::string& option);

/// The answer of the workers' store of a job of one node to a launcher that takes it for the rendezvous of its own job.
/// No leader sends it.
std::string lone_job_handshake(const std::string& name);

/// Bytes for a Handshake.
/// \throws std::system_error  the kernel has none.
std::string random_nonce();

/// A secret that nobody can guess, of 64 hexadecimal digits.
/// \throws std::system_error  the kernel has no random bytes.
std::string random_secret();

}  // namespace lrun::launcher
