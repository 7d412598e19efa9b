#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace lrun::launcher {

struct HttpRequest {
  std::string method;  ///< 'GET', as it came
  std::string target;  ///< '/scope/key', as it came
  std::string body;    ///< any bytes

  bool operator==(const HttpRequest&) const = default;
};

/// Turns bytes of a client into one request of HTTP/1.1, wherever they were cut: with a length, or in chunks. No I/O;
/// keeps at most kMostBodyBytes and a header of 16 KiB.
class HttpRequestReader {
 public:
  HttpRequestReader();
  ~HttpRequestReader();
  HttpRequestReader(HttpRequestReader&&) noexcept;
  HttpRequestReader& operator=(HttpRequestReader&&) noexcept;

  /// \return the request once it is whole; bytes behind it are left out.
  std::optional<HttpRequest> feed(std::string_view bytes);

  /// Why the bytes are not such a request; empty while they may be one.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

  static constexpr std::size_t kMostBodyBytes = std::size_t{4} << 20U;

 private:
  struct Parser;  // Boost.Beast's

  std::unique_ptr<Parser> parser_;
  std::string unread_;
  std::string refusal_;
};

}  // namespace lrun::launcher
