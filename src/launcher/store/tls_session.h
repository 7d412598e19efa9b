#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "store/tls_end.h"

namespace lrun::launcher {

/// Files in PEM format. They are read for every connection, so that one that was renewed counts.
struct TlsFiles {
  std::string authorities = {};  ///< whose signature on the other end's certificate counts; empty: this system's
  std::string certificate = {};  ///< ours; empty: none
  std::string key = {};          ///< of it; empty: in the same file

  bool operator==(const TlsFiles&) const = default;
};

/// Our end of one TLS connection, without its socket: bytes that came go in, bytes to be sent come out. The other end
/// has to prove its identity before it gets any text. Nothing throws, whatever bytes come.
class TlsSession {
 public:
  /// Begins the handshake. \param host a name or a numeric address, for which the other end's certificate has to be
  TlsSession(const TlsFiles& files, const std::string& host);

  void feed(std::string_view bytes);
  /// Dropped unless the connection is open.
  void give(std::string_view text);
  std::string take_output();
  std::string take_text();

  [[nodiscard]] bool is_open() const { return end_ && end_->state() == TlsState::kOpen; }
  /// The other end has closed the connection: nothing was cut off.
  [[nodiscard]] bool is_closed() const { return end_ && end_->state() == TlsState::kClosed; }
  /// Why the connection is of no use, as a clause, about 'it' where it is the other end's fault; empty: it is of use.
  [[nodiscard]] std::string refusal() const;
  /// A hint that says what a person can do about that; empty: nothing special.
  [[nodiscard]] std::string hint() const;
  /// The refusal is about our own files or programs: no other end was involved.
  [[nodiscard]] bool is_about_us() const;

 private:
  bool read(const std::string& file, std::string& text);
  void begin(const TlsFiles& files, const std::string& host);
  [[nodiscard]] TlsFault fault() const { return end_ ? end_->fault() : TlsFault::kNone; }

  std::unique_ptr<TlsEnd> end_;  ///< empty: trouble_
  std::string trouble_;
  std::string hint_;
  std::string fault_file_;  ///< the file of ours that why() is about; empty: another reason
};

}  // namespace lrun::launcher
