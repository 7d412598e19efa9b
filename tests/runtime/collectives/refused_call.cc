#include "runtime/collectives/refused_call.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cstddef>
#include <stdexcept>
#include <vector>

namespace lrun::detail::testing {

void refuse_call(long number, int error, std::optional<CallArgument> argument) {
  const auto load = [](std::size_t offset) {
    return sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<unsigned>(offset)};
  };
  // To the end, which allows, unless it is equal.
  const auto require = [](unsigned value, unsigned char rest) {
    return sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, rest, value};
  };
  std::vector<sock_filter> filter = {load(offsetof(seccomp_data, nr)),
                                     require(static_cast<unsigned>(number), argument ? 3 : 1)};
  if (argument) {
    filter.push_back(load(offsetof(seccomp_data, args) + 8 * std::size_t{argument->index}));
    filter.push_back(require(argument->value, 1));
  }
  filter.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)});
  filter.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW});
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    throw std::runtime_error("no seccomp");
  }
}

}  // namespace lrun::detail::testing
