#include "store/http_answer.h"

namespace lrun::launcher {

/// Horovod's client needs this spelling of 'Content-Length', and the header even without a body.
std::string http_answer(std::string_view status, std::string_view body, std::string_view headers) {
  std::string bytes = "HTTP/1.1 ";
  bytes.append(status).append("\r\nContent-Length: ").append(std::to_string(body.size())).append("\r\n");
  return bytes.append(headers).append("Connection: close\r\n\r\n").append(body);
}

}  // namespace lrun::launcher
