#pragma once

#include <sys/resource.h>

#include <csignal>

namespace lrun::test {

/// While it lives, no file of this process grows beyond `bytes`: a write that would is cut, the next one is refused
/// with EFBIG.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes = 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const struct rlimit full { bytes, before_.rlim_max };
    ::setrlimit(RLIMIT_FSIZE, &full);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  struct rlimit before_ {};
};

}  // namespace lrun::test
