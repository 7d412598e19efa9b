// Every request to Horovod's rendezvous is answered or refused, wherever it was cut, and memory stays bounded.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "store/horovod_values.h"
#include "store/http_request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lrun;
  using namespace lrun::launcher;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);

  HttpRequestReader whole;
  const std::optional<HttpRequest> request = whole.feed(bytes);
  HttpRequestReader pieces;
  std::optional<HttpRequest> cut;
  for (std::string_view left = bytes; !left.empty() && !cut && pieces.refusal().empty();
       left.remove_prefix(std::min<std::size_t>(left.size(), 5))) {
    cut = pieces.feed(left.substr(0, 5));
  }
  if (request && cut && *request != *cut) std::abort();
  if (request && request->body.size() > HttpRequestReader::kMostBodyBytes) std::abort();

  HorovodValues values(1 << 16U);
  if (request) {
    const std::string answer = values.answer(*request);
    if (!answer.starts_with("HTTP/1.1 ") || answer.find("\r\n\r\n") == std::string::npos) std::abort();
  }
  // A line is a request: the first byte chooses its method, the rest is its target.
  for (std::string_view left = bytes; !left.empty();) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(left.size(), line.size() + 1));
    if (line.empty()) continue;
    const char* const methods[] = {"GET", "PUT", "DELETE", "POST"};
    const auto* const method = methods[static_cast<unsigned char>(line.front()) % 4];
    const std::string target(line.substr(1));
    const bool stored = values.answer({method, target, "x"}).starts_with("HTTP/1.1 200 ");
    if (stored && method == std::string_view("PUT") && !values.answer({"GET", target, ""}).ends_with("\r\n\r\nx")) {
      std::abort();
    }
  }
  values.clear();
  if (!values.empty()) std::abort();
  return 0;
}
