#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// Parts that the readers of requests and of responses share. Only their sources include this: Beast's headers are
/// large.

template <typename Parser>
void set_http_limits(Parser& parser, std::uint64_t most_body_bytes) {
  constexpr std::uint32_t kMostHeaderBytes = 16U << 10U;
  parser.eager(true);
  parser.header_limit(kMostHeaderBytes);
  parser.body_limit(most_body_bytes);
}

/// Gives `bytes` to the parser, behind those that it could not use yet. \param refusal why these bytes are not a
/// message; empty: they may be one. After a refusal, and behind a whole message, nothing more is read. \return whether
/// the message is whole now.
template <typename Parser>
bool put_http_bytes(Parser& parser, std::string& unread, std::string_view bytes, std::string& refusal) {
  if (!refusal.empty() || parser.is_done()) return false;
  unread.append(bytes);
  boost::beast::error_code error;
  const std::size_t used = parser.put(boost::asio::buffer(unread), error);
  unread.erase(0, used);
  if (error && error != boost::beast::http::error::need_more) {
    refusal = error.message();
    return false;
  }
  return parser.is_done();
}

}  // namespace lrun::launcher
