#include "store/http_request.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <utility>

namespace lrun {

namespace http = boost::beast::http;

struct HttpRequestReader::Parser : http::request_parser<http::string_body> {};

HttpRequestReader::HttpRequestReader() : parser_(std::make_unique<Parser>()) {
  constexpr std::uint32_t kMostHeaderBytes = 16U << 10U;
  parser_->eager(true);
  parser_->header_limit(kMostHeaderBytes);
  parser_->body_limit(kMostBodyBytes);
}

HttpRequestReader::~HttpRequestReader() = default;
HttpRequestReader::HttpRequestReader(HttpRequestReader&&) noexcept = default;
HttpRequestReader& HttpRequestReader::operator=(HttpRequestReader&&) noexcept = default;

std::optional<HttpRequest> HttpRequestReader::take(std::string_view bytes) {
  if (!refusal_.empty() || parser_->is_done()) return std::nullopt;
  unread_.append(bytes);
  boost::beast::error_code error;
  const std::size_t used = parser_->put(boost::asio::buffer(unread_), error);
  unread_.erase(0, used);
  if (error && error != http::error::need_more) {
    refusal_ = error.message();
    return std::nullopt;
  }
  if (!parser_->is_done()) return std::nullopt;
  auto message = parser_->release();
  return HttpRequest{std::string(message.method_string()), std::string(message.target()), std::move(message.body())};
}

}  // namespace lrun
