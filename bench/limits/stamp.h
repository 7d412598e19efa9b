#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <ctime>

/// Appends a line with `word` and the seconds of CLOCK_MONOTONIC to a file, in one write, so that workers may share it.
/// \return whether it could.
inline bool append_stamp(const char* file, const char* word) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  char line[96];
  const int size = std::snprintf(line, sizeof line, "%s%s%lld.%06ld\n", word, *word == '\0' ? "" : " ",
                                 static_cast<long long>(now.tv_sec), now.tv_nsec / 1000);
  const int fd = ::open(file, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
  const bool is_written = fd >= 0 && ::write(fd, line, static_cast<std::size_t>(size)) == size;
  if (fd >= 0) ::close(fd);
  return is_written;
}
