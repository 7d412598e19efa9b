#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace lrun::launcher {

struct HttpResponse {
  int status = 0;
  std::string body;
  bool keeps_connection = false;  ///< another request may follow on the same one

  bool operator==(const HttpResponse&) const = default;
};

/// Turns bytes of a server into one response of HTTP/1.1, wherever they were cut: with a length, in chunks, or until
/// the connection ends. No I/O; keeps at most kMostBytes.
class HttpResponseReader {
 public:
  HttpResponseReader();
  ~HttpResponseReader();
  HttpResponseReader(HttpResponseReader&&) noexcept;
  HttpResponseReader& operator=(HttpResponseReader&&) noexcept;

  /// \return the response once it is whole; bytes behind it are left out.
  std::optional<HttpResponse> feed(std::string_view bytes);
  /// The connection has ended, which may be the end of the response.
  std::optional<HttpResponse> end();

  /// Why the bytes are not such a response; empty while they may be one.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

  static constexpr std::size_t kMostBytes = std::size_t{1} << 20U;

 private:
  struct Parser;  // Boost.Beast's

  std::optional<HttpResponse> whole();

  std::unique_ptr<Parser> parser_;
  std::string unread_;
  std::string refusal_;
};

}  // namespace lrun::launcher
