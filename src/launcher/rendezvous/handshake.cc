// In: bytes of the other end of a new connection. Out: our part of the handshake, and whether the other end is a
// launcher, or a leader, with the same secret. Called by LauncherLink, RendezvousServer and owner_of_port().
#include "rendezvous/handshake.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/sha256.h"
#include "base/shortened.h"
#include "base/utf8.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kNonceBytes = 32;
constexpr std::size_t kNonceDigits = 2 * kNonceBytes;
constexpr std::string_view kWithSecret = " secret";
constexpr std::string_view kWithoutSecret = " open";
constexpr std::string_view kProof = "proof ";
constexpr std::string_view kAlone = " alone ";
constexpr std::string_view kName = "lrun-job/";  // of all versions
constexpr const char* kSecretHint = "set LRUN_JOB_SECRET to the same value on every node, or on none";
constexpr const char* kAloneHint =
    "for two jobs, use a different port in '--rdzv-endpoint'; for one job, start both with the same '--num-nodes'";

/// Bytes of a foreign program, so that they can stand in a message.
std::string first_words(std::string_view bytes) {
  constexpr std::size_t kMostShown = 40;
  std::string text;
  for (const char byte : bytes.substr(0, bytes.find_first_of("\r\n"))) {
    const bool shown = byte >= ' ' && byte <= '~';
    text += shown ? std::string(1, byte) : written_out_byte(static_cast<unsigned char>(byte));
  }
  return shortened(text, kMostShown);
}

std::string kind_of_program(std::string_view bytes) {
  if (bytes.starts_with("SSH-")) return " (an SSH server)";
  if (bytes.starts_with("HTTP/") || bytes.starts_with("<")) return " (a web server)";
  return {};
}

}  // namespace

Handshake::Handshake(Side side, std::string secret, std::string_view nonce) : side_(side), secret_(std::move(secret)) {
  own_hello_ = std::string(kLauncherProtocol) + " " + in_hexadecimal(nonce);
  own_hello_ += secret_.empty() ? kWithoutSecret : kWithSecret;
  if (side_ == Side::kLauncher) out_ = own_hello_ + "\n";
}

std::string Handshake::take_output() { return std::exchange(out_, {}); }

std::string Handshake::take_rest() { return std::exchange(bytes_, {}); }

void Handshake::feed(std::string_view bytes) {
  if (step_ == Step::kRefused) return;
  bytes_.append(bytes);
  while (step_ == Step::kHello || step_ == Step::kProof) {
    const std::size_t known = std::min(bytes_.size(), kName.size());
    // A foreign program is known by its first bytes: it may never end a line.
    if (step_ == Step::kHello && bytes_.compare(0, known, kName, 0, known) != 0) return refuse_foreign();
    const std::size_t end = bytes_.find('\n');
    if (std::min(end, bytes_.size()) > kMostBytesOfLine) return refuse("it sent a line that is too long", "");
    if (end == std::string::npos) return;
    const std::string line = bytes_.substr(0, end);
    bytes_.erase(0, end + 1);
    take_line(line);
  }
}

void Handshake::take_line(std::string_view line) { step_ == Step::kHello ? take_hello(line) : take_proof(line); }

void Handshake::take_hello(std::string_view line) {
  const std::string_view protocol = line.substr(0, line.find(' '));
  if (protocol != kLauncherProtocol) {
    if (side_ == Side::kServer) out_ = own_hello_ + "\n";  // then the other end can name both versions, too
    return refuse(
        "it is another version of lrun: it speaks " + first_words(protocol) + ", not " + std::string(kLauncherProtocol),
        "use the same version of lrun on every node");
  }
  const std::string_view rest = line.substr(protocol.size());
  if (side_ == Side::kLauncher && rest.starts_with(kAlone)) return refuse_lone_job(rest.substr(kAlone.size()));
  const std::string_view secret = rest.substr(std::min(rest.size(), 1 + kNonceDigits));
  const bool sound = rest.starts_with(' ') &&
                     rest.substr(1, kNonceDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos &&
                     (secret == kWithSecret || secret == kWithoutSecret);
  if (!sound) return refuse("it sent an invalid handshake", "");
  their_hello_ = line;
  if (side_ == Side::kServer) out_ = own_hello_ + "\n";
  compare_secrets(secret == kWithSecret);
}

void Handshake::compare_secrets(bool theirs) {
  if (theirs == secret_.empty()) {
    return refuse(theirs ? "it has an LRUN_JOB_SECRET, and this launcher has none"
                         : "it has no LRUN_JOB_SECRET, and this launcher has one",
                  kSecretHint);
  }
  step_ = secret_.empty() ? Step::kDone : Step::kProof;
  if (step_ == Step::kProof && side_ == Side::kLauncher) out_ += proof_of(side_) + "\n";
}

void Handshake::take_proof(std::string_view line) {
  const Side other = side_ == Side::kLauncher ? Side::kServer : Side::kLauncher;
  // Else the time of the answer would tell how much of a guessed proof is right.
  const bool proved = equal_in_constant_time(line, proof_of(other));
  if (side_ == Side::kServer) out_ += (proved ? proof_of(side_) : "no") + "\n";
  if (!proved) return refuse("it has another LRUN_JOB_SECRET", kSecretHint);
  step_ = Step::kDone;
}

std::string Handshake::proof_of(Side side) const {
  const bool own_first = side_ == Side::kLauncher;
  // The side is part of the proof: a launcher's own proof cannot be sent back to it as the server's.
  std::string both = side == Side::kLauncher ? "launcher\n" : "holder\n";
  both += (own_first ? own_hello_ : their_hello_) + "\n" + (own_first ? their_hello_ : own_hello_) + "\n";
  return std::string(kProof) + in_hexadecimal(hmac_sha256(secret_, both));
}

void Handshake::refuse_foreign() {
  met_foreign_ = true;
  refuse("it is not lrun: it sent '" + first_words(bytes_) + "'" + kind_of_program(bytes_), "");
}

void Handshake::refuse_lone_job(std::string_view name) {
  met_lone_job_ = true;
  const std::string named = name.empty() ? "" : " '" + first_words(name) + "'";
  refuse("it is the workers' store of the job" + named + ", which has one node", kAloneHint);
}

void Handshake::refuse(std::string why, std::string hint) {
  step_ = Step::kRefused;
  bytes_.clear();
  refusal_ = std::move(why);
  hint_ = std::move(hint);
}

std::string hint_of_other_port(const std::string& option) {
  return "name another port with '" + option + "', on every node";
}

std::string lone_job_handshake(const std::string& name) {
  return std::string(kLauncherProtocol) + std::string(kAlone) + first_words(name) + "\n";
}

std::string random_nonce() {
  std::string nonce(kNonceBytes, '\0');
  if (::getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    throw std::system_error(errno, std::generic_category(), "getrandom");
  }
  return nonce;
}

std::string random_secret() { return in_hexadecimal(sha256(random_nonce())); }

}  // namespace lrun::launcher
