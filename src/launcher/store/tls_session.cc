// In: files, bytes of the other end and text for it. Out: bytes for the other end, its text, or why the connection is
// of no use. Called by EtcdClient; liblrun_tls.so does the work.
#include "store/tls_session.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "base/small_file.h"
#include "store/tls_library.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{4}
                                       << 20U;  // all authorities of a system are a quarter of a megabyte
constexpr const char* kFilesHint = "'cacert', 'cert' and 'key' of --rdzv-conf name files in PEM format";
constexpr std::size_t kPieceBytes = std::size_t{16} << 10U;

TlsText text_of(const std::string& text) { return {text.data(), text.size()}; }

std::string all_of(std::size_t (*take)(TlsEnd*, char*, std::size_t), TlsEnd* end) {
  std::string all;
  std::array<char, kPieceBytes> piece;
  while (const std::size_t count = take(end, piece.data(), piece.size())) all.append(piece.data(), count);
  return all;
}

}  // namespace

TlsSession::TlsSession(const TlsFiles& files, const std::string& host)
    : functions_(tls_library().functions), end_(nullptr, Deleter{functions_}) {
  if (functions_ != nullptr) {
    begin(files, host);
  } else {
    trouble_ = tls_library().why_not;
    hint_ = tls_library().hint;
  }
}

void TlsSession::begin(const TlsFiles& files, const std::string& host) {
  std::string authorities;
  std::string certificate;
  std::string key;
  if (!read(files.authorities, authorities) || !read(files.certificate, certificate) || !read(files.key, key)) return;
  const TlsQuestion question{.host = host.c_str(),
                             .authorities = text_of(authorities),
                             .certificate = text_of(certificate),
                             .key = text_of(key)};
  end_.reset(functions_->begin(&question));
  if (!end_) trouble_ = "there is no memory for a TLS connection";
  const bool key_is_apart = fault() == TlsFault::kKey && !files.key.empty();
  if (is_about_us()) fault_file_ = fault() == TlsFault::kAuthorities ? files.authorities : files.certificate;
  if (key_is_apart) fault_file_ = files.key;
}

/// \return false: it is refused.
bool TlsSession::read(const std::string& file, std::string& text) {
  if (file.empty()) return true;
  std::optional<std::string> content = read_small_file(file, kMostFileBytes);
  if (content && !content->empty()) {
    text = std::move(*content);
    return true;
  }
  const bool missing = ::access(file.c_str(), R_OK) != 0;
  trouble_ = "cannot read '" + file +
             "': " + (missing ? std::generic_category().message(errno) : "it is not a file with certificates or keys");
  hint_ = kFilesHint;
  return false;
}

void TlsSession::feed(std::string_view bytes) {
  if (end_) functions_->feed(end_.get(), bytes.data(), bytes.size());
}

void TlsSession::give(std::string_view text) {
  if (end_) functions_->give(end_.get(), text.data(), text.size());
}

std::string TlsSession::take_output() { return end_ ? all_of(functions_->take_output, end_.get()) : std::string(); }

std::string TlsSession::take_text() { return end_ ? all_of(functions_->take_text, end_.get()) : std::string(); }

std::string TlsSession::refusal() const {
  if (!end_) return trouble_;
  if (functions_->state(end_.get()) != TlsState::kFailed) return {};
  const std::string why = functions_->why(end_.get());
  return fault_file_.empty() ? why : "cannot use '" + fault_file_ + "': " + why;
}

bool TlsSession::is_about_us() const {
  const TlsFault what = fault();
  return !end_ || what == TlsFault::kAuthorities || what == TlsFault::kCertificate || what == TlsFault::kKey;
}

std::string TlsSession::hint() const {
  switch (fault()) {
    case TlsFault::kNone:
      return hint_;
    case TlsFault::kAuthorities:
    case TlsFault::kCertificate:
    case TlsFault::kKey:
      return kFilesHint;
    case TlsFault::kNoTls:
      return "leave 'protocol=https' out of --rdzv-conf, or name the port at which etcd speaks TLS";
    case TlsFault::kUntrusted:
      return "give the certificate of its authority: '--rdzv-conf protocol=https,cacert=FILE'";
    case TlsFault::kTime:
      return "renew etcd's certificate, or correct this host's clock";
    case TlsFault::kName:
      return "'--rdzv-endpoint' has to name etcd as its certificate does";
    case TlsFault::kOwnCertificate:
      return "give a certificate that etcd trusts: '--rdzv-conf protocol=https,cert=FILE,key=FILE'";
    default:
      return {};
  }
}

}  // namespace lrun::launcher
