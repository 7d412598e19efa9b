#include "store/http_response.h"

#include <utility>

#include "store/http_parsing.h"

namespace lrun::launcher {

namespace http = boost::beast::http;

struct HttpResponseReader::Parser : http::response_parser<http::string_body> {};

HttpResponseReader::HttpResponseReader() : parser_(std::make_unique<Parser>()) {
  set_http_limits(*parser_, kMostBytes);
}

HttpResponseReader::~HttpResponseReader() = default;
HttpResponseReader::HttpResponseReader(HttpResponseReader&&) noexcept = default;
HttpResponseReader& HttpResponseReader::operator=(HttpResponseReader&&) noexcept = default;

std::optional<HttpResponse> HttpResponseReader::feed(std::string_view bytes) {
  return put_http_bytes(*parser_, unread_, bytes, refusal_) ? whole() : std::nullopt;
}

std::optional<HttpResponse> HttpResponseReader::end() {
  if (!refusal_.empty() || parser_->is_done() || !parser_->got_some()) return std::nullopt;
  boost::beast::error_code error;
  parser_->put_eof(error);  // a body without a length ends with the connection
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

}  // namespace lrun::launcher
