#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "store/tls_interface.h"

namespace lrun::launcher {

/// Files in PEM format. They are read for every connection, so that one that was renewed counts.
struct TlsFiles {
  std::string authorities = {};  ///< whose signature on the other end's certificate counts; empty: this system's
  std::string certificate = {};  ///< ours; empty: none
  std::string key = {};          ///< of it; empty: in the same file

  bool operator==(const TlsFiles&) const = default;
};

/// Our end of one TLS connection, without its socket: bytes that came go in, bytes to be sent come out. The other end
/// has to prove who it is before it hears a word. Nothing throws, whatever comes.
class TlsSession {
 public:
  /// Begins the greeting. \param host  a name or a numeric address, which the other end's certificate has to be for.
  TlsSession(const TlsFiles& files, const std::string& host);

  void feed(std::string_view bytes);
  /// Dropped unless the connection is open.
  void give(std::string_view words);
  std::string take_output();
  std::string take_words();

  [[nodiscard]] bool is_open() const { return end_ && functions_->state(end_.get()) == TlsState::kOpen; }
  /// The other end has said that it ends: nothing was cut off.
  [[nodiscard]] bool is_closed() const { return end_ && functions_->state(end_.get()) == TlsState::kClosed; }
  /// Why the connection is of no use, as a clause, about 'it' where it is the other end's fault; empty: it is of use.
  [[nodiscard]] std::string refusal() const;
  /// What a person can do about that; empty: nothing special.
  [[nodiscard]] std::string hint() const;
  /// The refusal is about our own files or programs: nobody has to be asked.
  [[nodiscard]] bool is_about_us() const;

 private:
  struct Deleter {
    const TlsFunctions* functions;
    void operator()(TlsEnd* end) const { functions->end(end); }
  };

  bool read(const std::string& file, std::string& text);
  void begin(const TlsFiles& files, const std::string& host);
  [[nodiscard]] TlsFault fault() const { return end_ ? functions_->fault(end_.get()) : TlsFault::kNone; }

  const TlsFunctions* functions_;
  std::unique_ptr<TlsEnd, Deleter> end_;  ///< empty: trouble_
  std::string trouble_;
  std::string hint_;
  std::string fault_file_;  ///< what why() is about, where it is one of ours
};

}  // namespace lrun::launcher
