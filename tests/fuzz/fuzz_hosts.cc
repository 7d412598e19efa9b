// Host lists, hostfiles and selections, as users write them.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/user_error.h"
#include "cluster/host_filter.h"
#include "cluster/user_hosts.h"

namespace {

void must_be_hosts(const std::vector<lrun::launcher::Host>& hosts) {
  if (hosts.empty() || hosts.size() > lrun::launcher::kMostHosts) __builtin_trap();
  for (const lrun::launcher::Host& host : hosts) {
    if (host.name.empty() || host.name.front() == '-' || host.user.starts_with('-')) __builtin_trap();
    if (host.slots < 0 || host.slots > lrun::launcher::kMostSlots || host.port < 0 || host.port > 65'535)
      __builtin_trap();
  }
}

template <class Parse>
void parse(Parse parse_text) {
  try {
    must_be_hosts(parse_text());
  } catch (const lrun::UserError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<lrun::launcher::Host> hosts{{.name = "a", .slots = 4}, {.name = "b", .slots = 2}};
  parse([&] { return lrun::launcher::parse_host_list(text, "-H"); });
  parse([&] { return lrun::launcher::parse_hostfile(text, "hosts"); });
  parse([&] { return lrun::launcher::included(hosts, text, "--include"); });
  parse([&] { return lrun::launcher::excluded(hosts, text, "--exclude"); });
  return 0;
}
