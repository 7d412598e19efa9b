#include "store/http_response.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <utility>

namespace lrun {

namespace http = boost::beast::http;

struct HttpResponseReader::Parser : http::response_parser<http::string_body> {};

HttpResponseReader::HttpResponseReader() : parser_(std::make_unique<Parser>()) {
  constexpr std::uint32_t kMostHeaderBytes = 16U << 10U;
  parser_->eager(true);
  parser_->header_limit(kMostHeaderBytes);
  parser_->body_limit(kMostBytes);
}

HttpResponseReader::~HttpResponseReader() = default;
HttpResponseReader::HttpResponseReader(HttpResponseReader&&) noexcept = default;
HttpResponseReader& HttpResponseReader::operator=(HttpResponseReader&&) noexcept = default;

std::optional<HttpResponse> HttpResponseReader::take(std::string_view bytes) {
  if (!refusal_.empty() || parser_->is_done()) return std::nullopt;
  unread_.append(bytes);
  boost::beast::error_code error;
  const std::size_t used = parser_->put(boost::asio::buffer(unread_), error);
  unread_.erase(0, used);
  if (error && error != http::error::need_more) {
    refusal_ = error.message();
    return std::nullopt;
  }
  return whole();
}

std::optional<HttpResponse> HttpResponseReader::end() {
  if (!refusal_.empty() || parser_->is_done() || !parser_->got_some()) return std::nullopt;
  boost::beast::error_code error;
  parser_->put_eof(error);
  if (error) {
    refusal_ = error.message();
    return std::nullopt;
  }
  return whole();
}

std::optional<HttpResponse> HttpResponseReader::whole() {
  if (!parser_->is_done()) return std::nullopt;
  return HttpResponse{static_cast<int>(parser_->get().result_int()), parser_->get().body(), parser_->keep_alive()};
}

}  // namespace lrun
