#include "runtime/collectives/bootstrap/connect_to_host.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/collectives/common/background_thread.h"
#include "wire/connect.h"

namespace lrun::detail {
namespace {

using namespace std::chrono_literals;

/// The limit for one of several addresses: an address that drops packets must not use up the time of the others.
constexpr auto kOneAttempt = 3s;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

/// The errors of getaddrinfo().
class ResolverCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "resolver"; }
  [[nodiscard]] std::string message(int code) const override { return ::gai_strerror(code); }
};

[[noreturn]] void throw_resolver_error(int code, int system_error, const std::string& host) {
  static const ResolverCategory category;
  if (code == EAI_SYSTEM) throw std::system_error(system_error, std::generic_category(), "look up '" + host + "'");
  throw std::system_error(code, category, "look up '" + host + "'");
}

std::vector<Address> look_up(const std::string& host, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (code != 0) throw_resolver_error(code, errno, host);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    Address& address = addresses.emplace_back();
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.size = entry->ai_addrlen;
  }
  return addresses;
}

std::vector<Address> resolve(const std::string& host, std::uint16_t port, SteadyTime deadline) {
  if (host == "localhost") {  // RFC 6761, 6.3: no resolver is needed, and a bare container has none
    std::vector<Address> addresses = look_up("127.0.0.1", port, AI_NUMERICHOST);
    addresses.push_back(look_up("::1", port, AI_NUMERICHOST).front());
    return addresses;
  }
  try {
    return look_up(host, port, AI_NUMERICHOST);
  } catch (const std::system_error&) {
    // A name, then.
  }
  std::packaged_task<std::vector<Address>()> task([host, port] { return look_up(host, port, 0); });
  auto addresses = task.get_future();
  start_background_thread(std::move(task)).detach();
  if (addresses.wait_until(deadline) == std::future_status::ready) return addresses.get();
  throw std::system_error(ETIMEDOUT, std::generic_category(), "look up '" + host + "'");
}

}  // namespace

Fd connect_to_host(const std::string& host, std::uint16_t port, SteadyTime deadline) {
  const std::vector<Address> addresses = resolve(host, port, deadline);
  for (const Address& address : addresses) {
    try {
      const auto& any = reinterpret_cast<const sockaddr&>(address.storage);
      Fd socket = begin_to_connect(any, address.size, "connect");
      const SteadyTime attempt_over = std::chrono::steady_clock::now() + kOneAttempt;
      finish_connecting(socket.get(), std::min(deadline, attempt_over), "connect");
      return socket;
    } catch (const std::system_error&) {
      if (&address == &addresses.back()) throw;
    }
  }
  throw std::system_error(EADDRNOTAVAIL, std::generic_category(), "look up '" + host + "'");
}

}  // namespace lrun::detail
