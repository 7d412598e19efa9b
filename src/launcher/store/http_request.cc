#include "store/http_request.h"

#include <utility>

#include "store/http_parsing.h"

namespace lrun::launcher {

namespace http = boost::beast::http;

struct HttpRequestReader::Parser : http::request_parser<http::string_body> {};

HttpRequestReader::HttpRequestReader() : parser_(std::make_unique<Parser>()) {
  set_http_limits(*parser_, kMostBodyBytes);
}

HttpRequestReader::~HttpRequestReader() = default;
HttpRequestReader::HttpRequestReader(HttpRequestReader&&) noexcept = default;
HttpRequestReader& HttpRequestReader::operator=(HttpRequestReader&&) noexcept = default;

std::optional<HttpRequest> HttpRequestReader::feed(std::string_view bytes) {
  if (!put_http_bytes(*parser_, unread_, bytes, refusal_)) return std::nullopt;
  auto message = parser_->release();
  return HttpRequest{std::string(message.method_string()), std::string(message.target()), std::move(message.body())};
}

}  // namespace lrun::launcher
