#include "cli/unread_input.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace lrun {

bool has_pipe_of_its_own() {
  struct stat own {};
  struct stat parents {};
  if (::fstat(STDIN_FILENO, &own) != 0 || !S_ISFIFO(own.st_mode)) return false;
  const std::string input_of_parent = "/proc/" + std::to_string(::getppid()) + "/fd/0";
  if (::stat(input_of_parent.c_str(), &parents) != 0) return errno == ENOENT;  // it has none
  return own.st_dev != parents.st_dev || own.st_ino != parents.st_ino;
}

UnreadInput::UnreadInput(EventLoop& loop, std::function<void()> data_came) : data_came_(std::move(data_came)) {
  readable_ = loop.on_readable(STDIN_FILENO, [this] { look(); });
}

/// Also at the end of the pipe, which is readable for ever.
void UnreadInput::look() {
  readable_.cancel();
  int bytes = 0;
  if (::ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes > 0) data_came_();
}

}  // namespace lrun
