#include "store/host_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <stdexcept>

#include "base/child_query.h"
#include "base/numeric_address.h"

namespace lrun::launcher {

std::string known_address(const std::string& host) {
  if (is_numeric_address(host)) return host;
  return host == "localhost" ? "127.0.0.1" : std::string();
}

std::string ask_for_address(const std::string& host) {
  bool is_unknown = true;
  for (const int family : {AF_INET, AF_INET6}) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_family = family;
    addrinfo* list = nullptr;
    const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
    is_unknown = is_unknown && error == EAI_NONAME;
    if (error != 0) continue;
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
    char text[NI_MAXHOST];
    if (::getnameinfo(list->ai_addr, list->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0) return text;
  }
  if (!is_unknown) throw std::runtime_error("the name service does not say");
  return {};
}

std::string resolve_address(const std::string& host) {
  if (std::string known = known_address(host); !known.empty()) return known;
  const ChildAnswer answer = query_in_child([&] { return ask_for_address(host); }, kNameServiceLimit);
  return answer.end == ChildAnswer::End::kAnswered ? answer.text : std::string();
}

}  // namespace lrun::launcher
