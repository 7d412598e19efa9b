// In: files, bytes of the other end and text for it. Out: bytes for the other end, its text, or why the connection is
// of no use. Called by EtcdClient; TlsEnd does the work.
#include "store/tls_session.h"

#include <unistd.h>

#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "base/small_file.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{4}
                                       << 20U;  // all authorities of a system are a quarter of a megabyte
constexpr const char* kFilesHint = "'cacert', 'cert' and 'key' of --rdzv-conf name files in PEM format";

}  // namespace

TlsSession::TlsSession(const TlsFiles& files, const std::string& host) {
  if (openssl() != nullptr) {
    begin(files, host);
  } else {
    trouble_ = why_no_openssl();
    hint_ = "install OpenSSL 3 (Debian: libssl3)";
  }
}

void TlsSession::begin(const TlsFiles& files, const std::string& host) {
  PemTexts texts;
  const bool has_read = read(files.authorities, texts.authorities) && read(files.certificate, texts.certificate) &&
                        read(files.key, texts.key);
  if (!has_read) return;
  end_ = std::make_unique<TlsEnd>(*openssl(), host, texts);
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
  if (end_) end_->feed(bytes);
}

void TlsSession::give(std::string_view text) {
  if (end_) end_->give(text);
}

std::string TlsSession::take_output() { return end_ ? end_->take_output() : std::string(); }

std::string TlsSession::take_text() { return end_ ? end_->take_text() : std::string(); }

std::string TlsSession::refusal() const {
  if (!end_) return trouble_;
  if (end_->state() != TlsState::kFailed) return {};
  const std::string why = end_->why();
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
